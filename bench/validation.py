"""Checks of parameters; a ValueError names parameter, expectation and value.

A parameter is given by its name, as in `at_least(1, epochs=self.epochs, width=self.width)`; None passes every check of
a number, for it stands for "not given". NaN passes none.
"""

from __future__ import annotations

__figures__ = False

import difflib
import math
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """A question after the nearest known name, or "".

    >>> nearest("sifer", ["syfer", "noise"])
    "did you mean 'syfer'? "
    """
    folded = {each.casefold(): each for each in sorted({*known}, reverse=True)}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"did you mean {folded[near[0]]!r}? " if near else ""


def at_least(least: float, /, **numbers: float | None) -> None:
    """Require numbers of at least `least`.

    >>> at_least(2, batch=2, steps=None)
    >>> at_least(2, k=1)
    Traceback (most recent call last):
    ValueError: k must be at least 2, got 1
    """
    for name, number in numbers.items():
        if number is not None and not number >= least:
            raise ValueError(f"{name} must be at least {least}, got {number}")


def positive(**numbers: float | None) -> None:
    """Require numbers above 0; infinity is one.

    >>> positive(epsilon=float("inf"))
    >>> positive(learning_rate=0.0)
    Traceback (most recent call last):
    ValueError: learning_rate must be positive, got 0.0
    """
    for name, number in numbers.items():
        if number is not None and not number > 0:
            raise ValueError(f"{name} must be positive, got {number}")


def positive_and_finite(**numbers: float | None) -> None:
    """Require numbers above 0 and below infinity.

    >>> positive_and_finite(sigma=float("inf"))
    Traceback (most recent call last):
    ValueError: sigma must be positive and finite, got inf
    """
    for name, number in numbers.items():
        if number is not None and not 0 < number < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {number}")


def within(low: float, high: float, /, **numbers: float | None) -> None:
    """Require numbers from `low` to `high`, both allowed.

    >>> within(0, 1, dropout=1)
    >>> within(0, 1, dropout=1.5)
    Traceback (most recent call last):
    ValueError: dropout must be in [0, 1], got 1.5
    """
    for name, number in numbers.items():
        if number is not None and not low <= number <= high:
            raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {number}")


def between(low: float, high: float, /, **numbers: float | None) -> None:
    """Require numbers above `low` and below `high`.

    >>> between(0, 1, held_out=1)
    Traceback (most recent call last):
    ValueError: held_out must be above 0 and below 1, got 1
    """
    for name, number in numbers.items():
        if number is not None and not low < number < high:
            raise ValueError(f"{name} must be above {low:g} and below {high:g}, got {number}")


def one_of(known: Iterable[str], /, **names: str) -> None:
    """Require names that are known.

    >>> one_of(("plain", "signed"), query="bare")
    Traceback (most recent call last):
    ValueError: query must be plain or signed, got 'bare'
    >>> one_of(("conv", "vit", "towers"), encoder="")
    Traceback (most recent call last):
    ValueError: encoder must be one of conv, vit, towers; got ''
    """
    choices = tuple(known)
    for name, chosen in names.items():
        if chosen not in choices:
            expected = f"{' or '.join(choices)}," if len(choices) == 2 else f"one of {', '.join(choices)};"
            hint = nearest(str(chosen), choices).strip()
            raise ValueError(f"{name} must be {expected} got {chosen!r}{hint and f'; {hint}'}")
