"""Whether the order of rows in stored evidence follows from the run secret: the keys are derived anew, no release made.

The owner's rows are sealed, and Eve's candidates ordered, by streams of the run secret that nobody else's run has, for
their names hold the method, its parameters and the data. So evidence of another run, of another method, or under
another secret stands in another order.
"""

from __future__ import annotations

from pathlib import Path

import torch

from bench.evidence import MembershipEvidence, PairEvidence
from bench.plugins.chosen import choose
from bench.randomness import Secret
from bench.results.records import Record
from bench.results.store import Store
from bench.types import Dataset
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.workbench import Workbench

NOBODY = Dataset("nobody", torch.zeros(0, 1), None, None, (), False, True)


def order_follows(record: Record, evidence: dict[str, object], secret: Secret) -> bool | None:
    """Whether every part of the evidence stands in the order that the secret gives; None where none of it can tell.

    Of attacks on pairs it can be told where released row i is raw row i's own, or rows are nobody's in particular; of
    attacks on membership always. Other evidence has no secret order.
    """
    found = [_follows(_bench(record, name, secret), part, record) for name, part in evidence.items()]
    told = [each for each in found if each is not None]
    return all(told) if told else None


def _bench(record: Record, finding: str, secret: Secret) -> Workbench:
    """The cell without rows: it is asked for secrets by name, and for nothing else."""
    assert record.dataset is not None
    choice = Choice.read(record.choice)
    method = choose("methods", record.method.written, choice.preset, here=record.isolation == "none")
    return Workbench(
        cell=Cell(method, choice, record.device), preset=choice.sizes, method=method.plugin, public=NOBODY,
        private=NOBODY, control=NOBODY, test=NOBODY, record=record.dataset, store=Store(Path("nowhere")),
        run_secret=secret, finding=finding or None,
    )  # fmt: skip


def _follows(bench: Workbench, evidence: object, record: Record) -> bool | None:
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
    if n != m or not _one_to_one(evidence.images.links, n):
        return None if evidence.known else True
    return all(_sealed_so(bench, evidence, order, number) for number in range(len(evidence.images.owners)))


def _sealed_so(bench: Workbench, evidence: PairEvidence, order: torch.Tensor, number: int) -> bool:
    """Whether released rows under that key stand where its seal puts them, each by the person whose row it is."""
    sealed = bench.secret("seal", number).stream("order").permutation(len(order))
    rows = order.argsort()[sealed]  # the candidate behind each sealed row
    if number == 0:
        links = evidence.images.links
        if not torch.equal(rows[links[:, 1]], links[:, 0]):
            return False
    return torch.equal(evidence.persons[rows], evidence.images.owners[number])


def _one_to_one(links: torch.Tensor, n: int) -> bool:
    every = torch.arange(n)
    return len(links) == n and all(torch.equal(links[:, side].sort().values, every) for side in (0, 1))


def _members_follow(bench: Workbench, evidence: MembershipEvidence, record: Record) -> bool:
    assert record.dataset is not None
    count = len(evidence.members[0])
    persons = torch.arange(count)
    if evidence.subjects is not None:
        persons = torch.unique(evidence.subjects, return_inverse=True)[1]
    split = record.dataset.rows if evidence.subjects is None else record.dataset.subjects
    for number, members in enumerate(evidence.members):
        drawn = bench.secret("members", number).stream().permutation(int(persons.max()) + 1)
        if not torch.equal(torch.isin(persons, drawn[: split["private"]]), members):
            return False
    return True
