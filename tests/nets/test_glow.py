from functools import cache

import pytest
import torch

from bench.nets.glow import LIMIT, Glow, most_levels, usual_levels
from bench.nets.normalising_flow import FlowCourse, decoded, encoded, log_densities, train_flow
from bench.nets.training import seeded

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {"levels": 2, "depth": 2, "width": 8}


def smooth(n, shape, seed=0):
    source = torch.Generator().manual_seed(seed)
    coarse = torch.rand(n, shape[0], 2, 2, generator=source)
    fine = torch.rand(n, *shape, generator=source)
    return 0.9 * torch.nn.functional.interpolate(coarse, size=shape[1:], mode="bilinear") + 0.1 * fine


def stirred(shape, seed=0, **sizes):
    """A Glow in evaluation mode none of whose layers is at its start."""
    with seeded(seed):
        flow = Glow(shape, **{**SMALL, **sizes})
        flow.initialise(smooth(32, shape))
        for weight in flow.parameters():
            weight.data += 0.1 * torch.randn_like(weight)
    return flow.eval()


@cache
def trained(precision="float32", steps=60):
    images = smooth(160, (1, 16, 16))
    with seeded(0):
        flow = Glow((1, 16, 16), levels=2, depth=4, width=16, precision=precision)
    course = FlowCourse(steps, 32, 2e-3, warm_up=10)
    return flow, train_flow(flow, images[:128], None, course, held_out=(images[128:], None), seed=0)


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 4, 12), (3, 8, 4)])
def test_the_log_determinant_is_that_of_the_jacobian(shape):
    flow, image = stirred(shape).double(), smooth(1, shape, seed=1).double()
    jacobian = torch.autograd.functional.jacobian(lambda x: flow.encode(x)[0][0], image).reshape(image.numel(), -1)
    assert torch.allclose(torch.linalg.slogdet(jacobian).logabsdet, flow.encode(image)[1], atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 4, 12), (3, 8, 4)])
def test_decoding_undoes_encoding_and_encoding_decoding(shape):
    flow, images = stirred(shape).double(), smooth(5, shape, seed=1).double()
    latent = flow.encode(images)[0]
    assert latent.shape == (5, images[0].numel())
    assert torch.allclose(flow.decode(latent), images, atol=1e-9)
    source = torch.Generator().manual_seed(2)
    drawn = torch.randn(latent.shape, generator=source, dtype=torch.float64)
    assert torch.allclose(flow.encode(flow.decode(drawn))[0], drawn, atol=1e-7)


def test_a_trained_flow_inverts_to_a_ten_thousandth_in_float32_and_has_learned():
    flow, fit = trained()
    images = smooth(64, (1, 16, 16), seed=3)
    assert float((decoded(flow, encoded(flow, images)) - images).abs().max()) < 1e-4
    # Independent pixels, each normal with its own mean and deviation, need 7.6 bits; a flow that was only normalised by
    # its first batch 6.5. Training takes three quarters of a bit off in any arithmetic.
    assert fit.bits_per_dim < trained(steps=1)[1].bits_per_dim - 0.5


def test_training_in_bfloat16_is_judged_in_float32_and_costs_no_bits():
    half, whole = trained("bfloat16")[1], trained()[1]
    assert half.bits_per_dim != whole.bits_per_dim  # bfloat16 was in use
    assert half.bits_per_dim == pytest.approx(whole.bits_per_dim, abs=0.05)
    flow, image = stirred((1, 8, 8)), smooth(1, (1, 8, 8))
    exact = flow.encode(image)[0]
    flow.precision = "bfloat16"
    assert torch.equal(flow.encode(image)[0], exact)
    assert not torch.equal(flow.train().encode(image)[0], exact)


def test_the_first_batch_normalises_the_latent():
    with seeded(0):
        flow = Glow((1, 16, 16), **SMALL)
    images = smooth(200, (1, 16, 16))
    flow.initialise(images)
    latent = flow.encode(images)[0]
    # Every step starts as an affine map of channels that were just normalised, then a rotation and a fixed scale.
    assert latent.mean().abs() < 0.05
    assert 0.7 < latent.std() < 1.1


def test_a_constant_channel_does_not_break_the_first_batch():
    images = torch.zeros(20, 1, 8, 8)
    with seeded(0):
        flow = Glow((1, 8, 8), **SMALL)
    flow.initialise(images)
    assert flow.encode(images)[0].isfinite().all()


def test_latents_far_from_any_image_decode_to_finite_numbers():
    flow = stirred((1, 16, 16), levels=3, depth=8)
    far = 50 * torch.randn(20, 256, generator=torch.Generator().manual_seed(0))
    assert decoded(flow, far).isfinite().all()


def test_a_scale_never_shrinks_or_stretches_beyond_its_bound():
    flow = stirred((1, 8, 8))
    for _, coupling in flow.levels[0].steps():
        coupling.leave.weight.data *= 1e6
        kept = torch.randn(9, 2, 4, 4, generator=torch.Generator().manual_seed(0))
        _, log_scale = coupling._affine(kept, "float32")
        bounds = torch.nn.functional.logsigmoid(torch.tensor((2 - LIMIT, 2 + LIMIT)))
        assert log_scale.min() >= bounds[0] - 1e-6
        assert log_scale.max() <= bounds[1] + 1e-6


def test_a_row_has_the_same_latent_and_density_in_any_company():
    flow, images = stirred((1, 8, 8)), smooth(9, (1, 8, 8))
    assert torch.allclose(encoded(flow, images)[4:5], encoded(flow, images[4:5]), atol=1e-5)
    assert torch.allclose(log_densities(flow, images)[4:5], log_densities(flow, images[4:5]), rtol=1e-5)


@pytest.mark.parametrize(("side", "levels"), [(512, 7), (64, 4), (32, 3), (28, 2), (8, 1), (6, 1), (2, 1)])
def test_usual_levels_leave_sides_of_four_pixels(side, levels):
    assert usual_levels(side, side) == levels <= most_levels(side, side)


def test_sides_that_the_levels_do_not_divide_are_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"3 levels .* 28x28 allow it 2 times: lower levels, or .* that 8 divides"):
        Glow((1, 28, 28), levels=3, depth=1, width=4)


@pytest.mark.parametrize("size", ["levels", "depth", "width"])
def test_sizes_below_one_are_refused(size):
    with pytest.raises(ValueError, match=f"{size} must be at least 1, got 0"):
        Glow((1, 8, 8), **{**SMALL, size: 0})


def test_the_paper_sizes_can_be_built():
    with torch.device("meta"):
        flow = Glow((1, 512, 512), levels=7, depth=1, width=512)
    assert [level.mixings[0].bias.numel() for level in flow.levels] == [4, 8, 16, 32, 64, 128, 256]
