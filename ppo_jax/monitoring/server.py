"""Pages about runs for browsers on this machine alone.

Requests are looked up among the runs that were found, never on the disk. A page may
load nothing from elsewhere. Other sites learn nothing, even if their names resolve to
this machine.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote_to_bytes

from ppo_jax.errors import UserError
from ppo_jax.monitoring import pages
from ppo_jax.monitoring.watch import Seen, Watch

HERE = "127.0.0.1"
HOSTS = {HERE, "localhost", "[::1]"}
"""Host names of this machine; ports may be forwarded, and are not looked at."""
METHODS = ("GET", "HEAD")
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
PAGE = (
    "default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Security policy of this server's pages."""
REPORT = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Security policy of reports, which anybody may have written: they can only be read."""
POLICY, KIND = "Content-Security-Policy", "Content-Type"
HTML = {KIND: "text/html; charset=utf-8"}
TEXT = {KIND: "text/plain; charset=utf-8", POLICY: "default-src 'none'"}
ONLY_FILES = os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags for opening a file, which follow no link and wait for no pipe."""


class Server(ThreadingHTTPServer):
    """A server on a port of this machine.

    Args:
        watch: The runs.
        port: 0: any that is free.

    Raises:
        UserError: If the port cannot be opened.
    """

    daemon_threads = True

    def __init__(self, watch: Watch, port: int):
        self.watch = watch
        try:
            super().__init__((HERE, port), _Handler)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            why = "is taken" if taken else f"cannot be had: {error.strerror}"
            message = (
                f"--port: {port} {why}; give another one, or 0 for any that is free"
            )
            raise UserError(message) from error

    @property
    def address(self) -> str:
        """The address for a browser."""
        return f"http://{HERE}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports errors, except of browsers that did not wait for the answer."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            raise
        super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Handler of one request."""

    server: Server
    server_version, sys_version = "ppo_jax", ""
    timeout = 20
    """Seconds that a browser has to send its request."""

    def parse_request(self) -> bool:
        """Refuses requests for other hosts than this machine, and any but reading."""
        if not super().parse_request():
            return False
        if _name(self.headers.get("Host", "")) not in HOSTS:
            self._answer(HTTPStatus.FORBIDDEN, b"This is for this machine alone.\n")
            return False
        if self.command not in METHODS:
            allowed = TEXT | {"Allow": ", ".join(METHODS)}
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"Read only.\n", allowed)
            return False
        return True

    def do_GET(self) -> None:
        """Sends the list, a run's page, or its report."""
        kind, name = _asked(self.path)
        nonce = secrets.token_urlsafe(16)
        watch = self.server.watch
        with watch.seen() as runs:
            run = runs.get(name)
            if kind == "":
                page = pages.listing(watch.root, runs, nonce)
            elif kind == "run" and run is not None:
                page = pages.of_run(name, runs, nonce)
            else:
                page = ""
        written = _report(run) if kind == "report" and run is not None else None
        if written is not None:
            return self._answer(HTTPStatus.OK, written, HTML | {POLICY: REPORT})
        status = HTTPStatus.OK if page else HTTPStatus.NOT_FOUND
        text = page or pages.missing(nonce)
        self._answer(status, text.encode(), HTML | {POLICY: PAGE.format(nonce)})

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: a page asks every few seconds."""

    def _answer(
        self, status: HTTPStatus, body: bytes, headers: Mapping[str, str] = TEXT
    ) -> None:
        self.send_response(status)
        for name, value in (*HEADERS.items(), *headers.items()):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _name(host: str) -> str:
    """Returns a host without its port.

    >>> _name("LOCALHOST:6007"), _name("[::1]:80"), _name("[::1]"), _name("other.org")
    ('localhost', '[::1]', '[::1]', 'other.org')
    """
    host = host.lower()
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _asked(path: str) -> tuple[str, str]:
    """Returns the kind of page that a path asks for, and the name of the run.

    >>> _asked("/run/a%20b/%3Cx%3E?y"), _asked("/"), _asked("/run/../x")
    (('run', 'a b/<x>'), ('', ''), ('run', '../x'))
    """
    _, kind, name, *_ = [*path.partition("?")[0].split("/", 2), "", ""]
    return kind, os.fsdecode(unquote_to_bytes(name))


def _report(run: Seen) -> bytes | None:
    """Returns the content of a run's report; None: it is no file of its directory."""
    if run.run_dir.resolve() != run.run_dir:  # The folder has become a link.
        return None
    try:
        found = os.open(run.run_dir / pages.REPORT, os.O_RDONLY | ONLY_FILES)
    except OSError:
        return None
    with os.fdopen(found, "rb") as file:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            return None
        return file.read()
