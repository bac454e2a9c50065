from __future__ import annotations

import io

import pytest
import torch
from PIL import Image

from bench.contract.seal import Sealed
from bench.pictures.strips import before_and_after, draw, stands, visible
from bench.types import Release
from leaderboard.published import SHEET


def images(n: int = 20, seed: int = 0) -> torch.Tensor:
    return torch.rand(n, 1, 4, 4, generator=torch.Generator().manual_seed(seed))


def pixels(png: bytes) -> torch.Tensor:
    """(h, w) int64, the first channel."""
    with Image.open(io.BytesIO(png)) as picture:
        assert picture.mode in ("RGB", "L")
        grey = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
        return grey.reshape(picture.height, picture.width, -1)[:, :, 0].long()


def levels(strip: torch.Tensor) -> torch.Tensor:
    return (strip * 255).round().long()


def test_the_picture_holds_a_strip_each_in_frames_of_one_pixel() -> None:
    shown = pixels(draw([images(3), 10 * images(3, 1) - 5, images(3).expand(-1, 3, -1, -1)]))
    assert shown.shape == (3 * 6, 3 * 6)
    assert torch.equal(shown[1:5, 1:5], levels(images(3)[0, 0]))


def test_a_picture_without_colour_is_stored_as_grey() -> None:
    coloured = images(9).reshape(3, 3, 4, 4)
    modes = [Image.open(io.BytesIO(draw([images(3), strip]))).mode for strip in (images(3), coloured)]
    assert modes == ["L", "RGB"]
    with Image.open(io.BytesIO(draw([images(3), coloured]))) as picture:
        assert torch.equal(
            torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).reshape(12, 18, 3)[7:11, 1:5].long(),
            levels(coloured[0]).permute(1, 2, 0),
        )


@pytest.mark.parametrize("strips", [1, 2, 3, 4, 5])
def test_no_sheet_of_films_is_too_large_to_be_published(strips: int) -> None:
    sheet = Image.open(io.BytesIO(draw([torch.rand(20, 1, 64, 64)] * strips)))
    assert sheet.height == strips * 66
    assert sheet.width * sheet.height <= SHEET


def test_released_images_of_another_size_are_shown_as_large_as_the_raw_ones() -> None:
    assert pixels(draw([images(3), torch.randn(3, 1, 8, 2), images(3)])).shape == (3 * 6, 3 * 6)


def test_images_in_their_own_range_are_shown_as_they_are() -> None:
    assert torch.equal(visible(images()), images())


def test_images_a_little_out_of_range_are_cut_at_black_and_white() -> None:
    assert torch.equal(visible(1.2 * images() - 0.1), (1.2 * images() - 0.1).clamp(0, 1))


def test_images_in_other_units_fill_the_range_from_black_to_white() -> None:
    shown = visible(40 * images() - 20)
    assert torch.corrcoef(torch.stack((shown.flatten(), images().flatten())))[0, 1] > 0.999
    assert (float(shown.amin()), float(shown.amax())) == (0, 1)


def test_an_image_of_one_level_far_out_of_range_can_be_shown() -> None:
    assert visible(torch.full((2, 1, 4, 4), 7.0)).isfinite().all()


def test_of_no_image_nothing_is_shown() -> None:
    assert visible(torch.zeros(0, 5, 4, 4)).shape == (0, 3, 4, 4)


def test_of_many_channels_the_first_three_are_shown() -> None:
    many = torch.rand(2, 5, 4, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(visible(many), many[:, :3])
    assert torch.equal(visible(many[:, :2]), many[:, :1])


def test_a_raw_image_is_shown_above_the_released_row_in_which_it_stands() -> None:
    raw, order = images(20), torch.randperm(20, generator=torch.Generator().manual_seed(1))
    links = torch.stack((order, torch.arange(20)), dim=1)
    found = before_and_after(raw, Sealed(Release(1 - raw[order], None, None), links, None))
    assert found is not None
    assert pixels(found).shape == (2 * 6, 8 * 6)
    for place in range(8):
        above, below = (pixels(found)[6 * k + 1 : 6 * k + 5, 6 * place + 1 : 6 * place + 5] for k in range(2))
        assert torch.equal(above, levels(raw[place, 0]))
        assert torch.equal(below, levels(1 - raw[place, 0]))


def test_a_raw_image_that_was_not_released_is_passed_over() -> None:
    raw = images(3)
    found = before_and_after(raw, Sealed(Release(raw[1:], None, None), torch.tensor([[1, 0], [2, 1]]), None))
    assert found is not None
    assert torch.equal(pixels(found)[1:5, 1:5], levels(raw[1, 0]))
    assert pixels(found).shape == (2 * 6, 2 * 6)


def test_tables_and_releases_without_links_have_no_such_picture() -> None:
    links = torch.tensor([[0, 0], [1, 1]])
    assert before_and_after(images(2), Sealed(Release(images(2), None, None), None, None)) is None
    assert before_and_after(torch.rand(2, 5), Sealed(Release(torch.rand(2, 5), None, None), links, None)) is None
    assert before_and_after(images(2), Sealed(Release(torch.rand(2, 5), None, None), links, None)) is None


def test_of_mixed_rows_a_raw_row_stands_in_the_one_that_was_made_for_it() -> None:
    links = torch.tensor([[0, 0], [1, 0], [1, 1], [0, 1]])
    assert stands(links, torch.tensor([False, True, False, True]), n=2, m=2).tolist() == [1, 0]
    assert stands(links, None, n=2, m=2).tolist() == [0, 0]
