"""k-Same and the CVAE by data set, resolution and people, as a table.

    bench run --suite feature-resolution --data-root DATA --results resolution
    python tests/benchmarks/feature_resolution.py resolution

A line a data set, size and method; beside each figure its interval. What does not apply is left blank.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from bench.results.records import Record
from bench.results.results import Results
from bench.results.score_record import ScoreRecord

COLUMNS = {
    "linear probe, AUC": ("linear-probe-auc", None),
    "rows among which one hides, after two releases": ("anonymity-set", None),
    "guesses, re-clustering": ("guesswork", "re-clustering"),
    "guesses by person": ("patient-guesswork", "re-clustering"),
    "membership AUC, dcr": ("membership-auc", "dcr"),
    "nearest private vector": ("nearest-neighbour-distance", None),
}
"""Title: metric and attack."""


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
        for title, (metric, attack) in COLUMNS.items():
            score = record.scores.get(metric)
            if score is not None and (record.attack.name if record.attack else None) == attack:
                found[line][title] = score
    return dict(sorted(found.items(), key=lambda each: (each[0][0], int(each[0][1]), each[0][3])))


def cell(score: ScoreRecord | None) -> str:
    """A figure and its interval."""
    if score is None:
        return ""
    interval = "" if score.low is None or score.high is None else f" ({score.low:.3g} to {score.high:.3g})"
    return f"{score.value:.3g}{interval}"


if __name__ == "__main__":
    main()
