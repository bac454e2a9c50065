"""Whether a record may be published: what it must not hold, and what it must be.

A record that is altered never gets here (`bench.results.records`). Of data that may not be shared, figures alone are
published: no picture, and no word of a plug-in, for words have held paths and identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from bench.results.reason import SAID, UNSAID, withheld
from bench.results.records import Record, ScoreRecord, content_of
from leaderboard.currency import stale
from leaderboard.versions import versions_text

IMAGES, SIDE = 16, 64 + 2  # of a contact sheet; each image has a frame of a pixel
SHEET = IMAGES * SIDE * SIDE
PATHS = re.compile(
    r"(?:^|[\s'\"(=,;:<>\[])(?:file:/|~?/[\w.+@-]+/|[A-Za-z]:[\\/]|\\\\[\w.-]+\\)"  # of a folder, on any system
    r"|[\w.-]+\.(?:png|jpe?g|tiff?|bmp|dcm|dicom|nii|npz|npy|h5|safetensors|csv|pt|pth)\b"  # of a file
    r"|\b[\w.+-]+@[\w-]+\.[\w.-]+",  # of a person or a machine
    re.IGNORECASE,
)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
"""What terminals obey, and what turns the direction of reading."""


def unfit(record: Record, pictures: Mapping[str, bytes], *, current: bool = True) -> list[str]:
    """Why a record may not be published, in words; empty where it may.

    Args:
        record: As it was read.
        pictures: PNG files beside it, by name.
        current: Whether it must be of the code that is installed here.
    """
    found = []
    if record.limit is not None:
        found.append(f"limited: made with --limit {record.limit}")
    if record.dataset is None:
        return [*found, "its data were never opened"]
    if record.isolation == "none":
        found.append("method and attack worked in the judge's own process (isolation none)")
    plugins = (record.method.written, record.attack.written if record.attack else "", record.measured_by)
    if any(".py:" in written for written in (*plugins, *(metric.written for metric in record.metrics.values()))):
        found.append("a plug-in from a file, which nobody else has: make a package of it")
    if current and (changed := stale(record)):
        found.append(f"stale code: {', '.join(changed)} differ from what is installed")
    found += [f"{where} holds {said}" for where, said in _outspoken(content_of(record), "")]
    found += _picture_faults(record, pictures)
    if not record.dataset.shareable:
        found += [f"data that may not be shared: {said}" for said in _told(record)]
    return found


def mixed(records: Sequence[Record]) -> str:
    """Which versions the records of one row were made by, where they are not the same ones; empty where they are."""
    texts = sorted({versions_text(record) for record in records})
    return f"mixed versions: {' and '.join(texts)}" if len(texts) > 1 else ""


def _outspoken(value: JsonValue, where: str) -> Iterator[tuple[str, str]]:
    """Every text of a record that names a path, a file, an address, or holds what a terminal obeys; and where it is."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _outspoken(name, where or name)
            if name != "resampled":  # base64
                yield from _outspoken(part, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        for part in value:
            yield from _outspoken(part, where)
    elif isinstance(value, str):
        if (match := PATHS.search(value)) is not None:
            yield where, f"a path, a file's name or an address: {match.group().strip()!r:.60}"
        if CONTROL.search(value) is not None:
            yield where, "characters that a terminal or a reader's eye obeys"


def _picture_faults(record: Record, pictures: Mapping[str, bytes]) -> Iterator[str]:
    assert record.dataset is not None
    for name in record.pictures:
        if name not in pictures:
            yield f"its picture {name} is gone"
            continue
        width, height = (int.from_bytes(pictures[name][at : at + 4], "big") for at in (16, 20))
        # A plane of vectors shows points; of images no more than a small sheet may be shown.
        if len(record.dataset.shape) == 3 and width * height > SHEET:
            yield f"its picture {name} is larger than {IMAGES} images of 64 pixels: {width} x {height}"
        if b"tEXt" in pictures[name]:
            yield f"its picture {name} carries text of its own"


def _told(record: Record) -> Iterator[str]:
    """What a record says beyond figures."""
    for name in ("pictures", "details", "scheme", "threat_model"):
        if getattr(record, name):
            yield f"it holds {name.replace('_', ' ')}"
    unsaid = {withheld(code) for code in SAID}
    for why in filter(None, (record.reason, *record.not_applicable.values())):
        if why not in unsaid:
            yield "it gives a reason in words of its own"
            break
    for name, score in record.scores.items():
        if _spoken(score):
            yield f"{name} holds a note or replicates"


def _spoken(score: ScoreRecord) -> bool:
    return score.replicates is not None or score.note != UNSAID or any(map(_spoken, score.parts.values()))
