import math

import pytest
import torch

from bench.nets.cinn import CINN, CINNSizes, levels_of
from bench.nets.normalising_flow import FlowCourse, train_flow
from bench.nets.training import seeded
from bench.types import NotApplicable

KINDS = [
    ((1, 8, 8), 2, "glow", "haar"),
    ((3, 12, 8), 0, "gin", "i-revnet"),
    ((5,), 3, "gin", "haar"),
    ((4,), 0, "glow", "haar"),
]
SPLIT = [((1, 8, 8), 2, (0.5, 0.25)), ((3, 8, 4), 0, (1.0, 0.5)), ((1, 4, 4), 1, (0.5,))]


def small(shape, conditions, coupling="glow", downsampling="haar", *, seed=0, spread=0.1, noise=0.1, splits=()):
    """A flow whose last layers are no longer zero."""
    sizes = CINNSizes(coupling, downsampling, None, splits, 2, 8, 2, 12, 1.5, noise)
    with seeded(seed):
        flow = CINN(shape, conditions, sizes)
        for weight in flow.parameters():
            if weight.requires_grad:
                torch.nn.init.normal_(weight, std=spread)
    return flow.eval()


def rows(shape, conditions, n=6):
    random = torch.Generator().manual_seed(1)
    samples, condition = torch.rand(n, *shape, generator=random), torch.rand(n, conditions, generator=random)
    return samples, condition if conditions else None


def each_kind(test):
    """Flows of every kind, and some whose levels give channels out."""
    kinds = [(*kind, ()) for kind in KINDS] + [(*kind, "glow", "i-revnet", splits) for *kind, splits in SPLIT]
    return pytest.mark.parametrize(("shape", "conditions", "coupling", "downsampling", "splits"), kinds)(test)


@each_kind
def test_decoding_inverts_encoding(shape, conditions, coupling, downsampling, splits):
    flow = small(shape, conditions, coupling, downsampling, splits=splits)
    samples, condition = rows(shape, conditions)
    flow.standardise_by(samples)
    with torch.no_grad():
        latent, _ = flow.encode(samples, condition)
        assert latent.shape == (6, math.prod(shape))
        torch.testing.assert_close(flow.decode(latent, condition), samples, atol=1e-5, rtol=0)


@each_kind
def test_the_log_determinant_is_that_of_the_jacobian(shape, conditions, coupling, downsampling, splits):
    flow = small(shape, conditions, coupling, downsampling, splits=splits)
    samples, condition = rows(shape, conditions, n=1)
    flow.standardise_by(rows(shape, 0, n=9)[0])
    flow.double()
    samples, condition = samples.double(), None if condition is None else condition.double()
    jacobian = torch.autograd.functional.jacobian(lambda x: flow.encode(x, condition)[0], samples)
    expected = torch.linalg.slogdet(jacobian.reshape(math.prod(shape), -1)).logabsdet
    torch.testing.assert_close(flow.encode(samples, condition)[1][0], expected, atol=1e-6, rtol=1e-6)


def test_what_leaves_a_level_is_latent_as_it_is_and_never_reaches_the_flat_couplings():
    flow = small((1, 8, 8), 2, splits=(0.5, 0.25))
    assert flow.parts == [2 * 2 * 2, 2 * 4 * 4, 6 * 2 * 2]  # of 4 channels 2 go on, and of their 8 channels again 2
    told = []
    flow.flat[0].register_forward_pre_hook(lambda module, given: told.append(given[0][0].shape[1]))
    samples, condition = rows((1, 8, 8), 2)
    before, _ = flow.encode(samples, condition)
    for weight in flow.flat.parameters():
        torch.nn.init.normal_(weight)
    after, _ = flow.encode(samples, condition)
    assert told == [8, 8]
    assert torch.equal(before[:, 8:], after[:, 8:])
    assert not torch.equal(before[:, :8], after[:, :8])
    with pytest.raises(NotApplicable, match=r"of 4 channels of a level, a share of 0.1 leaves none to go on"):
        small((1, 8, 8), 2, splits=(0.1, 1.0))
    with pytest.raises(NotApplicable, match="needs at least 2 elements, got 1"):
        small((1, 4, 4), 0, splits=(0.25, 0.25))
    with pytest.raises(NotApplicable, match=r"set levels \(or splits\) to at most that"):
        small((1, 4, 4), 0, splits=(1.0, 1.0, 1.0))


def test_gin_keeps_the_volume_of_standardised_rows():
    flow, (samples, condition) = small((1, 8, 8), 2, "gin"), rows((1, 8, 8), 2)
    assert torch.equal(flow.encode(samples, condition)[1], torch.zeros(6))
    assert not torch.equal(small((1, 8, 8), 2, "glow").encode(samples, condition)[1], torch.zeros(6))


def test_the_condition_changes_the_latent_and_zeros_are_allowed():
    flow, (samples, condition) = small((1, 8, 8), 2), rows((1, 8, 8), 2)
    told, untold = (flow.encode(samples, given)[0] for given in (condition, torch.zeros_like(condition)))
    assert (told != untold).any(dim=1).all()


def test_permutations_come_from_the_seed_and_stand_in_the_state():
    one, same, other = (small((1, 8, 8), 0, seed=seed) for seed in (0, 0, 1))
    orders = [name for name in one.state_dict() if name.endswith("order")]
    assert len(orders) == 4  # two blocks in the one level, two flat ones
    assert all(torch.equal(one.state_dict()[name], same.state_dict()[name]) for name in orders)
    assert any(not torch.equal(one.state_dict()[name], other.state_dict()[name]) for name in orders)
    other.load_state_dict(one.state_dict())
    samples, _ = rows((1, 8, 8), 0)
    assert torch.equal(one.encode(samples)[0], other.encode(samples)[0])


def test_input_noise_is_added_in_training_only():
    flow, (samples, _) = small((1, 8, 8), 0, noise=0.5), rows((1, 8, 8), 0)
    assert torch.equal(flow.encode(samples)[0], flow.encode(samples)[0])
    flow.train()
    with seeded(0):
        assert not torch.equal(flow.encode(samples)[0], flow.encode(samples)[0])


@pytest.mark.parametrize(
    ("shape", "levels"), [((1, 28, 28), 2), ((1, 32, 32), 2), ((1, 128, 128), 4), ((1, 64, 64), 3), ((1, 8, 8), 1)]
)
def test_levels_leave_sides_of_seven_pixels(shape, levels):
    assert levels_of(shape, None) == levels


def test_what_cannot_be_halved_is_not_applicable():
    with pytest.raises(NotApplicable, match="28x28 can be halved 2 times"):
        levels_of((1, 28, 28), 3)
    with pytest.raises(NotApplicable, match="27x28 can be halved 0 times"):
        levels_of((1, 27, 28), None)
    with pytest.raises(NotApplicable, match="needs at least 2 elements, got 1"):
        small((1,), 0)


def test_rows_and_conditions_of_another_shape_are_refused():
    flow, (samples, condition) = small((1, 8, 8), 2), rows((1, 8, 8), 2)
    with pytest.raises(ValueError, match=r"rows of shape \(1, 8, 8\), got \(1, 8, 4\)"):
        flow.encode(samples[..., :4], condition)
    with pytest.raises(ValueError, match=r"conditions of shape \(6, 2\), got \(6, 0\)"):
        flow.encode(samples)


def test_training_finds_two_clusters_by_their_condition_and_stays_invertible():
    random = torch.Generator().manual_seed(0)
    classes = torch.arange(400) % 2
    samples = torch.randn(400, 2, generator=random) * torch.tensor([0.2, 1.0]) + 4 * classes[:, None]
    condition = torch.nn.functional.one_hot(classes, 2).float()
    with seeded(0):
        flow = CINN((2,), 2, CINNSizes("glow", "haar", None, (), 1, 8, 4, 16, 2.0, 0.0))
    flow.standardise_by(samples[:300])
    course = FlowCourse(steps=150, batch=100, learning_rate=1e-2, warm_up=20, noise=0.0)
    fit = train_flow(flow, samples[:300], condition[:300], course, held_out=(samples[300:], condition[300:]), seed=0)
    entropy = math.log(2 * math.pi * math.e) / 2 + math.log(0.2) / 2  # nats a dimension of either cluster
    unconditional = entropy + math.log(2) / 2
    assert entropy - 0.15 < fit.nats_per_dim < (entropy + unconditional) / 2
    drawn = flow.decode(torch.randn(200, 2, generator=random), condition[:200])
    # Drawn from the clusters themselves, one in 20,000 is on the wrong side; 200 fair coins: 143 once in a billion.
    assert int(((drawn.mean(dim=1) > 2) == (classes[:200] == 1)).sum()) > 143
    latent, _ = flow.encode(samples, condition)
    torch.testing.assert_close(flow.decode(latent, condition), samples, atol=1e-4, rtol=0)
