"""Numbers that the authors' public code gave for inputs anybody can write down again, held against the methods here.

Code that was run: francescodisalvo05/cvae-anonymization at 3bbe27d (k-Same, CVAE), Cardio-AI/CADP at 6c4ad67 (clip),
yala/NeuraCrypt at 6c9862d (the encoder before its shuffle), Hazelsuko07/InstaHide at adc1b45 (the mixing). Nothing of
it is here but the numbers: weights and rows are `ramp`, and what the code draws at random was given to it.
"""

import math

import pytest
import torch
from made.datasets import unlabelled
from torch.nn.functional import one_hot

from bench.nets.cvae import ConditionalVAE, deviation, divergence
from bench.nets.patches import cut
from bench.randomness import Secret
from bench.types import Dataset
from methods import instahide
from methods.cadp_mechanism import clipped
from methods.instahide import InstaHide, Mixture
from methods.k_same import KSame
from methods.neuracrypt import encode


def ramp(*shape, by=7919):
    """Numbers in [0, 1): the squares of 1, 2, ... times `by`, modulo 1009, over 1009."""
    steps = torch.arange(1, math.prod(shape) + 1)
    return ((steps * steps * by % 1009).double() / 1009).reshape(shape).float()


CLUSTERS = {
    2: ([0, 1, 1, 2, 3, 4, 2, 0, 5, 6, 7, 8, 9, 7, 3, 8, 10, 4, 5, 9, 6, 10], [0.661546, 0.460852, 0.456888, 0.649653]),
    3: ([0, 1, 2, 1, 3, 4, 1, 5, 6, 0, 3, 5, 6, 4, 2, 5, 0, 4, 2, 6, 3], [0.533532, 0.30294, 0.435745, 0.598612]),
    5: ([0, 1, 1, 1, 2, 2, 1, 0, 0, 3, 2, 3, 0, 2, 1, 3, 3, 2, 3, 0], [0.814073, 0.598811, 0.480277, 0.658474]),
}


@pytest.mark.parametrize("k", CLUSTERS)
def test_k_same_makes_the_clusters_and_means_of_the_authors_code(k):
    private = Dataset("made", ramp(23, 4), torch.arange(23.0)[:, None] % 2, None, ("finding",), False, True)
    release = KSame(k=k, variant="paper").fit(private, 0).sample_key(Secret.of_seed(1)).release(private)
    cluster, first = CLUSTERS[k]
    seen: dict[tuple[float, ...], int] = {}
    assert [seen.setdefault(tuple(row), len(seen)) for row in release.samples.tolist()] == cluster
    assert release.samples[0].tolist() == pytest.approx(first, abs=2e-6)
    assert torch.equal(release.labels, private.labels[: len(cluster)])


def test_the_cvae_has_the_loss_of_the_authors_code():
    network = ConditionalVAE(6, 2, hidden=8, latent=3)
    for number, weight in enumerate(network.parameters()):
        weight.data = (2 * ramp(*weight.shape, by=101 + 2 * number) - 1) * 0.5
    rows, condition = ramp(5, 6, by=31), one_hot(torch.tensor([0, 1, 1, 0, 1]), 2).float()
    with torch.no_grad():
        mean, spread = network.encode(rows, condition)
        noise = 2 * ramp(5, 3, by=57) - 1
        back = network.decode(mean + deviation(spread, "official-code") * noise, condition)
        apart = float(divergence(mean, spread, "official-code").sum())
    assert apart == pytest.approx(13.572956, rel=1e-6)
    assert float((back - rows).square().sum()) == pytest.approx(2.827762, rel=1e-6)
    assert float((back - rows).square().sum()) + 0.1 * apart == pytest.approx(4.185058, rel=1e-6)
    assert back[2].tolist() == pytest.approx([0.395092, 0.464527, 0.342833, 0.609116, 0.580232, 0.429221], abs=1e-6)


@pytest.mark.parametrize(
    ("rows", "size", "norm", "expected"),
    [
        (3, 1.0, 1.5, [0.517673, -0.158321, 0.201031, 0.10972, -0.432253, 0.061119, 0.103829, -0.304124, 0.32327, 0.5,
                       0.226068, -0.498527, -0.187776, -0.327688, 0.567747]),
        (3, 0.2, 1.5, [0.139346, -0.042616, 0.054113, 0.029534, -0.116353, 0.016452, 0.027948, -0.081863, 0.087017,
                       0.134589, 0.060852, -0.134192, -0.050545, -0.088206, 0.152825]),
        (1, 1.0, 0.5, [0.5, -0.152916, 0.194168, 0.105974, -0.417496]),
        (1, 0.4, 0.5, [0.278692, -0.085233, 0.108226, 0.059068, -0.232706]),
    ],
)  # fmt: skip
def test_cadp_s_official_code_clips_a_batch_as_the_authors_code_does(rows, size, norm, expected):
    latent = ((2 * ramp(rows, 5) - 1) * size).double()
    assert clipped(latent, norm).flatten().tolist() == pytest.approx(expected, abs=2e-6)


def test_neuracrypt_encodes_as_the_authors_code_does():
    def weights(*shape, by):
        return (2 * ramp(*shape, by=by) - 1) * 0.5

    def maps(out, inputs, by):
        return torch.cat((weights(out, inputs, by=by).T, weights(out, by=by + 2)[None]))

    # In the order of the code's parameters; those of its batch normalisations, 1 and 0, were left as they are.
    network = {
        "place": weights(4, 16, by=211),
        "first": maps(16, 16, 213),
        "hidden": torch.stack((maps(16, 16, 217), maps(16, 16, 221))),
        "last": maps(16, 16, 225),
    }
    tokens = encode(network, cut(2 * ramp(6, 1, 8, 8, by=17) - 1, 4)).tokens
    assert tokens.shape == (6, 4, 16)
    assert tokens[0, 0].tolist() == pytest.approx(NEURACRYPT[0], abs=2e-5)
    assert tokens[5, 3].tolist() == pytest.approx(NEURACRYPT[1], abs=2e-5)
    assert float(tokens.abs().sum()) == pytest.approx(NEURACRYPT[2], rel=1e-5)


def test_instahide_mixes_and_flips_as_the_authors_code_does(monkeypatch):
    rows = torch.tensor([[0, 2, 3], [1, 0, 2], [2, 3, 1], [3, 1, 0]])
    drawn = (2 * ramp(4, 3, by=13) - 1).abs()
    drawn[1] = torch.tensor([0.5, 0.4, 0.3])  # a first draw, with a part above .65, was thrown away
    weights = drawn / drawn.sum(dim=1, keepdim=True)
    monkeypatch.setattr(instahide, "mix", lambda *_: Mixture(rows, weights))
    signs = (torch.arange(24) * 5 % 7 % 2 * 2 - 1).float().reshape(4, 1, 2, 3)
    monkeypatch.setattr(instahide, "_flip", lambda mixed, _: mixed * signs)
    flat = unlabelled(torch.tensor([-1.0, 1.0]).reshape(2, 1, 1, 1).expand(2, 1, 2, 3).contiguous())  # mean 0, spread 1
    labels = torch.tensor([0.0, 1, 1, 0])[:, None]
    private = Dataset("made", 2 * ramp(4, 1, 2, 3, by=23) - 1, labels, None, ("finding",), False, True)
    release = InstaHide(k=3).fit(flat, 0).sample_key(Secret.of_seed(1)).release(private)
    assert release.samples.flatten().tolist() == pytest.approx(INSTAHIDE, abs=2e-6)
    assert release.labels.flatten().tolist() == pytest.approx([0.339842, 0.666667, 0.644215, 0.09422], abs=2e-6)


NEURACRYPT = (
    [-0.19618, 0.80688, 0.54842, -1.05475, -0.22046, -0.70488, -0.28664, -1.15589, -0.98909, -1.11495, -0.40877,
     0.10034, -0.16009, 2.14144, -1.39344, 0.88739],
    [-1.36207, 1.80336, 0.08661, -1.72789, 0.37801, -0.50584, -0.93655, 0.28563, -1.5114, -1.10516, 0.00105, 0.18857,
     -0.32915, 2.04873, -1.83659, 1.92226],
    324.564606,
)  # fmt: skip
INSTAHIDE = [
    0.270602, -0.54609, -0.730398, -0.143842, 0.145791, 0.056562, 0.461183, 0.322927, -0.093492, -0.106211, 0.305583,
    0.024777, 0.474708, 0.322288, 0.078689, -0.456567, -0.030609, -0.514015, 0.79728, 0.73026, 0.57206, 0.511122,
    -0.170564, 0.072733,
]  # fmt: skip
