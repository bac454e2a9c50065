"""Learning curves of attacks, and why each training ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from pydantic import JsonValue, TypeAdapter, ValidationError

MOST_POINTS = 1000
MOST_TEXT = 500
LEARNING = "learning"
"""The detail of a record that holds the curves of its attack; an empty list says that it trains nothing."""


@dataclass(frozen=True)
class LearningCurve:
    """One training of an attack: a held-out figure by steps.

    Args:
        figure: The held-out figure, in words with its unit, such as "ReID AUC on held-out keys of Eve's own".
        points: Steps, rising, and the figure after so many, 1 to `MOST_POINTS`.
        converged: True if the training ended because the figure rose no more; False if its budget ended first.
        reason: Why it ended, in words.
        part: The training among several of one attack, such as a seed or a finding; empty if there is one.

    Raises:
        ValueError: A text is longer than `MOST_TEXT`, steps do not rise, or a figure is not finite.
    """

    figure: str
    points: tuple[tuple[int, float], ...]
    converged: bool
    reason: str
    part: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple((step, value) for step, value in self.points))
        if not 1 <= len(self.points) <= MOST_POINTS:
            raise ValueError(f"a learning curve must have 1 to {MOST_POINTS} points, got {len(self.points)}")
        if not all(_is_number(step, int) and _is_number(value, (int, float)) for step, value in self.points):
            raise ValueError("a point of a learning curve must be a whole number of steps and a finite figure")
        steps = [step for step, _ in self.points]
        if steps[0] < 0 or any(later <= earlier for earlier, later in pairwise(steps)):
            raise ValueError(f"the steps of a learning curve must rise from 0 or more, got {steps[:5]}")
        if not isinstance(self.converged, bool):
            raise ValueError(f"converged must be true or false, got {self.converged!r:.40}")
        for name in ("figure", "reason", "part"):
            text = getattr(self, name)
            if not isinstance(text, str) or len(text) > MOST_TEXT:
                raise ValueError(f"{name} of a learning curve must be at most {MOST_TEXT} characters of text")

    def content(self) -> dict[str, JsonValue]:
        """The curve as a record holds it."""
        points: list[JsonValue] = [[step, value] for step, value in self.points]
        said: dict[str, JsonValue] = {"figure": self.figure, "points": points, "reason": self.reason}
        return {**said, "converged": self.converged, "part": self.part}


def _is_number(value: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and isfinite(value)  # type: ignore[arg-type]


_CURVES = TypeAdapter(list[LearningCurve])


def curves_of(details: Mapping[str, JsonValue]) -> tuple[LearningCurve, ...] | None:
    """The curves of a record's attack; None in older records.

    An empty tuple stands for an attack that trains nothing. Raises ValueError for a malformed statement.
    """
    if LEARNING not in details:
        return None
    try:
        return tuple(_CURVES.validate_python(details[LEARNING]))
    except ValidationError as error:
        raise ValueError(f"details must hold learning curves: {error.errors()[0]['msg']}") from error
