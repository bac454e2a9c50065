"""Python's wall clock, which goes back by a day once the file `clock-back` of the trial is there."""

import os
import time
from pathlib import Path

DAY = 24 * 3600
MARK = Path(os.environ.get("CRASH_MARK", "/nowhere"), "clock-back")
_now, _now_ns = time.time, time.time_ns


def _back() -> int:
    return DAY if MARK.exists() else 0


time.time = lambda: _now() - _back()
time.time_ns = lambda: _now_ns() - _back() * 10**9
