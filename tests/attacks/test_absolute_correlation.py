from dataclasses import replace

import pytest
import torch
from made.datasets import unlabelled
from made.toy_methods import Keyless, toy_seed
from sklearn.datasets import load_digits

from attacks.absolute_correlation import AbsoluteCorrelation
from bench.eve.unmixing import _non_negative
from bench.randomness import Secret
from bench.types import NotApplicable, Release, View
from methods.identity import Identity
from methods.instahide import InstaHide
from methods.noise import Noise


def images(n=40, side=16, seed=0):
    """Images that share a bright left half, each with a texture of its own."""
    samples = 0.6 * torch.rand(n, 1, side, side, generator=torch.Generator().manual_seed(seed))
    samples[..., : side // 2] += 0.4
    return unlabelled(samples)


def scored(attack, method, private, public=None):
    """Scores of a shuffled release under a key never seen, its links renumbered, and the attacker."""
    public = public or images(seed=9)
    scheme = method.fit(public, 0)
    attacker = attack.fit(View(public, scheme, private, public), 0)
    release = scheme.sample_key(Secret.of_seed(7)).release(private)
    order = torch.randperm(len(release), generator=torch.Generator().manual_seed(5))
    links = torch.stack((release.links[:, 0], order.argsort()[release.links[:, 1]]), dim=1)
    return attacker.score(Release(release.samples[order], None, None)), links, attacker


def recall(scores, links):
    """Share of the links among the best-scored candidates of their released row, as many as it has."""
    whole = scores.block(slice(None), slice(None))
    linked = torch.zeros_like(whole, dtype=torch.bool)
    linked[links[:, 0], links[:, 1]] = True
    place = whole.argsort(dim=0, descending=True).argsort(dim=0)
    return float((linked & (place < linked.sum(dim=0))).sum() / linked.sum())


@pytest.mark.parametrize("k", [2, 3, 4])
def test_instahide_gives_its_constituents_away(k):
    assert recall(*scored(AbsoluteCorrelation(), InstaHide(k=k), images())[:2]) > 0.95


def test_instahide_is_read_as_standardised_by_the_public_mean():
    private = images()
    private.samples.mul_(torch.linspace(0.2, 1, len(private))[:, None, None, None])
    assert scored(AbsoluteCorrelation(), InstaHide(k=2), private)[2].notes()["rows read"] == "public"


def test_the_scores_of_a_solved_mixture_are_its_weights():
    private = images()
    weights, rows = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([4, 17, 33])
    scheme = Mixing(weights, rows, offset=0.5)
    attacker = AbsoluteCorrelation().fit(View(private, scheme, private, private), 0)
    found = attacker.score(scheme.release(private)).block(slice(None), slice(0, 1))[rows, 0]
    assert torch.allclose(found.float(), weights, atol=0.06)  # 0.05 of the score is a cosine


def test_mixtures_of_plain_images_are_read_as_they_are():
    private = images()
    scheme = Mixing(torch.tensor([0.6, 0.4]), torch.tensor([1, 2]), offset=0.0)
    attacker = AbsoluteCorrelation().fit(View(private, scheme, private, private), 0)
    assert attacker.notes()["rows read"] == "plain"
    assert attacker.notes()["links found under a simulated key"] == 1


def test_identity_is_fully_reidentified():
    assert recall(*scored(AbsoluteCorrelation(), Identity(), images())[:2]) == 1


def test_noise_stays_at_chance():
    # 120 rows, one right by chance: Poisson(1), above 9 less than once in a million.
    assert recall(*scored(AbsoluteCorrelation(restarts=1), Noise(), images(120))[:2]) <= 9 / 120


def test_rows_are_read_alike_under_every_seed_where_noise_leaves_few_links_first():
    digits = torch.tensor(load_digits().images[:512], dtype=torch.float32)[:, None] / 16
    private, public = unlabelled(digits[:256]), unlabelled(digits[256:])
    view = View(public, Noisy(), private, public)
    said = [AbsoluteCorrelation(restarts=1).fit(view, seed).notes() for seed in range(6)]
    assert {notes["rows read"] for notes in said} == {"plain"}
    assert all(notes["links found under a simulated key"] < 0.2 for notes in said)


def test_identity_of_a_table_with_both_signs_is_fully_reidentified():
    source = torch.Generator().manual_seed(0)
    table = unlabelled(torch.randn(40, 64, generator=source))
    assert recall(*scored(AbsoluteCorrelation(), Identity(), table, table)[:2]) == 1


def test_more_candidates_than_numbers_a_row_are_possible():
    scores, links, _ = scored(AbsoluteCorrelation(), Identity(), images(80, side=8), images(80, side=8, seed=9))
    assert recall(scores, links) == 1


def test_any_block_has_the_bits_of_the_whole_and_the_same_seed_the_same_scores():
    private = images(24)
    one, same = (scored(AbsoluteCorrelation(), InstaHide(k=2), private)[0] for _ in range(2))
    whole = one.block(slice(None), slice(None))
    assert torch.equal(one.block(slice(3, 17), slice(5, 40)), whole[3:17, 5:40])
    assert torch.equal(whole, same.block(slice(None), slice(None)))


def test_blank_rows_tie_instead_of_failing():
    private = images(20)
    blank = replace(private, samples=torch.zeros_like(private.samples))
    scores, _, _ = scored(AbsoluteCorrelation(), Identity(), blank, blank)
    assert not scores.block(slice(None), slice(None)).any()


def test_coordinate_descent_meets_the_conditions_of_a_non_negative_optimum():
    source = torch.Generator().manual_seed(0)
    atoms = torch.randn(6, 5, 12, generator=source, dtype=torch.float64)
    goal = torch.randn(6, 12, generator=source, dtype=torch.float64)
    gram, target = atoms @ atoms.mT, (atoms @ goal[:, :, None])[:, :, 0]
    weights = _non_negative(gram, target, torch.zeros(6, 5, dtype=torch.float64), 500)
    slope = (gram @ weights[:, :, None])[:, :, 0] - target
    assert (weights >= 0).all()
    assert (slope >= -1e-8).all()
    assert (weights * slope).abs().max() < 1e-8
    assert (weights == 0).any()


class Mixing(Keyless):
    """Every released row holds the given rows, minus an offset, under random signs."""

    def __init__(self, weights, rows, offset):
        self.weights, self.rows, self.offset = weights, rows, offset

    def release(self, private):
        mixed = torch.einsum("k,kchw->chw", self.weights, private.samples[self.rows] - self.offset)
        source = torch.Generator().manual_seed(3)
        signs = torch.randint(2, (20, *mixed.shape), generator=source) * 2 - 1
        links = torch.cartesian_prod(self.rows, torch.arange(20))
        return Release(mixed * signs, None, links)


class Noisy(Keyless):
    """Releases every row under strong noise of each key's own."""

    def __init__(self, seed=0):
        self.seed = seed

    def sample_key(self, secret):
        return Noisy(toy_seed(secret))

    def release(self, private):
        source = torch.Generator().manual_seed(self.seed)
        released = private.samples + 0.5 * torch.randn(private.samples.shape, generator=source)
        return Release(released, None, torch.arange(len(private))[:, None].expand(-1, 2))


class Sampling(Mixing):
    """Releases rows without links, or of another shape."""

    def __init__(self, links):
        self.links = links

    def release(self, private):
        return Release(private.samples[:, :, :8], None, self.links)


def test_releases_without_links_or_of_another_shape_are_not_applicable():
    private = images(8)
    with pytest.raises(NotApplicable, match="looks for raw rows"):
        AbsoluteCorrelation().fit(View(private, Sampling(None), private, private), 0)
    with pytest.raises(NotApplicable, match=r"raw rows are \(1, 16, 16\), released ones \(1, 8, 16\)"):
        AbsoluteCorrelation().fit(View(private, Sampling(torch.zeros(1, 2, dtype=torch.int64)), private, private), 0)
