"""Output over data that may not be shared, kept in a log."""

from __future__ import annotations

__figures__ = False

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.disk.atomic_file import make_folder
from bench.results import log_file
from bench.results.reason import withheld
from bench.results.results import Results
from bench.runs.worker import code_of, text_of
from bench.workbench.workbench import Workbench


@contextmanager
def quiet(bench: Workbench, results: Results, verb: str) -> Iterator[Path | None]:
    """The log of prints within the block; None for data without restrictions."""
    if bench.record.shareable:
        yield None
        return
    with redirected(results.log(verb, bench.cell.method.shown)) as log:
        yield log


@contextmanager
def redirected(log: Path) -> Iterator[Path]:
    """Standard output and error go into the log within the block."""
    copies = [os.dup(number) for number in (1, 2)]
    sys.stdout.flush()
    make_folder(log.parent)
    target = None
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        for number in (1, 2):
            os.dup2(target, number)
        yield log
    finally:
        sys.stdout.flush()
        for number, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        if target is not None:
            log_file.close(log, target)


def reason_text(error: BaseException, log: Path | None) -> str:
    """An error's text for the terminal, or the path of its log."""
    code = code_of(error)
    if log is None:
        return text_of(error, code)
    traceback.print_exception(error, file=sys.__stderr__)  # which is the log
    return f"{withheld(code)} (log: {log})"
