"""What may be said on a terminal of work that failed."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from bench.results.reason import withheld
from bench.runs.failure import code_of, text_of


def why(error: BaseException, log: Path | None) -> str:
    """Its text; where there is a log (see `unheard`, within which this is called), the text goes into that alone."""
    code = code_of(error)
    if log is None:
        return text_of(error, code)
    traceback.print_exception(error, file=sys.__stderr__)  # which is the log within `unheard`
    return f"{withheld(code)} (log: {log})"
