from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.contract.source import DataError
from bench.data.prepared import Prepared, connect, part_codes
from bench.data.sample_array import digest
from bench.data.scorable import FLOOR, MINIMUM_CASES, balance, balanced_rows, equal_classes, scorable
from bench.data.splits import SHARES, Splits, cut, draw, split
from bench.types import Dataset


def pixels(contents: list[int]) -> np.ndarray:
    """Rows of 1x2x2 pixels: equal contents are equal images."""
    return np.array(contents, dtype=np.uint32).view(np.uint8).reshape(-1, 1, 2, 2)


def made(subjects: list[int], contents: list[int], name: str = "made") -> Prepared:
    samples = pixels(contents)
    people = np.array(subjects, dtype=np.int64)
    digests = np.stack([digest(row) for row in samples])
    labels = np.zeros((len(samples), 1), dtype=np.float32)
    groups = connect(people, digests)
    return Prepared(
        name,
        samples,
        labels,
        people,
        groups,
        digests,
        ("x",),
        False,
        True,
        None,
        None,
        "",
        2,
        0,
        "",
        (),
        name,
        Path("nowhere"),
    )


def plain(n: int, name: str = "made", *, each: int = 2, first: int = 0) -> Prepared:
    """n different images, `each` of them a person's."""
    return made([row // each for row in range(n)], [first + row for row in range(n)], name)


def sides(parts: Splits, prepared: Prepared) -> list[tuple[set[int], set[bytes]]]:
    """People and contents of private, control and test."""
    found = []
    for part in ("private", "control", "test"):
        rows = parts.rows[part]
        assert prepared.subjects is not None
        found.append((set(prepared.subjects[rows].tolist()), {prepared.digests[row].tobytes() for row in rows}))
    return found


def disjoint(sets: list[set[int]] | list[set[bytes]]) -> bool:
    return sum(map(len, sets)) == len(set().union(*sets))  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    people=st.lists(st.integers(0, 40), min_size=60, max_size=120),
    copies=st.lists(st.tuples(st.integers(0, 59), st.integers(0, 200)), max_size=10),
    seed=st.integers(0, 5),
    own=st.booleans(),
)
def test_no_person_and_no_image_stands_on_two_sides(
    people: list[int], copies: list[tuple[int, int]], seed: int, own: bool
) -> None:
    contents = list(range(1000, 1000 + len(people)))
    for row, content in copies:
        contents[row] = content
    assume(len(set(connect(np.array(people), np.stack([digest(row) for row in pixels(contents)])).tolist())) > 12)
    prepared = made(people, contents)
    public = None if own else plain(100, "other", first=40)
    parts = split(prepared, public, seed=seed, limit=None, public_limit=None)
    found = sides(parts, prepared)
    source = prepared if public is None else public
    shown = {source.digests[row].tobytes() for row in parts.rows["public"]}
    assert disjoint([people for people, _ in found])
    assert disjoint([*(contents for _, contents in found), shown])
    if public is None:
        assert prepared.subjects is not None
        assert disjoint([set(prepared.subjects[parts.rows["public"]].tolist()), *(people for people, _ in found)])
        assert sum(parts.counts.values()) == len(prepared)
    else:
        assert parts.public_removed == 100 - parts.counts["public"]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    groups=st.lists(st.integers(0, 60), min_size=1, max_size=200),
    limit=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_drawing_keeps_whole_groups_within_the_limit(groups: list[int], limit: int, seed: int) -> None:
    numbers = np.array(groups, dtype=np.int64)
    rows = draw(numbers, np.arange(len(numbers)), limit, seed)
    assert len(rows) <= limit
    assert set(numbers[rows]).isdisjoint(np.delete(numbers, rows))


def test_shares_are_sixty_twenty_twenty_by_images_not_by_people() -> None:
    groups = np.repeat(np.arange(300), np.random.default_rng(0).integers(1, 8, 300))
    parts = cut(groups, SHARES, 0)
    for part, share in SHARES.items():
        assert abs(len(parts[part]) - share * len(groups)) <= 8


def test_own_public_part_is_a_third_and_the_rest_is_sixty_twenty_twenty() -> None:
    parts = split(plain(240), None, seed=0, limit=None, public_limit=None)
    assert parts.counts == {"public": 80, "private": 96, "control": 32, "test": 32}


def test_parts_hold_the_rows_they_name() -> None:
    prepared = plain(100)
    public = plain(50, "other", first=150)
    parts = split(prepared, public, seed=3, limit=None, public_limit=None)
    for part, dataset in (("private", parts.private), ("control", parts.control), ("test", parts.test)):
        expected = prepared.samples[parts.rows[part]].astype(np.float32) / 255
        np.testing.assert_array_equal(dataset.samples.numpy(), expected)
    assert parts.public.name == "other"
    assert parts.counts == {"public": 50, "private": 60, "control": 20, "test": 20}


def test_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    first, again, other = (
        split(plain(100), None, seed=seed, limit=None, public_limit=None).rows["private"].tolist() for seed in (1, 1, 2)
    )
    assert first == again != other


def test_limits_draw_from_the_sides_without_moving_anyone() -> None:
    prepared = plain(240)
    whole = split(prepared, None, seed=0, limit=None, public_limit=None)
    small = split(prepared, None, seed=0, limit=30, public_limit=20)
    assert small.counts == {"public": 20, "private": 30, "control": 10, "test": 10}
    for part in small.rows:
        assert set(small.rows[part]) <= set(whole.rows[part])


def test_public_rows_identical_to_any_row_of_the_private_set_are_removed_and_counted() -> None:
    parts = split(plain(100), plain(100, "other", first=90), seed=0, limit=30, public_limit=None)
    assert parts.public_removed == 10
    assert parts.counts["public"] == 90


def test_two_sets_of_one_origin_are_refused() -> None:
    public = replace(plain(100, "copy"), origin="made")
    with pytest.raises(DataError, match="copy cannot be the public set of made: both come from made"):
        split(plain(100), public, seed=0, limit=None, public_limit=None)


def test_sets_of_different_sizes_are_refused() -> None:
    public = replace(plain(10, "other"), samples=np.zeros((10, 1, 3, 3), np.uint8))
    with pytest.raises(DataError, match=r"\(1, 2, 2\), its public set other of \(1, 3, 3\)"):
        split(plain(100), public, seed=0, limit=None, public_limit=None)


def test_part_without_rows_is_refused_with_counts() -> None:
    giant = made([0] * 50, list(range(50)))
    with pytest.raises(DataError, match=r"no row is left for control and test \(public .*50 rows in 1 groups"):
        split(giant, plain(10, "other", first=100), seed=0, limit=None, public_limit=None)


def test_limit_below_every_group_is_refused() -> None:
    with pytest.raises(DataError, match=r"the largest of 5; limits .*'private': 3"):
        split(plain(200, each=5), None, seed=0, limit=3, public_limit=None)


def test_public_set_of_only_shared_images_is_refused() -> None:
    with pytest.raises(DataError, match=r"no row is left for public.*10 public rows removed"):
        split(plain(100), plain(10, "other"), seed=0, limit=None, public_limit=None)


@pytest.mark.parametrize(("limit", "public_limit"), [(0, None), (None, 0)])
def test_limits_below_one_are_refused(limit: int | None, public_limit: int | None) -> None:
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        split(plain(100), None, seed=0, limit=limit, public_limit=public_limit)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    marks=st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, float("nan")])] * 2), min_size=1, max_size=60),
    seed=st.integers(0, 9),
)
def test_balancing_leaves_as_many_of_either_class_as_the_rarer_one_has_and_changes_no_label(
    marks: list[tuple[float, float]], seed: int
) -> None:
    labels = torch.tensor(marks)
    before = labels.clone()
    balanced = balance(labels, seed, exclusive=False)
    torch.testing.assert_close(labels, before, equal_nan=True)
    rarer = torch.minimum((labels == 1).sum(dim=0), (labels == 0).sum(dim=0))
    for value in (0, 1):
        assert ((balanced == value) <= (labels == value)).all()
        assert torch.equal((balanced == value).sum(dim=0), rarer)


def test_balancing_draws_by_seed_and_by_finding() -> None:
    labels = torch.zeros(200, 2)
    labels[:50] = 1
    first, again, other = (balance(labels, seed, exclusive=False) for seed in (0, 0, 1))
    torch.testing.assert_close(first, again, equal_nan=True)
    assert not torch.equal(first.isnan(), other.isnan())
    assert not torch.equal(first[:, 0].isnan(), first[:, 1].isnan())


def test_exclusive_classes_are_cut_to_the_size_of_the_smallest() -> None:
    labels = torch.eye(3)[[0] * 20 + [1] * 9 + [2] * 6]
    found = equal_classes(labels, 0)
    kept = ~found.isnan().any(dim=1)
    assert found[kept].sum(dim=0).tolist() == [6, 6, 6]
    assert torch.equal(found[kept], labels[kept])
    assert found[~kept].isnan().all()
    assert not torch.equal(found.isnan(), equal_classes(labels, 1).isnan())
    equal = torch.eye(3)[[0, 1, 2] * 4]
    assert torch.equal(equal_classes(equal, 0), equal)


def test_a_tiny_class_loses_its_labels_rather_than_take_those_of_all_others() -> None:
    labels = torch.eye(4)[[0] * 20 + [1] * 9 + [2] * (FLOOR - 1)]  # no row is of the fourth class
    found = equal_classes(labels, 0)
    assert found.nan_to_num().sum(dim=0).tolist() == [9, 9, 0, 0]
    rows = balanced_rows(found, 0)
    assert labels[rows].sum(dim=0).tolist() == [9, 9, 0, 0]
    few = torch.eye(2)[[0] * 9 + [1] * 2]  # with one class alone there would be nothing to learn
    assert equal_classes(few, 0).nan_to_num().sum(dim=0).tolist() == [2, 2]


def test_exclusive_labels_are_not_balanced() -> None:
    labels = torch.eye(3)[[0, 0, 0, 1, 2]]
    assert torch.equal(balance(labels, 0, exclusive=True), labels)


def official(n: int, parts: list[str]) -> Prepared:
    return replace(plain(n), parts=part_codes(parts))


def test_official_test_rows_stay_together_and_their_people_leave_the_other_sides() -> None:
    parts = ["train"] * 60 + ["val"] * 20 + ["test"] * 19 + ["train"]  # the last person stands on both sides
    prepared = official(100, parts)
    found = split(prepared, None, seed=0, limit=None, public_limit=None, official=True)
    assert found.rows["test"].tolist() == list(range(80, 99))
    others = np.concatenate([found.rows[part] for part in ("public", "private", "control")])
    assert sorted(others.tolist()) == list(range(80))
    assert len(found.rows["private"]) == pytest.approx(80 * 0.5, abs=2)  # .4 of .8
    assert found.notes[1].startswith("1 rows of the other official parts were left out")


def test_official_validation_rows_are_test_rows_where_there_are_no_others() -> None:
    found = split(
        official(40, ["train"] * 30 + ["val"] * 10), None, seed=0, limit=None, public_limit=None, official=True
    )
    assert found.rows["test"].tolist() == list(range(30, 40))


@pytest.mark.parametrize(
    ("prepared", "reason"), [(plain(20), "no official parts"), (official(20, [""] * 20), "no row")]
)
def test_official_split_of_a_set_without_one_is_an_error(prepared: Prepared, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        split(prepared, None, seed=0, limit=None, public_limit=None, official=True)


def test_nobody_is_set_aside_where_no_public_rows_are_wanted() -> None:
    parts = split(plain(240), None, seed=0, limit=None, public_limit=20, aside=False)
    assert parts.counts == {"public": 0, "private": 144, "control": 48, "test": 48}
    assert parts.public.samples.shape[1:] == parts.private.samples.shape[1:]


def test_rows_of_no_official_part_are_left_out_and_counted() -> None:
    prepared = official(50, ["train"] * 30 + ["test"] * 10 + [""] * 10)
    found = split(prepared, None, seed=0, limit=None, public_limit=None, official=True)
    assert sum(len(rows) for rows in found.rows.values()) == 40
    assert found.notes[1] == "10 rows that stand in no official part were left out"


def test_findings_of_too_few_cases_leave_all_parts_and_are_noted() -> None:
    labels = torch.zeros(4 * MINIMUM_CASES, 2)
    labels[: 2 * MINIMUM_CASES, 0] = 1.0
    labels[: MINIMUM_CASES - 1, 1] = 1.0
    part = Dataset("made", torch.zeros(len(labels), 4), labels, None, ("common", "rare"), False, True)
    kept, notes = scorable(Splits(part, part, part, part, {}, 0), 0, balanced=False)
    assert [one.findings for one in (kept.public, kept.private, kept.control, kept.test)] == [
        ("common", "rare"), ("common",), ("common",), ("common",),
    ]  # fmt: skip
    assert torch.equal(kept.private.labels, labels[:, :1])
    assert notes == [f"findings with fewer than {MINIMUM_CASES} cases on either side of a split are not scored: rare"]
    whole, none = scorable(Splits(part, *[replace(part, labels=labels[:, :1], findings=("common",))] * 3, {}, 0), 0,
                           balanced=False)  # fmt: skip
    assert (whole.private.findings, none) == (("common",), [])
