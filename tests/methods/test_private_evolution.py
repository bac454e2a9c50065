from dataclasses import replace

import pytest
import torch
from made.datasets import uniform, unlabelled
from made.sum_audits import shown, weaken

from bench.audit.canaries import published
from bench.owner.gaussian_sum import calibrated
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable, PrivateStep
from methods.private_evolution import PrivateEvolution

pytestmark = pytest.mark.usefixtures("one_thread")


def line(n, low, high, seed=0):
    """A table of one column, uniform between two ends, with the finding "above the middle" of 0 to 1."""
    samples = low + (high - low) * torch.rand(n, 1, generator=torch.Generator().manual_seed(seed))
    return Dataset("line", samples, (samples > 0.5).float(), None, ("above",), False, True)


def key_of(method, public, seed=1):
    return method.fit(public, 0).sample_key(Secret.of_seed(seed))


def rounds(key, private):
    seen = list[PrivateStep]()
    key.private_steps(private, private.take(torch.arange(3)), seen.append)
    return seen


def test_released_rows_are_rows_of_the_pool_that_lie_where_private_ones_do():
    pool, private = line(2000, 0, 1), line(1000, 0.6, 0.8, seed=3)
    release = key_of(PrivateEvolution(epsilon=10.0), pool).release(private)
    assert release.links is None
    assert len(release) == 1000
    assert set(release.samples[:, 0].tolist()) <= set(pool.samples[:, 0].tolist())
    assert torch.equal(release.labels, (release.samples > 0.5).float())
    inside = ((release.samples > 0.58) & (release.samples < 0.82)).float().mean()
    assert float(inside) > 0.9  # of the pool, a quarter lies there


def test_private_rows_vote_for_the_nearest_candidate_of_their_labels():
    pool = line(50, 0, 1)
    scheme = PrivateEvolution(label_weight=100.0).fit(pool, 0)
    candidates = torch.arange(50)
    private = line(20, 0, 1, seed=5)
    votes = scheme.nearest(private, candidates)
    for row, vote in zip(range(20), votes.tolist(), strict=True):
        same = (pool.labels[:, 0] == private.labels[row, 0]).nonzero()[:, 0]
        assert vote == same[(pool.samples[same, 0] - private.samples[row, 0]).abs().argmin()]
    unknown = replace(private, labels=torch.full_like(private.labels, torch.nan))
    nearest = torch.cdist(private.samples, pool.samples).argmin(dim=1)
    assert torch.equal(scheme.nearest(unknown, candidates), nearest)


def test_a_variation_is_one_of_the_nearest_rows():
    pool = line(40, 0, 1)
    scheme = PrivateEvolution().fit(pool, 0)
    parents = torch.arange(40).repeat(50)
    at = torch.rand(2000, generator=torch.Generator().manual_seed(0)).double()
    varied = scheme.varied(parents, 3, at)
    near = torch.cdist(pool.samples, pool.samples).topk(3, largest=False).indices
    for parent in range(40):
        # Each of 3 is missing from 50 draws with a probability of (2 / 3)^50 = 2e-9.
        assert set(varied[parents == parent].tolist()) == set(near[parent].tolist())
    assert torch.equal(scheme.varied(parents, 1, at), parents)


def test_every_round_adds_the_noise_of_its_share_of_the_budget():
    pool, private = line(400, 0, 1), line(300, 0, 1, seed=3)
    method = PrivateEvolution(epsilon=2.0, delta=1e-5, rounds=3, candidates=200)
    seen = rounds(key_of(method, pool), private)
    assert len(seen) == 3
    sigma = (2 * 3) ** 0.5 / calibrated(2.0, 1e-5)
    # In the first round the candidates are known to differ; votes are 300 in all, their noise is the rest.
    first = seen[0].total.double()
    scheme = method.fit(pool, 0)
    assert scheme.noise(300).sigma == pytest.approx(sigma)
    assert abs(float(first.sum()) - 300) < 5 * sigma * 200**0.5
    spread = float((first - 1.5).square().mean()) - sigma**2
    assert abs(spread) < 5 * sigma**2 * (2 / 200) ** 0.5 + 4
    assert seen[0].gradients.sum(dim=1).tolist() == [1.0, 1.0, 1.0]


def test_without_a_vote_above_the_noise_all_candidates_are_as_likely():
    pool = line(50, 0, 1)
    release = key_of(PrivateEvolution(epsilon=0.01, threshold=1e6, rounds=1, candidates=50), pool).release(
        line(400, 0.9, 1)
    )
    assert len(set(release.samples[:, 0].tolist())) > 40


def test_the_claim_is_the_budget_of_all_rounds_and_a_second_accountant_agrees():
    scheme = PrivateEvolution(epsilon=3.0, rounds=5).fit(line(50, 0, 1), 0)
    claim = scheme.claim()
    assert (claim.epsilon, claim.delta, claim.neighbours, claim.family) == (3.0, 1e-5, "replaced", "Gaussian")
    assert (claim.sampling_rate, claim.steps) == (1.0, 5)
    spent = scheme.accounts(1000)
    assert spent["Gaussian, exact"] == pytest.approx(3.0)
    if "dp-accounting, PLD" in spent:
        assert spent["dp-accounting, PLD"] == pytest.approx(3.0, rel=1e-4)


def test_other_rows_or_labels_never_share_their_noise():
    pool, private = line(400, 0, 1), line(300, 0, 1, seed=3)
    key = key_of(PrivateEvolution(candidates=200, rounds=1), pool)
    relabelled = replace(private, labels=1 - private.labels)
    first, other, again = (rounds(key, data)[0].total for data in (private, relabelled, private))
    assert torch.equal(first, again)
    assert abs(float(torch.corrcoef(torch.stack((first, other)))[0, 1])) < 5 / 200**0.5


def test_a_key_survives_its_state_and_seeds_make_keys():
    pool, private, method = line(100, 0, 1), line(60, 0, 1, seed=3), PrivateEvolution()
    scheme = method.fit(pool, 0)
    one, same, other = (scheme.sample_key(Secret.of_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.release(private).samples, same.release(private).samples)
    assert not torch.equal(one.release(private).samples, other.release(private).samples)
    again = method.load(scheme.state()).load_key(one.state())
    assert torch.equal(one.release(private).samples, again.release(private).samples)


def test_images_and_rows_without_labels_are_selected_too():
    pool, private = uniform(40, 3, 5, 7), uniform(30, 3, 5, 7, seed=2)
    release = key_of(PrivateEvolution(pool=20), pool).release(private)
    assert release.samples.shape == private.samples.shape
    assert key_of(PrivateEvolution(), unlabelled(pool.samples)).release(private).labels is None
    exclusive = replace(pool, labels=torch.eye(2).repeat(20, 1), findings=("a", "b"), exclusive=True)
    scheme = PrivateEvolution(label_weight=7.0).fit(exclusive, 0)
    apart = scheme._disagreement(exclusive.labels[:2], exclusive.labels[:2])
    assert torch.equal(apart, 1 - torch.eye(2))


@pytest.mark.parametrize("less", [None, 1 / 3])
def test_an_audit_of_the_votes_shows_part_of_the_claim_and_refutes_a_third_of_the_noise(less, monkeypatch):
    images, secret = uniform(80, 1, 6, 6), Secret.of_seed(0)
    public = replace(images, labels=(torch.arange(80) % 2).float()[:, None])
    scheme = PrivateEvolution(epsilon=4.0, candidates=64).fit(public, 0)
    if less is not None:
        weaken(monkeypatch, less)
    games = published(scheme, scheme.claim(), public, most=800, secret=secret)
    assert type(games.outside).__name__ == "RowCanaries"
    (game,) = games.inside
    assert type(game).__name__ == "StepCanaries"
    found = shown(game, secret)
    assert found > (4.0 if less else 1.0)
    assert less is not None or found <= 4.0


def test_labels_are_those_of_the_private_findings_by_name():
    pool = line(40, 0, 1)
    two = replace(pool, labels=torch.cat((1 - pool.labels, pool.labels), dim=1), findings=("Below", "Above"))
    release = key_of(PrivateEvolution(), two).release(line(30, 0, 1, seed=3))
    assert torch.equal(release.labels, (release.samples > 0.5).float())


def test_a_scheme_of_an_earlier_version_is_refused():
    state = dict(PrivateEvolution().fit(line(40, 0, 1), 0).state())
    del state["findings"]
    with pytest.raises(ValueError, match="the scheme lacks findings: it is of an earlier version"):
        PrivateEvolution().load(state)


def test_rows_of_another_kind_are_refused():
    key = key_of(PrivateEvolution(), line(40, 0, 1))
    with pytest.raises(ValueError, match=r"rows of shape \(1,\), got \(2,\)"):
        key.release(uniform(5, 2))
    with pytest.raises(NotApplicable, match="are of above; line has a, b: name a data set with these findings"):
        key.release(replace(line(5, 0, 1), labels=torch.zeros(5, 2), findings=("a", "b")))
    broken = line(5, 0, 1)
    broken.samples[2] = torch.nan
    with pytest.raises(ValueError, match="1 of 5 rows of line are not"):
        key.release(broken)
    with pytest.raises(NotApplicable, match="all the same, or fewer than 2"):
        PrivateEvolution().fit(unlabelled(torch.ones(4, 1, 6, 6)), 0)
