import math

import pytest
import torch
from made.datasets import unlabelled
from made.toy_methods import laplace_distance

from bench.nets.normalising_flow import decoded, encoded
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable
from methods.dp_glow import ClippedLatent, DPGlow

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {"depth": 2, "width": 8, "steps": 20, "batch": 16}


def images(n=60, shape=(1, 16, 16), seed=0):
    source = torch.Generator().manual_seed(seed)
    coarse = torch.rand(n, shape[0], 4, 4, generator=source)
    fine = torch.rand(n, *shape, generator=source)
    samples = 0.8 * torch.nn.functional.interpolate(coarse, size=shape[1:], mode="bilinear") + 0.2 * fine
    return Dataset("made", samples, torch.ones(n, 1), torch.arange(n) // 2, ("finding",), False, True)


@pytest.fixture(scope="module")
def fitted(one_thread):
    return DPGlow(**SMALL).fit(images(), 0)


def scheme(fitted, **choices):
    return DPGlow(**SMALL, **choices).load(fitted.state())


def codes(scheme, data, seed=1):
    """Latents (n, d) of the raw images, clipped, and those of the release."""
    mechanism = scheme.mechanism()
    return mechanism.locate(data), mechanism.observe(scheme.sample_key(Secret.of_seed(seed)).release(data))


@pytest.mark.parametrize("variant", ["paper", "corrected"])
def test_the_latent_of_a_release_has_laplace_noise_of_the_stated_scale(fitted, variant):
    made, private = scheme(fitted, variant=variant, epsilon_per_pixel=200.0), images(n=400, seed=5)
    located, observed = codes(made, private)
    mechanism = made.mechanism()
    low, high = mechanism.fence
    # In the middle half of the clip, noise of up to `room` scales stays off the fence and is seen whole.
    middle = ((located - low) > 0.25 * (high - low)) & ((high - located) > 0.25 * (high - low))
    room = float(((high - low) / mechanism.scale).min()) / 4
    noise = mechanism.noise(located, observed)[middle]
    noise = noise[~noise.isnan() & (noise.abs() < room)].numpy()
    assert len(noise) > 20_000
    # Truncation at `room` scales leaves out exp(-room) of the numbers; the rest is as far from Laplace at most.
    threshold = math.sqrt(math.log(2e9) / (2 * len(noise))) + math.exp(-room)
    assert laplace_distance(noise) < threshold
    assert laplace_distance(noise / 1.15) > threshold  # the test can tell a wrong scale


@pytest.mark.parametrize(("scale", "step"), [(-60, -50), (-1, -17), (4, -12), (30, -10), (60, 0)])
def test_the_step_of_the_noise_lies_between_the_least_of_float64_and_half_of_the_clip(scale, step):
    """Powers of 2 of the noise's scale and of its step, in halves of the clip's width."""
    mechanism = ClippedLatent(torch.nn.Identity(), torch.zeros(2), torch.ones(2), 2.0**scale)
    assert mechanism.grid.step == 2.0**step


def test_noise_scales_follow_the_paper_and_the_correction(fitted):
    span = (fitted.state()["high"] - fitted.state()["low"]).double()
    d = len(span)
    paper = scheme(fitted, epsilon=500.0).mechanism().scale
    assert torch.allclose(paper, span * d / 500)  # Eq. 3
    assert torch.allclose(scheme(fitted, epsilon=500.0, variant="corrected").mechanism().scale, 0.4 * paper)
    assert torch.allclose(scheme(fitted, epsilon_per_pixel=500.0 / d).mechanism().scale, paper)
    low, high = scheme(fitted, alpha=0.3).mechanism().fence
    assert torch.allclose(high - low, 0.3 * span)
    assert torch.allclose((high + low) / 2, (fitted.state()["high"].double() + fitted.state()["low"].double()) / 2)


def test_the_paper_claims_epsilon_and_its_clip_makes_it_alpha_epsilon(fitted):
    claim = scheme(fitted, epsilon=500.0).claim()
    assert (claim.unit, claim.epsilon, claim.delta) == ("image", 500.0, 0.0)
    assert claim.derived == pytest.approx(0.4 * 500)
    corrected = scheme(fitted, epsilon=500.0, variant="corrected").claim()
    assert corrected.epsilon == 500.0
    assert corrected.derived == pytest.approx(500)
    assert scheme(fitted).claim().epsilon == 100 * 256


@pytest.mark.parametrize("variant", ["paper", "corrected"])
def test_witnesses_attain_the_derived_bound_and_no_pair_exceeds_it(fitted, variant):
    made = scheme(fitted, epsilon=500.0, variant=variant)
    mechanism, derived = made.mechanism(), made.claim().derived

    def budget(one, other):
        return float(((mechanism.locate(one) - mechanism.locate(other)).abs() / mechanism.scale).sum(dim=1).max())

    pairs = mechanism.witnesses(images())
    assert len(pairs) == 3
    for one, other in pairs:
        assert (len(one), len(other)) == (1, 1)
        assert budget(one, other) == pytest.approx(derived, rel=1e-9)
    wild = images(seed=7)
    assert budget(wild, images(seed=8)) < derived
    assert budget(unlabelled(50 * wild.samples - 20), wild) <= derived * (1 + 1e-9)


def test_an_image_that_lies_outside_the_training_range_is_clipped_into_it(fitted):
    made = scheme(fitted)
    low, high = made.mechanism().fence
    wild = unlabelled(5 * images(seed=3).samples - 2)
    outside = encoded(fitted.noise.flow, wild.samples)
    located = made.mechanism().locate(wild)
    assert bool((outside < low).any())
    assert bool((outside > high).any())
    assert bool(((located >= low) & (located <= high)).all())


@pytest.mark.parametrize("call", ["release", "query"])
def test_what_leaves_is_clipped_again(fitted, call):
    made, private = scheme(fitted, epsilon_per_pixel=1.0), images(seed=5)
    key, (low, high) = made.sample_key(Secret.of_seed(1)), made.mechanism().fence
    sent = key.release(private).samples if call == "release" else key.query(private.samples)
    latent = encoded(fitted.noise.flow, sent)  # as it left, before anybody who observes it clips
    assert bool(((latent > low - 0.01 * (high - low)) & (latent < high + 0.01 * (high - low))).all())


@pytest.mark.parametrize("per_pixel", [1.0, 10.0, 100.0])
def test_what_is_observed_stays_within_the_fence_and_tells_where_the_clip_stopped_it(fitted, per_pixel):
    made = scheme(fitted, epsilon_per_pixel=per_pixel)
    mechanism = made.mechanism()
    low, high = mechanism.fence
    located, observed = codes(made, images(seed=5))
    assert bool(((observed >= low) & (observed <= high)).all())
    on = mechanism.stopped(observed)
    # P(stopped) = (exp(-distance to low) + exp(-distance to high)) / 2 for each element, in scales.
    tails = 0.5 * (torch.exp(-(located - low) / mechanism.scale) + torch.exp(-(high - located) / mechanism.scale))
    spread = float((tails * (1 - tails)).sum().sqrt())
    # Within a thousandth of the scale of the fence counts as stopped too: at most a thousandth of the elements.
    assert abs(float(on.sum() - tails.sum())) < 5 * spread + 1e-3 * on.numel()


def test_without_noise_a_release_is_the_decoded_clip_or_the_image_itself(fitted):
    private = images(seed=5)
    whole = scheme(fitted, variant="no-clip").sample_key(Secret.of_seed(1)).release(private).samples
    assert torch.allclose(whole, private.samples, atol=1e-4)
    clipped = scheme(fitted, variant="clip-only")
    released = clipped.sample_key(Secret.of_seed(1)).release(private).samples
    low, high = clipped.noise.fence
    expected = decoded(fitted.noise.flow, encoded(fitted.noise.flow, private.samples).double().clamp(low, high).float())
    assert torch.equal(released, expected)
    assert not torch.allclose(released, private.samples, atol=1e-2)
    for made in (clipped, scheme(fitted, variant="no-clip")):
        assert made.claim().epsilon == math.inf
        assert made.mechanism() is None
        assert "epsilon per pixel" not in made.notes()


def test_every_row_call_key_and_data_set_has_noise_of_its_own(fitted):
    made = scheme(fitted, epsilon_per_pixel=50.0)
    one = images(n=1)
    flat = unlabelled(one.samples.expand(3, -1, -1, -1).clone())
    key = made.sample_key(Secret.of_seed(1))
    changed = unlabelled(torch.cat((flat.samples, one.samples)))
    other = made.sample_key(Secret.of_seed(2))
    outs = (
        key.release(flat).samples,
        key.query(flat.samples),
        other.release(flat).samples,
        key.release(changed).samples,
    )
    drawn = torch.cat(outs).flatten(1)
    for row in range(len(drawn)):
        for other in range(row):
            assert (drawn[row] == drawn[other]).float().mean() < 0.1
    assert torch.equal(key.release(flat).samples, outs[0])


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1e12, 1e300])
def test_a_tiny_and_a_vast_epsilon_have_their_noise_too(fitted, epsilon):
    made, data = scheme(fitted, variant="corrected", epsilon=epsilon), images(3)
    assert made.claim().derived == pytest.approx(epsilon, rel=1e-6)
    located, observed = codes(made, data)
    low, high = made.mechanism().fence
    assert bool(((located >= low) & (located <= high) & observed.isfinite()).all())
    stay = ((observed - located).abs() <= 0.01 * (high - low)).double().mean()
    assert float(stay) > 0.9 if epsilon > 1 else float(stay) < 0.6


def test_an_image_whose_latent_is_no_number_is_refused(fitted):
    data = images(3)
    data.samples[1, 0, 2, 2] = math.inf
    with pytest.raises(ValueError, match="NaN among them: a row is not finite"):
        scheme(fitted).sample_key(Secret.of_seed(1)).release(data)


def test_an_element_that_never_varies_is_fixed_and_costs_nothing(fitted):
    state = dict(fitted.state())
    state["high"] = state["high"].clone()
    state["high"][:64] = state["low"][:64]
    made = DPGlow(**SMALL, epsilon=500.0).load(state)
    released = made.sample_key(Secret.of_seed(1)).release(images(seed=5)).samples
    assert released.isfinite().all()
    assert torch.allclose(encoded(made.noise.flow, released)[:, :64], state["low"][:64].expand(60, -1), atol=1e-3)
    assert made.claim().derived == pytest.approx(0.4 * 500 * 192 / 256)
    located, observed = codes(made, images(seed=5))
    assert made.mechanism().noise(located, observed)[:, :64].isnan().all()
    assert made.mechanism().log_density(located, observed).isfinite().all()


def test_one_trained_flow_serves_every_noise_and_survives_its_state(fitted):
    assert DPGlow.unlearned == {"epsilon", "epsilon_per_pixel", "alpha", "variant"}
    other = DPGlow(**SMALL, epsilon=7.0, alpha=0.2, variant="corrected").fit(images(), 0)
    for name, tensor in fitted.state().items():
        assert torch.equal(tensor, other.state()[name]), name
    again, private = scheme(fitted), images(seed=5)
    key = fitted.sample_key(Secret.of_seed(3))
    assert torch.equal(again.load_key(dict(key.state())).release(private).samples, key.release(private).samples)
    assert again.notes() == fitted.notes()
    assert fitted.notes()["held-out images"] == 6
    notes, dimensions = fitted.notes(), images().samples[0].numel()
    assert 0 < notes["bits per dimension"] < 9
    nats = (notes["bits per dimension"] * math.log(2) - math.log(255)) * dimensions  # levels are 1 / 255 apart
    assert notes["negative log-likelihood, nats per image"] == pytest.approx(nats, abs=0.1)


def test_ranges_are_those_of_the_training_images_alone():
    public = images()
    outlier = Dataset("made", public.samples.clone(), None, public.subjects, (), False, True)
    made = DPGlow(**SMALL).fit(public, 0)
    latent = encoded(made.noise.flow, public.samples)
    outside = ((latent < made.state()["low"]) | (latent > made.state()["high"])).any(dim=1)
    assert int(outside.sum()) == made.notes()["held-out images"]
    assert torch.equal(outlier.samples, public.samples)


def test_colour_images_count_every_channel():
    public = images(shape=(3, 8, 8))
    made = DPGlow(**SMALL, epsilon_per_pixel=10.0, variant="corrected").fit(public, 0)
    assert made.claim().epsilon == 10.0 * 3 * 64
    assert made.claim().derived == pytest.approx(10.0 * 3 * 64)
    assert made.sample_key(Secret.of_seed(1)).release(public).samples.shape == public.samples.shape


def test_tables_and_sides_that_cannot_be_halved_are_not_applicable():
    with pytest.raises(NotApplicable, match="reads images: made is a table"):
        DPGlow(**SMALL).fit(unlabelled(torch.rand(9, 3)), 0)
    with pytest.raises(NotApplicable, match=r"3 times, and 28x28 allow it 2 times: lower levels, or choose --size"):
        DPGlow(**SMALL, levels=3).fit(images(n=4, shape=(1, 28, 28)), 0)
    for alike in (torch.full((20, 1, 8, 8), 0.5), torch.rand(2, 1, 8, 8)):  # of two, one is held out
        with pytest.raises(NotApplicable, match=r"the (18|1) images of made that it trains on are all the same"):
            DPGlow(**SMALL).fit(unlabelled(alike), 0)
    with pytest.raises(NotApplicable, match="1 times, and 7x7 allow it 0 times"):
        DPGlow(**SMALL).fit(images(n=4, shape=(1, 7, 7)), 0)


def test_images_of_another_shape_are_refused(fitted):
    with pytest.raises(ValueError, match=r"shape \(1, 16, 16\), got \(1, 8, 8\)"):
        fitted.sample_key(Secret.of_seed(0)).query(torch.rand(2, 1, 8, 8))


def test_the_paper_preset_has_the_stated_sizes():
    paper = DPGlow(**DPGlow.presets["paper"])
    assert (paper.levels, paper.depth, paper.width, paper.batch, paper.learning_rate) == (7, 32, 512, 4, 1e-3)
    assert paper.steps * paper.batch == 200 * 50_000
