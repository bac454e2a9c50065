"""Published rows on disk: a compressed file a row, with its pictures.

    rows/DATASET/CELL.json.xz    JSON objects, one after another: where the row comes from, then its records by name
    rows/DATASET/PICTURE.png     named by the first 12 hex digits of its SHA-256

Records are kept byte for byte; `xz -dc CELL.json.xz | jq` prints them.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import Field, JsonValue, ValidationError

from bench.disk.atomic_file import read_plain, write_atomically
from bench.plugins.spec import UsageError
from bench.results import signed_json
from bench.results.record_parts import Part
from bench.results.records import RecordError
from bench.results.results import ReadOnce
from bench.results.signed_json import AlteredError

ROWS, ENDING = "rows", ".json.xz"
KIND = "published row"
MOST_PACKED, MOST_BYTES, MOST_MEMORY = 16 << 20, 64 << 20, 32 << 20
FILTERS = ({"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 8 << 20},)
END = b"\n}\n"
"""The last line of a JSON object as `bench.results.signed_json` writes it; inside an object no line is so short."""


class PackedRowError(RecordError):
    """A file is not a published row; the text names no path."""


class Digests(Part):
    """SHA-256 of a record, its evidence (not published) and its pictures."""

    digest: str
    evidence: str | None = None
    pictures: dict[str, str] = Field(default_factory=dict)


class Origin(Part):
    """The origin of a row: command, commits, machines, digests of its records.

    Args:
        cell: The row's cell, as in its records.
        command: Repeats the row.
        commits: Of the code that computed it.
        machines: What the records say of the hardware.
        records: By evaluator.
    """

    schema_: Literal[1] = Field(default=1, alias="schema")
    cell: str
    command: str
    commits: tuple[str, ...]
    machines: tuple[dict[str, JsonValue], ...]
    records: dict[str, Digests] = Field(min_length=1)


@dataclass(frozen=True)
class PackedRow:
    """A published row.

    Args:
        origin: Where it comes from.
        records: The bytes of each record's file, by evaluator.
        pictures: PNG files as they are there, by evaluator and name; one that is missing is left out.
    """

    origin: Origin
    records: Mapping[str, bytes]
    pictures: Mapping[tuple[str, str], bytes]


def row_file(folder: Path, cell: str) -> Path:
    """The file of a row."""
    return folder / ROWS / f"{cell}{ENDING}"


def row_files(folder: Path, dataset: str = "*") -> list[Path]:
    """The files of all rows, or of one data set's, in order."""
    return sorted(folder.glob(f"{ROWS}/{dataset}/*{ENDING}"))


def cell_of(path: Path) -> str:
    """The cell of a row's file."""
    return f"{path.parent.name}/{path.name.removesuffix(ENDING)}"


def read_row(path: Path) -> PackedRow:
    """The row in a file; only its origin's digest is checked.

    Raises:
        PackedRowError: It is not a published row.
    """
    origin, *records = _objects(_unpacked(path))
    try:
        provenance = Origin.model_validate(signed_json.read(origin, f"{KIND} {cell_of(path)}"))
    except AlteredError as error:
        raise PackedRowError(str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise PackedRowError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if len(records) != len(provenance.records):
        raise PackedRowError(f"expected {len(provenance.records)} records, got {len(records)}")
    pictures = {}
    for evaluator, digests in provenance.records.items():
        for name, digest in digests.pictures.items():
            with suppress(OSError):
                pictures[evaluator, name] = read_plain(_picture_file(path, digest))
    return PackedRow(provenance, dict(zip(sorted(provenance.records), records, strict=True)), pictures)


def write_row(folder: Path, row: PackedRow) -> bool:
    """Write a row and its pictures; remove pictures that no row names.

    Returns:
        True if the row's file changed; a file with the same content stays as it is.
    """
    path = row_file(folder, row.origin.cell)
    origin = row.origin.model_dump(mode="json", by_alias=True)
    texts = [row.records[name] for name in sorted(row.records)]
    content = b"".join([signed_json.written(signed_json.attest(origin, f"{KIND} {row.origin.cell}")), *texts])
    if len(_objects(content)) != 1 + len(row.origin.records):
        raise ValueError(f"{row.origin.cell}: a record must be one JSON object that ends with a line of its own")
    for png in row.pictures.values():
        picture = _picture_file(path, sha256(png).hexdigest())
        if not picture.exists() or picture.read_bytes() != png:
            write_atomically(picture, png)
    with suppress(PackedRowError):
        if _unpacked(path) == content:
            return False
    write_atomically(path, lzma.compress(content, lzma.FORMAT_XZ, lzma.CHECK_CRC64, filters=FILTERS))
    for picture in unnamed_pictures(folder, path.parent.name):
        picture.unlink()
    return True


def unnamed_pictures(folder: Path, dataset: str = "*", origins: Mapping[Path, Origin] | None = None) -> list[Path]:
    """Pictures that no row names, except beside a row that is unreadable.

    `origins` are those of the folder's rows, if they were read.
    """
    if origins is None:
        origins = {}
        for path in row_files(folder, dataset):
            with suppress(PackedRowError):
                origins[path] = read_row(path).origin
    pictures_of_rows: dict[Path, set[Path]] = {}
    unread: set[Path] = set()
    for path in row_files(folder, dataset):
        if path not in origins:
            unread.add(path.parent)
            continue
        records = origins[path].records.values()
        pictures_of_rows.setdefault(path.parent, set()).update(
            _picture_file(path, digest) for record in records for digest in record.pictures.values()
        )
    pictures = sorted(folder.glob(f"{ROWS}/{dataset}/*.png"))
    return [
        path for path in pictures if path.parent not in unread and path not in pictures_of_rows.get(path.parent, ())
    ]


@dataclass(frozen=True)
class PublishedRows(ReadOnce):
    """The published rows, with origins by file of readable ones."""

    origins: Mapping[Path, Origin] = field(default_factory=dict)


def published_results(folder: Path, trusted: frozenset[str] | None = None) -> PublishedRows:
    """The published rows, readable like a results folder.

    A row that cannot be read is listed among the records by the name of its file, and refused with its reason.

    Args:
        folder: The folder with `rows/`.
        trusted: As in `Results`.
    """
    files: dict[str, bytes] = {}
    faults: dict[str, str] = {}
    origins: dict[Path, Origin] = {}
    for path in row_files(folder):
        cell = f"cells/{cell_of(path)}"
        try:
            row = read_row(path)
        except PackedRowError as error:
            faults[path.relative_to(folder).as_posix()] = str(error)
            continue
        origins[path] = row.origin
        files |= {f"{cell}/{evaluator}.json": text for evaluator, text in row.records.items()}
        files |= {
            f"{cell}/{evaluator}--{name}-{row.origin.records[evaluator].pictures[name][:12]}.png": png
            for (evaluator, name), png in row.pictures.items()
        }
    return PublishedRows(folder, _Storage(files, faults), trusted, origins=origins)


def _unpacked(path: Path) -> bytes:
    """The content of a compressed file, bounded in size and memory."""
    try:
        packed = read_plain(path, MOST_PACKED)
    except OSError as error:
        raise PackedRowError(f"it cannot be read: {error.strerror}") from error
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    try:
        content = reader.decompress(packed, MOST_BYTES + 1)
    except lzma.LZMAError as error:
        raise PackedRowError(f"it cannot be unpacked: {error}") from error
    if len(content) > MOST_BYTES:
        raise PackedRowError(f"unpacked it takes more than {MOST_BYTES} bytes")
    if not reader.eof or reader.unused_data:
        raise PackedRowError(f"it {'goes on after its end' if reader.eof else 'is cut off'}")
    return content


def _objects(content: bytes) -> Sequence[bytes]:
    """The JSON objects in a row's content, verbatim."""
    *objects, rest = content.split(END)
    if rest or not objects:
        raise PackedRowError("it does not hold JSON objects, one after another, each with a last line of its own")
    return [text + END for text in objects]


def _picture_file(path: Path, digest: str) -> Path:
    """A picture of the row at `path`; a malformed digest leads nowhere."""
    return path.with_name(f"{digest[:12] if digest.isalnum() else 'none'}.png")


@dataclass(frozen=True)
class _Storage:
    """Published rows in memory: they are read, and written by `write_row` alone.

    Args:
        files: By the names of a results folder.
        faults: Rows that cannot be read, by file, and why.
    """

    files: Mapping[str, bytes]
    faults: Mapping[str, str]

    def read(self, name: str) -> bytes:
        """As in `Storage`."""
        if name in self.faults:
            raise PackedRowError(f"{name}: {self.faults[name]}")
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    def write(self, name: str, content: bytes, still: Callable[[], bool] = lambda: True) -> bool:
        """Refuse."""
        raise UsageError(f"{name}: published rows are only read: name a folder of your own with --results")

    def write_once(self, name: str, content: bytes) -> bool:
        """Refuse."""
        return self.write(name, content)

    def holds(self, name: str) -> bool:
        """As in `Storage`."""
        return name in self.files

    def remove(self, name: str) -> None:
        """Refuse."""
        self.write(name, b"")

    def names(self, pattern: str) -> Iterator[str]:
        """As in `Storage`; unreadable rows are listed among the records."""
        depth = pattern.count("/")
        faults = self.faults if pattern.endswith(".json") else ()
        matching = (n for n in self.files if n.count("/") == depth and PurePosixPath(n).match(pattern))
        yield from sorted([*matching, *faults], key=lambda name: name.split("/"))
