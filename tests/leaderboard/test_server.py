"""`bench leaderboard serve` shows one folder to this machine, and nothing else to anybody."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from leaderboard.server import HOST, server

SECRET = b"a secret beside the pages"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    site = tmp_path / "site"
    (site / "empty").mkdir(parents=True)
    (site / "index.html").write_bytes(b"the pages")
    (tmp_path / "secret").write_bytes(SECRET)
    (site / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "site-beside").mkdir()
    (tmp_path / "site-beside" / "secret").write_bytes(SECRET)
    (site / "folder").symlink_to(tmp_path / "site-beside")
    with server(site, 0) as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running.server_address[1]
        running.shutdown()
        thread.join()


def ask(port: int, path: str, host: str | None = None, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", f"{HOST}:{port}" if host is None else host)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_the_pages_are_shown_to_this_machine_alone(port: int) -> None:
    assert ask(port, "/") == (200, b"the pages")
    assert ask(port, "/index.html", f"localhost:{port}") == (200, b"the pages")
    assert ask(port, "/", "localhost")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../secret", "/..%2fsecret", "/%2e%2e/secret", "//../secret", "/./../secret", "/..\\secret",
        "/empty/../../secret",
        "/link", "/folder/secret", "/folder", "/empty", "/empty/", "/%00", "/../site-beside/secret", "/index.html/",
    ],
)  # fmt: skip
def test_nothing_else_is(port: int, path: str) -> None:
    status, content = ask(port, path)
    assert status in (301, 400, 404)
    assert SECRET not in content


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1]:8000"])
def test_a_page_of_another_name_that_leads_here_is_refused(port: int, host: str) -> None:
    assert ask(port, "/", host)[0] == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_written(port: int, method: str) -> None:
    assert ask(port, "/index.html", method=method)[0] == 501
