"""A further try at a row is counted and shown, and replaces none that stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made.current_records import current

from bench.api import boards
from bench.results.bundle import ENDING, pack
from bench.results.records import Record, proved
from bench.results.results import Results
from bench.results.verdict import Judged, JudgedRow, Tier, Verdict
from bench.workbench.inputs import PROTOCOL
from leaderboard import published
from leaderboard.api import MANIFEST
from leaderboard.intake import Draws, Intake, intake
from leaderboard.site import build

DAY = "2025-01-02T03:04:05+00:00"
OLD, NEW = "2025-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"


def keep(folder: Path, *records: Record) -> Results:
    results = Results(folder)
    for record in records:
        results.keep(record, {})
    return results


def judging(created: str, *records: Record, tier: Tier = Tier.RE_RUN, draw: int | None = None) -> Verdict:
    rows = {
        each.cell: JudgedRow(
            records={each.evaluator: Judged(digest=str(proved(each).digest), tier=tier, reason="")}, controls={},
            protocol=PROTOCOL, said=[], draw=draw,
        )
        for each in records
    }  # fmt: skip
    return Verdict(bundle="0" * 64, rows=rows, protocol=PROTOCOL, verified_by="a test", created=created)


def seed(number: int, **more: Any) -> Record:
    """The row of a method that others handed in, under a seed."""
    return current("dp-simple", seed=number, **more)


def shown(taken: Intake) -> list[tuple[int, str, int]]:
    return [(row.seed, row.created, row.submissions) for row in taken.rows if row.method == "dp-simple"]


@pytest.mark.parametrize("cells", [(0, 0), (0, 7)])  # the same cell again, or the same row under another seed
def test_the_row_that_was_judged_first_stands_whatever_its_author_dates(tmp_path: Path, cells: Sequence[int]) -> None:
    first, second = seed(cells[0], created=NEW), seed(cells[1], created=OLD, keys=6)
    own = keep(tmp_path / "own", current("noise"))
    sources = keep(tmp_path / "a", second), keep(tmp_path / "b", first)
    verdicts = judging("2026-05-01T00:00:00+00:00", first), judging("2026-05-02T00:00:00+00:00", second)
    for order in (verdicts, verdicts[::-1]):
        taken = intake(own, *sources, verdicts=order)
        assert shown(taken) == [(cells[0], NEW, 2)]
        (left,) = taken.refused
        assert left.why == "superseded"
        assert "Handed in 2 times" in " ".join(taken.rows[0].checks + taken.rows[-1].checks)


def test_one_that_was_checked_further_replaces_it(tmp_path: Path) -> None:
    first, second = seed(0), seed(7)
    own = keep(tmp_path / "own", current("noise"))
    sources = keep(tmp_path / "a", first), keep(tmp_path / "b", second)
    verdicts = judging("2026-05-01", first), judging("2026-05-02", second, tier=Tier.SEALED)
    assert [row[0] for row in shown(intake(own, *sources, verdicts=verdicts))] == [7]


def test_seeds_of_one_bundle_and_other_choices_are_no_further_tries(tmp_path: Path) -> None:
    own = keep(tmp_path / "own", current("noise"), seed(3))
    one = keep(tmp_path / "a", seed(0), seed(1))
    other = keep(tmp_path / "b", current("dp-simple[scale=7]", seed=9))
    assert sorted(shown(intake(own, one, other))) == [
        (0, DAY, 1),
        (1, DAY, 1),
        (3, DAY, 0),
        (9, DAY, 1),
    ]


def bundled(folder: Path, name: str, *records: Record) -> None:
    results = keep(folder / f"{name}.folder", *records)
    files = {each.relative_to(results.root).as_posix(): each.read_bytes() for each in results.root.rglob("*.json")}
    pack(folder / f"{name}{ENDING}", files, "a test", None)


def test_a_withdrawn_bundle_is_counted_and_its_reason_shown(tmp_path: Path) -> None:
    bundled(tmp_path, "one", seed(0))
    bundled(tmp_path, "two", seed(7))
    note = tmp_path / "one.withdrawn.txt"
    note.write_text(" \n")
    assert len(published.submitted(tmp_path)[0]) == 2  # no reason, no withdrawal
    note.write_text("a wrong\u202e parameter\n")
    sources, refused = published.submitted(tmp_path)
    assert [name for name, _ in refused] == [f"one{ENDING}"]
    assert "withdrawn: a wrong" in refused[0][1]
    own = keep(tmp_path / "own", current("noise"))
    taken = intake(own, *sources, withdrawn=published.withdrawn(tmp_path))
    assert [(number, tries) for number, _, tries in shown(taken)] == [(7, 2)]
    site = build(own, tmp_path / "site", *sources, withdrawn=published.withdrawn(tmp_path)).parent
    rows = {row["method"]: row for row in json.loads((site / MANIFEST).read_text())["rows"]}
    assert rows["dp-simple"]["submissions"] == 2
    assert rows["noise"]["submissions"] == 0
    assert any("Handed in 2 times" in text for text in rows["dp-simple"]["checks"])
    page = next((site / "cells").glob("dp-simple-*.html")).read_text()
    assert "Handed in 2 times" in page


def test_draws_without_an_answer_are_shown_on_the_row(tmp_path: Path) -> None:
    one = seed(0)
    own, theirs = keep(tmp_path / "own", current("noise")), keep(tmp_path / "a", one)
    place = str(one.choice["dataset"]), one.preset
    draws = Draws(
        {
            ("name", one.method.name, one.method.origin, *place): frozenset({4, 5}),
            ("code", one.method.code, *place): frozenset({4, 6}),  # under another name
            ("key", "author", *place): frozenset({4, 7, 8}), ("key", "another", *place): frozenset({9}),
            ("key", "author", "another set", one.preset): frozenset({10}),
        },
        keys={4: "author", 9: "another"}, answered=frozenset({4, 6}),
    )  # fmt: skip
    told = judging("2026-05-01", one, draw=4)
    (row,) = (row for row in intake(own, theirs, verdicts=(told,), draws=draws).rows if row.checks)
    assert "follow from draw 4 of the board" in row.checks[0]
    assert row.checks[1].endswith("or of this author's key: 5, of these 3 unanswered.")
    renamed = replace(draws, handed={name: numbers for name, numbers in draws.handed.items() if name[0] != "name"})
    (row,) = (row for row in intake(own, theirs, verdicts=(told,), draws=renamed).rows if row.checks)
    assert row.checks[1].endswith(": 4, of these 2 unanswered.")
    (row,) = (row for row in intake(own, theirs).rows if row.checks)
    assert row.checks == ("Its author chose the run secret, and could have handed in the best of many.",)
    assert row.tiers == {one.evaluator: "self-reported"}


def test_a_board_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    results = keep(tmp_path / "results", current("noise"), current("identity"))
    altered = next((results.root / "cells").rglob("*.json"))
    altered.write_text(altered.read_text().replace("cpu", "gpu"))
    _, refused = boards.build_board(results.root, tmp_path / "site")
    assert [name for name, _ in refused] == [altered.relative_to(results.root).as_posix()]
    assert str(tmp_path) not in "".join(reason for _, reason in refused)
    for page in (tmp_path / "site").rglob("*.json"):
        assert str(tmp_path) not in page.read_text()


@pytest.mark.parametrize("created", ["2099-01-01T00:00:00+00:00", "tomorrow", ""])
def test_a_record_of_the_future_stands_on_no_board(tmp_path: Path, created: str) -> None:
    results = keep(tmp_path / "r", current("noise"), seed(0, created=created))
    taken = intake(results)
    assert [row.method for row in taken.rows] == ["noise"]
    assert [(one.why, one.reason) for one in taken.refused] == [
        ("unfit", "it says no time of the past as when it was made")
    ]
    assert [name for name, _ in results.problems()] == [one.name for one in taken.refused]
