"""Pairs of inputs: what differs, what may not, and which are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch

from bench.audit.game_plays import input_pairs, usual
from bench.contract.mechanism import Mechanism
from bench.seeds import generator
from bench.types import Dataset, PrivacyClaim, Release


@dataclass(frozen=True, eq=False)
class Witnesses(Mechanism):
    """A mechanism that names pairs."""

    pairs: Sequence[tuple[Dataset, Dataset]]
    scale = torch.ones(1)

    def locate(self, data: Dataset) -> torch.Tensor:
        raise NotImplementedError

    def observe(self, release: Release) -> torch.Tensor:
        raise NotImplementedError

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        return self.pairs


def rows(samples: torch.Tensor) -> Dataset:
    return Dataset("rows", samples, None, None, (), False, True)


def images() -> Dataset:
    samples = torch.rand(6, 1, 4, 4, generator=generator(2))
    labels = torch.tensor([[math.nan, 1.0], [0.0, 1.0]] * 3)
    return Dataset("images", samples, labels, torch.arange(6), ("a", "b"), False, True)


def claim(unit: str) -> PrivacyClaim:
    return PrivacyClaim(unit, 1.0, 0.0, "none", "a test")  # type: ignore[arg-type]


def test_both_inputs_of_a_pair_have_the_same_known_labels_and_no_subject() -> None:
    for pair in input_pairs(None, claim("image"), images()):
        assert pair.first.labels.tolist() == pair.second.labels.tolist() == [[0.0, 1.0]]  # of a row without NaN
        assert pair.first.subjects is pair.second.subjects is None
        assert not torch.equal(pair.first.samples, pair.second.samples)


def test_an_ordinary_row_has_known_labels_if_one_has() -> None:
    assert torch.equal(usual(images()).samples, images().samples[1:2])
    assert torch.equal(usual(rows(torch.tensor([[2.0], [3.0]]))).samples, torch.tensor([[2.0]]))


def test_a_claim_per_pixel_is_audited_on_inputs_that_differ_in_one_pixel() -> None:
    pairs = input_pairs(None, claim("pixel"), images())
    assert len(pairs) == 5
    for pair in pairs:
        assert int((pair.first.samples != pair.second.samples).sum()) == 1


def test_columns_that_no_witnesses_differ_in_are_outside_the_claim() -> None:
    here = torch.tensor([[1.0, 0.0, 1.0]])
    mechanism = Witnesses([(rows(here), rows(-here))])
    for pair in input_pairs(mechanism, claim("record"), rows(torch.rand(12, 3, generator=generator(1)))):
        assert not bool((pair.first.samples != pair.second.samples)[0, 1])


@pytest.mark.parametrize("swapped", [False, True])
def test_a_pair_that_is_a_witness_already_is_played_once(swapped: bool) -> None:
    ends = [rows(torch.full((1, 1, 4, 4), end)) for end in (0.0, 1.0)]
    dark, bright = reversed(ends) if swapped else ends
    names = [pair.name for pair in input_pairs(Witnesses([(dark, bright)]), claim("image"), images())]
    assert names[0] == "witness 1"
    assert ("all dark, all bright" in names) == swapped


def test_rows_of_equal_numbers_leave_no_pair_without_a_difference() -> None:
    names = [pair.name for pair in input_pairs(None, claim("record"), rows(torch.ones(4, 3)))]
    assert names == []
