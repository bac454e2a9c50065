import pytest
import torch
from made import datasets
from made.attack_games import play, shuffled
from made.datasets import unlabelled
from made.toy_methods import Unlinked

from attacks.leverage import Leverage, leverage_scores, ranks
from bench.types import NotApplicable, View, paired
from methods.dauntless import Dauntless
from methods.identity import Identity
from methods.instahide import InstaHide
from methods.noise import Noise
from methods.random_layers import RandomLayers

# One of n right by chance: Poisson(1), above 9 less than once in a million.
CHANCE = 9


def images(n=80, side=16, seed=0):
    """Spotted images with a blank column of patches."""
    spotted = datasets.spots(n, side, seed)
    spotted.samples[..., : side // 4] = 0
    return spotted


def test_dauntless_is_broken_by_leverage_scores():
    assert play(Leverage(), Dauntless(patch_size=4), images()).matched == 80


def test_dauntless_is_broken_by_ridges_with_fewer_rows_than_numbers_a_patch():
    assert play(Leverage(), Dauntless(patch_size=8), images(40)).matched == 40


@pytest.mark.parametrize("depth", [1, 3])
def test_random_layers_are_broken(depth):
    assert play(Leverage(), RandomLayers(depth=depth, patch_size=8), images(side=32)).matched >= 76


def test_identity_is_fully_reidentified():
    assert play(Leverage(keys=2), Identity(), images()).matched == 80


def test_a_table_is_read_as_chunks():
    table = unlabelled(torch.rand(60, 12, generator=torch.Generator().manual_seed(0)))
    assert play(Leverage(keys=2), Identity(), table).matched == 60


def test_noise_stays_at_chance():
    assert play(Leverage(keys=3), Noise(), images(200)).matched <= CHANCE


def test_first_constituents_are_what_it_looks_for_in_mixtures():
    private = images(60)
    scheme = InstaHide(k=2).fit(private, 0)
    attacker = Leverage(keys=3).fit(View(private, scheme, private, private), 0)
    assert attacker.score(shuffled(scheme, private)[0]).shape == (60, 60)


def test_invertible_maps_leave_plain_scores_alone_and_ridge_scores_not():
    source = torch.Generator().manual_seed(0)
    rows = torch.randn(2, 30, 5, generator=source, dtype=torch.float64)
    mapped = rows @ torch.randn(2, 5, 5, generator=source, dtype=torch.float64)
    before, after = leverage_scores(rows, 1e-6), leverage_scores(mapped, 1e-6)
    assert torch.allclose(before[0], after[0], atol=1e-9)
    assert not torch.allclose(before[2], after[2], atol=1e-3)


def test_scores_agree_with_the_hat_matrix_on_both_sides_of_the_square():
    source = torch.Generator().manual_seed(1)
    for n, numbers in ((20, 4), (6, 9)):
        rows = torch.randn(1, n, numbers, generator=source, dtype=torch.float64)
        centred = (rows - rows.mean(dim=1, keepdim=True))[0]
        plain = (centred @ torch.linalg.pinv(centred)).diagonal()
        mean = centred.square().sum() / min(numbers, n - 1)
        eye = torch.eye(numbers, dtype=torch.float64)
        ridge = (centred @ torch.linalg.solve(centred.T @ centred + 0.1 * mean * eye, centred.T)).diagonal()
        scores = leverage_scores(rows, 1e-6)[:, 0]
        assert torch.allclose(scores[-1], ridge)
        assert len(scores) == (3 if n > numbers + 1 else 2)
        assert n < numbers or torch.allclose(scores[0], plain)


def test_constant_pixels_and_blank_locations_give_finite_scores():
    rows = torch.zeros(2, 10, 4, dtype=torch.float64)
    rows[0, :, 1] = torch.arange(10)
    scores = leverage_scores(rows, 1e-6)
    assert scores.isfinite().all()
    assert not scores[:, 1].any()
    # One varying column: h = (x - mean)^2 / sum (x - mean)^2, 20.25 / 82.5 at the ends.
    assert scores[0, 0, 0] == pytest.approx(20.25 / 82.5)


def test_ties_share_their_rank_whatever_their_order():
    assert ranks(torch.tensor([2.0, 1.0, 1.0, 1.0])).tolist() == [0.875, 0.375, 0.375, 0.375]


def test_any_block_has_the_bits_of_the_whole_and_the_same_seed_the_same_scores():
    private = images(40)
    scheme = RandomLayers(depth=1, patch_size=4).fit(private, 0)
    view = View(private, scheme, private, private)
    sealed = shuffled(scheme, private)[0]
    one, same, other = (Leverage(keys=2).fit(view, seed).score(sealed) for seed in (1, 1, 2))
    whole = one.block(slice(None), slice(None))
    assert torch.equal(one.block(slice(3, 17), slice(5, 40)), whole[3:17, 5:40])
    assert torch.equal(whole, same.block(slice(None), slice(None)))
    assert not torch.equal(whole, other.block(slice(None), slice(None)))


@pytest.mark.parametrize(("held", "released"), [(24, 80), (80, 60)])
def test_fewer_held_or_released_rows_than_numbers_a_patch_leave_the_ridges(held, released):
    every = images()
    scheme = Dauntless(patch_size=8).fit(every, 0)  # 64 numbers a patch: the plain score needs more rows than these
    candidates = every.take(torch.arange(held))
    attacker = Leverage().fit(View(every, scheme, candidates, every), 0)
    sealed, order = shuffled(scheme, every.take(torch.arange(released)))
    scores = attacker.score(sealed).block(slice(None), slice(None))
    assert scores.shape == (held, released)
    both = order < held
    assert int((scores.argmax(dim=0)[both] == order[both]).sum()) > CHANCE


def test_the_notes_name_the_layout():
    private = images()
    scheme = Dauntless(patch_size=4).fit(private, 0)
    notes = Leverage().fit(View(private, scheme, private, private), 0).notes()
    assert notes["layout"] == "patches of 4"
    assert notes["mean log2 rank on a simulated key"] == 0


def test_releases_without_links_are_not_applicable():
    private = images(8)
    with pytest.raises(NotApplicable, match="learns from links"):
        Leverage().fit(View(private, Unlinked(), private, private), 0)


def test_single_rows_are_not_applicable():
    private = images(8)
    view = View(private, Identity().fit(private, 0), private, private)
    one = paired(private.samples[:1], None)
    with pytest.raises(NotApplicable, match="at least 2"):
        Leverage(keys=2).fit(view, 0).score(one)
    with pytest.raises(NotApplicable, match="at least 2 candidates, got 1"):
        Leverage().fit(View(private, view.scheme, private.take(torch.tensor([0])), private), 0)
