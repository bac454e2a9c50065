"""Coins and their releases, under keys that release rows as they are.

Pairs of inputs: what differs, what may not, and which are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch

from bench.audit.game_plays import (
    SET,
    Layout,
    Owner,
    Pair,
    PixelPlay,
    RowPlay,
    Tosses,
    gathered,
    input_pairs,
    pixel_discriminant,
    released,
    usual,
)
from bench.contract.mechanism import Mechanism
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, Key, NotApplicable, PrivacyClaim, Release, Scheme, State


@dataclass(frozen=True)
class Plain(Scheme):
    """Keys that release rows in reverse order, `shift` higher; some drop a row."""

    drops: int = 0
    shift: float = 0.0

    def sample_key(self, secret: Secret) -> Key:
        return PlainKey(self, secret)

    def load_key(self, state: State) -> Key:
        raise NotImplementedError


@dataclass(frozen=True)
class PlainKey(Key):
    scheme: Plain
    secret: Secret

    def release(self, private: Dataset) -> Release:
        n = len(private) - self.scheme.drops
        order = torch.arange(n).flip(0)
        return Release(private.samples[order] + self.scheme.shift, None, torch.stack((order, torch.arange(n)), dim=1))

    def state(self) -> State:
        return {}


def row(value: float, shape: tuple[int, ...] = (2,)) -> Dataset:
    return Dataset("row", torch.full((1, *shape), value), None, None, (), False, True)


PAIR = Pair("low, high", row(0.0), row(1.0))


def play(layout: Layout, *, single: bool = False) -> RowPlay:
    return RowPlay(Owner(Plain(), Secret.of_seed(0), single), PAIR, layout, lambda play, seen, spare: [])


@pytest.mark.parametrize("layout", ["in sets", "alone", "beside its twin", "before a second release"])
def test_released_rows_are_the_inputs_that_their_coins_chose(layout: Layout) -> None:
    (tosses,) = play(layout).toss(16, "a purpose")
    assert len(tosses.first) == 16
    assert {True, False} == set(tosses.first.tolist())
    assert torch.equal(tosses.release.samples[:, 0] == 0, tosses.first)


def test_a_row_is_compared_with_its_twin_its_second_release_or_the_others_of_its_set() -> None:
    (twins,) = play("beside its twin").toss(16, "a purpose")
    assert torch.equal(twins.beside, torch.zeros(16, 2))  # the twin is the first input
    (again,) = play("before a second release").toss(16, "a purpose")
    assert torch.equal(again.beside, torch.full((16, 2), 0.5))  # the second release is halfway
    (sets,) = play("in sets").toss(16, "a purpose")
    rows = sets.release.samples.view(-1, SET, 2)
    others = (rows.sum(dim=1, keepdim=True) - rows) / (SET - 1)
    assert torch.allclose(sets.beside, others.view(16, 2))
    (alone,) = play("alone").toss(16, "a purpose")
    assert alone.beside is None


def test_sets_are_filled_and_single_coins_get_keys_of_their_own() -> None:
    assert sum(len(part.first) for part in play("in sets").toss(SET + 1, "a purpose")) == 2 * SET
    assert not play("in sets").single
    assert play("in sets", single=True).single
    owner = Owner(Plain(), Secret.of_seed(0))
    keys = {owner.key(purpose, number).secret.commitment() for purpose in ("a", "b") for number in range(3)}
    assert len(keys) == 6


@pytest.mark.parametrize("layout", ["in sets", "beside its twin", "before a second release"])
def test_calls_hold_as_many_rows_as_the_owners(layout: Layout) -> None:
    sizes = list[int]()

    class Counting(Plain):
        def sample_key(self, secret: Secret) -> Key:
            return CountingKey(self, secret)

    class CountingKey(PlainKey):
        def release(self, private: Dataset) -> Release:
            sizes.append(len(private))
            return super().release(private)

    owner = Owner(Counting(), Secret.of_seed(0), size=10)
    (tosses,) = RowPlay(owner, PAIR, layout, lambda play, seen, spare: []).toss(16, "a purpose")
    assert set(sizes) == {10}
    assert len(tosses.first) == 20


def test_coins_are_the_same_for_a_purpose_and_others_for_another() -> None:
    owner = Owner(Plain(), Secret.of_seed(0))
    assert torch.equal(owner.coins(64, "a"), owner.coins(64, "a"))
    assert not torch.equal(owner.coins(64, "a"), owner.coins(64, "b"))


def test_a_release_is_brought_into_the_order_of_its_raw_rows() -> None:
    rows = Dataset("rows", torch.arange(6.0).view(3, 2), None, None, (), False, True)
    release = released(Plain().sample_key(Secret.of_seed(0)), rows)
    assert torch.equal(release.samples, rows.samples)
    assert release.links is None
    with pytest.raises(NotApplicable, match="3 rows gave 2 with 2 links"):
        released(Plain(drops=1).sample_key(Secret.of_seed(0)), rows)


def test_gathering_keeps_every_toss_in_order() -> None:
    parts = [
        Tosses(torch.tensor([bool(number % 2)]), Release(torch.full((1, 1 << 19), float(number)), None, None))
        for number in range(5)
    ]
    batches = list(gathered(parts))
    assert [len(batch.first) for batch in batches] == [2, 2, 1]
    assert torch.cat([batch.release.samples[:, 0] for batch in batches]).tolist() == [0, 1, 2, 3, 4]


def test_every_pixel_is_a_coin_and_its_value_tells_it() -> None:
    pixels = PixelPlay(Owner(Plain(), Secret.of_seed(1)), row(0.0, (2, 3, 5)))
    seen, spare = (next(iter(pixels.toss(8, purpose))) for purpose in ("seen", "spare"))
    assert seen.release.samples.shape == (8, 2, 3, 5)
    assert torch.equal(seen.release.samples[:, 0].flatten() == 0, seen.first)
    statistics = {statistic.name: statistic for statistic in pixels.learn(seen, spare)}
    near = statistics["nearness of a pixel"].of(spare)
    assert torch.equal(near > 0, spare.first)


def test_a_discriminant_of_pixels_is_higher_for_the_first_input() -> None:
    pixels = PixelPlay(Owner(Plain(shift=0.25), Secret.of_seed(1)), row(0.0, (1, 4, 4)))
    seen, fresh = (next(iter(pixels.toss(16, purpose))) for purpose in ("seen", "fresh"))
    values = pixel_discriminant("", seen, centred=False).of(fresh)
    both = [int(seen.first.view(16, 16)[:, place].sum()) % 16 for place in range(16)]
    learned = torch.tensor(both).bool().repeat(16)  # places where both inputs were seen
    assert learned.sum() > 200
    assert torch.equal(values[learned] > 0, fresh.first[learned])


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
    assert len(pairs) == 8
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
