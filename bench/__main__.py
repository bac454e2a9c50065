"""The command `bench`, and `python -m bench`."""

__figures__ = False

import gc

gc.set_threshold(100_000, 50, 100)  # importing makes hardly any garbage, and looking for it took an eighth of the time

from bench.cli import main  # noqa: E402
from bench.deferred_torch import defer  # noqa: E402


def command() -> int:
    """`bench.cli.main` in a process that ends with it; its exit code."""
    defer()
    code = main()
    gc.freeze()  # else the interpreter looks for garbage among all of torch once more as it ends, half a second long
    return code


if __name__ == "__main__":
    raise SystemExit(command())
