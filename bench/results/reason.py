"""Fixed lists of codes and phases, which are safe for restricted data.

Free text (of an exception, a plug-in, a stage) may hold private values. A record of data that may not be shared
takes a code and a phase from here, and its terminal shows no more; the text is in the log, which only its owner
can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Code = Literal[
    "not-applicable", "refused", "contract", "data", "usage", "shadowed", "out-of-memory", "timed-out", "died",
    "protocol", "metric", "disk", "error",
]  # fmt: skip
SAID: Mapping[Code, str] = {
    "not-applicable": "makes no sense here",
    "refused": "the method refuses what it is asked for",
    "contract": "a plug-in broke the contract",
    "data": "the data could not be used",
    "usage": "was asked for what cannot be done",
    "shadowed": "other modules answer to the names of Veil Bench",
    "out-of-memory": "took more memory than it may",
    "timed-out": "took longer than it may",
    "died": "the worker process died",
    "protocol": "the worker process sent what is no answer",
    "metric": "a metric failed",
    "disk": "a disk was full, or out of reach",
    "error": "an exception was raised",
}
ABSENT: frozenset[Code] = frozenset({"data", "usage"})
"""Why data do not open that are not there, or not as they should be: their message is said whole."""
Phase = Literal[
    "start", "data", "prepare", "split", "fetch", "features", "fit", "release", "release again", "time releases",
    "query", "attack", "score", "train decoder", "decode", "train densities", "detect", "utility", "predict",
    "linear probe", "choose a test", "count its calls", "judge", "draw", "other",
]  # fmt: skip
PHASES: frozenset[str] = frozenset(get_args(Phase))
UNSAID = "not said: these data may not be shared"
"""The text in place of a plug-in's words."""


def status_of(code: Code) -> Literal["not-applicable", "timed-out", "failed"]:
    """The status of a job without a result for that code."""
    if code == "refused":
        return "not-applicable"
    return code if code in ("not-applicable", "timed-out") else "failed"


def phase_of(stage: str, before: Phase, total: int) -> Phase:
    """The phase of a stage: the longest matching prefix, else the previous.

    A message that counts steps (`total` is not 0) is about progress within a stage: its words do not change the phase.

    >>> phase_of("release dp-simple", "start", 0), phase_of("pixels of patient 7", "attack", 0)
    ('release', 'attack')
    >>> phase_of("attack", "fit", 600)
    'fit'
    """
    if total:
        return before
    words = stage[:200].split(" ")
    for count in range(min(3, len(words)), 0, -1):
        if (found := " ".join(words[:count])) in PHASES:
            return found  # type: ignore[return-value]
    return before


NO_FIGURE = "no figure of "
"""Begins the line of a log that says why a metric does not apply: `NAME: reason`."""


def withheld(code: Code) -> str:
    """The text for data that may not be shared."""
    return f"{code}: {SAID[code]}; the log says more (these data may not be shared)"
