"""Attributes of rows (sex, age band, view, ...) from table words.

Ages become bands of years; `F`, `female` and the like become `female`. Every other word is a group of its own name;
case, blanks and the form of a number (1, 01, 1.0) do not matter. Blank words and ages above 120 years are unknown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence

import torch

from bench.contract.attributes import Attributes
from bench.contract.source import DataError
from bench.data.subjects import NOTHING, person, spelling

MOST_GROUPS = 32
AGES = (18, 40, 60, 80)
BANDS = ("0-17", "18-39", "40-59", "60-79", "80 and over")
OLDEST = 120
_AGE = re.compile(r"([0-9]{1,3})(?:\.[0-9]*)? ?([ymwd]?)(?:ears?)?")
_TOP = re.compile(r"(?:>=?|≥) ?([0-9]{1,3})|([0-9]{1,3}) ?\+")
_SEXES = {"f": "female", "female": "female", "w": "female", "m": "male", "male": "male"}


def read_groups(words: Mapping[str, Sequence[str]]) -> Attributes | None:
    """Read the attributes of rows; None if there are none.

    Args:
        words: By attribute, one word a row as the data set writes it.

    Raises:
        DataError: An age that is no number, a word that is no text, or an attribute of more than `MOST_GROUPS` words.

    >>> read_groups({"sex": ["F", "male", "", "f"], "age": ["058Y", "17", "9", "411"]}).groups
    (('female', 'male'), ('0-17', '40-59'))
    """
    groups: dict[str, tuple[str, ...]] = {}
    columns = []
    for name, column in words.items():
        shown: dict[Hashable, str] = {}  # a group is called as it is first written
        known: dict[str, str] = {}
        for row, word in enumerate(column):
            if word not in known:
                try:
                    known[word] = _group(name, word, shown)
                except DataError as error:
                    raise DataError(f"the attribute {name} of row {row + 1}: {error}") from None
        names = sorted({group for group in known.values() if group})
        if len(names) > MOST_GROUPS:
            raise DataError(
                f"the attribute {name} has {len(names)} different words, expected at most {MOST_GROUPS}: a group holds "
                "many people. Leave the column out, or write fewer words"
            )
        groups[name] = tuple(names)
        places = {group: number for number, group in enumerate(names)}
        columns.append([places.get(known[word], -1) for word in column])
    if not columns:
        return None
    return Attributes(tuple(groups), tuple(groups.values()), torch.tensor(columns, dtype=torch.int64).T.contiguous())


def unreadable(name: str, column: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Rows whose word is no value of the attribute, with the reason."""
    for row, word in enumerate(column):
        try:
            _group(name, word, {})
        except DataError as error:
            yield row, str(error)


def _group(name: str, word: str, shown: dict[Hashable, str]) -> str:
    """The group of a word, "" for unknown; `shown` holds first spellings."""
    key = spelling(word)
    if key in NOTHING:
        return ""
    if name == "sex":
        return _SEXES.get(key, key)
    if name == "age":
        return _band(key)
    return shown.setdefault(person(word), " ".join(word.split()))


def _band(word: str) -> str:
    """The band of an age as DICOM or a number writes it.

    Years, months, weeks or days are read; an age above `OLDEST` gives "". Tables that hide ages from 90 on write `90+`
    or `>89`: the last band.
    """
    top, age = _TOP.fullmatch(word), _AGE.fullmatch(word)
    if top is not None and int(top[1] or top[2]) >= AGES[-1]:
        return BANDS[-1]
    if age is None:
        raise DataError(
            "expected an age as a number of years, or as DICOM writes it (058Y, 011M), or 90+, found something else: "
            "mend it, or leave it blank"
        )
    years = int(age[1]) if age[2] in ("", "y") else 0
    return BANDS[bisect_right(AGES, years)] if years <= OLDEST else ""
