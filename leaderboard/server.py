"""A local server that shows built pages to this machine only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

HOST = "127.0.0.1"
NAMES = frozenset({HOST, "localhost"})


class Pages(SimpleHTTPRequestHandler):
    """Files of one folder, by GET and HEAD.

    A page of another site whose name was made to lead here (DNS rebinding) is told by the host that it asks for; links
    that lead out of the folder are not followed, and folders without an index are not listed.
    """

    def send_head(self) -> BytesIO | None:
        """The requested file, or an error."""
        asked = self.headers.get("Host", "")
        if asked.rpartition(":")[0] not in NAMES and asked not in NAMES:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, f"expected a host of {', '.join(sorted(NAMES))}")
            return None
        if not self._inside():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()  # type: ignore[return-value]

    def _inside(self) -> bool:
        """True if the requested file lies in the folder, links resolved."""
        try:
            asked = Path(self.translate_path(self.path)).resolve()
        except ValueError:  # a name with a null byte is none
            return False
        return asked.is_relative_to(Path(self.directory).resolve())

    def list_directory(self, path: object) -> None:
        """Nothing: what is shown is what pages link to."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        """Add headers that restrict a browser to showing the page."""
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server for `folder` on localhost; port 0 takes a free one."""
    return ThreadingHTTPServer((HOST, port), partial(Pages, directory=str(folder)))


def serve(folder: Path, port: int, started: Callable[[str], None]) -> None:
    """Serve until stopped; `started` is told the address."""
    with server(folder, port) as running:
        started(f"http://{HOST}:{running.server_address[1]}/")
        running.serve_forever()
