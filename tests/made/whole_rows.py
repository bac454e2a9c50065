"""Rows with an attack, its controls, utility and the judge's word, named after their methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.results.records import Record, proved
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.types import Role
from bench.workbench.inputs import PROTOCOL
from made.board_records import auc, guesswork, record, utility, word

ROLES: dict[str, Role] = {
    "identity": "hides nothing",
    "noise": "keeps nothing",
    "hidden-control": "keeps nothing, in secret",
}
HOLDING = {"identity": (1.0, 1.0), "noise": (0.5, 100.0), "hidden-control": (0.5, 100.0)}
"""ReID AUC and guesswork of an attack that counts, on the methods that it is held against."""
VOID = dict.fromkeys(HOLDING, (0.5, 100.0))


def keyed(made: Record, **more: Any) -> Record:
    """Named by its method, with the protocol among its inputs."""
    inputs = {**made.inputs, "protocol": PROTOCOL}
    cell = f"synth-cxr/{made.method.name}"
    return proved(made.model_copy(update={"inputs": inputs, "key": content_key(inputs), "cell": cell, **more}))


def attacked(method: str, value: float = 0.5, guesses: float = 100.0, **more: Any) -> Record:
    made = record(method, scores={"reid-auc": auc(value), "guesswork": guesswork(guesses)})
    return keyed(made, method=made.method.model_copy(update={"role": ROLES.get(method)}), **more)


def controls(told: dict[str, tuple[float, float]], **more: Any) -> list[Record]:
    return [attacked(method, *figures, **more) for method, figures in told.items()]


def whole(method: str, value: float = 0.5, guesses: float = 100.0, useful: float = 0.8, **more: Any) -> list[Record]:
    """A row with an attack, its utility and the judge's word on it."""
    useful_one = record(method, "utility", {"utility-auc": utility(useful)}, kind="utility")
    return [attacked(method, value, guesses, **more), keyed(useful_one, **more), keyed(word(method), **more)]


def kept(folder: Path, *records: Record) -> Results:
    for each in records:
        Results(folder).keep(each, {})
    return Results(folder)
