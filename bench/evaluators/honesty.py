"""A release under question: which of its rows are asked, and who may be found in them.

The honesty evaluator: what a method says of its links, its labels and its key, held against what it does.

Every privacy figure rests on links that the method declares. Here the judge believes none of them. It searches the
scored release for people to whom no link leads (`bench.judge`), asks the key, in a process of its own, to release
again, and to release some of the people beside others who were not there; and where a method declares no links, it
looks whether it has the reason that such methods have.

What methods may do and stay honest: draw their noise or their mixtures anew when the rows change, form other clusters,
leave rows out, normalise by their batch.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from pydantic import JsonValue

from bench.contract.preset import Preset
from bench.contract.seal import Sealed, seal
from bench.evidence import PROMISES, HonestyEvidence, Promise
from bench.judge.label_traces import label_traces
from bench.judge.neighbours import mixing
from bench.judge.people import deal, groups
from bench.judge.search import Search, strongest
from bench.judge.sharing import INSIDE, OUTSIDE, sharing
from bench.judge.suspects import FOLDS, WHOLE, Lineup, by_what_links_teach, in_raw_rows, in_releases, shown
from bench.progress import stage
from bench.randomness import Secret
from bench.rows.row_sets import joined, same_but_rounding
from bench.seeds import derive, generator
from bench.statistics.confidence_intervals import RARE
from bench.types import Dataset, Evaluator, Measurement, NotApplicable, Release
from bench.workbench.second_owner import releases, second_owner
from bench.workbench.workbench import Workbench

MOST = 1200
"""Released rows, and rows of each kind that may be found: a random part of larger sets."""


@dataclass(frozen=True, eq=False)
class People:
    """Whose rows were released, and others of their kind whose rows never were.

    Args:
        private, control, test: The former, and two parts of the latter.
        owned: A part as its owner would release it, balanced as the private rows are; the number is for draws.
    """

    private: Dataset
    control: Dataset
    test: Dataset
    owned: Callable[[Dataset, int], Dataset]


@dataclass(frozen=True, eq=False)
class Questioned:
    """A release, the people whom it may show, and others of their kind who were never released; all on the CPU.

    Args:
        released: (m, ...) the released rows that are asked.
        labels: (m, k) theirs; None where none are released.
        told: (m, FOLDS) bool: whom each is declared to show; None where the method declares no links.
        pairs: (p, 2) int64: row of the line-up, released row; of mixed rows the primary one.
        lineup: Who may be found.
        pool: The rows that the line-up is drawn from, where they lie; `rows` (t,) int64 says which.
        seed: For what is drawn.
    """

    released: torch.Tensor
    labels: torch.Tensor | None
    told: torch.Tensor | None
    pairs: torch.Tensor
    lineup: Lineup
    pool: Dataset
    rows: torch.Tensor
    seed: int

    @classmethod
    def of(cls, people: People, sealed: Sealed, seed: int) -> Self:
        """The release under question, with the people of the cell; `seed` is for all that is drawn."""
        pool = joined(joined(people.private, people.control), people.test)
        group = groups(pool.samples, pool.subjects)
        ends = [0, len(people.private), len(people.private) + len(people.control), len(pool)]
        part = torch.full((len(pool),), FOLDS)
        part[: ends[1]], part[ends[2] :] = deal(group[: ends[1]], FOLDS, derive(seed, "folds")), FOLDS + 1
        kinds = itertools.pairwise(ends)
        rows = torch.cat([_some(torch.arange(*kind), derive(seed, "rows", *kind)) for kind in kinds])
        asked = _some(torch.arange(len(sealed.release)), derive(seed, "asked"))
        told, pairs = None, torch.empty(0, 2, dtype=torch.int64)
        if sealed.links is not None:
            links = sealed.links.cpu()
            told = shown(links, part, sealed.release.samples.cpu())[asked]
            first = links if sealed.primary is None else links[sealed.primary.cpu()]
            row, column = torch.full((len(pool),), -1), torch.full((len(sealed.release),), -1)
            row[rows], column[asked] = torch.arange(len(rows)), torch.arange(len(asked))
            found = torch.stack((row[first[:, 0]], column[first[:, 1]]), dim=1)
            pairs = found[(found >= 0).all(dim=1)]
        labels = None if sealed.release.labels is None else sealed.release.labels.cpu()[asked]
        return cls(
            sealed.release.samples.cpu()[asked], labels, told, pairs,
            Lineup(pool.samples.cpu()[rows], group[rows], part[rows]), pool, rows, seed,
        )  # fmt: skip

    def members(self) -> list[torch.Tensor]:
        """For each part that is released by itself as many rows (q,) int64 of the line-up, in random order.

        None is told from others by its size. Where links are declared the parts are those of the line-up; else there
        are more and smaller parts, `INSIDE` of them with people of the release.
        """
        number = self.lineup.part
        if self.told is None:
            private, number = number < FOLDS, torch.empty_like(number)
            number[private] = deal(self.lineup.group[private], INSIDE, derive(self.seed, "inside"))
            number[~private] = deal(self.lineup.group[~private], OUTSIDE, derive(self.seed, "outside")) + INSIDE
        found = [
            rows[torch.randperm(len(rows), generator=generator(derive(self.seed, "order", part)))]
            for part in range(FOLDS + 2 if self.told is not None else INSIDE + OUTSIDE)
            for rows in [(number == part).nonzero()[:, 0]]
        ]
        fewest = min(map(len, found))
        return [rows[:fewest] for rows in found]

    def parts(self, people: People) -> list[Dataset]:
        """The people of each part by themselves, with labels as a data owner gives them."""
        places = [self.rows[rows].to(self.pool.samples.device) for rows in self.members()]
        return [people.owned(self.pool.take(rows), number) for number, rows in enumerate(places)]

    def searches(self, again: Sequence[Release | NotApplicable]) -> tuple[list[list[Search]], str]:
        """Every search by kind, and whether releases of the parts could be compared.

        Args:
            again: What the key made of each of `parts`; empty where no links are declared.
        """
        if self.told is None:
            return [in_raw_rows(self.released, None, self.lineup)], "no links are declared"
        half = torch.rand(len(self.pairs), generator=generator(derive(self.seed, "half"))) < 0.5
        found = [
            in_raw_rows(self.released, self.told, self.lineup),
            by_what_links_teach(self.released, self.told, self.pairs, self.lineup, half),
        ]
        made = [each for each in again if isinstance(each, Release)]
        if len(made) < len(again):
            return found, next(f"no: {reason}" for reason in again if isinstance(reason, NotApplicable))
        if any(each.samples.shape[1:] != self.released.shape[1:] for each in made):
            return found, "no: releases of fewer people have another shape"
        searched, whole = in_releases(self.released, self.told, self._released_again(made))
        if whole < WHOLE:
            return found, f"no: those of others differ as wholes (p {whole:.2g})"
        return [*found, searched], "yes"

    def label_traces(self) -> float | None:
        """p under chance of what the released labels tell of the rows; None where there is nothing to read."""
        if self.labels is None or self.pool.labels is None or not len(self.pairs):
            return None
        rows, asked = self.pairs.T
        labels = self.pool.labels.cpu()[self.rows[rows]]
        raw = self.lineup.raw[rows].flatten(1)
        return label_traces(raw, labels, self.labels[asked], derive(self.seed, "labels"))

    def _released_again(self, made: list[Release]) -> Lineup:
        """Released rows by part; a row belongs to the group of the first raw row that it is declared to show."""
        groups: list[torch.Tensor] = []
        parts: list[torch.Tensor] = []
        for number, (rows, release) in enumerate(zip(self.members(), made, strict=True)):
            group = torch.arange(len(release)) + int(self.lineup.group.max()) + 1
            group += sum(len(other) for other in groups)
            if release.links is not None:
                links = release.links.cpu()
                group[links[:, 1].flip(0)] = self.lineup.group[rows][links[:, 0].flip(0)]
            groups.append(group)
            parts.append(torch.full((len(release),), number))
        return Lineup(torch.cat([each.samples.cpu() for each in made]), torch.cat(groups), torch.cat(parts))


def _some(rows: torch.Tensor, seed: int) -> torch.Tensor:
    return rows if len(rows) <= MOST else rows[torch.randperm(len(rows), generator=generator(seed))[:MOST]]


@dataclass(frozen=True)
class Honesty(Evaluator[Workbench]):
    """Whether released rows show nobody but those to whom links lead, and the key does the same when used again."""

    name: ClassVar[str] = "honesty"
    source: ClassVar[str] = "this project: exact tests on people dealt at random"
    evidence: ClassVar[type] = HonestyEvidence
    said: ClassVar[Mapping[str, str]] = PROMISES

    def keys(self, preset: Preset) -> int:
        """One of as many as attacks are scored on: a method cannot tell which."""
        return preset.keys

    def measure(self, bench: Workbench) -> Measurement:
        """Hold the release under one of the keys against the method's word."""
        start = time.perf_counter()
        scheme = bench.scheme()
        seed = bench.secret("honesty").number()  # no method can tell whom the judge will draw
        number = derive(seed, "key") % bench.preset.keys
        sealed = bench.sealed(scheme, number)
        people = People(bench.private, bench.control, bench.test, bench.as_owned)
        question = Questioned.of(people, sealed, seed)
        stage("release again")
        state = bench.key(scheme, number).state()
        with second_owner(bench) as owner:
            again = releases(owner.load(scheme.state()), state, [bench.private, *question.parts(people)])
        stage("search")
        found, details = held(question, sealed, again, bench.secret("seal", number))
        return Measurement({"": found}, details, {"honesty": time.perf_counter() - start}, {})

    @classmethod
    def samples(cls) -> Iterator[HonestyEvidence]:
        """A method that keeps its word, and a method that breaks all of it."""
        for broken, p in ((False, 0.4), (True, 1e-9)):
            promises = {name: Promise(broken, p, "made up") for name in ("pairs", "labels", "links", "replay")}
            yield HonestyEvidence(promises, 0.9 * broken, p, 40)


def held(
    question: Questioned, sealed: Sealed, again: Sequence[Release | NotApplicable], order: Secret
) -> tuple[HonestyEvidence, dict[str, JsonValue]]:
    """A release held against its method's word, and what a record says of that.

    Args:
        question, sealed: The release.
        again: What its key, in another process, makes of the private rows and of each of `question.parts`.
        order: What the release was sealed with.
    """
    linked = sealed.links is not None
    searched, compared = question.searches(again[1:] if linked else [])
    best = strongest([each for kind in searched if (each := strongest(kind)) is not None])
    promises = {"replay": _replay(again[0], sealed, order), "pairs": _pairs(best, linked=linked)}
    if linked:
        promises["links"] = Promise(False, None, "the method declares links")
    else:
        promises["links"] = _reason(question, sealed.release, again[1:], derive(question.seed, "reason"))
    if (p := question.label_traces()) is not None:
        told = "of raw rows no more than their raw labels" if p >= RARE else "of raw rows what raw labels do not"
        promises["labels"] = Promise(p < RARE, p, f"released labels tell {told}")
    details: dict[str, JsonValue] = {
        "searches": sum(map(len, searched)),
        "released rows asked": len(question.released),
        "people or rows that may be found": len(set(question.lineup.group.tolist())),
        "releases of some people compared": compared,
        **{name: made.said for name, made in promises.items()},
    }
    share = best.excess if best is not None and promises["pairs"].broken else 0.0
    p_best, claimed = (1.0, 0) if best is None else (best.p, best.claimed)
    return HonestyEvidence(promises, share, p_best, claimed), details


def _pairs(best: Search | None, *, linked: bool) -> Promise:
    """Whether people were found to whom no link leads.

    A generator may resemble the people that it learned from more than others, a little: without links, rows count as
    found where more of them than not are beyond chance.
    """
    if best is None:
        return Promise(False, None, "too few people or rows to search among")
    said = (
        f"{best.hits} of the {best.claimed} people or rows that released rows resemble most were released "
        f"({best.name}); chance: {best.base:.2f} of them"
    )
    return Promise(best.p < RARE and (linked or best.excess > 0.5), best.p, said)


def _replay(again: Release | NotApplicable, sealed: Sealed, order: Secret) -> Promise:
    """Whether the key, loaded in another process, releases what it released here."""
    if isinstance(again, NotApplicable):
        return Promise(True, None, f"the key's state releases nothing: {again}")
    other = seal(again, order)
    for what in ("links", "primary"):
        ours, theirs = getattr(sealed, what), getattr(other, what)
        if (ours is None) != (theirs is None) or (ours is not None and not torch.equal(ours, theirs)):
            return Promise(True, None, f"the key's state, used again, gave other {what}")
    for what in ("samples", "labels"):
        if not same_but_rounding(getattr(sealed.release, what), getattr(other.release, what)):
            return Promise(True, None, f"the key's state, used again, gave other {what}")
    bits = torch.equal(sealed.release.samples, other.release.samples)
    return Promise(
        False,
        None,
        f"the key's state, used again in another process, gave the same {'bits' if bits else 'rows but for rounding'}",
    )


def _reason(question: Questioned, first: Release, again: Sequence[Release | NotApplicable], seed: int) -> Promise:
    """Whether a release without links has a reason: a generator that it is drawn from, or nobody stands in its rows."""
    rows = question.released
    if first.generator is not None:
        drawn = first.generator.sample(len(rows), derive(seed, "draw")).samples.cpu()
        if drawn.shape[1:] != rows.shape[1:]:
            return Promise(True, None, "the published generator draws rows of another shape than the released ones")
        share, high, low = mixing(rows.flatten(1), drawn.flatten(1), seed)
        p = min(1.0, 2 * min(high, low))
        said = f"released and newly drawn rows are nearest to rows of the other kind in {share:.2f} of cases"
        return Promise(p < RARE, p, f"a generator is published: {said}")
    if refused := [each for each in again if isinstance(each, NotApplicable)]:
        return Promise(True, None, f"no links, and the key does not release few people by themselves: {refused[0]}")
    made = [each.samples.cpu() for each in again if isinstance(each, Release)]
    if any(part.shape[1:] != rows.shape[1:] for part in made) or not all(map(len, made)):
        return Promise(
            True, None, "no links, and releases of few people cannot be compared: their rows differ in shape"
        )
    found = sharing(rows, made[:INSIDE], made[INSIDE:], seed)
    said = f"of released rows, {found.excess:.0%} beyond chance are nearest to what the key makes of their own people"
    return Promise(found.p < RARE and found.excess > 0.5, found.p, f"no links: {said}")
