"""DICOM files and deep grey values as images of eight bits.

DICOM is read with pydicom. Stored values become those that the file means (rescale, or its modality table), and are
then shown through the first window or table that the file holds for viewing (VOI; PS3.3, C.11.2): what lies below is
black, what lies above white. Without one, the whole range of the bits that are stored is shown, or of as many as the
user says count. MONOCHROME1 (low is white) is inverted. Padding (PS3.3, C.7.5.1.1.2) is black. Colours of eight bits
(RGB, YBR, palettes) become RGB. What was done is a note.
Nothing is stretched by an image's own brightness: one rule holds for all images of a set.

A container of 16 bits often holds 10, 12 or 14. Taking its upper eight would then leave a few greys, so the number of
bits must be stated: by the user, or by the file if its format says what the values mean (a TIFF of 12 bits, the
maximum of a PGM, the precision of a JPEG 2000, PNG's `sBIT`). Of the bits that count the upper eight are kept. Nothing
is guessed from brightness, for one mapping has to hold for all images of a set.
"""

from __future__ import annotations

import re
import struct
import sys
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageFile

from bench.contract.source import DataError
from bench.data.declared_size import FREE, check_declared

if TYPE_CHECKING:
    from pydicom import FileDataset
    from pydicom.dataset import FileMetaDataset

_MARK = slice(128, 132)
_FRAMES = frozenset({*range(0xC0, 0xD0), 0xF7}) - {0xC4, 0xC8, 0xCC}  # markers of JPEG and JPEG-LS
_GREY = ("MONOCHROME1", "MONOCHROME2")
_PALETTE = "PALETTE COLOR"
_COLOURS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT", _PALETTE)
_HALVED = "YBR_FULL_422"  # two samples a pixel, if it is not packed
_SHAPES = ("IDENTITY", "INVERSE")  # of what MONOCHROME2 and MONOCHROME1 mean
_ALLOCATED = (8, 16)
_META_LENGTH = 12  # bytes of the element that holds the length of the others
DEFLATED = 100
"""Bytes that a byte of a deflated DICOM file may stand for: radiographs are packed to a third."""
_UNUSED = 3  # bits of the range, from which on an image has at most 32 of 256 greys
_MAY_BE_BLANK = (
    "NumberOfFrames",
    "RescaleSlope",
    "RescaleIntercept",
    "ModalityLUTSequence",
    "VOILUTSequence",
    "VOILUTFunction",
    "WindowCenter",
    "WindowWidth",
    "PixelPaddingValue",
    "PixelPaddingRangeLimit",
)
_GROUPS = ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence")
_IN_GROUPS = ("PixelValueTransformationSequence", "FrameVOILUTSequence")  # fmt: skip


def is_dicom(path: Path) -> bool:
    """True if the file carries the DICOM mark in its first bytes."""
    with path.open("rb") as file:
        return file.read(_MARK.stop)[_MARK] == b"DICM"


_PLUGINS = ("openjpeg", "libjpeg", "rle")  # of pylibjpeg, which imports them all
_DECODERS = (*_PLUGINS, "pylibjpeg", "gdcm", "jpeg_ls")


def block_broken_decoders() -> None:
    """Hide decoder packages whose import fails, so that pydicom works.

    It expects ImportError alone of them; one that is built for another numpy raises something else.
    """
    for name in _DECODERS:
        if name not in sys.modules and find_spec(name) is not None:
            try:
                import_module(name)
            except Exception:  # a package of strangers, half installed, raises anything
                sys.modules[name] = None  # type: ignore[assignment]  # importing it is an ImportError from now on
    if any(sys.modules.get(name, name) is None for name in _PLUGINS):
        sys.modules["pylibjpeg"] = None  # type: ignore[assignment]


def broken_decoders() -> tuple[str, ...]:
    """Decoder packages whose import fails."""
    return tuple(name for name in _DECODERS if sys.modules.get(name, name) is None)


@dataclass(frozen=True)
class SelfDescription:
    """Elements by which a DICOM file warns of what it holds.

    Args:
        image: False for objects without an image: reports, key objects, presentation states, documents, directories.
        burned_in: `BurnedInAnnotation` in capitals, "" if the file does not say.
        captured: A screen, film or document that was captured (secondary capture), or a scanned one.
        overlays: If overlays lie beside the pixels (60xx,3000); they are not shown.
        removed: If the patient's identity was removed (0012,0062), in capitals, "" if the file does not say.
        codes: Codes of how it was removed (0012,0064; PS3.16, CID 7050), "free text" (0012,0063) without one.
    """

    image: bool
    burned_in: str
    captured: bool
    overlays: bool
    removed: str
    codes: tuple[str, ...]


UNSETTLED = "which has to be settled before a release"
"""Words of notes that `bench release` refuses."""
IDENTIFIED = "say that the patient's identity was not removed"
_NO_IMAGE = re.compile(
    r"1\.2\.840\.10008\.("
    r"1\.3\.10|5\.1\.4\.1\.1\.(88|11|104|9|66|67|68|200|201|481\.(3|5|8))(\.[0-9.]+)?|5\.1\.4\.(38|39|43|44|45)\.[0-9.]+)"
)  # directories; SR and KO, PR, documents, waveforms, registrations, surfaces, implementation plans
_CAPTURED = re.compile(r"1\.2\.840\.10008\.5\.1\.4\.1\.1\.7(\.[1-4])?")
_SCANNED = frozenset({"DV", "DI", "DF", "WSD", "SD", "SI", "DRW", "SYN"})  # conversion types (PS3.3, C.8.6.1)
_CODE = re.compile(r"1131[01][0-9]")  # PS3.16, CID 7050
_SAYING = (  # SOP class, conversion type, identity removed, how, burned-in annotation, overlays
    0x00080016, 0x00080064, 0x00120062, 0x00120063, 0x00120064, 0x00280301,
    *(group << 16 | 0x3000 for group in range(0x6000, 0x6020, 2)),
)  # fmt: skip
_LATER = 1024  # bytes from which on values are left in the file


def self_description(path: Path) -> SelfDescription | None:
    """The description that a DICOM file gives of itself.

    None for what is no readable DICOM file; decoding says why.
    """
    try:
        if not is_dicom(path):
            return None
        block_broken_decoders()
        from pydicom import dcmread
        from pydicom.filereader import read_file_meta_info

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_packed(path, read_file_meta_info(path))
            file = dcmread(path, specific_tags=list(_SAYING), defer_size=_LATER, stop_before_pixels=True)
            kind = str(file.get("SOPClassUID", "") or file.file_meta.get("MediaStorageSOPClassUID", ""))
            return SelfDescription(
                _NO_IMAGE.fullmatch(kind) is None,
                str(file.get("BurnedInAnnotation", "") or "").strip().upper(),
                _CAPTURED.fullmatch(kind) is not None or str(file.get("ConversionType", "")) in _SCANNED,
                any((group, 0x3000) in file for group in range(0x6000, 0x6020, 2)),
                str(file.get("PatientIdentityRemoved", "") or "").strip().upper(),
                _codes(file),
            )
    except (OSError, DataError):
        return None
    except _damage():
        return None


def _codes(file: FileDataset) -> tuple[str, ...]:
    """Codes of de-identification; CID 7050 alone, for others may name somebody."""
    items = file.get("DeidentificationMethodCodeSequence") or ()
    codes = {str(item.get("CodeValue", "")) for item in items}
    if codes:
        return tuple(sorted(code if _CODE.fullmatch(code) else "codes of another list" for code in codes))
    return ("free text",) if file.get("DeidentificationMethod") else ()


def header_of(path: Path) -> tuple[int, int, int]:
    """Width, height and stored bits of a DICOM image.

    Damage raises whatever pydicom raises over it.
    """
    block_broken_decoders()
    from pydicom import dcmread

    header = dcmread(path, stop_before_pixels=True)
    return int(header.Columns), int(header.Rows), int(header.BitsStored)


def read_dicom(path: Path, pixels: int, bits: int | None = None) -> Grey:
    """The image in a DICOM file of at most `pixels` pixels.

    `bits` of a stored grey value count if no window says what to show; None: as many as are stored. Raises RefusedError
    for several frames, larger values, colours of more than eight bits or unknown packing, DataError for damage.
    """
    block_broken_decoders()
    from pydicom import dcmread  # only if there are such files: it takes a third of a second
    from pydicom.errors import InvalidDicomError
    from pydicom.filereader import read_file_meta_info

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of values that the standard would write otherwise
            _check_packed(path, read_file_meta_info(path))
            file = dcmread(path)
            _open_groups(file)
            for name in _MAY_BE_BLANK:
                if name in file and file[name].is_empty:  # an element without a value says as much as none
                    del file[name]
            _check(file, pixels)
            if file.PhotometricInterpretation in _COLOURS:
                return _coloured(file)
            stored, notes = _stored(file)
            return _shown(file, stored, bits, notes)
    except InvalidDicomError as error:
        raise DataError("not a readable DICOM file") from error
    except _damage() as error:
        raise DataError(f"a damaged DICOM file ({type(error).__name__})") from error


def _damage() -> tuple[type[Exception], ...]:
    """The errors by pydicom over damage."""
    from pydicom.errors import BytesLengthException, InvalidDicomError

    return (
        AttributeError, KeyError, TypeError, ValueError, IndexError, EOFError, ArithmeticError, RuntimeError,
        zlib.error, BytesLengthException, struct.error, MemoryError, InvalidDicomError,
    )  # fmt: skip


def _open_groups(file: FileDataset) -> None:
    """Copy rescale and window of enhanced objects (PS3.3, C.7.6.16) up."""
    frames = [frame for group in _GROUPS for frame in file.get(group, [])[:1]]
    for item in [item for frame in frames for name in _IN_GROUPS for item in frame.get(name, [])[:1]]:
        file.update({element.tag: element for element in item})


def _check_packed(path: Path, meta: FileMetaDataset) -> None:
    """Raise DataError for a deflated file that unpacks to too much.

    pydicom unpacks all of it at once.
    """
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
        return
    with path.open("rb") as file:
        file.seek(_MARK.stop + _META_LENGTH + int(meta.FileMetaInformationGroupLength))
        packed = file.read()
    bound = max(FREE, DEFLATED * len(packed))
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    stream.decompress(packed, bound)
    if stream.unconsumed_tail:
        raise RefusedError(f"DICOM: unpacks to more than {bound} bytes, from the {len(packed)} that it holds")


_NEEDED = ("Rows", "Columns", "BitsAllocated", "BitsStored", "PixelRepresentation")


def _check(file: FileDataset, pixels: int) -> None:
    if gone := [name for name in _NEEDED if name not in file or file[name].is_empty]:
        raise DataError(f"a damaged DICOM file: its header lacks {', '.join(gone)}")
    if "TransferSyntaxUID" not in file.file_meta:
        raise DataError("a damaged DICOM file: its header lacks the transfer syntax (0002,0010)")
    kind = str(file.get("PhotometricInterpretation", "nothing"))
    samples = 1 if kind in _GREY or kind == _PALETTE else 3
    if kind not in (*_GREY, *_COLOURS) or int(file.get("SamplesPerPixel", 1)) != samples:
        raise RefusedError(
            f"DICOM: expected {' or '.join(_GREY)}, or colours as {', '.join(_COLOURS)}, found {kind:.20} of "
            f"{int(file.get('SamplesPerPixel', 1))} samples a pixel: convert the file"
        )
    if (frames := int(file.get("NumberOfFrames", 1) or 1)) > 1:
        raise RefusedError(
            f"DICOM: {frames} frames in one file: store each that shows a case in a file of its own (dcmtk: dcm2img "
            f"--all-frames), or leave the file out"
        )
    declared = int(file.Rows) * int(file.Columns)
    if declared > pixels:
        raise RefusedError(f"more than {pixels} pixels: if the image is correct, raise --max-pixels")
    if "PixelData" not in file:  # a URL of the pixels (PS3.3, C.7.6.3.1.4.1) is not followed
        floats = {"FloatPixelData", "DoubleFloatPixelData"} & {*file.dir()}
        raise RefusedError(f"DICOM: {FLOATING}" if floats else "DICOM: no pixels in the file itself")
    _check_pixels(file, declared)
    if int(file.BitsAllocated) not in _ALLOCATED:
        raise RefusedError(
            f"DICOM: expected values of 8 or 16 bits, found {int(file.BitsAllocated)}: a mask, a dose or a map is no "
            f"image to release; else convert the file"
        )
    if kind in _COLOURS and kind != _PALETTE and int(file.BitsAllocated) != FEWEST:
        raise RefusedError("DICOM: colours of 16 bits a channel are not read: store 8")
    if not 0 < int(file.BitsStored) <= int(file.BitsAllocated):
        raise RefusedError(f"DICOM: {int(file.BitsStored)} bits stored of {int(file.BitsAllocated)} allocated")
    high = int(file.get("HighBit", file.BitsStored - 1))
    if not int(file.BitsStored) <= high + 1 <= int(file.BitsAllocated):
        raise RefusedError(
            f"DICOM: {int(file.BitsStored)} stored bits do not end at bit {high} of {int(file.BitsAllocated)} "
            f"allocated ones"
        )


def _check_pixels(file: FileDataset, declared: int) -> None:
    """Raise DataError for other pixels than a file declares."""
    noun, content = "a damaged DICOM file: an image, of its rows and columns,", file.PixelData
    if not file.file_meta.TransferSyntaxUID.is_compressed:
        kind = file.PhotometricInterpretation
        samples = 2 if kind == _HALVED else int(file.get("SamplesPerPixel", 1))
        check_declared(declared * samples * int(file.BitsAllocated) // 8, held=len(content), noun=noun, ratio=1)
        return
    check_declared(declared, held=len(content), noun=noun)
    stream, stated = _stream(_frame(file)), (int(file.Rows), int(file.Columns))
    if stream is not None and stream.sides != stated:  # a decoder makes room for what the stream says
        raise RefusedError(f"DICOM: rows and columns are {stated}, and {stream.sides} in the packed pixels")


def _frame(file: FileDataset) -> bytes:
    from pydicom.encaps import generate_frames

    return next(generate_frames(file.PixelData, number_of_frames=1))


@dataclass(frozen=True)
class _Stream:
    """The sides of a packed stream, and its bits a value."""

    sides: tuple[int, int]
    bits: int


def _stream(frame: bytes) -> _Stream | None:
    """The header of a JPEG, JPEG-LS or JPEG 2000 stream, or None."""
    if frame[:2] == _SIZES[:2] or frame[4:8] == b"jP  ":  # T.800, A.5.1 and I.5.1
        at = frame.index(_SIZES)
        right, bottom, left, top = struct.unpack_from(">4I", frame, at + len(_SIZES) + 4)
        return _Stream((bottom - top, right - left), frame[at + _PRECISION] % 128 + 1)
    at = 2
    while frame[:2] == b"\xff\xd8" and len(frame) >= at + 9 and frame[at] == 0xFF:
        if frame[at + 1] in _FRAMES:  # T.81, B.2.2; T.87, C.2.2
            bits, rows, columns = struct.unpack_from(">B2H", frame, at + 4)
            return _Stream((rows, columns), bits)
        at += 1 if frame[at + 1] == 0xFF else 2 + int.from_bytes(frame[at + 2 : at + 4])
    return None


def _coloured(file: FileDataset) -> Grey:
    """The colours of a file as RGB of eight bits."""
    from pydicom.pixels.processing import apply_color_lut
    from pydicom.pixels.utils import pixel_array

    kind = file.PhotometricInterpretation
    with _unpacking(file):
        values = pixel_array(file, index=0)  # YBR becomes RGB
    if kind == _PALETTE:
        values = apply_color_lut(values, file)
        values = values >> FEWEST if values.dtype.itemsize > 1 else values
        values = values[..., :3]  # a fourth channel says how opaque a pixel is
    rgb = values.astype(np.uint8).reshape(int(file.Rows), int(file.Columns), 3)
    return Grey(Image.fromarray(rgb), (f"DICOM: colours ({kind}) are read as RGB",))


def _stored(file: FileDataset) -> tuple[np.ndarray, tuple[str, ...]]:
    """Stored values (h, w) int64, whatever the transfer syntax, and notes.

    Of each value's bits those from `HighBit` down count, `BitsStored` of them, or as many as a packed stream has if
    they are fewer (`BitsStored` and `HighBit` of `file` are set to these). Other bits are cut off if an overlay says
    that it lies there (PS3.3, C.9.2), or if they repeat the sign.

    Raises RefusedError for other bits that are set, and if no decoder unpacks the pixels.
    """
    stream = _stream(_frame(file)) if file.file_meta.TransferSyntaxUID.is_compressed else None
    width, bits = int(file.BitsAllocated), int(file.BitsStored)
    high = int(file.get("HighBit", bits - 1))
    if stream is not None:
        width = stream.bits
        if high != bits - 1:
            raise RefusedError(f"DICOM: packed values whose highest bit is {high} of {bits} stored: convert the file")
    words = _words(file) & (2**width - 1)
    notes: tuple[str, ...] = ()
    if width < bits:
        notes = (f"the packed pixels have {width} bits a value, not the {bits} that the file states",)
        bits, high = width, width - 1
    low = high - bits + 1
    beyond = (words >> (high + 1), words & (2**low - 1))
    signs = 2 ** (width - high - 1) - 1 if file.PixelRepresentation else 0
    if (((beyond[0] != 0) & (beyond[0] != signs)) | (beyond[1] != 0)).any():
        others = (2**width - 1) & ~((2 ** (high + 1) - 1) & ~(2**low - 1))
        for place in _overlay_bits(file):
            others &= ~(1 << place)
        if (words & others).any():  # pydicom would cut them off, and light would be dark
            raise RefusedError(
                f"DICOM: a value needs more than the {bits} bits that the file states, and no overlay is said to lie "
                f"in the others"
            )
        notes = (*notes, "an overlay in unused bits of the values, which may hold text, is cut off")
    values = words >> low & (2**bits - 1)
    if file.PixelRepresentation:
        values -= (values >> (bits - 1)) << bits
    file.BitsStored, file.HighBit = bits, bits - 1
    return values, notes


def _overlay_bits(file: FileDataset) -> list[int]:
    """Places of overlays among the bits of the values (60xx,0102)."""
    places = (file.get((group, 0x0102)) for group in range(0x6000, 0x6020, 2) if (group, 0x3000) not in file)
    return [int(place.value) for place in places if place is not None and not place.is_empty]


def _words(file: FileDataset) -> np.ndarray:
    """The container of each value, (h, w) int64."""
    from pydicom.pixels.utils import pixel_array

    rows, columns, wide = int(file.Rows), int(file.Columns), int(file.BitsAllocated) // 8
    if not file.file_meta.TransferSyntaxUID.is_compressed:
        held = file.PixelData[: rows * columns * wide]  # the rest is padding
        order = "<" if file.file_meta.TransferSyntaxUID.is_little_endian else ">"
        if wide == 1 and order == ">" and file["PixelData"].VR == "OW":  # bytes of a word are swapped
            whole = file.PixelData[: rows * columns + rows * columns % 2]
            held = np.frombuffer(whole, dtype="<u2").byteswap().tobytes()[: rows * columns]
        return np.frombuffer(held, dtype=f"{order}u{wide}").astype(np.int64).reshape(rows, columns)
    with _unpacking(file):
        found = pixel_array(file, raw=True, index=0, correct_unused_bits=False)
    return np.asarray(found).astype(np.int64).reshape(rows, columns)


@contextmanager
def _unpacking(file: FileDataset) -> Iterator[None]:
    """Raise RefusedError with the remedy if the pixels are not unpacked."""
    try:
        yield
    except (RuntimeError, NotImplementedError) as error:  # no decoder for how it is packed, or a damaged stream
        packed = file.file_meta.TransferSyntaxUID.name
        broken = ", ".join(broken_decoders())
        cause = f"{broken} is here and cannot be imported: install it again" if broken else "the file is damaged"
        raise RefusedError(
            f"DICOM: pixels packed as {packed} could not be unpacked: `pip install 'pylibjpeg[all]'` brings more "
            f"decoders, or {cause}"
        ) from error


def _shown(file: FileDataset, stored: np.ndarray, stated: int | None, notes: tuple[str, ...]) -> Grey:
    values = _meant(file, stored)
    how, share = _viewed(file, values)
    if share is None:
        if "ModalityLUTSequence" in file:
            raise RefusedError("DICOM: values go through a table, and no window selects the values to show")
        how, low, high = _range(file, stored, stated)
        first, last = np.sort(_meant(file, np.array([low, high])))
        share = (values - first) / (last - first)
    grey = np.floor(share.clip(0, 1) * 255 + 0.5).astype(np.uint8)
    inverted, shape = file.PhotometricInterpretation == _GREY[0], str(file.get("PresentationLUTShape", ""))
    end = ", inverted because low is white" if inverted else ""
    if shape in _SHAPES and shape != _SHAPES[inverted]:
        end += f" (though its PresentationLUTShape is {shape})"
    shown, padding = 255 - grey if inverted else grey, _padding(file, stored)
    if padding.any():
        shown, end = np.where(padding, np.uint8(0), shown), f"{end}, padding black"
    return Grey(Image.fromarray(shown), (f"DICOM: {how}{end}", *(f"DICOM: {note}" for note in notes)))


def _range(file: FileDataset, stored: np.ndarray, stated: int | None) -> tuple[str, int, int]:
    """The range without a window: note, least and greatest stored value."""
    signed, stored_bits = bool(file.PixelRepresentation), int(file.BitsStored)
    bits = stored_bits if stated is None else min(stated, stored_bits)
    seen = stored[~_padding(file, stored)]
    ends = (int(seen.min()), int(seen.max())) if seen.size else (0, 0)
    needed = max((~end if end < 0 else end).bit_length() for end in ends) + signed
    if needed > bits:
        raise RefusedError(BEYOND)
    how = f"no window, so all {stored_bits} bits are shown"
    if bits < stored_bits:
        how = f"no window, so the lowest {bits} of {stored_bits} bits are shown, as stated"
    elif stored_bits - needed >= _UNUSED:
        how += f", {_UNUSED} or more of them unused by its values: state how many count (`bits`) if none needs them"
    return how, *_ends(bits, signed=signed)


def _ends(bits: int, *, signed: bool) -> tuple[int, int]:
    """The least and the greatest value of so many bits."""
    low = -(2 ** (bits - 1)) if signed else 0
    return low, low + 2**bits - 1


def _possible(file: FileDataset) -> np.ndarray:
    """The least and the greatest value that may be stored."""
    return np.array(_ends(int(file.BitsStored), signed=bool(file.PixelRepresentation)))


def _sign(value: int, possible: np.ndarray) -> int:
    """A header value with its sign: some writers store -2048 as 63488.

    Args:
        value: As it stands there.
        possible: The values that it speaks of. It lacks its sign if some of them are below 0 and none reaches it.
    """
    return value - 2**16 if possible.min() < 0 and value > max(possible.max(), 2**15 - 1) else value


def _padding(file: FileDataset, stored: np.ndarray) -> np.ndarray:
    """(h, w) bool: pixels from the padding value to its limit."""
    if "PixelPaddingValue" not in file:
        return np.zeros(stored.shape, dtype=bool)
    ends = sorted(
        _sign(int(file.get(name, file.PixelPaddingValue)), _possible(file))
        for name in ("PixelPaddingValue", "PixelPaddingRangeLimit")
    )
    return (stored >= ends[0]) & (stored <= ends[1])


def _meant(file: FileDataset, stored: np.ndarray) -> np.ndarray:
    """Stored values (float64) after the modality table, or slope and intercept."""
    if "ModalityLUTSequence" in file:
        return _looked_up(file, "ModalityLUTSequence", stored, _possible(file))[0]
    slope, intercept = float(file.get("RescaleSlope", 1)), float(file.get("RescaleIntercept", 0))
    if slope == 0 or not np.isfinite([slope, intercept]).all():
        raise RefusedError(f"DICOM: a rescale slope of {slope:g} and intercept of {intercept:g} say nothing")
    return stored.astype(np.float64) * slope + intercept


def _looked_up(file: FileDataset, name: str, values: np.ndarray, possible: np.ndarray) -> tuple[np.ndarray, int]:
    """Values mapped by a table (PS3.3, C.11.1.1), and its maximum.

    pydicom's own `apply_voi_lut` wraps values at 256 if entries have eight bits.
    """
    table = file[name].value[0]
    entries, first, bits = (int(number) for number in table.LUTDescriptor)
    first, count, data = _sign(first, possible), entries % 2**16 or 2**16, table.LUTData  # some write it as signed
    if isinstance(data, bytes):  # words; entries of eight bits may also stand in a byte each
        order = "<" if file.file_meta.TransferSyntaxUID.is_little_endian else ">"
        data = np.frombuffer(data, dtype="u1" if bits <= 8 and len(data) < 2 * count else f"{order}u2")
    held = np.atleast_1d(np.asarray(data)).astype(np.float64)
    if len(held) < count or not 0 < bits <= 16 or held.max() >= 2**bits:
        raise RefusedError(f"DICOM: a table of {len(held)} entries where the file states {count} of {bits} bits")
    return held[np.clip(np.floor(values) - first, 0, count - 1).astype(np.int64)], 2**bits - 1


def _viewed(file: FileDataset, values: np.ndarray) -> tuple[str, np.ndarray | None]:
    """A note and brightness in [0, 1] by the file's window."""
    if "VOILUTSequence" in file:
        held, most = _looked_up(file, "VOILUTSequence", values, _meant(file, _possible(file)))
        return "shown through the file's own table", held / most
    if "WindowCenter" not in file or "WindowWidth" not in file:
        return "", None
    try:
        centre, width = (float(np.atleast_1d(file[name].value)[0]) for name in ("WindowCenter", "WindowWidth"))
    except (TypeError, ValueError) as error:
        raise RefusedError("DICOM: a window that is no number: correct WindowCenter and WindowWidth") from error
    form = str(file.get("VOILUTFunction", "LINEAR")).upper()
    if not np.isfinite([centre, width]).all():
        raise RefusedError(f"DICOM: a window of width {width:g} about {centre:g} says nothing")
    if form == "SIGMOID" and width > 0:
        return "shown through the file's sigmoid window", 1 / (1 + np.exp(-4 * (values - centre) / width))
    if form == "LINEAR_EXACT" and width > 0:
        return "shown through the file's window", (values - centre) / width + 0.5
    if form == "LINEAR" and width > 1:
        return "shown through the file's window", (values - (centre - 0.5)) / (width - 1) + 0.5
    if form == "LINEAR" and width == 1:
        return "shown through the file's window", (values > centre - 0.5).astype(np.float64)
    raise RefusedError(f"DICOM: a window of width {width:g} and form {form:.20} says nothing")


FEWEST, MOST = 8, 16
_SIZES, _PRECISION = b"\xff\x4f\xff\x51", 42  # a JPEG 2000's first markers; bits less one stand so far behind
_BITS_PER_SAMPLE, _PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0
STATING = "folder:PATH[bits=12] does"
UNSTATED = f"more than 8 bits a value, and the file does not say how many count: state them, as {STATING}"
CONTRARY = "the file says another number of bits than was stated: leave `bits` out, or mend it"
BEYOND = "a value needs more bits than were stated: raise `bits`"
NEGATIVE = "negative grey values, whose range is not known: store 8 or 16 bits from 0"
FLOATING = "floating-point pixels, whose range is not known: store 8 or 16 bits"
COLOUR = "colours of 16 bits a channel are taken only if all 16 count: store 8, or state bits=16 if they do"


class RefusedError(DataError):
    """A refused, undamaged image; the text repeats nothing of it."""


@dataclass(frozen=True, eq=False)
class Grey:
    """An image of eight bits a channel.

    Args:
        image: The image.
        notes: What was done, for the record.
        used: Bits that the largest value needs, if there were more than eight a value; else 0.
    """

    image: Image.Image
    notes: tuple[str, ...] = ()
    used: int = 0


def eight_bits(image: ImageFile.ImageFile, path: Path, bits: int | None, stored: str) -> Grey:
    """An open image as one of eight bits; RefusedError if impossible.

    `bits` of a value count if the file has more than eight; `stored` is as `how_stored` says.
    """
    if image.mode == "F":
        raise RefusedError(FLOATING)
    if not image.mode.startswith("I"):
        if ";16" not in stored:
            return Grey(image)
        if bits != MOST:
            raise RefusedError(COLOUR)
        return Grey(image, ("colours of 16 bits a channel become 8 bits",))
    scaled = stored.startswith("ppm ")  # Pillow stretches a PGM by its maximum
    stated, white = (MOST, False) if scaled else _stated(image)
    values = np.asarray(image)
    if image.format == "JPEG2000" and (precision := _precision(path)) is not None:
        stated, values = precision, values >> (MOST - precision)  # Pillow stretches what has fewer bits
    if values.min() < 0:
        raise RefusedError(NEGATIVE)
    if stated is None:
        stated = _significant(path, values) if bits is None and image.format == "PNG" else bits
    elif bits not in (None, stated) and not scaled:
        raise RefusedError(CONTRARY)
    if stated is None:
        raise RefusedError(UNSTATED)
    used = int(values.max()).bit_length()
    if used > stated:
        raise RefusedError(BEYOND)
    grey = (values >> (stated - FEWEST)).astype(np.uint8)
    notes = [f"grey values of {stated} bits become 8 bits: 0 is black, {2**stated - 1} white"]
    if white:
        grey = 255 - grey
        notes = [f"grey values of {stated} bits become 8 bits: 0 was white and is black now"]
    return Grey(Image.fromarray(grey), tuple(notes), 0 if scaled else used)


def how_stored(image: ImageFile.ImageFile) -> str:
    """Pillow's codec and arguments, which Pillow drops on loading."""
    return " ".join(f"{tile.codec_name} {tile.args}" for tile in image.tile[:1])


def _stated(image: ImageFile.ImageFile) -> tuple[int | None, bool]:
    """Bits stated by a TIFF, or None; True if 0 is white."""
    if image.format != "TIFF":
        return None, False
    tags = image.tag_v2  # type: ignore[attr-defined]
    bits = int(max(tags.get(_BITS_PER_SAMPLE, (1,))))
    return bits if bits % 8 else None, tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO


def _significant(path: Path, values: np.ndarray) -> int | None:
    """Significant bits by a PNG's sBIT chunk; None if missing or ambiguous.

    The standard stretches values to the container; many writers do not. Values beyond sBIT bits are stretched,
    those within that use their lower bits are not.
    """
    bits = _sbit(path)
    if bits is None or bits >= MOST:
        return bits
    if int(values.max()) >= 2**bits or not values.any():
        return MOST
    return max(bits, FEWEST) if (values & (2 ** (MOST - bits) - 1)).any() else None


def _precision(path: Path) -> int | None:
    """Bits stated by a JPEG 2000 (T.800, A.5.1); None for 16."""
    content = path.read_bytes()
    bits = content[content.find(_SIZES) + _PRECISION] % 128 + 1
    return bits if FEWEST < bits < MOST else None


def _sbit(path: Path) -> int | None:
    with path.open("rb") as file:
        file.seek(8)
        while len(head := file.read(8)) == 8 and head[4:] != b"IDAT":
            length = int.from_bytes(head[:4])
            if head[4:] == b"sBIT":
                return max(file.read(length), default=None)
            file.seek(length + 4, 1)
    return None
