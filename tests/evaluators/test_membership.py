"""The membership evaluator on small made-up cells: what Eve sees, and that nothing but the release tells members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, cast

import pytest
import torch
from made.cells import laid_out
from torch import Tensor

from attacks.dcr import DCR
from attacks.nearest_neighbour import NearestNeighbour
from bench.contract.preset import PRESETS
from bench.contract.seal import ContractError
from bench.data.scorable import balance
from bench.evaluators.membership import Membership
from bench.evidence import MembershipEvidence
from bench.randomness import Secret
from bench.types import Attack, Attacker, Attributes, Dataset, Key, NotApplicable, Release, Scheme, State, View
from bench.workbench.workbench import Workbench
from methods.constant import Constant
from methods.dp_sgd import DPSGD
from methods.identity import Identity
from metrics.membership import MembershipAUC, MembershipTPR

SIZES = {"public": 40, "private": 90, "control": 30, "test": 30}


@dataclass(frozen=True)
class Looks(Attack):
    """Remembers what it was shown; scores as it is told to."""

    name: ClassVar[str] = "looks"
    source: ClassVar[str] = "a test"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    knowledge: ClassVar[str] = "what it is shown"
    answer: Callable[[View, Release], Tensor] = lambda view, sealed: torch.zeros(len(view.candidates))
    views: list[View] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)

    def fit(self, view: View, seed: int) -> Attacker:
        self.views.append(view)
        return LooksAttacker(self, view)


@dataclass(frozen=True)
class LooksAttacker(Attacker):
    attack: Looks
    view: View

    def membership(self, sealed: Release) -> Tensor:
        self.attack.releases.append(sealed)
        return self.attack.answer(self.view, sealed)

    def notes(self) -> Mapping[str, int | float | str]:
        return {"rows seen": len(self.view.candidates)}


def labels_of(n: int, shares: tuple[float, ...], seed: int) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return (torch.rand(n, len(shares), generator=random) < torch.tensor(shares)).float()


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Workbench]:
    def make(shares: tuple[float, ...] | None = (0.2, 0.5), *, exclusive: bool = False) -> Workbench:
        names = () if shares is None else tuple(f"finding {k}" for k in range(len(shares)))
        natural: dict[str, Tensor | None] = {}

        def part(name: str, number: int) -> Dataset:
            n = SIZES[name]
            samples = torch.rand(n, 6, generator=torch.Generator().manual_seed(number))
            labels = None if shares is None else labels_of(n, shares, number)
            if labels is not None and name in ("private", "control"):
                natural[name] = None if exclusive else labels
                labels = balance(labels, number, exclusive=exclusive)
            return Dataset("made", samples, labels, 1000 * number + torch.arange(n) // 2, names, exclusive, True)

        parts = {name: part(name, number) for number, name in enumerate(SIZES)}
        return laid_out(tmp_path, Identity(), parts, natural=natural.get("private"))

    return make


def found(bench: Workbench, attack: Attack) -> MembershipEvidence:
    return cast(MembershipEvidence, Membership(attack).measure(bench).evidence[""])


def test_identity_is_caught(bench: Callable[..., Workbench]) -> None:
    evidence = found(bench(), DCR())
    assert len(evidence.scores) == PRESETS["smoke"].keys
    assert [int(own.sum()) for own in evidence.members] == [SIZES["private"]] * len(evidence.members)
    assert not torch.equal(*evidence.members[:2])  # drawn anew for every key
    assert MembershipAUC()(evidence).value == MembershipTPR()(evidence).value == 1


def test_a_constant_generator_sits_at_chance(bench: Callable[..., Workbench]) -> None:
    score = MembershipAUC()(found(replace(bench(), method=Constant()), DCR()))
    assert cast(float, score.null_low) <= score.value <= cast(float, score.null_high)


def test_eve_sees_labels_and_no_people_and_no_links(bench: Callable[..., Workbench]) -> None:
    cell, attack = bench(), Looks()
    evidence = found(cell, attack)
    (view,) = attack.views
    assert view.candidates.subjects is view.control.subjects is None
    assert view.candidates.labels is not None
    assert all(sealed.links is None and sealed.labels is not None for sealed in attack.releases)
    assert len(attack.releases) == PRESETS["smoke"].keys
    # Members are the rows that were released, wherever they stand; no person is on both sides.
    for sealed, members in zip(attack.releases, evidence.members, strict=True):
        own = {tuple(row) for row in sealed.samples.tolist()}
        assert [tuple(row) in own for row in view.candidates.samples.tolist()] == members.tolist()
        first = members[: SIZES["private"]]
        assert 0 < int(first.sum()) < len(first)
        people = cast(Tensor, evidence.subjects)
        assert set(people[members].tolist()).isdisjoint(people[~members].tolist())


def test_groups_of_people_follow_their_rows_among_the_candidates(bench: Callable[..., Workbench]) -> None:
    plain = bench()
    # The first 20 people of the private rows and the first five of the test rows are of the first group.
    codes = {"private": torch.arange(90) // 40, "test": torch.arange(30) // 10}
    told = {name: Attributes(("site",), (("a", "b", "c"),), of[:, None]) for name, of in codes.items()}
    groups = found(replace(plain, attributes=told), Looks()).groups
    subjects = torch.cat((cast(Tensor, plain.private.subjects), cast(Tensor, plain.test.subjects)))
    people = torch.unique(subjects).tolist()
    for number, name in enumerate("abc"):
        inside = set(subjects[torch.cat((codes["private"], codes["test"])) == number].tolist())
        assert groups["site"][name].tolist() == [person in inside for person in people]
    assert "site" not in found(plain, Looks()).groups


def test_exclusive_classes_and_rows_without_labels_are_shown_as_they_are(bench: Callable[..., Workbench]) -> None:
    for cell in (bench((0.5,), exclusive=True), bench(None)):
        attack = Looks()
        found(cell, attack)
        labels = attack.views[0].candidates.labels
        assert (labels is None) == (cell.private.labels is None)
        assert labels is None or not bool(labels.isnan().any())


def test_the_record_says_what_eve_knows_and_how_many_are_members(bench: Callable[..., Workbench]) -> None:
    measured = Membership(Looks()).measure(bench())
    assert measured.details == {"members by key": [90, 90], "candidates": 120, "rows seen": 120, "learning": []}
    assert measured.threat_model["candidates"].startswith("120 rows in random order; about 90 of them")
    assert set(measured.threat_model) == {"eve", "candidates", "public", "control", "scheme", "key", "labels"}


def test_labels_are_withheld_among_all_candidates_and_released_so(bench: Callable[..., Workbench]) -> None:
    cell, attack = bench((0.2,)), Looks()
    evidence = found(cell, attack)
    labels = cast(Tensor, attack.views[0].candidates.labels)
    counts = [int((labels == value).sum()) for value in (0, 1)]
    assert counts[0] == counts[1] < len(labels) / 2
    for sealed, members in zip(attack.releases, evidence.members, strict=True):
        released = cast(Tensor, sealed.labels)
        assert sorted(released.nan_to_num(-1)) == sorted(labels[members].nan_to_num(-1))


@dataclass(frozen=True)
class Learns(Identity):
    """Publishes the mean of its rows, over and over."""

    name: ClassVar[str] = "learns"

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return LearnsScheme()

    def load(self, state: State) -> Scheme:
        return LearnsScheme()


class LearnsScheme(Scheme):
    def sample_key(self, secret: Secret) -> Key:
        return LearnsKey()

    def load_key(self, state: State) -> Key:
        return LearnsKey()

    def state(self) -> State:
        return {}


class LearnsKey(Key):
    def release(self, private: Dataset) -> Release:
        return Release(private.samples.mean(dim=0).expand(2, -1).clone(), None, None)

    def query(self, samples: Tensor) -> Tensor:
        return samples

    def state(self) -> State:
        return {}


def test_what_a_method_learns_it_learns_from_the_members_of_that_key(bench: Callable[..., Workbench]) -> None:
    attack = Looks()
    evidence = found(replace(bench(None), method=Learns()), attack)
    candidates = attack.views[0].candidates.samples
    for sealed, members in zip(attack.releases, evidence.members, strict=True):
        assert torch.allclose(sealed.samples[0], candidates[members].mean(dim=0))
    assert not torch.allclose(attack.releases[0].samples, attack.releases[1].samples)


def test_an_attack_that_writes_into_its_view_is_stopped(bench: Callable[..., Workbench]) -> None:
    attack = Looks(answer=lambda view, sealed: view.candidates.samples.mul_(2)[:, 0])
    with pytest.raises(ContractError, match="wrote into the data"):
        Membership(attack).measure(bench())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda view, sealed: torch.zeros(3), r"must score 120 candidates.*got torch.float32 \(3,\)"),
        (lambda view, sealed: torch.zeros(120, dtype=torch.int64), "got torch.int64"),
        (lambda view, sealed: [0.0] * 120, "got list"),
        (lambda view, sealed: torch.arange(120.0).log(), "1 scores that are not finite, the first for candidate 0"),
    ],
)
def test_scores_are_one_finite_number_a_candidate(
    bench: Callable[..., Workbench], answer: Callable[[View, Release], Tensor], message: str
) -> None:
    with pytest.raises(ContractError, match=message):
        Membership(Looks(answer=answer)).measure(bench())


def test_attacks_on_pairs_are_not_applicable(bench: Callable[..., Workbench]) -> None:
    with pytest.raises(NotApplicable, match="does not score membership"):
        Membership(NearestNeighbour()).measure(bench())


def test_methods_that_release_no_rows_are_not_applicable(bench: Callable[..., Workbench]) -> None:
    attack = Looks()
    with pytest.raises(NotApplicable, match="nothing is released"):
        Membership(attack).measure(replace(bench(), method=DPSGD(pretrain=0)))
    assert not attack.views  # no attack is trained in vain
