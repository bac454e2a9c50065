"""Results as tidy tables of pandas, and as HTML in notebooks."""

from __future__ import annotations

__figures__ = False

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from bench.api import boards, running
from bench.api.boards import Comparison
from bench.results.records import Record, ScoreRecord
from leaderboard.entries import interval, number, short
from leaderboard.names import choices, choices_apart, label

if TYPE_CHECKING:  # pandas takes half a second, and a script may not ask for a table
    import pandas as pd

COLUMNS = (
    "row", "method", "dataset", "preset", "seed", "metric", "value", "low", "high", "chance", "p", "attack",
    "evaluator", "better", "unit", "n", "keys", "status", "reason", "key",
)  # fmt: skip
"""The columns of `Results.frame`."""


@dataclass(frozen=True, eq=False)
class Results:
    """The records of a run, or of a results folder.

    Args:
        records: A record an evaluator and row, `bench.results.records.Record`.
        folder: The results folder.
        left_out: Data sets and jobs without a record, and why.
        page: The index of the pages, if any were written.
        seconds: Of wall time; 0 for a folder that was read.
    """

    records: tuple[Record, ...]
    folder: Path
    left_out: Mapping[str, str] = field(default_factory=dict)
    page: Path | None = None
    seconds: float = 0.0

    @property
    def failures(self) -> list[Record]:
        """The records of jobs that failed or timed out."""
        return [record for record in self.records if record.status in ("failed", "timed-out")]

    def frame(self) -> pd.DataFrame:
        """Every figure in a line of its own, in a tidy table.

        Columns: `row` (method with unusual parameters, and the choices by which rows of the same ones differ, such as
        the attacker's profile), `method`, `dataset`, `preset`, `seed`, `metric`; `value` with
        its 95 % interval `low` to `high`; `chance`, what chance gives, and `p`, the probability that chance does as
        well; `attack` and `evaluator`, which measured it; `better` for the data owner; `unit`; `n` rows or repeats;
        `keys`, under how many keys; `status` (ok, not-applicable, failed, timed-out) and `reason`, why there is no
        figure; `key`, the content key of the record. Missing numbers are NA, and `attack` is empty without one.
        """
        import pandas as pd

        labels = _labels(self.records)
        lines = [line for record in self.records for line in _lines(record, labels[record.cell])]
        table = pd.DataFrame(lines, columns=list(COLUMNS))
        numbers = ["value", "low", "high", "chance", "p"]
        whole = {"n": "Int64", "seed": "int64", "keys": "int64"}
        return table.astype(dict.fromkeys(numbers, "Float64") | whole)

    def table(self) -> pd.DataFrame:
        """The board's figures as text, with a column a metric.

        Of each attack figure the strongest certified attack's, with its 95 % interval.
        """
        import pandas as pd

        board = boards.board(self.records, running.open_place(self.folder))
        names = ["row", "dataset", "preset", "seed"]
        labels = _labels(self.records)
        places, lines = list[tuple[str | int, ...]](), list[dict[str, str]]()
        for row in board.rows:
            figures = {
                f"{entry.column.title} {entry.column.arrow}".strip(): f"{entry.text} ({entry.interval})"
                if entry.score is not None
                else entry.text
                for entry in row.entries.values()
            }
            verdict = {"verdict": board.verdicts[row.cell]} if board.verdicts[row.cell] else {}
            places.append((labels[row.cell], row.dataset, row.preset, row.seed))
            lines.append(figures | verdict)
        index = pd.MultiIndex.from_tuples(places, names=names) if lines else None
        return pd.DataFrame(lines, index=index).fillna("")

    def __repr__(self) -> str:
        rows = dict.fromkeys(label(record) for record in self.records)
        failed = f", {len(self.failures)} failed" if self.failures else ""
        absent = f", left out: {', '.join(self.left_out)}" if self.left_out else ""
        return f"<Results: {len(self.records)} records of {', '.join(rows) or 'no row'}{failed}{absent}>"

    def _repr_html_(self) -> str:
        notes = [
            *(f"{record.evaluator} {record.status} in {record.phase}: {record.reason}" for record in self.failures),
            *(f"{name} was left out: {reason}" for name, reason in self.left_out.items()),
        ]
        told = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        return self.table().to_html(escape=True) + (f"<ul>{told}</ul>" if told else "")


def _labels(records: Iterable[Record]) -> Mapping[str, str]:
    """Labels of cells, with the choices in which equal ones differ."""
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    alike: dict[tuple[str, str, str, int], dict[str, Mapping[str, str]]] = {}
    for cell, row in cells.items():
        read = next((record for record in row if record.dataset is not None), row[0])
        place = label(row[0]), _data(read), row[0].preset, row[0].seed
        alike.setdefault(place, {})[cell] = choices(row)
    return {
        cell: place[0] + choices_apart(own, rows.values())
        for place, rows in alike.items()
        for cell, own in rows.items()
    }


def _data(record: Record) -> str:
    return record.dataset.name if record.dataset is not None else str(record.choice.get("dataset"))


def _lines(record: Record, row: str) -> Iterable[tuple[object, ...]]:
    """A record's lines of the tidy table, one a metric."""
    head = (row, record.method.name, _data(record), record.preset, record.seed)
    attack = "" if record.attack is None else short(record.evaluator)
    for name, metric in record.metrics.items():
        score, without = record.scores.get(name), record.not_applicable.get(name)
        status = "ok" if score is not None else "not-applicable" if without is not None else record.status
        reason = "" if score is not None else without or record.reason or "no figure"
        figures = (None,) * 5 if score is None else (score.value, score.low, score.high, score.null, score.p)
        yield (
            *head, name, *figures, attack, record.evaluator, metric.better, metric.unit,
            None if score is None else score.n, record.keys, status, reason, record.key,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scored:
    """The outcome of one attack on one method.

    Args:
        attack, method, dataset: Specs.
        scores: Figures by metric.
        not_applicable: Metrics without a figure, and why.
        notes: What attack and evaluator say beside the figures.
        seconds: Of wall time, by stage.
    """

    attack: str
    method: str
    dataset: str
    scores: Mapping[str, ScoreRecord]
    not_applicable: Mapping[str, str]
    notes: Mapping[str, object]
    seconds: Mapping[str, float]

    def frame(self) -> pd.DataFrame:
        """A table with a line a metric: value, low, high, chance, p."""
        import pandas as pd

        lines = {name: (one.value, one.low, one.high, one.null, one.p) for name, one in self.scores.items()}
        columns = ["value", "low", "high", "chance", "p"]
        table = pd.DataFrame(list(lines.values()), index=pd.Index(list(lines), name="metric"), columns=columns)
        return table.astype("Float64")

    def __repr__(self) -> str:
        texts = [
            f"{name} {number(one.value, 3)} ({interval(one.low, one.high, 3)})" for name, one in self.scores.items()
        ]
        texts += [f"{name}: {why}" for name, why in self.not_applicable.items()]
        return "\n".join([f"{self.attack} on {self.method}, {self.dataset}:", *(f"  {text}" for text in texts)])

    def _repr_html_(self) -> str:
        left = "".join(f"<li>{html.escape(f'{name}: {why}')}</li>" for name, why in self.not_applicable.items())
        return self.frame().to_html(escape=True) + (f"<ul>{left}</ul>" if left else "")


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Methods compared on the same people and keys."""

    parts: Sequence[Comparison]

    def frame(self) -> pd.DataFrame:
        """The comparison as a tidy table.

        Of two methods, a line a figure: `metric`, `attack`, both figures, and `difference` (the ratio, if `ratio`) with
        its 95 % interval `low` to `high` and `p`; `reason`, if they cannot be compared. Of all methods, a line a method
        and figure, with its `value` and the lowest and highest rank that the tests leave it.
        """
        import pandas as pd

        return pd.DataFrame([line for part in self.parts for line in comparison_lines(part)])

    def __repr__(self) -> str:
        return self.frame().to_string()

    def _repr_html_(self) -> str:
        return self.frame().to_html(escape=True)


def comparison_lines(part: Comparison) -> Iterable[dict[str, JsonValue]]:
    """The lines of `Comparisons.frame`, as plain values by column."""
    where: dict[str, JsonValue] = {"dataset": part.dataset, "preset": part.preset, "seed": part.seed}
    if part.first is not None and part.second is not None:
        both: dict[str, JsonValue] = {"first": part.first.label, "second": part.second.label}
        for figure in part.figures:
            paired = figure.paired
            yield where | both | {
                "metric": figure.column.name, "attack": short(figure.by[0]), "first value": figure.a,
                "second value": figure.b, "difference": None if paired is None else paired.value,
                "low": None if paired is None else paired.low, "high": None if paired is None else paired.high,
                "p": None if paired is None else paired.p, "ratio": paired is not None and paired.ratio,
                "keys": figure.keys, "reason": figure.reason,
            }  # fmt: skip
        return
    for ranks in part.ranks:
        for name, value in ranks.values.items():
            low, high = ranks.ranks[name]
            yield where | {"row": name, "metric": ranks.column.name, "value": value, "rank low": low, "rank high": high}
