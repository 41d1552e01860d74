"""A web server on loopback that answers as a test says, and notes who asked what."""

import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebServer:
    """Answers each path with what `pages` holds for it; a missing one with 404."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.pages: dict[str, Callable[[Answer], None]] = {}
        self.asked: list[tuple[str, str]] = []  # Host header and path
        self.headers: list[dict[str, str]] = []
        self.has_left = threading.Event()  # a client hung up before the end
        self.is_closing = threading.Event()
        self._http = _Http(("127.0.0.1", 0), Answer)
        self._http.owner = self
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))

    def __enter__(self) -> "WebServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def port(self) -> int:
        return self._http.server_port

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def serve(self, path: str, body: bytes, content_type: str | None = "image/png"):
        """Answer with the body; return the address."""
        headers = {"content-type": content_type} if content_type else {}
        self.pages[path] = lambda answer: answer.give(200, body, **headers)
        return self.url(path)

    def redirect(self, path: str, to: str, status: int = 302) -> str:
        self.pages[path] = lambda answer: answer.give(status, b"", location=to)
        return self.url(path)


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    owner: WebServer

    def handle_error(self, *_: object) -> None:
        """Keep the tests' output clean: clients leave early on purpose."""


class Answer(BaseHTTPRequestHandler):
    """One request."""

    server: _Http

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""

    def do_GET(self) -> None:
        owner = self.server.owner
        owner.asked.append((self.headers["host"], self.path))
        owner.headers.append({k.lower(): v for k, v in self.headers.items()})
        page = owner.pages.get(self.path, lambda answer: answer.give(404, b"no"))
        page(self)

    def give(self, status: int, body: bytes, **headers: str) -> None:
        """Send all of it; `content_length` replaces the true one."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        length = {"content-length": str(len(body))} | names
        self.send_response(status)
        for name, value in length.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def hang(self) -> None:
        """Say nothing until the client has left or the server ends."""
        self.connection.settimeout(0.02)
        while not self.server.owner.is_closing.is_set():
            try:
                if self.connection.recv(1) == b"":
                    self.server.owner.has_left.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.server.owner.has_left.set()
                return
