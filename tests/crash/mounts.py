"""Mounts of one folder that behave as those of a network: slow, or cut off for a while, by sshfs over a pipe.

Between sshfs and OpenSSH's `sftp-server` stands a relay. It holds every message back for a while, as a slow network
does, and is stopped and let go again, as where a network falls apart: whoever reads or writes then hangs.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

SERVER = Path("/usr/lib/openssh/sftp-server")
RELAY = """#!{python}
import os, select, subprocess, time
server = subprocess.Popen([{server!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ways = {{0: server.stdin.fileno(), server.stdout.fileno(): 1}}
while True:
    for ready in select.select([*ways], [], [])[0]:
        if not (told := os.read(ready, 1 << 16)):
            raise SystemExit
        time.sleep({seconds})
        while told:
            told = told[os.write(ways[ready], told):]
"""


def can_mount_sshfs() -> bool:
    """Whether sshfs works here."""
    return shutil.which("sshfs") is not None and SERVER.exists() and Path("/dev/fuse").exists()


@contextmanager
def sshfs(source: Path, where: Path, *, seconds: float) -> Iterator[psutil.Process]:
    """A folder mounted once more, each message held back so long; the relay that it goes through."""
    where.mkdir()
    relay = where.with_suffix(".relay")
    relay.write_text(RELAY.format(python=sys.executable, server=str(SERVER), seconds=seconds))
    relay.chmod(0o755)
    options = f"ssh_command={relay},cache=no,dir_cache=no"
    subprocess.run(["sshfs", "-o", options, f"nobody:{source}", str(where)], check=True)
    found = [each for each in psutil.process_iter(["cmdline"]) if str(relay) in (each.info["cmdline"] or [])]
    process = next(each for each in found if "sshfs" not in each.info["cmdline"][0])
    try:
        yield process
    finally:
        with contextlib.suppress(psutil.Error):
            process.resume()
        subprocess.run(["fusermount3", "-u", "-z", str(where)], check=False)
        relay.unlink()
        where.rmdir()
