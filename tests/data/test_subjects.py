from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.contract.attributes import Attributes
from bench.contract.seal import ContractError
from bench.contract.source import DataError
from bench.data.prepare import prepare, verify
from bench.data.prepared import load
from bench.data.sets.synth_cxr import SynthCXR
from bench.data.splits import split
from bench.data.subjects import BANDS, MOST_GROUPS, contradictions, people, person, read_groups
from bench.isolation.rpc_codec import pack


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


def groups(name: str, words: list[str]) -> list[str | None]:
    found = read_groups({name: words})
    assert found is not None
    return [None if code < 0 else found.groups[0][code] for code in found.codes[:, 0].tolist()]


def test_ages_become_bands_and_impossible_ages_are_unknown() -> None:
    assert groups("age", ["0", "17", "18", "058Y", "79", "80", "411", "011M", "nan", " 40 "]) == [
        BANDS[0], BANDS[0], BANDS[1], BANDS[2], BANDS[3], BANDS[4], None, BANDS[0], None, BANDS[2],
    ]  # fmt: skip


def test_ages_count_in_the_units_of_their_words() -> None:
    words = [
        "045Y",
        "6M",
        "3W",
        "216M",
        "940W",
        "07000D",
        "18 months",
        "20 years",
        "41 yrs",
        "2 weeks old",
        "52.5",
        "61,5",
    ]
    assert groups("age", words) == [BANDS[number] for number in (2, 0, 0, 1, 1, 1, 0, 1, 2, 0, 2, 3)]


def test_people_of_several_sexes_or_sites_are_counted_without_a_name() -> None:
    words = {"sex": ["F", "m", "f", "", "M"], "site": ["A", "B", "a", "A", "A"], "view": ["1", "2", "3", "4", "5"]}
    sexes, sites = contradictions(["7", "07", "8", "8", "nan"], words)
    assert sexes.startswith("1 people have several sexes: ")
    assert sites.startswith("1 people stand at several sites: ")
    assert not list(contradictions(["1", "2"], {"sex": ["F", "M"]}))


def test_words_that_differ_in_form_alone_are_one_group() -> None:
    assert groups("sex", ["F", "female", " m ", "W", "?", "other"]) == [
        "female",
        "female",
        "male",
        "female",
        None,
        "other",
    ]
    assert groups("site", ["Ward 1", "ward  1", "WARD 1", ""]) == ["Ward 1"] * 3 + [None]


@pytest.mark.parametrize("word", ["90+", ">89", "> 89", ">=90", "≥ 90", "80 +"])
def test_ages_that_are_cut_off_at_the_top_are_of_the_last_band(word: str) -> None:
    assert groups("age", [word]) == ["80 and over"]


@pytest.mark.parametrize("word", ["60+", ">10", "<18", "++", "90+90"])
def test_ages_of_which_only_a_bound_is_known_are_refused(word: str) -> None:
    with pytest.raises(DataError, match="of row 1: expected an age") as refused:
        read_groups({"age": [word]})
    assert word not in str(refused.value)  # data may be confidential


def test_an_identifier_and_an_age_that_is_no_number_are_refused() -> None:
    with pytest.raises(DataError, match=f"33 different words, expected at most {MOST_GROUPS}"):
        read_groups({"site": [f"s{number}" for number in range(33)]})
    with pytest.raises(DataError, match="of row 1: expected an age as a number of years"):
        read_groups({"age": ["old"]})


def test_attributes_survive_preparation_and_count_in_the_fingerprint(tmp_path: Path) -> None:
    source = SynthCXR(images=20)
    made = prepare(source, roots=[], cache=tmp_path, size=32)
    assert made.attributes is not None
    verify(made)
    assert made.attributes.names == ("sex", "age", "view")
    codes = np.load(made.folder / "attributes.npy")
    codes[0, 0] = 1 - codes[0, 0]
    np.save(made.folder / "attributes.npy", codes)
    with pytest.raises(DataError, match="labels, people or meta changed"):
        verify(load(made.folder))


def test_what_is_known_of_rows_stays_with_the_judge(tmp_path: Path) -> None:
    made = prepare(SynthCXR(images=60), roots=[], cache=tmp_path, size=32)
    splits = split(made, None, seed=0, limit=None, public_limit=None)
    assert made.attributes is not None
    assert set(splits.attributes) == {"public", "private", "control", "test"}
    for part, told in splits.attributes.items():
        assert torch.equal(told.codes, made.attributes.codes[splits.rows[part]])
    # What a plug-in is given are data sets, and no data set carries it, in whatever process the plug-in works.
    for data in (splits.public, splits.private, splits.control, splits.test):
        inside = [getattr(data, field.name) for field in fields(data)]
        assert not any(isinstance(each, Attributes) for each in inside)
        assert not any(isinstance(each, torch.Tensor) and each.shape == told.codes.shape for each in inside)
    with pytest.raises(ContractError, match="got Attributes"):
        pack(splits.attributes["private"], lambda tensor: 0)


def test_attributes_of_other_groups_are_not_joined() -> None:
    north, south = (Attributes(("site",), ((name,),), torch.zeros(2, 1, dtype=torch.int64)) for name in "ns")
    assert len(north.followed_by(north)) == 4
    with pytest.raises(ValueError, match="expected the attributes"):
        north.followed_by(south)


def test_attributes_are_read_in_the_names_of_another_set() -> None:
    here = Attributes(("sex", "site"), (("female", "male"), ("n",)), torch.tensor([[1, 0], [0, -1]]))
    there = Attributes(("age", "sex"), (("0-17",), ("male", "other")), torch.zeros(0, 2, dtype=torch.int64))
    assert here.named_as(there).named() == there.named()
    assert here.named_as(there).codes.tolist() == [[-1, 0], [-1, -1]]


def test_public_people_of_another_set_are_known_by_the_groups_of_the_private() -> None:
    theirs = Attributes(("sex",), (("female", "male"),), torch.tensor([[1], [0]]))
    own = Attributes(("sex",), (("male",),), torch.tensor([[0], [-1]]))
    assert theirs.named_as(own).codes.tolist() == [[0], [-1]]


def test_codes_without_a_group_are_refused() -> None:
    with pytest.raises(ValueError, match="the number of a group or -1"):
        Attributes(("sex",), (("female",),), torch.tensor([[1]]))
