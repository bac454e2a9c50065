"""The command `bench`, and `python -m bench`."""

__figures__ = False

import gc

from bench.cli import main
from bench.deferred_torch import defer


def command() -> int:
    """`bench.cli.main` in a process that ends with it; its exit code."""
    defer()
    code = main()
    gc.freeze()  # else the interpreter looks for garbage among all of torch once more as it ends, half a second long
    return code


if __name__ == "__main__":
    raise SystemExit(command())
