from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from made.board_records import auc, claim, dataset, metrics, record, utility
from made.many_records import many

from bench.results.records import Record
from leaderboard.board import missing, rows, telling
from leaderboard.edition import Edition
from leaderboard.environment import ordered
from leaderboard.intake import Intake
from leaderboard.panel import Panel
from leaderboard.sections import sections


def test_evaluators_of_one_cell_become_one_row() -> None:
    board = rows(
        [
            record(scores={"reid-auc": auc(0.9)}),
            record(evaluator="utility", kind="utility", scores={"utility-auc": utility(0.8)}),
        ]
    )
    assert len(board) == 1
    assert (board[0].entries["reid-auc"].text, board[0].entries["utility-auc"].text) == ("0.900", "0.800")


def test_parameters_presets_and_seeds_are_rows_of_their_own() -> None:
    board = rows(
        [record(parameters={"scale": 15}), record(parameters={"scale": 20}), record(seed=1), record(preset="paper")]
    )
    assert [(row.label, row.preset, row.seed) for row in board] == [
        ("dp-simple", "paper", 0), ("dp-simple", "quick", 1), ("dp-simple[scale=15]", "quick", 0),
        ("dp-simple[scale=20]", "quick", 0),
    ]  # fmt: skip


def test_a_row_counts_the_keys_of_its_attacks() -> None:
    few = record(evaluator="a-utility", kind="utility", keys=1)
    assert [row.keys for row in rows([few, record(keys=10)])] == [10]


def test_seeds_are_ordered_as_numbers() -> None:
    assert [row.seed for row in rows([record(seed=10), record(seed=9)])] == [9, 10]


def test_limited_records_never_become_rows() -> None:
    assert rows([record(limit=5)]) == []


def test_the_order_of_the_records_does_not_matter() -> None:
    records = [record(evaluator=name, seed=seed, scores={"reid-auc": auc(0.7)}) for name in "abc" for seed in (0, 1)]
    assert rows(records) == rows(reversed(records))


def test_rows_are_ordered_by_what_the_owner_wants_and_missing_figures_come_last() -> None:
    broken = record("b", status="failed", reason="x")
    others = record("a", scores={"reid-auc": auc(0.9)}), record("c", scores={"reid-auc": auc(0.5)})
    edition = Edition.of(Intake((broken, *others), {}))
    assert [row.method for row in ordered(edition.rows, edition.named["reid-auc"])] == ["c", "a", "b"]


def test_claims_are_told_from_no_claim_and_from_never_reached() -> None:
    texts = {
        row.method: row.claim_text
        for row in rows([
            record("finite", claim=claim(20.0)), record("infinite", claim=claim(None)), record("none"),
            record("broken", status="failed", reason="x"),
        ])
    }  # fmt: skip
    assert texts == {"finite": "20.0", "infinite": "∞", "none": "no claim", "broken": "not reached"}


def test_one_reason_is_told_once_for_all_evaluators_it_stopped() -> None:
    board = rows([record(evaluator=name, status="failed", reason="no memory", phase="fit") for name in "ab"])
    assert [(status, why, what) for _, status, why, what in missing(board)] == [
        ("failed", "no memory (in fit)", ["a", "b"])
    ]


def test_different_fingerprints_are_different_data_sets() -> None:
    found = sections(rows([record("a"), record("b", dataset=dataset(fingerprint="0ther-data"))]))
    assert [len(part.rows) for part in found] == [1, 1]
    assert "0ther-da" in found[0].title


def test_sizes_of_a_data_set_are_told_apart_in_words() -> None:
    small, large = dataset(), dataset(fingerprint="1arge-one", shape=[1, 128, 128])
    alone = large.model_copy(update={"public": "none", "public_fingerprint": "none"})
    made = [
        record("a", dataset=small, cell="a", size=64), record("a", dataset=small, cell="b", size=64, splits="official"),
        record("a", dataset=large, cell="c", size=128), record("a", dataset=alone, cell="d", size=128),
    ]  # fmt: skip
    found = sections(rows(made))
    assert sorted(part.title for part in found) == [
        "synth-cxr at 128 pixels · no public rows",
        f"synth-cxr at 128 pixels · public {large.public}",
        "synth-cxr at 64 pixels · splits official",
        "synth-cxr at 64 pixels · splits own",
    ]
    assert [part.name for part in found] == [part.title for part in found]


def test_data_of_one_fingerprint_that_another_choice_tells_apart_have_different_titles() -> None:
    found = sections(rows([record("a"), record("b", splits="official", cell="b"), record("c", splits="official")]))
    assert len({part.title for part in found}) == len({part.name for part in found}) == len(found) == 2
    assert [part.title.rpartition(" · ")[2] for part in found if len(part.rows) == 2] == ["splits official"]


def test_a_cell_that_never_read_its_data_joins_the_data_set_of_its_folder() -> None:
    broken = record("b", dataset=None, status="failed", reason="file missing", cell="x")
    assert [len(part.rows) for part in sections(rows([record("a"), broken], {"x": "synth-cxr"}))] == [2]
    alone = sections(rows([broken], {"x": "mimic"}))
    assert [(part.title, part.data) for part in alone] == [("mimic", None)]


def test_rows_of_a_method_are_told_apart_by_what_differs() -> None:
    board = rows([record(parameters={"scale": scale, "clip": True}) for scale in (1.0, 2.0)])
    assert [telling(row, board) for row in board] == [{"scale": 1.0}, {"scale": 2.0}]
    assert telling(board[0], board[:1]) == {}


def test_a_metric_that_nobody_asked_for_is_not_run_rather_than_not_applicable() -> None:
    made = record(status="not-applicable", reason="nothing is released", metrics=metrics("guesswork"))
    entries = rows([made, record("other")])[0].entries
    assert (entries["guesswork"].status, entries["patient-guesswork"].status) == ("not-applicable", "not-run")


def test_a_line_tells_what_is_unusual_even_if_all_rows_of_its_method_have_it() -> None:
    usual = {"batch": 128, "channels": None, "depth": 7, "patch_size": 16, "statistics": "batch"}
    variants = [
        row.variant
        for chosen in ({}, {"patch_size": 4})
        for row in Edition.of(Intake((record("neuracrypt", parameters=usual | chosen),), {})).rows
    ]
    assert variants == ["", "patch_size=4"]


def test_a_line_tells_of_another_number_of_keys_than_its_presets() -> None:
    usual = record("dp-simple", parameters={"scale": 3.0, "clip": True})
    more = usual.model_copy(update={"cell": "more-keys", "keys": 33, "choice": {**usual.choice, "keys": 33}})
    made = Edition.of(Intake((usual, more), {})).rows
    assert sorted(row.variant for row in made) == ["scale=3.0, 33 keys, clip=true", "scale=3.0, clip=true"]


def test_controls_are_looked_for_on_the_same_data_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[tuple[Any, Any]] = []

    def panel(records: Sequence[Record], pool: Sequence[Record], *more: Any) -> Panel:
        looked_at.extend((records[0].dataset, other.dataset) for other in pool)
        return Panel((), None, "no attack", "no attack ran")

    monkeypatch.setattr("leaderboard.board.panel", panel)
    made = [record for record in many(1_000) if record.dataset]
    assert len({record.dataset.name for record in made if record.dataset}) > 4
    rows(made)
    assert looked_at
    assert all(mine == other for mine, other in looked_at)
