"""Figures and row order computed again from stored evidence.

The owner's rows are sealed, and Eve's candidates ordered, by streams of the run secret whose names hold the method, its
parameters and the data. Evidence of another run, method or secret stands in another order. Keys are derived again for
this; no release is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch
from pydantic import JsonValue

from bench.contract.eve_profile import KnownPairs
from bench.contract.seal import ContractError
from bench.evidence import MembershipEvidence, PairEvidence, finding_of
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.randomness import Secret
from bench.results.evidence_file import unpack
from bench.results.records import Record, score_record
from bench.results.store import Store
from bench.runs.judge import judge
from bench.types import Dataset, Metric, NotApplicable
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.workbench import Workbench

ROUNDING = 1e-6
"""Relative tolerance of a number: sums in another order, on another machine."""


def evidence_of(record: Record, content: bytes) -> dict[str, object]:
    """The evidence of a record, as its evaluator declares it. Raises EvidenceError."""
    return unpack(content, cast(Any, registry.load("evaluators", record.measured_by)).evidence)


def differences(record: Record, evidence: dict[str, object]) -> Iterator[str]:
    """Figures of the record that do not follow from the evidence."""
    for name, described in record.metrics.items():
        metric = cast("Metric[object]", cast(Any, registry.load("metrics", described.written))())
        stated = record.scores.get(name)
        try:
            score = score_record(judge(metric, evidence), better=metric.better, unit=metric.unit)
        except NotApplicable:
            if stated is not None:
                yield f"{name} is {stated.value:g} in the record, and does not apply to its evidence"
            continue
        except ContractError as error:
            yield f"{name} of its evidence is no sound figure: {error}"
            continue
        if stated is None:
            yield f"{name} is not in the record, and is {score.value:g} of its evidence"
        elif place := _difference(stated.model_dump(mode="json"), score.model_dump(mode="json"), ""):
            yield f"{name} is {stated.value:g} in the record and {score.value:g} of its evidence (apart in{place})"


def _difference(a: JsonValue, b: JsonValue, place: str) -> str | None:
    """The first place in which two figures differ beyond rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{place} its parts"
        return next((part for name in a if (part := _difference(a[name], b[name], f"{place} {name}"))), None)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return place
        return next((part for x, y in zip(a, b, strict=True) if (part := _difference(x, y, place))), None)
    if _is_number(a) and _is_number(b):
        same = math.isclose(cast(float, a), cast(float, b), rel_tol=ROUNDING, abs_tol=1e-9)
    else:
        same = a == b
    return None if same else place


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def order_follows(record: Record, evidence: dict[str, object], secret: Secret) -> bool | None:
    """True if all evidence stands in the order of the secret.

    Pair evidence shows it if released row i belongs to raw row i, or rows belong to no single person; membership
    evidence always does. Other evidence has no secret order.
    """
    parts = [
        _part_follows(_empty_bench(record, finding_of(name), secret), part, record) for name, part in evidence.items()
    ]
    answers = [follows for follows in parts if follows is not None]
    return all(answers) if answers else None


def _empty_bench(record: Record, finding: str, secret: Secret) -> Workbench:
    """The cell's workbench without rows, which only gives secrets by name."""
    assert record.dataset is not None
    choice = Choice.read(record.choice)
    empty = Dataset("empty", torch.zeros(0, 1), None, None, (), False, True)
    method = configure("methods", record.method.written, choice.preset, here=record.isolation == "none")
    return Workbench(
        cell=Cell(method, choice, record.device), preset=choice.sizes, method=method.plugin, public=empty,
        private=empty, control=empty, test=empty, record=record.dataset, store=Store(Path("nowhere")),
        run_secret=secret, finding=finding or None,
    )  # fmt: skip


def _part_follows(bench: Workbench, evidence: object, record: Record) -> bool | None:
    if isinstance(evidence, PairEvidence):
        return _pairs_follow(bench, evidence)
    if isinstance(evidence, MembershipEvidence):
        return _members_follow(bench, evidence, record)
    return None


def _pairs_follow(bench: Workbench, evidence: PairEvidence) -> bool | None:
    n, m = evidence.shape
    order = bench.secret("candidates").stream().permutation(n)
    if not evidence.known and not torch.equal(evidence.persons, order):
        return False
    if isinstance(bench.eve, KnownPairs):  # a release without the known rows is in no sealed order
        return None
    if n != m or not _one_to_one(evidence.images.links, n):
        return None if evidence.known else True
    return all(_is_sealed_order(bench, evidence, order, key) for key in range(len(evidence.images.owners)))


def _is_sealed_order(bench: Workbench, evidence: PairEvidence, order: torch.Tensor, key: int) -> bool:
    """True if the rows of a key stand in its sealed order."""
    sealed = bench.secret("seal", key).stream("order").permutation(len(order))
    rows = order.argsort()[sealed]  # the candidate behind each sealed row
    if key == 0:
        links = evidence.images.links
        if not torch.equal(rows[links[:, 1]], links[:, 0]):
            return False
    return torch.equal(evidence.persons[rows], evidence.images.owners[key])


def _one_to_one(links: torch.Tensor, n: int) -> bool:
    every = torch.arange(n)
    return len(links) == n and all(torch.equal(links[:, side].sort().values, every) for side in (0, 1))


def _members_follow(bench: Workbench, evidence: MembershipEvidence, record: Record) -> bool:
    assert record.dataset is not None
    persons = torch.arange(len(evidence.members[0]))
    if evidence.subjects is not None:
        persons = torch.unique(evidence.subjects, return_inverse=True)[1]
    split = record.dataset.rows if evidence.subjects is None else record.dataset.subjects
    for key, members in enumerate(evidence.members):
        order = bench.secret("members", key).stream().permutation(int(persons.max()) + 1)
        if not torch.equal(torch.isin(persons, order[: split["private"]]), members):
            return False
    return True
