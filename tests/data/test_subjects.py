import numpy as np
import pytest

from bench.contract.source import DataError
from bench.data.subjects import people, person


@pytest.mark.parametrize(
    "same",
    [
        (
            "1",
            "1.0",
            "01",
            "1e0",
            "+1",
            "1,0",
            "1,00",
            " 1 ",
            "\uff11",
            "1.",
            "10e-1",
            "0.1e1",
            "1E0",
            "\u200b1",
            "1\u00a0",
        ),
        ("0", "-0", "0.0", "0e9", "00"),
        ("1e400", "10e399"),
        ("12345678901234567890123", "12345678901234567890123.0"),
        ("Ann Lee", "ann  lee", "ANN\tLEE", "\uff21nn Lee"),
        ("a" * 300, "A" * 300),
    ],
)
def test_spellings_that_differ_in_form_are_one_person(same: tuple[str, ...]) -> None:
    assert len({person(subject) for subject in same}) == 1
    found = people(same)
    assert found.numbers is not None
    assert not found.numbers.any()
    assert found.count == 1
    assert found.notes == (
        "1 people are written in several ways (blanks, case, or a number as 1, 01 and 1.0) and count as one each",
    )


@pytest.mark.parametrize(
    "different",
    [
        ("1", "2", "10", "0.1", "-1", "1e2", "1a", "1 0", "1_0", "1,000", "1,5"),
        ("12345678901234567890123", "12345678901234567890124"),  # equal as floats
        ("9007199254740993", "9007199254740992"),
        ("1e400", "1e401"),  # both infinite as floats
        ("p1", "p01"),
        (".", "e1", "1"),
    ],
)
def test_other_people_stay_apart(different: tuple[str, ...]) -> None:
    assert len({person(subject) for subject in different}) == len(different)


def test_nan_and_the_like_are_nobody_and_each_row_stands_for_itself() -> None:
    found = people(["nan", "7", "NaN", "None", "", " ", "NULL", "<NA>", "n/a", "NaT", "7.0"])
    assert found.numbers is not None
    np.testing.assert_array_equal(found.numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1])
    assert found.count == 1
    assert found.notes[0] == "the person is unknown for 9 of 11 rows"
    assert people(["7", "#NV", "#REF!", "#VALUE!"]).count == 1  # what spreadsheets write where a formula failed


@pytest.mark.parametrize("cell", ["1.23457E+12", "1,23457E+12", "1E+12"])
def test_numbers_that_a_spreadsheet_has_shortened_are_said(cell: str) -> None:
    assert any("several people may count as one" in note for note in people([cell, "7"]).notes)
    assert not any("spreadsheets" in note for note in people(["1e0", "7e+x", "e+12"]).notes)


def test_a_set_that_names_nobody_has_no_people() -> None:
    found = people(["nan", "", "none"])
    assert found.numbers is None
    assert "people are not known" in found.notes[0]


@pytest.mark.parametrize("odd", ["a\0b", "a\x1bb", "a\udc80"])
def test_identifiers_that_are_no_text_are_refused_without_being_repeated(odd: str) -> None:
    with pytest.raises(DataError, match="the person of row 2: expected readable text") as caught:
        people(["a", odd])
    assert odd not in str(caught.value)


def test_notes_repeat_no_identifier() -> None:
    for note in people(["Zebedee", "zebedee", "", "nan"]).notes:
        assert "ebedee" not in note
