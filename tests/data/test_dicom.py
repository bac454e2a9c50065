import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made.data_files import dicom
from PIL import Image
from pydicom import dcmread, dcmwrite
from pydicom.dataset import Dataset

from bench.contract.source import DataError
from bench.data.dicom import RefusedError, SelfDescription, read_dicom, self_description
from bench.data.picture import Picture, Reading, coloured, decode

TWELVE = np.arange(4096, dtype=np.uint16).reshape(64, 64)


def read(path: Path, channels: int = 1) -> Picture:
    return decode(path, Reading(64, channels))


def test_without_a_window_all_stored_bits_are_shown_and_256_greys_are_kept(tmp_path: Path) -> None:
    found = read(dicom(tmp_path / "a.dcm", TWELVE))
    np.testing.assert_array_equal(found.pixels[0], np.floor(TWELVE / 4095 * 255 + 0.5))
    assert len(np.unique(found.pixels)) == 256
    assert found.notes == ("DICOM: no window, so all 12 bits are shown",)


def test_bits_that_are_stated_count_where_no_window_does(tmp_path: Path) -> None:
    path = dicom(tmp_path / "a.dcm", TWELVE, bits=16)
    unstated = read(path)
    assert unstated.notes[0].startswith("DICOM: no window, so all 16 bits are shown, 3 or more of them unused")
    assert len(np.unique(unstated.pixels)) <= 17
    stated = decode(path, Reading(64, 1, bits=12))
    assert stated.notes == ("DICOM: no window, so the lowest 12 of 16 bits are shown, as stated",)
    np.testing.assert_array_equal(stated.pixels, read(dicom(tmp_path / "b.dcm", TWELVE)).pixels)
    with pytest.raises(RefusedError, match="needs more bits than were stated"):
        decode(path, Reading(64, 1, bits=11))


def test_signed_values_are_shown_from_the_least_of_the_bits_stated(tmp_path: Path) -> None:
    signed = np.linspace(-1000, 3000, 4096).astype(np.int16).reshape(64, 64)
    found = decode(dicom(tmp_path / "a.dcm", signed, bits=16), Reading(64, 1, bits=13))
    np.testing.assert_array_equal(found.pixels[0], np.floor((signed.astype(float) + 4096) / 8191 * 255 + 0.5))
    with pytest.raises(RefusedError, match="needs more bits"):
        decode(tmp_path / "a.dcm", Reading(64, 1, bits=12))


def test_low_is_white_in_monochrome1_and_is_black_here(tmp_path: Path) -> None:
    plain = read(dicom(tmp_path / "a.dcm", TWELVE))
    inverted = read(dicom(tmp_path / "b.dcm", TWELVE, PhotometricInterpretation="MONOCHROME1"))
    np.testing.assert_array_equal(inverted.pixels, 255 - plain.pixels)
    assert inverted.notes[0].endswith("inverted because low is white")


def test_a_shape_that_says_otherwise_is_noted(tmp_path: Path) -> None:
    more = {"PhotometricInterpretation": "MONOCHROME1"}
    fitting = read(dicom(tmp_path / "a.dcm", TWELVE, **more, PresentationLUTShape="INVERSE"))
    other = read(dicom(tmp_path / "b.dcm", TWELVE, **more, PresentationLUTShape="IDENTITY"))
    np.testing.assert_array_equal(fitting.pixels, other.pixels)
    assert fitting.notes[0].endswith("inverted because low is white")
    assert other.notes[0].endswith("low is white (though its PresentationLUTShape is IDENTITY)")


@pytest.mark.parametrize("kind", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize(("limit", "padded"), [({}, 1), ({"PixelPaddingRangeLimit": 2}, 2)])
def test_padding_is_black_whatever_low_means(tmp_path: Path, kind: str, limit: dict[str, int], padded: int) -> None:
    signed = (TWELVE.astype(np.int16) + 10).copy()
    signed[0, :2] = 0, 2
    found = read(
        dicom(tmp_path / "a.dcm", signed, bits=13, PhotometricInterpretation=kind, PixelPaddingValue=0, **limit)
    )
    plain = read(dicom(tmp_path / "b.dcm", signed, bits=13, PhotometricInterpretation=kind))
    assert found.notes[0].endswith(", padding black")
    assert (found.pixels[0, 0, :padded] == 0).all()
    np.testing.assert_array_equal(found.pixels[0].ravel()[padded:], plain.pixels[0].ravel()[padded:])


@pytest.mark.parametrize("group", ["SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"])
def test_rescale_and_window_of_enhanced_objects_are_those_of_their_groups(tmp_path: Path, group: str) -> None:
    rescale, window, frame = Dataset(), Dataset(), Dataset()
    rescale.RescaleSlope, rescale.RescaleIntercept = "2", "-100"
    window.WindowCenter, window.WindowWidth = "1024", "512"
    frame.PixelValueTransformationSequence, frame.FrameVOILUTSequence = [rescale], [window]
    enhanced = read(dicom(tmp_path / "a.dcm", TWELVE, **{group: [frame]}))
    told = {"RescaleSlope": "2", "RescaleIntercept": "-100", "WindowCenter": "1024", "WindowWidth": "512"}
    plain = read(dicom(tmp_path / "b.dcm", TWELVE, **told))
    np.testing.assert_array_equal(enhanced.pixels, plain.pixels)
    assert enhanced.notes == plain.notes


def test_the_first_window_is_applied_as_the_standard_says(tmp_path: Path) -> None:
    found = read(dicom(tmp_path / "a.dcm", TWELVE, WindowCenter=[2048, 40], WindowWidth=[1024, 400]))
    low, high = 2048 - 0.5 - 1023 / 2, 2048 - 0.5 + 1023 / 2
    expected = np.where(low >= TWELVE, 0, np.where(high < TWELVE, 1, (TWELVE - 2047.5) / 1023 + 0.5))
    np.testing.assert_array_equal(found.pixels[0], np.floor(expected * 255 + 0.5))
    assert found.notes == ("DICOM: shown through the file's window",)


def test_windows_speak_of_rescaled_values(tmp_path: Path) -> None:
    signed = (TWELVE.astype(np.int16) - 2048).copy()
    more = {"RescaleSlope": "2", "RescaleIntercept": "-100", "WindowCenter": -100, "WindowWidth": 4096}
    found = read(dicom(tmp_path / "a.dcm", signed, **more)).pixels[0]
    assert found[32, 0] in (127, 128)  # value 0, which means -100, the centre
    assert found[0, 0] == 0
    assert found[63, 63] == 255


def test_sigmoids_and_tables_are_followed(tmp_path: Path) -> None:
    curved = read(
        dicom(tmp_path / "a.dcm", TWELVE, WindowCenter=2048, WindowWidth=1000, VOILUTFunction="SIGMOID")
    ).pixels[0]
    assert 0 < curved[10, 0] < 128 < curved[50, 0] < 255
    table = Dataset()
    table.LUTDescriptor = [4096, 0, 16]
    table.LUTData = np.arange(65535, 65535 - 4096, -1).astype("<u2").tobytes()
    turned = read(dicom(tmp_path / "b.dcm", TWELVE, VOILUTSequence=[table])).pixels[0]
    assert turned[0, 0] == 255
    assert turned[63, 63] == round((65535 - 4095) / 65535 * 255)


def test_eight_bits_are_as_they_are_and_may_become_three_channels(tmp_path: Path) -> None:
    values = np.arange(256, dtype=np.uint8).reshape(16, 16).repeat(4, axis=0).repeat(4, axis=1)
    found = read(dicom(tmp_path / "a.dcm", values, bits=8), channels=3)
    np.testing.assert_array_equal(found.pixels, np.repeat(values[None], 3, axis=0))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"PhotometricInterpretation": "HSV"}, "expected MONOCHROME1 or MONOCHROME2, or colours as RGB.*found HSV"),
        ({"PhotometricInterpretation": "RGB"}, "found RGB of 1 samples a pixel"),
        ({"NumberOfFrames": 2}, "2 frames in one file: store each"),
        ({"HighBit": 15}, "more than the 12 bits"),
        ({"HighBit": 16}, "12 stored bits do not end at bit 16 of 16"),
        ({"BitsStored": 10, "HighBit": 9}, "more than the 10 bits"),
        ({"WindowCenter": 10, "WindowWidth": 0}, "a window of width 0"),
        ({"Rows": 20000, "Columns": 20000}, "--max-pixels"),
        ({"Rows": 500}, "damaged"),
    ],
)
def test_what_cannot_be_shown_for_certain_is_refused(tmp_path: Path, more: dict[str, object], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(dicom(tmp_path / "a.dcm", TWELVE, **more))


def test_a_cut_file_is_an_error_that_does_not_name_it(tmp_path: Path) -> None:
    path = dicom(tmp_path / "a.dcm", TWELVE)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_packed_as_jpeg_2000_is_unpacked_exactly(tmp_path: Path) -> None:
    from pydicom.encaps import encapsulate
    from pydicom.uid import JPEG2000Lossless

    path = dicom(tmp_path / "a.dcm", TWELVE)
    file = dcmread(path)
    Image.fromarray(TWELVE).save(tmp_path / "a.j2k", "JPEG2000", irreversible=False, no_jp2=True)
    file.PixelData = encapsulate([(tmp_path / "a.j2k").read_bytes()])
    file["PixelData"].VR = "OB"
    file.file_meta.TransferSyntaxUID = JPEG2000Lossless
    file.BitsStored, file.HighBit = 16, 15
    file.save_as(tmp_path / "b.dcm")
    found = read(tmp_path / "b.dcm").pixels
    np.testing.assert_array_equal(found[0], np.floor(TWELVE / 65535 * 255 + 0.5))


def test_refusals_are_told_from_damage(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        read(dicom(tmp_path / "a.dcm", TWELVE, SamplesPerPixel=3))


@pytest.mark.parametrize(
    "blank",
    [
        {"WindowCenter": "", "WindowWidth": ""},
        {"RescaleSlope": "", "RescaleIntercept": ""},
        {"VOILUTSequence": []},
        {"ModalityLUTSequence": []},
        {"NumberOfFrames": ""},
    ],
)
def test_a_blank_element_says_as_much_as_none(tmp_path: Path, blank: dict[str, object]) -> None:
    plain, found = read(dicom(tmp_path / "a.dcm", TWELVE)), read(dicom(tmp_path / "b.dcm", TWELVE, **blank))
    np.testing.assert_array_equal(found.pixels, plain.pixels)
    assert found.notes == plain.notes


def test_low_values_are_dark_where_the_slope_is_negative_too(tmp_path: Path) -> None:
    plain = read(dicom(tmp_path / "a.dcm", TWELVE)).pixels
    turned = {"RescaleSlope": "-1", "RescaleIntercept": "4095"}
    np.testing.assert_array_equal(read(dicom(tmp_path / "b.dcm", TWELVE, **turned)).pixels, 255 - plain)


def test_a_slope_without_an_intercept_counts(tmp_path: Path) -> None:
    window = {"WindowCenter": 4096, "WindowWidth": 8192}
    both = read(dicom(tmp_path / "a.dcm", TWELVE, RescaleSlope="2", RescaleIntercept="0", **window)).pixels
    np.testing.assert_array_equal(read(dicom(tmp_path / "b.dcm", TWELVE, RescaleSlope="2", **window)).pixels, both)
    assert both[0, 63, 63] == 255


@pytest.mark.parametrize("kind", ["words", "bytes"])
def test_tables_of_eight_bits_do_not_wrap(tmp_path: Path, kind: str) -> None:
    entries = np.arange(4096) // 16
    table = Dataset()
    table.LUTDescriptor = [4096, 0, 8]
    table.LUTData = entries.astype("<u2" if kind == "words" else "u1").tobytes()
    found = read(dicom(tmp_path / "a.dcm", TWELVE, VOILUTSequence=[table])).pixels[0]
    np.testing.assert_array_equal(found, TWELVE // 16)


def test_values_before_and_after_a_table_get_its_ends(tmp_path: Path) -> None:
    table = Dataset()
    table.LUTDescriptor = [256, 1000, 8]
    table.LUTData = np.arange(256).astype("<u2").tobytes()
    found = read(dicom(tmp_path / "a.dcm", TWELVE, VOILUTSequence=[table])).pixels[0]
    np.testing.assert_array_equal(found, np.clip(TWELVE.astype(int) - 1000, 0, 255))


@pytest.mark.parametrize(
    ("low", "more", "first"),
    [
        (-2048, {}, 63488),
        (0, {"RescaleIntercept": "-1024", "RescaleSlope": "1"}, 64512),
        (-2048, {"RescaleIntercept": "32768", "RescaleSlope": "16"}, 40000),  # a table that starts so high in earnest
    ],
)
def test_a_table_may_leave_out_the_sign_of_its_first_value(
    tmp_path: Path, low: int, more: dict[str, str], first: int
) -> None:
    stored = (TWELVE.astype(np.int16) + low).astype(np.int16 if low else np.uint16)
    meant = stored.astype(np.int64) * int(more.get("RescaleSlope", 1)) + int(more.get("RescaleIntercept", 0))
    table = Dataset()
    table.LUTDescriptor = [4096, first, 8]
    table.LUTData = (np.arange(4096) // 16).astype("<u2").tobytes()
    table["LUTDescriptor"].VR = "US"
    path = dicom(tmp_path / "a.dcm", stored, VOILUTSequence=[table], **more)
    start = first if first == 40000 else first - 2**16
    np.testing.assert_array_equal(read(path).pixels[0], np.clip(meant - start, 0, 4095) // 16)


def test_padding_may_leave_out_its_sign(tmp_path: Path) -> None:
    signed = (TWELVE.astype(np.int16) - 2048).copy()
    signed[0, :3] = -2000, -1999, -1998
    padding = {"PixelPaddingValue": 63536, "PixelPaddingRangeLimit": 63537}
    path = dicom(tmp_path / "a.dcm", signed, PhotometricInterpretation="MONOCHROME1")
    file = dcmread(path)
    for name, value in padding.items():
        file.add_new(name, "US", value)
    file.save_as(path)
    found = read(path)
    assert found.notes[0].endswith(", padding black")
    assert found.pixels[0, 0, :2].tolist() == [0, 0]
    assert found.pixels[0, 0, 2] > 200


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"RescaleSlope": "0", "RescaleIntercept": "0"}, "a rescale slope of 0"),
        ({"WindowCenter": float("nan"), "WindowWidth": 5}, "a window of width 5 about nan"),
        ({"BitsStored": 0}, "0 bits stored of 16 allocated"),
        ({"BitsStored": 20}, "20 bits stored of 16 allocated"),
        ({"PixelRepresentation": 1, "BitsStored": 11, "HighBit": 10}, "more than the 11 bits"),
    ],
)
def test_what_says_nothing_is_refused_and_named(tmp_path: Path, more: dict[str, object], reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        read(dicom(tmp_path / "a.dcm", TWELVE, **more))


def test_a_table_shorter_than_stated_is_refused(tmp_path: Path) -> None:
    table = Dataset()
    table.LUTDescriptor = [4096, 0, 16]
    table.LUTData = np.arange(100).astype("<u2").tobytes()
    with pytest.raises(RefusedError, match="a table of 100 entries where the file states 4096 of 16 bits"):
        read(dicom(tmp_path / "a.dcm", TWELVE, VOILUTSequence=[table]))


def test_a_file_without_the_mark_is_named_for_what_its_ending_says(tmp_path: Path) -> None:
    path = dicom(tmp_path / "a.dcm", TWELVE)
    path.write_bytes(path.read_bytes()[132:])
    with pytest.raises(RefusedError, match="without the mark of such files"):
        read(path)
    Image.new("L", (4, 4)).save(path, "PNG")
    assert not read(path).pixels.any()


@pytest.mark.parametrize("length", [0.4, 0.7, 0.95])
def test_a_cut_deflated_file_is_an_error(tmp_path: Path, length: float) -> None:
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    file = dcmread(dicom(tmp_path / "a.dcm", TWELVE))
    file.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    file.save_as(tmp_path / "b.dcm")
    whole = (tmp_path / "b.dcm").read_bytes()
    (tmp_path / "b.dcm").write_bytes(whole[: int(len(whole) * length)])
    with pytest.raises(DataError, match="damaged"):
        read(tmp_path / "b.dcm")


def test_bytes_changed_at_random_are_never_worse_than_an_error(tmp_path: Path) -> None:
    whole = dicom(tmp_path / "a.dcm", TWELVE[:8, :8].copy()).read_bytes()
    random = np.random.default_rng(0)
    for _ in range(150):
        changed = bytearray(whole)
        for place in random.integers(132, len(whole), 4):
            changed[place] = random.integers(256)
        (tmp_path / "b.dcm").write_bytes(changed)
        with contextlib.suppress(DataError):
            read(tmp_path / "b.dcm")


def packed(path: Path, pixels: np.ndarray, file: Dataset) -> Path:
    """Save `file` with its pixels as a JPEG 2000 stream of `pixels`' own bits."""
    from pydicom.encaps import encapsulate
    from pydicom.uid import JPEG2000Lossless

    Image.fromarray(pixels).save(path, "JPEG2000", irreversible=False, no_jp2=True)
    file.PixelData = encapsulate([path.read_bytes()])
    file["PixelData"].VR = "OB"
    file.file_meta.TransferSyntaxUID = JPEG2000Lossless
    file.save_as(path)
    return path


def with_overlay(path: Path, values: np.ndarray, place: int, **more: object) -> Dataset:
    """A file that says that an overlay lies in one bit of its values."""
    file = dcmread(dicom(path, values, **more))
    for element, vr, value in ((0x10, "US", 64), (0x11, "US", 64), (0x100, "US", 16), (0x102, "US", place)):
        file.add_new((0x6000, element), vr, value)
    file.save_as(path)
    return file


def test_overlays_in_unused_bits_are_cut_off_whatever_the_transfer_syntax(tmp_path: Path) -> None:
    from pydicom.uid import DeflatedExplicitVRLittleEndian, RLELossless

    marked = TWELVE | np.where(np.arange(64) % 7 == 0, 1 << 13, 0).astype(np.uint16)
    plain = read(dicom(tmp_path / "plain.dcm", TWELVE)).pixels
    file = with_overlay(tmp_path / "raw.dcm", marked, 13)
    file.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    file.save_as(tmp_path / "deflated.dcm")
    file = with_overlay(tmp_path / "raw.dcm", marked, 13)
    file.compress(RLELossless)
    file.save_as(tmp_path / "rle.dcm")
    packed(tmp_path / "j2k.dcm", marked, with_overlay(tmp_path / "raw.dcm", marked, 13))
    with_overlay(tmp_path / "high.dcm", TWELVE << 4 | 2, 1, HighBit=15)
    for name in ("raw", "deflated", "rle", "j2k", "high"):
        found = read(tmp_path / f"{name}.dcm")
        np.testing.assert_array_equal(found.pixels, plain, err_msg=name)
        assert any("an overlay in unused bits" in note for note in found.notes), name


def test_unused_bits_that_no_overlay_claims_are_refused_whatever_the_transfer_syntax(tmp_path: Path) -> None:
    marked = TWELVE | np.uint16(1 << 12)
    with_overlay(tmp_path / "raw.dcm", marked, 13)
    packed(tmp_path / "j2k.dcm", marked, with_overlay(tmp_path / "other.dcm", marked, 13))
    for name in ("raw", "j2k"):
        with pytest.raises(RefusedError, match=r"more than the 12 bits .*no overlay is said to lie in the others"):
            read(tmp_path / f"{name}.dcm")


def test_a_stream_of_fewer_bits_than_the_file_states_is_shown_by_its_own(tmp_path: Path) -> None:
    values = (TWELVE // 16).astype(np.uint8)
    found = read(packed(tmp_path / "a.dcm", values, dcmread(dicom(tmp_path / "b.dcm", TWELVE))))
    np.testing.assert_array_equal(found.pixels[0], values)
    assert "DICOM: the packed pixels have 8 bits a value, not the 12 that the file states" in found.notes


def test_stored_values_may_be_the_higher_bits_and_signed(tmp_path: Path) -> None:
    signed = TWELVE.astype(np.int16) - 2048
    plain = read(dicom(tmp_path / "a.dcm", signed)).pixels
    np.testing.assert_array_equal(read(dicom(tmp_path / "b.dcm", signed << 4, HighBit=15)).pixels, plain)
    unsigned = (signed.astype(np.uint16) & 0xFFF).view(np.int16)  # no sign beyond the twelve bits
    np.testing.assert_array_equal(read(dicom(tmp_path / "c.dcm", unsigned)).pixels, plain)


@pytest.mark.parametrize("beyond", [b"\xff\xff", b"\xff\xff\xff"])
def test_padding_behind_the_pixels_is_passed_over(tmp_path: Path, beyond: bytes) -> None:
    plain = read(dicom(tmp_path / "a.dcm", TWELVE)).pixels
    longer = dicom(tmp_path / "b.dcm", TWELVE, PixelData=TWELVE.tobytes() + beyond)
    np.testing.assert_array_equal(read(longer).pixels, plain)


@pytest.mark.parametrize("kind", ["OB", "OW"])
def test_big_endian_words_of_eight_bits_are_turned(tmp_path: Path, kind: str) -> None:
    from pydicom.uid import ExplicitVRBigEndian

    values = np.arange(63, dtype=np.uint8).reshape(7, 9) * 4
    held = values.tobytes() + b"\0"
    file = Dataset()
    file.update(dcmread(dicom(tmp_path / "a.dcm", values, bits=8)))
    file.file_meta = dcmread(tmp_path / "a.dcm").file_meta
    file.PixelData = held if kind == "OB" else np.frombuffer(held, "<u2").byteswap().tobytes()
    file["PixelData"].VR = kind
    file.file_meta.TransferSyntaxUID = ExplicitVRBigEndian
    dcmwrite(tmp_path / "b.dcm", file, implicit_vr=False, little_endian=False, enforce_file_format=True)
    found = read_dicom(tmp_path / "b.dcm", 100)
    np.testing.assert_array_equal(np.asarray(found.image), values)


@pytest.mark.parametrize("error", ["ValueError", "ImportError"])
def test_a_decoder_that_does_not_import_leaves_the_others(tmp_path: Path, error: str) -> None:
    for name in ("openjpeg", "libjpeg"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise {error}('built for another numpy')")
    packed(tmp_path / "a.dcm", (TWELVE // 16).astype(np.uint8), dcmread(dicom(tmp_path / "b.dcm", TWELVE)))
    script = (
        "from pathlib import Path; from bench.data.dicom import broken_decoders, read_dicom\n"
        f"read_dicom(Path({str(tmp_path / 'a.dcm')!r}), 10000); print(broken_decoders())"
    )
    path = os.pathsep.join((str(tmp_path), *sys.path))
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "('openjpeg', 'libjpeg'" in done.stdout


def test_a_file_is_asked_what_it_says_of_itself(tmp_path: Path) -> None:
    plain = self_description(dicom(tmp_path / "a.dcm", TWELVE, BurnedInAnnotation="NO"))
    assert plain == SelfDescription(image=True, burned_in="NO", captured=True, overlays=False, removed="", codes=())
    digital = {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.1.1", "PatientIdentityRemoved": "YES"}
    told = self_description(dicom(tmp_path / "b.dcm", TWELVE, BurnedInAnnotation="YES", **digital))
    assert told == SelfDescription(image=True, burned_in="YES", captured=False, overlays=False, removed="YES", codes=())
    for kind in ("88.11", "88.59", "11.1", "104.1", "9.1.1", "66.1", "88.67"):
        found = self_description(dicom(tmp_path / "c.dcm", TWELVE, SOPClassUID=f"1.2.840.10008.5.1.4.1.1.{kind}"))
        assert found is not None
        assert not found.image, kind
    for kind in ("1", "1.2", "2.1", "7", "66.4", "6.1", "12.1", "128"):
        found = self_description(dicom(tmp_path / "c.dcm", TWELVE, SOPClassUID=f"1.2.840.10008.5.1.4.1.1.{kind}"))
        assert found is not None
        assert found.image == (kind != "66.4"), kind
    (tmp_path / "d.dcm").write_bytes(b"x" * 200)
    assert self_description(tmp_path / "d.dcm") is None


def rgb(path: Path, values: np.ndarray, kind: str = "RGB", **more: object) -> Path:
    """Colours (h, w, 3) uint8, written by pixel."""
    dicom(path, values[..., 0], bits=8)
    file = dcmread(path)
    file.SamplesPerPixel, file.PhotometricInterpretation, file.PlanarConfiguration = 3, kind, 0
    file.PixelData = values.tobytes()
    for name, value in more.items():
        setattr(file, name, value)
    file.save_as(path)
    return path


COLOURS = np.random.default_rng(3).integers(0, 256, (8, 8, 3), dtype=np.uint8)


def test_colours_are_read_whatever_the_order_of_samples(tmp_path: Path) -> None:
    plain = read_dicom(rgb(tmp_path / "a.dcm", COLOURS), 1 << 20)
    assert np.array_equal(np.asarray(plain.image), COLOURS)
    assert plain.notes == ("DICOM: colours (RGB) are read as RGB",)
    planes = COLOURS.transpose(2, 0, 1).copy()
    path = rgb(tmp_path / "b.dcm", COLOURS, PlanarConfiguration=1, PixelData=planes.tobytes())
    assert np.array_equal(np.asarray(read_dicom(path, 1 << 20).image), COLOURS)
    grey = np.full((8, 8, 3), 128, dtype=np.uint8)
    grey[..., 0] = COLOURS[..., 0]  # luminance; the others say that there is no colour
    found = np.asarray(read_dicom(rgb(tmp_path / "c.dcm", grey, "YBR_FULL"), 1 << 20).image)
    assert np.abs(found.astype(int) - COLOURS[..., :1]).max() <= 1


def test_colours_become_the_channels_asked_for(tmp_path: Path) -> None:
    path = rgb(tmp_path / "a.dcm", COLOURS)
    assert np.array_equal(decode(path, Reading(8, 3)).pixels, COLOURS.transpose(2, 0, 1))
    assert np.array_equal(decode(path, Reading(8, 1)).pixels[0], np.asarray(Image.fromarray(COLOURS).convert("L")))
    assert coloured(path)
    assert not coloured(dicom(tmp_path / "b.dcm", TWELVE))


@pytest.mark.parametrize("bits", [8, 16])
def test_palettes_are_looked_up(tmp_path: Path, bits: int) -> None:
    index = np.arange(64, dtype=np.uint8).reshape(8, 8)
    table = np.arange(256)[::-1] * (257 if bits == 16 else 1)
    more: dict[str, object] = {"PhotometricInterpretation": "PALETTE COLOR"}
    for name in ("Red", "Green", "Blue"):
        more[f"{name}PaletteColorLookupTableDescriptor"] = [256, 0, bits]
        more[f"{name}PaletteColorLookupTableData"] = table.astype("u2" if bits == 16 else "u1").tobytes()
    found = np.asarray(read_dicom(dicom(tmp_path / "a.dcm", index, bits=8, **more), 1 << 20).image)
    assert np.array_equal(found, np.repeat(255 - index[..., None], 3, axis=2))


@pytest.mark.parametrize("name", ["Rows", "BitsStored", "PixelRepresentation"])
def test_an_element_that_lacks_is_named(tmp_path: Path, name: str) -> None:
    path = dicom(tmp_path / "a.dcm", TWELVE)
    file = dcmread(path)
    delattr(file, name)
    file.save_as(path)
    with pytest.raises(DataError, match=f"its header lacks {name}"):
        read(path)


def test_a_window_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = dicom(tmp_path / "a.dcm", TWELVE, WindowCenter="2048", WindowWidth="4096")
    path.write_bytes(path.read_bytes().replace(b"2048", b"20,4"))
    with pytest.raises(DataError, match="a window that is no number"):
        read(path)


def test_codes_of_de_identification_are_told_and_no_words(tmp_path: Path) -> None:
    codes = []
    for value in ("113101", "113107", "DOE^JANE"):
        item = Dataset()
        item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = value, "DCM", "x"
        codes.append(item)
    path = dicom(tmp_path / "a.dcm", TWELVE, PatientIdentityRemoved="YES", DeidentificationMethodCodeSequence=codes)
    told = self_description(path)
    assert told is not None
    assert told.codes == ("113101", "113107", "codes of another list")
    told = self_description(
        dicom(tmp_path / "b.dcm", TWELVE, PatientIdentityRemoved="NO", DeidentificationMethod="DOE")
    )
    assert told is not None
    assert (told.removed, told.codes) == ("NO", ("free text",))
