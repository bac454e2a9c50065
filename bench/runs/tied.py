"""Start a command that ends when its parent does (Linux alone): `python -m bench.runs.tied PID COMMAND`.

An engine may end the process that runs its task and leave alone what that process has started. A worker that is told
gives its job back; one that is not would go on where the engine believes that the machine is free.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from bench.runs.process_tree import end_with_parent


def tied(command: Sequence[str]) -> list[str]:
    """The command that starts `command` as this process's own; it gets TERM when this process ends."""
    return [sys.executable, "-m", "bench.runs.tied", str(os.getpid()), *command]


def main(words: Sequence[str]) -> None:
    """Become the command."""
    end_with_parent(signal.SIGTERM)
    if os.getppid() != int(words[0]):  # it has ended already
        sys.exit(1)
    os.execv(words[1], [*words[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
