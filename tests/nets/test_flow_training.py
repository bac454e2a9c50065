import math

import pytest
import torch
from torch import nn

from bench.nets.normalising_flow import (
    CHUNK,
    EXPLOSION,
    Flow,
    FlowCourse,
    FlowDiverged,
    decoded,
    encoded,
    log_densities,
    train_flow,
)


class Affine(Flow):
    """Every element shifted and scaled, and shifted by the condition's sum."""

    def __init__(self, d):
        super().__init__()
        self.log_scale, self.shift = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(d))
        self.seen = []

    def encode(self, samples, condition=None):
        self.seen.append(condition)
        offset = 0 if condition is None else condition.sum(dim=1, keepdim=True)
        return (samples.flatten(1) - self.shift - offset) * self.log_scale.exp(), self.log_scale.sum().expand(
            len(samples)
        )

    def decode(self, latent, condition=None):
        offset = 0 if condition is None else condition.sum(dim=1, keepdim=True)
        return latent * (-self.log_scale).exp() + self.shift + offset


def normal(n, d, seed=0):
    return 3 * torch.randn(n, d, generator=torch.Generator().manual_seed(seed)) + 1


def test_training_finds_the_density_that_the_rows_come_from():
    course = FlowCourse(1500, 256, 1e-2, noise=0.0)
    flow, held = Affine(4), normal(4000, 4, seed=1)
    fit = train_flow(flow, normal(4000, 4), None, course, held_out=(held, None), seed=0)
    entropy = math.log(3) + 0.5 * math.log(2 * math.pi * math.e)
    # The mean of 16,000 values of (x^2 - 1) / 2, whose deviation is 1 / sqrt 2: five standard errors, and the little
    # that maximum likelihood on as many rows loses.
    assert fit.nats_per_dim == pytest.approx(entropy, abs=5 / math.sqrt(2 * 16_000) + 1e-3)
    assert fit.bits_per_dim is None
    assert (fit.steps, fit.rows) == (1500, 4000)
    assert not flow.training


def test_bits_of_an_image_are_those_of_eight_bit_pixels():
    images = torch.randint(0, 256, (300, 1, 6, 6), generator=torch.Generator().manual_seed(0)) / 255
    flow = Affine(36)
    fit = train_flow(flow, images, None, FlowCourse(1, 8, 1e-9), held_out=(images, None), seed=0)
    # Under a standard normal flow -log p = (x^2 + log 2 pi) / 2; with uniform noise x^2 has mean 1/3 + 1/255 about.
    noisy = images.double().square().mean() + 1 / 12 / 255**2
    nats = 0.5 * (float(noisy) + math.log(2 * math.pi))
    assert fit.nats_per_dim == pytest.approx(nats, abs=2e-5)
    assert fit.bits_per_dim == pytest.approx(nats / math.log(2) + math.log2(255), abs=3e-5)


def test_uniform_noise_fills_the_steps_and_a_number_is_a_deviation():
    flow = Affine(50)
    seen = []
    flow.encode = lambda samples, condition=None: (seen.append(samples), Affine.encode(flow, samples, condition))[1]
    rows = torch.full((400, 50), 0.5)
    for noise in ("uniform", 0.2):
        train_flow(flow, rows, None, FlowCourse(1, 400, 1e-9, noise=noise), held_out=(rows, None), seed=0)
    uniform, gaussian = (seen[index] - 0.5 for index in (0, 2))
    assert 0.49 / 255 < uniform.abs().max() <= 0.5 / 255 + 1e-7
    assert float(uniform.std()) == pytest.approx(1 / 255 / math.sqrt(12), rel=0.02)
    # 20,000 numbers: the relative standard error of their deviation is 1 / 200; five of them.
    assert float(gaussian.std()) == pytest.approx(0.2, rel=5 / 200)


@pytest.mark.parametrize(("side", "batch", "rows"), [(8, 4, 256), (256, 4, 64), (512, 4, 16), (512, 20, 20)])
def test_large_images_do_not_begin_with_more_rows_than_memory_holds(side, batch, rows):
    """Of 512 pixels, 256 rows under a network of width 512 would be 34 GB in one layer; training takes four."""

    class BegunError(Exception):
        pass

    class Beginning(Affine):
        def initialise(self, samples, condition=None):
            raise BegunError(len(samples))

    images = torch.zeros(1, 1, 1, 1).expand(300, 1, side, side)
    with pytest.raises(BegunError, match=f"^{rows}$"):
        train_flow(Beginning(1), images, None, FlowCourse(1, batch, 1e-3), held_out=(images[:1], None), seed=0)


def test_noise_and_rows_are_drawn_anew_every_step_and_repeat_with_the_seed():
    flows = [Affine(3) for _ in range(3)]
    course = FlowCourse(40, 16, 1e-2, noise=0.5)
    for flow, seed in zip(flows, (0, 0, 1), strict=True):
        train_flow(flow, normal(100, 3), None, course, held_out=(normal(20, 3), None), seed=seed)
    assert torch.equal(flows[0].shift, flows[1].shift)
    assert not torch.equal(flows[0].shift, flows[2].shift)


def test_training_leaves_the_global_random_numbers_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    train_flow(Affine(3), normal(50, 3), None, FlowCourse(3, 16, 1e-2), held_out=(normal(9, 3), None), seed=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_dropped_conditions_are_zero_for_the_stated_share_of_rows():
    flow, rows = Affine(2), normal(5000, 2)
    held = (rows, torch.ones(5000, 3))
    train_flow(flow, rows, torch.ones(5000, 3), FlowCourse(1, 5000, 1e-3, condition_dropout=0.3), held_out=held, seed=0)
    dropped = (flow.seen[0] == 0).all(dim=1)
    assert torch.equal((flow.seen[0] == 0).any(dim=1), dropped)
    # Binomial(5000, 0.3): five standard deviations.
    assert float(dropped.float().mean()) == pytest.approx(0.3, abs=5 * math.sqrt(0.21 / 5000))
    assert (flow.seen[-1] == 1).all()  # judged with the conditions as they are


@pytest.mark.parametrize("rate", [1e3, math.nan])
def test_a_run_that_diverges_says_where_and_what_to_do(rate):
    rows = normal(100, 3) if math.isfinite(rate) else torch.full((100, 3), math.nan)
    course = FlowCourse(500, 16, rate if math.isfinite(rate) else 1e-3, warm_up=0, noise=0.0)
    with pytest.raises(FlowDiverged, match=r"diverged at step \d+: loss .*; lower learning_rate"):
        train_flow(Affine(3), rows, None, course, held_out=(rows, None), seed=0)


def test_an_explosion_is_measured_from_the_lowest_loss():
    flow, rows = Affine(1), torch.zeros(8, 1)
    jumps = iter([0.0, 0.0, math.sqrt(2 * EXPLOSION) + 1])
    flow.encode = lambda samples, condition=None: (samples * flow.log_scale.exp() + next(jumps), flow.log_scale * 0)
    with pytest.raises(FlowDiverged, match="at step 2: "):
        train_flow(flow, rows, None, FlowCourse(5, 8, 1e-3, noise=0.0), held_out=(rows, None), seed=0)


def test_gradients_are_no_longer_than_the_clip():
    rows, lengths = normal(64, 3), []

    class Watched(Affine):
        def encode(self, samples, condition=None):
            if self.shift.grad is not None:
                lengths.append(math.hypot(self.shift.grad.norm(), self.log_scale.grad.norm()))
            return super().encode(samples, condition)

    course = FlowCourse(6, 16, 1e-3, clip_norm=0.5, noise=0.0)
    train_flow(Watched(3), rows, None, course, held_out=(rows, None), seed=0)
    assert lengths
    assert all(length == pytest.approx(0.5, rel=1e-4) for length in lengths)


def test_the_rate_warms_up_and_then_falls():
    cosine, steps = FlowCourse(100, 1, 1.0, warm_up=10), FlowCourse(100, 1, 1.0, warm_up=0, milestones=(0.5, 0.8))
    assert [cosine.rate(step) for step in (0, 50)] == pytest.approx([0.1, 0.5])
    assert cosine.rate(99) < 1e-3
    assert [steps.rate(step) for step in (0, 49, 50, 79, 80)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    assert FlowCourse(100, 1, 1.0, warm_up=0, milestones=()).rate(99) == 1


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"clip_norm": -1.0}, "clip_norm must be positive"),
        ({"warm_up": -1}, "warm_up must be at least 0"),
        ({"noise": "normal"}, "noise must be"),
        ({"noise": -0.1}, "noise must be"),
        ({"condition_dropout": 1.5}, r"condition_dropout must be in \[0, 1\], got 1.5"),
    ],
)
def test_senseless_courses_are_refused(choice, message):
    with pytest.raises(ValueError, match=message):
        FlowCourse(**{"steps": 1, "batch": 1, "learning_rate": 1.0, **choice})


def test_chunks_are_put_together_in_order():
    flow, rows = Affine(CHUNK // 2), torch.arange(5.0)[:, None].expand(-1, CHUNK // 2)  # two rows a chunk
    condition = 10 * torch.arange(5.0)[:, None]
    latent = encoded(flow, rows, condition)
    assert torch.equal(latent[:, 0], torch.arange(5.0) * -9)
    assert torch.equal(decoded(flow, latent, condition), rows)
    expected = [-0.5 * CHUNK / 2 * (81 * row**2 + math.log(2 * math.pi)) for row in range(5)]
    assert log_densities(flow, rows, condition).tolist() == pytest.approx(expected, rel=1e-5)
    assert len(flow.seen) == 6
