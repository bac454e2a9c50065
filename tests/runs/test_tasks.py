"""What workers tell is checked on arrival: bounded, plain, and of the form that was asked for, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from made.board_records import dataset
from pydantic import ValidationError

from bench.contract.evaluator import MOST_BYTES
from bench.results.records import DatasetRecord
from bench.runs.tasks import Answer, Evaluation, Fitted, Opened, Progress

ODD = "\x1b[2J\ud800\x07" + "x" * 5000
SCORE = {"value": 1.0, "low": None, "high": None, "n": 1, "null": None, "null_low": None, "null_high": None,
         "p": None, "better": "higher", "unit": ODD, "note": ODD, "parts": {}}  # fmt: skip


def test_texts_and_names_arrive_plain_and_short() -> None:
    unit = {**SCORE, "unit": "rows", "note": "\x1b[31mred"}
    found = Evaluation.model_validate(
        {"not_applicable": {ODD: ODD}, "broken": {"m": ODD}, "threat_model": {ODD: ODD}, "seconds": {ODD: 1.0},
         "scores": {"m": {**unit, "parts": {"\x1b[31mp": unit}}}, "details": {ODD: [ODD, {ODD: ODD}]}}
    )  # fmt: skip
    text = repr(found)
    assert "\x1b" not in text
    assert "x" * 2001 not in text
    assert found.scores["m"].note == "red"
    assert list(found.scores["m"].parts) == ["p"]


def test_what_is_said_of_data_arrives_plain() -> None:
    told = dataset(notes=["\x1b[31mred\x07"])
    record = told if isinstance(told, DatasetRecord) else DatasetRecord.model_validate(told)
    assert Opened(data=record).data.notes == ["red?"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": {"m": {**SCORE, "unit": "a", "note": "", "value": float("nan")}}},
        {"scores": {"m": 1.0}},
        {"scores": [SCORE]},
        {"seconds": {"a": float("inf")}},
        {"seconds": {"a": "soon"}},
        {"seconds": {str(number): 1.0 for number in range(3000)}},
        {"details": {"a": [0] * 30_000}},
        {"details": {str(number): "x" * 2000 for number in range(300)}},
        {"pictures": {"../x": {"caption": "", "png": ""}}},
        {"pictures": {"x": {"caption": "", "png": "!"}}},
        {"pictures": {"x": {"caption": "", "png": "R0lGODlh"}}},
        {"pictures": {"x": {"caption": "", "png": "A" * (2 * MOST_BYTES)}}},
        {"surprise": 1},
    ],
)
def test_an_evaluation_of_another_form_is_refused_without_being_quoted(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        Evaluation.model_validate(wrong)
    assert len(str(error.value)) < 2000


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "ok", "code": "error"},
        {"status": "failed"},
        {"status": "failed", "code": "not-applicable"},
        {"status": "not-applicable", "code": "error"},
        {"status": "timed-out", "code": "timed-out"},
        {"status": "failed", "code": "timed-out"},  # whose words would be said of any data
        {"status": "failed", "code": "p10000032"},
        {"status": "failed", "code": "error", "phase": "p10000032"},
    ],
)
def test_an_answer_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Answer.model_validate({"kind": "answer", **wrong})


def test_steps_beyond_counting_are_refused() -> None:
    with pytest.raises(ValidationError):
        Progress(stage="a", done=1, total=10**30)


def test_a_claim_without_a_form_is_refused() -> None:
    with pytest.raises(ValidationError):
        Fitted.model_validate({"claim": {"unit": "soul"}, "notes": {}, "seconds": 0.0})
