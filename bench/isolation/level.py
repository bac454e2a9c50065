"""How far methods and attacks are kept apart from the judge, and what this machine can do."""

from __future__ import annotations

import os
from typing import Literal, cast, get_args

from bench.plugins.spec import UsageError
from bench.sandbox import Isolation, why_not

VARIABLE = "BENCH_ISOLATION"
"""In the environment: what `auto` stands for in place of the strongest."""


def find_isolation(wish: Literal["auto", Isolation]) -> Isolation:
    """The level that a run gets: the one asked for, `auto` standing for the strongest that works here.

    Raises:
        UsageError: `sandbox` was asked for and does not work; the text says what to install.
    """
    if wish == "auto":
        written = os.environ.get(VARIABLE, "auto")
        if written not in ("auto", *get_args(Isolation)):
            raise UsageError(f"{VARIABLE} must be {', '.join(get_args(Isolation))} or auto, got {written!r}")
        wish = cast("Isolation", written)
    if wish == "processes" or wish == "none":
        return wish
    reason = why_not()
    if reason is None:
        return "sandbox"
    if wish == "sandbox":
        raise UsageError(f"--isolation sandbox: {reason}; install bubblewrap, or use --isolation processes")
    return "processes"
