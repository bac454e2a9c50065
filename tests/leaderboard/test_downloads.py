from __future__ import annotations

import csv
import io
import json

import pytest
from made.board_records import auc, record, score, utility

from bench.results.records import Record
from leaderboard.downloads import results_csv, results_json


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_score_and_every_part_has_a_row() -> None:
    one = record(kind="utility", evaluator="utility", scores={"utility-auc": utility(0.8, Edema=0.9, Atelectasis=0.7)})
    assert [(line["part"], float(line["value"])) for line in read(results_csv([one]))] == [
        ("", 0.8), ("Edema", 0.9), ("Atelectasis", 0.7),
    ]  # fmt: skip


def test_failures_have_a_row_with_their_reason_and_no_value() -> None:
    lines = read(
        results_csv(
            [
                record(status="failed", phase="fit", reason="no memory"),
                record(seed=1, not_applicable={"top-1": "no links"}),
            ]
        )
    )
    assert [(line["status"], line["metric"], line["value"], line["reason"]) for line in lines] == [
        ("failed", "", "", "no memory (in fit)"), ("not-applicable", "top-1", "", "no links"),
    ]  # fmt: skip


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", " =", "\n+"])
def test_text_that_a_spreadsheet_would_run_is_neutralised(start: str) -> None:
    text = f"{start}cmd()"
    line = read(results_csv([record(method=text, scores={"reid-auc": auc(0.9)})]))[0]
    assert line["method"] == f"'{text}"


def test_negative_numbers_stay_numbers() -> None:
    assert float(read(results_csv([record(scores={"x": score(-1.5)})]))[0]["value"]) == -1.5


def test_the_json_gives_the_records_back() -> None:
    records = [record(scores={"reid-auc": auc(0.9)}), record(seed=1, status="failed", reason="x")]
    content = json.loads(results_json(records))
    assert [Record.model_validate(one) for one in content["records"]] == records


def test_the_table_holds_the_probability_under_chance() -> None:
    made = record(scores={"reid-auc": auc(0.7).model_copy(update={"p": 0.003})})
    assert next(csv.DictReader(io.StringIO(results_csv([made]))))["p"] == "0.003"
