"""People whom an attack finds most surely, with their images.

Records hold figures over people, and none of a single person. So the strongest attack is repeated here for the owner's
eyes: it trains once, scores the releases under all keys, and its first guesses are counted person by person, as
`bench.evaluators.reidentification` counts them. What it returns holds raw rows: it goes into private pages alone.
"""

from __future__ import annotations

__figures__ = False

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

import torch

from bench.contract.eve_profile import Oracle
from bench.evaluators.granted_pairs import tell
from bench.evaluators.reidentification import Reidentification, _of_candidates
from bench.pairs.score_blocks import first_guesses
from bench.pairs.score_matrices import TurnedScores
from bench.pairs.score_reader import tabled
from bench.rows.grouping import persons_of
from bench.rows.row_sets import distinct, renumbered
from bench.runs.tasks import EvaluateTask, _evaluator
from bench.sandbox import Isolation
from bench.statistics.people_named import Named, owned_rows, told_apart
from bench.types import NotApplicable, PairScores, View
from bench.workbench.cell import Cell, Planned
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench

MOST = 8
"""People who are shown."""


@dataclass(frozen=True, eq=False)
class Case:
    """A person whom an attack finds.

    Args:
        row: The prepared row that the released one was made of.
        images: That row, the released one under the first key, and the raw row that the attack ranks first for it:
            (c, h, w) or (d,) float32.
        named: Whether the last one is of the person.
        found: The share of keys under which the attack names the person.
        keys: Their number.
    """

    row: int
    images: Sequence[torch.Tensor]
    named: bool
    found: float
    keys: int


def worst_cases(
    cell: Cell, place: Place, isolation: Isolation, planned: Planned, *, turned: bool = False, most: int = MOST
) -> list[Case]:
    """The people whom an attack finds most surely, the surest first.

    Args:
        cell: The release under one profile of Eve.
        place: Folders of this machine.
        isolation: Where method and attack work.
        planned: The attack.
        turned: Whether the record says that its scores were turned.
        most: People at most.

    Raises:
        NotApplicable: The attack links no image that Eve holds to a released row.
    """
    task = EvaluateTask(cell, place, planned, isolation)
    with _evaluator(task) as evaluator, closing(Workbench.open(cell, place, isolation)) as whole:
        attack = cast(Reidentification, evaluator).attack
        bench = next(iter(whole.findings_apart()), whole) if attack.uses_labels else whole
        eve, scheme, held = bench.eve, bench.scheme(), bench.held
        if eve.relinks or not eve.images:
            raise NotApplicable(f"under {eve} no image that the attacker holds is ranked")
        n = len(held.rows)
        order = bench.secret("candidates").stream().permutation(n)
        candidates = held.rows.take(order.to(held.rows.samples.device))
        pairs = renumbered(held.pairs, raw=order.argsort())
        labelled = attack.uses_labels or bench.method.uses_labels or bench.method.needs_labels
        hidden = replace(candidates.nameless(), labels=candidates.labels if labelled else None)
        known = None if held.known is None else bench.private.take(held.known.to(bench.device)).nameless()
        view = View(
            bench.public, bench.for_eve(scheme), hidden, bench.control.nameless(), bench.trained, str(eve),
            known if known is None or labelled else replace(known, labels=None),
            eve.queries if isinstance(eve, Oracle) else 0, None,
        )  # fmt: skip
        guarded = replace(bench, private=candidates)
        names = [attack.name] if bench.finding is None else [attack.name, bench.finding]
        attacker = guarded.untouched(attack.name, partial(attack.fit, view, bench.seed("attack", *names)))
        persons = persons_of(candidates)
        hits, keys = (torch.zeros(int(persons.max()) + 1, dtype=torch.float64) for _ in range(2))
        first: _First | None = None
        for number in range(bench.preset.keys):
            told = tell(
                bench, view, bench.sealed(scheme, number), held.known, pairs, partial(bench.key, scheme, number),
                attacker,
            )  # fmt: skip
            sealed = _of_candidates(told.sealed, pairs)
            assert sealed.links is not None
            rows = sealed.release if labelled else replace(sealed.release, labels=None)
            scores = guarded.untouched(attack.name, partial(told.score, attacker, rows))
            scores = tabled(TurnedScores(scores) if turned else scores)
            owned = owned_rows(sealed.links, persons)
            named = Named(guarded.untouched(attack.name, partial(first_guesses, scores, persons, owned)), owned)
            shared = told_apart(named, distinct(rows.samples.flatten(1))[1])
            missed = torch.ones_like(hits).scatter_reduce(0, owned[0], 1 - shared.guesses.hits, "prod")
            hits += 1 - missed
            keys += torch.bincount(owned[0], minlength=len(keys)) > 0
            if not number:
                assert told.sealed.links is not None
                first = _First(scores, owned, named.guesses.hits, told.sealed.links.cpu(), rows.samples)
        assert first is not None
        return _cases(bench, candidates.samples, persons, first, hits / keys.clamp(min=1), keys, most)


class _First(NamedTuple):
    """An attack's scores of the first key's release."""

    scores: PairScores
    owned: torch.Tensor
    hits: torch.Tensor
    links: torch.Tensor
    released: torch.Tensor


def _cases(
    bench: Workbench, candidates: torch.Tensor, persons: torch.Tensor, first: _First, found: torch.Tensor,
    keys: torch.Tensor, most: int,
) -> list[Case]:  # fmt: skip
    """The cases in the release under the first key."""
    owner, at = first.owned
    there = torch.unique(owner)
    cases = []
    for person in there[found[there].argsort(descending=True, stable=True)][:most].tolist():
        mine = (owner == person).nonzero().flatten()
        row = int(at[mine[first.hits[mine].argmax()]])
        column = first.scores.block(slice(0, first.scores.shape[0]), slice(row, row + 1))
        guess = int(column.detach().flatten().cpu().argmax())
        raw = int(first.links[first.links[:, 1] == row][0, 0])
        place = int(bench.places[raw]) if len(bench.places) else raw
        images = [each.detach().cpu() for each in (bench.private.samples[raw], first.released[row], candidates[guess])]
        named = int(persons[guess]) == person
        cases.append(Case(place, images, named, float(found[person]), int(keys[person])))
    return cases
