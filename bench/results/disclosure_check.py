"""Checks of records for paths, terminal codes and words about restricted data.

If data may not be shared, only figures, fixed sentences and small numbers leave the machine: words of plug-ins have
held paths. Shortages of memory, disk or time are reported for any data, by sentences from this file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from math import floor, isfinite, log10
from typing import cast

from pydantic import JsonValue

from bench.contract.source import Source
from bench.plugins import registry
from bench.plugins.groups import Group
from bench.plugins.spec import parse
from bench.plugins.third_party import is_outside
from bench.results import signed_json
from bench.results.reason import PHASES, SAID, UNSAID, withheld
from bench.results.records import PluginRecord, Record, ScoreRecord, content_of

PEAKS = "peak memory by stage, GiB"
SHORTAGES: Mapping[str, str] = {
    "memory of the device": "ran out: rows were worked on in smaller blocks",
    "releases on the disk": "found no room: each was made again from scheme and key, the same to the bit",
}
"""Shortages and their effects, in words."""
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
        findings: The findings of its data.
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
    """Shortages during the fit, from the notes of a scheme."""
    return {name: value for name, value in notes.items() if SHORTAGES.get(name) == value}


def _is_harmless(name: str, value: JsonValue) -> bool:
    if name == PEAKS:  # hundredths of a GiB: the numbers of JSON know no end, and have room for an image
        return isinstance(value, dict) and all(
            phase in PHASES and isinstance(held, int | float) and 0 <= held < MOST_GIB and round(held, 2) == held
            for phase, held in value.items()
        )
    return {**SHORTAGES, **UNTOLD}.get(name) == value


PATHS = re.compile(
    r"(?:^|[\s'\"(=,;:<>\[])(?:file:/|~?/[\w.+@-]+/|[A-Za-z]:[\\/]|\\\\[\w.-]+\\)"  # of a folder, on any system
    r"|[\w.-]+\.(?:png|jpe?g|tiff?|bmp|dcm|dicom|nii|npz|npy|h5|safetensors|csv|pt|pth)\b"  # of a file
    r"|\b[\w.+-]+@[\w-]+\.[\w.-]+",  # of a person or a machine
    re.IGNORECASE,
)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control codes of terminals, and marks that turn the direction of reading."""

PATIENT = re.compile(r"\b[ps]1?[0-9]{8}\b")
"""A patient or a study of MIMIC-CXR."""


def restricted(record: Record) -> Iterator[str]:
    """Reasons against any export: words, wrong sharing flags, patients' numbers."""
    return _restricted(record, _texts(_without_numbers(record)))


def _restricted(record: Record, texts: Collection[str]) -> Iterator[str]:
    if record.dataset is None or not record.dataset.shareable:
        yield from (f"its data may not be shared, and {said}" for said in beyond_figures(record))
    elif not _may_be_shared(record):
        yield f"{record.dataset.name} may not be shared, and the record says that it may"
    if number := min(filter(None, map(_patient, texts)), default=""):
        yield f"it holds what looks like a patient's number, {number}…"


def unfit_text(record: Record, text: bytes | None = None) -> Iterator[str]:
    """`restricted` and `identifying_text`, with one look at the record's text.

    `text` is the record's file, if it is at hand.
    """
    bare = _without_numbers(record, text)
    texts = _texts(bare)
    yield from _restricted(record, texts)
    yield from _identified(bare, texts)


def _without_numbers(record: Record, text: bytes | None = None) -> dict[str, JsonValue]:
    """Its content without replicates and exchanges, which are numbers in base64."""
    content = content_of(record) if text is None else signed_json.parsed(text)
    scores = cast("dict[str, dict[str, JsonValue]]", content["scores"])
    numbers = ("replicates", "exchanges")
    bare = {name: {key: part for key, part in one.items() if key not in numbers} for name, one in scores.items()}
    return {**content, "scores": cast("JsonValue", bare)}


def _texts(content: JsonValue) -> set[str]:
    """All texts in it, names among them."""
    texts: set[str] = set()
    ahead = [content]
    while ahead:
        value = ahead.pop()
        if isinstance(value, dict):
            texts.update(value)
            value = list(value.values())
        elif not isinstance(value, list):
            value = [value]
        for part in value:
            if isinstance(part, str):
                texts.add(part)
            elif isinstance(part, dict | list):
                ahead.append(part)
    return texts


def _may_be_shared(record: Record) -> bool:
    entry = parse(str(record.choice["dataset"])).name
    if entry not in registry.entries("datasets"):
        return True  # its author's own set: it is unknown here
    cls = registry.load("datasets", entry)
    return not issubclass(cls, Source) or bool(cls.shareable)


def identifying_text(record: Record) -> Iterator[str]:
    """Texts with a path, file, address or terminal code, and their fields."""
    bare = _without_numbers(record)
    return _identified(bare, _texts(bare))


def _identified(bare: JsonValue, texts: Collection[str]) -> Iterator[str]:
    if any(map(_said, texts)):  # in few records: only then does it matter where the text stands
        yield from (f"{where} holds {said}" for where, said in _identifying(bare, ""))


def _identifying(value: JsonValue, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _identifying(name, where or name)
            yield from _identifying(part, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        for part in value:
            yield from _identifying(part, where)
    elif isinstance(value, str):
        yield from ((where, said) for said in _said(value))


@lru_cache(maxsize=1 << 14)  # the same names and words stand in nearly all records
def _said(text: str) -> tuple[str, ...]:
    path = PATHS.search(text)
    found = [] if path is None else [f"a path, a file's name or an address: {path.group().strip()!r:.60}"]
    return (*found, "characters that a terminal or a reader's eye obeys") if CONTROL.search(text) else tuple(found)


@lru_cache(maxsize=1 << 14)
def _patient(text: str) -> str:
    """First two letters of a likely patient's number; else empty."""
    number = PATIENT.search(json.dumps(text))
    return "" if number is None else number[0][:2]


def beyond_figures(record: Record) -> Iterator[str]:
    """Words beside figures, forbidden for data that may not be shared."""
    for name in ("pictures", "evidence", "threat_model"):
        if getattr(record, name):
            yield f"it holds {name.replace('_', ' ')}"
    if shortages(record.scheme) != record.scheme:
        yield "it holds scheme"
    harmless_details = harmless(
        record.details,
        () if record.dataset is None else record.dataset.findings,
        own_attack=record.attack is not None and _ours("attacks", record.attack),
        own_method=_ours("methods", record.method),
    )
    if harmless_details != record.details:
        yield "it holds details"
    unsaid = {withheld(code) for code in SAID}
    failed = f"(?:{'|'.join(map(re.escape, record.metrics))}): {re.escape(withheld('metric'))}"
    for why in filter(None, (record.reason, *record.not_applicable.values())):
        if why not in unsaid and not re.fullmatch(f"{failed}(?:; {failed})*", why):
            yield "it gives a reason in words of its own"
            break
    for name, score in record.scores.items():
        if _spoken(score):
            yield f"{name} holds a note, replicates or exchanges"
        if _exact(score):
            yield f"{name} has more digits than its interval bears"


DIGITS = 2
"""Digits of a width that a figure's last digit stands for."""
MOST = 5
"""Most significant digits of a figure: an attack whose scores all agree has an interval without width."""
BARE = 3
"""Significant digits of a figure without an interval, and of a probability."""


def rounded(score: ScoreRecord) -> ScoreRecord:
    """A figure with the digits that its interval bears.

    An attack may choose the others.
    Figure and interval are rounded to a hundredth of the interval's width, ends outwards; chance, probabilities and
    figures without an interval to three significant digits. A rounded figure stays as it is.
    """
    while (coarser := _rounded(score)) != score:  # ends that moved outwards may bear a digit less
        score = coarser
    return score


def _rounded(score: ScoreRecord) -> ScoreRecord:
    ends = [end for end in (score.low, score.high) if end is not None]
    widths = [abs(end - score.value) for end in ends if end != score.value and isfinite(end)]
    places = min(_places(max(widths), DIGITS), _places(score.value, MOST)) if widths else _places(score.value, BARE)
    changes: dict[str, float] = {}
    for name in ("value", "low", "high", "prediction_low", "prediction_high", "null", "null_low", "null_high", "p"):
        value = getattr(score, name)
        if value is not None and isfinite(value):
            near = _places(value, BARE) if name.startswith("null") or name == "p" else places
            down, up = _ends(value, near)
            coarse = down if name.endswith("low") else up if name.endswith("high") else round(value, near)
            changes[name] = max(coarse, 1.0) if value >= 1 else coarse  # a number of guesses is never below 1
    return score.model_copy(update=changes)


def _places(value: float, digits: int) -> int:
    """Decimals with which a value has so many significant digits."""
    return digits - 1 - floor(log10(abs(value))) if value and isfinite(value) else digits


def _ends(value: float, places: int) -> tuple[float, float]:
    """The value rounded down and up; itself if it is round."""
    near, step = round(value, places), 10.0**-places
    if near == value:
        return value, value
    down = near if near < value else round(near - step, places)
    return down, round(down + step, places)


def _ours(group: Group, plugin: PluginRecord) -> bool:
    """True if a plug-in and those within are this project's (`Configured.ours`)."""
    return plugin.origin == registry.HOME and not is_outside(group, parse(plugin.written))


def _exact(score: ScoreRecord) -> bool:
    return rounded(score) != score or any(map(_exact, score.parts.values()))


def _spoken(score: ScoreRecord) -> bool:
    beyond = score.replicates is not None or score.exchanges is not None or score.note != UNSAID
    return beyond or any(map(_spoken, score.parts.values()))
