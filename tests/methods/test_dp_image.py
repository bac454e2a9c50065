import functools
import math

import pytest
import torch
from made.datasets import unlabelled
from scipy.stats import kstest

from bench.nets.autoencoder import decoded
from bench.randomness import Secret
from bench.types import CAVEAT, Dataset, NotApplicable, Release
from methods.dp_image import DPImage

TINY = {"width": 16, "steps": 12, "batch": 8}


def images(n=24, shape=(1, 12, 9), seed=0):
    samples = torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))
    labels = (torch.arange(n) % 2).float()[:, None]
    return Dataset("made", samples, labels, torch.arange(n) // 2, ("finding",), False, True)


@functools.cache
def learned():
    return DPImage(**TINY).fit(images(), 0).state()


def loaded(**choices):
    return DPImage(**TINY, **choices).load(learned())


def test_a_release_is_the_decoded_noisy_code():
    private, scheme = images(200, seed=1), loaded(scale=2.0)
    key, mechanism = scheme.sample_key(Secret.of_seed(1)), scheme.mechanism()
    clean, noisy = decoded(scheme.noise.network, scheme.noise.encode(private.samples)), key.release(private).samples
    assert noisy.shape == private.samples.shape
    assert not torch.allclose(noisy, clean, atol=1e-2)
    quiet = loaded(scale=1e-6).sample_key(Secret.of_seed(1)).release(private).samples
    assert torch.allclose(quiet, clean, atol=1e-4)
    off = (mechanism.locate(private) - scheme.noise.encode(private.samples)).abs()
    assert float(off.max()) <= scheme.noise.gridded.grid.step / 2


@pytest.mark.parametrize("call", ["release", "query"])
def test_what_is_added_to_the_code_is_laplace_noise_of_the_stated_scale(call, monkeypatch):
    scheme, private = loaded(scale=3.0), images(300, seed=1)
    codes = []
    monkeypatch.setattr(
        scheme.noise.network, "decode", lambda part: codes.append(part) or torch.zeros(len(part), 1, 12, 9)
    )
    key = scheme.sample_key(Secret.of_seed(1))
    key.release(private) if call == "release" else key.query(private.samples)
    noise = ((torch.cat(codes).double() - scheme.noise.encode(private.samples)) / 3.0).flatten().numpy()
    assert kstest(noise, "laplace").pvalue > 1e-9
    assert kstest(1.5 * noise, "laplace").pvalue < 1e-6  # the test can tell a wrong scale


def test_every_row_call_and_key_has_noise_of_its_own():
    flat = unlabelled(torch.full((4, 1, 12, 9), 0.5))
    scheme = loaded()
    key = scheme.sample_key(Secret.of_seed(1))
    outs = (
        key.release(flat).samples,
        key.query(flat.samples),
        scheme.sample_key(Secret.of_seed(2)).release(flat).samples,
    )
    assert len(torch.unique(torch.cat(outs).flatten(1), dim=0)) == 12
    assert torch.equal(key.release(flat).samples, outs[0])


def test_without_a_clip_no_finite_epsilon_is_claimed():
    scheme = loaded(scale=5.0)
    assert scheme.claim().epsilon == math.inf
    assert "L1 sensitivity" not in scheme.notes()


def test_a_clip_makes_epsilon_finite_and_no_image_exceeds_it():
    scheme = loaded(scale=5.0, clip=0.5)
    sensitivity = 2 * 0.5 * float(learned()["code std"].sum())
    rounding = 16 * scheme.noise.gridded.grid.step  # both ends of an element's range move by half a step
    assert scheme.claim().epsilon == pytest.approx(sensitivity / 5, abs=rounding / 5)
    assert scheme.notes()["L1 sensitivity"] == pytest.approx(sensitivity, abs=rounding)
    extremes = torch.cat((images(30, seed=2).samples, 100 * torch.randn(30, 1, 12, 9), torch.zeros(1, 1, 12, 9)))
    codes = scheme.noise.encode(extremes)
    assert float(torch.cdist(codes, codes, p=1).max()) <= sensitivity * (1 + 1e-9)
    free = loaded(scale=5.0).noise.encode(extremes)
    assert float(torch.cdist(free, free, p=1).max()) > sensitivity  # the clip is what bounds them


def test_noise_that_leaves_nothing_of_a_code_says_so():
    assert CAVEAT in loaded(clip=2.0, epsilon=1e-5).notes()
    assert CAVEAT not in loaded(clip=2.0, epsilon=1.0).notes()
    assert CAVEAT not in loaded(scale=1e9).notes()


def test_epsilon_sets_the_scale():
    scheme = loaded(epsilon=10.0, clip=2.0)
    assert scheme.noise.noise_scale == pytest.approx(
        4 * float(learned()["code std"].sum()) / 10, abs=16 * scheme.noise.gridded.grid.step / 10
    )
    assert scheme.claim().epsilon == pytest.approx(10.0)
    assert loaded().noise.noise_scale == 1.0


@pytest.mark.parametrize("choices", [{"scale": 2.0}, {"scale": 5.0, "clip": 1.0}, {"epsilon": 3.0, "clip": 1.0}])
def test_one_training_serves_every_scale_clip_and_epsilon(choices):
    private = images(seed=1)
    fitted, again = DPImage(**TINY, **choices).fit(images(), 0), loaded(**choices)
    assert torch.equal(
        fitted.sample_key(Secret.of_seed(1)).release(private).samples,
        again.sample_key(Secret.of_seed(1)).release(private).samples,
    )
    assert fitted.claim() == again.claim()
    assert fitted.notes() == again.notes()


def test_the_autoencoder_never_sees_the_people_it_is_judged_on():
    public = images()
    held = learned()["held out"]
    assert float(held[0]) > 0
    assert int(held[1]) == 2  # a tenth of 24 rows, in whole people of two
    mean = learned()["network.mean"]
    sums = (24 * public.samples.mean(dim=0) - 22 * mean).flatten()
    pairs = public.samples.reshape(12, 2, -1).sum(dim=1)
    assert (pairs - sums).abs().amax(dim=1).min() < 1e-4  # what the mean leaves out is one whole person


def test_witnesses_are_ordinary_rows_far_apart_in_the_code():
    scheme, like = loaded(clip=1.0), images(40, seed=3)
    mechanism = scheme.mechanism()
    ((first, second),) = mechanism.witnesses(like)
    gap = float((mechanism.locate(first) - mechanism.locate(second)).abs().sum())
    codes = mechanism.locate(like)
    assert gap > float(torch.cdist(codes, codes, p=1).mean())
    assert gap <= scheme.sensitivity
    assert torch.equal(first.labels, second.labels)


def test_the_mechanism_says_that_it_reads_the_code_only_nearly():
    scheme = loaded(scale=2.0)
    mechanism, private = scheme.mechanism(), images(seed=1)
    assert not mechanism.exact
    assert mechanism.scale.tolist() == [2.0] * 16
    observed = mechanism.observe(Release(private.samples, None, None))
    assert float((observed - mechanism.locate(private)).abs().max()) <= mechanism.gridded.grid.step / 2


def test_the_same_seed_gives_the_same_bits():
    one, same, other = (
        DPImage(**TINY).fit(images(), seed).sample_key(Secret.of_seed(1)).release(images()) for seed in (0, 0, 1)
    )
    assert torch.equal(one.samples, same.samples)
    assert not torch.equal(one.samples, other.samples)


def test_a_key_survives_its_state_and_inputs_stay_untouched():
    private, scheme = images(seed=1), loaded()
    before, key = private.samples.clone(), scheme.sample_key(Secret.of_seed(1))
    again = scheme.load_key(dict(key.state()))
    assert torch.equal(key.release(private).samples, again.release(private).samples)
    assert torch.equal(private.samples, before)


def test_tables_and_too_few_images_are_not_applicable():
    with pytest.raises(NotApplicable, match="made is a table"):
        DPImage().fit(unlabelled(torch.rand(5, 3)), 0)
    with pytest.raises(NotApplicable, match="the images of made are all the same"):
        DPImage(**TINY).fit(unlabelled(torch.full((20, 1, 8, 8), 0.5)), 0)
    with pytest.raises(NotApplicable, match="needs 2 public images beside the held-out people's, got 1"):
        DPImage(**TINY).fit(unlabelled(torch.rand(2, 1, 8, 8)), 0)


def test_images_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \(1, 12, 9\), got \(1, 12, 12\)"):
        loaded().sample_key(Secret.of_seed(1)).query(torch.rand(2, 1, 12, 12))
