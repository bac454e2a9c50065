"""Identities between the figures of one record.

Figures of one attack are made from the same counts. Some must be equal, others bound each other; a record that says
otherwise holds a figure that is wrong, and the figure is withheld with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from bench.results.reason import UNSAID
from bench.results.record_parts import ScoreRecord
from bench.results.records import Record

ROUNDING = 1e-6
PERSON = ("people-found", "person-risk")
POINT = re.compile(r"1 false in ([1-9][0-9]*)")
TIES = "an earlier version drew tied first guesses once for all keys, and the best pairs of this attack tie"

Scores = Mapping[str, ScoreRecord]


def contradictions(scores: Scores) -> dict[str, str]:
    """Metrics whose figures contradict others, and the reason.

    Figures of several findings, and those without notes, which are rounded, are not looked at.
    """
    found: dict[str, str] = {}
    if any(score.note == UNSAID for score in scores.values()):
        return found
    for rule in (_people, _ties, _curve, _rate, _first):
        for metric, reason in rule(scores):
            found.setdefault(metric, reason)
    return found


def consistent(record: Record) -> Record:
    """The record without figures that contradict others; `not_applicable` holds the reasons."""
    reasons = contradictions(record.scores)
    if not reasons:
        return record
    kept = {name: score for name, score in record.scores.items() if name not in reasons}
    withheld = {name: f"withheld: {reason}" for name, reason in reasons.items()}
    return record.model_copy(update={"scores": kept, "not_applicable": {**record.not_applicable, **withheld}})


def _people(scores: Scores) -> Iterator[tuple[str, str]]:
    """With single images and rows a person, first guesses average to top-1."""
    top, found, risk = (scores.get(name) for name in ("top-1", *PERSON))
    mean = None if risk is None else risk.parts.get("all people")
    if found is not None and "median person" in found.parts:  # not the worst of several findings
        mean = found
    if top is None or mean is None or top.n != mean.n:
        return
    if any(score.null is None or not _near(score.null, 1 / top.n) for score in (top, mean)):
        return
    if not _near(mean.value, top.value):
        reason = f"first guesses find {mean.value:.6g} of the people, and top-1 is {top.value:.6g}: they must be equal"
        yield from ((name, reason) for name in PERSON if name in scores)


def _ties(scores: Scores) -> Iterator[tuple[str, str]]:
    """Earlier worst persons need scores without ties at the first hit.

    Ties are seen in guesswork, which is then no whole number, and in the share of rows within one guess, which was
    below top-1.
    """
    risk, top, five = (scores.get(name) for name in ("person-risk", "top-1", "top-5"))
    guesses = scores.get("guesswork")
    if risk is None or "all people" not in risk.parts:
        return
    table = None if guesses is None else guesses.replicates
    within = None if five is None else five.parts.get("within 1")
    tied = top is not None and within is not None and not _near(within.value, top.value)
    if tied or (table is not None and any(not _near(value, round(value)) for value in table.by_key)):
        yield "person-risk", TIES


def _curve(scores: Scores) -> Iterator[tuple[str, str]]:
    """A rising curve's area lies between its stairs, its points below advantage."""
    advantage, auc = scores.get("advantage"), scores.get("reid-auc")
    if advantage is None:
        return
    named = {match.group(1): part.value for name, part in advantage.parts.items() if (match := POINT.fullmatch(name))}
    points = sorted((1 / int(one_in), hits) for one_in, hits in named.items())
    if not points:
        return
    falls = any(after[1] < before[1] - ROUNDING for before, after in pairwise(points))
    if falls or any(hits - false > advantage.value + ROUNDING for false, hits in points):
        yield "advantage", "points of its curve fall, or lead by more than it"
    stairs = [(0.0, 0.0), *points, (1.0, 1.0)]
    least = sum(low * (after - before) for (before, low), (after, _) in pairwise(stairs))
    most = sum(high * (after - before) for (before, _), (after, high) in pairwise(stairs))
    if auc is not None and not least - ROUNDING <= auc.value <= most + ROUNDING:
        reason = f"a ReID AUC of {auc.value:.6g} contradicts the ROC curve: its area is {least:.6g} to {most:.6g}"
        yield from (("advantage", reason), ("reid-auc", reason))


def _rate(scores: Scores) -> Iterator[tuple[str, str]]:
    """The true positive rate at a low rate is on the curve."""
    rate, advantage = scores.get("tpr-at-low-fpr"), scores.get("advantage")
    point = None if advantage is None else advantage.parts.get("1 false in 1000")
    if rate is not None and point is not None and not _near(rate.value, point.value):
        reason = f"the curve has a true positive rate of {point.value:.6g} there, and the figure is {rate.value:.6g}"
        yield from (("tpr-at-low-fpr", reason), ("advantage", reason))


def _first(scores: Scores) -> Iterator[tuple[str, str]]:
    """The chance of a right first guess is the same everywhere."""
    guesses, success = scores.get("guesswork"), scores.get("success-within")
    first = None if guesses is None else guesses.parts.get("first guess")
    one = None
    if success is not None and "10 guesses" in success.parts:  # earlier records lead with ten guesses
        one = success.parts.get("1 guess", success)
    if first is not None and one is not None and not _near(first.value, one.value):
        reason = f"the first guess is right with {first.value:.6g} by guesswork, with {one.value:.6g} by success-within"
        yield "success-within", reason


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= ROUNDING * max(1.0, abs(a), abs(b))
