import pytest
import torch

from bench.nets.patches import cut, fitting_patch, fold


@pytest.mark.parametrize(("shape", "patch_size"), [((1, 64, 64), 16), ((3, 8, 12), 4), ((2, 6, 6), 1)])
def test_fold_undoes_cut(shape, patch_size):
    images = torch.rand(5, *shape)
    assert torch.equal(fold(cut(images, patch_size), shape, patch_size), images)


def test_a_patch_holds_its_own_pixels_in_reading_order():
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert cut(image, 2)[0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


def test_a_patch_that_does_not_divide_is_refused_with_sizes_that_do():
    with pytest.raises(ValueError, match=r"got 16 for 28x28.*1, 2, 4, 7, 14, 28"):
        cut(torch.rand(1, 1, 28, 28), 16)


def test_fitting_patch_leaves_two_patches_a_side():
    assert [fitting_patch(side, side) for side in (64, 28, 8, 7)] == [16, 14, 4, None]
