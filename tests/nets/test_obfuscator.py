import pytest
import torch

from bench.nets.obfuscator import Obfuscator, random_layer
from bench.nets.patches import cut
from bench.nets.training import seeded
from bench.randomness import Secret
from bench.seeds import generator


def made(shape=(1, 16, 16), patch_size=4, width=16, blocks=2, depth=2):
    with seeded(0):
        return Obfuscator(shape, patch_size=patch_size, width=width, blocks=blocks, depth=depth)


def test_blocks_are_learned_layers_then_a_random_one_and_the_last_has_two():
    network, images = made(), torch.rand(3, 1, 16, 16, generator=generator(1))
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
    network = made(shape=(2, 16, 16))
    images = torch.rand(5, 2, 16, 16, generator=generator(1)) * torch.tensor([1.0, 7.0]).view(1, 2, 1, 1)
    key = network.draw(Secret.of_seed(2).stream().normal)
    network.standardise_by(images)
    standard = (images - images.mean(dim=(0, 2, 3), keepdim=True)) / images.std(
        dim=(0, 2, 3), correction=0, keepdim=True
    )
    plain = made(shape=(2, 16, 16))
    assert torch.allclose(network(images, key), plain(standard, key), atol=1e-4)


def test_every_patch_reaches_every_token_and_no_other_image():
    network, images = made(), torch.rand(3, 1, 16, 16, generator=generator(1))
    key = network.draw(Secret.of_seed(2).stream().normal)
    before = network(images, key)
    images[1, 0, 0, 0] += 0.5
    moved = cut((network(images, key) - before).abs(), 4).amax(dim=2) > 1e-7
    assert moved[1].all()
    assert not moved[[0, 2]].any()


@pytest.mark.parametrize(("width", "blocks", "depth"), [(48, 1, 1), (0, 1, 1), (9, 1, 1), (16, 0, 1), (16, 1, 0)])
def test_senseless_sizes_are_refused(width, blocks, depth):
    with pytest.raises(ValueError, match="got"):
        made(width=width, blocks=blocks, depth=depth)


def test_a_patch_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="got 5 for 16x16"):
        made(patch_size=5)
