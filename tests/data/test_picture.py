import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from made.data_files import dicom
from PIL import Image, TiffImagePlugin

from bench.contract.source import DataError
from bench.data.dicom import RefusedError
from bench.data.picture import Picture, Reading, decode

TWELVE = np.arange(4096, dtype=np.uint16).reshape(64, 64)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(path: Path, values: np.ndarray, *, sbit: int | None = None, colour: int = 0) -> Path:
    """A 16-bit PNG, by hand: Pillow writes neither sBIT nor colours of 16 bits."""
    high, wide = values.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", wide, high, 16, colour, 0, 0, 0)
    said = b"" if sbit is None else chunk(b"sBIT", bytes([sbit] * (1 if values.ndim == 2 else values.shape[2])))
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + said + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )
    return path


def tiff(path: Path, values: np.ndarray, **tags: int) -> Path:
    numbers = {"photometric": 262, "orientation": 274}
    directory = TiffImagePlugin.ImageFileDirectory_v2()
    for name, value in tags.items():
        directory[numbers[name]] = value
    Image.fromarray(values).save(path, "TIFF", tiffinfo=directory)
    return path


def read(path: Path, *, side: int = 64, channels: int = 1, bits: int | None = None) -> Picture:
    return decode(path, Reading(side, channels, bits))


def test_twelve_bits_in_a_container_of_sixteen_keep_all_greys_that_eight_bits_hold(tmp_path: Path) -> None:
    found = read(png(tmp_path / "a.png", TWELVE), bits=12)
    np.testing.assert_array_equal(found.pixels[0], TWELVE >> 4)
    assert len(np.unique(found.pixels)) == 256
    assert found.used == 12
    assert found.notes == ("grey values of 12 bits become 8 bits: 0 is black, 4095 white",)


@pytest.mark.parametrize("ending", ["png", "tif", "jp2"])
def test_more_than_eight_bits_without_a_word_on_how_many_are_refused_and_the_error_names_what_to_set(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"a.{ending}"
    Image.fromarray(TWELVE).save(path)
    with pytest.raises(RefusedError, match=r"state them, as folder:PATH\[bits=12\]"):
        read(path)


def test_sbit_is_read_both_ways_that_writers_mean_it(tmp_path: Path) -> None:
    plain = read(png(tmp_path / "a.png", TWELVE, sbit=12))
    stretched = read(png(tmp_path / "b.png", (TWELVE << 4) | (TWELVE >> 8), sbit=12))
    dark = (TWELVE[:1, :64] << 4) | (TWELVE[:1, :64] >> 8)
    np.testing.assert_array_equal(plain.pixels, stretched.pixels)
    with pytest.raises(RefusedError, match="state them"):  # fits both readings
        read(png(tmp_path / "c.png", dark, sbit=12), side=1)
    assert not read(png(tmp_path / "d.png", np.zeros((4, 4), np.uint16), sbit=12)).pixels.any()


def test_a_pgm_states_its_own_maximum(tmp_path: Path) -> None:
    (tmp_path / "a.pgm").write_bytes(b"P5 64 64 4095\n" + TWELVE.astype(">u2").tobytes())
    found = read(tmp_path / "a.pgm").pixels[0].astype(int)
    assert abs(found - (TWELVE >> 4)).max() <= 1
    (tmp_path / "b.pgm").write_bytes(b"P5 64 64 65535\n" + TWELVE.astype(">u2").tobytes())
    with pytest.raises(RefusedError, match="state them"):
        read(tmp_path / "b.pgm")


def test_a_jpeg_2000_of_twelve_bits_states_them(tmp_path: Path) -> None:
    image = io.BytesIO()  # written as 16 bits about 2 ** 15, and then called 12 bits, which are about 2 ** 11
    Image.fromarray(TWELVE + np.uint16(2**15 - 2**11)).save(image, "JPEG2000", no_jp2=True, num_resolutions=1)
    content = bytearray(image.getvalue())
    content[42] = 12 - 1
    (tmp_path / "a.j2k").write_bytes(content)
    for bits in (None, 12):
        np.testing.assert_array_equal(read(tmp_path / "a.j2k", bits=bits).pixels[0], TWELVE >> 4)
    with pytest.raises(RefusedError, match="another number of bits"):
        read(tmp_path / "a.j2k", bits=16)


def test_a_tiff_of_twelve_bits_states_them(tmp_path: Path) -> None:
    packed = np.zeros((4, 6), dtype=np.uint8)  # 4 values of 12 bits a line
    packed[:] = [0xFF, 0xF8, 0x00, 0x0F, 0x00, 0x10]
    tags = {256: 4, 257: 4, 258: 12, 259: 1, 262: 1, 273: 122, 277: 1, 278: 4, 279: packed.size}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    body = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0\0\0\0"
    (tmp_path / "a.tif").write_bytes(body + packed.tobytes())
    assert len(body) == 122
    found = read(tmp_path / "a.tif", side=4)
    assert found.pixels[0, 0].tolist() == [0xFF, 0x80, 0x0F, 0x01]
    with pytest.raises(RefusedError, match="another number of bits"):
        read(tmp_path / "a.tif", side=4, bits=16)


def test_a_tiff_whose_zero_is_white_is_turned_the_right_way(tmp_path: Path) -> None:
    found = read(tiff(tmp_path / "a.tif", TWELVE, photometric=0), bits=12)
    np.testing.assert_array_equal(found.pixels[0], 255 - (TWELVE >> 4))
    assert "0 was white" in found.notes[0]


def test_values_beyond_the_stated_bits_below_zero_or_without_a_range_are_refused(tmp_path: Path) -> None:
    for values, bits, reason in (
        (TWELVE, 11, "needs more bits"),
        (TWELVE.astype(np.int32) - 1, 12, "negative grey values"),
        (TWELVE.astype(np.int32) * 2000, 16, "needs more bits"),
        (TWELVE.astype(np.int32), None, "state them"),
        (TWELVE.astype(np.float32), 16, "floating-point pixels"),
    ):
        with pytest.raises(RefusedError, match=reason):
            read(tiff(tmp_path / "a.tif", values), bits=bits)


@pytest.mark.parametrize(("colour", "channels"), [(2, 3), (4, 2), (6, 4)])
def test_colours_of_sixteen_bits_are_taken_only_where_all_count(tmp_path: Path, colour: int, channels: int) -> None:
    path = png(tmp_path / "a.png", np.repeat(TWELVE[:, :, None] * 16, channels, axis=2), colour=colour)
    for bits in (None, 12):
        with pytest.raises(RefusedError, match="only if all 16 count"):
            read(path, channels=3, bits=bits)
    found = read(path, channels=3, bits=16)
    np.testing.assert_array_equal(found.pixels[0], TWELVE >> 4)
    assert "colours of 16 bits a channel become 8 bits" in found.notes


UPRIGHT = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
TURNED = {
    1: UPRIGHT, 2: np.fliplr(UPRIGHT), 3: np.rot90(UPRIGHT, 2), 4: np.flipud(UPRIGHT), 5: UPRIGHT.T,
    6: np.rot90(UPRIGHT, 1), 7: np.rot90(UPRIGHT, 2).T, 8: np.rot90(UPRIGHT, -1),
}  # fmt: skip


@pytest.mark.parametrize("orientation", [0, *TURNED, 9])
@pytest.mark.parametrize("ending", ["png", "tif", "webp", "jpg"])
def test_the_orientation_that_a_camera_noted_is_applied_and_said(tmp_path: Path, ending: str, orientation: int) -> None:
    stored = Image.fromarray(TURNED.get(orientation, UPRIGHT))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a.{ending}"
    if ending == "tif":
        tiff(path, np.asarray(stored), orientation=orientation)
    else:
        stored.save(path, exif=exif, quality=100, **({"lossless": True} if ending == "webp" else {}))
    found = read(path, side=8)
    assert abs(found.pixels[0].astype(int) - UPRIGHT).max() <= (2 if ending in ("jpg", "webp") else 0)
    assert found.notes == (("turned as the EXIF orientation says",) if 2 <= orientation <= 8 else ())


@pytest.mark.parametrize("orientation", TURNED)
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK", "I;16"])
def test_an_oblong_tiff_without_compression_is_turned_as_a_png_is(tmp_path: Path, mode: str, orientation: int) -> None:
    grey = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(4, 6) * 10)
    stored = Image.fromarray(np.asarray(grey).astype(np.uint16) << 8) if mode == "I;16" else grey.convert(mode)
    stored.save(tmp_path / "a.tif", tiffinfo={274: orientation})
    exif = Image.Exif()
    exif[0x0112] = orientation
    (stored.convert("L") if mode == "CMYK" else grey).save(tmp_path / "a.png", exif=exif)
    found = [read(tmp_path / name, side=12, bits=16).pixels for name in ("a.tif", "a.png")]
    np.testing.assert_array_equal(*found)


def test_a_large_oblong_jpeg_is_reduced_before_it_is_turned(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    plain = Image.fromarray(UPRIGHT).resize((1001, 507), Image.Resampling.BICUBIC)
    plain.save(tmp_path / "a.jpg", exif=exif, quality=95)
    whole = plain.transpose(Image.Transpose.ROTATE_270).resize((8, 8), Image.Resampling.BILINEAR)
    assert abs(read(tmp_path / "a.jpg", side=8).pixels[0].astype(int) - np.asarray(whole).astype(int)).max() <= 3


def bomb(path: Path, side: int, ending: str) -> Path:
    """A header of side x side pixels with next to nothing behind it."""
    if ending == "png":
        header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))))
    elif ending == "pgm":
        path.write_bytes(b"P5 %d %d 255\n" % (side, side))
    elif ending == "bmp":
        path.write_bytes(b"BM" + struct.pack("<IIIIiiHHIIiiII", 1000, 0, 54, 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0))
    elif ending == "gif":
        path.write_bytes(
            b"GIF89a"
            + struct.pack("<HHBBB", side, side, 0, 0, 0)
            + b","
            + struct.pack("<4HB", 0, 0, side, side, 0)
            + b"\x08"
        )
    else:
        tags = {256: side, 257: side, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: side, 279: 100}
        entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
        path.write_bytes(b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0\0\0\0")
    return path


@pytest.mark.parametrize("ending", ["png", "pgm", "bmp", "tif", "gif"])
def test_an_image_beyond_the_limit_is_refused_before_it_is_unpacked(tmp_path: Path, ending: str) -> None:
    with pytest.raises(RefusedError, match="more than 100000000 pixels: if the image is correct, raise --max-pixels"):
        read(bomb(tmp_path / f"a.{ending}", 60_000, ending))


def test_the_limit_can_be_lowered_and_raised_and_pillow_keeps_its_own(tmp_path: Path) -> None:
    Image.new("L", (10, 10), 7).save(tmp_path / "a.png")
    with pytest.raises(RefusedError, match="more than 99 pixels"):
        decode(tmp_path / "a.png", Reading(4, 1, pixels=99))
    assert (decode(tmp_path / "a.png", Reading(4, 1, pixels=100)).pixels == 7).all()
    with pytest.raises(DataError, match="declares 196000000 bytes"):  # past the limit, and no bomb to Pillow either
        decode(bomb(tmp_path / "b.png", 14_000, "png"), Reading(4, 1, pixels=14_000**2))
    assert Image.MAX_IMAGE_PIXELS is not None


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "LA", "YCbCr"])
def test_modes_of_eight_bits_or_fewer_become_the_greys_and_colours_that_they_show(tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("a.tif" if mode in ("CMYK", "YCbCr") else "a.png")
    Image.new("L", (8, 8), 255).convert(mode).save(path)
    grey, colour = read(path, side=8), read(path, side=8, channels=3)
    assert (grey.pixels >= 254).all()
    assert colour.pixels.shape == (3, 8, 8)
    assert (colour.pixels >= 254).all()
    assert grey.notes == (("colours converted from CMYK, without a colour profile",) if mode == "CMYK" else ())


def test_transparency_that_is_dropped_is_said(tmp_path: Path) -> None:
    Image.new("RGBA", (8, 8), (200, 0, 0, 0)).save(tmp_path / "a.png")
    palette = Image.new("P", (8, 8))
    palette.putpalette([200, 0, 0, 0, 200, 0])
    palette.save(tmp_path / "b.png", transparency=0)
    Image.new("RGBA", (8, 8), (200, 0, 0, 255)).save(tmp_path / "c.png")
    noted = [read(tmp_path / name, side=8, channels=3).notes for name in ("a.png", "b.png", "c.png")]
    assert noted == [("transparent pixels shown as the colours below them",)] * 2 + [()]


@pytest.mark.parametrize("ending", ["gif", "png", "tif", "webp"])
def test_files_of_several_images_are_refused(tmp_path: Path, ending: str) -> None:
    frames = [Image.new("L", (8, 8), shade).convert("RGB") for shade in (0, 100, 200)]
    frames[0].save(tmp_path / f"a.{ending}", save_all=True, append_images=frames[1:])
    with pytest.raises(RefusedError, match="several frames or pages"):
        read(tmp_path / f"a.{ending}")


def test_of_the_two_pictures_of_a_camera_the_first_is_read_and_that_is_said(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), 50).save(
        tmp_path / "a.jpg", "MPO", save_all=True, append_images=[Image.new("RGB", (8, 8))]
    )
    assert read(tmp_path / "a.jpg", side=8).notes == ("the first of several frames is read",)


@pytest.mark.parametrize(("wide", "high", "said"), [(1, 1, True), (64, 63, True), (64, 64, False), (100, 64, False)])
def test_an_image_of_fewer_pixels_than_are_asked_for_is_enlarged_and_that_is_said(
    tmp_path: Path, wide: int, high: int, said: bool
) -> None:
    Image.new("L", (wide, high)).save(tmp_path / "a.png")
    dicom(tmp_path / "a.dcm", np.zeros((high, wide), np.uint8), bits=8)
    for name in ("a.png", "a.dcm"):
        assert ("enlarged to 64 pixels a side from fewer" in read(tmp_path / name).notes) == said


def test_a_file_that_is_missing_or_may_not_be_read_or_holds_lab_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("LAB", (8, 8)).save(tmp_path / "lab.tif")
    for path, reason in ((tmp_path / "lab.tif", "colours as LAB .* store RGB"), (tmp_path / "gone.png", "missing")):
        with pytest.raises(RefusedError, match=reason):
            read(path)

    def closed(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", closed)
    with pytest.raises(RefusedError, match="no permission to read it") as caught:
        read(tmp_path / "lab.tif")
    assert "lab" not in str(caught.value)


def test_what_is_no_file_or_no_image_format_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "dicom.png").write_bytes(bytes(128) + b"DICM" + bytes(100))
    (tmp_path / "script.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n")
    empty = io.BytesIO()
    Image.new("L", (8, 8)).save(empty, "PNG")
    zero = bytearray(empty.getvalue())
    zero[16:24] = bytes(8)
    zero[29:33] = struct.pack(">I", zlib.crc32(bytes(zero[12:29])))
    (tmp_path / "zero.png").write_bytes(zero)
    for name, reason in (
        ("folder", "a folder"), ("pipe", "a pipe, socket or device"), ("loop", "symbolic links"),
        ("dicom", "a damaged DICOM file: its header lacks Rows"), ("script", "damaged, or no image"), ("zero", "."),
    ):  # fmt: skip
        with pytest.raises(DataError, match=reason) as caught:
            read(tmp_path / f"{name}.png")
        assert str(tmp_path) not in str(caught.value)
