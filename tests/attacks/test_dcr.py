"""Distance to the closest record: hand values, and what it takes from a release and its generator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from attacks.dcr import DCR
from bench.types import Dataset, Generator, NotApplicable, Release, State, View
from methods.identity import Identity

NAN = float("nan")


def rows(samples: Tensor, labels: Tensor | None = None) -> Dataset:
    names = () if labels is None else tuple(f"finding {k}" for k in range(labels.shape[1]))
    return Dataset("made", samples, labels, None, names, False, True)


def view(candidates: Dataset, control: Tensor | None = None) -> View:
    known = rows(torch.tensor([[-1.0, -2.0], [1.0, 2.0]]) if control is None else control)
    return View(known, Identity().fit(known, 0), candidates, known)


@dataclass(frozen=True)
class Line(Generator):
    """Row number i stands at (i, 0)."""

    def sample(self, count: int, seed: int) -> Release:
        return Release(torch.stack((torch.arange(count).float(), torch.zeros(count)), dim=1), None, None)

    def state(self) -> State:
        return {}


def test_distances_are_in_deviations_of_the_control_rows_on_request() -> None:
    # Deviations 1 and 2: (3, 4) is 3 and 2 away from the origin.
    candidates, release = rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]])), Release(torch.zeros(1, 2), None, None)
    found = {scaled: DCR(scaled=scaled).fit(view(candidates), 0).membership(release) for scaled in (False, True)}
    assert found[True].tolist() == pytest.approx([-(13**0.5), 0.0])
    assert found[False].tolist() == [-5.0, 0.0]
    assert found[False].dtype == torch.float64


def test_columns_that_are_constant_in_control_rows_keep_their_unit() -> None:
    control = torch.tensor([[7.0, -1.0], [7.0, 1.0]])
    attacker = DCR(scaled=True).fit(view(rows(torch.tensor([[10.0, 0.0]])), control), 0)
    assert attacker.membership(Release(torch.tensor([[7.0, 0.0]]), None, None)).tolist() == [-3.0]


def test_the_nearest_of_all_released_rows_counts() -> None:
    random = torch.Generator().manual_seed(0)
    candidates, released = torch.randn(30, 5, generator=random), torch.randn(40, 5, generator=random)
    control = torch.randn(20, 5, generator=random)
    found = DCR(scaled=True).fit(view(rows(candidates), control), 0).membership(Release(released, None, None))
    scale = control.double().std(dim=0, correction=0)
    slow = [min(float(((one - other) / scale).norm()) for other in released.double()) for one in candidates.double()]
    assert found.tolist() == pytest.approx([-distance for distance in slow])


def test_images_count_as_their_pixels() -> None:
    images = torch.rand(12, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    flat = [DCR().fit(view(rows(each[:8]), each[8:]), 0).membership(Release(each[:2], None, None))
            for each in (images, images.flatten(1))]  # fmt: skip
    assert torch.equal(*flat)
    assert flat[0][:2].tolist() == [0, 0]


def test_only_rows_of_the_same_class_count_where_labels_do() -> None:
    labels = torch.tensor([[1.0], [0.0], [NAN]])
    candidates = rows(torch.zeros(3, 2), labels)
    release = Release(torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]), labels, None)
    # A withheld label is a class of its own: methods that look at labels take such rows together.
    assert DCR().fit(view(candidates), 0).membership(release).tolist() == [-1, -2, -3]
    assert DCR(labels=False).fit(view(candidates), 0).membership(release).tolist() == [-1, -1, -1]


def test_a_class_that_was_not_released_is_compared_with_all_rows() -> None:
    candidates = rows(torch.zeros(1, 2), torch.tensor([[1.0]]))
    release = Release(torch.tensor([[5.0, 0.0], [2.0, 0.0]]), torch.zeros(2, 1), None)
    assert DCR().fit(view(candidates), 0).membership(release).tolist() == [-2]


def test_a_release_without_labels_is_compared_as_a_whole() -> None:
    candidates = rows(torch.zeros(1, 2), torch.tensor([[1.0]]))
    release = Release(torch.tensor([[5.0, 0.0], [2.0, 0.0]]), None, None)
    assert DCR().fit(view(candidates), 0).membership(release).tolist() == [-2]


def test_a_generator_is_asked_for_more_rows_than_were_released() -> None:
    candidates = rows(torch.stack((torch.arange(1000.0), torch.zeros(1000)), dim=1))
    release = Release(torch.full((3, 2), 1e6), None, None, generator=Line())
    hits = {draws: int((DCR(draws=draws).fit(view(candidates), 0).membership(release) == 0).sum()) for draws in (0, 4)}
    assert hits == {0: 0, 4: 12}


@pytest.mark.parametrize("scaled", [False, True])
def test_released_rows_of_another_shape_are_not_applicable(scaled: bool) -> None:
    attacker = DCR(scaled=scaled).fit(view(rows(torch.zeros(1, 2))), 0)
    with pytest.raises(NotApplicable, match="one space"):
        attacker.membership(Release(torch.zeros(1, 3), None, None))


def test_fewer_than_no_draws_are_refused() -> None:
    with pytest.raises(ValueError, match="draws must be at least 0, got -1"):
        DCR(draws=-1)


def test_scores_hang_on_the_candidates_own_row_alone() -> None:
    random = torch.Generator().manual_seed(3)
    candidates, release = torch.randn(9, 2, generator=random), Release(torch.randn(9, 2, generator=random), None, None)
    whole = DCR().fit(view(rows(candidates)), 0).membership(release)
    part = DCR().fit(view(replace(rows(candidates), samples=candidates[4:6])), 0).membership(release)
    assert torch.equal(part, whole[4:6])
