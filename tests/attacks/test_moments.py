import math

import pytest
import torch
from made.attack_games import play
from made.datasets import spots as images
from made.datasets import unlabelled
from made.toy_methods import Unlinked, toy_seed
from sklearn.datasets import load_digits

from attacks.moments import Moments
from bench.eve.patch_moments import Reading, moments
from bench.eve.tokens import Layout
from bench.randomness import Secret
from bench.types import Key, NotApplicable, Release, Scheme, View, paired
from methods.dauntless import Dauntless
from methods.identity import Identity
from methods.instahide import InstaHide
from methods.neuracrypt import NeuraCrypt
from methods.noise import Noise

SMALL = Moments(steps=80, batch=32, width=32, learning_rate=0.01)
# One of n right by chance: Poisson(1), above 9 less than once in a million.
CHANCE = 9


def test_identity_is_fully_reidentified():
    private = images()
    assert play(SMALL, Identity(), private).matched >= 62


def test_dauntless_is_read_in_place_and_reidentified():
    private = images()
    game = play(SMALL, Dauntless(patch_size=4), private)
    assert game.matched > CHANCE
    assert game.attacker.notes()["pieces"] == "in place"
    assert game.attacker.notes()["layout"] == "patches of 4"


def test_shuffled_patches_are_read_as_a_set_and_reidentified():
    private = images()
    game = play(SMALL, Shuffling(), private)
    assert game.matched > CHANCE
    assert game.attacker.notes()["pieces"] == "as a set"


def test_places_are_used_where_mixing_hides_what_repeats():
    digits = torch.tensor(load_digits().images[:256], dtype=torch.float32)[:, None] / 16
    private = unlabelled(digits)
    for seed in range(3):
        view = View(private, InstaHide(k=2).fit(private, 0), private, private)
        notes = SMALL.fit(view, seed).notes()
        assert notes["pieces"] == "in place"
        assert notes["held-out loss"] < 0.9 * notes["held-out loss at chance"]


def test_neuracrypt_is_scored_with_finite_figures():
    private = images(24)
    scheme = NeuraCrypt(patch_size=8, batch=16).fit(private, 0)
    attacker = play(Moments(steps=3, batch=16, width=8), scheme, private).attacker
    assert math.isfinite(attacker.notes()["held-out loss"])


def test_noise_stays_at_chance():
    private = images(200)
    assert play(Moments(steps=12, batch=64, width=16), Noise(), private).matched <= CHANCE


def test_a_table_is_read_as_one_piece():
    source = torch.Generator().manual_seed(0)
    table = unlabelled(torch.randn(40, 20, generator=source))
    assert play(SMALL, Identity(), table).matched > CHANCE


def test_moments_agree_with_their_definition():
    rows = torch.rand(10, 1, 4, 8, generator=torch.Generator().manual_seed(0))
    found = moments(Reading(Layout("patches", 4), in_place=True), rows)
    pieces = (rows - rows.mean(dim=0)).double()
    piece = pieces[3, 0, :, 4:].flatten() / pieces.std(correction=0)
    assert found.shape == (10, 2, 14)
    assert found[3, 1, 0] == pytest.approx(float(piece.mean()), abs=1e-5)
    for order in range(2, 15):
        moment = float(((piece - piece.mean()) ** order).mean())
        assert found[3, 1, order - 1] == pytest.approx(math.log(abs(moment)) / order, abs=2e-3)


def test_the_order_of_a_set_of_patches_and_the_scale_of_a_release_do_not_matter():
    private = images(16).samples
    reading = Reading(Layout("patches", 4), in_place=False)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    shuffled = shuffle(private, order.expand(16, 16))
    found = [moments(reading, rows) for rows in (private, shuffled, 1e4 * private)]
    even = [0, *range(1, 14, 2)]  # the roots of odd moments near zero magnify rounding
    assert torch.allclose(found[0][:, order][..., even], found[1][..., even], atol=1e-4)
    assert torch.allclose(found[0][..., even], found[2][..., even], atol=1e-4)


def test_constant_pieces_have_finite_moments():
    rows = torch.zeros(5, 1, 8, 8)
    assert moments(Reading(Layout("patches", 4), in_place=True), rows).isfinite().all()


def test_any_block_has_the_bits_of_the_whole_and_the_same_seed_the_same_scores():
    private = images(24)
    scheme = Dauntless(patch_size=4).fit(private, 0)
    view = View(private, scheme, private, private)
    sealed = Release(scheme.sample_key(Secret.of_seed(7)).release(private).samples, None, None)
    attack = Moments(steps=4, batch=8, width=8)
    one, same, other = (attack.fit(view, seed).score(sealed) for seed in (1, 1, 2))
    whole = one.block(slice(None), slice(None))
    assert torch.equal(one.block(slice(3, 17), slice(5, 24)), whole[3:17, 5:24])
    assert torch.equal(whole, same.block(slice(None), slice(None)))
    assert not torch.equal(whole, other.block(slice(None), slice(None)))


def shuffle(samples, order):
    """Images (n, 1, h, w) whose 4x4 patches are put in the given order (n, locations)."""
    from bench.nets.patches import cut, fold

    return fold(cut(samples, 4).take_along_dim(order[:, :, None], dim=1), tuple(samples.shape[1:]), 4)


class Shuffling(Scheme, Key):
    """Releases images as they are but for the order of their patches, drawn anew for each image."""

    def __init__(self, seed=0):
        self.seed = seed

    def sample_key(self, secret):
        return type(self)(toy_seed(secret))

    def load_key(self, state):
        return self

    def state(self):
        return {}

    def release(self, private):
        n, _, h, w = private.samples.shape
        order = torch.rand(n, h * w // 16, generator=torch.Generator().manual_seed(self.seed)).argsort(dim=1)
        return paired(shuffle(private.samples, order), None)


def test_releases_without_links_and_single_candidates_are_not_applicable():
    private = images(8)
    with pytest.raises(NotApplicable, match="learns from links"):
        SMALL.fit(View(private, Unlinked(), private, private), 0)
    with pytest.raises(NotApplicable, match="at least 2 candidates, got 1"):
        SMALL.fit(View(private, Shuffling(), private.take(torch.tensor([0])), private), 0)
