import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from bench.nets import obfuscator
from bench.nets.obfuscator import Obfuscator, Opponents, agreement, train_obfuscator
from bench.nets.patches import cut
from bench.nets.training import seeded
from bench.seeds import generator

OPPONENTS = Opponents(
    steps=60, batch=16, lambda_reid=0.0, lambda_rec=1.0, lambda_match=0.0, learning_rate=5e-3, width=16, depth=1,
    relations=False, precision="float32", compiled=False,
)  # fmt: skip


def images(n=128):
    """Images of 16 levels each: easy to decode from a code that keeps them."""
    levels = torch.rand(n, 1, 4, 4, generator=generator(3))
    return levels.repeat_interleave(4, dim=2).repeat_interleave(4, dim=3)


def trained(opponents, public=None, seed=0):
    """The network and its last losses."""
    public = images() if public is None else public
    with seeded(seed):
        network = Obfuscator((1, 16, 16), patch_size=8, width=16, blocks=1, depth=1)
    network.standardise_by(public)
    return network, train_obfuscator(network, public, opponents, seed)


def test_the_obfuscator_helps_the_decoder():
    """The same game with the sign of the decoder's loss turned round must end far less decodable."""
    helped = trained(OPPONENTS)[1].rec
    hindered = trained(replace(OPPONENTS, lambda_rec=-1.0))[1].rec
    assert helped < 0.7 * hindered


def test_agreement_is_of_relations_alone():
    rows, others = (torch.randn(40, 3, 8, generator=generator(seed)) for seed in (1, 2))
    turn = torch.linalg.qr(torch.randn(8, 8, generator=generator(3)))[0]
    assert agreement(rows, rows).item() == pytest.approx(1, abs=1e-5)
    assert agreement(rows, 5 * rows @ turn + 1).item() == pytest.approx(1, abs=1e-5)
    # the mean squared correlation of independent Gram matrices is about 1 over their 780 pairs
    assert agreement(rows, others).item() < 0.01
    one = torch.cat((rows[:, :1], others[:, 1:]), dim=1)
    assert 0.2 < agreement(rows, one).item() < 0.5  # one location of three, and its share of whole rows


def test_relations_are_hidden_where_that_is_asked_for():
    """As above; how far they can be hidden at all is another matter."""

    def left(weight):
        network, _ = trained(replace(OPPONENTS, lambda_match=weight, lambda_rec=0.0))
        encoded = []
        for seed in (7, 8):
            key = network.draw(partial(torch.randn, generator=generator(seed)))
            encoded.append(cut(network(images(), key), network.side))
        with torch.no_grad():
            return agreement(*encoded).item()

    assert left(20.0) < 0.7 * left(-20.0)


class Reader(nn.Module):
    """Stands in for the attacker's towers with a loss that the obfuscator can raise or lower at will."""

    def __init__(self, raw, released):
        super().__init__()
        self.own = nn.Parameter(torch.tensor(1.0))
        Reader.last = self

    def loss(self, raw, released, links):
        return released[:, :, :2].mean() - released[:, :, 2:4].mean() + self.own.square()


def test_the_obfuscator_raises_the_attackers_loss_and_the_attacker_lowers_it(monkeypatch):
    monkeypatch.setattr(obfuscator, "Towers", Reader)
    hiding, showing = (
        trained(replace(OPPONENTS, lambda_reid=sign, lambda_rec=0.0, steps=40))[1].reid for sign in (1.0, -1.0)
    )
    assert hiding > showing + 0.1
    assert Reader.last.own.item() < 1.0


def test_only_the_networks_whose_turn_it_is_move(monkeypatch):
    """One step is the obfuscator's, the second its opponents'."""
    monkeypatch.setattr(obfuscator, "Towers", Reader)
    states = []
    for steps in (1, 2):
        network, _ = trained(replace(OPPONENTS, steps=steps, lambda_reid=1.0))
        states.append((dict(network.state_dict()), Reader.last.own.item()))
    assert states[0][1] == 1.0
    assert states[1][1] < 1.0
    with seeded(0):
        fresh = Obfuscator((1, 16, 16), patch_size=8, width=16, blocks=1, depth=1).state_dict()
    assert not torch.equal(fresh["stacks.0.0.out.weight"], states[0][0]["stacks.0.0.out.weight"])


@pytest.mark.parametrize("relations", [False, True])
def test_the_same_seed_gives_the_same_bits(relations):
    opponents = replace(OPPONENTS, steps=4, lambda_reid=1.0, relations=relations)
    one, same, other = (trained(opponents, seed=seed)[0].stacks[0][0].out.weight for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_chance_is_the_logarithm_of_the_batch_and_the_mean_image_is_one(monkeypatch):
    """An attacker that cannot move and a decoder that cannot learn stay there."""
    public = images(4096)
    losses = trained(replace(OPPONENTS, steps=1, learning_rate=1e-12, batch=1024), public)[1]
    assert losses.rec == pytest.approx(1.0, abs=0.1)
    assert losses.reid > math.log(1024) - 0.5


def test_fewer_images_than_a_batch_are_all_used():
    assert math.isfinite(trained(replace(OPPONENTS, steps=2, batch=500), images(5))[1].rec)


def test_divergence_is_an_error_that_says_what_to_do():
    public = images()
    public[3] = math.nan
    with pytest.raises(FloatingPointError, match=r"diverged by step \d+.*lower learning_rate or lambda_reid"):
        trained(replace(OPPONENTS, steps=50, batch=128), public)


def test_images_stay_untouched():
    public = images()
    before = public.clone()
    trained(replace(OPPONENTS, steps=2), public)
    assert torch.equal(public, before)
