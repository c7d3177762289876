"""The page of ``fmnes watch``: a server that shows one folder, to this machine only.

It serves the page's three files, and ``/data``, which the page requests every second. No path of a
request ever becomes the path of a file. The server refuses requests that do not name it as their
host: otherwise a page of another site could point its own host name here (DNS rebinding).
"""

import csv
import http.server
import json
import math
import os
import threading
import time
from array import array
from importlib import resources
from pathlib import Path
from typing import Any

from fmnes.cli._errors import UsageError
from fmnes.cli._folder import Folder
from fmnes.cli._recorder import HEADER

_POINTS = 800  # of a curve, at most
_QUIET = 5.0  # seconds without a new row until we check whether a process is running
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
            self._answer(200, "application/json", json.dumps(self.server.view.data()).encode())
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


class View:
    """The data that the page shows; reads only the new rows of history.csv each time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()  # several pages may request data at the same time
        self._forget(0)
        self._written = 0.0  # when history.csv was

    def _forget(self, inode: int) -> None:
        self._inode, self._offset = inode, 0
        self._columns = {name: array("d") for name in HEADER}

    def data(self) -> dict[str, Any]:
        """Return the state of the run as JSON values, with null for numbers that are not finite."""
        with self._lock:
            self._read()
            columns = self._columns
            rows = len(columns["nfev"])
            step = max(1, math.ceil(rows / _POINTS))
            shown = sorted({*range(0, rows, step), *range(max(0, rows - 1), rows)})
            last = {name: _finite(column[-1]) if rows else None for name, column in columns.items()}
            return {
                **self._standing(rows),
                "rows": rows,
                "last": last,
                "rate": _rate(columns),
                "curves": {
                    **{name: [_finite(columns[name][k]) for k in shown] for name in columns},
                    "evaluation": [_finite(_seconds_each(columns, k)) for k in shown],
                },
            }

    def _standing(self, rows: int) -> dict[str, Any]:
        """Return the run's options, whether it is running, and its first error."""
        try:
            options = self._folder.read_options()
        except UsageError:
            return {"state": "waiting", "message": "There is no run in this folder yet."}
        about = {
            "title": options.title,
            "folder": self._folder.path.resolve().name,
            "method": options.method,
            "dim": options.dim,
            "maxfevals": options.maxfevals,
            "ftarget": options.ftarget,
            "error": _text(self._folder.first_error),
        }
        ended = self._folder.ended()
        if ended is not None:
            return {**about, "state": "ended", **{k: ended[k] for k in ("message", "status")}}
        is_quiet = time.time() - self._written > _QUIET
        if is_quiet and not self._folder.is_running(options):
            message = f"No process is running: fmnes resume {self._folder.path} continues."
            return {**about, "state": "stopped", "message": message}
        message = "" if rows else "The first generation is being evaluated."
        return {**about, "state": "running", "message": message}

    def _read(self) -> None:
        """Append the new rows of history.csv that are complete."""
        try:
            with self._folder.history.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._offset:
                    self._forget(status.st_ino)
                self._written = status.st_mtime
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return
        text = text[: text.rfind(b"\n") + 1]
        self._offset += len(text)
        for row in csv.reader(text.decode().splitlines()):
            if row == HEADER:
                continue
            for name, word in zip(HEADER, row, strict=True):
                column = self._columns[name]
                before = column[-1] if column else 0.0
                column.append(float(word) if word else before)  # nfailed, see `Recorder`


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _seconds_each(columns: dict[str, "array[float]"], k: int) -> float:
    """Return the seconds per evaluation of generation k."""
    before = columns["nfev"][k - 1] if k else 0.0
    return columns["seconds_objective"][k] / (columns["nfev"][k] - before)


def _rate(columns: dict[str, "array[float]"], count: int = 50) -> float | None:
    """Return the evaluations per second over the last ``count`` generations."""
    nfev = columns["nfev"]
    names = ("seconds_objective", "seconds_optimizer")
    seconds = sum(sum(columns[name][-count:]) for name in names)
    if not nfev or seconds <= 0:
        return None
    return (nfev[-1] - (nfev[-count - 1] if len(nfev) > count else 0.0)) / seconds


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
