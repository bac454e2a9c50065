import pytest
import torch

from bench.randomness import Secret
from bench.types import Dataset
from methods.identity import Identity
from methods.noise import Noise


def rows(*shape, seed=0):
    samples = torch.rand(*shape, generator=torch.Generator().manual_seed(seed))
    labels = torch.arange(len(samples)).remainder(2).float()[:, None]
    return Dataset("made", samples, labels, None, ("finding",), False, True)


@pytest.mark.parametrize("shape", [(6, 1, 8, 8), (6, 5)])
def test_identity_releases_what_it_got(shape):
    private = rows(*shape)
    key = Identity().fit(private, 0).sample_key(Secret.of_seed(3))
    release = key.release(private)
    assert torch.equal(release.samples, private.samples)
    assert torch.equal(release.labels, private.labels)
    assert release.links.tolist() == [[row, row] for row in range(6)]
    assert torch.equal(key.query(private.samples), private.samples)


@pytest.mark.parametrize("shape", [(6, 1, 8, 8), (6, 5)])
def test_noise_does_not_depend_on_the_rows(shape):
    key = Noise().fit(rows(*shape), 0).sample_key(Secret.of_seed(3))
    first, second = key.release(rows(*shape, seed=1)), key.release(rows(*shape, seed=2))
    assert torch.equal(first.samples, second.samples)
    assert torch.equal(first.labels, second.labels)


def test_noise_releases_the_labels_in_an_order_of_the_key():
    private, scheme = rows(40, 5), Noise().fit(rows(40, 5), 0)
    first, second = (scheme.sample_key(Secret.of_seed(seed)).release(private).labels for seed in (3, 4))
    assert torch.equal(first.sum(0), private.labels.sum(0))
    assert not torch.equal(first, private.labels)
    assert not torch.equal(first, second)


def test_noise_is_standard_normal_and_its_rows_are_unrelated():
    private = rows(200, 1, 20, 20)
    noise = Noise().fit(private, 0).sample_key(Secret.of_seed(3)).release(private).samples.flatten(1).double()
    # 80,000 numbers: standard errors of mean and variance are 1 / 283 and 1.41 / 283; five of them.
    assert noise.mean().abs() < 5 / 283
    assert (noise.var() - 1).abs() < 5 * 2**0.5 / 283
    # 19,900 correlations of deviation 1 / 20: the largest stays below 6 deviations.
    assert torch.corrcoef(noise).triu(1).abs().max() < 6 / 20


def test_keys_and_queries_have_noise_of_their_own():
    private, scheme = rows(6, 1, 8, 8), Noise().fit(rows(6, 1, 8, 8), 0)
    key = scheme.sample_key(Secret.of_seed(3))
    drawn = [
        key.release(private).samples,
        scheme.sample_key(Secret.of_seed(4)).release(private).samples,
        key.query(private.samples),
        key.query(private.samples + 1),
    ]
    for one in range(4):
        for other in range(one):
            assert not (drawn[one] == drawn[other]).any()


@pytest.mark.parametrize("method", [Identity(), Noise()])
def test_a_key_survives_its_state(method):
    private = rows(6, 1, 8, 8)
    scheme = method.fit(private, 0)
    key = scheme.sample_key(Secret.of_seed(3))
    again = method.load(scheme.state()).load_key(key.state())
    assert torch.equal(key.release(private).samples, again.release(private).samples)
    assert torch.equal(key.query(private.samples), again.query(private.samples))
