"""A process that has ended, as the makers of files are named."""

from __future__ import annotations

import subprocess
import sys

from bench.results.process_id import machine


def gone_name() -> str:
    """A name that a process of this machine could have given, which is no more."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return f"{machine()}-{ended.pid}-{'0a' * 8}"
