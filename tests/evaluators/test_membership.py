"""The membership evaluator on small made-up cells: what Eve sees, and that nothing but the release tells members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, cast

import pytest
import torch
from made.cells import laid_out
from scipy.stats import binom, mannwhitneyu
from torch import Tensor

from attacks.dcr import DCR
from attacks.nearest_neighbour import NearestNeighbour
from bench.contract.preset import PRESETS
from bench.contract.seal import ContractError
from bench.data.splits import balance
from bench.evaluators.membership import Membership, mixed, withheld_alike
from bench.evidence import MembershipEvidence
from bench.randomness import Secret
from bench.types import Attack, Attacker, Dataset, NotApplicable, Release, View
from bench.workbench.workbench import Workbench
from methods.constant import Constant
from methods.dp_sgd import DPSGD
from methods.identity import Identity
from metrics.membership_auc import MembershipAUC
from metrics.membership_tpr import MembershipTPR

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
    assert int(evidence.members.sum()) == SIZES["private"]
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
    # Members are the private rows, wherever they stand.
    own = {tuple(row) for row in cell.private.samples.tolist()}
    assert [tuple(row) in own for row in view.candidates.samples.tolist()] == evidence.members.tolist()
    first = evidence.members[: SIZES["private"]]
    assert 0 < int(first.sum()) < len(first)
    people = cast(Tensor, evidence.subjects)
    assert set(people[evidence.members].tolist()).isdisjoint(people[~evidence.members].tolist())


def test_exclusive_classes_and_rows_without_labels_are_shown_as_they_are(bench: Callable[..., Workbench]) -> None:
    for cell in (bench((0.5,), exclusive=True), bench(None)):
        attack = Looks()
        found(cell, attack)
        labels = attack.views[0].candidates.labels
        assert (labels is None) == (cell.private.labels is None)
        assert labels is None or not bool(labels.isnan().any())


def test_the_record_says_what_eve_knows_and_how_many_are_members(bench: Callable[..., Workbench]) -> None:
    measured = Membership(Looks()).measure(bench())
    assert measured.details == {"members": 90, "others": 30, "share of members": 0.75, "rows seen": 120}
    assert measured.threat_model["candidates"].startswith("90 rows of the release's owner among 30 rows")
    assert set(measured.threat_model) == {"eve", "candidates", "public", "control", "scheme", "key", "labels"}


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
def test_labels_of_others_are_withheld_as_often_as_the_owners(share: float) -> None:
    for seed in range(20):
        natural, others = (labels_of(n, (share, 0.5), 100 * n + seed) for n in (90, 30))
        shown = balance(natural, seed, exclusive=False)
        found = withheld_alike(natural, shown, others, secret=Secret.of_seed(seed))
        for value in (0, 1):
            kept = (shown == value).sum(dim=0) / (natural == value).sum(dim=0)
            expected = kept * (others == value).sum(dim=0)
            assert float(((found == value).sum(dim=0) - expected.nan_to_num(0)).abs().amax()) <= 0.5 + 1e-4


def test_labels_that_are_shown_are_the_true_ones() -> None:
    natural, others = labels_of(90, (0.2, 0.6), 0), labels_of(30, (0.2, 0.6), 1)
    shown = withheld_alike(natural, balance(natural, 2, exclusive=False), others, secret=Secret.of_seed(2))
    known = ~shown.isnan()
    assert 0 < int(known.sum()) < known.numel()
    assert torch.equal(shown[known], others[known])
    assert not bool(others.isnan().any())  # and the given ones stay untouched


def test_no_label_is_withheld_where_the_owner_withheld_none() -> None:
    parts = [Dataset("made", torch.rand(n, 2), labels_of(n, (share,), n), None, ("a",), False, True)
             for n, share in ((90, 0.7), (30, 0.9))]  # fmt: skip
    labels = cast(Tensor, mixed(parts[0], parts[1], Secret.of_seed(3))[0].labels)
    assert not bool(labels.isnan().any())
    assert int(labels.sum()) == sum(int(cast(Tensor, part.labels).sum()) for part in parts)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.75])
@pytest.mark.parametrize("balanced", [False, True])
def test_what_is_withheld_does_not_tell_members(share: float, balanced: bool) -> None:
    # Images show the finding. Of rows without a label, those that look like a case must not be the members, or the
    # others; where both sides are cut to equally many known labels, p falls below .001 in half of such cases.
    ps: dict[str, list[float]] = {"how many": [], "of which": []}
    repeats = 40
    for seed in range(repeats):
        natural, others = (labels_of(n, (share, share), 1000 * n + seed) for n in (200, 80))
        shown = balance(natural, seed, exclusive=False) if balanced else natural
        parts = [Dataset("made", truth, labels, None, ("a", "b"), False, True)
                 for truth, labels in ((natural, shown), (others, others))]  # fmt: skip
        candidates, members = mixed(parts[0], parts[1], Secret.of_seed(seed), natural=natural if balanced else None)
        hidden = cast(Tensor, candidates.labels).isnan()
        scores = {"how many": hidden.sum(dim=1), "of which": (hidden * (2 * candidates.samples - 1)).sum(dim=1)}
        for name, score in scores.items():
            ps[name].append(float(mannwhitneyu(score[members], score[~members], method="asymptotic").pvalue))
    for found in ps.values():
        assert sum(p < 0.05 for p in found) <= binom(repeats, 0.05).ppf(1 - 1e-3)


def test_labels_that_the_owner_withheld_are_withheld_from_others_in_a_run(bench: Callable[..., Workbench]) -> None:
    cell, attack = bench((0.2,)), Looks()
    members = found(cell, attack).members
    labels = cast(Tensor, attack.views[0].candidates.labels)
    natural, known = cast(Tensor, cell.natural), ~labels.isnan()
    negatives, kept = int((natural == 0).sum()), int((labels[members] == 0).sum())
    assert kept < negatives  # the surplus
    others = int((cast(Tensor, cell.test.labels) == 0).sum())
    assert int((labels[~members] == 0).sum()) == round(others * kept / negatives)
    assert int((labels[~members] == 1).sum()) == int((cast(Tensor, cell.test.labels) == 1).sum())
    assert bool(known.any())


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
    assert not attack.views  # nobody trains an attack for nothing
