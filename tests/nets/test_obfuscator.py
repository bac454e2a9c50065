import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import layer_norm, selu

from bench.nets import obfuscator
from bench.nets.obfuscator import (
    Obfuscator,
    Opponents,
    agreement,
    draw_layer,
    draw_layers,
    random_layer,
    random_layers,
    train_obfuscator,
)
from bench.nets.patches import cut
from bench.nets.training import seeded
from bench.randomness import Secret
from bench.seeds import generator


def network_of(shape=(1, 16, 16), patch_size=4, width=16, blocks=2, depth=2):
    with seeded(0):
        return Obfuscator(shape, patch_size=patch_size, width=width, blocks=blocks, depth=depth)


def test_blocks_are_learned_layers_then_a_random_one_and_the_last_has_two():
    network, images = network_of(), torch.rand(3, 1, 16, 16, generator=generator(1))
    key = network.draw(Secret.of_seed(2).stream().normal)
    assert len(key) == 3
    tokens = cut(images, 4)
    for stack, weights in zip(network.stacks, key[:2], strict=True):
        for layer in stack:
            tokens = layer(tokens)
        tokens = random_layer(tokens, weights)
    assert torch.allclose(cut(network(images, key), 4), random_layer(tokens, key[2]), atol=1e-5)


def test_the_paper_s_size_has_its_counts():
    network = Obfuscator((1, 64, 64), patch_size=16, width=256, blocks=5, depth=5)
    learned = sum(weight.numel() for weight in network.parameters())
    maps = sum(w.numel() for name, w in network.named_parameters() if ".attend." in name or ".out." in name)
    assert maps == 100 * 65_792
    assert round(learned / 1e6, 1) == 6.6
    assert sum(weights.numel() for weights in network.draw(Secret.of_seed(0).stream().normal)) == 96 * 65_792


def test_images_are_standardised_by_the_public_ones():
    network = network_of(shape=(2, 16, 16))
    images = torch.rand(5, 2, 16, 16, generator=generator(1)) * torch.tensor([1.0, 7.0]).view(1, 2, 1, 1)
    key = network.draw(Secret.of_seed(2).stream().normal)
    network.standardise_by(images)
    standard = (images - images.mean(dim=(0, 2, 3), keepdim=True)) / images.std(
        dim=(0, 2, 3), correction=0, keepdim=True
    )
    plain = network_of(shape=(2, 16, 16))
    assert torch.allclose(network(images, key), plain(standard, key), atol=1e-4)


def test_every_patch_reaches_every_token_and_no_other_image():
    network, images = network_of(), torch.rand(3, 1, 16, 16, generator=generator(1))
    key = network.draw(Secret.of_seed(2).stream().normal)
    before = network(images, key)
    images[1, 0, 0, 0] += 0.5
    moved = cut((network(images, key) - before).abs(), 4).amax(dim=2) > 1e-7
    assert moved[1].all()
    assert not moved[[0, 2]].any()


@pytest.mark.parametrize(("width", "blocks", "depth"), [(48, 1, 1), (0, 1, 1), (9, 1, 1), (16, 0, 1), (16, 1, 0)])
def test_senseless_sizes_are_refused(width, blocks, depth):
    with pytest.raises(ValueError, match="got"):
        network_of(width=width, blocks=blocks, depth=depth)


def test_a_patch_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="got 5 for 16x16"):
        network_of(patch_size=5)


def token_layer(locations=3, inputs=5, width=7, rows=4):
    source = generator(0)
    return torch.rand(rows, locations, inputs, generator=source), draw_layer(
        Secret.of_seed(0).stream().normal, locations=locations, inputs=inputs, width=width
    )


def test_each_location_has_a_map_of_its_own_then_selu_then_layer_norm():
    tokens, weights = token_layer()
    out = random_layer(tokens, weights)
    for row in range(4):
        for place in range(3):
            mapped = weights[place, -1].clone()
            for number in range(5):
                mapped += tokens[row, place, number] * weights[place, number]
            assert torch.allclose(out[row, place], layer_norm(selu(mapped), (7,)), atol=1e-5)


def test_weights_and_biases_are_standard_normal():
    weights = draw_layer(Secret.of_seed(1).stream().normal, locations=16, inputs=64, width=64).double()
    for part in (weights[:, :-1], weights[:, -1]):
        # Five standard errors of mean, variance and fourth moment (variances 1, 2 and 96).
        for moment, expected, variance in ((1, 0, 1), (2, 1, 2), (4, 3, 96)):
            assert abs(float(part.pow(moment).mean()) - expected) < 5 * (variance / part.numel()) ** 0.5


def test_six_layers_of_the_paper_hold_its_random_parameters():
    layers = draw_layers(Secret.of_seed(0).stream().normal, locations=16, inputs=256, width=256, layers=6)
    assert sum(weights.numel() for weights in layers) == 6 * 16 * 65_792
    assert round(sum(weights.numel() for weights in layers) / 1e6, 1) == 6.3


def test_layers_follow_each_other():
    tokens, _ = token_layer()
    layers = draw_layers(Secret.of_seed(2).stream().normal, locations=3, inputs=5, width=7, layers=3)
    step = random_layer(random_layer(random_layer(tokens, layers[0]), layers[1]), layers[2])
    assert torch.equal(random_layers(tokens, layers), step)


def test_a_token_depends_on_its_own_row_and_place_only():
    tokens, weights = token_layer()
    before = random_layer(tokens, weights)
    tokens[1, 2] += 1
    moved = (random_layer(tokens, weights) - before).abs().amax(dim=2) > 1e-6
    assert moved.nonzero().tolist() == [[1, 2]]


def test_the_first_layer_forgets_nothing_that_a_wide_one_could_keep():
    tokens, _ = token_layer(locations=1, inputs=5, rows=200)
    code = random_layer(tokens, draw_layer(Secret.of_seed(3).stream().normal, locations=1, inputs=5, width=64))[:, 0]
    design = torch.cat((code, torch.ones(200, 1)), dim=1).double()
    fitted = design @ torch.linalg.lstsq(design, tokens[:, 0].double()).solution
    assert float((fitted - tokens[:, 0]).square().mean()) < 0.01 * float(tokens.var())


def test_the_same_generator_gives_the_same_weights():
    one, same, other = (
        draw_layer(Secret.of_seed(seed).stream().normal, locations=2, inputs=3, width=4) for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("sizes", [(0, 5, 7), (3, 0, 7), (3, 5, 0)])
def test_sizes_below_one_are_refused(sizes):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        draw_layer(Secret.of_seed(0).stream().normal, locations=sizes[0], inputs=sizes[1], width=sizes[2])
    with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
        draw_layers(Secret.of_seed(0).stream().normal, locations=3, inputs=5, width=7, layers=0)


def test_tokens_that_do_not_fit_are_refused():
    tokens, weights = token_layer()
    with pytest.raises(ValueError, match=r"read tokens \(b, 3, 5\), got shape \(4, 2, 5\)"):
        random_layer(tokens[:, :2], weights)


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
