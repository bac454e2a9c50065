import math
from dataclasses import dataclass, replace

import pytest
import torch
from made.datasets import unlabelled
from made.toy_methods import Keyless, laplace, toy_seed

from attacks.likelihood import Likelihood, StatedAttacker
from bench.contract.mechanism import Mechanism
from bench.contract.seal import seal
from bench.eve.channel import Simulated, axes, measure
from bench.pair_distances import pair_distances
from bench.pairs import score_matrices as posterior
from bench.pairs.score_matrices import PosteriorScores, TableScores
from bench.pairs.sweep import count
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, Key, NotApplicable, Release, Scheme, View, paired
from methods.dp_simple import DPSimple
from methods.identity import Identity
from methods.instahide import InstaHide
from methods.noise import Noise
from metrics.guesswork import guesswork
from metrics.pair_roc import reid_auc

# One of n right by chance: Poisson(1), above 9 less than once in a million.
CHANCE = 9
SMALL = Likelihood(keys=8)


def rows(*shape, seed=0):
    return unlabelled(torch.rand(*shape, generator=generator(seed)))


def attacked(scheme, private, attack=SMALL, key=7):
    """The attacker, its scores, and the true links, under a key never seen."""
    attacker = attack.fit(View(private, scheme, private, private), 0)
    sealed = seal(scheme.sample_key(Secret.of_seed(key)).release(private), Secret.of_seed(5))
    return attacker, attacker.score(sealed.release), sealed.links


def hits(scores, links):
    """How many released rows have the right candidate as their best."""
    return int((scores.block(slice(None), slice(None)).argmax(dim=0)[links[:, 1]] == links[:, 0]).sum())


@pytest.mark.parametrize("shape", [(150, 1, 8, 8), (60, 3, 16, 16), (150, 5), (7, 40)])
def test_identity_is_fully_reidentified(shape):
    private = rows(*shape)
    attacker, scores, links = attacked(Identity().fit(private, 0), private)
    counts = count(scores, links)
    assert attacker.notes()["density"] == "measured"
    assert guesswork(counts) == 1
    assert reid_auc(counts) > 0.9999
    assert hits(scores, links) == len(private)


@pytest.mark.parametrize("shape", [(300, 1, 8, 8), (300, 5), (60, 3, 16, 16)])
@pytest.mark.parametrize("seed", range(2))
def test_noise_stays_at_chance(shape, seed):
    private = rows(*shape, seed=seed)
    _, scores, links = attacked(Noise().fit(private, 0), private)
    assert hits(scores, links) <= CHANCE


def test_the_posterior_of_a_stated_density_is_calibrated():
    private = rows(400, 1, 8, 8)
    scheme = DPSimple(scale=4.0).fit(private, 0)
    attacker, scores, links = attacked(scheme, private)
    assert attacker.notes() == {"density": "stated"}
    best = scores.block(slice(None), slice(None)).amax(dim=0).sigmoid()
    expected, spread = float(best.sum()), math.sqrt(float((best * (1 - best)).sum()))
    # A released row's best candidate is right with the probability of its posterior: 4.9 deviations are 1 in a million.
    assert 40 < expected < 360
    assert abs(hits(scores, links) - expected) < 4.9 * spread
    wrong = StatedAttacker(DPSimple(scale=2.5).fit(private, 0).mechanism(), attacker.located, (), ())
    best = wrong.score(seal(scheme.sample_key(Secret.of_seed(7)).release(private), Secret.of_seed(5)).release).block(
        slice(None), slice(None)
    )
    assert hits(scores, links) < float(best.amax(dim=0).sigmoid().sum()) - 4.9 * spread  # the test can tell


def test_column_normalisation_makes_released_rows_comparable():
    private = rows(200, 1, 8, 8)
    attacker, scores, links = attacked(DPSimple(scale=3.0).fit(private, 0), private)
    sealed = seal(
        DPSimple(scale=3.0).fit(private, 0).sample_key(Secret.of_seed(7)).release(private), Secret.of_seed(5)
    ).release
    raw = TableScores(attacker.mechanism.log_density(attacker.located, attacker.mechanism.observe(sealed)))
    assert hits(raw, links) == hits(scores, links)
    assert reid_auc(count(raw, links)) < 0.75 < 0.95 < reid_auc(count(scores, links))


def test_overwhelming_evidence_is_ordered_rather_than_tied():
    private = rows(80, 1, 8, 8)
    _, scores, links = attacked(DPSimple(scale=0.01).fit(private, 0), private)
    true = scores.block(slice(None), slice(None))[links[:, 0], links[:, 1]]
    assert float(true.min()) > 100  # where the posterior itself rounds to 1
    assert len(true.unique()) == len(true)
    assert reid_auc(count(scores, links)) == 1


@pytest.mark.parametrize("method", [Identity(), DPSimple(scale=1.0)])
def test_equal_candidates_tie(method):
    private = rows(20, 1, 8, 8)
    private.samples[3] = private.samples[11]
    _, scores, _ = attacked(method.fit(private, 0), private)
    table = scores.block(slice(None), slice(None))
    assert torch.equal(table[3], table[11])
    flat = replace(private, samples=torch.full_like(private.samples, 0.5))
    _, scores, _ = attacked(method.fit(private, 0), flat)
    table = scores.block(slice(None), slice(None))
    assert bool((table == table[0]).all())


@pytest.mark.parametrize("method", [Identity(), Noise(), DPSimple()])
def test_one_row_and_two_rows_can_be_scored(method):
    private = rows(2, 1, 8, 8)
    scheme = method.fit(private, 0)
    assert attacked(scheme, private)[1].block(slice(None), slice(None)).shape == (2, 2)
    one = private.take(torch.tensor([0]))
    assert attacked(scheme, one)[1].block(slice(None), slice(None)).tolist() == [[0.0]]


@dataclass(frozen=True, eq=False)
class Blurred(Scheme, Key):
    """Noise on a code that a public matrix then spreads, some directions a hundred times as far as others."""

    seed: int = 0

    def sample_key(self, secret):
        return Blurred(toy_seed(secret))

    def load_key(self, state):
        return Blurred(int(state["seed"]))

    def state(self):
        return {"seed": torch.tensor(self.seed)}

    def mechanism(self):
        return Spread()

    def release(self, private):
        noise = 0.2 * laplace(private.samples.shape, Secret.of_seed(self.seed).stream())
        return paired((private.samples + noise) @ Spread.matrix, private.labels)


class Spread(Mechanism):
    exact = False
    scale = torch.full((16,), 0.2, dtype=torch.float64)
    matrix = torch.logspace(-1, 1, 16)[:, None] * torch.randn(16, 16, generator=generator(1))

    def locate(self, data):
        return data.samples.double()

    def observe(self, release):
        return release.samples.double()


def test_noise_that_is_spread_unevenly_is_undone_by_measuring_it():
    private = rows(200, 16)
    attacker, scores, links = attacked(Blurred(), private)
    assert attacker.notes()["density"] == "measured"
    assert attacker.notes()["held-out loss"] < attacker.notes()["held-out loss at chance"] / 2
    # Plain distances to what the candidates would become without noise, in which few directions drown the others.
    sealed = seal(Blurred().sample_key(Secret.of_seed(7)).release(private), Secret.of_seed(5)).release
    plain = TableScores(-torch.cdist(private.samples @ Spread.matrix, sealed.samples))
    assert hits(scores, links) > 2 * hits(plain, links) > 2 * CHANCE


def test_released_labels_keep_their_names():
    seen = {}

    class Told(Mechanism):
        scale = torch.ones(3, dtype=torch.float64)

        def locate(self, data):
            return data.samples.double()

        def observe(self, release):
            seen["labels"] = release.labels
            return release.samples.double()

    class Named(Keyless):
        def mechanism(self):
            return Told()

        def release(self, private):
            return paired(private.samples, private.labels)

    public = Dataset("public", torch.rand(4, 3), torch.zeros(4, 3), None, ("a", "b", "c"), False, True)
    private = Dataset("private", torch.rand(4, 3), torch.tensor([[1.0, 0]] * 4), None, ("c", "a"), False, True)
    attacker = SMALL.fit(View(public, Named(), private, private), 0)
    attacker.score(Release(private.samples, private.labels, None))
    assert seen["labels"].nan_to_num(-1).tolist() == [[0, -1, 1]] * 4


@pytest.mark.parametrize("labels", [True, False])
def test_a_candidate_with_other_labels_is_ruled_out_where_eve_knows_them(labels):
    known = torch.arange(120).remainder(4).float()[:, None]
    private = replace(rows(120, 1, 8, 8), labels=known, findings=("one",))
    scheme = DPSimple(scale=1000.0).fit(private, 0)
    attacker = Likelihood(labels=labels).fit(View(private, scheme, private, private), 0)
    sealed = seal(scheme.sample_key(Secret.of_seed(7)).release(private), Secret.of_seed(5))
    found = attacker.score(sealed.release).block(slice(None), slice(None))
    agree = known == sealed.release.labels.T
    assert bool((found[agree].min() > found[~agree].max()) == labels)
    assert ("labels" in attacker.notes()) == labels
    hidden = replace(private, labels=None)
    assert "labels" not in SMALL.fit(View(private, scheme, hidden, hidden), 0).notes()


def test_mixed_rows_are_learned_from_the_row_they_were_made_for():
    private = rows(60, 3, 8, 8)
    private = replace(private, labels=torch.ones(60, 1), findings=("one",))
    _, scores, _ = attacked(InstaHide().fit(private, 0), private)
    assert scores.block(slice(None), slice(None)).isfinite().all()


def test_a_release_without_links_is_not_applicable():
    class Generated(Keyless):
        def release(self, private):
            return Release(private.samples, None, None)

    private = rows(10, 4)
    with pytest.raises(NotApplicable, match="learns from links"):
        SMALL.fit(View(private, Generated(), private, private), 0)


@pytest.mark.parametrize("choices", [{"keys": 3}, {"rows": 1}, {"axes": 0}])
def test_senseless_sizes_are_refused(choices):
    with pytest.raises(ValueError, match="must be at least"):
        Likelihood(**choices)


def log_odds(densities):
    p = densities.softmax(dim=0)
    return p.log() - (-p).log1p()


@pytest.mark.parametrize("kept", [0, 2**30])
def test_log_odds_are_those_of_the_posterior_whether_kept_or_streamed(kept, monkeypatch):
    monkeypatch.setattr(posterior, "BLOCK", 8)
    densities = 3 * torch.randn(37, 29, dtype=torch.float64, generator=generator(0))
    densities[5, 3] = densities[36, 3] = densities[:, 3].amax()  # a tie at the top, in two blocks
    scores = PosteriorScores(lambda rows, cols: densities[rows, cols], (37, 29), kept=kept)
    whole = scores.block(slice(0, 37), slice(0, 29))
    assert torch.allclose(whole, log_odds(densities), rtol=1e-12, atol=1e-12)
    assert torch.equal(scores.block(slice(3, 20), slice(5, 6)), whole[3:20, 5:6])


def test_log_odds_survive_densities_that_no_exponential_holds():
    densities = torch.tensor([[0.0, 5.0], [-5000.0, 5.0], [-9000.0, -1e6]], dtype=torch.float64)
    scores = PosteriorScores(lambda rows, cols: densities[rows, cols], (3, 2)).block(slice(0, 3), slice(0, 2))
    assert scores[:, 0].tolist() == [5000, -5000, -9000]
    assert scores[:, 1].tolist() == pytest.approx([0, 0, -1e6 - 5 - math.log(2)], abs=1e-9)
    assert scores[0, 1] == scores[1, 1]


def test_densities_that_are_not_finite_are_named():
    densities = torch.zeros(3, 2, dtype=torch.float64)
    densities[2, 1] = math.nan
    with pytest.raises(ValueError, match="got nan for raw row 2, released row 1"):
        PosteriorScores(lambda rows, cols: densities[rows, cols], (3, 2))


@pytest.mark.parametrize("power", [1, 2])
def test_pair_distances_are_sums_over_columns(power):
    a, b = (torch.randn(n, 37, dtype=torch.float64, generator=generator(n)) for n in (50, 70))
    found = pair_distances(a, b, power)
    assert torch.allclose(found, (a[:, None] - b).abs().pow(power).sum(dim=2), rtol=1e-13)
    assert torch.equal(pair_distances(a[7:44], b[69:], power), found[7:44, 69:])


def test_axes_leave_out_what_is_only_rounding():
    flat = torch.randn(30, 3, generator=generator(0)) @ torch.randn(3, 12, generator=generator(1))
    for few in (flat, flat[:8]):
        found = axes(few.double(), 10)
        assert found.shape == (12, 3)
        assert torch.allclose(found.T @ found, torch.eye(3, dtype=torch.float64), atol=1e-9)
    assert axes(torch.ones(5, 4, dtype=torch.float64), 10).shape == (4, 0)


def test_a_channel_is_as_good_as_the_one_that_made_the_data():
    """Correlated normal noise on a linear map: the measured posterior loses little against the true one."""
    source = generator(0)
    u = torch.randn(200, 5, dtype=torch.float64, generator=source)
    mix, colour = (torch.randn(q, 8, dtype=torch.float64, generator=source) for q in (5, 8))
    colour += 3 * torch.eye(8)

    def release():
        return Simulated(u, u @ mix + torch.randn(200, 8, dtype=torch.float64, generator=source) @ colour)

    channel, fresh = measure([release() for _ in range(16)]), release()
    white = torch.linalg.inv(colour)
    losses = [
        (densities.logsumexp(dim=0) - densities.diagonal()).mean()
        for densities in (
            -pair_distances(u @ channel.a, fresh.released @ channel.b, 2),
            -pair_distances(u @ mix @ white, fresh.released @ white, 2) / 2,
        )
    ]
    assert float(losses[1]) < math.log(200) - 1
    assert float(losses[0] - losses[1]) < 0.05
    assert channel.loss == pytest.approx(float(losses[0]), abs=0.3)
