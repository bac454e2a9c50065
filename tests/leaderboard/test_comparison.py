from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from made.board_records import dataset, keyed, record, score
from scipy.stats import binom

from bench.cli import main
from bench.results.record_parts import replicates_record
from bench.results.records import Record, ScoreRecord
from bench.results.results import Results
from bench.statistics.confidence_intervals import holm, one_of_many, paired, rank_intervals
from bench.types import Replicates
from leaderboard.board import rows
from leaderboard.comparison import Difference, compared, ranked


def replicates(middle: float, *, keys: int = 3, people: str = "0" * 16, seed: int = 0) -> Replicates:
    """Keys and people that all figures have in common, and a little of their own."""
    common, own = np.random.default_rng(0), np.random.default_rng(seed)
    by_key = middle + 0.05 * common.standard_normal(keys) + 0.005 * own.standard_normal(keys)
    moved = 0.05 * common.standard_normal(50) + 0.005 * own.standard_normal((keys, 50))
    return Replicates(by_key.tolist(), (by_key[:, None] + moved).tolist(), 49, people)


def figure(middle: float, **more: object) -> ScoreRecord:
    found = replicates(middle, seed=int(1000 * middle), **more)  # type: ignore[arg-type]
    made = score(float(np.mean(found.by_key)), middle - 0.1, middle + 0.1, better="higher", null=0.5, unit="AUC")
    return made.model_copy(update={"replicates": replicates_record(found)})


def cell(method: str, middle: float, **more: object) -> Record:
    own = {name: more.pop(name) for name in ("keys", "people") if name in more}
    return record(method, "utility", {"utility-auc": figure(middle, **own)}, kind="utility", **more)


def test_what_intervals_that_overlap_hide_is_seen_on_the_same_people() -> None:
    a, b = rows([cell("a", 0.80), cell("b", 0.75)])
    one = compared(a, b, ["utility-auc"])[0]
    assert one.paired is not None
    assert one.paired.low < 0.05 < one.paired.high
    assert one.paired.low > 0.02
    assert one.paired.p < 0.01


def test_p_is_where_the_interval_leaves_out_no_difference() -> None:
    random = np.random.default_rng(1)
    for size in (0.5, 1.0, 2.0):
        by_key = (size + random.standard_normal(5)).tolist()
        resampled = (np.array(by_key)[:, None] + random.standard_normal((5, 40))).tolist()
        found = paired(Replicates(by_key, resampled, 39, "x"), Replicates([0.0] * 5, [[0.0] * 40] * 5, 39, "x"))
        assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_guesses_are_compared_as_a_ratio() -> None:
    many, few = (
        Replicates([scale, 2 * scale], [[scale, scale], [2 * scale] * 2], 9, "x", "log") for scale in (10.0, 2.0)
    )
    found = paired(many, few)
    assert found.ratio
    assert found.value == pytest.approx(5)


def test_a_ratio_beyond_floats_is_turned_round_all_the_same() -> None:
    few, many = (Replicates([value] * 3, [[value] * 4] * 3, 9, "x", "log") for value in (1e-300, 1e300))
    found = one_of_many(few, many)
    apart = Difference(found.p, found.value, found.low, found.high, found.ratio)
    assert 0 < apart.value < 1e-300
    assert apart.turned.turned.value == pytest.approx(apart.value)
    assert one_of_many(many, few).value == pytest.approx(apart.turned.value)


def test_nothing_that_varies_is_no_proof() -> None:
    one, other = (Replicates([value] * 5, [[value] * 4] * 5, 9, "x") for value in (0.5, 0.6))
    assert paired(one, other).p == 2**-4
    assert paired(one, one).p == 1


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (cell("b", 0.8, keys=2), "as many keys are needed on both sides, got 3 and 2"),
        (cell("b", 0.8, people="1" * 16), "other people"),
        (cell("b", 0.8, seed=1), "seed differ"),
        (cell("b", 0.8, dataset=dataset(rows={"private": 1})), "rows or fingerprints differ"),
        (record("b", "utility", {"utility-auc": score(0.8)}, kind="utility"), "keeps no replicates"),
    ],
)
def test_what_cannot_be_compared_says_why(other: Record, why: str) -> None:
    a, b = (rows([each])[0] for each in (cell("a", 0.8), other))
    found = compared(a, b, ["utility-auc"])[0]
    assert found.paired is None
    assert why in found.reason


def test_ranks_hold_what_pairs_tell_apart() -> None:
    made = ranked(rows([cell("a", 0.9), cell("b", 0.8), cell("c", 0.7995), cell("d", 0.7, keys=2)]), "utility-auc")
    assert made is not None
    assert made.ranks == {"a": (1, 1), "b": (2, 3), "c": (2, 3)}
    assert list(made.left_out) == ["d"]


def test_most_rows_that_speak_of_the_same_people_are_ranked_whichever_comes_first() -> None:
    others = [cell(name, middle) for name, middle in (("b", 0.8), ("c", 0.7), ("d", 0.6))]
    made = ranked(rows([cell("a", 0.9, people="1" * 16), *others]), "utility-auc")
    assert made is not None
    assert made.ranks == {"b": (1, 1), "c": (2, 2), "d": (3, 3)}
    assert "other people" in made.left_out["a"]


def test_one_key_gives_a_difference_that_says_so_and_no_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lone = [cell(name, middle, keys=1) for name, middle in (("a", 0.9), ("b", 0.7))]
    assert ranked(rows(lone), "utility-auc") is None
    for number, each in enumerate(lone):
        Results(tmp_path).keep(keyed(each, cell=f"synth-cxr/{number}"), {})
    assert main(["compare", "a", "b", "--results", str(tmp_path)]) == 0
    assert (
        "one key only, so their intervals leave out how keys and trainings vary: Utility AUC" in capsys.readouterr().out
    )


def test_equal_methods_are_told_apart_in_one_board_of_twenty() -> None:
    """Six methods that differ by keys alone, three keys each: the least certain case."""
    random, wrong = np.random.default_rng(0), 0
    repeats, people = 60, 60
    for _ in range(repeats):
        shared, times = random.standard_normal(people), random.multinomial(people, [1 / people] * people, 50) / people
        made = {}
        for name in "abcdef":
            own = shared + random.standard_normal((3, 1)) * 0.2 + random.standard_normal((3, people))
            made[name] = Replicates(own.mean(axis=1).tolist(), (own @ times.T).tolist(), 49, "x")
        pairs = {(a, b): one_of_many(made[a], made[b]).p for a, b in combinations(made, 2)}
        wrong += min(holm(pairs).values()) < 0.05
    assert wrong <= binom.isf(1e-3, repeats, 0.05)


def test_holm_rejects_no_more_than_bonferroni_and_ranks_of_equals_are_all() -> None:
    ps = {("a", "b"): 0.02, ("a", "c"): 0.03, ("b", "c"): 0.9}
    assert all(ps[name] <= holm(ps)[name] <= min(1.0, 3 * ps[name]) for name in ps)
    assert rank_intervals({"a": 1.0, "b": 2.0}, {("a", "b"): 1.0}) == {"a": (1, 2), "b": (1, 2)}


def test_the_command_compares_two_and_ranks_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, (name, middle) in enumerate((("a", 0.9), ("b", 0.7), ("c", 0.6))):
        Results(tmp_path).keep(keyed(cell(name, middle, parameters={"scale": 20.0}), cell=f"synth-cxr/{number}"), {})
    rest = ["--results", str(tmp_path)]
    assert main(["compare", "a[scale=20]", "b", *rest]) == 0
    printed = capsys.readouterr().out
    assert "Utility AUC" in printed
    assert "First a[scale=20.0], second b[scale=20.0]" in " ".join(printed.split())
    assert main(["compare", *rest]) == 0
    ranked = " ".join(capsys.readouterr().out.split())
    assert [f"rank {place}" in ranked for place in (1, 2, 3)] == [True, True, True]
    assert "corrected for all pairs of methods (Holm)" in ranked
    assert main(["compare", "a", "absent", *rest]) == 2
    assert "no record is of 'absent'; there are a[scale=20.0]" in capsys.readouterr().err
    assert main(["compare", "a", *rest]) == 2
    assert main(["compare", "a", "b", "--metric", "utility", *rest]) == 2
    assert "utility-auc" in capsys.readouterr().err
