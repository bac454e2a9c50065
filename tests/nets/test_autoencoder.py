import math

import pytest
import torch

from bench.nets.autoencoder import Autoencoder, ReconstructionCourse, train_autoencoder, unexplained
from bench.nets.training import seeded

SHORT = ReconstructionCourse(steps=100, batch=16, learning_rate=1e-2, precision="float32")


def blobs(n, side=16, seed=0):
    """Images (n, 1, side, side) of one soft spot each: two numbers, its place, say everything about an image."""
    place = torch.rand(n, 2, 1, 1, generator=torch.Generator().manual_seed(seed))
    y, x = torch.meshgrid(torch.linspace(0, 1, side), torch.linspace(0, 1, side), indexing="ij")
    return torch.exp(-((y - place[:, 0]) ** 2 + (x - place[:, 1]) ** 2) / 0.1).unsqueeze(1)


def built(shape, width=16, seed=0):
    with seeded(seed):
        return Autoencoder(shape, width)


@pytest.mark.parametrize(
    ("shape", "layers"),
    [((1, 64, 64), 6), ((3, 28, 28), 5), ((1, 32, 32), 5), ((2, 17, 40), 6), ((1, 1, 1), 1), ((1, 1, 9), 4)],
)
def test_any_size_becomes_one_code_and_that_size_again(shape, layers):
    network = built(shape).eval()
    images = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
    assert sum(isinstance(part, torch.nn.Conv2d) for part in network.modules()) == layers
    assert sum(isinstance(part, torch.nn.ConvTranspose2d) for part in network.modules()) == layers
    assert network.encode(images).shape == (2, 16)
    assert network(images).shape == images.shape


def test_the_code_ends_in_batch_norm_and_the_image_does_not():
    network = built((1, 64, 64), 256)
    norms = [part for part in network.encoder.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    assert (len(norms), norms[-1].num_features) == (6, 256)
    assert isinstance(list(network.decoder.modules())[-1], torch.nn.ConvTranspose2d)


def test_training_learns_more_than_the_mean_image_and_generalises():
    network = built((1, 16, 16), width=32)
    train_autoencoder(network, blobs(96), SHORT, 0)
    assert unexplained(network, blobs(96)) < 0.3
    assert unexplained(network, blobs(48, seed=1)) < 0.3
    codes = network.encode(blobs(96))
    assert 0.5 < float(codes.std(dim=0, correction=0).mean()) < 2  # of order one, as noise scales assume


def test_knowing_only_the_mean_leaves_everything_unexplained():
    network, images = built((1, 16, 16)).eval(), blobs(20)
    network.start_at(images)
    for weight in list(network.decoder.parameters())[-2:]:
        torch.nn.init.zeros_(weight)
    assert unexplained(network, images) == pytest.approx(1.0)
    assert math.isnan(unexplained(network, images.mean(dim=0, keepdim=True)))


def test_the_same_seed_gives_the_same_bits_and_leaves_the_images_alone():
    images = blobs(24)
    before, found = images.clone(), []
    for seed in (0, 0, 1):
        network = built((1, 16, 16))
        train_autoencoder(network, images, ReconstructionCourse(4, 8, 1e-2, "float32"), seed)
        found.append(network.encode(images))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert torch.equal(images, before)


def test_a_code_does_not_depend_on_its_batch():
    network = built((1, 16, 16))
    train_autoencoder(network, blobs(24), ReconstructionCourse(4, 8, 1e-2, "float32"), 0)
    images = blobs(8, seed=1)
    assert torch.allclose(network.encode(images)[3:4], network.encode(images[3:4]), atol=1e-5)


def test_training_that_diverges_is_an_error():
    with pytest.raises(FloatingPointError, match=r"diverged by step .* lower learning_rate"):
        train_autoencoder(built((1, 16, 16)), blobs(24), ReconstructionCourse(20, 8, 1e30, "float32"), 0)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"batch": 1}, "batch must be at least 2, got 1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0"),
    ],
)
def test_senseless_courses_are_refused(choice, message):
    with pytest.raises(ValueError, match=message):
        ReconstructionCourse(**{"steps": 1, "batch": 2, "learning_rate": 1.0, "precision": "float32", **choice})
