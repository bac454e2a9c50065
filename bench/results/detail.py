"""What a record may say beside its figures of data that may not be shared: words from here, and small numbers.

Where a measurement fell short of what was asked for, for want of memory, of room or of time, readers must know it of
any data. What a plug-in says of that is taken from this project's own alone, and where it is one of these sentences.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pydantic import JsonValue

from bench.results.reason import PHASES

PEAKS = "peak memory by stage, GiB"
SHORTAGES: Mapping[str, str] = {
    "memory of the device": "ran out: rows were worked on in smaller blocks",
    "releases on the disk": "found no room: each was made again from scheme and key, the same to the bit",
}
"""What ran short, and what became of it."""
_SIDES = r"[0-9]{1,5} x [0-9]{1,5}"
BOUNDS: Mapping[str, re.Pattern[str]] = {
    "compared at": re.compile(rf"{_SIDES} of {_SIDES} pixels"),
    "Gram matrices": re.compile(r"[0-9]{1,5} of [0-9]{1,5} parts of a row"),
    "signatures": re.compile(r"[0-9]{1,5} of [0-9]{1,5} parts of a row"),
    "matching": re.compile(re.escape("signatures only (more rows than refine_up_to)")),
    "reading tried on": re.compile(r"[0-9]{1,7} of [0-9]{1,7} candidates"),
}
"""Of how much of it an attack makes use."""


def harmless(details: Mapping[str, JsonValue], findings: Collection[str], *, own: bool) -> dict[str, JsonValue]:
    """The details that say nothing of the rows.

    Args:
        details: Of a record, by name; an attack that reads labels puts the finding before the name.
        findings: Of its data.
        own: The attack is one of this project's: another's numbers may be chosen to tell something.
    """
    return {name: value for name, value in details.items() if _is_harmless(name, value, findings, own=own)}


def _is_harmless(name: str, value: JsonValue, findings: Collection[str], *, own: bool) -> bool:
    if name == PEAKS:
        return isinstance(value, dict) and all(
            phase in PHASES and isinstance(held, int | float) for phase, held in value.items()
        )
    if name in SHORTAGES:
        return value == SHORTAGES[name]
    bound = next((each for each in BOUNDS if name in (each, *(f"{finding} {each}" for finding in findings))), None)
    return own and bound is not None and isinstance(value, str) and BOUNDS[bound].fullmatch(value) is not None
