"""What a results folder holds for the pages: the accepted records with their pictures, and what was refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.results.records import Record, RecordError
from bench.results.results import Results


@dataclass(frozen=True)
class Intake:
    """What a results folder held.

    Args:
        records: The accepted ones.
        folders: Cell to data-set name.
        limited: How many records were made with --limit.
        broken: The names of files that are refused: no records, altered, forged, or not signed as they should be.
        pictures: PNG files beside records of data that may be shared, by cell, record and name.
    """

    records: tuple[Record, ...]
    folders: Mapping[str, str]
    limited: int
    broken: tuple[str, ...]
    pictures: Mapping[tuple[str, str, str], bytes] = field(default_factory=dict)


def intake(results: Results) -> Intake:
    """Read every record of `results`; refused files are named (never by folder), limited ones counted."""
    accepted, folders, limited, broken, pictures = [], {}, 0, [], {}
    for name, found in results.records():
        if not isinstance(found, Record):
            broken.append(name.rpartition("/")[2])
        elif found.limit is not None:
            limited += 1
        else:
            accepted.append(found)
            folders[found.cell] = found.cell.partition("/")[0]
            if found.dataset is not None and found.dataset.shareable:
                for picture in found.pictures:
                    try:
                        png = results.picture(found, picture)
                    except RecordError:
                        broken.append(f"{found.evaluator}--{picture}.png")
                        continue
                    if png is not None:
                        pictures[found.cell, found.evaluator, picture] = png
    return Intake(tuple(accepted), folders, limited, tuple(sorted(broken)), pictures)
