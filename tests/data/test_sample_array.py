import io
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image, ImageFile

from bench.contract.source import DataError
from bench.data.picture import Reading, decode
from bench.data.sample_array import Failure, decode_into, digest, follow_parent, resize
from bench.disk.file_kind import impostor


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def test_png_of_the_target_size_is_kept_bit_for_bit(tmp_path: Path) -> None:
    pixels = noise(8, 8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(decode(tmp_path / "a.png", Reading(8, 1)).pixels[0], pixels)


def test_rgb_and_opaque_rgba_copies_of_a_grey_image_decode_to_the_grey_image(tmp_path: Path) -> None:
    grey = Image.fromarray(noise(8, 8))
    for mode in ("L", "RGB", "RGBA", "LA"):
        grey.convert(mode).save(tmp_path / f"{mode}.png")
    first, *others = (decode(tmp_path / f"{mode}.png", Reading(8, 1)) for mode in ("L", "RGB", "RGBA", "LA"))
    for other in others:
        np.testing.assert_array_equal(first.pixels, other.pixels)


def test_colour_keeps_its_channel_order(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4), (10, 20, 30)).save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png", Reading(4, 3)).pixels[:, 0, 0].tolist() == [10, 20, 30]


def test_stated_sixteen_bit_greys_keep_their_upper_bits_instead_of_clipping(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 1 << 8], [100 << 8, 65535]], dtype=np.uint16)).save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png", Reading(2, 1, bits=16)).pixels.ravel().tolist() == [0, 1, 100, 255]


def test_floating_point_pixels_are_refused_with_a_reason(tmp_path: Path) -> None:
    Image.fromarray(np.ones((4, 4), dtype=np.float32)).save(tmp_path / "a.tiff")
    with pytest.raises(DataError, match="floating-point pixels"):
        decode(tmp_path / "a.tiff", Reading(4, 1))


def test_shrinking_averages_instead_of_picking_pixels() -> None:
    chequered = np.indices((64, 64)).sum(axis=0) % 2 * 255
    small = resize(chequered.astype(np.uint8)[None], 8)
    assert small.shape == (1, 8, 8)
    assert abs(small.astype(int) - 127).max() <= 2


def test_large_jpeg_reduced_by_its_decoder_stays_within_three_greys_of_the_full_decoding(tmp_path: Path) -> None:
    smooth = Image.fromarray(noise(10, 12)).resize((900, 700), Image.Resampling.BICUBIC)
    smooth.save(tmp_path / "a.jpg", quality=95)
    with Image.open(tmp_path / "a.jpg") as image:
        full = np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR)).astype(int)
    assert abs(decode(tmp_path / "a.jpg", Reading(16, 1)).pixels[0] - full).max() <= 3


@pytest.mark.parametrize("ending", ["png", "jpg"])
@pytest.mark.parametrize("filled", [False, True], ids=["as Pillow has it", "as another library sets it"])
def test_truncated_image_is_refused(tmp_path: Path, ending: str, filled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", filled)
    whole = io.BytesIO()
    Image.fromarray(noise(64, 64)).save(whole, "PNG" if ending == "png" else "JPEG")
    path = tmp_path / f"a.{ending}"
    path.write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
    with pytest.raises(DataError, match="truncated"):
        decode(path, Reading(8, 1))
    assert ImageFile.LOAD_TRUNCATED_IMAGES is filled


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\n<!DOCTYPE html><html>Sign in</html>", "an HTML page"),
        (b"<HTML><body>404</body></HTML>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "a Git LFS pointer"),
        (b"", "an empty file"),
        (b"just text", "damaged, or no image of a format that is read"),
    ],
)
def test_file_that_is_no_image_is_named_for_what_it_is(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=reason) as caught:
        decode(tmp_path / "a.png", Reading(8, 1))
    assert str(tmp_path) not in str(caught.value)


def test_missing_image_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^missing$"):
        decode(tmp_path / "a.png", Reading(8, 1))


def test_true_image_is_no_impostor(tmp_path: Path) -> None:
    Image.fromarray(noise(8, 8)).save(tmp_path / "a.png")
    assert impostor(tmp_path / "a.png") is None


def test_digests_agree_exactly_when_contents_do() -> None:
    rows = noise(2, 1, 4, 4)
    changed = rows[0].copy()
    changed[0, 3, 3] ^= 1
    assert (digest(rows[0]) == digest(rows[0].copy())).all()
    assert (digest(rows[0]) != digest(changed)).any()


def test_chunk_is_written_in_place_and_failures_are_told_by_row(tmp_path: Path) -> None:
    target = tmp_path / "samples.npy"
    np.save(target, np.zeros((4, 1, 8, 8), dtype=np.uint8))
    pixels = noise(8, 8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    done = decode_into(target, 1, [tmp_path / "a.png", tmp_path / "gone.png"], Reading(8, 1))
    written = np.load(target)
    np.testing.assert_array_equal(written[1, 0], pixels)
    assert not written[[0, 2, 3]].any()
    assert done.failures == (Failure(2, "missing", refused=True),)
    np.testing.assert_array_equal(done.digests[0], digest(written[1]))


def _wait(pipe: Connection) -> None:
    follow_parent()
    pipe.send(os.getpid())
    time.sleep(600)


def _start_decoder(pipe: Connection) -> None:
    multiprocessing.get_context("spawn").Process(target=_wait, args=(pipe,)).start()
    time.sleep(600)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_decoder_ends_when_its_parent_is_killed() -> None:
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    parent = multiprocessing.get_context("fork").Process(target=_start_decoder, args=(there,))
    parent.start()
    assert here.poll(300)
    decoder = psutil.Process(here.recv())
    assert parent.pid is not None
    os.kill(parent.pid, signal.SIGKILL)
    decoder.wait(timeout=120)
    assert not decoder.is_running()
