"""Conditions under which a record may be published.

A record that is altered never gets here (`bench.results.records`). Of data that may not be shared, figures alone are
published: no picture, and no word of a plug-in, for words have held paths and identifiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from bench.plugins import registry
from bench.plugins.spec import parse
from bench.results.disclosure_check import identifying_text, restricted
from bench.results.records import PluginRecord, Record, is_no_past_time
from bench.types import Method
from bench.workbench.currency import files_of, stale
from bench.workbench.inputs import COMMITMENT, PROTOCOL
from leaderboard.intake import protocol_of
from leaderboard.versions import versions_text

IMAGES, SIDE = 16, 64 + 2  # of a contact sheet; each image has a frame of a pixel
SHEET = IMAGES * SIDE * SIDE
PHANTOMS = frozenset({"synth-cxr", "synth-mimic", "synth-nih"})
"""Data sets that this project draws: pictures of them show no real person."""


def unfit(record: Record, pictures: Mapping[str, bytes], *, current: bool = True) -> list[str]:
    """The reasons not to publish a record; empty if it may be.

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
    if protocol_of(record) not in range(1, PROTOCOL + 1):  # a later one would start a board of its own
        found.append(f"its protocol is none that this version knows, 1 to {PROTOCOL}")
    if is_no_past_time(record.created):
        found.append("it says no time, or one that has not come yet, as when it was made")
    if record.isolation == "none":
        found.append("method and attack worked in the judge's own process (isolation none)")
    if record.method.role is not None and record.method.role != _role(record.method):
        found.append(
            f"it calls its method a reference ({record.method.role}), and no method of this project of that name "
            "is: only those go unrated"
        )
    if files_of(record):
        found.append("a plug-in from a file, which others do not have: make a package of it")
    elif current and (why := stale(record)):  # which builds what the record names
        found.append(f"stale code: {why}")
    found += [*restricted(record), *identifying_text(record)]
    return [*found, *_picture_faults(record, pictures)]


def _role(method: PluginRecord) -> str | None:
    """The role of this project's method of that name, if any."""
    called = parse(method.written).name
    if called != method.name or method.origin != registry.HOME or called not in registry.own("methods"):
        return None
    return cast("type[Method]", registry.load("methods", called)).role


def mixed(records: Sequence[Record]) -> str:
    """The differing versions or run secrets of a row's records; else empty.

    Of runs under several secrets, the luckiest record of each evaluator could be taken.
    """
    texts = sorted({versions_text(record) for record in records})
    secrets = {record.inputs.get(COMMITMENT) for record in records if record.dataset is not None}
    found = [f"mixed versions: {' and '.join(texts)}"] if len(texts) > 1 else []
    return "; ".join([*found, f"mixed run secrets: {len(secrets)} of them"] if len(secrets) > 1 else found)


def _picture_faults(record: Record, pictures: Mapping[str, bytes]) -> Iterator[str]:
    assert record.dataset is not None
    for name in record.pictures:
        if name not in pictures:
            yield f"its picture {name} is gone"
            continue
        width, height = (int.from_bytes(pictures[name][at : at + 4], "big") for at in (16, 20))
        # A plane of vectors shows points; of images no more than a small sheet may be shown.
        images = len(record.dataset.shape) == 3 and record.dataset.name not in PHANTOMS
        if images and width * height > SHEET:
            yield f"its picture {name} is larger than {IMAGES} images of 64 pixels: {width} x {height}"
        if b"tEXt" in pictures[name]:
            yield f"its picture {name} carries text of its own"
