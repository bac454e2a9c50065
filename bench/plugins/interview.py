"""Question to a process that runs a stranger's code, and its answer."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path

from pydantic import JsonValue

from bench.plugins.spec import UsageError
from bench.room_side import MESSAGE_BYTES
from bench.sandbox import confined, end, environment, remedy, why_not
from bench.wire.message import Reader, WireError

UNCONFINED: ContextVar[bool] = ContextVar("UNCONFINED", default=False)
"""True once the user has accepted that code of other authors runs without a sandbox."""
MESSAGES = 2  # that it began, before anything is imported that is not this project's; and what it has to say
SECONDS = 600.0
LOOK_SECONDS = 1.0


def interview(
    command: Callable[[int], Sequence[str]],
    about: str,
    *,
    files: Sequence[Path],
    interpreter: Sequence[Path] | None = None,
    root: Path | None = None,
) -> JsonValue:
    """The answer of a process, which is sandboxed if possible.

    Args:
        command: Its program and arguments, by the descriptor of the answer.
        about: The plug-in, for errors.
        files: What the process may read.
        interpreter, root: As for `bench.sandbox.confined`.

    Raises:
        UsageError: It says nothing, or what is wrong.
    """
    reason = why_not()
    sandbox = reason is None
    if not sandbox and not UNCONFINED.get():
        raise UsageError(
            f"{about} is by another author and has no sandbox here ({reason}), so that it is not even imported: "
            f"{remedy()}, or accept that by --isolation processes"
        )
    reading, writing = os.pipe()
    line = list(command(writing))
    if sandbox:
        line = confined(line, folder=None, files=files, device="cpu", interpreter=interpreter, root=root)
    process = subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno() if _has_descriptor() else subprocess.DEVNULL,
        pass_fds=(writing,), env=environment(sandbox=sandbox), start_new_session=True,
    )  # fmt: skip
    os.close(writing)
    until = time.monotonic() + SECONDS
    try:
        messages = _messages(reading, process, until)
    finally:
        end(process)
        os.close(reading)
    if len(messages) < MESSAGES:
        raise UsageError(f"{about} cannot be used: {_unsaid(began=bool(messages), late=time.monotonic() >= until)}")
    answer = messages[-1]
    if "error" in answer:
        raise UsageError(str(answer["error"]))
    return answer.get("ok")


def _messages(reading: int, process: subprocess.Popen[bytes], until: float) -> list[dict[str, JsonValue]]:
    """The process's messages; fewer if it ends or takes too long.

    Its end counts, not that of the line: it may have left that to another.
    """
    reader, messages, ended = Reader(reading, MESSAGE_BYTES), list[dict[str, JsonValue]](), False
    while len(messages) < MESSAGES and not ended and time.monotonic() < until:
        ended = process.poll() is not None
        select.select([reading], [], [], 0.0 if ended else LOOK_SECONDS)
        try:
            for message in reader.messages():
                messages.append(message)
        except (EOFError, WireError):
            break
    return messages[:MESSAGES]


def _unsaid(*, began: bool, late: bool) -> str:
    """Why nothing was said, by how far the process came."""
    if late:
        return f"after {SECONDS:.0f} seconds its module was still being imported"
    if began:
        return "its module ends the process that imports it; give it a class that can be imported and made"
    return (
        "the process that was to import it did not start, whatever the module holds: what it printed stands above, "
        "such as a package that Python does not find there"
    )


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True
