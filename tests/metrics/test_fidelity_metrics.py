from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy
import torch

from bench.evidence import FidelityEvidence, ImageSet
from bench.seeds import generator
from bench.types import Metric, NotApplicable
from metrics.fidelity import FID, KID, Coverage, Density, PairLikeness, Precision, Recall, coverage, density, fid, kid
from metrics.fidelity import precision as share_among

ALL: list[Metric[FidelityEvidence]] = [KID(), FID(), Precision(), Recall(), Density(), Coverage(), PairLikeness()]


def waves(n: int, d: int, speed: float) -> torch.Tensor:
    """Numbers that every machine and version makes alike."""
    return torch.sin(speed * torch.arange(1.0, n * d + 1, dtype=torch.float64).square()).reshape(n, d)


def normal(n: int, seed: int, shift: float = 0.0, d: int = 6) -> torch.Tensor:
    return torch.randn(n, d, generator=generator(seed)) + shift


def images(features: torch.Tensor | None, *, per_person: int = 1, labels: torch.Tensor | None = None) -> ImageSet:
    n = 0 if features is None else len(features)
    alike = {"": torch.linspace(0.2, 0.4, 30, dtype=torch.float64)}
    return ImageSet(features, torch.arange(n) // per_person, labels, alike)


def evidence(reference: ImageSet, original: ImageSet, released: ImageSet) -> FidelityEvidence:
    return FidelityEvidence(reference, original, released, "made by hand", ("sick", "well"), 7)


def own_people(*sets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(len(sets[0])), torch.arange(len(sets[1]))


def test_kid_and_fid_are_those_of_torchmetrics() -> None:
    a, b = waves(40, 6, 0.37), waves(40, 6, 0.11) * 0.5 + 0.2
    # torchmetrics 1.9.0 in float64, features handed through; KID of one subset that holds all 40 rows.
    assert fid(a, b) == pytest.approx(1.1404802048361078, rel=1e-9)
    assert kid(a, b, own_people(a, b)) == pytest.approx(0.15259839442527312, rel=1e-9)


@pytest.mark.parametrize(("n", "m"), [(30, 30), (5, 40), (4, 5)])  # more and fewer rows than the 6 columns
def test_fid_is_the_textbook_formula(n: int, m: int) -> None:
    a, b = (waves(rows, 6, speed).numpy() for rows, speed in ((n, 0.37), (m, 0.11)))
    first, second = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    values = scipy.linalg.eigvals(first @ second).real.clip(min=0)
    by_hand = np.square(a.mean(0) - b.mean(0)).sum() + np.trace(first + second) - 2 * np.sqrt(values).sum()
    assert fid(torch.from_numpy(a), torch.from_numpy(b)) == pytest.approx(by_hand, rel=1e-6)


def test_neighbour_figures_are_those_of_plain_loops() -> None:
    a, b = waves(25, 3, 0.37), waves(20, 3, 0.11) * 0.6
    near = lambda rows: [sorted(float((row - other).norm()) for other in rows)[5] for row in rows]  # noqa: E731
    ours, theirs = near(a), near(b)
    apart = [[float((x - y).norm()) for y in b] for x in a]
    inside = [[apart[i][j] < ours[i] for j in range(20)] for i in range(25)]
    reached = [[apart[i][j] < theirs[j] for j in range(20)] for i in range(25)]
    assert share_among(a, b) == pytest.approx(sum(any(inside[i][j] for i in range(25)) for j in range(20)) / 20)
    assert share_among(b, a) == pytest.approx(sum(any(row) for row in reached) / 25)
    assert density(a, b) == pytest.approx(sum(map(sum, inside)) / 20 / 5)
    assert coverage(a, b) == pytest.approx(sum(min(apart[i]) < ours[i] for i in range(25)) / 25)


def test_kid_of_raw_images_is_0_on_average_even_if_people_have_several() -> None:
    """Pairs of one person's equal images, if they counted, would add more than ten standard errors."""
    drawn = []
    for seed in range(40):
        people = [normal(12, 2 * seed + side).repeat_interleave(3, dim=0) for side in (0, 1)]
        score = KID()(evidence(*(images(people[side], per_person=3) for side in (0, 1, 1))))
        drawn.append(score.value)
    mean, error = np.mean(drawn), np.std(drawn, ddof=1) / np.sqrt(len(drawn))
    assert abs(mean) < 4 * error  # 6 in 100,000 by chance


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_identity_has_the_figure_of_raw_images_itself(metric: Metric[FidelityEvidence]) -> None:
    reference, original = (images(normal(60, seed)) for seed in (0, 1))
    score = metric(evidence(reference, original, original))
    assert score.value == score.null
    assert (score.low, score.high) == (score.null_low, score.null_high)


@pytest.mark.parametrize("metric", ALL[:6], ids=lambda metric: metric.name)
def test_images_of_another_kind_are_surely_worse_than_raw_ones(metric: Metric[FidelityEvidence]) -> None:
    reference, original, released = (images(normal(80, seed, shift)) for seed, shift in ((0, 0), (1, 0), (2, 2.5)))
    score = metric(evidence(reference, original, released))
    assert score.null_low is not None
    if score.value == 0:  # none of the raw images is reached
        assert metric.better == "higher"
    elif metric.better == "lower":
        assert score.low > score.null_high  # type: ignore[operator]
    else:
        assert score.high < score.null_low  # type: ignore[operator]


def test_what_shows_one_image_again_and_again_is_precise_and_reaches_little() -> None:
    reference, original = (images(normal(80, seed)) for seed in (0, 1))
    released = replace(images(torch.zeros(80, 6)), people=None)
    measured = {metric.name: metric(evidence(reference, original, released)) for metric in ALL[:6]}
    assert measured["precision"].value == 1
    assert measured["recall"].value == 0
    assert measured["coverage"].value < 0.5
    for score in measured.values():
        assert score.low is None
        assert "fewer than 10" in score.note or "every group" in score.note


def test_rows_released_several_times_are_left_out_together() -> None:
    reference, original = (images(normal(80, seed)) for seed in (0, 1))
    twice = normal(40, 2).repeat(2, 1)
    assert KID()(evidence(reference, original, images(twice))) == KID()(
        evidence(reference, original, replace(images(twice), people=None))
    )


def test_equal_numbers_are_compared_and_kid_reads_all() -> None:
    sides = images(normal(50, 0)), images(normal(70, 1)), images(normal(90, 2))
    assert FID()(evidence(*sides)).n == 50
    assert KID()(evidence(*sides)).n == 90


def test_findings_with_enough_images_are_parts() -> None:
    number = torch.arange(80)
    labels = torch.stack(((number % 2).float(), (number < 10).float()), dim=1)
    sides = [images(normal(80, seed), labels=labels) for seed in (0, 1, 2)]
    score = KID()(evidence(*sides))
    assert set(score.parts) == {"sick"}
    part = score.parts["sick"]
    chosen = [side.features[1::2].double() for side in (sides[0], sides[2])]  # type: ignore[index]
    assert part.value == pytest.approx(kid(*chosen, own_people(*chosen)))
    assert part.n == 40
    assert not FID()(evidence(*sides)).parts


def test_without_a_network_pairs_alone_are_measured() -> None:
    sides = evidence(*(images(None) for _ in range(3)))
    with pytest.raises(NotApplicable, match="made by hand"):
        KID()(sides)
    assert PairLikeness()(sides).value == pytest.approx(0.3)


def test_the_interval_of_kid_holds_the_populations_distance() -> None:
    """Of 60 draws, 48 to 60 cover it if 95 % do: fewer have a probability below 1 in 100,000."""
    large = normal(3000, 1000).double(), normal(3000, 1001, 0.5).double()
    truth, covered = kid(*large, own_people(*large)), 0
    for seed in range(60):
        reference, released = images(normal(60, 2 * seed)), images(normal(60, 2 * seed + 1, 0.5))
        score = KID()(evidence(reference, released, released))
        assert score.low is not None
        assert score.high is not None
        covered += score.low <= truth <= score.high
    assert covered >= 48
