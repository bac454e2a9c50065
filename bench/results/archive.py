"""A zip file from a stranger: read without unpacking it, so that nothing in it chooses where or how much is written.

Written, it is the same bytes for the same content: names in order, no times, no rights.
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from bench.results.atomic_file import write_atomically

PART = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}"
NAME = re.compile(rf"{PART}(/{PART}){{0,3}}")
"""What a file within may be called: nothing that leads out of a folder, and nothing hidden."""
MOST_FILES = 20_000
MOST_FILE = 64 * 2**20
MOST_TOTAL = 1 << 30
END, MOST_COMMENT = struct.Struct("<4s4H2LH"), 0xFFFF
LONGER, LONGER_SIZE = b"PK\x06\x07", 20
"""What stands before the end where a longer list is elsewhere."""
MOST_ENTRY = 46 + 4 * 201
"""Of the list of files: what is said of one, and its name."""
LEVEL = 6
WRITTEN = (1980, 1, 1, 0, 0, 0)  # the earliest time that the format knows


class ArchiveError(Exception):
    """The file is no archive that is safe to read; the text says why, and names no path of this machine."""


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """Put files into a zip file, in one step. Raises ValueError for what `read_archive` would refuse."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name in sorted(files):
            if NAME.fullmatch(name) is None or len(files[name]) > MOST_FILE:
                raise ValueError(
                    f"{name!r:.80} cannot be packed: its name or its {len(files[name])} bytes are too much"
                )
            info = zipfile.ZipInfo(name, WRITTEN)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, files[name], compresslevel=LEVEL)
    write_atomically(path, packed.getvalue())


def read_archive(content: bytes) -> dict[str, bytes]:
    """The files in a zip file, by name.

    Raises:
        ArchiveError: It is no zip file; or it holds a link, a folder, an encrypted file, a name twice or one that leads
            elsewhere, more files or bytes than a bundle has, or other bytes than it says.
    """
    _check_end(content)
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            infos = archive.infolist()
            _check(infos)
            return {info.filename: _read(archive, info) for info in infos}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise ArchiveError(f"it is no zip file that can be read: {type(error).__name__}") from error


def _check_end(content: bytes) -> None:
    """Look at the end before anything is made of it: a list of a billion files is read whole by whoever opens it."""
    start = content.rfind(b"PK\x05\x06", max(0, len(content) - END.size - MOST_COMMENT))
    if start < 0 or len(content) - start < END.size:
        raise ArchiveError("it is no zip file")
    count, size = END.unpack_from(content, start)[4:6]
    # 65,535 stands for a longer number elsewhere, and whoever opens it goes by the bytes of the list, not by the count.
    if count > MOST_FILES or size > MOST_FILES * MOST_ENTRY or LONGER in content[max(0, start - LONGER_SIZE) : start]:
        raise ArchiveError(f"it holds more than {MOST_FILES} files")


def _check(infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > MOST_FILES:
        raise ArchiveError(f"it holds more than {MOST_FILES} files")
    seen: set[str] = set()
    for info in infos:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        if NAME.fullmatch(name) is None or name != info.orig_filename:
            raise ArchiveError(f"it holds a name that no bundle has: {info.orig_filename[:80]!a}")
        if kind not in (0, stat.S_IFREG):
            raise ArchiveError(f"{name} is a link, a folder or a device")
        if info.flag_bits & 1:
            raise ArchiveError(f"{name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError(f"{name} is packed in a way that no bundle is")
        if name.lower() in seen:
            raise ArchiveError(f"{name} is there twice")
        seen.add(name.lower())
        if info.file_size > MOST_FILE:
            raise ArchiveError(f"{name} says that it takes {info.file_size} bytes, and at most {MOST_FILE} may be")
    if (total := sum(info.file_size for info in infos)) > MOST_TOTAL:
        raise ArchiveError(f"its files say that they take {total} bytes, and at most {MOST_TOTAL} may be")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        content = file.read(info.file_size + 1)  # never more, whatever unfolds
    if len(content) != info.file_size:
        raise ArchiveError(f"{info.filename} takes other than the {info.file_size} bytes that it says")
    return content
