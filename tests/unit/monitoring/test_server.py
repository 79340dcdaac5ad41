"""Pages are for a browser of this machine, which reads; nobody learns anything else."""

import contextlib
import os
import shutil
import socket
import threading

import pytest
from shelf import log, row, run

from ppo_jax.errors import UserError
from ppo_jax.monitoring import watch as watches
from ppo_jax.monitoring.server import Server
from ppo_jax.monitoring.watch import Watch

SECRET = "it is a secret"


@contextlib.contextmanager
def serving(root):
    """A server on a port that is free."""
    with Server(Watch(root), 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    run(root / "a" / "b", [row(10, 1.5), row(20, 2.5)])
    (root / "a" / "b" / "report.html").write_text("<h1>report</h1>")
    run(root / "<script>")
    run(tmp_path / "outside")
    (tmp_path / "outside" / "report.html").write_text(SECRET)
    (tmp_path / "report.html").write_text(SECRET)
    return root


@pytest.fixture
def server(root, monkeypatch):
    monkeypatch.setattr(watches, "SECONDS", 0.0)
    monkeypatch.setattr(watches, "SEARCHES", 0)
    with serving(root) as server:
        yield server


def ask(server, path, method="GET", host="127.0.0.1:1", more=""):
    """The status, the headers and the body of an answer, byte by byte as asked."""
    lines = f"{method} {path} HTTP/1.1\r\n"
    lines += f"Host: {host}\r\n" if host is not None else ""
    with socket.create_connection(server.server_address, timeout=10) as connection:
        connection.sendall(f"{lines}{more}\r\n".encode("latin-1"))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.decode().partition("\r\n\r\n")
    first, *headers = head.split("\r\n")
    return int(first.split()[1]), dict(x.split(": ", 1) for x in headers), body


def test_pages_are_found(server):
    for path in ("/", "/?x", "/run/a/b", "/run/a%2Fb", "/run/%3Cscript%3E"):
        status, headers, body = ask(server, path)
        assert status == 200 and "</html>" in body
        assert headers["Content-Length"] == str(len(body.encode()))
    assert ask(server, "/report/a/b")[2] == "<h1>report</h1>"


def test_a_page_may_load_nothing(server):
    """Its style and its script are known by a number that is another each time."""
    _, headers, body = ask(server, "/run/a/b")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    nonce = policy.partition("script-src 'nonce-")[2].partition("'")[0]
    assert body.count(f'nonce="{nonce}"') == 2 and len(nonce) > 20
    assert nonce not in ask(server, "/run/a/b")[2]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert "Access-Control-Allow-Origin" not in headers
    assert "Python" not in headers["Server"]


def test_a_report_is_looked_at_and_does_nothing(server):
    """Whoever has written it: it runs no script, and asks for nothing."""
    policy = ask(server, "/report/a/b")[1]["Content-Security-Policy"]
    assert policy.startswith("sandbox; default-src 'none'; ")
    assert "script-src" not in policy and "connect-src" not in policy


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../outside",
        "../../root/../outside",
        "a/../../outside",
        "%2e%2e/outside",
        "%2e%2e%2foutside",
        "..%2foutside",
        "..%5coutside",
        "%252e%252e/outside",
        "a/b/..",
        "/etc",
        "%2fetc",
        "a/b/report.html",
        "a/b%00",
        "%ff",
        "é",
        "",
        "link",
        "a",
    ],
)
@pytest.mark.parametrize("kind", ["run", "report", "..", "%2e%2e"])
def test_nothing_is_found_that_is_no_run(server, root, kind, name):
    """However a path is written, and wherever a link leads."""
    (root / "link").symlink_to(root.parent / "outside")
    status, _, body = ask(server, f"/{kind}/{name}")
    assert status == 404 and SECRET not in body and "Traceback" not in body


@pytest.mark.parametrize("path", ["*", "http://127.0.0.1/", "//x/y", "/[", "x"])
def test_what_is_no_path_is_not_found(server, path):
    status, _, body = ask(server, path)
    assert status in (200, 404) and SECRET not in body
    assert status == 404 or "Runs below" in body


def test_a_link_that_leads_out_is_not_followed(server, root, monkeypatch):
    """A report, and a run that becomes a link once it has been found."""
    report = root / "a" / "b" / "report.html"
    report.unlink()
    report.symlink_to(root.parent / "report.html")
    assert ask(server, "/report/a/b")[0] == 404
    assert "no report yet" in ask(server, "/run/a/b")[2]
    monkeypatch.setattr(watches, "SECONDS", 60.0)
    assert ask(server, "/run/a/b")[0] == 200
    shutil.rmtree(root / "a" / "b")
    (root / "a" / "b").symlink_to(root.parent / "outside")
    assert ask(server, "/run/a/b")[0] == 200  # As it was seen.
    assert ask(server, "/report/a/b")[0] == 404


def test_a_pipe_in_the_place_of_a_report_is_not_waited_for(server, root):
    (root / "a" / "b" / "report.html").unlink()
    os.mkfifo(root / "a" / "b" / "report.html")
    assert ask(server, "/report/a/b")[0] == 404


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:6007", "127.0.0.1.evil.example", "", None),
        *("0.0.0.0:6007", "localhost.evil:80", "localhost:80@evil", "[::2]:80", "x]"),
    ],
)
def test_a_name_that_leads_here_from_elsewhere_is_refused(server, host):
    """A site may have its own name lead to this machine, and ask in it."""
    status, _, body = ask(server, "/", host=host)
    assert status == 403 and "root" not in body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "[::1]:80", "127.0.0.1"])
def test_this_machine_is_known_by_its_names(server, host):
    """On any port: it may be forwarded."""
    assert ask(server, "/", host=host)[0] == 200


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"]
)
def test_nothing_but_reading_is_allowed(server, method):
    status, headers, _ = ask(server, "/run/a/b", method, more="Content-Length: 0\r\n")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_a_head_is_that_of_the_page(server):
    status, headers, body = ask(server, "/run/a/b", "HEAD")
    assert status == 200 and body == "" and int(headers["Content-Length"]) > 1000


def test_a_page_grows_and_a_run_that_is_deleted_is_missing(server, root):
    assert "20 of 100" in ask(server, "/run/a/b")[2]
    log(root / "a" / "b", [row(50)])
    assert "50 of 100" in ask(server, "/run/a/b")[2]
    shutil.rmtree(root / "a")
    assert ask(server, "/run/a/b")[0] == 404
    assert "a/b" not in ask(server, "/")[2]
    shutil.rmtree(root)
    assert "no run yet" in ask(server, "/")[2]


def test_many_may_ask_at_once(server, root):
    answers = []

    def read():
        for number in range(5):
            log(root / "a" / "b", [row(30 + number)])
            answers.append(ask(server, "/run/a/b")[0])

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert answers == [200] * 20


def test_it_is_found_on_this_machine_alone(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_said(server, root):
    with pytest.raises(
        UserError, match=r"--port: \d+ is taken; give another one, or 0"
    ):
        Server(Watch(root), server.server_port)
