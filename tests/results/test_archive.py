"""A zip file from a stranger writes nothing, fills no memory and smuggles nothing in."""

from __future__ import annotations

import contextlib
import io
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.results import bundle
from bench.results.bundle import ArchiveError, Bundle, BundleError, pack, read_archive, write_archive
from bench.results.signing_key import make_pair

FILES = {"a.json": b"{}\n", "cells/d/c/x.json": b"text" * 1000}


def zipped(put: Callable[[zipfile.ZipFile], object]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile's own, of a name that is there twice
        put(file)
    return made.getvalue()


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr, info.create_system = mode << 16, 3
    return info


def test_what_is_packed_comes_back_and_packs_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        write_archive(tmp_path / name, dict(reversed(FILES.items())) if name == "two.zip" else FILES)
    first, second = ((tmp_path / name).read_bytes() for name in ("one.zip", "two.zip"))
    assert first == second
    assert read_archive(first) == FILES


@pytest.mark.parametrize(
    "name",
    ["../a.json", "/etc/passwd", "a/../../b", "cells/..", "C:\\a", "a\\..\\b", ".hidden", "a//b", "a/", "é",
     "a/b/c/d/e", "x" * 300, ""],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(ArchiveError):
        read_archive(zipped(lambda file: file.writestr(entry(name), b"x")))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_links_folders_and_devices_are_refused(kind: int) -> None:
    with pytest.raises(ArchiveError, match="a link, a folder or a device"):
        read_archive(zipped(lambda file: file.writestr(entry("a.json", kind | 0o777), b"/etc/passwd")))


@pytest.mark.parametrize("other", ["a.json", "A.json"])
def test_a_name_that_is_there_twice_is_refused(other: str) -> None:
    def put(file: zipfile.ZipFile) -> None:
        file.writestr(entry("a.json"), b"1")
        file.writestr(entry(other), b"2")

    with pytest.raises(ArchiveError, match="twice"):
        read_archive(zipped(put))


def test_a_bomb_is_refused_before_it_unfolds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MOST_FILE", 1000)
    with pytest.raises(ArchiveError, match="at most 1000 may be"):
        read_archive(zipped(lambda file: file.writestr(entry("a.json"), bytes(10**6))))
    monkeypatch.setattr(bundle, "MOST_FILE", 10**6)
    monkeypatch.setattr(bundle, "MOST_TOTAL", 10**6)
    with pytest.raises(ArchiveError, match="its files say"):
        read_archive(zipped(lambda file: [file.writestr(entry(f"{n}.json"), bytes(10**5)) for n in range(11)]))


def test_a_bomb_that_lies_about_its_size_unfolds_no_further_than_it_says() -> None:
    content = bytearray(zipped(lambda file: file.writestr(entry("a.json"), bytes(10**6))))
    for start in (22, content.rindex(b"PK\x01\x02") + 24):  # the size, in the local and in the central header
        content[start : start + 4] = struct.pack("<L", 10)
    with pytest.raises(ArchiveError):
        read_archive(bytes(content))


def test_more_files_than_a_bundle_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = zipped(lambda file: [file.writestr(entry(f"{n}.json"), b"") for n in range(6)])
    monkeypatch.setattr(bundle, "MOST_FILES", 5)
    with pytest.raises(ArchiveError, match="more than 5 files"):
        read_archive(content)


def test_other_packings_and_encrypted_files_are_refused() -> None:
    def squeezed(file: zipfile.ZipFile) -> None:
        file.writestr(entry("a.json"), b"1" * 100, compress_type=zipfile.ZIP_BZIP2)

    with pytest.raises(ArchiveError, match="packed in a way"):
        read_archive(zipped(squeezed))
    content = bytearray(zipped(lambda file: file.writestr(entry("a.json"), b"1")))
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ArchiveError, match="encrypted"):
        read_archive(bytes(content))


@pytest.mark.parametrize("content", [b"", b"PK", b"x" * 1000, b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_zip_file_is_refused(content: bytes) -> None:
    with pytest.raises(ArchiveError):
        read_archive(content)


def test_cut_and_flipped_bytes_are_refused_or_read_as_they_were() -> None:
    whole = zipped(lambda file: [file.writestr(entry(name), text) for name, text in FILES.items()])
    for place in range(0, len(whole), 3):
        for content in (whole[:place], whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :]):
            with contextlib.suppress(ArchiveError):
                assert set(read_archive(content).values()) <= {*FILES.values()}


def test_a_bundle_holds_what_its_manifest_says_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    pack(path, {"cells/d/c/x.json": b"1"}, "veil-bench", None)
    packed = read_archive(path.read_bytes())
    assert dict(Bundle.open(path).files) == {"cells/d/c/x.json": b"1"}
    for changed, said in (
        ({**packed, "cells/d/c/x.json": b"2"}, "was altered since it was packed"),
        ({**packed, "cells/d/c/y.json": b"1"}, "its manifest and its files differ"),
        ({name: text for name, text in packed.items() if name.endswith("t.json")}, "its manifest and its files differ"),
        ({"cells/d/c/x.json": b"1"}, "it is no bundle"),
    ):
        write_archive(path, changed)
        with pytest.raises(BundleError, match=said):
            Bundle.open(path)
    pack(path, {"setup.py": b"1"}, "veil-bench", None)
    with pytest.raises(BundleError, match="nothing that belongs into a bundle"):
        Bundle.open(path)


def test_a_signature_covers_every_file(tmp_path: Path) -> None:
    path, (key, _) = tmp_path / "a.zip", make_pair(tmp_path / "key")
    pack(path, {"cells/d/c/x.json": b"1"}, "veil-bench", key)
    assert Bundle.open(path).signer == key.public
    signed = read_archive(path.read_bytes())
    pack(path, {"cells/d/c/x.json": b"2"}, "veil-bench", None)
    assert Bundle.open(path).signer is None
    write_archive(path, {**signed, "cells/d/c/x.json": b"2"})
    with pytest.raises(BundleError, match="altered"):
        Bundle.open(path)


@pytest.mark.parametrize("before", [b"", b"PK\x06\x07" + bytes(16)])
def test_a_long_list_that_says_it_is_short_is_refused_before_it_is_read(before: bytes) -> None:
    entries = b"" if before else bytes(bundle.MOST_FILES * bundle.MOST_ENTRY + 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entries), 0, 0)
    with pytest.raises(ArchiveError, match="more than 20000 files"):
        read_archive(entries + before + end)


def moved(content: bytes, by: int) -> bytes:
    """A zip file whose places are all counted from `by` bytes further on, as after a longer beginning."""
    start = content.rfind(b"PK\x05\x06")
    end = list(bundle.END.unpack_from(content, start))
    (first, count), size = (end[6], end[4]), end[5]
    end[6] += by
    table = bytearray(content[first : first + size])
    place = 0
    for _ in range(count):
        offset, lengths = struct.unpack_from("<I", table, place + 42)[0], struct.unpack_from("<3H", table, place + 28)
        struct.pack_into("<I", table, place + 42, offset + by)
        place += 46 + sum(lengths)
    return content[:first] + bytes(table) + bundle.END.pack(*end)


def test_bytes_before_and_after_the_files_are_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.zip", FILES)
    whole = (tmp_path / "a.zip").read_bytes()
    more = b"#!/bin/sh\n"
    start = whole.rfind(b"PK\x05\x06")
    remark = bytearray(whole + more)
    struct.pack_into("<H", remark, start + 20, len(more))
    for content in (more + whole, more + moved(whole, len(more)), whole + more, bytes(remark)):
        with pytest.raises(ArchiveError, match="it holds bytes"):
            read_archive(content)
    extra = zipfile.ZipInfo("a.json")
    extra.extra = b"\xfe\xca\x04\x00more"
    with pytest.raises(ArchiveError, match="more than a bundle writes"):
        read_archive(zipped(lambda file: file.writestr(extra, b"{}")))
