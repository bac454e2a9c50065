"""The attack on a published classifier, on small made-up cells: what it finds, what it must not, and its controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, TypeAlias, cast

import pytest
import torch
from made.cells import laid_out
from torch import Tensor

from bench.contract.seal import ContractError
from bench.evaluators import membership
from bench.evaluators.membership import BY_HEART, CONTROLS, OF_OTHERS, ClassifierMembership, none_published
from bench.eve.shadow_classifiers import ShadowClassifiers, by_heart, confidence
from bench.evidence import MembershipEvidence
from bench.randomness import Secret
from bench.types import Classifier, Dataset, Key, Measurement, Method, NotApplicable, Release, Scheme, State
from bench.workbench.workbench import Workbench
from methods.identity import Identity
from metrics.membership import MembershipAUC

SIZES = {"public": 40, "private": 120, "control": 60, "test": 100}


def answers_nothing(secret: Secret, rows: Dataset) -> Classifier:
    """The same answer for every row."""
    return lambda samples: torch.zeros(len(samples), len(rows.findings))


Train: TypeAlias = "Callable[[Secret, Dataset], Classifier | None]"


@dataclass(frozen=True)
class Publishes(Method):
    """Publishes the classifier that it is given."""

    name: ClassVar[str] = "publishes"
    source: ClassVar[str] = "a test"

    @staticmethod
    def train(secret: Secret, rows: Dataset) -> Classifier | None:
        """Replaced by `publishing`."""
        raise NotImplementedError

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return self.load({})

    def load(self, state: State) -> Scheme:
        return PublishesScheme(self)


def publishing(train: Train = by_heart) -> Method:
    """Such a method; its training is no parameter, on which secrets depend."""
    made: Method = type("Publishes", (Publishes,), {"train": staticmethod(train)})()
    return made


@dataclass(frozen=True, eq=False)
class PublishesScheme(Scheme):
    method: Publishes

    def sample_key(self, secret: Secret) -> Key:
        return PublishesKey(self, secret)

    def load_key(self, state: State) -> Key:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class PublishesKey(Key):
    scheme: PublishesScheme
    secret: Secret

    def release(self, private: Dataset) -> Release:
        raise NotApplicable("a classifier is published")

    def classifier(self, private: Dataset) -> Classifier | None:
        return self.scheme.method.train(self.secret, private)

    def state(self) -> Mapping[str, Tensor]:
        return {}


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Workbench]:
    def make(method: Method, unknown: int = 0) -> Workbench:
        def part(name: str, number: int) -> Dataset:
            random = torch.Generator().manual_seed(number)
            samples = torch.rand(SIZES[name], 30, generator=random)
            labels = (torch.rand(SIZES[name], 2, generator=random) < 0.5).float()
            labels[:unknown] = torch.nan
            people = 1000 * number + torch.arange(SIZES[name]) // 2
            return Dataset("made", samples, labels, people, ("one", "other"), exclusive=False, shareable=True)

        return laid_out(tmp_path, method, {name: part(name, number) for number, name in enumerate(SIZES)})

    return make


def measured(bench: Workbench) -> Measurement:
    return ClassifierMembership().measure(bench)


def evidence(found: Measurement) -> MembershipEvidence:
    return cast(MembershipEvidence, found.evidence[""])


def test_a_classifier_that_learns_by_heart_gives_its_members_away(bench: Callable[..., Workbench]) -> None:
    found = measured(bench(publishing()))
    score = MembershipAUC()(evidence(found))
    assert score.value > 0.7
    assert cast(float, score.p) < 0.001
    held = cast(dict[str, dict[str, float]], found.details[CONTROLS])
    assert held[BY_HEART]["AUC"] > 0.7
    assert held[BY_HEART]["p"] < 0.001 <= held[OF_OTHERS]["p"]


def test_a_classifier_that_says_the_same_of_every_row_gives_nobody_away(bench: Callable[..., Workbench]) -> None:
    found = measured(bench(publishing(answers_nothing)))
    assert MembershipAUC()(evidence(found)).value == 0.5
    assert found.details["AUC on shadow classifiers"] == 0.5


def test_the_figure_repeats_bit_by_bit(bench: Callable[..., Workbench]) -> None:
    first, second = (evidence(measured(bench(publishing()))).scores for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_rows_without_a_label_are_asked_of_no_classifier(bench: Callable[..., Workbench]) -> None:
    found = measured(bench(publishing(), unknown=10))
    made = evidence(found)
    left_out, asked = (cast(int, found.details[name]) for name in ("without a label", "candidates"))
    assert left_out >= 20  # ten of the private rows and ten of the others, and whom balancing leaves without one
    assert asked == 220 - left_out == len(made.scores[0]) == len(cast(Tensor, made.subjects))
    assert all(len(mask) == asked for mask in made.members)


def test_what_publishes_rows_is_not_asked(bench: Callable[..., Workbench]) -> None:
    with pytest.raises(NotApplicable, match="identity publishes no classifier") as none:
        measured(bench(Identity()))
    assert none_published(str(none.value))


def test_labels_are_needed(bench: Callable[..., Workbench]) -> None:
    plain = bench(publishing(answers_nothing))
    bare = {name: replace(getattr(plain, name), labels=None) for name in ("private", "test", "control")}
    with pytest.raises(NotApplicable, match="the data set has none"):
        measured(replace(plain, **bare))


def test_an_attack_that_misses_rows_known_by_heart_gives_no_figure(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "by_heart", answers_nothing)
    with pytest.raises(NotApplicable, match=r"not shown to work here: on a classifier that knows its rows by heart"):
        measured(bench(publishing()))


def test_an_attack_that_finds_members_where_none_are_gives_no_figure(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter([(0.9, 0.0005), (0.9, 0.0005)])
    monkeypatch.setattr(membership, "_told", lambda *_: next(told))
    with pytest.raises(NotApplicable, match=r"finds what is not there: on a classifier that learned from other rows"):
        measured(bench(publishing()))


def test_exchanged_people_do_as_well_as_chance_says() -> None:
    random, people = torch.Generator().manual_seed(0), torch.arange(120) // 2
    chances = []
    for number in range(200):
        inside = (torch.randperm(60, generator=random) < 30)[people]
        own = torch.rand(60, generator=random)[people] + torch.rand(120, generator=random)  # a person's rows are alike
        made = MembershipEvidence([own.double()], [inside], people, number, 0)
        chances.append(membership._told(made)[1])
    below = sum(p <= 0.05 for p in chances)
    assert below <= 20  # binomial: 20 of 200 or more have probability 0.002 under 5 %
    assert below >= 2  # 1 or none: 0.0004


def test_confidence_of_classes_does_not_depend_on_the_unit_of_logits() -> None:
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 3, generator=random)
    labels = torch.eye(3)[torch.randint(3, (50,), generator=random)]
    odds = confidence(logits, labels, exclusive=True)
    torch.testing.assert_close(confidence(logits.double().log_softmax(dim=1), labels, exclusive=True), odds)
    single = torch.ones(50, 1)
    torch.testing.assert_close(confidence(logits[:, :1], single, exclusive=True), logits[:, 0].double())


def test_images_are_learned_by_heart_at_a_small_side() -> None:
    random = torch.Generator().manual_seed(0)
    rows = Dataset(
        "made", torch.rand(40, 1, 48, 48, generator=random), (torch.arange(40)[:, None] % 2).float(), None, ("one",),
        exclusive=False, shareable=True,
    )  # fmt: skip
    classify = by_heart(Secret.of_seed(0), rows)
    assert bool(((classify(rows.samples) > 0) == (rows.labels == 1)).all())


def test_every_candidate_must_be_in_half_of_the_shadow_classifiers() -> None:
    rows = Dataset("made", torch.rand(8, 2), torch.ones(8, 1), None, ("one",), exclusive=False, shareable=True)
    with pytest.raises(ValueError, match="half of at least 4"):
        ShadowClassifiers.fit(answers_nothing, rows, torch.arange(8), rows, 4, 3, 0)


def test_every_key_is_scored_by_its_own_classifier_and_shadows_learn_from_candidates_and_control_rows(
    bench: Callable[..., Workbench],
) -> None:
    calls = list[tuple[Secret, frozenset[tuple[float, ...]]]]()

    def spied(secret: Secret, rows: Dataset) -> Classifier:
        calls.append((secret, frozenset(map(tuple, rows.samples.tolist()))))
        return by_heart(secret, rows)

    plain = bench(publishing(spied))
    made = evidence(measured(plain))
    for scores, inside in zip(made.scores, made.members, strict=True):
        one = replace(made, scores=[scores], members=[inside])
        assert MembershipAUC()(one).value > 0.65
    control = {tuple(row) for row in plain.control.samples.tolist()}
    owners = [rows for _, rows in calls if not rows & control]
    shadows = [rows for _, rows in calls if rows & control]
    assert len(owners) == len(made.scores)
    assert len(set(owners)) == len(owners)
    assert len({str(secret.derive("told").stream().integers(1 << 32)) for secret, _ in calls}) == len(calls)
    assert {len(rows) for rows in shadows} == {SIZES["private"]}  # half of the candidates, filled up
    asked = SIZES["private"] + SIZES["test"]
    assert len(frozenset().union(*shadows) - control) == asked
    assert all(len((one | other) - control) == asked for one, other in zip(shadows[::2], shadows[1::2], strict=True))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda scores: scores[:1], r"scores of shape \(220, 2\), got shape \(1, 2\)"),
        (lambda scores: scores[:, :1], r"scores of shape \(220, 2\), got shape \(220, 1\)"),
        (lambda scores: scores.tolist(), "got list"),
        (lambda scores: scores * torch.nan, "finite scores, and those of 220 rows are not"),
        (lambda scores: scores * torch.inf, "finite scores"),
    ],
)
def test_answers_of_another_shape_or_that_are_not_finite_are_refused(
    bench: Callable[..., Workbench], answer: Callable[[Tensor], object], complaint: str
) -> None:
    def train(secret: Secret, rows: Dataset) -> Classifier:
        classify = by_heart(secret, rows)
        return cast(Classifier, lambda samples: answer(classify(samples)))

    with pytest.raises(ContractError, match=complaint):
        measured(bench(publishing(train)))


def test_a_classifier_cannot_write_into_what_eve_holds(bench: Callable[..., Workbench]) -> None:
    def train(secret: Secret, rows: Dataset) -> Classifier:
        classify = by_heart(secret, rows)
        return lambda samples: classify(samples.clone()) + 0 * samples.zero_().sum()

    assert MembershipAUC()(evidence(measured(bench(publishing(train))))).value > 0.7


def test_another_authors_classifier_may_not_look_at_the_rows_beside_a_row(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(secret: Secret, rows: Dataset) -> Classifier:
        classify, own = by_heart(secret, rows), set(map(tuple, rows.samples.tolist()))

        def answer(samples: Tensor) -> Tensor:
            seen = sum(tuple(row) in own for row in samples.tolist())
            return classify(samples) * (0.0 if seen > len(samples) / 10 else 1.0)

        return answer

    monkeypatch.setattr(Workbench, "outside", True)
    with pytest.raises(ContractError, match="must answer every row by itself"):
        measured(bench(publishing(train)))


def test_another_authors_method_is_always_called_with_as_many_rows_as_are_private(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[int]()

    def spied(secret: Secret, rows: Dataset) -> Classifier:
        calls.append(len(rows))
        return by_heart(secret, rows)

    monkeypatch.setattr(Workbench, "outside", True)
    score = MembershipAUC()(evidence(measured(bench(publishing(spied)))))
    assert set(calls) == {SIZES["private"]}
    assert score.value > 0.7


def test_a_method_that_refuses_rows_or_trains_on_private_ones_alone_says_so(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workbench, "outside", True)

    def refuses(secret: Secret, rows: Dataset) -> Classifier:
        raise NotApplicable("not so few; it publishes no classifier")

    with pytest.raises(NotApplicable, match="publishes refused to train on 120 rows: not so few") as refused:
        measured(bench(publishing(refuses)))
    assert not none_published(str(refused.value))
    own = bench(publishing())

    def private_alone(secret: Secret, rows: Dataset) -> Classifier | None:
        return by_heart(secret, rows) if torch.equal(rows.samples, own.private.samples) else None

    with pytest.raises(ContractError, match="of the private rows, and none of other rows"):
        measured(replace(own, method=publishing(private_alone)))


def test_control_rows_without_labels_are_said_before_anything_is_trained(bench: Callable[..., Workbench]) -> None:
    plain = bench(publishing(answers_nothing))
    labels = torch.full_like(cast(Tensor, plain.control.labels), torch.nan)
    with pytest.raises(NotApplicable, match="all of them are withheld"):
        measured(replace(plain, control=replace(plain.control, labels=labels)))
