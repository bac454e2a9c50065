"""The ledger's quotations checked against records, reach and tests."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from bench.data.yaml_text import parse_yaml
from bench.results.records import Record, RecordError
from bench.results.results import Results
from leaderboard.names import parameters_text
from leaderboard.reach import Step
from leaderboard.repeat import as_today, method_and_choice
from leaderboard.reproduction import NOTE, Measured, Reproduction

DIGITS = 6
WIDTH = 118
BOUND = "empirical-epsilon"
"""A bound from below: the other end of its record's interval is that of one test, and bounds nothing."""


@dataclass(frozen=True)
class Misquoted:
    """A figure that is not what its source says.

    Args:
        place: Paper, table and row.
        quoted: What the ledger says.
        said: What the source says; None where there is no such source, and `why` says so.
        why: In words.
    """

    place: str
    quoted: Measured
    said: Measured | None
    why: str


def misquoted(ledger: Reproduction, published: Results, steps: Sequence[Step], root: Path) -> Iterator[Misquoted]:
    """Every figure of the ledger that differs from its source.

    Args:
        ledger: The ledger.
        published: The published records.
        steps: The steps of the ladder that figures may name.
        root: The project's folder, below which tests lie.
    """
    for paper, table, row in ledger.rows():
        place = f"{paper.id}, {table.place}, {row.what}"
        for quoted in row.ours:
            try:
                current = measured(quoted, published, steps, root)
            except LookupError as error:
                yield Misquoted(place, quoted, None, f"{quoted.source}: {error.args[0]}")
                continue
            if current != quoted:
                names = [name for name in Measured.model_fields if getattr(current, name) != getattr(quoted, name)]
                text = "; ".join(
                    f"{n}: {getattr(quoted, n)} quoted, {getattr(current, n)} in the source" for n in names
                )
                yield Misquoted(place, quoted, current, f"{quoted.source}: {text}")


def measured(quoted: Measured, published: Results, steps: Sequence[Step], root: Path) -> Measured:
    """The figure as its source gives it now.

    Raises:
        LookupError: The source does not exist or has no such figure; the text names the case.
    """
    if quoted.test is not None:
        _check_test(quoted.test, quoted.score, root)
        return quoted.model_copy(update={"command": f"pytest {quoted.test}"})
    if quoted.record is not None:
        return quoted.model_copy(update=_of_record(_record(quoted.record, published), quoted.score))
    return quoted.model_copy(update=_of_step(str(quoted.reach), quoted.score, steps))


def _record(name: str, published: Results) -> Record:
    cell, _, evaluator = name.rpartition("/")
    try:
        return published.record(cell, evaluator)
    except FileNotFoundError as error:
        raise LookupError("no such record is published") from error
    except RecordError as error:
        raise LookupError(published.bare(f"cells/{name}.json", error)) from error


def _of_record(record: Record, score: str) -> Mapping[str, object]:
    arguments = method_and_choice(record)
    if record.attack is not None:
        arguments += ["--attack", record.attack.written]
    budget = [f"{(record.dataset.rows if record.dataset else {}).get('private', 0)} rows", _keys(record.keys)]
    steps = record.method.parameters.get("steps")
    budget += [f"preset {record.preset}", *([] if steps is None else [f"trained for at most {steps} steps"])]
    if score.startswith(NOTE):
        note = record.scheme.get(score.removeprefix(NOTE))
        if not isinstance(note, (int, float)) or isinstance(note, bool):
            raise LookupError(f"the fitted method gives no number {score.removeprefix(NOTE)!r}")
        value, low, high = float(note), None, None
        arguments += ["--metric", next(iter(record.metrics.values())).written] if record.metrics else []
    else:
        if score not in record.scores:
            raise LookupError(f"it holds no {score}; it holds {', '.join(record.scores) or 'none'}")
        figure = record.scores[score]
        value, low, high = figure.value, figure.low, None if score == BOUND else figure.high
        arguments += ["--metric", record.metrics[score].written]
    return {
        "value": rounded(value), "low": rounded(low), "high": rounded(high), "budget": ", ".join(budget),
        "command": shlex.join(["bench", "run", *arguments]),
    }  # fmt: skip


def _of_step(name: str, score: str, steps: Sequence[Step]) -> Mapping[str, object]:
    matches = [step for step in steps if reach_name(step) == name]
    if len(matches) != 1:
        raise LookupError(f"expected one step of that name, found {len(matches)}")
    step = matches[0]
    if score not in step.scores:
        raise LookupError(f"it holds no {score}; it holds {', '.join(step.scores) or 'none'}")
    figure = step.scores[score]
    return {
        "value": rounded(figure.value), "low": rounded(figure.low), "high": rounded(figure.high),
        "budget": f"{step.images} rows, {_keys(step.keys)}, preset {step.preset}",
        "command": shlex.join([
            "bench", "run", "--method", as_today(step.method, step.preset), "--dataset", step.dataset,
            "--preset", step.preset, "--seed", str(step.seed), "--attack", step.attack.written, "--metric", score,
        ]),
    }  # fmt: skip


def _keys(count: int) -> str:
    return f"{count} key" if count == 1 else f"{count} keys"


def reach_name(step: Step) -> str:
    """A step of the ladder in one line."""
    return f"{step.method.name}[{parameters_text(step.method.parameters)}] / {step.attack.name} on {step.dataset}"


def _check_test(name: str, states: str, root: Path) -> None:
    """Raise LookupError unless the test exists and states the figure."""
    path, _, test = name.partition("::")
    try:
        text = (root / path).read_text(encoding="utf-8")
    except OSError as error:
        raise LookupError("there is no such file") from error
    bodies = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == test]
    if not bodies:
        raise LookupError("there is no such test")
    first = min([bodies[0].lineno, *(mark.lineno for mark in bodies[0].decorator_list)])
    body = text.splitlines()[first - 1 : bodies[0].end_lineno]
    if not any(states in line for line in body):
        raise LookupError(f"it does not state {states!r}")


def renewed(text: str, published: Results, steps: Sequence[Step], root: Path) -> str:
    """The ledger's text with its figures renewed from their sources.

    Raises:
        LookupError: A figure has no source.
    """
    ledger = cast("dict[str, Any]", parse_yaml(text))
    for paper in ledger["papers"]:
        for table in paper["tables"]:
            for row in table.get("rows", ()):
                quoted = [Measured.model_validate(one) for one in row.get("ours", ())]
                current = [measured(figure, published, steps, root) for figure in quoted]
                if current:
                    row["ours"] = [figure.model_dump(exclude_none=True) for figure in current]
    head = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    return head + yaml.dump(ledger, Dumper=_Indented, sort_keys=False, width=WIDTH, allow_unicode=True)


class _Indented(yaml.SafeDumper):
    """Lists are indented below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def rounded(value: float | None) -> float | None:
    """Six digits: more would be noise to a reader."""
    return None if value is None else float(f"{value:.{DIGITS}g}")
