"""k-Same and the CVAE by data set, resolution and people, as a table.

    bench run --suite feature-resolution --data-root DATA --results resolution
    python tests/benchmarks/feature_resolution.py resolution

A line a data set, size and method; beside each figure its interval. What does not apply is left blank.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from study_columns import Columns, scores

from bench.results.record_parts import ScoreRecord
from bench.results.records import Record
from bench.results.results import Results
from leaderboard.entries import interval, number

COLUMNS: Columns = {
    "linear probe, AUC": ("linear-probe-auc", None),
    "rows among which one hides, after two releases": ("anonymity-set", None),
    "guesses, re-clustering": ("guesswork", "re-clustering"),
    "guesses by person": ("patient-guesswork", "re-clustering"),
    "membership AUC, dcr": ("membership-auc", "dcr"),
    "nearest private vector": ("nearest-neighbour-distance", None),
}


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("results", type=Path)
    print("| data | size | people / rows | method |", " | ".join(COLUMNS), "|")
    print("|---" * (4 + len(COLUMNS)) + "|")
    for line, found in figures(asked.parse_args().results).items():
        print("|", " | ".join((*line, *(cell(found.get(title)) for title in COLUMNS))), "|")


def figures(folder: Path) -> dict[tuple[str, str, str, str], dict[str, ScoreRecord]]:
    """By data set, size, people of its private rows and method: a score a column."""
    found: dict[tuple[str, str, str, str], dict[str, ScoreRecord]] = defaultdict(dict)
    for _, record in Results(folder).records():
        if not isinstance(record, Record):
            continue
        people = record.dataset.subjects.get("private", "unknown")
        counts = f"{people} / {record.dataset.rows['private']}"
        line = (str(record.choice["dataset"]), str(record.choice["size"]), counts, record.method.written)
        found[line] |= scores(record, COLUMNS)
    return dict(sorted(found.items(), key=lambda each: (each[0][0], int(each[0][1]), each[0][3])))


def cell(score: ScoreRecord | None) -> str:
    """A figure and its interval."""
    return "" if score is None else f"{number(score.value, None)} ({interval(score.low, score.high, None)})"


if __name__ == "__main__":
    main()
