"""Speed of methods, in one table a device and form of data.

A rate is compared with the forward pass of a ResNet-18 that the same record timed on the same images and device. Rates
of two devices never stand in one table, so that none is ranked against the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from pydantic import JsonValue

from bench.results.records import Record
from leaderboard.board import THROUGHPUT, YARDSTICK, positive, relative_speed
from leaderboard.edition import Edition
from leaderboard.row_schema import BoardRow, Figure

BY_ROWS, WITHOUT = "images_per_second_by_rows", "no_rate_by_rows"


@dataclass(frozen=True)
class Speed:
    """The speed of one row.

    Args:
        row: Of the board.
        figure: Images a second of the private rows, with the middle half of the repeats.
        ratio: `figure` over the ResNet-18's rate; None without images that the network takes.
        by_rows: Images a second by images in a release; empty on a CPU.
        without: The reason of each such size without a rate.
        joules: Energy an image; None if unknown.
        rank: The lowest and highest place in its table, rates whose intervals overlap being equal; None for references,
            and for rows that only their author measured.
    """

    row: BoardRow
    figure: Figure
    ratio: float | None
    by_rows: Mapping[int, float]
    without: Mapping[int, str]
    joules: float | None
    rank: tuple[int, int] | None = None


@dataclass(frozen=True)
class SpeedTable:
    """Speeds on one device, on data of one form, fastest first.

    Args:
        device: Accelerator or processor, with what else decides the rate.
        settings: Driver, power limit and highest clock, in words; empty if unknown.
        data, shape, images: The data set, the shape of an image, and how many a release holds.
        yardstick: Median rate of a ResNet-18; None if no record has one.
        transfers: Median seconds of the images' way to the device and back; None on a CPU.
        sizes: The images in a release for which some row has a rate.
    """

    device: str
    settings: str
    data: str
    shape: str
    images: int
    speeds: tuple[Speed, ...]
    yardstick: float | None
    transfers: tuple[float, float] | None
    sizes: tuple[int, ...]


def speed_tables(edition: Edition) -> list[SpeedTable]:
    """Every table of a board: accelerators first, then larger tables first."""
    groups: dict[tuple[str, str, str, str, int], list[tuple[Speed, Record]]] = {}
    for row in edition.lines:
        figure = row.figures.get(THROUGHPUT)
        record = next((one for one in edition.row_of(row).records if one.evaluator == THROUGHPUT), None)
        if figure is None or figure.value is None or record is None or record.dataset is None:
            continue
        shape = " × ".join(map(str, record.dataset.shape))
        key = (_device(record), _settings(record), row.data, shape, record.dataset.rows.get("private", 0))
        groups.setdefault(key, []).append((_speed(row, figure, record), record))
    tables = [_table(*key, some) for key, some in groups.items()]
    return sorted(tables, key=lambda one: (not one.sizes, -len(one.speeds), one.device, one.data, one.shape))


def _table(
    device: str, settings: str, data: str, shape: str, images: int, some: list[tuple[Speed, Record]]
) -> SpeedTable:
    records = [record for _, record in some]
    contenders = [speed.figure for speed, _ in some if _contends(speed.row)]
    ranked = [_ranked(speed, contenders) for speed, _ in some]
    ranked.sort(key=lambda speed: (-(speed.figure.value or 0.0), speed.row.method, speed.row.id))
    ways = [_median(records, name) for name in ("host_to_device_seconds", "device_to_host_seconds")]
    return SpeedTable(
        device, settings, data, shape, images, tuple(ranked), _median(records, YARDSTICK),
        (ways[0], ways[1]) if ways[0] is not None and ways[1] is not None else None,
        tuple(sorted({size for speed in ranked for size in speed.by_rows})),
    )  # fmt: skip


def _ranked(speed: Speed, others: Iterable[Figure]) -> Speed:
    """The speed with its places: those whose intervals lie above and below."""
    if not _contends(speed.row):
        return speed
    low, high = _ends(speed.figure)
    ends = [_ends(one) for one in others]
    first = 1 + sum(other_low > high for other_low, _ in ends)
    last = len(ends) - sum(other_high < low for _, other_high in ends)
    return replace(speed, rank=(first, last))


def _contends(row: BoardRow) -> bool:
    return row.trusted and not row.reference


def _ends(figure: Figure) -> tuple[float, float]:
    value = figure.value or 0.0
    return (value if figure.low is None else figure.low), (value if figure.high is None else figure.high)


def _speed(row: BoardRow, figure: Figure, record: Record) -> Speed:
    sized = {size: rate for size, each in _by_size(record, BY_ROWS) if (rate := positive(each)) is not None}
    without = {size: str(each) for size, each in _by_size(record, WITHOUT)}
    return Speed(row, figure, relative_speed(record), sized, without, positive(record.details.get("joules_per_image")))


def _by_size(record: Record, name: str) -> list[tuple[int, JsonValue]]:
    held = record.details.get(name)
    found = held if isinstance(held, dict) else {}
    return [(int(size), each) for size, each in found.items() if size.isascii() and size.isdecimal() and len(size) < 10]


def _device(record: Record) -> str:
    hardware = record.hardware
    if record.device == "cuda":
        return str(hardware.get("accelerator") or "CUDA device of unknown name")
    threads = hardware.get("threads")
    name = str(hardware.get("processor") or "processor of unknown name")
    return f"{name}, {threads} {'thread' if threads == 1 else 'threads'}" if threads else name


def _settings(record: Record) -> str:
    """Settings of a card; a processor's are unknown."""
    words = (("driver", "Driver {}"), ("power_limit_w", "power limit {} W"), ("highest_clock_mhz", "at most {} MHz"))
    told = [form.format(record.hardware[name]) for name, form in words if record.hardware.get(name)]
    torch = record.versions.get("torch")
    return ", ".join([*told, f"torch {torch}"] if told and torch else told)


def _median(records: Iterable[Record], name: str) -> float | None:
    known = [value for one in records if (value := positive(one.details.get(name))) is not None]
    return median(known) if known else None
