"""Reasons against a release, which only its owner's word overrules.

Each names one thing that speaks against publishing: no verdict on this very method with these parameters on these data,
a verdict that it is broken or leaks, a weak parameter, a claim that promises little, raw rows among the released ones.
"""

from __future__ import annotations

__figures__ = False

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.data.dicom import IDENTIFIED, UNSETTLED
from bench.plugins.spec import defaults, parameters
from bench.results.records import ClaimRecord
from bench.types import Method

LARGEST_EPSILON = 10.0
"""Above it a bound of differential privacy says next to nothing: e^10 is 22,026."""
SMALLEST_K = 5
SHORTEST_REASON, LONGEST_REASON = 5, 500
_LENGTHS = re.compile(r"(^|_)(steps|epochs|iterations)$")
"""Parameters that say how long a method trains."""
_PAPER = "paper"


@dataclass(frozen=True)
class Cause:
    """A reason against a release.

    Args:
        text: In words, without a figure of the private rows: it goes into the release if the owner overrules it.
        detail: More for the owner's eyes.
        private: If private rows decide whether it holds: then it stays with the owner, for no claim covers this bit.
    """

    text: str
    detail: str = ""
    private: bool = False

    def __str__(self) -> str:
        return f"{self.text}: {self.detail}" if self.detail else self.text


class ReleaseRefusedError(Exception):
    """A release that needs its owner's reason, with all causes."""

    def __init__(self, causes: Sequence[Cause]) -> None:
        super().__init__("; ".join(map(str, causes)))
        self.causes = tuple(causes)


def of_parameters(method: Method) -> Iterator[Cause]:
    """Causes in a method's parameters: k, epsilon and length of training."""
    own: Mapping[str, object] = parameters(method)
    k = own.get("k")
    if "k-anonymity" in method.claims and isinstance(k, int) and k < SMALLEST_K:
        yield Cause(f"k is {k}, and below {SMALLEST_K} too few rows share a form")
    epsilon = own.get("epsilon")
    if isinstance(epsilon, int | float) and epsilon > LARGEST_EPSILON:
        yield _large("epsilon", epsilon)
    papers: Mapping[str, object] = type(method).presets.get(_PAPER, {})
    usual: Mapping[str, object] = defaults(type(method))
    for name, value in own.items():
        paper = papers.get(name, usual.get(name))
        if (
            _LENGTHS.search(name)
            and isinstance(value, int | float)
            and isinstance(paper, int | float)
            and not isinstance(value, bool)
            and value < paper
        ):
            yield Cause(f"trained for less than in the paper: {name} is {value:,}, the paper's {paper:,}")


def trains(method: Method) -> bool:
    """True if a release of private rows needs a training on them."""
    return not method.needs_public and any(_LENGTHS.search(name) for name in parameters(method))


def of_notes(notes: Sequence[str]) -> Iterator[Cause]:
    """Causes in the notes on a data set."""
    for note in notes:
        if UNSETTLED in note:
            says = IDENTIFIED.removeprefix("say ") if IDENTIFIED in note else "that text is part of their pixels"
            yield Cause(f"images say of themselves {says}", note, private=True)


def of_claim(claim: ClaimRecord | None) -> Iterator[Cause]:
    """Causes in a claim of differential privacy; none without a claim."""
    if claim is None:
        return
    derived = claim.epsilon if claim.derived is None else claim.derived
    worst = math.inf if derived is None or claim.epsilon is None else max(derived, claim.epsilon)
    if worst > LARGEST_EPSILON:
        yield _large(f"epsilon per {claim.per}", worst)


def _large(name: str, value: float) -> Cause:
    size = f"is {value:,.4g}" if math.isfinite(value) else "has no finite bound"
    return Cause(f"{name} {size}, and above {LARGEST_EPSILON:g} differential privacy promises next to nothing")


def distinct(causes: Sequence[Cause]) -> list[Cause]:
    """Causes once each; a claim's epsilon replaces the parameter's."""
    found = {cause.text: cause for cause in causes}
    texts = list(found)
    if any(text.startswith("epsilon per") for text in texts):
        texts = [text for text in texts if not text.startswith("epsilon is")]
    return [found[text] for text in texts]


def check_reason(reason: str | None) -> None:
    """Raise ValueError for an endless reason, or one without words."""
    if reason is None:
        return
    letters = sum(sign.isalpha() for sign in reason)
    if letters < SHORTEST_REASON or len(reason.strip()) > LONGEST_REASON:
        raise ValueError(
            f"--accept needs the reason in words, {SHORTEST_REASON} to {LONGEST_REASON} letters, got {letters}: it is "
            "published with the release"
        )
