"""A push to an SFTP server and back: OpenSSH's own, on this machine; skipped where there is none."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from made.moody_folder import crew
from made.results_folders import CARRIED, files, folder

from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.transfer.pull import pull
from bench.transfer.push import push
from bench.transfer.target import Target, TransferError

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
START_SECONDS = 60.0

pytestmark = pytest.mark.skipif(SSHD is None or shutil.which("ssh-keygen") is None, reason="needs OpenSSH's sshd")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server that knows the key of a home folder, which knows the server."""
    known = tmp_path / "home" / ".ssh"
    known.mkdir(parents=True, mode=0o700)
    for key in (known / "id_ed25519", tmp_path / "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    said = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": tmp_path / "host", "PidFile": "none",
        "AuthorizedKeysFile": known / "id_ed25519.pub", "StrictModes": "no", "UsePAM": "no",
        "PermitRootLogin": "yes", "Subsystem": "sftp internal-sftp",
    }  # fmt: skip
    (tmp_path / "config").write_text("".join(f"{name} {value}\n" for name, value in said.items()))
    if os.geteuid() == 0:  # which it then parts with, and asks for a folder to do that in
        Path("/run/sshd").mkdir(exist_ok=True)
    host = (tmp_path / "host.pub").read_text()
    (known / "known_hosts").write_text(f"[127.0.0.1]:{port} {host}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert SSHD is not None
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen([SSHD, "-D", "-e", "-f", str(tmp_path / "config")], stderr=log, stdout=log)
    try:
        end = time.monotonic() + START_SECONDS
        while not _answers(port) and running.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        if running.poll() is not None:
            pytest.skip(f"sshd does not run here: {(tmp_path / 'log').read_text()}")
        yield port
    finally:
        running.kill()
        running.wait()


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def test_what_is_pushed_by_sftp_comes_back_the_same_and_is_not_sent_twice(server: int, tmp_path: Path) -> None:
    results, back = folder(tmp_path / "results"), Results(tmp_path / "back")
    target = Target.open(f"sftp://127.0.0.1:{server}{tmp_path}/there")
    sent = push(results, target, crew(target, 12), named=False, check=False, step=lambda *_: None)
    assert (sent.of("moved"), sent.of("refused")) == (9, 0)
    assert push(results, target, crew(target, 12), named=False, check=False, step=lambda *_: None).of("moved") == 0
    (rotten, *_) = sorted((tmp_path / "there" / "records").rglob("*.json"))
    rotten.write_bytes(rotten.read_bytes().replace(b'"value"', b'"velue"'))
    fetched = pull(back, target, crew(target, 12), prefer=None, step=lambda *_: None)
    assert (fetched.of("moved"), fetched.of("refused")) == (8, 1)
    push(results, target, crew(target, 12), named=False, check=True, step=lambda *_: None)
    pull(back, target, crew(target, 12), prefer=None, step=lambda *_: None)
    assert files(back.root, *CARRIED) == files(results.root, *CARRIED)


def test_a_server_that_nobody_has_met_is_not_believed(server: int, tmp_path: Path) -> None:
    (tmp_path / "home" / ".ssh" / "known_hosts").write_text("")
    with pytest.raises((UsageError, TransferError), match="known_hosts"):
        Target.open(f"sftp://127.0.0.1:{server}{tmp_path}/there")
    assert not (tmp_path / "there").exists()
