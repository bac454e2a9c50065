from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from made.board_records import guesswork, record
from pydantic import ValidationError

from bench.contract.seal import ContractError
from bench.results import signed_json
from bench.results.records import (
    ClaimRecord,
    Record,
    RecordError,
    claim_record,
    dumps,
    json_schema,
    loads,
    metric_record,
    proved,
    score_record,
)
from bench.results.results import Results
from bench.runs.judge import judge
from bench.types import CAVEAT, PrivacyClaim, Score, column_of
from metrics.guesswork import Guesswork


def rewritten(content: dict[str, object]) -> str:
    """The content as somebody writes it who knows how digests are made."""
    return signed_json.written(signed_json.attest(content, "record")).decode()


def test_a_record_survives_writing_and_reading() -> None:
    made = record()
    assert loads(dumps(made), "x.json") == proved(made)
    assert list(json.loads(dumps(made))) == sorted(json.loads(dumps(made)))


def test_the_caveat_of_a_scheme_is_the_records() -> None:
    assert record(scheme={CAVEAT: "briefly trained", "epochs": 3}).caveat == "briefly trained"
    assert record(scheme={"epochs": 3}).caveat == record(scheme={CAVEAT: 3}).caveat == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "fine"}, "status"),
        ({"schema": 99}, "schema"),
        ({"surprise": 1}, "surprise"),
        ({"seed": None}, "seed"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], message: str) -> None:
    text = rewritten({**json.loads(dumps(record())), **change})
    with pytest.raises(RecordError, match=message):
        loads(text, "x.json")


def test_what_a_metric_says_of_itself_survives_writing_and_reading() -> None:
    column = column_of(Guesswork)
    told = loads(dumps(record(scores={"guesswork": guesswork(2)})), "x.json").metrics["guesswork"]
    assert told == metric_record(Guesswork, "guesswork")
    assert (told.title, told.meaning, told.digits, told.chance) == (
        column.title, column.meaning, column.digits, column.chance,
    )  # fmt: skip
    assert (told.group, told.order, told.better, told.unit) == (column.group, column.order, "higher", "guesses")


@pytest.mark.parametrize("field", ["scores", "not_applicable"])
def test_a_figure_that_no_metric_describes_is_refused(field: str) -> None:
    made = json.loads(dumps(record(scores={"guesswork": guesswork(2)}, not_applicable={"top-1": "no links"})))
    name = next(iter(made[field]))
    del made["metrics"][name]
    with pytest.raises(RecordError, match=f"say nothing of {name}"):
        loads(rewritten(made), "x.json")


UNSOUND: list[tuple[dict[str, object], str]] = [
    ({"value": 9.0}, "the figure 9.0 lies outside its interval, 1.0 to 4.0"),
    ({"low": 4.0, "high": 1.0}, "the interval is upside down: low 4.0, high 1.0"),
    ({"null_low": 400.0}, "the interval is upside down: null_low 400.0, null_high 362.0"),
    ({"value": float("nan")}, "finite"),
    ({"high": float("inf")}, "finite"),
    ({"p": 1.5}, "p must be a probability"),
    ({"low": None, "high": None}, "a score without an interval must say why"),
]


@pytest.mark.parametrize(("change", "said"), UNSOUND)
@pytest.mark.parametrize("part", [False, True])
def test_a_record_is_held_to_the_rule_of_its_metrics(change: dict[str, object], said: str, part: bool) -> None:
    content = json.loads(dumps(record(scores={"guesswork": guesswork(2)})))
    whole = content["scores"]["guesswork"]
    if part and said.startswith("a score without"):
        return  # parts say it with the whole
    content["scores"]["guesswork"] = {**whole, "parts": {"one": {**whole, **change}}} if part else {**whole, **change}
    with pytest.raises(RecordError, match=f"guesswork.*{'one.*' if part else ''}{said}"):
        loads(rewritten(content), "x.json")


def test_a_metric_without_a_column_has_no_record() -> None:
    with pytest.raises(TypeError, match=r"str carries no column.*add `column: ClassVar\[Column\]"):
        metric_record(str, "str")


NAN, FAR = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (Score(NAN, None, None, 1, note="none"), "value must be finite, got nan"),
        (Score(0.5, 0.1, FAR, 1), "high must be finite, got inf"),
        (Score(0.5, NAN, 0.9, 1), "low must be finite, got nan"),
        (Score(0.5, 0.9, 0.1, 1), "the interval is upside down: low 0.9, high 0.1"),
        (Score(0.95, 0.1, 0.9, 1), "the figure 0.95 lies outside its interval, 0.1 to 0.9"),
        (Score(0.05, 0.1, None, 1), "the figure 0.05 lies outside its interval, 0.1 to None"),
        (Score(0.5, 0.4, 0.6, 1, null_low=0.6, null_high=0.4), "upside down: null_low"),
        (Score(0.5, 0.4, 0.6, 1, p=1.5), "p must be a probability"),
        (Score(0.5, 0.4, 0.6, 1, parts={"first": Score(0.5, 0.6, 0.7, 1)}), "the figure 0.5 lies outside"),
        (Score("0.5", 0.4, 0.6, 1), "value must be a plain number"),  # type: ignore[arg-type]
        (Score(0.5, None, None, 1), "must say why in its note"),
        (0.5, "must return a Score, got float"),
    ],
)
def test_a_score_that_is_not_sound_never_becomes_a_record(score: Score, said: str) -> None:
    """By the rule of `bench check`, and whichever finding it is of."""
    with pytest.raises(ContractError, match=re.escape(said)):
        score_record(score, better="higher", unit="AUC")
    with pytest.raises(ContractError, match=re.escape(said)):
        judge(cast(Any, lambda part: score), {"first": 0, "second": 0})


def test_a_figure_may_leave_its_interval_by_as_much_as_sums_are_rounded() -> None:
    assert score_record(Score(4.198222448021554, 4.198222448021589, 4.2, 1), better="higher", unit="").low is not None


def test_an_infinite_claim_is_null() -> None:
    found = claim_record(PrivacyClaim("image", float("inf"), 0.0, "none", "no clip"))
    assert found is not None
    assert found.epsilon is None


def test_a_claim_from_before_units_were_told_is_written_as_it_was_read() -> None:
    new = claim_record(PrivacyClaim("pixel", 1.0, 0.0, "none", "a paper", units=16))
    old = {name: value for name, value in new.model_dump().items() if name != "units"}
    assert ClaimRecord.model_validate(old).model_dump() == old
    assert (new.model_dump()["units"], new.per) == (16, "16 pixels")
    assert ClaimRecord.model_validate(old).per == "pixel"


@pytest.mark.parametrize(
    "said",
    [{"units": 0}, {"units": -1}, {"units": 10**4000}, {"units": "3"}, {"units": True}, {"epsilon": -1.0},
     {"derived": 0.0}, {"delta": 7.0}],
)  # fmt: skip
def test_a_claim_of_what_cannot_be_is_refused(said: dict[str, Any]) -> None:
    sound = claim_record(PrivacyClaim("pixel", 1.0, 0.0, "none", "a paper", units=16)).model_dump()
    with pytest.raises(ValidationError, match=next(iter(said))):
        ClaimRecord.model_validate({**sound, **said})


@pytest.mark.parametrize("units", [0, 1.5, True, 2**70])
def test_a_method_claims_for_a_whole_number_of_units(units: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="units must be"):
        PrivacyClaim("pixel", 1.0, 0.0, "none", "a paper", units=units)


def test_a_derived_bound_stands_beside_the_claimed_one_and_is_the_same_unless_told() -> None:
    told = claim_record(PrivacyClaim("image", 1.0, 0.0, "none", "a paper", derived=2.0))
    untold = claim_record(PrivacyClaim("image", 1.0, 0.0, "none", "a paper"))
    assert told is not None and untold is not None  # noqa: PT018
    assert (told.epsilon, told.derived, untold.derived) == (1, 2, 1)


def test_one_broken_file_does_not_hide_the_others(tmp_path: Path) -> None:
    Results(tmp_path).keep(record(evaluator="b", cell="d/c"), {})
    (tmp_path / "cells" / "d" / "c" / "a.json").write_text("{not json")
    found = [result for _, result in Results(tmp_path).records()]
    assert isinstance(found[0], RecordError)
    assert isinstance(found[1], Record)


def test_the_published_schema_accepts_what_is_written() -> None:
    schema = json_schema()
    assert set(json.loads(dumps(record()))) <= set(schema["properties"])  # type: ignore[arg-type]
