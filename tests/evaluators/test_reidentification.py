"""The attack evaluator on small made-up cells: what Eve sees, task by task, and what the record says.

Equal rows are found by their digests as by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import pytest
import torch
from made.cells import laid_out
from torch import Tensor

from bench.contract.attributes import Attributes
from bench.contract.mechanism import Mechanism
from bench.contract.preset import PRESETS
from bench.contract.seal import ContractError
from bench.evaluators.reidentification import Reidentification
from bench.evidence import EVES_FORM, OWNERS_FORM, PairEvidence, part_of
from bench.leak_search import search
from bench.leak_search.search import groups
from bench.pairs.score_matrices import CosineScores
from bench.pairs.sweep import engine
from bench.randomness import Secret
from bench.runs.judge import judge
from bench.statistics.confidence_intervals import RARE
from bench.types import (
    Attack,
    Attacker,
    Dataset,
    Key,
    LearningCurve,
    Method,
    Metric,
    NotApplicable,
    Release,
    Scheme,
    Score,
    State,
    View,
    curves_of,
    paired,
)
from bench.workbench.workbench import Workbench
from methods.dp_simple import DPSimple
from methods.identity import Identity
from metrics.guesswork import Guesswork, PatientGuesswork
from metrics.pair_roc import PatientReidAUC, ReidAUC

NAN = float("nan")


@dataclass(frozen=True)
class Mixes(Method):
    """Each released row is raw row i plus half of raw row i + 1."""

    name: ClassVar[str] = "mixes"
    source: ClassVar[str] = "a test"

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return MixesScheme()

    def load(self, state: State) -> Scheme:
        return MixesScheme()


@dataclass(frozen=True)
class Conditional(Identity):
    """Declares that its samples depend on labels."""

    uses_labels: ClassVar[bool] = True


class MixesScheme(Scheme):
    def sample_key(self, secret: Secret) -> Key:
        return MixesKey()

    def load_key(self, state: State) -> Key:
        return MixesKey()


class MixesKey(Key):
    def release(self, private: Dataset) -> Release:
        rows = torch.arange(len(private))
        other = rows.roll(-1)
        links = torch.cat((torch.stack((rows, rows), dim=1), torch.stack((other, rows), dim=1)))
        primary = torch.arange(len(links)) < len(rows)
        return Release(private.samples + 0.5 * private.samples[other], private.labels, links, primary)

    def state(self) -> Mapping[str, Tensor]:
        return {}


@dataclass(frozen=True)
class Looks(Attack):
    """Remembers what it was shown, and compares rows."""

    name: ClassVar[str] = "looks"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "what it is shown"
    labels: bool = False

    @property
    def uses_labels(self) -> bool:  # type: ignore[override]
        return self.labels

    def fit(self, view: View, seed: int) -> Attacker:
        SEEN.append(view)
        return LooksAttacker(view)


SEEN: list[View] = []


@dataclass(frozen=True)
class LooksAttacker(Attacker):
    view: View

    def score(self, sealed: Release) -> CosineScores:
        SEALED.append(sealed)
        return CosineScores(self.view.candidates.samples.flatten(1), sealed.samples.flatten(1))

    def notes(self) -> Mapping[str, int | float | str]:
        return {"rows": len(self.view.candidates)}


SEALED: list[Release] = []


@dataclass(frozen=True)
class Scribbles(Looks):
    def fit(self, view: View, seed: int) -> Attacker:
        view.candidates.samples.zero_()
        return super().fit(view, seed)


class KeepsOne(Identity):
    def fit(self, public: Dataset, seed: int) -> Scheme:
        return KeepsOneScheme()

    def load(self, state: State) -> Scheme:
        return KeepsOneScheme()


class KeepsOneScheme(MixesScheme):
    def sample_key(self, secret: Secret) -> Key:
        return KeepsOneKey()


class KeepsOneKey(MixesKey):
    def release(self, private: Dataset) -> Release:
        return paired(private.samples[:1], None)


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Workbench]:
    SEEN.clear()
    SEALED.clear()

    def make(labels: Tensor | None, *, exclusive: bool = False, preset: str = "smoke") -> Workbench:
        n = 24
        names = () if labels is None else tuple(f"finding {k}" for k in range(labels.shape[1]))

        def part(seed: int) -> Dataset:
            samples = torch.rand(n, 1, 4, 4, generator=torch.Generator().manual_seed(seed))
            return Dataset("made", samples, labels, torch.arange(n) // 2, names, exclusive, True)

        parts = {name: part(seed) for seed, name in enumerate(("public", "private", "control", "test"), 1)}
        sexes = Attributes(("sex",), (("female", "male"),), (torch.arange(n)[:, None] >= 8).long())
        return replace(laid_out(tmp_path, Mixes(), parts, preset), attributes={"private": sexes})

    return make


class Pools(KeepsOne):
    """Every row becomes the mean of its group of four."""

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return PoolsScheme()

    def load(self, state: State) -> Scheme:
        return PoolsScheme()


class PoolsScheme(MixesScheme):
    def sample_key(self, secret: Secret) -> Key:
        return PoolsKey()


class PoolsKey(MixesKey):
    def release(self, private: Dataset) -> Release:
        groups = private.samples.reshape(-1, 4, *private.samples.shape[1:])
        return paired(groups.mean(dim=1).repeat_interleave(4, dim=0), None)


@dataclass(frozen=True)
class Knows(Looks):
    """Knows that row i and the mean of its group belong together, though not the row's place in it."""

    def fit(self, view: View, seed: int) -> Attacker:
        return LooksAttacker(replace(view, candidates=replace(view.candidates, samples=self._pooled(view))))

    def _pooled(self, view: View) -> Tensor:
        raw = PRIVATE[0]
        same = (view.candidates.samples[:, None] == raw[None]).flatten(2).all(dim=2)
        return PoolsKey().release(Dataset("", raw, None, None, (), False, True)).samples[same.int().argmax(dim=1)]


PRIVATE: list[Tensor] = []


def columns(*counts: tuple[int, int]) -> Tensor:
    """(24, k) labels with so many positives and negatives a column, the rest unknown."""
    made = torch.full((24, len(counts)), NAN)
    for k, (positive, negative) in enumerate(counts):
        made[:positive, k], made[positive : positive + negative, k] = 1, 0
    return made


def test_an_attack_without_labels_sees_none_on_either_side(bench: Callable[..., Workbench]) -> None:
    Reidentification(Looks()).measure(bench(columns((6, 6))))
    assert SEEN[0].candidates.labels is None
    assert SEEN[0].candidates.subjects is None
    assert all(sealed.labels is None and sealed.links is None for sealed in SEALED)


def test_first_guesses_say_whom_they_find_and_who_that_is(bench: Callable[..., Workbench]) -> None:
    found = Reidentification(Looks()).measure(replace(bench(columns((6, 6))), method=Identity()))
    people = cast(PairEvidence, found.evidence[""]).people
    assert people is not None
    assert people.found.shape == (PRESETS["smoke"].keys, 12)
    assert people.found.all()
    assert people.luck.tolist() == [[pytest.approx(1 - 22 * 21 / (24 * 23))] * 12] * PRESETS["smoke"].keys
    assert {name: {group: int(of.sum()) for group, of in groups.items()} for name, groups in people.groups.items()} == {
        "sex": {"female": 4, "male": 8}, "finding": {"finding 0": 3}, "images": {"1": 0, "2": 12, "3 and more": 0},
    }  # fmt: skip


def test_every_attack_sees_the_labels_that_released_samples_depend_on(bench: Callable[..., Workbench]) -> None:
    labels = columns((6, 6))
    found = Reidentification(Looks()).measure(replace(bench(labels), method=Conditional()))
    seen = cast(Tensor, SEEN[0].candidates.labels)
    assert seen.nan_to_num(-1).sort(dim=0).values.equal(labels.nan_to_num(-1).sort(dim=0).values)
    assert all(cast(Tensor, sealed.labels).shape == labels.shape for sealed in SEALED)
    assert found.threat_model["labels"].endswith("for the released samples depend on them")
    assert SEEN[0].candidates.subjects is None


def test_an_attack_with_labels_sees_the_balanced_known_rows_of_a_task(bench: Callable[..., Workbench]) -> None:
    found = Reidentification(Looks(labels=True)).measure(bench(columns((6, 9), (4, 5))))
    labels = cast(Tensor, SEEN[0].candidates.labels)
    assert len(SEEN) == 1  # smoke looks at one task: the larger
    assert labels.shape == (12, 1)
    assert labels.sum() == 6
    assert all(cast(Tensor, sealed.labels).shape == (12, 1) for sealed in SEALED)
    # Known rows are of 8 people at most, too few to exchange: no sign is told on a key of Eve's own.
    assert found.details == {"finding 0 rows": 12, "pairs counted by": engine(), "learning": []}
    assert found.threat_model["labels"] == "raw and released labels"
    assert set(found.evidence) == {"finding 0"}


@dataclass(frozen=True)
class Learns(Looks):
    """Says that it took so many steps, and notes its seeds."""

    name: ClassVar[str] = "learns"
    learns: ClassVar[bool] = True
    trainings: ClassVar[int] = 2
    steps: int = 5

    def fit(self, view: View, seed: int) -> Attacker:
        SEEDS.append(seed)
        SEEN.append(view)
        return LearnsAttacker(view, self.steps)


@dataclass(frozen=True, eq=False)
class LearnsAttacker(Attacker):
    view: View
    steps: int

    def score(self, sealed: Release) -> CosineScores:
        return LooksAttacker(self.view).score(sealed)

    def learning(self) -> tuple[LearningCurve, ...]:
        return (LearningCurve("loss", ((self.steps, 1.0),), converged=True, reason="plateau"),)


SEEDS: list[int] = []


def test_keys_are_dealt_to_trainings_with_a_seed_each(bench: Callable[..., Workbench]) -> None:
    SEEDS.clear()
    made = bench(columns((6, 6)))
    found = Reidentification(Learns()).measure(made)
    assert len(SEEDS) == len(set(SEEDS)) == 2
    assert [curve.part for curve in curves_of(found.details) or ()] == ["training 1", "training 2"]
    assert "a smaller budget" not in found.details  # the method trains nothing
    keys = made.preset.keys
    assert found.evidence[""].trainings == [number * 2 // keys for number in range(keys)]  # type: ignore[attr-defined]
    plain = Reidentification(Looks()).measure(made).evidence[""]
    assert plain.trainings == ()  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Chooses(Learns):
    """Trains nothing by steps, and chooses by one seed."""

    name: ClassVar[str] = "chooses"
    learns: ClassVar[bool] = False
    trainings: ClassVar[int] = 1


def test_an_attack_with_a_learning_curve_counts_as_one_training_of_all_keys(bench: Callable[..., Workbench]) -> None:
    made = bench(columns((6, 6)))
    evidence = cast(PairEvidence, Reidentification(Chooses()).measure(made).evidence[""])
    assert evidence.trainings == [0] * made.preset.keys
    assert "of one training of the attack: what trainings vary is left out" in ReidAUC()(evidence).note


def test_an_attack_that_trains_for_fewer_steps_than_the_method_says_so(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workbench, "trained", 6)
    made = bench(columns((6, 6)))
    found = Reidentification(Learns()).measure(made)
    assert found.details["a smaller budget"] == "the attack trained for 5 steps and the method for 6 steps"
    assert [view.trained for view in SEEN] == [6, 6]
    assert "a smaller budget" not in Reidentification(Learns(steps=6)).measure(made).details
    assert "a smaller budget" not in Reidentification(Looks()).measure(made).details


def test_candidates_stand_in_another_order_than_the_owner_released_them_in(bench: Callable[..., Workbench]) -> None:
    made = replace(bench(columns((6, 6))), method=Identity())
    evidence = cast(PairEvidence, Reidentification(Looks()).measure(made).evidence[""])
    owner, eve = (rows.flatten(1) for rows in (made.private.samples, SEEN[0].candidates.samples))
    places = [int((owner == row).all(dim=1).nonzero()) for row in eve]
    assert sorted(places) == list(range(len(owner)))
    assert sum(a + 1 == b for a, b in pairwise(places)) < 6
    # The links followed: comparing rows finds them all.
    assert Guesswork()(evidence).value == ReidAUC()(evidence).value == 1


def test_an_attack_that_writes_into_its_candidates_is_stopped(bench: Callable[..., Workbench]) -> None:
    with pytest.raises(ContractError, match="wrote into the data"):
        Reidentification(Scribbles()).measure(bench(columns((6, 6))))


def test_releases_of_too_few_rows_are_not_applicable(bench: Callable[..., Workbench]) -> None:
    with pytest.raises(NotApplicable, match="releases too few of the rows"):
        Reidentification(Looks()).measure(replace(bench(None), method=KeepsOne()))


def test_every_task_is_attacked_where_the_preset_says_so(bench: Callable[..., Workbench]) -> None:
    made = replace(bench(columns((6, 9), (4, 5))), preset=replace(PRESETS["smoke"], label_findings=None))
    assert list(Reidentification(Looks(labels=True)).measure(made).evidence) == ["finding 0", "finding 1"]


def test_exclusive_classes_are_one_task_of_equal_classes(bench: Callable[..., Workbench]) -> None:
    labels = torch.nn.functional.one_hot(torch.tensor([0] * 10 + [1] * 8 + [2] * 6), 3).float()
    Reidentification(Looks(labels=True)).measure(bench(labels, exclusive=True))
    assert cast(Tensor, SEEN[0].candidates.labels).sum(0).tolist() == [6, 6, 6]


def test_an_attack_with_labels_is_not_applicable_without_any(bench: Callable[..., Workbench]) -> None:
    with pytest.raises(NotApplicable, match="reads labels"):
        Reidentification(Looks(labels=True)).measure(bench(None))


def test_primary_links_are_counted_beside_all_links(bench: Callable[..., Workbench]) -> None:
    evidence = cast(PairEvidence, Reidentification(Looks()).measure(bench(columns((6, 6)))).evidence[""])
    assert evidence.primary is not None
    assert len(evidence.images.links) == 48
    assert len(evidence.primary.links) == 24
    assert int(evidence.primary.counts[0][0].linked.sum()) < int(evidence.images.counts[0][0].linked.sum())


def test_of_several_tasks_the_worst_counts_and_each_is_told(bench: Callable[..., Workbench]) -> None:
    made = replace(bench(columns((6, 9), (4, 5))), preset=replace(PRESETS["smoke"], label_findings=None))
    evidence: Any = Reidentification(Looks(labels=True)).measure(made).evidence
    for metric in (Guesswork(), ReidAUC()):
        each = {task: metric(part) for task, part in evidence.items()}
        score = judge(cast(Any, metric), evidence)
        beats = {task: part.p is not None and part.p * len(each) < RARE for task, part in each.items()}
        values = [part.value for task, part in each.items() if beats[task] or not any(beats.values())]
        assert score.value == (min(values) if metric.better == "higher" else max(values))
        assert set(score.parts) == set(each)


@dataclass(frozen=True)
class Given(Metric[Any]):
    """The score that it is handed."""

    name: ClassVar[str] = "given"
    unit: ClassVar[str] = ""
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "a test"

    def __call__(self, evidence: Any) -> Score:
        return cast(Score, evidence)


def test_few_guesses_among_few_rows_do_not_hide_a_task_that_was_broken() -> None:
    large = Score(40.0, None, None, 4000, null=4000.0, p=0.0001, note="none")
    small = Score(28.0, None, None, 30, null=30.0, p=0.9, note="none")
    lucky = Score(60.0, None, None, 30, null=30.0, p=0.0001, note="none")
    score = judge(cast(Any, Given()), cast(Any, {"small": small, "large": large, "lucky": lucky}))
    assert (score.value, score.p) == (40.0, pytest.approx(0.0003))
    assert score.note.startswith("worst of 3 findings: large")
    parts = {part_of("", EVES_FORM): small, part_of("", OWNERS_FORM): large}
    assert judge(cast(Any, Given()), cast(Any, parts)).note.startswith(f"worst of 2 trainings: {OWNERS_FORM}")


def test_the_level_of_people_is_held_against_exchanged_people(bench: Callable[..., Workbench]) -> None:
    evidence = cast(PairEvidence, Reidentification(Looks()).measure(bench(columns((6, 6)))).evidence[""])
    assert evidence.patients is not None
    assert len(evidence.patients.whole) == len(evidence.patients.permuted) == PRESETS["smoke"].keys
    score = PatientGuesswork()(evidence)
    assert score.null is not None
    assert score.p is not None
    assert score.value < score.null


class Backwards(Looks):
    """Names for each row the candidates that look least like it."""

    def fit(self, view: View, seed: int) -> Attacker:
        return BackwardsAttacker(view)


class BackwardsAttacker(LooksAttacker):
    def score(self, sealed: Release) -> CosineScores:
        return CosineScores(-self.view.candidates.samples.flatten(1), sealed.samples.flatten(1))


def test_scores_of_the_wrong_sign_are_turned_by_a_key_of_eves_own(
    bench: Callable[..., Workbench],
) -> None:
    raw = replace(bench(columns((6, 6))), method=Identity())
    there = Reidentification(Looks()).measure(raw)
    found = Reidentification(Backwards()).measure(raw)
    assert PatientReidAUC()(found.evidence[""]) == PatientReidAUC()(there.evidence[""])
    assert str(found.details["sign"]).startswith("turned")
    assert float(str(found.details["ReID AUC on a key of Eve's own"])) < 0.3
    assert "sign" not in there.details


def test_the_primary_figure_is_ranked_among_exchanges_alike_for_all_attacks(bench: Callable[..., Workbench]) -> None:
    raw = bench(columns((6, 6)))
    made = [cast(PairEvidence, Reidentification(one).measure(raw).evidence[""]) for one in (Looks(), Backwards())]
    assert all(one.exchanged is not None and one.exchanged.level == "patient" for one in made)
    scores = [PatientReidAUC()(one).exchanges for one in made]
    assert scores[0] is not None
    assert scores[1] is not None
    assert scores[0].people == scores[1].people
    assert len(scores[0].tails) == 1024
    assert ReidAUC()(made[0]).exchanges is None


def test_two_amounts_of_noise_under_one_seed_do_not_cancel_between_releases(bench: Callable[..., Workbench]) -> None:
    made = [replace(bench(None), method=DPSimple(scale=scale)) for scale in (10.0, 20.0)]
    noise = []
    for one in made:
        scheme = one.scheme()
        mechanism = cast(Mechanism, scheme.mechanism())
        release = one.key(scheme, 0).release(one.private)
        noise.append(mechanism.noise(mechanism.locate(one.private), mechanism.observe(release)).flatten())
    # Of n independent pairs the correlation has deviation 1 / sqrt(n): 4.5 of them are 7 in a million.
    assert abs(float(torch.corrcoef(torch.stack(noise))[0, 1])) < 4.5 / len(noise[0]) ** 0.5


def test_guesswork_counts_groups_whole(bench: Callable[..., Workbench]) -> None:
    """Of groups of k equal rows the best-scored comes first: k k pairs tie, k of them right."""
    cell = replace(bench(None), method=Pools())
    PRIVATE[:] = [cell.private.samples]
    score = Guesswork()(cast(PairEvidence, Reidentification(Knows()).measure(cell).evidence[""]))
    k = 4
    assert score.value == pytest.approx((k * k + 1) / (k + 1))
    assert score.parts["half samples"].value < score.value  # they hold halves of groups


def test_resamples_are_the_same_whatever_the_order_of_candidates(bench: Callable[..., Workbench]) -> None:
    """Candidates stand in a secret order, another for each method; the people who are drawn are the same."""
    found = []
    for seed in range(2):
        cell = replace(bench(None), method=Pools(), run_secret=Secret.of_seed(seed))
        evidence = cast(PairEvidence, Reidentification(Looks()).measure(cell).evidence[""])
        order = cell.secret("candidates").stream().permutation(len(cell.private))
        found.append((evidence.resamples, evidence.draws, [set(order[rows].tolist()) for rows in evidence.samples]))
        rows = torch.unique(evidence.images.links[:, 1])
        assert [len(owners) for owners in evidence.images.owners] == [len(rows)] * len(evidence.images.full)
    assert found[0] == found[1]


@pytest.mark.parametrize("named", [False, True])
def test_large_rows_fall_into_the_same_groups_by_their_digests(monkeypatch: pytest.MonkeyPatch, *, named: bool) -> None:
    rows = torch.randn(700, 2, 3, generator=torch.Generator().manual_seed(0))
    rows[500:] = rows[:200]
    rows[0, 0, 0], rows[500, 0, 0] = 0.0, -0.0  # equal, but not to the last bit
    subjects = torch.arange(700) // 2 if named else None
    whole = groups(rows, subjects)
    monkeypatch.setattr(search, "COMPARED", 0)
    told = groups(rows, subjects)
    assert (
        len(torch.unique(told)) == len(torch.unique(whole)) == len(torch.unique(torch.stack((told, whole)), dim=1)[0])
    )
    assert len(torch.unique(torch.stack((told, whole), dim=1), dim=0)) == len(torch.unique(whole))
