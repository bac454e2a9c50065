import math

import pytest
import torch
from made.datasets import uniform, unlabelled
from made.toy_methods import laplace_distance

from bench.randomness import Secret
from bench.types import CAVEAT, NotApplicable
from methods.dp_simple import DPSimple


@pytest.mark.parametrize("call", ["release", "query"])
def test_what_is_added_is_laplace_noise_of_the_stated_scale(call):
    public, private = uniform(40, 1, 16, 16, seed=1), uniform(300, 1, 16, 16)
    key = DPSimple(scale=3.0).fit(public, 0).sample_key(Secret.of_seed(1))
    out = key.release(private).samples if call == "release" else key.query(private.samples)
    noise = (out - (private.samples - public.samples.mean()) / public.samples.std(correction=0)).flatten().numpy()
    # Dvoretzky-Kiefer-Wolfowitz: P(distance > t) <= 2 exp(-2 n t^2); t for one in 10^9.
    threshold = math.sqrt(math.log(2e9) / (2 * len(noise)))
    assert laplace_distance(noise, 3.0) < threshold
    assert laplace_distance(noise, 3.3) > threshold  # the test can tell a wrong scale


def test_every_row_call_key_and_data_set_has_noise_of_its_own():
    flat = torch.full((4, 1, 8, 8), 0.5)
    scheme = DPSimple().fit(uniform(40, 1, 8, 8), 0)
    key, data = scheme.sample_key(Secret.of_seed(1)), unlabelled(flat)
    changed = unlabelled(flat.clone())
    changed.samples[3, 0, 0, 0] = 0.6
    outs = [
        key.release(data).samples,
        key.query(flat),
        scheme.sample_key(Secret.of_seed(2)).release(data).samples,
        key.release(changed).samples,
    ]
    drawn = torch.cat(outs).flatten(1)
    for one in range(len(drawn)):
        for other in range(one):
            assert (drawn[one] == drawn[other]).float().mean() < 0.1


def test_epsilon_scale_and_clip_are_not_learned():
    public, private = uniform(40, 1, 8, 8), uniform(6, 1, 8, 8, seed=1)
    learned = DPSimple().fit(public, 0).state()
    for choices in ({"scale": 3.0}, {"epsilon": 50.0}, {"scale": 3.0, "clip": False}):
        method = DPSimple(**choices)
        fitted, loaded = method.fit(public, 0), method.load(learned)
        assert torch.equal(
            fitted.sample_key(Secret.of_seed(1)).release(private).samples,
            loaded.sample_key(Secret.of_seed(1)).release(private).samples,
        )
        assert fitted.claim() == loaded.claim()
        assert fitted.notes() == loaded.notes()


@pytest.mark.parametrize(("public", "shape"), [((40, 3, 8, 8), (2, 1, 8, 8)), ((40, 6), (2, 1))])
def test_noise_is_never_spread_over_rows_of_another_shape(public, shape):
    key, private = DPSimple().fit(uniform(*public), 0).sample_key(Secret.of_seed(1)), uniform(*shape)
    with pytest.raises(ValueError, match="standardises rows of shape"):
        key.release(private)
    with pytest.raises(ValueError, match="standardises rows of shape"):
        key.query(private.samples)


@pytest.mark.parametrize("shape", [(40, 1, 8, 8), (40, 3, 5, 7), (40, 6)])
def test_witnesses_attain_epsilon(shape):
    public = uniform(*shape)
    scheme = DPSimple(epsilon=2.0).fit(public, 0)
    mechanism = scheme.mechanism()
    ((low, high),) = mechanism.witnesses(public)
    loss = ((mechanism.locate(low) - mechanism.locate(high)).abs() / mechanism.scale).sum()
    assert float(loss) == pytest.approx(2.0, rel=1e-5)
    assert low.samples.shape == high.samples.shape == (1, *shape[1:])


def test_the_mechanism_shows_the_noise_that_was_added():
    public, private = uniform(40, 1, 16, 16, seed=1), uniform(200, 1, 16, 16)
    scheme = DPSimple(scale=3.0).fit(public, 0)
    mechanism = scheme.mechanism()
    found = mechanism.noise(
        mechanism.locate(private), mechanism.observe(scheme.sample_key(Secret.of_seed(1)).release(private))
    )
    threshold = math.sqrt(math.log(2e9) / (2 * found.numel()))  # as above: one in 10^9
    assert laplace_distance(found.flatten().numpy(), 1.0) < threshold


@pytest.mark.parametrize(
    ("choices", "left"), [({"epsilon": 1.0}, True), ({"epsilon": 1e-4}, False), ({"clip": False, "scale": 1e9}, True)]
)
def test_noise_that_leaves_nothing_of_a_row_says_so(choices, left):
    scheme = DPSimple(**choices).fit(uniform(40, 1, 8, 8), 0)
    assert (CAVEAT not in scheme.notes()) is left
    assert left or "so that epsilon is 0" in scheme.notes()[CAVEAT]


def test_scale_is_ten_unless_epsilon_is_given():
    assert DPSimple() == DPSimple(scale=10.0)
    assert DPSimple(epsilon=5.0).scale is None


def test_the_claim_follows_from_range_deviation_and_scale():
    public = uniform(40, 1, 8, 8)
    std = float(public.samples.double().std(correction=0))
    scheme = DPSimple(scale=10.0).fit(public, 0)
    claim, rounding = scheme.claim(), 64 * scheme.noise.grid.step  # each end of a pixel's range moves by half a step
    assert claim.unit == "image"
    assert claim.epsilon == pytest.approx(64 / std / 10, abs=rounding / 10)
    assert claim.delta == 0


def test_epsilon_sets_the_scale_of_the_image_domain_mechanism():
    public = uniform(40, 1, 8, 8)
    scheme = DPSimple(epsilon=50.0).fit(public, 0)
    std = float(public.samples.double().std(correction=0))
    # b = range * H * W / epsilon in pixels of [0, 1], but for the rounding of the range's ends.
    assert scheme.scale * std == pytest.approx(64 / 50, abs=64 * scheme.noise.grid.step * std / 50)
    assert scheme.claim().epsilon <= 50.0
    assert scheme.claim().epsilon == pytest.approx(50.0)


def test_rows_out_of_range_are_clipped_so_that_the_claim_holds():
    public = uniform(40, 1, 8, 8)
    for clip, expected in ((True, True), (False, False)):
        scheme = DPSimple(scale=1e-6, clip=clip).fit(public, 0)
        far, edge = (
            scheme.sample_key(Secret.of_seed(1)).query(torch.full((1, 1, 8, 8), value)) for value in (9.0, 1.0)
        )
        assert torch.allclose(far, edge, atol=1e-3) == expected
    assert DPSimple(clip=False).fit(public, 0).claim().epsilon == math.inf


def test_the_columns_of_a_table_have_their_own_units_and_public_range():
    table = uniform(60, 3)
    public = unlabelled(table.samples * torch.tensor([1.0, 100.0, 0.0]))
    scheme = DPSimple(scale=2.0).fit(public, 0)
    samples = public.samples.double()[:, :2]
    ranges = (samples.amax(dim=0) - samples.amin(dim=0)) / samples.std(dim=0, correction=0)
    assert scheme.claim().unit == "record"
    assert scheme.claim().epsilon == pytest.approx(float(ranges.sum()) / 2, abs=2 * scheme.noise.grid.step / 2)
    assert scheme.sample_key(Secret.of_seed(1)).release(public).samples.shape == (60, 3)


def test_colour_channels_are_standardised_one_by_one():
    public = uniform(40, 3, 8, 8)
    public.samples[:, 1] *= 0.1
    out = DPSimple(scale=1e-6).fit(public, 0).sample_key(Secret.of_seed(1)).query(public.samples)
    assert torch.allclose(out.std(dim=(0, 2, 3), correction=0), torch.ones(3), atol=1e-3)


def test_constant_public_rows_are_not_applicable():
    with pytest.raises(NotApplicable, match="all the same"):
        DPSimple().fit(unlabelled(torch.full((4, 1, 8, 8), 0.5)), 0)


def test_a_key_survives_its_state():
    private, method = uniform(6, 1, 8, 8), DPSimple(epsilon=50.0)
    scheme = method.fit(uniform(40, 1, 8, 8, seed=1), 0)
    key = scheme.sample_key(Secret.of_seed(1))
    loaded = method.load(scheme.state())
    again = loaded.load_key(key.state())
    assert torch.equal(key.release(private).samples, again.release(private).samples)
    assert torch.equal(key.query(private.samples), again.query(private.samples))
    assert loaded.claim() == scheme.claim()


def test_inputs_stay_untouched():
    private = uniform(6, 1, 8, 8)
    before = private.samples.clone()
    DPSimple().fit(private, 0).sample_key(Secret.of_seed(1)).release(private)
    assert torch.equal(private.samples, before)
