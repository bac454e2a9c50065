"""Labels in a table of the user's own: a column a finding, or one column of classes. Cells are never repeated."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bench.data.marks import MARKS
from bench.data.spelling import NOTHING, spelling


def findings_of(rows: pd.DataFrame, findings: Sequence[str]) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """The labels, and lines with something else than 1, 0, blank or -1."""
    bad: list[tuple[int, str]] = []
    for column in findings:
        odd = rows.index[~rows[column].str.strip().isin(list(MARKS))]
        bad += [(int(line), f"{column} is something else than 1, 0, blank or -1") for line in odd]
    return rows[list(findings)].apply(lambda column: column.str.strip().map(MARKS)), bad


def one_hot(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """A column of 1 and 0 a class, and lines without one; spellings that differ in form alone are one class."""
    words = rows["class"].map(spelling)
    shown = {word: " ".join(rows["class"][words == word].iloc[0].split()) for word in sorted(set(words) - NOTHING)}
    marks = {shown[word]: (words == word).astype(float) for word in shown}
    return pd.DataFrame(marks, index=rows.index), [
        (int(line), "class is blank or a word for nothing, such as none or unknown: name the class")
        for line in rows.index[words.isin(NOTHING)]
    ]
