"""The server process: Daphne and the supervisor in one event loop.

Flow: 1. The reactor starts. 2. The supervisor starts and recovers what an earlier
server left. 3. Only then does the socket listen, so no page is older than the recovery.
4. SIGTERM, SIGINT or SIGHUP: the socket closes, requests are cancelled, the supervisor
stops and ends every command. 5. The reactor ends.

Signals are asyncio's: Twisted's own handling would also wake the loop for each child
that exits, and Twisted has no children here.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from autobahn.exception import Disconnected

# Daphne's module installs the asyncio reactor; it must be imported before `reactor`.
from daphne.server import Server
from twisted.internet import reactor as twisted_reactor
from twisted.internet.defer import Deferred

from penguin_web.proxy import Application

logger = logging.getLogger(__name__)
reactor: Any = twisted_reactor

# A thread that draws a page hands the interpreter back to the loop after this time;
# the default of 5 ms would be most of what a call takes from approval to output.
SWITCH_S = 0.0005
STOP_S = 15  # longer than any grace period of a command; then the process ends anyway
CANCEL_S = 2
# One event of a page is one message, however long the text in it. What comes in is
# bound by Daphne's limit for a frame, 1 MiB.
MOST_SENT = 64 * 1024**2

Step = Callable[[], Coroutine[Any, Any, object]]


class CannotListen(Exception):
    """The address cannot be listened on; the text is a sentence for the terminal."""


def bind(host: str, port: int) -> socket.socket:
    """Return a bound socket that does not listen yet, or raise `CannotListen`."""
    address = host.strip("[]")
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
        # A name such as localhost often has both; the printed address is IPv4.
        family, kind, protocol, _, target = min(found, key=lambda entry: entry[0])
        listener = socket.socket(family, kind, protocol)
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(target)
    except OSError as error:
        raise CannotListen(
            f"Cannot listen on {host} port {port} ({error.strerror}); "
            "stop what uses it or choose another with PORT= or --port."
        ) from None
    return listener


def address_of(host: str, port: int) -> str:
    """Return the address people type; IPv6 stands in brackets."""
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{name}:{port}"


class WebServer(Server):  # type: ignore[misc] # Daphne is untyped
    """Daphne on a socket that is bound already, between a start and a stop step."""

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        *,
        start: Step,
        stop: Step,
    ) -> None:
        super().__init__(
            application,
            endpoints=["adopted"],
            signal_handlers=False,
            ready_callable=self._begin,
            websocket_timeout=-1,  # a page may stay open for days
            websocket_max_message_size=MOST_SENT,
            server_name="penguin",
        )
        self.endpoints: list[str] = []
        self.exit_code = 0
        self._listener = listener
        self._start = start
        self._stop = stop
        self._port: Any = None
        self._is_stopping = False

    def run(self) -> None:
        """Serve until a signal, then return; `exit_code` tells how it went."""
        sys.setswitchinterval(SWITCH_S)
        super().run()
        loop = asyncio.get_event_loop()
        loop.run_until_complete(_cancel(asyncio.all_tasks(loop)))
        loop.run_until_complete(loop.shutdown_asyncgens())

    def stop(self) -> None:
        """Begin the shutdown; a second signal changes nothing."""
        if not self._is_stopping:
            self._is_stopping = True
            reactor.callWhenRunning(reactor.stop)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send what an application says, unless the other side has just gone.

        Daphne learns of it a moment later, and then tells the application.
        """
        with suppress(Disconnected):
            await super().handle_reply(protocol, message)

    def kill_all_applications(self) -> Deferred[object]:
        """Stop listening, cancel requests and stop the supervisor, in this order."""
        return Deferred.fromFuture(asyncio.ensure_future(self._close()))

    def _begin(self) -> None:
        loop = asyncio.get_event_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self.stop)
        self._opening = loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            await self._start()
            self._listener.listen(512)
            self._port = reactor.adoptStreamPort(
                self._listener.fileno(), self._listener.family, self.http_factory
            )
            self._listener.close()  # the reactor has its own copy
        except Exception:
            logger.exception("The server could not start")
            self.exit_code = 1
            self.stop()

    async def _close(self) -> None:
        if self._port:
            self._port.stopListening()
        self._opening.cancel()
        applications = [
            details["application_instance"]
            for details in self.connections.values()
            if "application_instance" in details
        ]
        await _cancel({self._opening, *applications})
        try:
            async with asyncio.timeout(STOP_S):
                await self._stop()
        except Exception:
            logger.exception("The server did not stop cleanly")
            self.exit_code = 1


async def _cancel(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for them, but not for ever."""
    others = {task for task in tasks if task is not asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=CANCEL_S)
