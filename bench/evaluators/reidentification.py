"""The attack evaluator: Eve trains on her view and scores releases.

The releases are under keys that she has never seen. Links, keys and the run's seed stay here; the attack gets a `View`
and sealed releases. Eve's candidates are in another order than the owner's rows: under some methods neighbours leave
traces in a row (batch statistics), and releases that she simulates would have the owner's neighbours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import ClassVar, Literal

import torch
from pydantic import JsonValue

from bench.contract.eve_profile import Oracle
from bench.contract.preset import Preset
from bench.contract.recorded import BY_ANOTHER_TOOL
from bench.contract.seal import ContractError, Sealed, seal
from bench.evaluators.granted_pairs import known_apart, tell
from bench.evidence import (
    EVES_FORM,
    OWNERS_FORM,
    ExchangedAreas,
    PairEvidence,
    PairLevel,
    PersonRisk,
    part_of,
)
from bench.pairs.exchanged_areas import exchangeable, exchanged_areas, exchanged_people
from bench.pairs.person_links import exchanged_links, patient_links
from bench.pairs.score_blocks import first_guesses
from bench.pairs.score_matrices import TurnedScores
from bench.pairs.score_reader import tabled
from bench.pairs.sweep import Grid, PairCounts, count_grids, engine
from bench.progress import report, stage
from bench.randomness import Secret
from bench.rows.grouping import persons_of
from bench.rows.row_sets import distinct, joined, renumbered
from bench.seeds import generator
from bench.statistics.bootstrap import half_samples, name_of
from bench.statistics.people_named import Named, found_people, owned_rows, told_apart
from bench.types import (
    LEARNING,
    Attack,
    Attacker,
    Dataset,
    Evaluator,
    Measurement,
    NotApplicable,
    PairScores,
    Role,
    Scheme,
    View,
    curves_of,
    learning_of,
)
from bench.workbench.workbench import Workbench

SHORT = 1.0
"""Seconds of a method's fit that no attack need match."""
FEWEST_SETS = 9
MOST_SETS = 149
WRONG = 0.001
"""P below which scores of Eve's own key are surely of the wrong sign."""
ARRANGEMENTS = 400_000  # of exchanged people over all keys: p can fall below .001 for the best of 200 figures


@dataclass(frozen=True)
class Reidentification(Evaluator[Workbench]):
    """Linking: Eve scores all pairs of raw and released rows.

    Args:
        attack: Eve's attack.
    """

    name: ClassVar[str] = "reidentification"
    source: ClassVar[str] = "Syfer, definitions 2 and 3; section 5"
    evidence: ClassVar[type] = PairEvidence
    scores: ClassVar[Literal["pairs", "membership"] | None] = "pairs"
    controls: ClassVar[tuple[Role, ...] | None] = "hides nothing", "keeps nothing", "keeps nothing, in secret"
    attack: Attack

    def keys(self, preset: Preset) -> int:
        """As many as the preset says."""
        return preset.keys

    def measure(self, bench: Workbench) -> Measurement:
        """Attack every key's release, once per finding if labels are read."""
        attack, eve = self.attack, bench.eve
        if eve.relinks and not attack.relinks:
            raise NotApplicable(f"{attack.name} compares released rows with raw ones, and under {eve} Eve has none")
        if not eve.images and not eve.relinks:
            raise NotApplicable(f"re-identification names images that Eve holds, and under {eve} she holds none")
        scheme = bench.scheme()
        if attack.uses_labels:
            parts = {str(part.finding): part for part in bench.findings_apart()}
            if not parts:
                raise NotApplicable(f"{attack.name} reads labels, and no finding of this data set has any to balance")
        else:
            parts = {"": bench}
        start = time.perf_counter()
        evidence: dict[str, PairEvidence] = {}
        details: dict[str, JsonValue] = {}
        curves: list[JsonValue] = []
        fitting = 0.0
        for name, part in parts.items():
            with part.earlier_bench() as other:
                found, attacker, sign, learning, fit_seconds = _attack_once(part, attack, scheme, name, other)
            curves += learning
            details |= {f"{name} {key}".strip(): value for key, value in {**attacker.notes(), **sign}.items()}
            fitting += fit_seconds
            if not (part.outside and part.eve.everyone and part.simulates(attacker)):
                evidence[name] = found
                continue
            second = part_of(name, OWNERS_FORM)
            try:
                stage("simulate as the owner")
                simulated = part.in_owners_form(scheme)
                again, attacker, _, learning, fit_seconds = _attack_once(
                    part, attack, simulated, second, part, owners_form=True
                )
            except NotApplicable as reason:
                evidence[name], details[second] = found, f"not trained: {reason}"
                continue
            evidence |= {part_of(name, EVES_FORM): found, second: again}
            curves += learning
            details[second] = dict(attacker.notes())
            fitting += fit_seconds
        seconds = {"attack": fitting, "score": time.perf_counter() - start - fitting}
        details["pairs counted by"] = engine()
        details[LEARNING] = curves
        details |= _budget(bench, attack, curves, fitting / max(1, len(curves)))
        return Measurement(evidence, details, seconds, _knowledge(bench, attack, parts))

    @classmethod
    def samples(cls) -> Iterator[PairEvidence]:
        """Plausible counts of random scores, with and without exchanged people."""
        n = 96  # half of them have more than a thousand wrong pairs
        subjects = torch.arange(n) // 3
        links = torch.stack((torch.arange(n), torch.randperm(n, generator=generator(0))), dim=1)
        halves = half_samples(subjects, n, 4, seed=1)
        counts = [[_sample_counts(len(half), key) for half in halves] for key in range(2)]
        identified = (torch.rand(2, n // 3, generator=generator(2)) < 0.3).double()
        luck = torch.full((2, n // 3), 0.1, dtype=torch.float64)
        risk = PersonRisk(identified, luck, luck[0], {"sex": {"female": torch.arange(n // 3) % 2 == 0}})
        own = [_sample_counts(n, key) for key in range(2)]
        sets = [[_sample_counts(n, key + number) for number in range(9)] for key in range(2)]
        areas = ExchangedAreas("patient", torch.rand(100, generator=generator(3), dtype=torch.float64), "0" * 16)
        for whole, permuted in ((own, sets), ([], [])):
            images, patients = (
                PairLevel(counts, pairs, whole, permuted, full=own, owners=[subjects, subjects])
                for pairs in (links, patient_links(links, subjects))
            )
            yield PairEvidence(
                (n, n), images, patients, halves, persons=subjects, known=True, draws=1, resamples="", seed=1,
                primary=images, people=risk, exchanged=areas if permuted else None,
                trainings=(0, 1) if permuted else (),
            )  # fmt: skip


def _sample_counts(n: int, key: int) -> PairCounts:
    """Plausible counts for an n x n grid with distinct scores."""
    others = torch.full((2 * n + 1,), (n * n - n) // (n + 1))
    others[1::2] = 0
    top_1 = torch.rand(n, generator=generator(key)).double()
    return PairCounts((n, n), torch.ones(n, dtype=torch.int64), others, top_1, torch.arange(1, n + 1).double())


def _attack_once(
    bench: Workbench, attack: Attack, scheme: Scheme, name: str, other: Workbench, *, owners_form: bool = False
) -> tuple[PairEvidence, Attacker, Mapping[str, int | float | str], list[JsonValue], float]:
    """Evidence, the last attacker, notes on signs, curves, seconds of fitting.

    In the owner's form all rows that the attack may simulate with are the owner's, and `scheme` has the simulations.
    `other` makes the release that Eve holds where two are linked.
    """
    earlier = scheme if other is bench else other.scheme()
    first = bench.sealed(scheme, 0)
    if first.links is None:
        raise NotApplicable(
            f"{attack.name} matches pairs, and {bench.method.name} releases rows without a raw original"
        )
    if attack.uses_labels and first.release.labels is None:
        raise NotApplicable(f"{attack.name} reads released labels, and {bench.method.name} releases none")
    held = bench.held
    n = len(held.rows)
    if bench.outside and n > len(bench.private):
        raise NotApplicable(
            f"another author's method is asked for {len(bench.private)} rows at a time, as its owner asks, and Eve "
            f"holds {n}"
        )
    order = bench.secret("candidates").stream().permutation(n)
    candidates = held.rows.take(order.to(held.rows.samples.device))
    pairs = renumbered(held.pairs, raw=order.argsort())
    labelled = attack.uses_labels or bench.method.uses_labels or bench.method.needs_labels
    hidden = replace(candidates.nameless(), labels=candidates.labels if labelled else None)
    guarded = replace(bench, private=candidates)
    eve = bench.eve
    if owners_form:
        view = View(_as_public(hidden, bench.public), scheme, hidden, hidden, bench.trained, str(eve))
    else:
        known = None if held.known is None else bench.private.take(held.known.to(bench.device)).nameless()
        if known is not None and not len(known):
            raise NotApplicable(f"none of the pairs that Eve knows under {eve} is among the rows of {name}")
        view = View(
            bench.public, bench.for_eve(scheme), hidden, bench.control.nameless(), bench.trained, str(eve),
            known if known is None or labelled else replace(known, labels=None),
            eve.queries if isinstance(eve, Oracle) else 0, None if other is bench else earlier,
        )  # fmt: skip
    names = [attack.name] if bench.finding is None else [attack.name, bench.finding]
    trainings = min(attack.trainings, bench.preset.keys)
    # Keys are dealt to trainings with a seed each, one after the other.
    dealt = [number * trainings // bench.preset.keys for number in range(bench.preset.keys)]
    learning: list[JsonValue] = []
    seconds = 0.0
    subjects = None if candidates.subjects is None else candidates.subjects.cpu()
    drawn = _halves(bench)
    samples = [order.argsort()[rows].sort().values for rows in drawn]
    persons, groups = persons_of(held.rows)[order], held.attributes
    identities = persons_of(candidates)
    counts_by_notion: dict[str, list[list[PairCounts]]] = {}
    exchanged: dict[str, list[list[PairCounts]]] = {}
    owners: dict[str, list[torch.Tensor]] = {}
    full: dict[str, list[PairCounts]] = {}
    guesses: list[Named] = []
    areas: list[torch.Tensor] = []
    primary: Literal["image", "patient"] = "image"
    if not bench.eve.same_image or int(persons.max()) + 1 < n:
        primary = "patient"
    seed_of_people = bench.seed("exchanged people")
    renamed, counted = exchanged_people(subjects, n, seed=seed_of_people), exchangeable(subjects, n)
    sets = min(max(FEWEST_SETS, math.ceil(ARRANGEMENTS ** (1 / bench.preset.keys))), MOST_SETS)
    exchange = Exchange(subjects, primary, renamed, counted)
    turned: bool = False
    sign_notes: dict[str, int | float | str] = {}
    for number in range(bench.preset.keys):
        if dealt.index(dealt[number]) == number or eve.relinks:
            if eve.relinks:
                view = replace(view, candidates=other.earlier(earlier, number).take(order.to(bench.device)).nameless())
                guarded = replace(bench, private=view.candidates)
            stage("attack")
            start, seed = time.perf_counter(), bench.seed("attack", *names, *([dealt[number]] if dealt[number] else []))
            attacker = guarded.untouched(attack.name, partial(attack.fit, view, seed))
            seconds += time.perf_counter() - start
            training = f"training {dealt[number] + 1}" if trainings > 1 else ""
            # Another author's method could answer Eve so that her attack turns to the wrong side; and of an earlier
            # release, or one by another tool, she cannot make another.
            if not bench.outside and not eve.relinks and bench.recorded is None:
                turned, notes = _wrong_sign(guarded, attack, attacker, view, exchange)
                sign_notes |= {f"{training} {note}".strip(): value for note, value in notes.items()}
        told = tell(
            bench, view, bench.sealed(scheme, number), held.known, pairs, partial(bench.key, scheme, number), attacker
        )
        sealed = _of_candidates(told.sealed, pairs)
        stage("score")
        sealed_rows = sealed.release if labelled else replace(sealed.release, labels=None)
        scores = guarded.untouched(attack.name, partial(told.score, attacker, sealed_rows))
        if tuple(scores.shape) != (n, len(sealed.release)):
            raise ContractError(f"{attack.name} must score {(n, len(sealed.release))} pairs, got {tuple(scores.shape)}")
        scores = tabled(TurnedScores(scores) if turned else scores)
        parts = [_links(sealed, rows, subjects) for rows in samples]
        if any(not len(pairs) for of in parts for pairs in of.values()):
            raise NotApplicable(
                f"{bench.method.name} releases too few of the rows: none is linked in a data sample of half the people"
            )
        grids = [
            Grid(rows, torch.unique(of["images"][:, 1]), list(of.values()))
            for rows, of in zip(samples, parts, strict=True)
        ]
        others = _exchanged(sealed, subjects, n, sets=sets, seed=bench.seed("exchange", number))
        all_links = _links(sealed, torch.arange(n), subjects)
        notions = [*all_links.values(), *chain(*others.values())]
        grids.append(Grid(torch.arange(n), torch.arange(len(sealed.release)), notions))
        *halves, whole = count_grids(scores, grids)
        for place, notion in enumerate(parts[0]):
            counts_by_notion.setdefault(notion, []).append([of_sample[place] for of_sample in halves])
            full.setdefault(notion, []).append(whole[place])
            owners.setdefault(notion, []).append(_owners(all_links[notion], persons))
        for place, notion in enumerate(others):
            first_set = len(all_links) + place * (1 + sets)
            exchanged.setdefault(notion, []).append(whole[first_set : first_set + 1 + sets])
        found_areas = exchange.areas(scores, all_links["images"], bench.seed("ranked pairs", number))
        if found_areas is not None:
            areas.append(found_areas)
        owned = owned_rows(all_links["images"], identities)
        named = guarded.untouched(attack.name, partial(first_guesses, scores, identities, owned))
        guesses.append(told_apart(Named(named, owned), distinct(sealed.release.samples.flatten(1))[1]))
        if number + 1 == bench.preset.keys or dealt[number + 1] != dealt[number] or eve.relinks:
            learning += learning_of(attack, attacker, f"{name} {training}".strip())
        del scores  # frees what the attacker holds of this release
        report("score", number + 1, bench.preset.keys)
    first = known_apart(first, held.known, pairs[:, 1])[0]
    links = _links(_of_candidates(first, pairs), torch.arange(n), subjects)
    # If one key leaves no people to exchange, all keys go without.
    exchanged = {notion: by_key for notion, by_key in exchanged.items() if len(by_key) == bench.preset.keys}
    levels = {
        notion: PairLevel(
            counts,
            links[notion],
            whole=[own for own, *_ in exchanged.get(notion, [])],
            permuted=[rest for _, *rest in exchanged.get(notion, [])],
            full=full[notion],
            owners=owners[notion],
        )
        for notion, counts in counts_by_notion.items()
    }
    evidence = PairEvidence(
        shape=(n, len(first.release)),
        images=levels["images"],
        patients=levels.get("patients"),
        primary=levels.get("primary"),
        samples=samples,
        persons=persons,
        known=subjects is not None,
        draws=bench.seed("people drawn"),
        resamples=name_of(torch.stack([torch.isin(torch.arange(n), rows) for rows in drawn])),
        seed=bench.seed("null", *names),
        exchanged=ExchangedAreas(
            primary,
            torch.stack(areas).mean(dim=0),
            name_of(torch.cat((persons, torch.tensor([seed_of_people, len(renamed), bench.preset.keys])))),
        )
        if areas
        else None,
        people=found_people(guesses, candidates, None if groups is None else groups.take(order)),
        trainings=dealt if learning else (),  # an attack that only chooses has a seed too
    )
    return evidence, attacker, sign_notes, learning, seconds


def _budget(bench: Workbench, attack: Attack, curves: list[JsonValue], seconds: float) -> dict[str, JsonValue]:
    """A note if an attack trained for less than the method."""
    if not attack.learns:
        return {}
    trainings = curves_of({LEARNING: curves}) or ()
    fewest, theirs = min(curve.points[-1][0] for curve in trainings), bench.fitted()[1]
    if all(curve.reason.startswith("solved") for curve in trainings):
        return {}
    if bench.trained > fewest:
        return {"a smaller budget": f"the attack trained for {fewest} steps and the method for {bench.trained} steps"}
    if not bench.trained and theirs > max(seconds, SHORT):
        return {"a smaller budget": f"the attack trained for {seconds:.3g} and the method for {theirs:.3g} seconds"}
    return {}


def _as_public(candidates: Dataset, public: Dataset) -> Dataset:
    """The candidates in place of public rows, with unknown labels if unshown."""
    if candidates.labels is not None or public.labels is None:
        return candidates
    unknown = public.labels.new_full((len(candidates), len(public.findings)), torch.nan)
    return replace(candidates, labels=unknown, findings=public.findings, exclusive=public.exclusive)


@dataclass(frozen=True, eq=False)
class Exchange:
    """Exchanges of people: `bench.pairs.exchanged_areas`, and the level of the primary figure."""

    subjects: torch.Tensor | None
    primary: Literal["image", "patient"]
    renamed: torch.Tensor
    counted: torch.Tensor

    def areas(self, scores: PairScores, links: torch.Tensor, seed: int) -> torch.Tensor | None:
        """(1 + sets,) areas of image links; None without an exchangeable row."""
        if self.primary == "patient" and self.subjects is not None:
            links = patient_links(links, self.subjects)
        links = links[self.counted[links[:, 0]]]
        return exchanged_areas(scores, links, self.renamed, seed=seed) if len(links) else None


def _wrong_sign(
    bench: Workbench, attack: Attack, attacker: Attacker, view: View, exchange: Exchange
) -> tuple[bool, dict[str, int | float | str]]:
    """True if the attack surely errs on Eve's own key; notes.

    She releases her candidates under a key that she draws, and knows its links. An attack that errs surely has
    information: its scores are turned for every key of the owner.
    """
    secret = Secret.of_seed(bench.seed("attack", attack.name, bench.finding or ""), "sign")
    key, candidates = view.scheme.sample_key(secret.derive("key")), torch.arange(len(view.candidates))
    known, released = None, view.candidates
    people = bench.private.subjects if bench.method.uses_subjects else None  # the method is called as by its owner
    if people is not None:
        released = replace(released, subjects=people)
    if view.known is not None:
        more, known = view.known, len(candidates) + torch.arange(len(view.known))
        if people is not None:  # people of their own, for Eve does not know whose other images she holds
            more = replace(more, subjects=people.max() + 1 + torch.arange(len(more), device=people.device))
        released = joined(released, more)
    own = seal(key.release(released), secret.derive("seal"))
    if own.links is None:
        return False, {}
    pairs = torch.stack((candidates, candidates), dim=1)
    told = tell(bench, view, own, known, pairs, lambda: key, attacker)
    own = _of_candidates(told.sealed, pairs)
    assert own.links is not None
    rows = own.release if view.candidates.labels is not None else replace(own.release, labels=None)
    scores = bench.untouched(attack.name, partial(told.score, attacker, rows))
    areas = exchange.areas(tabled(scores), own.links.cpu(), bench.seed("ranked pairs"))
    if areas is None:
        return False, {}
    low = float(areas[1:].mean() - areas[0]) / max(float(areas[1:].std(correction=0)), 1e-12)
    p = 0.5 * math.erfc(low / math.sqrt(2))
    notes: dict[str, int | float | str] = {"ReID AUC on a key of Eve's own": float(areas[0])}
    if p < WRONG:
        notes["sign"] = "turned, for the attack is surely worse than chance on a key of Eve's own"
    return p < WRONG, notes


def _halves(bench: Workbench) -> list[torch.Tensor]:
    """Rows of each data sample, the same for every method and attack."""
    rows = bench.held.rows
    subjects = None if rows.subjects is None else rows.subjects.cpu()
    return half_samples(subjects, len(rows), bench.preset.samples, seed=bench.seed("data samples"))


def _owners(links: torch.Tensor, persons: torch.Tensor) -> torch.Tensor:
    """Person (c,) of each linked released row, ascending; the first of several."""
    first = torch.full((int(links[:, 1].max()) + 1,), len(persons))
    first = first.scatter_reduce(0, links[:, 1], links[:, 0], "amin")
    return persons[first[first < len(persons)]]


def _of_candidates(sealed: Sealed, pairs: torch.Tensor) -> Sealed:
    """The sealed release on the CPU, with links to candidates.

    `pairs` (p, 2) names the candidate of each raw row, one at most.
    """
    if sealed.links is None:
        raise ContractError("a method must give links under every key or under none")
    links = sealed.links.cpu()
    candidate = torch.full((int(torch.cat((links[:, 0], pairs[:, 1])).max()) + 1,), -1)
    candidate[pairs[:, 1]] = pairs[:, 0]
    links = renumbered(links, raw=candidate)
    known = links[:, 0] >= 0
    return Sealed(sealed.release, links[known], None if sealed.primary is None else sealed.primary.cpu()[known])


def _links(sealed: Sealed, rows: torch.Tensor, subjects: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """True pairs of a data sample by notion: images, patients, primary."""
    assert sealed.links is not None
    links = sealed.links
    inside = torch.isin(links[:, 0], rows)
    pairs = {"images": links[inside]}
    if subjects is not None:
        pairs["patients"] = patient_links(pairs["images"], subjects)
    if sealed.primary is not None:
        pairs["primary"] = links[inside & sealed.primary]
    return pairs


def _exchanged(
    sealed: Sealed, subjects: torch.Tensor | None, n: int, *, sets: int, seed: int
) -> dict[str, list[torch.Tensor]]:
    """Pairs of exchangeable people by notion: true, then `sets` times exchanged."""
    links = _links(sealed, torch.arange(n), None)
    sets_by_notion = {name: exchanged_links(pairs, subjects, n, sets=sets, seed=seed) for name, pairs in links.items()}
    if subjects is not None:
        sets_by_notion["patients"] = [patient_links(pairs, subjects) for pairs in sets_by_notion["images"]]
    return {name: pairs for name, pairs in sets_by_notion.items() if pairs}


def _knowledge(bench: Workbench, attack: Attack, parts: dict[str, Workbench]) -> dict[str, str]:
    """Eve's knowledge, for the record."""
    rows = [len(part.held.rows) for part in parts.values()]
    many = f"{rows[0]} raw images" if not attack.uses_labels else (
        "balanced raw images of " + ", ".join(f"{name} ({count})" for name, count in zip(parts, rows, strict=True))
    )  # fmt: skip
    return {
        "eve": attack.knowledge,
        "profile": f"{bench.eve}: Eve holds {bench.eve.holds}; a correct pair is {bench.eve.pair}",
        "candidates": f"the {many} of the release (worst case)"
        if bench.eve.everyone
        else many
        if bench.eve.images
        else f"{rows[0]} rows of another release",
        "public": bench.public_rows,
        "control": f"{len(bench.control)} rows known not to be released",
        "scheme": "known; she draws her own keys from it" if bench.recorded is None else BY_ANOTHER_TOOL,
        "key": f"unknown: scored on {bench.preset.keys} keys that she never saw",
        "labels": "raw and released labels"
        if attack.uses_labels
        else "raw and released labels, for the released samples depend on them"
        if bench.method.uses_labels or bench.method.needs_labels
        else "none",
    }
