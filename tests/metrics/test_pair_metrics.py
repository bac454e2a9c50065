from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import cast

import pytest
import torch
from made import random_evidence
from made.dense_scores import DenseScores
from scipy.stats import binom

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.person_links import exchanged_links
from bench.pairs.sweep import Grid, count_grids
from bench.statistics.bootstrap import half_samples
from bench.statistics.pair_statistics import Layout
from bench.types import Metric, NotApplicable, Score
from metrics.guesswork import Guesswork, PatientGuesswork, SuccessWithin, guesswork, success_within
from metrics.pair_roc import PatientReidAUC, ReidAUC, TPRAtLowFPR
from metrics.ranks import MedianRank, Top1, Top5, chance_of_five, top_5

PRIMARY = "primary constituent"
METRICS = [Guesswork(), ReidAUC(), Top1(), MedianRank(), TPRAtLowFPR(), Top5(), SuccessWithin()]
PATIENT = [PatientGuesswork(), PatientReidAUC()]
REPEATS = 12
LAYOUTS: dict[str, dict[str, object]] = {
    "one to one, several images a person": {"n": 80},
    "k to one, fewer released rows": {"n": 100, "kind": "k to one", "samples": 3},
    "two rows mixed into one": {"n": 80, "kind": "mixed"},
    "heavy ties": {"n": 80, "levels": 12},
}


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    for draws in ("guesswork.DRAWS", "ranks.DRAWS", "ranks.MEDIAN_DRAWS", "pair_roc.DRAWS"):
        monkeypatch.setattr(f"metrics.{draws}", 150)


@cache
def evidence(layout: str, seed: int) -> PairEvidence:
    return random_evidence.evidence(seed, keys=2, permuted=True, **LAYOUTS[layout])  # type: ignore[arg-type]


def refused(scores: list[Score]) -> int:
    return sum(score.p is not None and score.p < 0.05 for score in scores)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_scores_are_refused_at_one_in_twenty_at_most(layout: str) -> None:
    # Refusals of 12 are binomial with a chance of .05 at most: 5 or more happen twice in ten thousand.
    allowed = int(binom.isf(1e-3, REPEATS, 0.05))
    for metric in METRICS:
        scores = [metric(evidence(layout, seed)) for seed in range(REPEATS)]
        assert refused(scores) <= allowed, metric.name
        inside = [score.null_low <= score.value <= score.null_high for score in scores]  # type: ignore[operator]
        assert REPEATS - sum(inside) <= allowed, metric.name
        if layout == "two rows mixed into one":
            assert refused([score.parts[PRIMARY] for score in scores]) <= allowed, metric.name


@pytest.mark.parametrize("metric", METRICS + PATIENT, ids=lambda metric: metric.name)
def test_scores_that_are_alike_within_people_are_refused_as_rarely(metric: Metric[PairEvidence]) -> None:
    allowed = int(binom.isf(1e-3, REPEATS, 0.05))
    assert refused([metric(alike(seed)) for seed in range(REPEATS)]) <= allowed


@cache
def alike(seed: int) -> PairEvidence:
    return random_evidence.evidence(seed, n=80, keys=2, alike=0.8, permuted=True)


@pytest.mark.parametrize("metric", METRICS + PATIENT, ids=lambda metric: metric.name)
def test_chance_is_what_random_scores_give_whatever_the_scores_look_like(metric: Metric[PairEvidence]) -> None:
    found = [metric(random_evidence.evidence(1, n=80, keys=2, alike=share, permuted=True)) for share in (0.0, 0.8)]
    assert len({(score.null, score.null_low, score.null_high) for score in found}) == 1


def test_hubs_are_refused_as_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raw rows that every released row likes: without people known, rows are exchanged, and p stays honest."""
    allowed = int(binom.isf(1e-3, REPEATS, 0.05))
    found = [
        random_evidence.evidence(seed, n=60, keys=2, hubs=3.0, permuted=True, alone=True) for seed in range(REPEATS)
    ]
    for metric in METRICS:
        assert refused([metric(each) for each in found]) <= allowed, metric.name


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_perfect_attack_leaves_the_null_interval(metric: Metric[PairEvidence]) -> None:
    score = metric(random_evidence.evidence(0, n=80, signal=50.0, permuted=True))
    assert score.null_low is not None
    assert score.null_high is not None
    assert not score.null_low <= score.value <= score.null_high
    assert score.value == 1.0
    assert score.p is not None
    assert score.p < 0.02


@pytest.mark.parametrize("metric", PATIENT, ids=lambda metric: metric.name)
def test_a_perfect_attack_is_seen_by_person(metric: Metric[PairEvidence]) -> None:
    score = metric(random_evidence.evidence(0, n=80, signal=50.0, permuted=True))
    assert score.p is not None
    assert score.p < 0.02


def test_p_of_guesswork_goes_below_what_draws_resolve() -> None:
    p = Guesswork()(random_evidence.evidence(0, n=80, keys=6, signal=50.0, permuted=True)).p
    assert p == pytest.approx(1e-6, rel=0.1)  # of ten arrangements of the links under each of six keys


def test_guesswork_is_a_median_with_bounds_of_order_statistics() -> None:
    found = random_evidence.evidence(0, n=80, keys=6, signal=-50.0, permuted=True)
    score = Guesswork()(found)
    by_key = sorted(map(guesswork, found.images.full))
    assert (score.low, score.value, score.high) == (by_key[0], 80 * 80 - 80 + 1, by_key[-1])
    assert "96.9% interval of the median over 6 keys, of these people" in score.note
    assert score.parts["mean"].value == pytest.approx(sum(by_key) / 6)
    assert score.parts["mean"].low is score.parts["half samples"].low is None
    assert score.parts["half samples"].value < score.value / 3


@pytest.mark.parametrize(("keys", "limit"), [(5, "order statistics"), (2, "if every guess hits with one probability")])
def test_few_keys_give_guesswork_no_interval_but_what_there_is(keys: int, limit: str) -> None:
    score = Guesswork()(random_evidence.evidence(0, n=80, keys=keys, signal=50.0, permuted=True))
    assert score.low is score.high is None
    assert f"no 95 % interval: the median of {keys} keys has none (6 keys are enough); 1 to 1" in score.note
    assert limit in score.parts["upper limit"].note
    assert score.parts["upper limit"].value == pytest.approx(1 if keys == 5 else 0.025 ** (-1 / 2))


@pytest.mark.parametrize(("keys", "low"), [(2, 0.05 ** (1 / 2)), (5, 0.05 ** (1 / 5))])
def test_a_first_guess_that_is_always_right_is_as_sure_as_its_keys(keys: int, low: float) -> None:
    score = SuccessWithin()(random_evidence.evidence(0, n=80, keys=keys, signal=50.0, permuted=True))
    assert (score.value, score.high) == (1.0, 1.0)
    assert score.low == pytest.approx(low)
    assert set(score.parts) == {"10 guesses", "100 guesses"}


def test_nobody_to_exchange_leaves_no_p_and_says_so() -> None:
    score = Guesswork()(random_evidence.evidence(0, n=80))
    assert score.p is None
    assert "too few people" in score.note


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_only_mixed_rows_have_a_primary_constituent(metric: Metric[PairEvidence]) -> None:
    assert PRIMARY not in metric(evidence("one to one, several images a person", 0)).parts
    mixed = evidence("two rows mixed into one", 0)
    part = metric(mixed).parts[PRIMARY]
    assert mixed.primary is not None
    alone = metric(replace(mixed, images=mixed.primary, primary=None))
    assert part.value == alone.value


@pytest.mark.parametrize("metric", PATIENT, ids=lambda metric: metric.name)
def test_patient_figures_need_subjects(metric: Metric[PairEvidence]) -> None:
    with pytest.raises(NotApplicable, match="who is who"):
        metric(replace(evidence("one to one, several images a person", 0), patients=None))


@pytest.mark.parametrize("metric", [*METRICS[:4], *PATIENT], ids=lambda metric: metric.name)
@pytest.mark.parametrize("rows", [1, 12])
def test_a_grid_in_which_every_pair_is_right_is_found_by_anyone(metric: Metric[PairEvidence], rows: int) -> None:
    everything = all_linked(rows)
    if isinstance(metric, ReidAUC | PatientReidAUC):
        with pytest.raises(NotApplicable, match="wrong pairs"):
            metric(everything)
        return
    score = metric(everything)
    assert score.value == 1.0
    assert score.p in (None, 1.0)
    assert score.null in (None, 1.0)


def all_linked(n: int) -> PairEvidence:
    """All of n raw rows, of as many people, stand in the one released row."""
    links = torch.stack((torch.arange(n), torch.zeros(n, dtype=torch.int64)), dim=1)
    halves = half_samples(None, n, 3, seed=0)
    sets = exchanged_links(links, torch.arange(n), n, sets=9, seed=0)
    scores = DenseScores(torch.rand(n, 1, generator=torch.Generator().manual_seed(0)))
    grids = [Grid(rows, torch.arange(1), [links[rows]]) for rows in halves]
    counts = [counted for (counted,) in count_grids(scores, grids)]
    full = count_grids(scores, [Grid(torch.arange(n), torch.arange(1), [links])])[0]
    own, others = [], []
    if sets:
        first, *rest = count_grids(scores, [Grid(torch.arange(n), torch.arange(1), sets)])[0]
        own, others = [first], [rest]
    level = PairLevel([counts], links, own, others, full, [torch.zeros(1, dtype=torch.int64)])
    return PairEvidence(
        (n, 1), level, level, halves, persons=torch.arange(n), known=True, draws=0, resamples="", seed=0
    )


def test_permuted_counts_without_the_whole_grids_own_are_refused() -> None:
    level = alike(0).images
    with pytest.raises(ValueError, match="2 of each, got 0 whole and 2 permuted"):
        PairLevel(level.counts, level.links, (), level.permuted, level.full, level.owners)


def test_a_low_rate_needs_enough_unlinked_pairs() -> None:
    with pytest.raises(NotApplicable, match="one in 1000"):
        TPRAtLowFPR()(random_evidence.evidence(0, n=30))


def test_the_lower_rate_stands_beside_where_pairs_are_enough() -> None:
    score = TPRAtLowFPR()(random_evidence.evidence(0, n=240, keys=1, signal=3.0))
    assert score.value > score.parts["one in 10000"].value > 0


def test_the_same_evidence_gives_the_same_bits() -> None:
    for metric in [*METRICS, *PATIENT]:
        assert metric(alike(1)) == metric(alike(1))


def test_success_within_counts_orders_of_ties() -> None:
    # Above the best linked score stands one pair; four pairs tie there, two of them right.
    scores = DenseScores(torch.tensor([[9.0, 5.0, 1.0], [5.0, 5.0, 0.0], [5.0, 0.0, 0.0]]))
    counts = count_grids(scores, [Grid(torch.arange(3), torch.arange(3), [torch.tensor([[0, 1], [1, 1], [2, 2]])])])[0][
        0
    ]
    assert [success_within(counts, guesses) for guesses in (1, 2, 3, 4)] == pytest.approx([0, 1 / 2, 5 / 6, 1])


@pytest.mark.parametrize("levels", [1, 3, 40, None])
def test_chance_of_a_right_first_guess_spreads_as_its_ties_let_it(levels: int | None) -> None:
    found = [
        SuccessWithin()(random_evidence.evidence(seed, n=80, keys=2, levels=levels, alone=True)) for seed in range(30)
    ]
    allowed = int(binom.isf(1e-3, 30, 0.05))
    for scores in (found, *([score.parts[part] for score in found] for part in ("10 guesses", "100 guesses"))):
        assert sum(not score.null_low <= score.value <= score.null_high for score in scores) <= allowed  # type: ignore[operator]
    if levels == 1:
        assert found[0].value == pytest.approx(1 / 80)
        assert 0 < cast(float, found[0].null_low) < found[0].value < cast(float, found[0].null_high) < 1 / 40


def test_top_5_of_random_scores_is_the_closed_share() -> None:
    repeats, n = 60, 40
    found = [random_evidence.evidence(seed, n=n, keys=1, alone=True) for seed in range(repeats)]
    expected = float(chance_of_five(Layout.of(found[0], found[0].images.links)).mean())
    assert expected == pytest.approx(5 / n)
    shares = [top_5(each.images.full[0]) for each in found]
    assert sum(shares) / repeats == pytest.approx(expected, abs=4 * (expected * (1 - expected) / n / repeats) ** 0.5)
