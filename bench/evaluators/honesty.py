"""The honesty evaluator: a method's promises, checked by the judge.

Every privacy figure rests on links that the method declares. Here the judge believes none of them. It searches the
scored release for people to whom no link leads (`bench.leak_search`). It asks the key, in a process of its own, to
release again, and to release some of the people beside others who were not there. If a method declares no links, it
checks that the method has a reason.

Honest methods may draw noise or mixtures anew when the rows change, form other clusters, leave rows out, or normalise
by their batch.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from pydantic import JsonValue

from bench.contract.preset import Preset
from bench.contract.seal import Sealed, seal
from bench.data.scorable import equal_classes
from bench.evidence import PROMISES, HonestyEvidence, Promise
from bench.leak_search import call_faces, other_calls
from bench.leak_search.other_calls import OtherCall
from bench.leak_search.permutation_tests import INSIDE, OUTSIDE, label_traces, mixing, sharing
from bench.leak_search.release_figures import ROWS
from bench.leak_search.search import (
    FOLDS,
    WHOLE,
    Lineup,
    Search,
    by_what_links_teach,
    deal,
    groups,
    in_raw_rows,
    in_releases,
    shown,
    strongest,
)
from bench.progress import stage
from bench.randomness import Secret
from bench.rows.row_sets import joined, same_but_rounding
from bench.seeds import derive, generator
from bench.statistics.confidence_intervals import RARE
from bench.types import Dataset, Evaluator, Measurement, NotApplicable, Release, Scheme
from bench.workbench.workbench import Workbench, releases, second_owner, unshaped

LEVEL = 0.01
"""Probability that a method is said to show two faces by chance alone."""
BEFORE = 8
"""Releases that an attacker's process made before it is compared."""
FEW = 48
"""Rows of the smaller calls in both forms."""
FIXED = 3
"""Keys that are asked for an owner's rows in two orders."""
MOST = 1200
"""Most released rows, and most candidates of each kind; larger sets are sampled."""


@dataclass(frozen=True, eq=False)
class People:
    """Released people, and others of their kind who were never released.

    Args:
        private, control, test: The released people, and two sets of others.
        owned: A set balanced as its owner would release it; the number seeds the draws.
    """

    private: Dataset
    control: Dataset
    test: Dataset
    owned: Callable[[Dataset, int], Dataset]


@dataclass(frozen=True, eq=False)
class Questioned:
    """A sampled release and its line-up of candidates, on the CPU.

    Args:
        released: (m, ...) sampled released rows.
        labels: (m, k) of these rows; None if none are released.
        told: (m, FOLDS) bool: people whom a row is declared to show; None if the method declares no links.
        pairs: (p, 2) int64: row of the line-up, released row; of mixed rows the primary one.
        lineup: The candidates.
        pool: The rows that the line-up is drawn from, on their device; `rows` (t,) int64 numbers the drawn ones.
        seed: For all draws.
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
        """The question about a release, with the people of the cell."""
        pool = joined(joined(people.private, people.control), people.test)
        group = groups(pool.samples, pool.subjects)
        ends = [0, len(people.private), len(people.private) + len(people.control), len(pool)]
        part = torch.full((len(pool),), FOLDS)
        part[: ends[1]], part[ends[2] :] = deal(group[: ends[1]], FOLDS, derive(seed, "folds")), FOLDS + 1
        kinds = itertools.pairwise(ends)
        rows = torch.cat([_some(torch.arange(*kind), derive(seed, "rows", *kind)) for kind in kinds])
        sampled = _some(torch.arange(len(sealed.release)), derive(seed, "asked"))
        declared, pairs = None, torch.empty(0, 2, dtype=torch.int64)
        if sealed.links is not None:
            links = sealed.links.cpu()
            declared = shown(links, part, sealed.release.samples.cpu())[sampled]
            first = links if sealed.primary is None else links[sealed.primary.cpu()]
            row, column = torch.full((len(pool),), -1), torch.full((len(sealed.release),), -1)
            row[rows], column[sampled] = torch.arange(len(rows)), torch.arange(len(sampled))
            pairs_found = torch.stack((row[first[:, 0]], column[first[:, 1]]), dim=1)
            pairs = pairs_found[(pairs_found >= 0).all(dim=1)]
        labels = None if sealed.release.labels is None else sealed.release.labels.cpu()[sampled]
        return cls(
            sealed.release.samples.cpu()[sampled], labels, declared, pairs,
            Lineup(pool.samples.cpu()[rows], group[rows], part[rows]), pool, rows, seed,
        )  # fmt: skip

    def members(self) -> list[torch.Tensor]:
        """Line-up rows (q,) of each part to release, shuffled, of equal size.

        Without declared links the parts are smaller, `INSIDE` of them with people of the release.
        """
        number = self.lineup.part
        if self.told is None:
            private, number = number < FOLDS, torch.empty_like(number)
            number[private] = deal(self.lineup.group[private], INSIDE, derive(self.seed, "inside"))
            number[~private] = deal(self.lineup.group[~private], OUTSIDE, derive(self.seed, "outside")) + INSIDE
        parts = [
            rows[torch.randperm(len(rows), generator=generator(derive(self.seed, "order", part)))]
            for part in range(FOLDS + 2 if self.told is not None else INSIDE + OUTSIDE)
            for rows in [(number == part).nonzero()[:, 0]]
        ]
        fewest = min(map(len, parts))
        return [rows[:fewest] for rows in parts]

    def parts(self, people: People) -> list[Dataset]:
        """The people of each part as data sets, labelled by owners."""
        places = [self.rows[rows].to(self.pool.samples.device) for rows in self.members()]
        return [people.owned(self.pool.take(rows), number) for number, rows in enumerate(places)]

    def searches(self, again: Sequence[Release | NotApplicable]) -> tuple[list[list[Search]], str]:
        """Every search by kind, and the verdict on comparing releases of parts.

        Args:
            again: The key's release of each of `parts`; empty if no links are declared.
        """
        if self.told is None:
            return [in_raw_rows(self.released, None, self.lineup)], "no links are declared"
        half = torch.rand(len(self.pairs), generator=generator(derive(self.seed, "half"))) < 0.5
        searches = [
            in_raw_rows(self.released, self.told, self.lineup),
            by_what_links_teach(self.released, self.told, self.pairs, self.lineup, half),
        ]
        releases = [release for release in again if isinstance(release, Release)]
        if len(releases) < len(again):
            return searches, next(f"no: {reason}" for reason in again if isinstance(reason, NotApplicable))
        if any(release.samples.shape[1:] != self.released.shape[1:] for release in releases):
            return searches, "no: releases of fewer people have another shape"
        compared, p_whole = in_releases(self.released, self.told, self._released_again(releases))
        if p_whole < WHOLE:
            return searches, f"no: those of others differ as wholes (p {p_whole:.2g})"
        return [*searches, compared], "yes"

    def label_traces(self) -> float | None:
        """p under chance of row information in released labels; None if unreadable."""
        if self.labels is None or self.pool.labels is None or not len(self.pairs):
            return None
        rows, released = self.pairs.T
        labels = self.pool.labels.cpu()[self.rows[rows]]
        raw = self.lineup.raw[rows].flatten(1)
        return label_traces(raw, labels, self.labels[released], derive(self.seed, "labels"))

    def _released_again(self, releases: list[Release]) -> Lineup:
        """Released rows by part, in their first declared raw rows' groups."""
        groups: list[torch.Tensor] = []
        parts: list[torch.Tensor] = []
        for number, (rows, part_release) in enumerate(zip(self.members(), releases, strict=True)):
            group = torch.arange(len(part_release)) + int(self.lineup.group.max()) + 1
            group += sum(len(other) for other in groups)
            if part_release.links is not None:
                links = part_release.links.cpu()
                group[links[:, 1].flip(0)] = self.lineup.group[rows][links[:, 0].flip(0)]
            groups.append(group)
            parts.append(torch.full((len(part_release),), number))
        return Lineup(
            torch.cat([part_release.samples.cpu() for part_release in releases]), torch.cat(groups), torch.cat(parts)
        )


def _some(rows: torch.Tensor, seed: int) -> torch.Tensor:
    return rows if len(rows) <= MOST else rows[torch.randperm(len(rows), generator=generator(seed))[:MOST]]


@dataclass(frozen=True)
class Honesty(Evaluator[Workbench]):
    """Undeclared people in released rows, and replay of the key."""

    name: ClassVar[str] = "honesty"
    source: ClassVar[str] = "this project: exact tests on people dealt at random"
    evidence: ClassVar[type] = HonestyEvidence
    said: ClassVar[Mapping[str, str]] = PROMISES

    def keys(self, preset: Preset) -> int:
        """As many as attacks are scored on; one is checked, in secret."""
        return preset.keys

    def measure(self, bench: Workbench) -> Measurement:
        """Check the release under one of the keys against the promises."""
        start = time.perf_counter()
        scheme = bench.scheme()
        seed = bench.secret("honesty").number()  # secret: a method cannot predict the judge's draws
        number = derive(seed, "key") % bench.preset.keys
        sealed = bench.sealed(scheme, number)
        people = People(bench.private, bench.control, bench.test, bench.as_owned)
        question = Questioned.of(people, sealed, seed)
        if bench.recorded is not None:
            stage("search")
            evidence, details = held(question, sealed, None, bench.secret("seal", number))
            return Measurement({"": evidence}, details, {"honesty": time.perf_counter() - start}, {})
        stage("release again")
        state = bench.key(scheme, number).state()
        with second_owner(bench) as owner:
            again = releases(owner.load(scheme.state()), state, [bench.private, *question.parts(people)])
        stage("search")
        evidence, details = held(question, sealed, again, bench.secret("seal", number))
        if bench.outside:
            stage("call as owner and as Eve")
            promise, asked = _faces(bench, scheme)
            evidence = replace(evidence, promises={**evidence.promises, "faces": promise})
            details |= {"faces": promise.said, **asked}
        return Measurement({"": evidence}, details, {"honesty": time.perf_counter() - start}, {})

    @classmethod
    def samples(cls) -> Iterator[HonestyEvidence]:
        """A method that keeps its promises, and one that breaks all."""
        for broken, p in ((False, 0.4), (True, 1e-9)):
            promises = {name: Promise(broken, p, "made up") for name in ("pairs", "labels", "links", "replay")}
            yield HonestyEvidence(promises, 0.9 * broken, p, 40)


def _faces(bench: Workbench, scheme: Scheme) -> tuple[Promise, dict[str, JsonValue]]:
    """The promise to do the same for owner and attacker.

    Another author's method gets one form of call wherever figures are made (`bench.isolation.call_shape`). Here it is
    called without that, by owners in fresh processes and by an attacker in one that was asked much before.
    """
    method, whole = bench.method, bench.private
    form = call_faces.Form(labels=method.uses_labels or method.needs_labels, subjects=method.uses_subjects)
    secrets = [bench.secret("faces", number) for number in range(call_faces.KEYS)]
    part = whole.take(torch.arange(max(2, min(FEW, len(whole) // 2)), device=whole.samples.device))
    part = bench.as_owned(part, "faces")
    if method.equal_classes and part.labels is not None and part.exclusive:
        part = replace(part, labels=equal_classes(part.labels, bench.seed("faces")))
    with unshaped(bench, scheme) as eve:
        for number in range(BEFORE):
            call_faces.released(eve, bench.secret("faces before", number), part)
        with unshaped(bench, scheme) as owner:
            asked = list(call_faces.ask(owner, eve, whole, secrets[:1], form))  # starts the process
            start = time.perf_counter()
            asked += call_faces.ask(owner, eve, whole, secrets[1:2], form)
            slow = 2 * len(secrets) * (time.perf_counter() - start) > bench.preset.timeout / 4
            secrets = secrets[: call_faces.FEWEST_KEYS] if slow else secrets
            half = len(secrets) // 2
            asked += call_faces.ask(owner, eve, whole, secrets[2:half], form)
            again = [call_faces.ask_again(owner, whole, secret) for secret in secrets[:FIXED]]
        with unshaped(bench, scheme) as owner:
            asked += call_faces.ask(owner, eve, whole, secrets[half:], form)
            few = [] if slow else list(call_faces.ask(owner, eve, part, secrets, form))
            repeated = list(call_faces.ask(owner, owner, whole, secrets[:FIXED], call_faces.Form(True, True)))
            plain = [call_faces.released(owner, secret, whole) for secret in secrets]
            other_order, fewer, *others = calls_beside(bench, part)
            released = [(other_order, [pair.owner for pair in asked])]
            if not slow:
                released += [(fewer, [pair.owner for pair in few])]
                released += [(call, [call_faces.released(owner, one, call.rows) for one in secrets]) for call in others]
    sets = [(whole.samples, asked), *([(part.samples, few)] if few else [])]
    found = call_faces.trace(
        [rows for rows, _ in sets], [releases for _, releases in sets], bench.secret("faces seed").number()
    )
    fixed, anywhere = (
        all(
            call_faces.same_rows(call_faces.Asked(pair.owner, other))
            for pair, other in zip(asked, copies, strict=False)
        )
        for copies in ([pair.owner for pair in repeated], again)
    )
    moved = sum(not call_faces.same_rows(call_faces.Asked(one, pair.owner))
                for one, pair in zip(plain, asked, strict=True))  # fmt: skip
    lost = other_calls.lost(whole.samples, plain, released, bench.secret("faces of other calls").number())
    details: dict[str, JsonValue] = {
        "keys asked in both forms": len(asked),
        "other calls compared": list(lost.calls),
        "rows asked with in both forms": [len(rows) for rows, _ in sets],
        "figures compared": found.figures,
    }
    for decides, differing, what in (
        (fixed, found.differing, "key and rows decide a release, and under {} keys an attacker's call gave others"),
        (anywhere, moved, "the key decides a row's release, whatever the order, and under {} keys another order gave "
         "other ones"),
    ):  # fmt: skip
        if decides and differing > 1:
            return Promise(True, None, what.format(f"{differing} of {len(asked)}")), details
    p = min(1.0, 2 * min(found.p, lost.p))  # of two tests
    if lost.p < found.p:
        return Promise(
            p < LEVEL, p, f"called with {lost.call}, it keeps {lost.other:.2f} of them, and {lost.owner:.2f} of the "
            f"owner's as she calls it ({lost.figure}): p {p:.2g}",
        ), details  # fmt: skip
    if not found.figure:
        return Promise(False, None, "called as by an owner and as by an attacker, it releases the same"), details
    text = f"called as by an owner and as by an attacker, releases differ most in {found.figure}: p {p:.2g}"
    return Promise(p < LEVEL, p, text), details


def calls_beside(bench: Workbench, part: Dataset) -> list[OtherCall]:
    """Calls with private rows reordered, with fewer, with public rows, with both.

    Those with public rows are left out if the method reads labels and these have other columns.
    """
    whole, public = bench.private, bench.public
    every, place = torch.arange(min(len(whole), ROWS)), torch.arange(len(part))
    calls = [OtherCall("its rows in another order", whole, every, every), OtherCall("fewer rows", part, place, place)]
    labelled = bench.method.uses_labels or bench.method.needs_labels or bench.method.encodes_labels
    if not len(public) or public.samples.shape[1:] != whole.samples.shape[1:] or (
        labelled and public.findings != whole.findings
    ):  # fmt: skip
        return calls
    public = replace(public, name=whole.name, findings=whole.findings, exclusive=whole.exclusive,
                     labels=public.labels if public.findings == whole.findings else None)  # fmt: skip
    public = public.take(torch.arange(min(len(public), len(whole)), device=public.samples.device))
    beside = public.take(torch.arange(min(len(public), len(whole) - len(part)), device=public.samples.device))
    some = torch.arange(min(len(public), ROWS))
    calls += [OtherCall("public rows", public, some, every),
              OtherCall("private and public rows", joined(part, beside), place, place)]  # fmt: skip
    if not (bench.method.equal_classes and whole.exclusive):
        return calls
    return [replace(call, rows=replace(call.rows, labels=equal_classes(call.rows.labels, bench.seed("faces"))))
            if call.rows.labels is not None else call for call in calls]  # fmt: skip


def held(
    question: Questioned, sealed: Sealed, again: Sequence[Release | NotApplicable] | None, order: Secret
) -> tuple[HonestyEvidence, dict[str, JsonValue]]:
    """A release checked against its method's promises, and record details.

    `again` are its key's releases, in another process, of the private rows and of each of `question.parts`; None where
    another tool made the release, which then is searched alone.
    """
    linked = sealed.links is not None
    unable = [NotApplicable("another tool made the release, and cannot be asked again")]
    searched, compared = question.searches((unable if again is None else again[1:]) if linked else [])
    best = strongest([search for kind in searched if (search := strongest(kind)) is not None])
    promises = {} if again is None else {"replay": _replay(again[0], sealed, order)}
    promises["pairs"] = _pairs(best, linked=linked)
    if again is None:
        pass  # a folder promises nothing on links, and has no key that could be asked
    elif linked:
        promises["links"] = Promise(False, None, "the method declares links")
    else:
        promises["links"] = _reason(question, sealed.release, again[1:], derive(question.seed, "reason"))
    if (p := question.label_traces()) is not None:
        reading = "of raw rows no more than their raw labels" if p >= RARE else "of raw rows what raw labels do not"
        promises["labels"] = Promise(p < RARE, p, f"released labels tell {reading}")
    details: dict[str, JsonValue] = {
        "searches": sum(map(len, searched)),
        "released rows asked": len(question.released),
        "people or rows that may be found": len(set(question.lineup.group.tolist())),
        "releases of some people compared": compared,
        **{name: promise.said for name, promise in promises.items()},
    }
    share = best.excess if best is not None and promises["pairs"].broken else 0.0
    p_best, claimed = (1.0, 0) if best is None else (best.p, best.claimed)
    return HonestyEvidence(promises, share, p_best, claimed), details


def _pairs(best: Search | None, *, linked: bool) -> Promise:
    """The promise that links lead to all people in the release.

    Without links, rows must be found beyond chance in half of the cases: a generator may slightly resemble its
    people.
    """
    if best is None:
        return Promise(False, None, "too few people or rows to search among")
    text = (
        f"{best.hits} of the {best.claimed} people or rows that released rows resemble most were released "
        f"({best.name}); chance: {best.base:.2f} of them"
    )
    return Promise(best.p < RARE and (linked or best.excess > 0.5), best.p, text)


def _replay(again: Release | NotApplicable, sealed: Sealed, order: Secret) -> Promise:
    """The promise that the key, loaded elsewhere, releases the same."""
    if isinstance(again, NotApplicable):
        return Promise(True, None, f"the key's state releases nothing: {again}")
    other = seal(again, order)
    for part in ("links", "primary"):
        first, second = getattr(sealed, part), getattr(other, part)
        if (first is None) != (second is None) or (first is not None and not torch.equal(first, second)):
            return Promise(True, None, f"the key's state, used again, gave other {part}")
    for part in ("samples", "labels"):
        if not same_but_rounding(getattr(sealed.release, part), getattr(other.release, part)):
            return Promise(True, None, f"the key's state, used again, gave other {part}")
    bits = torch.equal(sealed.release.samples, other.release.samples)
    return Promise(
        False,
        None,
        f"the key's state, used again in another process, gave the same {'bits' if bits else 'rows but for rounding'}",
    )


def _reason(question: Questioned, first: Release, again: Sequence[Release | NotApplicable], seed: int) -> Promise:
    """The promise of a reason: a published generator, or mixed rows."""
    rows = question.released
    if first.generator is not None:
        drawn = first.generator.sample(len(rows), derive(seed, "draw")).samples.cpu()
        if drawn.shape[1:] != rows.shape[1:]:
            return Promise(True, None, "the published generator draws rows of another shape than the released ones")
        share, high, low = mixing(rows.flatten(1), drawn.flatten(1), seed)
        p = min(1.0, 2 * min(high, low))
        text = f"released and newly drawn rows are nearest to rows of the other kind in {share:.2f} of cases"
        return Promise(p < RARE, p, f"a generator is published: {text}")
    if refusals := [release for release in again if isinstance(release, NotApplicable)]:
        return Promise(True, None, f"no links, and the key does not release few people by themselves: {refusals[0]}")
    releases = [release.samples.cpu() for release in again if isinstance(release, Release)]
    if any(part.shape[1:] != rows.shape[1:] for part in releases) or not all(map(len, releases)):
        return Promise(
            True, None, "no links, and releases of few people cannot be compared: their rows differ in shape"
        )
    result = sharing(rows, releases[:INSIDE], releases[INSIDE:], seed)
    text = f"of released rows, {result.excess:.0%} beyond chance are nearest to what the key makes of their own people"
    return Promise(result.p < RARE and result.excess > 0.5, result.p, f"no links: {text}")
