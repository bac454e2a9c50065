"""What a terminal may show of a method at work: over data that may not be shared, neither its words nor its errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.cli.terminal import unheard
from bench.results.reason import withheld
from bench.results.results import Results
from bench.runs.failure import code_of, text_of
from bench.workbench.workbench import Workbench


@contextmanager
def heard(bench: Workbench, results: Results, verb: str) -> Iterator[Path | None]:
    """The log that alone hears what the method prints within the block; None where its data may be shared."""
    if bench.record.shareable:
        yield None
        return
    with unheard(results.log(verb, bench.cell.method.spec.shown)) as log:
        yield log


def why(error: BaseException, log: Path | None) -> str:
    """What may be said of an error within `heard`: its text, which goes into the log alone where there is one."""
    code = code_of(error)
    if log is None:
        return text_of(error, code)
    traceback.print_exception(error, file=sys.__stderr__)  # which is the log
    return f"{withheld(code)} (log: {log})"
