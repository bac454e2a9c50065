"""Output of a working method: on the terminal, or in a log."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.results.atomic_file import make_folder
from bench.results.reason import withheld
from bench.results.results import Results
from bench.runs.failure import code_of, text_of
from bench.workbench.workbench import Workbench


@contextmanager
def quiet(bench: Workbench, results: Results, verb: str) -> Iterator[Path | None]:
    """The log of prints within the block; None for data without restrictions."""
    if bench.record.shareable:
        yield None
        return
    with redirected(results.log(verb, bench.cell.method.spec.shown)) as log:
        yield log


@contextmanager
def redirected(log: Path) -> Iterator[Path]:
    """Standard output and error go into the log within the block."""
    copies = [os.dup(number) for number in (1, 2)]
    sys.stdout.flush()
    make_folder(log.parent)
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        for number in (1, 2):
            os.dup2(target, number)
        os.close(target)
        yield log
    finally:
        sys.stdout.flush()
        for number, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def reason_text(error: BaseException, log: Path | None) -> str:
    """An error's text for the terminal, or the path of its log."""
    code = code_of(error)
    if log is None:
        return text_of(error, code)
    traceback.print_exception(error, file=sys.__stderr__)  # which is the log
    return f"{withheld(code)} (log: {log})"
