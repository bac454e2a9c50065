import math

import pytest
import torch
from made.datasets import unlabelled
from safetensors.torch import load_file, save_file

from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset
from methods.constant import Constant


def rows(*shape, seed=0, positives=4):
    samples = torch.rand(*shape, generator=generator(seed))
    labels = (torch.arange(len(samples)) < positives).float()[:, None]
    labels[-1] = math.nan
    return Dataset("made", samples, labels, None, ("finding",), False, True)


@pytest.mark.parametrize("shape", [(20, 1, 8, 8), (20, 5)])
def test_rows_are_the_public_mean_and_depend_on_no_private_row(shape):
    public, private = rows(*shape, seed=0), rows(*shape, seed=1)
    release = Constant().fit(public, 0).sample_key(Secret.of_seed(1)).release(private)
    assert torch.allclose(release.samples, public.samples.mean(dim=0).expand_as(private.samples))
    assert release.links is None
    assert sorted(map(str, release.labels.tolist())) == sorted(map(str, private.labels.tolist()))
    other = (
        Constant()
        .fit(public, 0)
        .sample_key(Secret.of_seed(2))
        .release(rows(*shape, seed=3).take(torch.arange(20).flip(0)))
    )
    assert torch.equal(release.samples, other.samples)
    assert torch.equal(release.labels.nan_to_num(-1), other.labels.nan_to_num(-1))


def test_its_generator_draws_labels_by_their_proportions_and_survives_a_file(tmp_path):
    private = rows(1000, 5, positives=100)
    scheme = Constant().fit(rows(20, 5), 0)
    published = scheme.sample_key(Secret.of_seed(1)).release(private).generator
    save_file(dict(published.state()), tmp_path / "generator")
    loaded = scheme.load_generator(load_file(tmp_path / "generator"))
    for made in (published, loaded):
        drawn = made.sample(10_000, 3)
        assert torch.equal(drawn.samples, scheme.mean.expand(10_000, 5))
        assert abs(float((drawn.labels == 1).double().mean()) - 0.1) < 5 * math.sqrt(0.1 * 0.9 / 10_000)
    assert torch.equal(published.sample(50, 3).labels.nan_to_num(-1), loaded.sample(50, 3).labels.nan_to_num(-1))


def test_rows_without_labels_stay_so():
    private = unlabelled(torch.rand(6, 5))
    release = Constant().fit(private, 0).sample_key(Secret.of_seed(1)).release(private)
    assert release.labels is None
    assert release.generator.sample(3, 0).labels is None


def test_a_generator_of_other_rows_is_refused():
    scheme = Constant().fit(rows(20, 5), 0)
    state = dict(scheme.sample_key(Secret.of_seed(1)).release(rows(20, 5)).generator.state())
    with pytest.raises(ValueError, match=r"mean must be torch.float32 of shape \(5,\), got torch.float32 \(4,\)"):
        scheme.load_generator({**state, "mean": state["mean"][1:]})
    with pytest.raises(ValueError, match="needs mean: got classes, proportions"):
        scheme.load_generator({name: state[name] for name in ("classes", "proportions")})


def test_a_scheme_survives_its_state():
    scheme = Constant().fit(rows(20, 1, 4, 4), 0)
    assert torch.equal(Constant().load(scheme.state()).mean, scheme.mean)
