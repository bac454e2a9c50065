from dataclasses import replace

import pytest
import torch
from made.datasets import uniform, unlabelled
from made.sum_audits import shown, weaken

from bench.audit.canaries import published
from bench.audit.gradient_canaries import GradientCanaries
from bench.owner.gaussian_sum import calibrated
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable, PrivateStep
from methods.dp_merf import DPMERF, Coding

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**choices):
    return DPMERF(**({"features": 64, "steps": 20, "batch": 16} | choices))


def halves(n=200, *, exclusive=True, seed=0):
    """Images that are bright above if they have the first label, and below otherwise."""
    first = torch.rand(n, generator=torch.Generator().manual_seed(seed)) < 0.3
    samples = 0.2 * torch.rand(n, 1, 6, 6, generator=torch.Generator().manual_seed(seed + 1))
    samples[first, :, :3] += 0.7
    samples[~first, :, 3:] += 0.7
    labels = torch.stack((first, ~first), dim=1).float() if exclusive else first.float()[:, None]
    findings = ("above", "below") if exclusive else ("above",)
    return Dataset("halves", samples, labels, None, findings, exclusive, True)


def key_of(method, public, seed=1):
    return method.fit(public, 0).sample_key(Secret.of_seed(seed))


def sums(key, private):
    seen = list[PrivateStep]()
    key.private_steps(private, private.take(torch.arange(3)), seen.append)
    (step,) = seen
    return step


@pytest.mark.parametrize("exclusive", [True, False])
def test_rows_are_drawn_with_the_look_and_the_frequency_of_their_class(exclusive):
    private = halves(400, exclusive=exclusive)
    method = DPMERF(epsilon=100.0, features=300, steps=300, batch=64)
    release = key_of(method, halves(100, exclusive=exclusive, seed=9)).release(private)
    assert release.links is None
    assert release.samples.shape == private.samples.shape
    known = ~release.labels.isnan().any(dim=1)
    first = release.labels[:, 0] == 1
    # 400 draws of a class of .3 have a deviation of .023; the noise adds .005.
    assert abs(float(first.float().mean()) - 0.3) < 0.12
    assert float(known.float().mean()) > 0.9
    for own, half in ((first, slice(0, 3)), (known & ~first, slice(3, 6))):
        rows = release.samples[own]
        other = slice(3, 6) if half.start == 0 else slice(0, 3)
        assert float(rows[:, :, half].mean() - rows[:, :, other].mean()) > 0.5


def test_features_have_length_one_and_the_kernel_for_their_product():
    public = uniform(40, 1, 6, 6)
    scheme = quick(features=20_000, length=1.5).fit(public, 0)
    features = scheme.features(public.samples)
    assert torch.allclose(features.norm(dim=1), torch.ones(40), atol=1e-4)
    kernel = torch.exp(-torch.cdist(public.samples.flatten(1), public.samples.flatten(1)).square() / (2 * 1.5**2))
    # A product is a mean of 10,000 cosines, of deviation at most 1.
    assert float((features @ features.T - kernel).abs().max()) < 5 / 10_000**0.5


@pytest.mark.parametrize("exclusive", [True, False])
def test_the_noisy_sum_is_that_of_the_rows_vectors_and_its_noise_that_of_the_budget(exclusive):
    private = halves(300, exclusive=exclusive)
    method = quick(epsilon=2.0, delta=1e-5)
    scheme = method.fit(private, 0)
    vectors = scheme.vector(private).double()
    assert torch.allclose(vectors.norm(dim=1), torch.ones(300, dtype=torch.float64), atol=1e-4)
    noise = torch.cat([
        sums(scheme.sample_key(Secret.of_seed(seed)), private).total.double() - vectors.sum(dim=0) for seed in range(20)
    ])  # fmt: skip
    sigma = 2 / calibrated(2.0, 1e-5)
    assert abs(float(noise.square().mean()) / sigma**2 - 1) < 5 * (2 / len(noise)) ** 0.5


def test_other_rows_or_labels_never_share_their_noise():
    private = halves(50)
    relabelled = replace(private, labels=private.labels.flip(1))
    key = key_of(quick(), private)
    vectors = [key.scheme.vector(data).sum(dim=0) for data in (private, relabelled)]
    noises = [sums(key, data).total - vector for data, vector in zip((private, relabelled), vectors, strict=True)]
    correlation = torch.corrcoef(torch.stack(noises))[0, 1]
    assert abs(float(correlation)) < 5 / len(noises[0]) ** 0.5
    assert torch.equal(sums(key, private).total, sums(key, private).total)


def test_unknown_labels_are_a_kind_of_their_own():
    private = halves(6, exclusive=False)
    labels = torch.tensor([[1.0], [0.0], [torch.nan], [1.0], [0.0], [torch.nan]])
    coding = Coding.of(private)
    kinds = coding.read(labels, 6)
    assert kinds[:, 0].tolist() == [2, 1, 0, 2, 1, 0]
    assert torch.equal(coding.labels(kinds).isnan(), labels.isnan())
    assert torch.equal(coding.labels(kinds).nan_to_num(), labels.nan_to_num())
    classes = Coding.of(halves(6))
    assert torch.equal(classes.labels(classes.read(halves(6).labels, 6)), halves(6).labels)


def test_rows_without_labels_and_tables_are_drawn_too():
    images, table = unlabelled(uniform(30, 3, 7, 5).samples), uniform(30, 4)
    for private in (images, table):
        release = key_of(quick(), private).release(private)
        assert release.samples.shape == private.samples.shape
        assert (release.labels is None) is (private.labels is None)
    assert key_of(quick(network="convolutional"), images).release(images).samples.shape == (30, 3, 7, 5)


def test_the_claim_is_the_budget_and_grows_stricter_with_the_rows():
    public = uniform(30, 1, 6, 6)
    scheme = quick(epsilon=3.0).fit(public, 0)
    claim = scheme.claim()
    assert (claim.epsilon, claim.delta, claim.neighbours, claim.family, claim.units) == (
        3.0,
        1e-5,
        "replaced",
        "Gaussian",
        1,
    )
    for rows in (100, 10**6):
        assert scheme.accounts(rows)["Gaussian, exact"] == pytest.approx(3.0)
    assert scheme.noise(10**6).sigma > scheme.noise(100).sigma
    with pytest.raises(ValueError, match="delta must be below 1 / n"):
        key_of(quick(delta=0.1), public).release(public)


@pytest.mark.parametrize("less", [None, 1 / 3])
def test_an_audit_of_the_noisy_sum_shows_most_of_the_claim_and_refutes_a_third_of_the_noise(less, monkeypatch):
    public, secret = halves(60, exclusive=False), Secret.of_seed(0)
    scheme = quick(epsilon=6.0, features=800).fit(public, 0)
    if less is not None:
        weaken(monkeypatch, less)
    game = GradientCanaries(scheme, scheme.claim(), public, 1280, scheme.width(Coding.of(public)), 1.0)
    found = shown(game, secret)
    assert found > (6.0 if less else 3.0)
    assert less is not None or found <= 6.0


def test_an_audit_reads_the_noisy_sum_and_beside_it_the_drawn_rows():
    public = halves(60, exclusive=False)
    for data, inside in (
        (public, ["GradientCanaries", "StepCanaries"]),
        (unlabelled(public.samples), ["GradientCanaries"]),
    ):
        scheme = quick(steps=1).fit(data, 0)
        games = published(scheme, scheme.claim(), data, most=800, secret=Secret.of_seed(0))
        assert [type(game).__name__ for game in games.inside] == inside
        assert type(games.outside).__name__ == "RowCanaries"


def test_a_key_survives_its_state_and_seeds_make_keys():
    private, method = halves(40), quick()
    scheme = method.fit(private, 0)
    one, same, other = (scheme.sample_key(Secret.of_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.release(private).samples, same.release(private).samples)
    assert not torch.allclose(one.release(private).samples, other.release(private).samples)
    again = method.load(scheme.state()).load_key(one.state())
    assert torch.equal(one.release(private).samples, again.release(private).samples)
    with pytest.raises(ValueError, match="the stored scheme has 64 features, this method has 32"):
        quick(features=32).load(scheme.state())


def test_the_length_scale_is_the_root_mean_squared_distance_of_public_rows():
    samples = torch.tensor([[0.0], [1.0], [3.0]])
    scheme = quick().fit(unlabelled(samples), 0)
    deviation = float(samples.std(correction=0))
    assert float(scheme.learned["length"]) == pytest.approx(((1 + 4 + 9) / 3) ** 0.5 / deviation)
    assert float(quick(length=7.0).fit(unlabelled(samples), 0).learned["length"]) == 7
    with pytest.raises(NotApplicable, match="all the same, or fewer than 2: set length"):
        quick().fit(unlabelled(torch.ones(4, 1, 6, 6)), 0)


def test_public_rows_may_be_of_other_findings_than_private_ones():
    key = key_of(quick(), halves(40))
    release = key.release(halves(40, exclusive=False))
    assert release.labels.shape == (40, 1)
    same = key_of(quick(), halves(40, exclusive=False)).release(halves(40, exclusive=False))
    assert torch.equal(release.samples, same.samples)


def test_rows_of_another_kind_are_refused():
    key = key_of(quick(), halves(40))
    with pytest.raises(ValueError, match=r"rows of shape \(1, 6, 6\), got \(1, 6, 7\)"):
        key.release(uniform(5, 1, 6, 7))
    broken = halves(40)
    broken.samples[3, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="1 of 40 rows of halves are not"):
        key.release(broken)
