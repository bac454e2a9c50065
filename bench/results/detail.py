"""What a record may say beside its figures of data that may not be shared: words from here, and small numbers.

Where a measurement fell short of what was asked for, for want of memory, of room or of time, readers must know it of
any data. What a plug-in says of that is taken from this project's own alone, and where it is one of these sentences;
its numbers only where no code of another author ran beside it, which may choose them: a scheme is loaded where Eve
works, and there she holds the candidates.
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
UNTOLD: Mapping[str, str] = {"bounds": "the attack was bounded: how far is not said beside another author's method"}
_SIDES = r"[0-9]{1,5} x [0-9]{1,5}"
BOUNDS: Mapping[str, re.Pattern[str]] = {
    "compared at": re.compile(rf"{_SIDES} of {_SIDES} pixels"),
    "compared": re.compile(r"[0-9]{1,8} of [0-9]{1,8} numbers of a row: more would not fit in memory"),
    "Gram matrices": re.compile(r"[0-9]{1,5} of [0-9]{1,5} parts of a row"),
    "signatures": re.compile(r"[0-9]{1,5} of [0-9]{1,5} parts of a row"),
    "matching": re.compile(re.escape("signatures only (more rows than refine_up_to)")),
    "reading tried on": re.compile(r"[0-9]{1,7} of [0-9]{1,7} candidates"),
    "not tried": re.compile("a release depends on all rows in their owner's order"),
}
"""Of how much of it an attack makes use."""


MOST_GIB = 1e5


def harmless(
    details: Mapping[str, JsonValue], findings: Collection[str], *, own_attack: bool, own_method: bool
) -> dict[str, JsonValue]:
    """The details that say nothing of the rows.

    Args:
        details: Of a record, by name; an attack that reads labels puts the finding before the name, and an attack that
            trains upon another "base: ".
        findings: Of its data.
        own_attack, own_method: Whether the attack, and the method, are this project's.
    """
    kept = {name: value for name, value in details.items() if _is_harmless(name, value)}
    before = ["", *(f"{finding} " for finding in findings)]
    names = {
        f"{start}{base}{name}": kind for start in before for base in ("", "base: ") for name, kind in BOUNDS.items()
    }
    bounds = {
        name: value for name, value in details.items()
        if name in names and isinstance(value, str) and names[name].fullmatch(value)
    }  # fmt: skip
    if not own_attack or not bounds:
        return kept
    return {**kept, **(bounds if own_method else UNTOLD)}


def shortages(notes: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What ran short in the fit, of the notes on a scheme."""
    return {name: value for name, value in notes.items() if SHORTAGES.get(name) == value}


def _is_harmless(name: str, value: JsonValue) -> bool:
    if name == PEAKS:  # hundredths of a GiB: the numbers of JSON know no end, and have room for an image
        return isinstance(value, dict) and all(
            phase in PHASES and isinstance(held, int | float) and 0 <= held < MOST_GIB and round(held, 2) == held
            for phase, held in value.items()
        )
    return {**SHORTAGES, **UNTOLD}.get(name) == value
