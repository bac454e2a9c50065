"""One exact number is enough, a noisy one is worth what it is worth, and noise gives nothing."""

from __future__ import annotations

import pytest
import torch

from attacks.invariants import Invariants, statistics
from bench.pairs.sweep import count
from bench.randomness import Secret
from bench.types import Dataset, Method, NotApplicable, View
from methods.constant import Constant
from methods.dauntless import Dauntless
from methods.identity import Identity
from methods.known_leak import KnownLeak
from methods.noise import Noise
from metrics.guesswork import chance_guesswork, guesswork
from metrics.ranks import top_1

N = 200


def images(seed: int, n: int = N) -> Dataset:
    """Smooth images of different brightness."""
    random = torch.Generator().manual_seed(seed)
    coarse = torch.rand(n, 1, 4, 4, generator=random)
    samples = torch.nn.functional.interpolate(coarse, size=16, mode="bilinear")
    return Dataset("made", samples, None, None, (), False, True)


def attacked(method: Method, seed: int = 0) -> tuple[float, float, float]:
    """Guesswork, what chance gives, and top-1 under a key that the attack never saw."""
    scheme, rows = method.fit(images(1), 0), images(2)
    attacker = Invariants().fit(View(images(1), scheme, rows, images(3)), seed)
    release = scheme.sample_key(Secret.of_seed(seed, "unseen")).release(rows)
    assert release.links is not None
    found = count(attacker.score(release), release.links)
    return guesswork(found), chance_guesswork(found), top_1(found)


@pytest.mark.parametrize("method", [Identity(), KnownLeak("scalar"), KnownLeak("length")])
def test_one_exact_number_names_every_row(method: Method) -> None:
    guesses, _, share = attacked(method)
    assert guesses == 1
    assert share > 0.95


def test_a_noisy_number_is_found_as_well_as_by_the_density_itself() -> None:
    shares = [attacked(KnownLeak("noisy-scalar", scale=0.01), seed)[2] for seed in range(3)]
    best = []
    for seed in range(3):
        scheme, rows = KnownLeak("noisy-scalar", scale=0.01).fit(images(1), 0), images(2)
        mechanism = scheme.mechanism()
        assert mechanism is not None
        release = scheme.sample_key(Secret.of_seed(seed, "unseen")).release(rows)
        density = mechanism.log_density(mechanism.locate(rows), mechanism.observe(release))
        best.append(float((density.argmax(dim=0) == torch.arange(N)).double().mean()))
    assert sum(shares) / 3 > 0.6 * sum(best) / 3
    assert sum(best) / 3 > 5 / N


@pytest.mark.parametrize("method", [Noise(), KnownLeak("nothing")])
def test_noise_gives_nothing(method: Method) -> None:
    """Of 200 rows the best has a right answer by luck 7 times in one of 30,000 cases (Poisson of mean 1)."""
    assert attacked(method)[2] < 7.5 / N


def test_shuffled_patches_keep_their_sizes() -> None:
    rows = images(5, 8).samples
    halves = torch.cat((rows[:, :, 8:], rows[:, :, :8]), dim=2)
    one, two = statistics(rows), statistics(halves)
    same = torch.isclose(one, two, rtol=1e-5, atol=1e-6).all(dim=0)
    assert int((~same).sum()) == 1  # roughness across the seam


def test_keyed_patches_give_something_away() -> None:
    guesses, chance, _ = attacked(Dauntless(patch_size=8))
    assert guesses < chance


def test_releases_without_links_are_not_applicable() -> None:
    scheme = Constant().fit(images(1), 0)
    with pytest.raises(NotApplicable, match="learns from links"):
        Invariants().fit(View(images(1), scheme, images(2), images(3)), 0)
