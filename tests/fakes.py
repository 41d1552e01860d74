"""A model provider on loopback that plays a script, for clients and whole stories.

    with ScriptedServer([Answer(Say("One moment."), Call("exec_command", {"cmd": "ls"})),
                         Answer(Say("Done."))]) as server:
        spec = ModelSpec(..., base_url=server.openai_url)  # or server.anthropic_url
        ...
        server.requests[0].body["messages"]

Each item of the script answers one request, in order; a callable in place of the list
chooses by the request. The path of the request decides whether an `Answer` is written
as chat completion or as Anthropic message; `Bytes` is a stream told byte for byte.
The server has threads of its own: tests with and without an event loop may use it.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fake_wires import (
    Answer,
    Bytes,
    Call,
    Cut,
    Hold,
    Pause,
    Piece,
    Say,
    Status,
    Think,
    as_anthropic,
    as_chat,
)

__all__ = [
    "Answer",
    "Bytes",
    "Call",
    "Cut",
    "Hold",
    "Pause",
    "Request",
    "Say",
    "ScriptedServer",
    "Status",
    "Think",
    "free_port",
]

Item = Answer | Bytes | Status
_POLL_S = 0.005
_END_OF_SCRIPT = Status(400, {"error": {"message": "the script is at its end"}})


@dataclass
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: dict[str, Any]
    is_gone: threading.Event = field(default_factory=threading.Event)  # hung up early


class ScriptedServer:
    """Plays one item of the script per request."""

    def __init__(self, script: Sequence[Item] | Callable[[Request], Item] = ()) -> None:
        self.requests: list[Request] = []
        self._choose = script if callable(script) else None
        self._script = [] if callable(script) else list(script)
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def openai_url(self) -> str:
        return f"{self.anthropic_url}/v1"

    def add(self, *items: Item) -> None:
        """Append to the script."""
        with self._lock:
            self._script.extend(items)

    def take(self, request: Request) -> tuple[Item, int]:
        """Note the request; returns its item and its number."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            if self._choose is not None:
                return self._choose(request), number
            return (self._script.pop(0) if self._script else _END_OF_SCRIPT), number

    def wait(self, piece: Pause | Hold, has_left: Callable[[], bool]) -> None:
        """Wait as the piece says, at most until the client or the server ends."""
        until = time.monotonic() + (piece.seconds if isinstance(piece, Pause) else 60)
        while time.monotonic() < until and not self._is_closing.is_set():
            if isinstance(piece, Hold) and piece.until.is_set():
                return
            if has_left():
                raise ConnectionAbortedError
            time.sleep(_POLL_S)


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for them, so no socket outlives its test
    owner: ScriptedServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        request = Request(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=json.loads(self.rfile.read(length)),
        )
        item, number = self.server.owner.take(request)
        self.close_connection = True
        try:
            self._play(item, number)
        except ConnectionError:
            request.is_gone.set()

    def _play(self, item: Item, number: int) -> None:
        if isinstance(item, Status):
            self._answer_status(item)
            return
        if item.headers_after_s:
            self._wait(Pause(item.headers_after_s))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        for piece in self._pieces(item, number):
            if isinstance(piece, Cut):
                return  # the chunked body never ends: a dropped connection
            if isinstance(piece, bytes):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            else:
                self._wait(piece)
        self.wfile.write(b"0\r\n\r\n")

    def _pieces(self, item: Answer | Bytes, number: int) -> Iterator[Piece]:
        if isinstance(item, Bytes):
            return iter(item.pieces)
        write = as_anthropic if self.path.endswith("/messages") else as_chat
        return write(item, number)

    def _answer_status(self, item: Status) -> None:
        is_text = isinstance(item.body, str)
        body = (item.body if is_text else json.dumps(item.body)).encode()
        self.send_response(item.code)
        self.send_header("content-type", "text/html" if is_text else "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _wait(self, piece: Pause | Hold) -> None:
        self.server.owner.wait(piece, self._has_left)

    def _has_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
