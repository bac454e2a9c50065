"""How to repeat a row of the board."""

from __future__ import annotations

import shlex

from bench.plugins.option import words
from bench.workbench.choice import Choice
from leaderboard.board import Row


def command(row: Row) -> str:
    """The command line that repeats a row: its method, the choice of data, its attacks and its metrics.

    Words in capitals stand for paths, which no record holds.
    """
    attacks = dict.fromkeys(record.attack.written for record in row.records if record.attack is not None)
    metrics = dict.fromkeys(metric.written for record in row.records for metric in record.metrics.values())
    files = dict.fromkeys(record.measured_by for record in row.records if ".py:" in record.measured_by)
    told = ["--method", row.records[0].method.written, *words(Choice, row.choice), "--device", row.records[0].device]
    told += [word for attack in (attacks or ["none"]) for word in ("--attack", attack)]
    told += [word for evaluator in files for word in ("--evaluator", evaluator)]
    told += [word for metric in metrics for word in ("--metric", metric)]
    return shlex.join(["bench", "run", *told])
