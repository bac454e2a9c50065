from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
from made import random_evidence
from made.dense_scores import DenseScores
from scipy.stats import binom

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.people import exchanged_links
from bench.pairs.sweep import Grid, count_grids
from bench.statistics.resampling import half_samples
from bench.types import Metric, NotApplicable, Score
from metrics.guesswork import Guesswork, PatientGuesswork
from metrics.median_rank import MedianRank
from metrics.reid_auc import PatientReidAUC, ReidAUC
from metrics.top_1 import Top1
from metrics.tpr_at_low_fpr import TPRAtLowFPR

PRIMARY = "primary constituent"
METRICS = [Guesswork(), ReidAUC(), Top1(), MedianRank(), TPRAtLowFPR()]
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
    for module in ("guesswork", "top_1", "median_rank", "tpr_at_low_fpr"):
        monkeypatch.setattr(f"metrics.{module}.DRAWS", 150)


@cache
def evidence(layout: str, seed: int) -> PairEvidence:
    return random_evidence.evidence(seed, keys=2, **LAYOUTS[layout])  # type: ignore[arg-type]


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


def test_independent_scores_would_be_the_wrong_null_for_people_alike() -> None:
    """Without exchanged links, the median rank of such scores is refused far more often: that is why they exist."""
    scores = []
    for seed in range(REPEATS):
        images = PairLevel(alike(seed).images.counts, alike(seed).images.links)
        scores.append(MedianRank()(replace(alike(seed), images=images)))
    assert refused(scores) > REPEATS * 0.05


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@pytest.mark.parametrize("permuted", [False, True])
def test_a_perfect_attack_leaves_the_null_interval(metric: Metric[PairEvidence], permuted: bool) -> None:
    score = metric(random_evidence.evidence(0, n=80, signal=50.0, permuted=permuted))
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


def test_p_of_guesswork_goes_far_below_what_draws_resolve() -> None:
    p = Guesswork()(random_evidence.evidence(0, n=80, keys=6, signal=50.0)).p
    assert p is not None
    assert 0 < p < 1e-6


def test_guesswork_by_person_claims_no_null_without_exchanged_links() -> None:
    score = PatientGuesswork()(evidence("one to one, several images a person", 0))
    assert (score.null, score.null_low, score.null_high, score.p) == (None, None, None, None)
    assert "noise" in score.note


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
    if not sets:
        return PairEvidence((n, 1), PairLevel([counts], links), PairLevel([counts], links), halves, 0)
    own, *others = count_grids(scores, [Grid(torch.arange(n), torch.arange(1), sets)])[0]
    level = PairLevel([counts], links, [own], [others])
    return PairEvidence((n, 1), level, level, halves, 0)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_the_null_of_exchanged_people_stands_for_those_who_cannot_be_too(metric: Metric[PairEvidence]) -> None:
    # 20 people of one image, who can be exchanged, beside 11 of 2 to 12 images, no two of whom have as many.
    sizes = torch.tensor([1] * 20 + list(range(2, 13)))
    subjects = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    exchanged = random_evidence.evidence(3, subjects=subjects, keys=5, permuted=True)
    found = metric(exchanged)
    apart = metric(replace(exchanged, images=PairLevel(exchanged.images.counts, exchanged.images.links)))
    for name in ("null", "null_low", "null_high"):
        # 45 exchanges give the mean of a figure as scattered as guesswork to a sixth, three times over.
        assert getattr(found, name) == pytest.approx(getattr(apart, name), rel=0.5, abs=0.02), name


def test_permuted_counts_without_the_whole_grids_own_are_refused() -> None:
    level = alike(0).images
    with pytest.raises(ValueError, match="2 of each, got 0 whole and 2 permuted"):
        PairLevel(level.counts, level.links, (), level.permuted)


def test_a_low_rate_needs_enough_unlinked_pairs() -> None:
    with pytest.raises(NotApplicable, match="one in 1000"):
        TPRAtLowFPR()(random_evidence.evidence(0, n=30))


def test_the_lower_rate_stands_beside_where_pairs_are_enough() -> None:
    score = TPRAtLowFPR()(random_evidence.evidence(0, n=240, keys=1, signal=3.0))
    assert score.value > score.parts["one in 10000"].value > 0


def test_the_same_evidence_gives_the_same_bits() -> None:
    for metric in [*METRICS, *PATIENT]:
        assert metric(alike(1)) == metric(alike(1))
