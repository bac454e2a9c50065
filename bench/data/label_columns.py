"""Labels in a table of the user's own: a column a finding, or one column of classes. Cells are never repeated."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bench.data.marks import MARKS
from bench.data.people import person
from bench.data.spelling import NOTHING, spelling

_LETTER = r"[^\W\d_]"


def findings_of(rows: pd.DataFrame, findings: Sequence[str]) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """The labels, and lines with something else than 1, 0, blank or -1."""
    bad: list[tuple[int, str]] = []
    for column in findings:
        odd = rows.index[~rows[column].str.strip().isin(list(MARKS))]
        wrong = [f"{column} is something else than 1, 0, blank or -1"] * len(odd)
        cells = rows[column][odd]
        if cells.str.strip().str.casefold().isin(NOTHING).any():
            wrong[0] += ": leave cells blank where nothing is known, for NA might be a class"
        elif len(odd) and cells.str.contains(_LETTER).all():  # a column of words, no damaged finding
            wrong[0] += f": call it class where it names classes, or attribute:{column} where it names groups"
        bad += zip(map(int, odd), wrong, strict=True)
    return rows[list(findings)].apply(lambda column: column.str.strip().map(MARKS)), bad


def one_hot(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """A column of 1 and 0 a class, and lines without one; spellings that differ in form alone are one class."""
    said = {cell: _class(cell) for cell in rows["class"].unique()}
    first = {word: cell for cell, word in reversed(said.items()) if word is not None}
    numbers = {word: number for number, word in enumerate(sorted(first, key=lambda word: spelling(first[word])))}
    found = rows["class"].map({cell: -1 if word is None else numbers[word] for cell, word in said.items()})
    marks = {" ".join(first[word].split()): (found == number).astype(float) for word, number in numbers.items()}
    return pd.DataFrame(marks, index=rows.index), [
        (int(line), "class is blank or a word for nothing, such as none or unknown: name the class")
        for line in rows.index[found < 0]
    ]


def _class(cell: str) -> str | tuple[str, str, int] | None:
    """What all spellings of a class share, None for no class: by the rule for people, but 1.1 and 1.10 are two.

    >>> _class("1") == _class("01") == _class("1.0") != _class("1.1") != _class("1.10")
    True
    """
    found = person(cell)
    return spelling(cell) if isinstance(found, tuple) and found[-1] < 0 else found
