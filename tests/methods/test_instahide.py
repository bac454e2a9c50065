import math
from dataclasses import replace

import pytest
import torch
from made.datasets import unlabelled

from bench.contract.seal import check
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable
from methods.instahide import InstaHide, mix, soft_labels

NAN = float("nan")


def images(n=40, shape=(2, 6, 6), seed=0, labels=True):
    source = torch.Generator().manual_seed(seed)
    samples = torch.rand(n, *shape, generator=source)
    known = (torch.rand(n, 2, generator=source) < 0.5).float() if labels else None
    return Dataset("made", samples, known, None, ("first", "second"), False, True)


def key_of(method, public=None, seed=1):
    return method.fit(images(seed=9) if public is None else public, 0).sample_key(Secret.of_seed(seed))


def standardised(samples, public):
    std, mean = torch.std_mean(public.samples, dim=(0, 2, 3), correction=0, keepdim=True)
    return (samples - mean) / std


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_released_row_is_a_signed_mixture_of_its_linked_rows(k):
    private, public = images(), images(seed=9)
    release = key_of(InstaHide(k=k)).release(private)
    check(release, private)
    rows = release.links[:, 0].reshape(-1, k)
    assert torch.equal(release.links[:, 1], torch.arange(40).repeat_interleave(k))
    for released, constituents in zip(release.samples, rows, strict=True):
        # The squares do not know the signs, and they are linear in the products of two weights.
        basis = standardised(private.samples, public)[constituents].flatten(1).double()
        pairs = [(a, b) for a in range(k) for b in range(a, k)]
        products = torch.stack([basis[a] * basis[b] * (1 if a == b else 2) for a, b in pairs], dim=1)
        found = torch.linalg.lstsq(products, released.flatten().double().square()[:, None]).solution[:, 0]
        weights = torch.stack([found[pairs.index((a, a))] for a in range(k)]).clamp_min(0).sqrt()
        assert abs(float(weights.sum()) - 1) < 1e-3
        assert float(weights.max()) < 0.65 + 1e-3
        assert torch.allclose((weights @ basis).abs(), released.flatten().double().abs(), atol=1e-3)


def test_every_row_comes_first_once_and_stands_in_k_released_rows():
    release = key_of(InstaHide(k=4)).release(images())
    first = release.links[release.primary]
    assert torch.equal(first, torch.arange(40)[:, None].expand(40, 2))
    assert torch.equal(release.links[:, 0].bincount(), torch.full((40,), 4))
    assert len(release.primary) == len(release.links) == 160


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (3, 3), (4, 3), (5, 3), (4, 4), (6, 4), (7, 4), (9, 5), (300, 4)])
def test_constituents_are_distinct_and_every_column_is_a_permutation(n, k):
    for seed in range(20):
        rows = mix(n, k, 1.0, Secret.of_seed(seed).stream()).rows
        assert all(len(set(row)) == k for row in rows.tolist())
        assert all(sorted(column) == list(range(n)) for column in rows.T.tolist())
        assert torch.equal(rows[:, 0], torch.arange(n))


def test_partners_are_drawn_evenly():
    n, draws = 6, 1500
    counts = torch.zeros(n, n)
    for seed in range(draws):
        rows = mix(n, 2, 1.0, Secret.of_seed(seed).stream()).rows
        counts[rows[:, 0], rows[:, 1]] += 1
    assert float(counts.diagonal().sum()) == 0
    apart = counts[~torch.eye(n, dtype=torch.bool)]
    # Each of the 30 cells is binomial with mean 300 and deviation 15.5: five of them.
    assert float((apart - draws / (n - 1)).abs().max()) < 5 * (draws * 0.2 * 0.8) ** 0.5


def test_weights_are_half_normal_over_their_sum_where_the_bound_allows():
    weights = mix(20_000, 2, 0.65, Secret.of_seed(0).stream()).weights.double()
    assert torch.allclose(weights.sum(dim=1), torch.ones(20_000, dtype=torch.float64), atol=1e-6)
    assert float(weights.max()) <= 0.65
    # The ratio of two half-normal numbers is at most r with probability 2 / pi * atan(r); the share of the first at
    # most s where the ratio is at most s / (1 - s). Kolmogorov's bound at one in a million is 2.7 / root of n.
    shares = weights[:, 0].sort().values
    low, high = (2 / math.pi * math.atan(s / (1 - s)) for s in (0.35, 0.65))
    expected = (2 / math.pi * torch.atan(shares / (1 - shares)) - low) / (high - low)
    steps = torch.arange(1, 20_001) / 20_000
    assert float((steps - expected).abs().max()) < 2.7 / 20_000**0.5


def test_weights_do_not_depend_on_the_place_among_constituents():
    weights = mix(20_000, 3, 0.65, Secret.of_seed(1).stream()).weights.double()
    deviation = float(weights.std()) / 20_000**0.5
    assert float((weights.mean(dim=0) - 1 / 3).abs().max()) < 5 * deviation


def test_signs_are_fair_and_fresh_for_image_pixel_and_channel():
    one = replace(images(n=400, labels=False), samples=torch.full((400, 2, 6, 6), 0.9))
    signs = key_of(InstaHide()).release(one).samples.sign().flatten(1)
    assert set(signs.unique().tolist()) == {-1, 1}
    # Sums of 28,800 and of 400 fair signs, within five deviations; of 72 for each of 79,800 pairs, within six.
    assert abs(float(signs.sum())) < 5 * signs.numel() ** 0.5
    assert float(signs.sum(dim=0).abs().max()) < 5 * 400**0.5
    products = (signs @ signs.T).fill_diagonal_(0)
    assert float(products.abs().max()) < 6 * 72**0.5


def test_labels_are_mixed_as_the_images_are():
    labels = torch.tensor([[1.0, 0.0], [0.0, NAN], [NAN, NAN]])
    rows = torch.tensor([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.1, 0.3], [0.2, 0.4, 0.4]])
    expected = torch.tensor([[0.5 / 0.8, 0.0], [0.3 / 0.9, 0.0], [0.5, 0.0]])
    assert torch.allclose(soft_labels(labels, rows, weights), expected)
    assert soft_labels(labels[2:], torch.zeros(1, 3, dtype=torch.int64), weights[:1]).isnan().all()


def test_released_labels_are_those_of_the_mixture_and_keep_classes_a_distribution():
    private = images()
    one_hot = torch.nn.functional.one_hot(torch.arange(40) % 2, 2).float()
    release = key_of(InstaHide()).release(replace(private, labels=one_hot, exclusive=True))
    assert torch.allclose(release.labels.sum(dim=1), torch.ones(40))
    assert bool(((release.labels > 0) & (release.labels < 1)).any())
    assert release.labels.amax() <= 1


def test_mixing_keeps_labels_balanced():
    private = replace(images(n=2000), labels=torch.arange(2000).remainder(2).float()[:, None].repeat(1, 2))
    private.labels[::3, 0] = NAN
    labels = key_of(InstaHide()).release(private).labels
    # The mean of 2000 numbers in [0, 1] that each depend on three fair labels: at most root(3) * 0.5 / root(2000).
    assert float((labels.nanmean(dim=0) - 0.5).abs().max()) < 5 * 0.5 * (3 / 2000) ** 0.5


def test_hidden_labels_stay_hidden_and_change_no_image():
    private = images()
    key = key_of(InstaHide())
    release = key.release(replace(private, labels=None))
    assert release.labels is None
    assert torch.equal(release.samples, key.release(private).samples)


def test_queries_are_plain_or_signed():
    samples, public = images().samples, images(seed=9)
    expected = standardised(samples, public)
    assert torch.allclose(key_of(InstaHide()).query(samples), expected, atol=1e-5)
    signed = key_of(InstaHide(query="signed")).query(samples)
    assert torch.allclose(signed.abs(), expected.abs(), atol=1e-5)
    assert not torch.allclose(signed, expected, atol=1e-5)


def test_tables_are_standardised_by_column():
    table = unlabelled(torch.rand(30, 5) * torch.tensor([1, 10, 100, 0, 5.0]))
    release = key_of(InstaHide(k=2), public=table).release(table)
    check(release, table)
    assert torch.equal(release.samples[:, 3], torch.zeros(30))
    assert 0.3 < float(release.samples[:, [0, 1, 2, 4]].std(dim=0).min()) < 1.5


def test_seeds_make_keys_and_other_rows_are_mixed_in_another_way():
    private, scheme = images(), InstaHide().fit(images(), 0)
    one, same, other = (scheme.sample_key(Secret.of_seed(seed)).release(private) for seed in (1, 1, 2))
    assert torch.equal(one.samples, same.samples)
    assert not torch.equal(one.links, other.links)
    moved = scheme.sample_key(Secret.of_seed(1)).release(images(seed=4))
    assert not torch.equal(one.links, moved.links)


@pytest.mark.parametrize("query", ["plain", "signed"])
def test_a_key_survives_its_state(query):
    private, method = images(), InstaHide(query=query)
    scheme = method.fit(private, 0)
    key = scheme.sample_key(Secret.of_seed(1))
    again = method.load(scheme.state()).load_key(key.state())
    first, second = key.release(private), again.release(private)
    assert torch.equal(first.samples, second.samples)
    assert torch.equal(first.labels, second.labels)
    assert torch.equal(key.query(private.samples), again.query(private.samples))


def test_inputs_stay_untouched():
    private = images()
    before = private.samples.clone(), private.labels.clone()
    key_of(InstaHide()).release(private).samples.zero_()
    assert torch.equal(private.samples, before[0])
    assert torch.equal(private.labels, before[1])


def test_fewer_rows_than_constituents_are_refused():
    with pytest.raises(NotApplicable, match="expected at least 3, got 2; lower k or release more"):
        key_of(InstaHide()).release(images(n=2))
    assert len(key_of(InstaHide()).release(images(n=3))) == 3


def test_rows_of_another_kind_are_refused():
    with pytest.raises(ValueError, match=r"mixes images \(n, 2, h, w\), got shape \(5, 3, 6, 6\)"):
        key_of(InstaHide()).query(torch.rand(5, 3, 6, 6))
    with pytest.raises(ValueError, match=r"mixes images \(n, 2, h, w\), got shape \(5, 2\)"):
        key_of(InstaHide()).query(torch.rand(5, 2))


def test_public_rows_that_do_not_vary_are_not_applicable():
    with pytest.raises(NotApplicable, match="those of made are all the same"):
        InstaHide().fit(unlabelled(torch.ones(5, 1, 4, 4)), 0)
