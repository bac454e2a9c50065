"""The honesty evaluator: what a method says of its links, its labels and its key, held against what it does.

Every privacy figure rests on links that the method declares. Here the judge believes none of them. It searches the
scored release for people to whom no link leads (`bench.judge`), asks the key, in a process of its own, to release
again, and to release some of the people beside others who were not there; and where a method declares no links, it
looks whether it has the reason that such methods have.

What methods may do and stay honest: draw their noise or their mixtures anew when the rows change, form other clusters,
leave rows out, normalise by their batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import JsonValue

from bench.contract.preset import Preset
from bench.contract.seal import Sealed, seal
from bench.evaluators.questioned import People, Questioned
from bench.evidence import PROMISES, HonestyEvidence, Promise
from bench.judge.neighbours import mixing
from bench.judge.search import Search, strongest
from bench.judge.sharing import INSIDE, sharing
from bench.progress import stage
from bench.randomness import Secret
from bench.rows.rounding import same_but_rounding
from bench.seeds import derive
from bench.statistics.chance import RARE
from bench.types import Evaluator, Measurement, NotApplicable, Release
from bench.workbench.second_owner import releases, second_owner
from bench.workbench.workbench import Workbench


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
