"""Attacks that read rows in blocks find on disk what they find in memory, and those that cannot say what they need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.memory.budget import Budget, TooLargeError
from bench.memory.rows import Rows
from bench.plugins import registry
from bench.plugins.spec import parse
from bench.randomness import Secret
from bench.types import Attack, Dataset, Method, View

N, SIDE = 2600, 8
FITTING = 1200  # rows in float64 that a job may bring together: fewer than all of them in float32
BYTES = np.random.default_rng(0).integers(0, 256, (N, 1, SIDE, SIDE), dtype=np.uint8)


def images(count: int, *, on_disk: bool, fitting: int = FITTING) -> Dataset:
    budget = Budget(4 * fitting * SIDE * SIDE * 8)
    plain = torch.from_numpy(BYTES[:count].astype(np.float32) / 255)
    samples = Rows.of(BYTES[:count], budget, divisor=255.0) if on_disk else plain
    return Dataset("made", samples, torch.arange(count).remainder(2).float()[:, None], None, ("a",), False, True)


def found(attack: str, method: str, *, on_disk: bool, fitting: int = FITTING) -> Tensor:
    """Scores of all pairs, or of membership, against a release under a key that the attack has not seen."""
    built, against = (
        registry.build("methods", parse(method), "smoke"),
        registry.build("attacks", parse(attack), "smoke"),
    )
    assert isinstance(built, Method)
    assert isinstance(against, Attack)
    public, candidates = images(64, on_disk=False), images(N, on_disk=on_disk, fitting=fitting)
    scheme = built.fit(public, 0)
    release = replace(scheme.sample_key(Secret.of_seed(5)).release(candidates), links=None, primary=None)
    assert isinstance(release.samples, Rows) == on_disk
    attacker = against.fit(View(public, scheme, candidates, images(600, on_disk=False)), 0)
    if against.scores == "membership":
        return attacker.membership(release)
    scores = attacker.score(release)
    return torch.cat([scores.block(slice(at, at + 650), slice(0, 100)) for at in range(0, N, 650)])


@pytest.mark.parametrize(
    "attack",
    ["dcr", "float-holes", "invariants[rows=300]", "likelihood", "nearest-neighbour", "re-clustering", "label-linkage"],
)
def test_rows_on_disk_score_as_rows_in_memory(attack: str) -> None:
    assert torch.equal(found(attack, "dp-simple", on_disk=True), found(attack, "dp-simple", on_disk=False))


def test_rows_that_are_missing_are_found_on_disk_as_in_memory() -> None:
    method = "k-same[k=7,variant=paper]"  # drops three, and needs all rows at once itself
    on_disk = found("label-linkage", method, on_disk=True, fitting=N // 2)
    assert torch.equal(on_disk, found("label-linkage", method, on_disk=False))


@pytest.mark.parametrize("attack", ["gan-leaks[references=1]", "likelihood[rows=64]"])
def test_means_that_are_added_up_block_by_block_move_scores_by_roundings(attack: str) -> None:
    torch.testing.assert_close(
        found(attack, "dp-image", on_disk=True), found(attack, "dp-image", on_disk=False), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("attack", ["absolute-correlation"])
def test_attacks_that_need_all_rows_say_how_much_memory_that_takes(attack: str) -> None:
    with pytest.raises(TooLargeError, match="or allow --memory"):
        found(attack, "dp-simple", on_disk=True)
