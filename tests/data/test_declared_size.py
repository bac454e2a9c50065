"""Files that name other files, or ask for more than they can hold, are refused before anything is allocated."""

from __future__ import annotations

import gzip
import io
import resource
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from bench.backbones.weights import read_checkpoint
from bench.contract.source import DataError
from bench.data import declared_size
from bench.data.array_files import hdf5_images, read_member
from bench.data.csv_tables import read_table
from bench.data.declared_size import check_declared
from bench.data.picture import Reading, decode

N = 4
READING = Reading(size=8, channels=1)
GIB = 1 << 30


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """What a file asks for in vain is not to be had: 2 GiB beside what the process holds."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + 2 * GIB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def refused(path: Path, reason: str) -> str:
    with pytest.raises(DataError, match=reason) as error:
        decode(path, READING)
    return str(error.value)


# HDF5


def rows() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (N, 16, 16), dtype=np.uint8)


def hdf5(path: Path, write: Callable[[h5py.File], object]) -> Path:
    with h5py.File(path, "w") as file:
        write(file)
    return path


def external(file: h5py.File) -> None:
    other = Path(file.filename).with_name("diary.txt")
    other.write_bytes(bytes(range(256)) * N)
    file.create_dataset("images", (N, 16, 16), "u1", external=[(str(other), 0, h5py.h5f.UNLIMITED)])


def external_link(file: h5py.File) -> None:
    other = hdf5(Path(file.filename).with_name("other.h5"), lambda each: each.create_dataset("x", data=rows()))
    file["images"] = h5py.ExternalLink(str(other), "/x")


def soft_link_to_an_external_group(file: h5py.File) -> None:
    other = hdf5(Path(file.filename).with_name("other.h5"), lambda each: each.create_dataset("x", data=rows()))
    file["elsewhere"] = h5py.ExternalLink(str(other), "/")
    file["images"] = h5py.SoftLink("/elsewhere/x")


def virtual(file: h5py.File) -> None:
    other = hdf5(Path(file.filename).with_name("other.h5"), lambda each: each.create_dataset("x", data=rows()))
    layout = h5py.VirtualLayout((N, 16, 16), "u1")
    layout[:] = h5py.VirtualSource(str(other), "x", (N, 16, 16))
    file.create_virtual_dataset("images", layout)


def a_tebibyte(file: h5py.File) -> None:
    file.create_dataset("images", (N, 1 << 19, 1 << 19), "u1", chunks=(1, 1024, 1024), compression="gzip")


def a_tebibyte_unchunked(file: h5py.File) -> None:
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
    space = h5py.h5s.create_simple((N, 1 << 19, 1 << 19))
    h5py.h5d.create(file.id, b"images", h5py.h5t.NATIVE_UINT8, space, made)


def unwritten_chunks(file: h5py.File) -> None:
    file.create_dataset("images", (N, 2048, 2048), "u1", chunks=(1, 512, 512), compression="gzip")


def one_huge_chunk(file: h5py.File) -> None:
    file.create_dataset("images", (N, 1 << 13, 1 << 13), "u1", chunks=(N, 1 << 13, 1 << 13), compression="gzip")


def a_chunk_that_unpacks_to_more(file: h5py.File) -> None:
    made = file.create_dataset("images", (N, 16, 16), "u1", chunks=(N, 16, 16), compression="gzip")
    made.id.write_direct_chunk((0, 0, 0), zlib.compress(bytes(1 << 26), 9))


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (external, "made of other files"),
        (external_link, "a link to another place"),
        (soft_link_to_an_external_group, "a link to another place"),
        (virtual, "made of other files"),
        (a_tebibyte, "expected images of 1 to 100000000 pixels, found 524288 x 524288"),
        (a_tebibyte_unchunked, "expected images of 1 to 100000000 pixels, found 524288 x 524288"),
        (unwritten_chunks, "expected 64 stored chunks of images, found 0"),
        (one_huge_chunk, "expected chunks of at most"),
        (a_chunk_that_unpacks_to_more, "unpacks to more than its 1024 bytes"),
        (lambda file: file.create_dataset("images", (N, 16, 16), "u1", chunks=(1, 16, 16), scaleoffset=3),
         "found the HDF5 filters"),
    ],
)  # fmt: skip
def test_hdf5_images_of_other_files_or_without_bytes_are_refused(
    tmp_path: Path, write: Callable[[h5py.File], object], reason: str
) -> None:
    path = hdf5(tmp_path / "images.hdf5", write)
    with pytest.raises(DataError, match=reason):
        hdf5_images(path, n=N, channels=1, size=8)


def test_many_pixels_need_many_bytes_in_hdf5(tmp_path: Path) -> None:
    """Each image is of a usual size, and their number is not: a gibibyte in a file of some thousand bytes."""
    n = 4096

    def write(file: h5py.File) -> None:
        file.create_dataset("images", (n, 512, 512), "u1", chunks=(64, 512, 512), compression="gzip")

    path = hdf5(tmp_path / "images.hdf5", write)
    with pytest.raises(DataError, match=f"declares {n * 512 * 512} bytes, expected at most"):
        hdf5_images(path, n=n, channels=1, size=8)


@pytest.mark.parametrize(
    "how",
    [{}, {"chunks": (1, 16, 16)}, {"chunks": (3, 8, 16), "compression": "gzip", "shuffle": True, "fletcher32": True}],
)
def test_honest_hdf5_files_are_read_as_ever(tmp_path: Path, how: dict[str, object]) -> None:
    path = hdf5(tmp_path / "images.hdf5", lambda file: file.create_dataset("images", data=rows(), **how))
    stored = hdf5_images(path, n=N, channels=1, size=None)
    np.testing.assert_array_equal(stored.images[:, 0], rows())


# Images


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(path: Path, width: int, height: int, depth: int = 8, content: bytes = b"") -> Path:
    head = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", content or zlib.compress(bytes(100))), chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    return path


def tiff(path: Path, entries: dict[int, tuple[int, int]], after: bytes = b"", next_at: int = 0) -> Path:
    body = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, (kind, value) in sorted(entries.items()))
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, len(entries)) + body + struct.pack("<I", next_at) + after)
    return path


def strip(width: int, height: int, at: int, count: int, **more: int) -> dict[int, tuple[int, int]]:
    return {256: (4, width), 257: (4, height), 258: (3, 8), 259: (3, more.get("packing", 1)), 262: (3, 1), 273: (4, at),
            277: (3, 1), 278: (4, height), 279: (4, count)}  # fmt: skip


def webp(path: Path) -> Path:
    Image.new("L", (10_000, 10_000)).save(path, lossless=True)
    return path


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: png(path, 9_999, 9_999), "declares 99980001 bytes, expected at most 16777216"),
        (lambda path: png(path, 2**31 - 1, 2**31 - 1), "more than 100000000 pixels"),
        (lambda path: png(path, 9_999, 9_999, depth=1), "declares 99980001 bytes"),
        (lambda path: tiff(path, strip(9_999, 9_999, 200, 64), bytes(200)), "declares 99980001 bytes"),
        (lambda path: tiff(path, strip(64, 64, 1 << 30, 4096), bytes(200)), "."),
        (lambda path: tiff(path, strip(64, 64, 200, 1 << 31), bytes(200)), "."),
    ],
)
def test_images_larger_than_their_files_are_refused(tmp_path: Path, make: Callable[[Path], Path], reason: str) -> None:
    refused(make(tmp_path / "image.any"), reason)


def test_pages_that_go_in_circles_end(tmp_path: Path) -> None:
    path = tiff(tmp_path / "image.tiff", strip(8, 8, 8, 64), bytes(200), next_at=8)
    assert decode(path, READING).pixels.shape == (1, 8, 8)


def test_a_lossless_webp_of_one_colour_is_no_reason_for_400_megabytes(tmp_path: Path) -> None:
    assert "declares 100000000 bytes" in refused(webp(tmp_path / "blank.webp"), "declares")


def test_a_blank_radiograph_is_read(tmp_path: Path) -> None:
    Image.new("L", (4000, 4000)).save(tmp_path / "blank.png")
    assert decode(tmp_path / "blank.png", READING).pixels.max() == 0


# DICOM


def dicom(path: Path, syntax: str, pixels: bytes, **elements: object) -> Path:
    from pydicom.dataset import FileDataset, FileMetaDataset

    meta = FileMetaDataset()
    meta.TransferSyntaxUID = syntax
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = "1.2.840.10008.5.1.4.1.1.1.1", "1.2.3"
    file = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    file.SOPClassUID, file.SOPInstanceUID = meta.MediaStorageSOPClassUID, "1.2.3"
    usual = {"Rows": 16, "Columns": 16, "SamplesPerPixel": 1, "PhotometricInterpretation": "MONOCHROME2",
             "BitsAllocated": 8, "BitsStored": 8, "HighBit": 7, "PixelRepresentation": 0}  # fmt: skip
    for name, value in {**usual, **elements}.items():
        setattr(file, name, value)
    if pixels:
        file.PixelData = pixels
        file["PixelData"].VR = "OB"
        file["PixelData"].is_undefined_length = syntax not in (EXPLICIT, DEFLATED)
    file.save_as(path, enforce_file_format=True)
    return path


EXPLICIT, DEFLATED, JPEG, JPEG_2000 = (f"1.2.840.10008.1.2.{end}" for end in ("1", "1.99", "4.50", "4.90"))


def packed(kind: str, side: int) -> bytes:
    from pydicom.encaps import encapsulate

    file = io.BytesIO()
    Image.fromarray(np.full((side, side), 9, np.uint8)).save(file, kind)
    return bytes(encapsulate([file.getvalue()]))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ((EXPLICIT, bytes(256), {"Rows": 9_000, "Columns": 9_000}), "declares 81000000 bytes, expected at most 256"),
        ((EXPLICIT, bytes(256), {"BitsAllocated": 16, "BitsStored": 16, "HighBit": 15}), "declares 512 bytes"),
        ((EXPLICIT, bytes(256), {"NumberOfFrames": 1 << 30}), "1073741824 frames in one file"),
        ((EXPLICIT, b"", {"PixelDataProviderURL": "file:///etc/passwd"}), "no pixels in the file itself"),
        ((DEFLATED, bytes(256), {"ImageComments": "a" * (1 << 26)}), "DICOM: unpacks to more than 16777216 bytes"),
        ((JPEG, packed("JPEG", 2048), {}), r"rows and columns are \(16, 16\), and \(2048, 2048\) in the packed pixels"),
        ((JPEG_2000, packed("JPEG2000", 2048), {}), r"and \(2048, 2048\) in the packed pixels"),
        ((JPEG, packed("JPEG", 16), {"Rows": 9_000, "Columns": 9_000}), "declares 81000000 bytes, expected at most"),
    ],
)  # fmt: skip
def test_dicom_files_hold_the_pixels_that_they_declare(
    tmp_path: Path, made: tuple[str, bytes, dict[str, object]], reason: str
) -> None:
    syntax, pixels, elements = made
    refused(dicom(tmp_path / "image.dcm", syntax, pixels, **elements), reason)


@pytest.mark.parametrize(
    ("syntax", "pixels"),
    [(EXPLICIT, bytes(256)), (DEFLATED, bytes(256)), (JPEG, packed("JPEG", 16)), (JPEG_2000, packed("JPEG2000", 16))],
)
def test_honest_dicom_files_are_read_as_ever(tmp_path: Path, syntax: str, pixels: bytes) -> None:
    assert decode(dicom(tmp_path / "image.dcm", syntax, pixels), READING).pixels.shape == (1, 8, 8)


# Tables, weights and archives


def test_a_short_gzip_file_does_not_unpack_to_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"name,mark\n")
        for _ in range(64):
            file.write(b"a" * (1 << 20))  # a line without an end
    with pytest.raises(DataError, match=r"table.csv.gz: unpacks to more than \d+ bytes, from the \d+ that it holds"):
        read_table(path, ["name", "mark"])


def test_a_long_honest_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    lines = "".join(f"images/{row:06d}.png,{row % 2}\n" for row in range(200_000))
    path.write_bytes(gzip.compress(f"name,mark\n{lines}".encode(), mtime=0))
    assert len(read_table(path, ["name", "mark"])) == 200_000


def member(content: bytes, packing: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipFile:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        archive.writestr("a.npy", content)
    return zipfile.ZipFile(file)


def npy(shape: tuple[int, ...], content: bytes) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return file.getvalue() + content


@pytest.mark.parametrize(
    ("packing", "reason"), [(zipfile.ZIP_LZMA, "packed by method 14"), (zipfile.ZIP_BZIP2, "packed by method 12")]
)
def test_archives_are_packed_by_deflate_or_not_at_all(packing: int, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_member(member(npy((4,), bytes(4)), packing), "a.npy")


def test_a_member_that_says_that_it_is_large_is_not_believed() -> None:
    archive = member(npy((1 << 36,), bytes(64)))
    info = archive.getinfo("a.npy")
    info.file_size = 128 + (1 << 36)
    with pytest.raises(DataError, match=r"a.npy declares .* bytes, expected at most"):
        read_member(archive, "a.npy")


def test_a_member_is_read() -> None:
    array = rows()
    np.testing.assert_array_equal(read_member(member(npy(array.shape, array.tobytes())), "a.npy"), array)


def safetensors(path: Path, header: str, content: bytes) -> Path:
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + content)
    return path


@pytest.mark.parametrize(
    "header",
    [
        '{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}',
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}',
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}',
        '{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}',
        '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}',
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}' + "[" * 100_000,
    ],
)
def test_tensors_lie_in_their_file_without_gaps_or_overlaps(tmp_path: Path, header: str) -> None:
    with pytest.raises(DataError, match="unreadable or cut short"):
        read_checkpoint(safetensors(tmp_path / "weights.safetensors", header, bytes(16)))


def test_a_checkpoint_whose_storage_is_short_is_refused(tmp_path: Path) -> None:
    """The pickle says that a storage holds 2^38 numbers, and the record beside it holds four."""
    path, forged = tmp_path / "weights.pt", tmp_path / "forged.pt"
    torch.save({"a": torch.zeros(4)}, path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(forged, "w", zipfile.ZIP_STORED) as copy:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith("data.pkl"):
                content = content.replace(b"K\x04t", b"\x8a\x06" + (1 << 38).to_bytes(6, "little") + b"t")
                assert content != archive.read(name)
            copy.writestr(name, content)
    with pytest.raises(DataError):
        read_checkpoint(forged)


def test_what_is_packed_may_be_larger_by_its_ratio_and_nothing_beyond_the_limit() -> None:
    check_declared(declared_size.FREE, held=1, noun="it")
    check_declared(1100 << 20, held=1 << 20, noun="it")
    for more in ({"ratio": 1}, {"most": 1000}):
        with pytest.raises(DataError, match=r"^it declares 1001 bytes, expected at most 1000"):
            check_declared(1001, held=1000, noun="it", **more)
