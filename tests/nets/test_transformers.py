import pytest
import torch
from torch.nn.functional import layer_norm, selu

from bench.nets.training import seeded
from bench.nets.transformers import SAU, InstanceSAU, SAULayer, SetSAU, vit


@pytest.mark.parametrize(("shape", "patch_size"), [((1, 64, 64), 16), ((3, 16, 16), 8), ((20,), 16), ((1, 9, 9), None)])
def test_an_instance_becomes_one_embedding(shape, patch_size):
    assert InstanceSAU(shape, width=32, depth=2, patch_size=patch_size)(torch.rand(5, *shape)).shape == (5, 32)


def test_a_closed_gate_makes_a_feed_forward_layer():
    with seeded(0):
        layer, tokens = SAULayer(16, heads=2, locations=3, residual=True), torch.randn(4, 3, 16)
    layer.gate.data.fill_(-100.0)
    h = layer_norm(tokens, (16,), layer.scale) + layer.position
    assert torch.allclose(layer(tokens), tokens + selu(layer.out(h)), atol=1e-6)


def test_an_open_gate_attends_like_the_textbook():
    with seeded(0):
        layer, tokens = SAULayer(16, heads=2, locations=3, residual=False), torch.randn(4, 3, 16)
    layer.gate.data.fill_(100.0)
    h = layer_norm(tokens, (16,), layer.scale) + layer.position
    query, key, value = layer.attend(h).chunk(3, dim=2)
    heads = []
    for part in (slice(0, 8), slice(8, 16)):
        weights = (query[..., part] @ key[..., part].transpose(1, 2) / 8**0.5).softmax(dim=2)
        heads.append(weights @ value[..., part])
    assert torch.allclose(layer(tokens), selu(layer.out(torch.cat(heads, dim=2))), atol=1e-5)


def test_the_gate_starts_mostly_closed_and_learns():
    layer = SAULayer(16, heads=2, locations=3, residual=True)
    assert layer.gate.item() == -2.0
    layer(torch.randn(4, 3, 16)).square().sum().backward()
    assert layer.gate.grad is not None
    assert float(layer.gate.grad) != 0


def test_a_layer_has_four_maps_of_width_by_width():
    maps = [weight for weight in SAULayer(256, 4, 16, True).parameters() if weight.ndim == 2 and len(weight) != 16]
    assert sum(weight.numel() for weight in maps) == 4 * 256 * 256


def test_positions_tell_equal_tokens_apart_and_sets_have_none():
    tokens = torch.ones(1, 3, 16)
    with seeded(0):
        placed, unplaced = SAU(16, 1, locations=3), SAU(16, 1)
    assert not torch.allclose(placed(tokens)[0, 0], placed(tokens)[0, 1])
    assert torch.allclose(unplaced(tokens)[0, 0], unplaced(tokens)[0, 1])


def test_row_order_does_not_matter_to_a_set_but_its_members_do():
    with seeded(0):
        network, rows = SetSAU(16), torch.randn(12, 16)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(network(rows)[order], network(rows[order]), atol=1e-5)
    assert not torch.allclose(network(rows)[:6], network(rows[:6]), atol=1e-3)


def test_the_same_seed_gives_the_same_weights_and_leaves_torch_alone():
    before = torch.random.get_rng_state()
    weights = []
    for seed in (1, 1, 2):
        with seeded(seed):
            weights.append(SAU(16, 1).layers[0].out.weight)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(before, torch.random.get_rng_state())


def test_width_that_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="width 30 and heads 4"):
        SAU(30, 1)


@pytest.mark.parametrize(
    ("shape", "patch_size"), [((1, 64, 64), 16), ((3, 16, 16), 8), ((1, 8, 16), 8), ((1, 9, 9), None)]
)
def test_an_image_becomes_one_embedding(shape, patch_size):
    assert vit(shape, width=16, depth=1, patch_size=patch_size, sizes=True)(torch.rand(5, *shape)).shape == (5, 16)


def test_patches_that_change_places_are_noticed():
    with seeded(0):
        network, image = vit((1, 16, 16), width=16, depth=1, patch_size=8).eval(), torch.rand(1, 1, 16, 16)
    assert not torch.allclose(network(image), network(image.flip(3)), atol=1e-3)


def test_sizes_tell_bright_from_dim_noise():
    with seeded(0):
        network, image = vit((1, 16, 16), width=16, depth=1, patch_size=8, sizes=True).eval(), torch.rand(1, 1, 16, 16)
    for weight in (network.patch_embed.embed.weight, network.patch_embed.embed.bias):
        weight.data.zero_()  # the content is hidden, the size is not
    assert not torch.allclose(network(image), network(0.1 * image), atol=1e-3)


def test_blocks_are_those_of_the_textbook():
    # A block has 4 w^2 weights of attention and 8 w^2 of its feed-forward part, 9 w biases and 4 w of two LayerNorms.
    blocks = vit((1, 16, 16), width=16, depth=3, patch_size=8).blocks
    assert sum(weight.numel() for weight in blocks.parameters()) == 3 * (12 * 16**2 + 13 * 16)


def test_a_width_that_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="multiple of 4 and depth at least 1, got 30 and 1"):
        vit((1, 16, 16), width=30, depth=1)
