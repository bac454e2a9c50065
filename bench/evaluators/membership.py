"""The membership evaluators: Eve scores candidates by their likelihood of membership.

Source: the membership game of Carlini et al. 2022 (section II). The owner's rows are the members, rows of other people
of the same collection are the others, and Eve, who knows the scheme, ranks both.

`membership` plays it against a release in place of a model, once for every attack. `classifier-membership` plays it
against a classifier, where one is published and no release is: Eve asks it for every candidate and compares its answers
with those of classifiers that she trains herself (`bench.eve.shadow_classifiers`).

Members are drawn anew for every key among the people of the private and test rows; the owner releases those, and her
method learns from them. So a figure does not depend on one split or one training.

Another author's method has seen public rows. An attack that asks it for releases works once more without these, and the
worse outcome counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import torch
from pydantic import JsonValue

from bench.contract.preset import Preset
from bench.contract.recorded import BY_ANOTHER_TOOL
from bench.contract.seal import ContractError, Sealed
from bench.eve.shadow_classifiers import ShadowClassifiers, Train, by_heart, checked_answers
from bench.evidence import EVES_FORM, OWNERS_FORM, MembershipEvidence
from bench.progress import report, stage
from bench.randomness import Secret
from bench.rows.grouping import labelled, person_groups, persons_of
from bench.rows.row_sets import joined
from bench.seeds import generator
from bench.statistics.classification_scores import auc
from bench.statistics.confidence_intervals import RARE
from bench.statistics.identification_risk import people_of
from bench.types import (
    LEARNING,
    Attack,
    Attacker,
    Attributes,
    Classifier,
    Dataset,
    Evaluator,
    Measurement,
    NotApplicable,
    Role,
    Scheme,
    View,
    learning_of,
)
from bench.workbench.workbench import Workbench

RECORDED = (
    "the folder says which rows are members, and no draw: if they are of another kind than the others, that looks like "
    "membership; of several releases a candidate's scores are averaged"
)


@dataclass(frozen=True)
class Membership(Evaluator[Workbench]):
    """Membership in the private data: Eve scores candidates, half not members.

    Args:
        attack: Eve's attack.
    """

    name: ClassVar[str] = "membership"
    source: ClassVar[str] = "Carlini et al. 2022, section II"
    evidence: ClassVar[type] = MembershipEvidence
    scores: ClassVar[Literal["pairs", "membership"] | None] = "membership"
    controls: ClassVar[tuple[Role, ...] | None] = "remembers its rows", "forgets its rows"
    attack: Attack

    def keys(self, preset: Preset) -> int:
        """As many as the preset says."""
        return preset.keys

    def measure(self, bench: Workbench) -> Measurement:
        """Fit the attack on Eve's view; score candidates for every key."""
        attack, profile = self.attack, bench.eve
        if not profile.images:
            raise NotApplicable(f"membership asks of images that Eve holds, and under {profile} she holds none")
        scheme = bench.scheme()
        candidates, attributes = pooled(bench)
        members = [drawn_members(bench, candidates, number) for number in range(bench.preset.keys)]

        def sealed(number: int) -> Sealed:
            if bench.recorded is not None:
                return bench.sealed(scheme, number)
            return bench.sealed(scheme, number, candidates.take(members[number].to(bench.device)))

        linked = sealed(0).links is not None  # raises NotApplicable before the attack is fitted
        hidden = candidates.nameless()
        # Rows that complete a call would be members if the release does not show which rows they are in.
        eve = bench.for_eve(scheme, candidates) if linked else scheme
        view = View(_public(bench), eve, hidden, bench.control.nameless())
        guarded = replace(bench, private=hidden)
        inside = [torch.isin(torch.arange(len(candidates)), rows) for rows in members]
        subjects = None if candidates.subjects is None else candidates.subjects.cpu()
        groups = person_groups(candidates, attributes)

        def attacked(view: View) -> tuple[MembershipEvidence, Attacker, float]:
            stage("attack")
            start = time.perf_counter()
            attacker = guarded.untouched(attack.name, lambda: attack.fit(view, bench.seed("attack", attack.name)))
            seconds, scores = time.perf_counter() - start, []
            for number in range(len(members)):
                published = sealed(number).release
                stage("score")
                answer = guarded.untouched(attack.name, partial(attacker.membership, published))
                scores.append(_checked(attack.name, answer, len(candidates)))
                report("score", number + 1, bench.preset.keys)
            seeds = bench.seed("membership", attack.name), bench.seed("membership people")
            if bench.recorded is not None:  # of the same members: further releases are no further draws
                scores = [torch.stack(scores).mean(dim=0)]
            return MembershipEvidence(scores, inside[: len(scores)], subjects, *seeds, groups), attacker, seconds

        start = time.perf_counter()
        found, attacker, fitting = attacked(view)
        evidence, learning = {"": found}, [*learning_of(attack, attacker)]
        details: dict[str, JsonValue] = {
            "members by key": [int(mask.sum()) for mask in inside],
            "candidates": len(candidates),
            **attacker.notes(),
        }
        if bench.outside and bench.simulates(attacker) and len(view.public):
            # The method knows public rows by its training: without them it gets such as it never saw, as an owner's.
            none = view.public.take(torch.arange(0, device=bench.device))
            try:
                again, attacker, further = attacked(replace(view, public=none))
            except NotApplicable as reason:
                details[OWNERS_FORM] = f"not trained: {reason}"
            else:
                evidence = {EVES_FORM: found, OWNERS_FORM: again}
                learning += learning_of(attack, attacker, OWNERS_FORM)
                fitting, details[OWNERS_FORM] = fitting + further, dict(attacker.notes())
        details[LEARNING] = learning
        if bench.recorded is not None:
            details["members"] = RECORDED
        seconds = {"attack": fitting, "score": time.perf_counter() - start - fitting}
        return Measurement(evidence, details, seconds, _knowledge(bench, attack))

    @classmethod
    def samples(cls) -> Iterator[MembershipEvidence]:
        """Random scores, equal scores, and scores that name every member."""
        subjects = torch.arange(48) // 3
        members = subjects % 4 != 0
        random = generator(0)
        scores = [torch.rand(48, generator=random).double() for _ in range(2)]
        groups = {"sex": {"female": torch.arange(16) < 10}}
        yield MembershipEvidence(scores, [members, subjects % 4 != 1], subjects, 1, 1, groups)
        yield MembershipEvidence([torch.zeros(48, dtype=torch.float64)], [members], None, 1, 1)
        yield MembershipEvidence([members.double()], [members], subjects, 1, 1)


CONTROL_KEYS = 4
EXCHANGES = 1999
MOST_SHADOWS = 32
CLOSE, MORE_THAN_NOISE = 1e-3, 2.0
"""Up to this part of the largest, and so many times what two equal questions differ, answers are the same."""
BY_HEART, OF_OTHERS = "knows its rows by heart", "learned from other rows"
"""The classifiers on which the attack must find members, and none: the latter checks the draw and its p alone."""
CONTROLS = "controls"
NO_CLASSIFIER, REFUSED = "publishes no classifier", "refused to train on"


@dataclass(frozen=True)
class ClassifierMembership(Evaluator[Workbench]):
    """Membership in the training rows of a published classifier, by its answers.

    Its controls are part of it: on a classifier that knows the same members by heart the attack must tell them from
    others, and on one that learned from control rows it must not. Else there is no figure.

    Another author's method could tell these calls from Bob's. So all train on as many rows as there are private ones,
    and what a classifier answers for a row may not depend on the rows beside it.
    """

    name: ClassVar[str] = "classifier-membership"
    source: ClassVar[str] = "Carlini et al. 2022, algorithm 1"
    evidence: ClassVar[type] = MembershipEvidence

    def keys(self, preset: Preset) -> int:
        """As many as the preset says."""
        return preset.keys

    def measure(self, bench: Workbench) -> Measurement:
        """Train shadow classifiers; score candidates for every key.

        Members are drawn as for `Membership`. Rows without a known label are asked of no classifier.
        """
        if not bench.eve.same_image:
            raise NotApplicable(f"a classifier is asked for its own rows, and under {bench.eve} Eve does not hold them")
        if bench.recorded is not None:
            raise NotApplicable(f"{bench.method.name} {NO_CLASSIFIER}")
        scheme, start = bench.scheme(), time.perf_counter()
        whole, attributes = pooled(bench)
        members = [self._members(bench, whole, number) for number in range(bench.preset.keys)]

        def published(number: int) -> Classifier:
            rows = whole.take(members[number].to(bench.device))
            return _trained(bench, scheme, bench.secret("drawn key", number), rows)

        stage("classifier")
        first = published(0)  # raises NotApplicable before anything is trained for the attack
        kept, control = _asked(whole, bench.control), bench.control
        candidates = whole.take(kept)
        inside = [torch.isin(kept.cpu(), rows.cpu()) for rows in members]
        shadows = max(4, min(MOST_SHADOWS, 4 * bench.preset.keys))
        seed = bench.seed("attack", self.name)

        def learned(train: Train) -> ShadowClassifiers:
            return ShadowClassifiers.fit(train, whole, kept, control, len(bench.private), shadows, seed)

        stage("attack")
        attack = learned(lambda secret, rows: _trained(bench, scheme, secret, rows))
        fitted = time.perf_counter()
        scores = []
        for number in range(bench.preset.keys):
            heard = Heard(first if number == 0 else published(number))
            scores.append(_checked(self.name, attack.scores(heard), len(kept)))
            if bench.outside:
                heard.check_apart(bench.method.name, ~inside[number])
            report("score", number + 1, bench.preset.keys)
        scored = time.perf_counter()
        stage("controls")
        held = _controls(bench, learned(by_heart), candidates, inside)
        subjects = None if candidates.subjects is None else candidates.subjects.cpu()
        groups = person_groups(candidates, None if attributes is None else attributes.take(kept.cpu()))
        seeds = bench.seed("membership", self.name), bench.seed("membership people")
        details: dict[str, JsonValue] = {
            "members by key": [int(mask.sum()) for mask in inside],
            "candidates": len(candidates),
            "without a label": len(whole) - len(candidates),
            "shadow classifiers": shadows,
            "AUC on shadow classifiers": attack.learned.auc,
            CONTROLS: held,
        }
        seconds = {"attack": fitted - start, "score": scored - fitted, "controls": time.perf_counter() - scored}
        return Measurement(
            {"": MembershipEvidence(scores, inside, subjects, *seeds, groups)}, details, seconds,
            {
                "eve": "the candidates with their labels, the control rows, the classifier's answers for any row, and "
                "the scheme, by which she trains classifiers of her own",
                "candidates": f"{len(candidates)} rows in random order; about {len(members[0])} of {len(whole)}, of "
                "people drawn anew for every key, are the owner's",
                "control": f"{len(control)} further rows known not to be the owner's",
                "key": f"unknown: scored on {bench.preset.keys} classifiers that she did not train",
            },
        )  # fmt: skip

    @staticmethod
    def _members(bench: Workbench, whole: Dataset, number: int) -> torch.Tensor:
        """Members (int64) under that key.

        Of another author's method as many rows as are private.
        """
        if not bench.outside:
            return drawn_members(bench, whole, number)
        person, wanted = persons_of(whole), len(bench.private)
        sizes, chosen = torch.bincount(person).tolist(), list[int]()
        for one in bench.secret("members", number).stream().permutation(len(sizes)).tolist():
            if sizes[one] <= wanted:
                chosen.append(one)
                wanted -= sizes[one]
        return torch.isin(person, torch.tensor(chosen)).nonzero()[:, 0]

    @classmethod
    def samples(cls) -> Iterator[MembershipEvidence]:
        """As of `Membership`."""
        yield from Membership.samples()


def _trained(bench: Workbench, scheme: Scheme, secret: Secret, rows: Dataset) -> Classifier:
    """A classifier of these rows.

    Raises:
        NotApplicable: The method publishes none, or refuses these rows.
        ContractError: It publishes one of the private rows alone.
    """
    name = bench.method.name
    try:
        found = bench.untouched(name, lambda: scheme.sample_key(secret).classifier(rows))
    except NotApplicable as reason:
        raise NotApplicable(f"{name} {REFUSED} {len(rows)} rows: {reason}") from reason
    if found is not None:
        return found
    if bench.outside and bench.untouched(name, lambda: bench.key(scheme, 0).classifier(bench.private)) is not None:
        raise ContractError(f"{name} publishes a classifier of the private rows, and none of other rows like them")
    raise NotApplicable(f"{name} {NO_CLASSIFIER}")


def none_published(reason: str | None) -> bool:
    """True if the judge's reason is that no classifier is published."""
    return reason is not None and reason.endswith(NO_CLASSIFIER) and REFUSED not in reason


def _asked(whole: Dataset, control: Dataset) -> torch.Tensor:
    """The candidates (int64) with a label. Raises NotApplicable without any."""
    if whole.labels is None or control.labels is None:
        raise NotApplicable("a classifier's answers are compared with labels, and the data set has none")
    kept = labelled(whole.labels)
    if not len(kept) or not len(labelled(control.labels)):
        raise NotApplicable("a classifier's answers are compared with labels, and all of them are withheld")
    return kept


@dataclass(eq=False)
class Heard:
    """A classifier whose first answers are kept."""

    classify: Classifier
    samples: torch.Tensor | None = None
    answers: torch.Tensor | None = None

    def __call__(self, samples: torch.Tensor) -> torch.Tensor:
        """The answers; kept if nothing was heard before."""
        found = self.classify(samples)
        if self.samples is None:
            self.samples, self.answers = samples, found
        return found

    def check_apart(self, name: str, others: torch.Tensor) -> None:
        """Raise ContractError if answers depend on the rows beside them.

        Rows in `others` (n,) bool, none of them learned, are asked twice more, by themselves. What another author's
        method is asked carries noise that is the same only for equal questions, so that the second leaves a row out.
        """
        assert self.samples is not None
        assert self.answers is not None
        chosen, rows = others.to(self.samples.device), self.samples[others.to(self.samples.device)]
        among = self.answers[chosen].double()
        if len(rows) < 2:
            return
        alone, fewer = (checked_answers(self.classify, asked, among.shape[1]).double() for asked in (rows, rows[1:]))
        noise, moved = (difference.square().mean().sqrt() for difference in (fewer - alone[1:], among - alone))
        spread = alone.abs().max()
        if bool(moved > MORE_THAN_NOISE * noise + CLOSE * spread):
            raise ContractError(
                f"the classifier of {name} must answer every row by itself: its answers for {len(rows)} rows changed "
                "when rows that it was trained on stood beside them"
            )


def _controls(
    bench: Workbench, attack: ShadowClassifiers, candidates: Dataset, inside: Sequence[torch.Tensor]
) -> dict[str, JsonValue]:
    """The attack's AUC and p on both of its controls.

    Raises:
        NotApplicable: It misses the members of the one, or finds some in the other.
    """
    keys = range(min(CONTROL_KEYS, len(inside)))
    control, device = bench.control.nameless(), candidates.samples.device
    people = persons_of(candidates).cpu()

    def told(what: str, rows: Callable[[int], Dataset]) -> tuple[float, float]:
        scores = [
            _checked(what, attack.scores(by_heart(bench.secret("control", what, key), rows(key))), len(candidates))
            for key in keys
        ]
        seed = bench.seed("controls", what)
        return _told(MembershipEvidence(scores, inside[: len(keys)], people, seed, seed))

    known = told(BY_HEART, lambda key: candidates.take(inside[key].nonzero()[:, 0].to(device)).nameless())
    others = told(OF_OTHERS, lambda _: control)
    figures = "on a classifier that {} it has AUC {:.3f} (p = {:.4f})"
    if known[1] >= RARE:
        raise NotApplicable(f"the attack is not shown to work here: {figures.format(BY_HEART, *known)}")
    if others[1] < RARE:
        raise NotApplicable(f"the attack finds what is not there: {figures.format(OF_OTHERS, *others)}")
    return {what: {"AUC": area, "p": p} for what, (area, p) in ((BY_HEART, known), (OF_OTHERS, others))}


def _told(evidence: MembershipEvidence) -> tuple[float, float]:
    """Mean AUC for members, and how often exchanged people do as well."""
    people, areas, total = people_of(evidence), list[float](), 0.0
    drawn = torch.zeros(EXCHANGES, dtype=torch.float64)
    for key, (scores, members) in enumerate(zip(evidence.scores, evidence.members, strict=True)):
        area = auc(scores, members.double())
        areas.append(0.5 if area is None else area)
        ranks = torch.unique(scores, return_inverse=True)[1].double()
        by_person = torch.zeros(people.members.shape[1], dtype=torch.float64)
        by_person.index_add_(0, people.codes, ranks - ranks.mean())
        total += float(by_person[people.members[key]].sum())
        drawn += torch.cat([by_person[chosen].sum(dim=1) for chosen in people.exchanged(key, EXCHANGES, evidence.seed)])
    p = (1 + int((drawn >= total).sum())) / (1 + EXCHANGES)
    return fmean(areas), p


def _public(bench: Workbench) -> Dataset:
    """The public rows as Eve knows them.

    She may release control and public rows together. For another author's method they are no more than the owner's.
    """
    if not bench.outside or not len(bench.public):
        return bench.public
    return bench.public.take(
        torch.arange(min(len(bench.public), max(1, len(bench.private) - len(bench.control))), device=bench.device)
    )


def drawn_members(bench: Workbench, candidates: Dataset, number: int) -> torch.Tensor:
    """Members (int64) under that key, as many people as are private.

    Of releases by another tool, the private rows.
    """
    if bench.recorded is not None:
        order = _order(len(candidates), bench.secret("membership candidates"))
        return (order < len(bench.private)).nonzero()[:, 0]
    person = persons_of(candidates)
    order = bench.secret("members", number).stream().permutation(int(person.max()) + 1)
    chosen = order[: int(persons_of(bench.private).max()) + 1]
    return torch.isin(person, chosen).nonzero()[:, 0]


def pooled(bench: Workbench) -> tuple[Dataset, Attributes | None]:
    """Private and test rows, shuffled, labels withheld alike; and their groups."""
    private = bench.private if bench.natural is None else replace(bench.private, labels=bench.natural)
    whole, order = mixed(private, bench.test, bench.secret("membership candidates"))
    groups = bench.attributes
    attributes = groups["private"].followed_by(groups["test"]).take(order) if groups else None
    return bench.as_owned(whole, "membership"), attributes


def mixed(private: Dataset, others: Dataset, secret: Secret) -> tuple[Dataset, torch.Tensor]:
    """Both sets shuffled into one, and the order (n + t,)."""
    whole = joined(private, others)
    order = _order(len(whole), secret)
    return whole.take(order.to(whole.samples.device)), order


def _order(count: int, secret: Secret) -> torch.Tensor:
    return secret.stream("order").permutation(count)


def _checked(name: str, scores: object, n: int) -> torch.Tensor:
    """The scores as (n,) float64 on the CPU."""
    if not isinstance(scores, torch.Tensor) or scores.shape != (n,) or not scores.is_floating_point():
        kind = f"{scores.dtype} {tuple(scores.shape)}" if isinstance(scores, torch.Tensor) else type(scores).__name__
        raise ContractError(f"{name} must score {n} candidates, one float32 or float64 number each, got {kind}")
    bad = (~scores.isfinite()).nonzero()
    if len(bad):
        raise ContractError(f"{name} gave {len(bad)} scores that are not finite, the first for candidate {int(bad[0])}")
    return scores.detach().to("cpu", torch.float64)


def _knowledge(bench: Workbench, attack: Attack) -> dict[str, str]:
    """Eve's knowledge, for the record."""
    n, t = len(bench.private), len(bench.test)
    labelled = bench.private.labels is not None
    return {
        "eve": attack.knowledge,
        "candidates": f"{n + t} rows in random order; {n} of them are the owner's, as the folder says"
        if bench.recorded is not None
        else f"{n + t} rows in random order; about {n} of them, of people drawn anew for every key, are the owner's",
        "public": f"{len(_public(bench))} of {bench.public_rows}" if bench.outside else bench.public_rows,
        "control": f"{len(bench.control)} further rows known not to be the owner's",
        "scheme": "known; she draws her own keys from it, and releases rows of her choice under them"
        if bench.recorded is None
        else BY_ANOTHER_TOOL,
        "key": f"unknown: scored on {bench.preset.keys} keys that she never saw",
        "labels": "of candidates and of the release" if labelled else "none",
    }
