"""Guessed keys: those of few bits are found, with every pair; those of a whole secret are not."""

from __future__ import annotations

import pytest
import torch
from made.attack_games import Game, play
from made.datasets import unlabelled
from made.short_keys import ShortKeys

from attacks.prng import PRNG
from bench.types import Dataset, Method, NotApplicable
from methods.constant import Constant
from methods.dp_simple import DPSimple
from methods.hidden_control import HiddenControl
from methods.identity import Identity
from methods.k_same import KSame
from methods.noise import Noise
from methods.random_layers import RandomLayers


def rows(n: int = 12) -> Dataset:
    return unlabelled(torch.rand(n, 16, generator=torch.Generator().manual_seed(0)))


def images(n: int = 24) -> Dataset:
    return unlabelled(torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(0)))


def every_pair(game: Game) -> bool:
    wanted = torch.zeros(game.scores.shape)
    wanted[game.order, torch.arange(len(game.order))] = 1
    return torch.equal(game.table, wanted)


@pytest.mark.parametrize(
    "scheme",
    [ShortKeys(12), ShortKeys(10, "padded"), ShortKeys(9, "drawn"), ShortKeys(10, noise=True),
     ShortKeys(10, "padded", noise=True)],
)  # fmt: skip
def test_keys_of_few_bits_are_found_with_every_pair(scheme: ShortKeys) -> None:
    game = play(PRNG(), scheme, rows())
    assert every_pair(game)
    notes = game.attacker.notes()
    assert notes["keys found"] == "1 of 1"
    assert notes["key bits"] == pytest.approx(scheme.bits, abs=1)


def test_a_budget_that_is_too_small_finds_no_key_and_says_what_all_would_take() -> None:
    game = play(PRNG(tries=100), ShortKeys(31), rows())
    assert not bool(game.table.any())
    notes = game.attacker.notes()
    assert notes["keys tried"] == 100
    assert notes["key bits"] == 31
    expected = float(notes["seconds a key"]) * 2**31 / (365.25 * 24 * 3600)
    assert notes["years for all keys, in turn"] == pytest.approx(expected)


@pytest.mark.parametrize("method", [Noise(), DPSimple(scale=20.0), RandomLayers(patch_size=4), HiddenControl()])
def test_keys_of_a_whole_secret_are_not_found(method: Method) -> None:
    game = play(PRNG(), method, images())
    assert not bool(game.table.any())
    notes = game.attacker.notes()
    assert notes["key bits"] == 256
    assert float(notes["years for all keys, in turn"]) > 1e50
    if not isinstance(method, HiddenControl):  # a lone row is left alone by a third of its keys
        assert notes["keys drawn"] == notes["different keys drawn"]


def test_noise_that_is_bound_to_all_rows_is_not_tried() -> None:
    notes = play(PRNG(), DPSimple(scale=20.0), images()).attacker.notes()
    assert notes["keys tried"] == 0
    assert "owner's order" in str(notes["not tried"])


def test_what_holds_no_secret_is_found() -> None:
    assert every_pair(play(PRNG(), Identity(), images()))
    table = play(PRNG(), KSame(k=3), rows()).table
    assert bool((table.sum(dim=0) == 3).all())


def test_releases_without_links_are_not_attacked() -> None:
    with pytest.raises(NotApplicable, match="no raw row"):
        play(PRNG(), Constant(), rows())


def test_a_pair_has_the_same_score_in_every_block() -> None:
    scores = play(PRNG(), Identity(), images()).scores
    assert torch.equal(scores.block(slice(3, 9), slice(10, 21)), scores.block(slice(None), slice(None))[3:9, 10:21])


def test_a_try_is_made_at_least() -> None:
    with pytest.raises(ValueError, match="tries must be at least 1"):
        PRNG(tries=0)
