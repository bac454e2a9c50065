"""What a record may say beside figures of data that may not be shared."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from bench.results.disclosure_check import PEAKS, SHORTAGES, UNTOLD, harmless, shortages

WORDS = {
    "compared at": "56 x 56 of 224 x 224 pixels",
    "compared": "800 of 50176 numbers of a row: more would not fit in memory",
    "Gram matrices": "14 of 197 parts of a row",
    "Edema signatures": "3 of 197 parts of a row",
    "reading tried on": "4096 of 36000 candidates",
    "matching": "signatures only (more rows than refine_up_to)",
    "base: compared at": "56 x 56 of 224 x 224 pixels",
    "not tried": "a release depends on all rows in their owner's order",
}


def test_bounds_shortages_and_peaks_are_said() -> None:
    told: dict[str, JsonValue] = {**WORDS, **SHORTAGES, PEAKS: {"attack": 1.5}}
    assert harmless(told, ["Edema"], own_attack=True, own_method=True) == told


def test_of_other_authors_attacks_no_number_is_taken() -> None:
    said = harmless({**WORDS, **SHORTAGES}, ["Edema"], own_attack=False, own_method=True)
    assert said == dict(SHORTAGES)


def test_beside_other_authors_methods_it_is_said_that_an_attack_was_bounded_and_no_number() -> None:
    said = harmless({**WORDS, **SHORTAGES}, ["Edema"], own_attack=True, own_method=False)
    assert said == {**SHORTAGES, **UNTOLD}
    assert harmless(said, ["Edema"], own_attack=True, own_method=False) == said
    assert harmless(dict(SHORTAGES), ["Edema"], own_attack=True, own_method=False) == dict(SHORTAGES)


def test_of_the_notes_on_a_scheme_what_ran_short_is_said() -> None:
    short: dict[str, JsonValue] = {"memory of the device": SHORTAGES["memory of the device"]}
    assert shortages({**short, "releases on the disk": "p10000032", "size": 7}) == short


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compared at", "56 x 56 of 224 x 224 pixels of patient 7"),
        ("compared at", "1234567 x 1 of 1 x 1 pixels"),
        ("compared at", 56),
        ("patient 7", "3 of 4 parts of a row"),
        ("patient 7 signatures", "3 of 4 parts of a row"),
        ("memory of the device", "ran out: p10000032"),
        (PEAKS, {"patient 7": 1.0}),
        (PEAKS, {"attack": "p10000032"}),
        (PEAKS, {"attack": 10**4000 + 7}),
        (PEAKS, {"attack": 1.000123456789}),
        (PEAKS, "p10000032"),
    ],
)
def test_nothing_else_is(name: str, value: JsonValue) -> None:
    assert harmless({name: value}, ["Edema"], own_attack=True, own_method=True) == {}
