"""Views keep what a way of hiding leaves, and nothing of what it takes."""

from __future__ import annotations

import torch

from bench.bob.model_selection import held_out
from bench.bob.recipe_training import _path
from bench.bob.recipes import (
    PatchBag,
    Pooled,
    Recipe,
    SortedPatches,
    WhitenedPatches,
    bears_shifts,
    every_view,
    shifted,
    views,
)
from bench.nets.patches import cut, fold

IMAGES = torch.randn(12, 1, 16, 16, generator=torch.Generator().manual_seed(0))


def test_vectors_have_one_view_and_images_those_that_fit_their_side() -> None:
    assert set(views(torch.rand(5, 7))) == {"columns"}
    assert {"pixels", "2x2 means", "8x8 means"} <= set(views(IMAGES))
    assert "8x8 means" not in views(IMAGES[..., :8, :8])
    assert "magnitudes" in views(IMAGES)
    assert "magnitudes" not in views(IMAGES.abs())
    for name, view in views(IMAGES).items():
        vectors = view(IMAGES)(IMAGES[:3])
        assert vectors.ndim == 2, name
        assert vectors.isfinite().all(), name


def test_signs_do_not_show_in_magnitudes() -> None:
    signs = torch.randint(2, IMAGES.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    view = Pooled(4, magnitudes=True)
    assert torch.equal(view(IMAGES), view(IMAGES * signs))


def test_orders_within_and_of_patches_do_not_show_in_sorted_patches_and_bags() -> None:
    patches = cut(IMAGES, 4)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(2))
    within, of = (fold(mixed, (1, 16, 16), 4) for mixed in (patches[:, :, order], patches[:, order]))
    assert torch.equal(SortedPatches(4)(IMAGES), SortedPatches(4)(within))
    bag = PatchBag(IMAGES, 4)
    assert torch.allclose(bag(IMAGES), bag(of), atol=1e-5)
    assert not torch.allclose(bag(IMAGES), bag(within), atol=1e-2)


def test_whitened_patches_are_the_same_under_scales_of_patches() -> None:
    many = torch.randn(400, 1, 8, 8, generator=torch.Generator().manual_seed(3))
    scaled = many.clone()
    scaled[..., :4, :4] *= 100
    plain, other = (WhitenedPatches(rows, 4)(rows) for rows in (many, scaled))
    assert torch.allclose(plain.abs(), other.abs(), atol=1e-2)
    assert WhitenedPatches(torch.ones(9, 1, 8, 8), 4)(many[:2]).isfinite().all()


def test_equal_rows_are_held_out_together() -> None:
    doubled = torch.cat((IMAGES, IMAGES))
    kept, apart = held_out(doubled, 0.3, seed=0)
    assert sorted([*kept.tolist(), *apart.tolist()]) == list(range(24))
    assert {row % 12 for row in apart.tolist()}.isdisjoint({row % 12 for row in kept.tolist()})
    assert len(apart) == 6


def test_smooth_images_bear_shifts_and_noise_does_not() -> None:
    down = torch.linspace(0, 3, 32)
    phases = torch.rand(20, 1, 1, 1, generator=torch.Generator().manual_seed(4)) * 6
    smooth = (down[:, None] + 2 * down + phases).sin()
    assert bears_shifts(smooth)
    assert not bears_shifts(torch.randn(20, 1, 32, 32, generator=torch.Generator().manual_seed(5)))
    moved = shifted(smooth, torch.Generator().manual_seed(6))
    assert moved.shape == smooth.shape
    assert not torch.equal(moved, smooth)
    assert torch.isin(moved, smooth).all()


def test_a_view_that_was_chosen_under_another_key_is_there_under_this_one() -> None:
    """Releases under one key may be signed, and under another not."""
    signed = torch.randn(8, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    assert views(signed).keys() - views(signed.abs()).keys() == {"magnitudes", "4x4 means of magnitudes"}
    assert views(signed).keys() <= every_view(signed.abs()).keys()
    labels = torch.arange(8)[:, None].remainder(2).float()
    for name in views(signed):
        found = list(_path(Recipe("linear", name), signed.abs(), labels, [signed.abs()], exclusive=False))
        assert found[-1].logits[0].shape == (8, 1)
