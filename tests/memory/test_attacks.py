"""Attacks that read rows in blocks find on disk what they find in memory, and one that cannot says what it left out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from made.on_disk import BYTES, SIDE, N, found, images
from torch import Tensor

from attacks.absolute_correlation import AbsoluteCorrelation
from attacks.surrogate import VARIANTS
from bench.memory.memory_budget import Budget, TooLargeError
from bench.memory.rows import Rows
from bench.randomness import Secret
from bench.types import Dataset, View
from methods.instahide import InstaHide


@pytest.mark.parametrize(
    "attack",
    [
        "dcr",
        "float-holes",
        "invariants[rows=300]",
        "leverage",
        "likelihood",
        "nearest-neighbour",
        "needle",
        "prng",
        "re-clustering",
        "label-linkage",
    ],
)
def test_rows_on_disk_score_as_rows_in_memory(attack: str) -> None:
    assert torch.equal(found(attack, "dp-simple", on_disk=True), found(attack, "dp-simple", on_disk=False))


def test_a_key_that_everybody_has_is_found_in_rows_on_disk_as_in_memory() -> None:
    there = found("prng", "identity", on_disk=True)
    assert int(there.sum()) >= there.shape[1]  # a candidate for each of the columns that are looked at
    assert torch.equal(there, found("prng", "identity", on_disk=False))


def test_rows_that_are_missing_are_found_on_disk_as_in_memory() -> None:
    method = "k-same[k=7,variant=paper]"  # drops three, and needs all rows at once itself
    on_disk = found("label-linkage", method, on_disk=True, fitting=N // 2)
    assert torch.equal(on_disk, found("label-linkage", method, on_disk=False))


@pytest.mark.parametrize(
    ("attack", "error"),
    # Logarithms of moments that are next to nothing make much of a rounding.
    [
        ("gan-leaks[references=1]", 1e-6),
        ("lira", 1e-9),
        ("likelihood[rows=64]", 1e-6),
        ("moments[steps=2,width=16]", 2e-3),
        pytest.param("surrogate[base=nearest-neighbour,most_pairs=100,rounds=2]", 1e-6, marks=pytest.mark.slow),
    ],
)
def test_means_that_are_added_up_block_by_block_move_scores_by_roundings(
    attack: str, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attacks.surrogate.VARIANTS", VARIANTS[-1:])
    monkeypatch.setattr("attacks.surrogate._best", lambda ranks: list(ranks)[-1])  # the base may do better: no parts
    torch.testing.assert_close(
        found(attack, "dp-image", on_disk=True), found(attack, "dp-image", on_disk=False), rtol=1e-4, atol=error
    )


FEW, NUMBERS = 300, SIDE * SIDE
ALL_NUMBERS = 128 * FEW * NUMBERS  # bytes of a job, a sixteenth holds the rows as float64


def found_by_absolute_values(memory: int | None) -> tuple[Tensor, Mapping[str, int | float | str]]:
    """Scores against InstaHide and the notes, where a job may hold so much memory; None: where rows are in memory."""
    samples = torch.from_numpy(BYTES[:FEW].astype(np.float32) / 255)
    if memory is not None:
        samples = Rows.of(BYTES[:FEW], Budget(memory), divisor=255.0)
    private = Dataset("made", samples, None, None, (), False, True)
    public = images(64, on_disk=False)
    scheme = InstaHide(k=2).fit(public, 0)
    attacker = AbsoluteCorrelation(restarts=0).fit(View(public, scheme, private, public), 0)
    release = scheme.sample_key(Secret.of_seed(5)).release(private)
    return attacker.score(release).block(slice(None), slice(None)), attacker.notes()


def test_mixtures_are_taken_apart_on_disk_as_in_memory_where_all_numbers_of_a_row_fit() -> None:
    (on_disk, said), (in_memory, expected) = (found_by_absolute_values(memory) for memory in (2 * ALL_NUMBERS, None))
    assert torch.equal(on_disk, in_memory)
    assert said == expected


def test_notes_say_how_many_numbers_of_a_row_are_compared_where_more_do_not_fit() -> None:
    scores, said = found_by_absolute_values(ALL_NUMBERS // 2)
    assert scores.shape[0] == FEW
    assert said["compared"] == "32 of 64 numbers of a row: more would not fit in memory"


def test_where_not_one_number_of_a_row_fits_the_error_says_how_much_memory_that_takes() -> None:
    with pytest.raises(TooLargeError, match="or allow --memory"):
        found_by_absolute_values(ALL_NUMBERS // NUMBERS // 2)
