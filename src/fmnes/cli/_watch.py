"""The page of ``fmnes watch``: a server that shows one folder, to this machine only.

It serves the page's three files, and ``/data``, which the page requests every second. No path of a
request ever becomes the path of a file. The server refuses requests that do not name it as their
host: otherwise a page of another site could point its own host name here (DNS rebinding).
"""

import http.server
import json
from importlib import resources
from typing import Any

from fmnes.cli._folder import Folder
from fmnes.cli._view import View

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:"
)


class Server(http.server.ThreadingHTTPServer):
    """Serves the page of a folder on 127.0.0.1."""

    daemon_threads = True

    def __init__(self, folder: Folder, port: int) -> None:
        page = resources.files("fmnes.cli") / "page"
        self.files = {
            f"/{name}": (_TYPES[name.partition(".")[2]], (page / name).read_bytes())
            for name in ("watch.html", "watch.css", "watch.js")
        }
        self.files["/"] = self.files.pop("/watch.html")
        self.view = View(folder)
        super().__init__(("127.0.0.1", port), _Handler)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.headers.get("Host") not in self.server.hosts:
            self._answer(403, "text/plain", b"Host: expected this server\n")
        elif self.path == "/data":
            data = json.dumps(self.server.view.data(), allow_nan=False)
            self._answer(200, "application/json", data.encode())
        elif self.path in self.server.files:
            self._answer(200, *self.server.files[self.path])
        else:
            self._answer(404, "text/plain", b"not found\n")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Do not log requests."""
