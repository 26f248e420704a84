"""The server of the dashboard: JSON and the files of the page, for this machine unless told otherwise."""

from __future__ import annotations

import errno
import ipaddress
import json
import socket
import sys
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from oar.board._answers import Answers, NotThere
from oar.board._store import Store

__all__ = ["BoardServer", "serve"]

_PAGE = Path(__file__).parent / "page"
_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
          ".svg": "image/svg+xml"}
_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"BM", "image/bmp"),
               (b"RIFF", "audio/wav"), (b"OggS", "audio/ogg"), (b"fLaC", "audio/flac"), (b"ID3", "audio/mpeg"))
# No script, style, image or connection from elsewhere; pictures of programs bring styles of their own.
_SAFETY = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
_PORTS_TO_TRY = 50


def content_type(data: bytes) -> str:
    """What an image or sound is, by how it begins. Anything else is bytes, which a browser does not show."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for start, name in _SIGNATURES if data.startswith(start)), "application/octet-stream")


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: BoardServer
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Answers, or says why not."""
        try:
            self._check_host()
            self._answer()
        except _Refused as refusal:
            self._send(refusal.status, "text/plain; charset=utf-8", f"{refusal}\n".encode())
        except NotThere as error:
            self._send(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"{error}\n".encode())
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception as error:  # noqa: BLE001: one bad file must not end the server
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", f"{type(error).__name__}: {error}\n".encode())

    do_HEAD = do_GET

    def _check_host(self) -> None:
        """A page of another site whose name leads to this machine (DNS rebinding) has that name here."""
        given = self.headers.get("Host", "")
        try:
            name = "" if "@" in given else urlsplit(f"//{given}").hostname or ""
        except ValueError:
            name = ""
        if not self.server.allows(name):
            raise _Refused(HTTPStatus.FORBIDDEN, f"This server does not answer for the host {given!r}. "
                                                 "`oar board --allow-host NAME` allows another name.")

    def _answer(self) -> None:
        url = urlsplit(self.path)
        if url.path.startswith("/api/"):
            self._answer_api(url.path.removeprefix("/api/"), parse_qs(url.query, keep_blank_values=True, max_num_fields=20))
            return
        file = self.server.page.get(url.path)
        if file is None:
            raise _Refused(HTTPStatus.NOT_FOUND, f"There is no page {url.path!r}.")
        self._send(HTTPStatus.OK, _TYPES[file.suffix], file.read_bytes(), {"Cache-Control": "no-cache"})

    def _answer_api(self, name: str, query: dict[str, list[str]]) -> None:
        answers = self.server.answers

        def text(key: str) -> str:
            if key not in query:
                raise _Refused(HTTPStatus.BAD_REQUEST, f"{name} needs the argument {key!r}.")
            return query[key][0]

        def integer(key: str, most: int) -> int:
            if not text(key).isdecimal() or int(text(key)) > most:
                raise _Refused(HTTPStatus.BAD_REQUEST, f"{key} is an integer from 0 to {most}, not {text(key)[:50]!r}.")
            return int(text(key))

        if name == "overview":
            self._send_json(lambda: answers.overview(), f"o{self.server.store.version}")
        elif name in answers.kinds:
            tag = text("tag")
            self._send_json(lambda: answers.by_tag(name, tag), answers.version(name, tag))
        elif name == "blob":
            if text("kind") not in ("images", "audio"):
                raise _Refused(HTTPStatus.BAD_REQUEST, "kind is images or audio.")
            data = answers.blob(text("kind"), text("run"), text("tag"), text("key")).data
            self._send(HTTPStatus.OK, content_type(data), data, {"Cache-Control": "private, max-age=3600"})
        elif name == "graph":
            self._send_json(lambda: answers.graph(text("run"), text("tag")))
        elif name == "embedding":
            self._send_json(lambda: answers.embedding(text("run"), text("tag")))
        elif name == "neighbours":
            self._send_json(lambda: answers.neighbours(text("run"), text("tag"), integer("index", 10**9), integer("count", 100),
                                                       text("metric")))
        elif name == "hparams":
            self._send_json(answers.hparams, f"h{self.server.store.version}")
        else:
            raise _Refused(HTTPStatus.NOT_FOUND, f"There is no answer called {name!r}.")

    def _send_json(self, answer: Callable[[], Any], version: str = "") -> None:
        """The answer, unless the page has this version already."""
        tag = f'"{self.server.started}-{version}"' if version else ""
        if tag and self.headers.get("If-None-Match") == tag:
            self._send(HTTPStatus.NOT_MODIFIED, "", b"", {"ETag": tag})
            return
        body = json.dumps(answer(), allow_nan=False, separators=(",", ":")).encode()
        self._send(HTTPStatus.OK, "application/json", body, {"Cache-Control": "no-cache", **({"ETag": tag} if tag else {})})

    def _send(self, status: HTTPStatus, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in {**_SAFETY, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and body:
            self.wfile.write(body)

    def version_string(self) -> str:
        """Says nothing about versions."""
        return "oar-board"

    def log_message(self, format: str, *args: Any) -> None:
        """A dashboard that asks every few seconds would fill the terminal."""


class BoardServer(ThreadingHTTPServer):
    """The server.

    Args:
        store: the runs.
        address: host and port.
        reload: how often the page asks, in seconds.
        names: names of this machine that a browser may use, besides its own.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, store: Store, address: tuple[str, int], reload: float, names: Iterable[str] = ()) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.store = store
        self.answers = Answers(store, reload)
        self.page = {f"/{path.name}": path for path in sorted(_PAGE.iterdir()) if path.suffix in _TYPES}
        self.page["/"] = self.page["/index.html"]
        machine = socket.gethostname().lower()
        self._names = {"localhost", machine, machine.partition(".")[0], address[0].lower(), *(name.lower() for name in names)}
        super().__init__(address, _Handler)
        self.started = f"{id(self):x}{self.server_port}"

    def allows(self, name: str) -> bool:
        """Whether a browser may use this name for the server. Addresses are safe: only names can be made to lead here."""
        if name.rstrip(".") in self._names:
            return True
        try:
            ipaddress.ip_address(name.partition("%")[0])
            return True
        except ValueError:
            return False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error; others are one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            print(f"oar board: {type(error).__name__}: {error}", file=sys.stderr)


def serve(store: Store, host: str, port: int, reload: float, names: Iterable[str] = ()) -> BoardServer:
    """A server at a port, or at the next one that is free.

    Args:
        store: the runs.
        host: the address to listen at.
        port: the port; 0 for any.
        reload: how often the page asks, in seconds.
        names: further names of this machine.
    """
    last: OSError | None = None
    for candidate in range(port, min(port + _PORTS_TO_TRY, 65536)) if port else [0]:
        try:
            return BoardServer(store, (host, candidate), reload, names)
        except OSError as error:
            last = error
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                break
    raise last or OSError(f"port {port} is too large")
