"""No step of a training makes the host wait for the device, or copies anything between them: only reports do.

Every training reports equally often, however many steps it takes: twice the steps may not cost one wait more.
What is drawn from a secret is drawn on the host, and copied to the device.
"""

from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from made.simulated_cuda import SimulatedCuda
from torch import nn

from attacks.contrastive import Contrastive, ContrastiveLabels
from attacks.moments import Moments
from bench.bob import linear_models
from bench.bob.linear_models import train_probe
from bench.bob.recipes import shifted
from bench.conformance.outcome import sample_data
from bench.nets.autoencoder import Autoencoder, ReconstructionCourse, train_autoencoder
from bench.nets.classifier import Course, train
from bench.nets.cvae import ConditionalVAE, CVAECourse, train_cvae
from bench.nets.decoder import train_decoder
from bench.nets.normalising_flow import Flow, FlowCourse, train_flow
from bench.nets.obfuscator import Obfuscator, Opponents, train_obfuscator
from bench.nets.private_training import PrivateCourse, train_privately
from bench.randomness import Secret
from bench.types import View
from methods.dauntless import Dauntless

OPPONENTS = Opponents(
    steps=1, batch=8, lambda_reid=2.0, lambda_rec=20.0, lambda_match=1.0, learning_rate=1e-3, width=16, depth=1,
    relations=True, precision="bfloat16", compiled=False,
)  # fmt: skip


class Affine(Flow):
    """Every element shifted."""

    def __init__(self, d):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(d))

    def encode(self, samples, condition=None):
        return samples.flatten(1) - self.shift, self.shift.sum().expand(len(samples))

    def decode(self, latent, condition=None):
        return latent + self.shift


def images(n=32, side=16):
    return torch.rand(n, 1, side, side, generator=torch.Generator().manual_seed(0)).to("cuda")


def table(n=64):
    """Rows, and a finding that every second of them has."""
    return torch.rand(n, 6).to("cuda"), (torch.arange(n)[:, None] % 2).float().to("cuda")


def flow(steps):
    rows, _ = table()
    train_flow(
        Affine(6).to("cuda"), rows, rows[:, :2], FlowCourse(steps, 8, 1e-3), held_out=(rows, rows[:, :2]), seed=0
    )


def autoencoder(steps):
    train_autoencoder(
        Autoencoder((1, 16, 16), 8).to("cuda"), images(), ReconstructionCourse(steps, 8, 1e-3, "bfloat16"), 0
    )


def obfuscator(steps):
    network = Obfuscator((1, 16, 16), patch_size=8, width=16, blocks=1, depth=1).to("cuda")
    network.standardise_by(images())
    train_obfuscator(network, images(), replace(OPPONENTS, steps=steps), 0)


def decoder(steps):
    train_decoder(images(), images(), steps=steps, seed=0, batch=8, width=16)


def classifier(steps):
    """As many epochs whatever the steps: reports come by epoch."""
    network, labels = nn.Sequential(nn.Flatten(), nn.Linear(256, 2)).to("cuda"), torch.ones(64, 2).to("cuda")
    course = Course(2, None, 128 // steps, 1e-3, 0.05, "bfloat16")
    for _ in train(network, images(64), labels, course, exclusive=False, seed=0, vary=shifted):
        pass


def cvae(steps):
    """As many epochs whatever the steps: the judged rows say after each how it goes."""
    rows, findings = table()
    course = CVAECourse("corrected", 1.0, epochs=2, batch=64 // steps, learning_rate=1e-3, patience=None)
    network = ConditionalVAE(6, 1, hidden=8, latent=3).to("cuda")
    train_cvae(network, rows, findings, course, judged=(rows, findings), secret=Secret.of_seed(0))


def private(steps):
    rows, findings = table()
    course = PrivateCourse(10.0, 1e-3, epochs=steps, batch=64, learning_rate=None, clip_norm=1.0)
    train_privately(nn.Linear(6, 1).to("cuda"), rows, findings, course, exclusive=False, secret=Secret.of_seed(0))


def probe(steps):
    """Two epochs whatever the steps: the loss of each decides what comes."""
    with patch.multiple(linear_models, EPOCHS=2, STEPS=1):
        train_probe(table(linear_models.BATCH * steps), table(), exclusive=False, seed=0)


def fitted(attack):
    data = sample_data(rows=32).to("cuda")
    attack.fit(View(data, Dauntless(16).fit(data, 0), replace(data, subjects=None), data), 0)


def contrastive(steps):
    fitted(Contrastive(steps=steps, batch=8, width=16, depth=1))


def contrastive_labels(steps):
    fitted(ContrastiveLabels(steps=steps, batch=8, width=16, depth=1))


def moments(steps):
    fitted(Moments(steps=steps, batch=8, width=16))


@pytest.mark.parametrize(
    ("training", "steps", "draws"),
    [
        (flow, 50, False),
        (autoencoder, 20, False),
        (decoder, 10, False),
        (classifier, 16, False),
        (probe, 2, False),
        (cvae, 2, True),
        pytest.param(private, 2, True, marks=pytest.mark.slow),
        pytest.param(obfuscator, 50, False, marks=pytest.mark.slow),
        pytest.param(contrastive, 12, True, marks=pytest.mark.slow),
        pytest.param(contrastive_labels, 12, True, marks=pytest.mark.slow),
        pytest.param(moments, 12, True, marks=pytest.mark.slow),
    ],
)
def test_twice_the_steps_wait_no_more_often(training, steps, draws):
    """Where every step draws from a secret, what it drew is copied to the device."""
    spent = []
    for number in (steps, 2 * steps):
        with SimulatedCuda() as cuda:
            training(number)
        spent.append(cuda)
    once, twice = spent
    assert twice.waits == once.waits
    assert twice.downloads == once.downloads
    assert draws or twice.uploads == once.uploads
