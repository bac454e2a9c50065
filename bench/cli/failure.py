"""What a terminal may show of a method at work: over data that may not be shared, neither its words nor its errors."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.cli.terminal import unheard
from bench.progress import LOGGER
from bench.results.reason import Phase, phase_of, withheld
from bench.results.results import Results
from bench.runs.failure import code_of, text_of
from bench.workbench.workbench import Workbench


@contextmanager
def heard(bench: Workbench, results: Results, verb: str) -> Iterator[Path | None]:
    """The log that alone hears what the method prints within the block; None where its data may be shared.

    Of its progress no more is shown than the phase.
    """
    if bench.record.shareable:
        yield None
        return
    phases = _PhasesAlone()
    LOGGER.addFilter(phases)
    try:
        with unheard(results.log(verb, bench.cell.method.spec.shown)) as log:
            yield log
    finally:
        LOGGER.removeFilter(phases)


class _PhasesAlone(logging.Filter):
    """Puts the phase in the place of what is said of it."""

    phase: Phase = "start"

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every message pass, in other words."""
        if isinstance(record.args, tuple) and record.args:
            self.phase = phase_of(str(record.args[0]), self.phase)
            record.args = (self.phase, *record.args[1:])
        return True


def why(error: BaseException, log: Path | None) -> str:
    """What may be said of an error within `heard`: its text, which goes into the log alone where there is one."""
    code = code_of(error)
    if log is None:
        return text_of(error, code)
    traceback.print_exception(error, file=sys.__stderr__)  # which is the log
    return f"{withheld(code)} (log: {log})"
