import pytest
import torch
from made.datasets import uniform, unlabelled
from scipy.stats import kstest

from bench.randomness import Secret
from bench.results.record_parts import claim_record
from bench.types import NotApplicable
from methods.mosaic import DPPix, Mosaic

SHAPES = [(1, 16, 16), (1, 10, 13), (3, 7, 5)]  # divided by 4; with partial cells; in colour


def loss(mechanism, first, second):
    """The privacy loss that two inputs can reach: distance of their codes in units of the noise."""
    return float(((mechanism.locate(first) - mechanism.locate(second)).abs() / mechanism.scale).sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_every_cell_is_painted_in_its_mean(shape):
    data = uniform(2, *shape)
    out = Mosaic(cell=4).fit(data, 0).sample_key(Secret.of_seed(1)).release(data).samples
    assert out.shape == data.samples.shape
    for top in range(0, shape[1], 4):
        for left in range(0, shape[2], 4):
            cell = (..., slice(top, top + 4), slice(left, left + 4))
            means = data.samples[cell].mean(dim=(2, 3), keepdim=True)
            assert torch.allclose(out[cell], means.expand_as(out[cell]), atol=1e-6)


def test_a_cell_larger_than_the_image_is_one_mean():
    data = uniform(2, 1, 5, 6)
    scheme = Mosaic(cell=8, epsilon=1.0).fit(data, 0)
    assert torch.allclose(
        scheme.means(data.samples).flatten(), data.samples.double().mean(dim=(1, 2, 3)), atol=2.0**-24
    )
    assert scheme.mechanism().scale.tolist() == [1.0]


def test_the_scale_is_the_papers_where_cells_divide_the_image():
    data = uniform(2, 1, 16, 16)
    scale = Mosaic(cell=4, epsilon=0.5, neighbour_pixels=3).fit(data, 0).mechanism().scale
    # Rounding may add a step to the difference of 16 pixels' means: 16 * 3 / 3 steps of a 65,536th of the scale.
    assert scale.tolist() == [pytest.approx(3 / (16 * 0.5), rel=16 * 0.375 / 65536)] * 16
    assert float(scale[0]) >= 3 / (16 * 0.5)
    every = Mosaic(cell=4, epsilon=0.5).fit(data, 0).mechanism().scale
    assert every.tolist() == [pytest.approx(16 / 0.5)] * 16


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("m", [1, 5, 30, None])
def test_witnesses_attain_epsilon_and_no_neighbours_exceed_it(shape, m):
    data = uniform(2, *shape)
    mechanism = Mosaic(cell=4, epsilon=0.7, neighbour_pixels=m).fit(data, 0).mechanism()
    (pair,) = mechanism.witnesses(data)
    pixels = shape[1] * shape[2] if m is None else min(m, shape[1] * shape[2])
    assert int((pair[0].samples != pair[1].samples).any(dim=1).sum()) == pixels
    assert loss(mechanism, *pair) == pytest.approx(0.7, rel=1e-3)  # less than it by what rounding could have added
    assert loss(mechanism, *pair) <= 0.7 * (1 + 1e-12)
    random = torch.Generator().manual_seed(1)
    for trial in range(40):  # scattered pixels, and blocks in the corner where cells are smallest
        changed = torch.randperm(shape[1] * shape[2], generator=random)[:pixels]
        if trial == 0:
            changed = torch.arange(shape[1] * shape[2]).flip(0)[:pixels]
        dark = uniform(1, *shape, seed=trial)
        bright = uniform(1, *shape, seed=trial)
        dark.samples.flatten(2)[..., changed], bright.samples.flatten(2)[..., changed] = 0, 1
        assert loss(mechanism, dark, bright) <= 0.7 * (1 + 1e-12)


def test_pixels_out_of_range_are_clipped_so_that_the_claim_holds():
    data = uniform(1, 1, 8, 8)
    far, edge = (unlabelled(torch.full((1, 1, 8, 8), value)) for value in (9.0, 1.0))
    mechanism = Mosaic(epsilon=1.0).fit(data, 0).mechanism()
    assert torch.equal(mechanism.locate(far), mechanism.locate(edge))


@pytest.mark.parametrize("call", ["release", "query"])
@pytest.mark.parametrize("m", [2, None])
def test_what_is_added_is_laplace_noise_of_the_stated_scale(call, m):
    data = uniform(300, 1, 10, 13)
    scheme = Mosaic(cell=4, epsilon=2.0, neighbour_pixels=m).fit(data, 0)
    key, mechanism = scheme.sample_key(Secret.of_seed(1)), scheme.mechanism()
    release = key.release(data)
    if call == "query":
        release = type(release)(key.query(data.samples), None, None)
    noise = mechanism.noise(mechanism.locate(data), mechanism.observe(release)).flatten()
    assert kstest(noise.numpy(), "laplace").pvalue > 1e-9
    assert kstest(1.5 * noise.numpy(), "laplace").pvalue < 1e-6  # the test can tell a wrong scale


def test_every_row_call_and_key_has_noise_of_its_own():
    flat = unlabelled(torch.full((4, 1, 8, 8), 0.5))
    scheme = Mosaic(cell=2, epsilon=1.0).fit(flat, 0)
    key = scheme.sample_key(Secret.of_seed(1))
    outs = (
        key.release(flat).samples,
        key.query(flat.samples),
        scheme.sample_key(Secret.of_seed(2)).release(flat).samples,
    )
    drawn = scheme.read(torch.cat(outs)).flatten(1)
    assert len(torch.unique(drawn)) >= drawn.numel() - 4  # on a grid two of 192 draws meet once in 14 cases
    assert len(torch.unique(drawn, dim=0)) == 12
    assert torch.equal(key.release(flat).samples, outs[0])


def test_claims_name_their_unit_and_follow_epsilon():
    data = uniform(2, 1, 16, 16)
    assert Mosaic().fit(data, 0).claim() is None
    assert Mosaic().fit(data, 0).mechanism() is None
    claims = [Mosaic(epsilon=3.0, neighbour_pixels=m).fit(data, 0).claim() for m in (None, 16)]
    assert [(claim.unit, claim.units, claim.epsilon) for claim in claims] == [("image", 1, 3.0), ("pixel", 16, 3.0)]
    assert [claim_record(claim).per for claim in claims] == ["image", "16 pixels"]
    assert all(claim.delta == 0 for claim in claims)
    assert "at most 16 pixels" in claims[1].assumptions


@pytest.mark.parametrize("choices", [{}, {"epsilon": 1.0}, {"epsilon": 1.0, "neighbour_pixels": 4}])
def test_schemes_and_keys_survive_their_states(choices):
    data, method = uniform(5, 1, 10, 13), Mosaic(cell=4, **choices)
    scheme = method.fit(data, 0)
    key = scheme.sample_key(Secret.of_seed(1))
    again = method.load(dict(scheme.state())).load_key(dict(key.state()))
    assert torch.equal(key.release(data).samples, again.release(data).samples)
    assert again.scheme.claim() == scheme.claim()


def test_inputs_stay_untouched():
    data = uniform(3, 1, 10, 13)
    before = data.samples.clone()
    Mosaic(epsilon=1.0).fit(data, 0).sample_key(Secret.of_seed(1)).release(data)
    assert torch.equal(data.samples, before)


def test_tables_and_images_of_another_shape_are_refused():
    with pytest.raises(NotApplicable, match="made is a table"):
        Mosaic().fit(uniform(5, 3), 0)
    with pytest.raises(ValueError, match=r"shape \(1, 8, 8\), got \(1, 8, 9\)"):
        Mosaic().fit(uniform(2, 1, 8, 8), 0).sample_key(Secret.of_seed(1)).query(torch.rand(2, 1, 8, 9))


def test_dp_pix_is_mosaic_with_noise_by_another_name():
    private = uniform(6, 1, 16, 16)
    named, plain = DPPix(cell=4), Mosaic(cell=4, epsilon=0.5, neighbour_pixels=16)
    releases = [method.fit(private, 0).sample_key(Secret.of_seed(1)).release(private) for method in (named, plain)]
    assert torch.equal(*(release.samples for release in releases))
    assert named.fit(private, 0).claim() == plain.fit(private, 0).claim()
