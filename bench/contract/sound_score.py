"""The rule that every figure must satisfy, at checks, runs and reading."""

from __future__ import annotations

__figures__ = True

from collections.abc import Mapping
from math import isfinite
from typing import Protocol

from bench.contract.metric import Score
from bench.contract.seal import ContractError

ROUNDING = 1e-9
"""How far beyond an end of its interval a figure may lie, as a share of both: sums differ in their last digits."""
INTERVALS = (("low", "high"), ("null_low", "null_high"), ("prediction_low", "prediction_high"))


class Figure(Protocol):
    """The fields that a score and its record share."""

    @property
    def value(self) -> float: ...  # noqa: D102
    @property
    def low(self) -> float | None: ...  # noqa: D102
    @property
    def high(self) -> float | None: ...  # noqa: D102
    @property
    def p(self) -> float | None: ...  # noqa: D102
    @property
    def note(self) -> str: ...  # noqa: D102
    @property
    def parts(self) -> Mapping[str, Figure]: ...  # noqa: D102


def sound(score: Score) -> Score:
    """The score. Raises ContractError if no table could show it.

    >>> sound(Score(0.9, 0.2, 0.4, 10))
    Traceback (most recent call last):
        ...
    bench.contract.seal.ContractError: the figure 0.9 lies outside its interval, 0.2 to 0.4
    """
    if not isinstance(score, Score):
        raise ContractError(f"a metric must return a Score, got {type(score).__name__}")
    sound_figure(score)
    return score


def sound_figure(figure: Figure) -> None:
    """Check a figure with its parts. Raises ContractError."""
    _figure(figure)
    if figure.low is None and figure.note == "":
        raise ContractError("a score without an interval must say why in its note")


def _figure(score: Figure) -> None:
    _number("value", score.value)
    for name in ("null", "p", *(end for ends in INTERVALS for end in ends)):
        if getattr(score, name) is not None:
            _number(name, getattr(score, name))
    for lower, upper in INTERVALS:
        low, high = getattr(score, lower), getattr(score, upper)
        if low is not None and high is not None and low > high:
            raise ContractError(f"the interval is upside down: {lower} {low}, {upper} {high}")
    room = ROUNDING * max(abs(score.value), abs(score.low or 0), abs(score.high or 0))
    below = score.low is not None and score.value < score.low - room
    above = score.high is not None and score.value > score.high + room
    if below or above:
        raise ContractError(f"the figure {score.value} lies outside its interval, {score.low} to {score.high}")
    if score.p is not None and not 0 <= score.p <= 1:
        raise ContractError(f"p must be a probability, 0 to 1, got {score.p}")
    for name, part in score.parts.items():
        try:
            _figure(part)
        except ContractError as error:
            raise ContractError(f"part {name}: {error}") from error


def _number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ContractError(f"{name} must be a plain number (`float`), got {type(value).__name__}")
    if not isfinite(value):
        raise ContractError(f"{name} must be finite, got {value}: raise NotApplicable where there is none")
