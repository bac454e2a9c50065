from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from made.attack_games import play
from made.datasets import unlabelled

from attacks.jigsaw import READINGS, Jigsaw, JigsawAttacker
from bench.eve.jigsaw_puzzle import Forms, Knowledge, assemble, solve
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable, View
from methods.etc_blocks import EtCBlocks
from methods.identity import Identity
from methods.noise import Noise

SIDE = 8
"""Of a block: 16 of them in an image."""


def images(n: int = 60, seed: int = 0, channels: int = 1) -> Dataset:
    """Smooth images, darker at the top, each channel darker than the one before it, in whole 255ths."""
    rough = torch.rand(n, channels, 6, 6, generator=torch.Generator().manual_seed(seed))
    smooth = torch.nn.functional.interpolate(rough, size=(32, 32), mode="bicubic", align_corners=True)
    slope = torch.linspace(0, 1, 32)[:, None] * torch.linspace(0.5, 1, 32)
    scale = torch.linspace(1, 0.3, channels)[:, None, None]
    return unlabelled((scale * (smooth.clamp(0, 1) + slope) / 2 * 255).round() / 255)


def encrypted(private: Dataset, method: EtCBlocks) -> torch.Tensor:
    return method.fit(private, 0).sample_key(Secret.of_seed(11)).release(private).samples


def test_one_key_for_all_images_is_undone_by_borders_alone() -> None:
    private = images()
    hidden = encrypted(private, EtCBlocks(patch_size=SIDE))
    assert not torch.equal(hidden, private.samples)
    known = Knowledge.of(images(seed=1).samples, SIDE)
    assert torch.allclose(solve(hidden, known, one=True, weight=0.0), private.samples, atol=1e-6)


def test_orders_of_channels_are_undone_too() -> None:
    private = images(channels=3)
    hidden = encrypted(private, EtCBlocks(patch_size=16))
    known = Knowledge.of(images(seed=1, channels=3).samples, 16)
    assert torch.allclose(solve(hidden, known, one=True, weight=0.3), private.samples, atol=1e-6)


def test_a_key_for_each_image_is_undone_for_more_images_with_the_mean_image() -> None:
    private = images()
    hidden = encrypted(private, EtCBlocks(patch_size=SIDE, keys="per-image"))
    known = Knowledge.of(images(seed=1).samples, SIDE)
    whole = [
        int((solve(hidden, known, one=False, weight=weight) - private.samples).abs().amax(dim=(1, 2, 3)).lt(1e-6).sum())
        for weight in (0.0, 0.3)
    ]
    assert whole[1] >= whole[0]
    assert whole[1] > 30  # of 60; by chance none, of 16! orders


def test_forms_are_all_turns_mirrors_negatives_and_orders_of_channels_once() -> None:
    block = torch.rand(27, generator=torch.Generator().manual_seed(0))
    shown = Forms.of(3, 3).shown(block)
    assert len(torch.unique(shown, dim=0)) == len(shown) == 8 * 6 * 2
    assert torch.equal(shown[0], block)


def test_the_arrangement_found_is_the_best_of_all() -> None:
    """Four pieces in one form: every order tried by hand."""
    random = torch.Generator().manual_seed(4)
    true = [2, 0, 3, 1]
    across, down = (torch.rand(1, 4, 4, generator=random, dtype=torch.float64) + 0.5 for _ in range(2))
    for i, j in ((0, 1), (2, 3)):
        across[0, true[i], true[j]] = 0.1
    for i, j in ((0, 2), (1, 3)):
        down[0, true[i], true[j]] = 0.1
    unlike = torch.zeros(1, 4, 4, dtype=torch.float64)
    sums = {
        order: float(across[0, order[0], order[1]] + across[0, order[2], order[3]])
        + float(down[0, order[0], order[2]] + down[0, order[1], order[3]])
        for order in itertools.permutations(range(4))
    }
    assert (
        tuple(assemble(across, down, unlike, (2, 2), 1)[0].tolist()) == min(sums, key=sums.__getitem__) == tuple(true)
    )


@pytest.mark.parametrize(("keys", "least"), [("one", 1.0), ("per-image", 0.6)])
def test_encrypted_images_are_identified(keys: str, least: float) -> None:
    game = play(Jigsaw(patch_size=SIDE), EtCBlocks(patch_size=SIDE, keys=keys), images(), public=images(seed=9))  # type: ignore[arg-type]
    assert game.top_1 >= least
    assert isinstance(game.attacker, JigsawAttacker)
    assert game.attacker.reading.one is (keys == "one")


def test_rows_that_are_no_puzzle_are_compared_as_they_are() -> None:
    game = play(Jigsaw(), Identity(), images(), public=images(seed=9))
    assert game.top_1 == 1
    assert game.attacker.notes()["reading"] == READINGS[0].words
    assert game.attacker.notes()["links found under a simulated key"] == 1


def test_noise_is_matched_as_often_as_by_chance() -> None:
    hits = play(Jigsaw(), Noise(), images(200), public=images(seed=9)).top_1 * 200
    assert hits <= 8  # about Poisson of mean 1: more have a probability of 1 in a million


def test_shuffled_pixels_leave_no_puzzle() -> None:
    method = EtCBlocks(patch_size=SIDE, shuffle_pixels=True, keys="per-image")
    hits = play(Jigsaw(patch_size=SIDE), method, images(), public=images(seed=9)).top_1 * 60
    assert hits <= 8  # about Poisson of mean 1, as above


def test_a_puzzle_an_image_is_left_out_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attacks.jigsaw.PUZZLES", 1)
    method = EtCBlocks(patch_size=SIDE, keys="per-image")
    game = play(Jigsaw(patch_size=SIDE), method, images(), public=images(seed=9))
    assert isinstance(game.attacker, JigsawAttacker)
    assert game.attacker.reading.one is not False


def test_what_is_no_image_or_has_no_blocks_does_not_apply() -> None:
    scheme = Identity().fit(images(), 0)
    view = View(images(), scheme, images(), images())
    table = replace(images(), samples=torch.rand(60, 9))
    with pytest.raises(NotApplicable, match=r"images of 1 or 3 channels together, and raw rows are \(9,\)"):
        Jigsaw().fit(replace(view, candidates=table), 0)
    with pytest.raises(NotApplicable, match="images are 32x32, which patch_size 2, 4, 8, 16 does"):
        Jigsaw(patch_size=5).fit(view, 0)
    with pytest.raises(NotApplicable, match="needs at least 2, got 1"):
        Jigsaw().fit(replace(view, candidates=images(1)), 0)
