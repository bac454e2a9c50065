"""Records that earlier code computed are told apart by what records say alone."""

from __future__ import annotations

from made.board_records import auc, record

from bench.results.records import Record
from leaderboard.board import by_earlier_code, rows


def made(method: str, created: str, **codes: str) -> Record:
    inputs = {name.replace("_", " "): code for name, code in codes.items()}
    return record(method, scores={"reid-auc": auc(0.6)}, created=created, inputs=inputs, cell=f"d/{method}")


def test_the_newest_record_says_which_code_counts() -> None:
    old = made("identity", "2025-01-01", attack_code="a")
    new = made("noise", "2025-01-02", attack_code="b")
    assert by_earlier_code([new, old]) == {("d/identity", "contrastive")}
    found = {row.method: row.earlier for row in rows([old, new])}
    assert found == {"identity": {"contrastive"}, "noise": frozenset()}


def test_two_methods_have_code_of_their_own() -> None:
    old, new = made("identity", "2025-01-01", method_code="a"), made("noise", "2025-01-02", method_code="b")
    assert by_earlier_code([old, new]) == frozenset()


def test_values_are_no_code() -> None:
    old, new = made("identity", "2025-01-01", seed="1"), made("noise", "2025-01-02", seed="2")
    assert by_earlier_code([old, new]) == frozenset()


def test_records_that_were_not_measured_again_make_no_other_code_an_earlier_one() -> None:
    """A date is its author's word: old code under a late date would be the newest, and the board's own the earlier."""
    own = made("identity", "2025-01-01", attack_code="a")
    theirs = made("mine", "2025-01-02", attack_code="of before").model_copy(update={"digest": "d" * 64})
    assert by_earlier_code([own, theirs], {"d" * 64}) == {("d/mine", "contrastive")}
    assert by_earlier_code([own, theirs]) == {("d/identity", "contrastive")}
