import pytest
import torch

from bench.nets.training import seeded
from bench.nets.transformers import vit


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
