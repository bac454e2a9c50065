"""Membership AUC and TPR: hand values, and what chance does to them."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations
from statistics import NormalDist, fmean
from typing import cast

import pytest
import torch
from scipy.stats import binom, hypergeom
from sklearn.metrics import roc_auc_score
from torch import Tensor

from bench.evidence import CopyEvidence, MembershipEvidence
from bench.statistics.confidence_intervals import with_interval
from bench.statistics.identification_risk import People, Ranking, people_of, replicates
from bench.statistics.pair_statistics import MEANS
from bench.types import NotApplicable, Score
from metrics.membership import (
    MORE,
    CopiedShare,
    MembershipAUC,
    MembershipTPR,
    PatientMembershipAUC,
    by_person,
    exchange_p,
    membership_auc,
    membership_tpr,
    tail_bound,
)
from metrics.person_risk import MemberRisk, MembersFound, told_members


def evidence(
    seed: int, people: int = 60, *, signal: float = 0.0, keys: int = 2, levels: int | None = None
) -> MembershipEvidence:
    """Scores with something that a person's one to three rows share; three in four people are members.

    `levels` rounds scores, so that they tie.
    """
    random = torch.Generator().manual_seed(seed)
    subjects = torch.repeat_interleave(torch.arange(people), torch.randint(1, 4, (people,), generator=random))
    members = [(torch.randperm(people, generator=random) < 3 * people // 4)[subjects] for _ in range(keys)]
    common = torch.randn(people, generator=random, dtype=torch.float64)[subjects]
    scores = [common + torch.randn(len(subjects), generator=random) + signal * own for own in members]
    if levels is not None:
        scores = [(each * levels / 4).round() for each in scores]
    return MembershipEvidence(scores, members, subjects, seed, seed)


def single(scores: Tensor, members: Tensor) -> MembershipEvidence:
    return MembershipEvidence([scores.double()], [members], None, 0, 0)


def tpr(scores: list[float], members: list[int], one_in: int) -> float:
    own = torch.tensor([members])
    return float(membership_tpr(Ranking.of(torch.tensor(scores)), own, 1 - own, one_in=one_in))


def test_auc_agrees_with_scikit_learn_ties_included() -> None:
    found = evidence(3, signal=0.5, levels=3, keys=1)
    expected = roc_auc_score(found.members[0], found.scores[0])
    assert len(torch.unique(found.scores[0])) < len(found.members[0]) / 3
    assert MembershipAUC()(found).value == pytest.approx(expected, abs=1e-12)


def test_weights_repeat_rows() -> None:
    scores, members = torch.tensor([0.9, 0.5, 0.7, 0.5]), torch.tensor([2, 1, 0, 0])
    others = torch.tensor([0, 0, 3, 1])
    expected = roc_auc_score([1, 1, 1, 0, 0, 0, 0], [0.9, 0.9, 0.5, 0.7, 0.7, 0.7, 0.5])
    ranking = Ranking.of(scores)
    assert float(membership_auc(ranking, members[None], others[None])) == pytest.approx(expected)
    # One of four others may stand above the threshold; three of them stand at .7, which is the threshold.
    assert float(membership_tpr(ranking, members[None], others[None], one_in=4)) == pytest.approx(2 / 3)


def test_members_above_all_others_are_found_for_certain() -> None:
    members = torch.arange(400) < 300
    found = single(members.double(), members)
    auc, rate = MembershipAUC()(found), MembershipTPR()(found)
    assert auc.value == auc.high == 1
    assert auc.low == pytest.approx(0.025 ** (1 / 100))  # there are 100 others
    assert cast(float, auc.p) < 1e-20
    assert rate.value == rate.parts["1 %"].value == 1
    assert cast(float, rate.p) < 1e-20


def drawn(sizes: list[int], members: tuple[int, ...], keys: int = 1) -> tuple[list[Ranking], People]:
    """Rows of people of such sizes, the first person's highest, ranked alike under every key."""
    codes = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    inside = torch.zeros(keys, len(sizes), dtype=torch.bool)
    inside[:, list(members)] = True
    return [Ranking.of(-torch.arange(len(codes)).double())] * keys, People(codes, inside)


def test_the_bound_of_a_rates_tail_is_its_chance_for_one_key() -> None:
    # 6 members, 4 others, one of them allowed: at least 4 members stand before the second other.
    orders = [set(others) for others in combinations(range(10), 4)]
    hits = [sorted(others)[1] - 1 for others in orders]
    exact = sum(found >= 4 for found in hits) / len(orders)
    assert tail_bound(*drawn([1] * 10, tuple(range(6))), 4 / 6, one_in=4) == pytest.approx(exact)
    assert tail_bound(*drawn([1] * 10, tuple(range(6)), 3), 4 / 6, one_in=4) == pytest.approx(3 * exact)
    assert tail_bound(*drawn([1] * 10, tuple(range(6)), 3), 0.0, one_in=4) == 1


@pytest.mark.parametrize("sizes", [[2] * 10, [1, 3, 1, 1, 2, 1, 4, 1, 1, 2], [4, 4, 1, 1, 1, 1, 1, 1, 1, 1]])
def test_the_bound_holds_for_people_of_several_rows(sizes: list[int]) -> None:
    every = []
    for members in combinations(range(10), 6):
        (ranking,), who = drawn(sizes, members)
        rows = who.rows(torch.tensor([members]))
        every.append(float(membership_tpr(ranking, rows, 1 - rows, one_in=4)))
    for value in sorted(set(every)):
        assert tail_bound(*drawn(sizes, members), value, one_in=4) >= sum(one >= value for one in every) / len(every)


def test_people_of_several_rows_who_are_told_for_certain_are_told() -> None:
    members = (torch.arange(400) < 300).double()
    found = MembershipEvidence([members], [members.bool()], torch.arange(400) // 2, 0, 0)
    assert cast(float, MembershipTPR()(found).p) < 1e-20


def test_an_auc_that_few_exchanges_cannot_resolve_gets_more() -> None:
    """With ten figures of a panel, two in ten thousand would be no finding."""
    found = evidence(1, people=120, signal=0.9)
    auc = MembershipAUC()(found)
    assert 2 / (1 + MORE) <= cast(float, auc.p) < 1 / (1 + MEANS)


def test_equal_scores_are_chance_exactly() -> None:
    found = single(torch.zeros(400), torch.arange(400) < 300)
    auc, rate = MembershipAUC()(found), MembershipTPR()(found)
    assert (auc.value, auc.low, auc.high, auc.null_low, auc.null_high, auc.p) == (0.5, 0.5, 0.5, 0.5, 0.5, 1)
    assert (rate.value, rate.null, rate.p) == (0, 0, 1)


def test_a_threshold_lets_no_more_others_through_than_the_rate_allows() -> None:
    scores = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0]
    members = [1, 0, 1, 1, 0, 1, 0, 0]
    assert tpr(scores, members, 2) == 1  # two of four others: the threshold is the third of them, at 3
    assert tpr(scores, members, 4) == 3 / 4  # one of four: the threshold is the second of them, at 5
    assert tpr(scores, members, 5) == 1 / 4  # none of four: the threshold is the highest of them, at 8


def test_members_level_with_the_threshold_are_not_found() -> None:
    assert tpr([5.0, 5.0, 6.0, 1.0], [1, 0, 1, 0], 100) == 1 / 2
    assert tpr([5.0, 5.0, 5.0, 5.0, 1.0], [1, 0, 0, 1, 0], 3) == 0


def test_a_threshold_deep_in_the_ranking_is_found_too() -> None:
    members = torch.ones(1, 5000, dtype=torch.int64)
    members[0, -40:] = 0
    found = membership_tpr(Ranking.of(torch.arange(5000, 0, -1.0)), members, 1 - members, one_in=100)
    assert float(found) == 1


def test_few_others_make_a_rate_coarse_and_the_note_says_so() -> None:
    one = MembershipTPR()(evidence(1, people=8))
    assert "coarse" in one.note
    assert one.low is one.high is None
    assert list(MembershipTPR()(evidence(1, people=200, signal=1.0)).parts) == ["1 %"]  # fewer than 1,000 others


def test_the_null_of_the_rate_is_that_of_the_highest_members() -> None:
    # 150 members, 100 others, one other allowed: members above the second other, (1 + 1) / (100 + 1) on average.
    scores = torch.randperm(250, generator=torch.Generator().manual_seed(1))
    rate = MembershipTPR()(single(scores, torch.arange(250) < 150))
    exact = [hypergeom(250, 100, found + 1).cdf(1) for found in range(151)]  # the chance of at least `found` members
    mean = sum(exact[1:]) / 150
    assert mean == pytest.approx(2 / 101)
    # Deviation of the mean of 9,999 draws: the figure's own, below 2 / 101, over 100.
    assert abs(cast(float, rate.null) - mean) < 5 * (2 / 101) / 100


@pytest.mark.parametrize(("metric", "repeats"), [(MembershipAUC(), 200), (MembershipTPR(), 80)])
def test_chance_is_rarely_called_unlikely(metric: MembershipAUC | MembershipTPR, repeats: int) -> None:
    ps = [cast(float, metric(evidence(seed, people=24, keys=1 + seed % 2)).p) for seed in range(repeats)]
    for level in (0.05, 0.2):
        assert sum(p <= level for p in ps) <= binom(repeats, level).ppf(1 - 1e-4)
    if isinstance(metric, MembershipAUC):  # ranks hardly tie: p is about uniform, not only large enough
        assert sum(p <= 0.2 for p in ps) >= binom(repeats, 0.2).ppf(1e-4)


def test_rows_of_one_person_are_no_independent_evidence() -> None:
    # Twelve rows a person, all alike: the null interval is that of 40 people, not of 480 rows.
    people, copies = 40, 12
    scores = torch.randn(people, generator=torch.Generator().manual_seed(0)).double().repeat_interleave(copies)
    subjects = torch.arange(people).repeat_interleave(copies)
    members = subjects < 20
    grouped = MembershipAUC()(MembershipEvidence([scores], [members], subjects, 0, 0))
    apart = MembershipAUC()(MembershipEvidence([scores], [members], None, 0, 0))
    width = [cast(float, score.null_high) - cast(float, score.null_low) for score in (grouped, apart)]
    assert width[0] / width[1] == pytest.approx(math.sqrt(copies), rel=0.1)
    assert width[0] == pytest.approx(2 * 1.96 * math.sqrt(41 / (12 * 20 * 20)), rel=0.1)


def test_a_tail_beyond_the_draws_is_bounded_from_above() -> None:
    # Of 40 people, 20 add 1/2 and 20 add -1/2: the sum of 20 drawn at random is hypergeometric.
    sums = torch.tensor([0.5, -0.5]).double().repeat(20)
    none = torch.zeros(9999, dtype=torch.float64)
    for above in (18, 19, 20):
        exact = 2 * hypergeom(40, 20, 20).sf(above - 1)
        assert exact <= exchange_p([sums], float(above - 10), none, chosen=[20]) <= 1 / 10_000
    assert exchange_p([sums], 10.0, none, chosen=[20]) < 1e-5
    assert exchange_p([sums], 0.0, none, chosen=[20]) == 1


def test_intervals_hold_the_figure_as_often_as_they_say() -> None:
    repeats, rate = 80, partial(membership_tpr, one_in=20)
    true = NormalDist().cdf(2 / 2)  # two normal scores of variance 2 that differ by 2
    found = {membership_auc: [], rate: []}
    for seed in range(repeats):
        drawn = evidence(seed, people=100, signal=2.0, keys=1)
        rankings = [Ranking.of(drawn.scores[0])]
        for figure, figures in found.items():
            made = replicates(drawn, rankings, figure)
            score = Score(made.by_key[0], None, None, 1)
            figures.append(with_interval(score, made, over="people"))
    mean = sum(score.value for score in found[rate]) / repeats
    for figure, expected in ((membership_auc, true), (rate, mean)):
        held = sum(cast(float, score.low) <= expected <= cast(float, score.high) for score in found[figure])
        assert held >= binom(repeats, 0.92).ppf(1e-3)  # a bootstrap of 100 people falls a little short of .95


def test_keys_that_differ_widen_the_interval() -> None:
    members = torch.arange(400) < 300
    noise = torch.randn(400, generator=torch.Generator().manual_seed(2)).double()
    alike = MembershipEvidence([noise + members, noise + members], [members] * 2, None, 0, 0)
    apart = MembershipEvidence([noise, noise + 2 * members], [members] * 2, None, 0, 0)
    widths = [cast(float, score.high) - cast(float, score.low) for score in map(MembershipAUC(), (alike, apart))]
    assert widths[1] > 2 * widths[0]


def test_an_attack_of_the_wrong_sign_is_told_from_protection() -> None:
    found = evidence(0, people=200, signal=-2.0)
    score = MembershipAUC()(found)
    assert score.value < cast(float, score.null_low)  # p asks one side, what Eve gains; the interval shows the other
    assert (score.sides, score.p) == (1, 1.0)
    assert "wrong sign" in score.note


def test_exchanges_move_whole_people_and_keep_their_number() -> None:
    found = evidence(0)
    people = people_of(found)
    chosen = next(people.exchanged(1, 50, 1))
    rows = people.rows(chosen)
    assert all(len(row.unique()) == 45 for row in chosen)
    assert not torch.equal(rows[0], rows[1])
    for row in rows:
        sides = torch.stack((people.codes, row), dim=1).unique(dim=0)
        assert len(sides) == 60


def test_somebody_on_both_sides_is_an_error() -> None:
    members = torch.tensor([True, False, True, False])
    with pytest.raises(ValueError, match="1 people who are both"):
        people_of(MembershipEvidence([torch.rand(4).double()], [members], torch.tensor([1, 1, 2, 3]), 0, 0))


@pytest.mark.parametrize("metric", [MembershipAUC(), MembershipTPR()])
@pytest.mark.parametrize("members", [torch.ones(5, dtype=torch.bool), torch.zeros(5, dtype=torch.bool)])
def test_one_side_alone_is_not_applicable(metric: MembershipAUC | MembershipTPR, members: Tensor) -> None:
    with pytest.raises(NotApplicable, match="needs members and others"):
        metric(single(torch.rand(5), members))


def test_people_are_rows_where_nobody_knows_them() -> None:
    people: People = people_of(single(torch.rand(6), torch.arange(6) < 2))
    assert people.codes.tolist() == list(range(6))
    assert people.members.tolist() == [[True, True, False, False, False, False]]


def test_a_member_who_is_always_told_stands_out_and_an_outlier_does_not() -> None:
    random = torch.Generator().manual_seed(0)
    members = [torch.randperm(200, generator=random) < 100 for _ in range(40)]
    scores = [torch.rand(200, generator=random).double() for _ in members]
    for own, score in zip(members, scores, strict=True):
        score[3] = 2.0 + own[3]  # far above all others, whenever it is a member
        score[4] = 2.0  # far above the rest, member or not
        score[3] = score[3] if own[3] else 0.0
    risk = told_members(MembershipEvidence(scores, members, None, 0, 0))
    keys = [int(torch.stack(members)[:, row].sum()) for row in (3, 4)]
    assert [int(risk.found[:, row].sum()) for row in (3, 4)] == keys
    rates = risk.found.sum(dim=0) / risk.trials.sum(dim=0)
    excess = rates - risk.luck[0]
    assert int(excess.argmax()) == 3
    assert excess[4] < 0.2
    score = MemberRisk()(MembershipEvidence(scores, members, None, 0, 0))
    assert score.value == pytest.approx(float(excess[3]))
    assert score.p is None


@pytest.mark.parametrize("keys", [50, 80])
def test_people_who_stand_out_whether_or_not_they_are_members_are_not_said_to_be_told(keys: int) -> None:
    """Of six draws, none may have a lower bound above 0; each errs with a chance of 2.5 % at most."""
    random = torch.Generator().manual_seed(0)
    for _ in range(6):
        scores = torch.randn(600, generator=random).double()
        members = [torch.randperm(600, generator=random) < 300 for _ in range(keys)]
        score = MemberRisk()(MembershipEvidence([scores] * keys, members, None, 0, 0))
        assert score.low == 0
        assert score.high is not None
        assert score.high >= score.value


def test_too_few_keys_for_a_worst_member_still_give_the_mean() -> None:
    random = torch.Generator().manual_seed(0)
    members = [torch.randperm(200, generator=random) < 100 for _ in range(12)]
    evidence = MembershipEvidence([own.double() for own in members], members, None, 0, 0)
    with pytest.raises(NotApplicable, match=r"with 12 keys, .* the luckiest of 200 people .*: \d+ keys are enough"):
        MemberRisk()(evidence)
    assert MembersFound()(evidence).value == 1.0


def test_members_of_one_row_each_are_told_as_often_as_the_rate_says() -> None:
    """Of scores that know nothing, a member stands above all others but one in 100 with a chance of 2 / 151."""
    random = torch.Generator().manual_seed(1)
    members = [torch.randperm(300, generator=random) < 150 for _ in range(40)]
    scores = [torch.rand(300, generator=random).double() for _ in members]
    risk = told_members(MembershipEvidence(scores, members, None, 0, 0))
    assert float(risk.chance[0]) == pytest.approx(2 / 151)
    # 40 independent means of about 2 hits, whose spread is about that of a geometric number of the same mean
    assert float(risk.found.sum()) == pytest.approx(40 * 150 * 2 / 151, rel=4 * 0.8 / math.sqrt(40))


def test_the_worst_members_of_random_scores_lie_where_chance_is_said_to_put_them() -> None:
    """People of 20 images stand above the bar more often than those of one."""
    random = torch.Generator().manual_seed(0)
    subjects = torch.arange(200).repeat_interleave(torch.tensor([1] * 180 + [20] * 20))
    above, apart = 0, []
    for _ in range(12):
        members = [(torch.randperm(200, generator=random) < 100)[subjects] for _ in range(66)]
        scores = [torch.rand(len(subjects), generator=random).double() for _ in members]
        score = MemberRisk()(MembershipEvidence(scores, members, subjects, 0, 0))
        assert score.null is not None
        assert score.null_high is not None
        above += score.value > score.null_high
        apart.append(score.value - score.null)
    assert above <= 4
    assert fmean(apart) < 0.07


def test_people_who_are_known_are_the_same_for_every_attack() -> None:
    names = []
    for seed in (1, 2):
        members = torch.arange(60) // 2 % 2 == 0
        scores = [torch.rand(60, generator=torch.Generator().manual_seed(seed)).double()]
        for subjects in (torch.arange(60) // 2, None):
            found = MembershipAUC()(MembershipEvidence(scores, [members], subjects, seed, 7)).replicates
            assert found is not None
            names.append(found.people)
    assert names[0] == names[2] != ""
    assert names[1] == names[3] == ""


def test_a_patient_is_known_by_all_images() -> None:
    found = evidence(5, people=200, signal=1.0, keys=1)
    by_image, by_patient = MembershipAUC()(found), PatientMembershipAUC()(found)
    people = by_person(found)
    ranks = found.scores[0].argsort().argsort().double()
    assert found.subjects is not None
    means = torch.stack([ranks[found.subjects == person].mean() for person in range(200)])
    inside = torch.stack([found.members[0][found.subjects == person][0] for person in range(200)])
    assert by_patient.value == pytest.approx(roc_auc_score(inside, means), abs=1e-12)
    assert people.subjects is None
    assert len(people.scores[0]) == 200
    assert by_patient.value > by_image.value  # noise of single images averages out


def test_patients_at_chance_have_a_calibrated_probability() -> None:
    found = [PatientMembershipAUC()(evidence(seed, people=40, keys=2)).p for seed in range(100)]
    small = sum(p is not None and p < 0.05 for p in found)
    assert small <= binom.ppf(0.999, 100, 0.05)


@pytest.mark.parametrize("subjects", [None, torch.arange(8)])
def test_patients_need_several_images(subjects: Tensor | None) -> None:
    members = torch.arange(8) < 4
    game = MembershipEvidence([torch.arange(8).double()], [members], subjects, 0, 0)
    with pytest.raises(NotApplicable, match=r"subjects|one image"):
        PatientMembershipAUC()(game)


def test_copies_are_counted_against_held_out_rows() -> None:
    members = torch.arange(400) < 200
    scores = torch.rand(400, generator=torch.Generator().manual_seed(0)).double()
    scores[:50] += 1  # a quarter of the private rows stand out
    found = CopiedShare()(CopyEvidence([scores], [members], None, 0, 0))
    assert 0.25 <= found.value < 0.3
    assert found.p is not None
    assert found.p < 1e-4
    assert found.parts["AUC"].value == pytest.approx(roc_auc_score(members, scores))
