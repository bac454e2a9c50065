import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made.datasets import unlabelled

from attacks.chance import Chance, HashScores
from bench.types import Release, View
from methods.identity import Identity


def scores(n=20, m=30, seed=0):
    rows = unlabelled(torch.rand(n, 4))
    attacker = Chance().fit(View(rows, Identity().fit(rows, 0), rows, rows), seed)
    return attacker.score(Release(torch.rand(m, 4), None, None))


@settings(max_examples=40, deadline=None)
@given(low=st.integers(0, 19), high=st.integers(1, 20), left=st.integers(0, 29), right=st.integers(1, 30))
def test_any_block_has_the_bits_of_the_whole(low, high, left, right):
    whole = scores().block(slice(None), slice(None))
    assert torch.equal(scores().block(slice(low, high), slice(left, right)), whole[low:high, left:right])


def test_scores_are_uniform_distinct_and_unrelated_between_rows_columns_and_seeds():
    grid = scores(500, 400).block(slice(None), slice(None))
    numbers = grid.flatten().sort().values
    assert len(numbers.unique()) == 200_000
    assert numbers[0] >= 0
    assert numbers[-1] < 1
    # Dvoretzky-Kiefer-Wolfowitz: P(distance > t) <= 2 exp(-2 n t^2); t for one in 10^9.
    expected = torch.arange(1, 200_001, dtype=torch.float64) / 200_000
    assert (numbers - expected).abs().max() < math.sqrt(math.log(2e9) / 400_000) + 1 / 200_000
    # The largest of 79,800 (124,750) correlations of deviation 1 / root(500) (1 / 20) stays below 6 deviations.
    assert torch.corrcoef(grid.T).triu(1).abs().max() < 6 / 500**0.5
    assert torch.corrcoef(grid).triu(1).abs().max() < 6 / 20
    other = scores(500, 400, seed=1).block(slice(None), slice(None))
    assert torch.corrcoef(torch.stack((grid.flatten(), other.flatten())))[0, 1].abs() < 6 / 200_000**0.5


def test_hashing_agrees_with_splitmix_in_python_integers():
    mask = 2**64 - 1

    def mix(number):
        number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & mask
        number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & mask
        return number ^ (number >> 31)

    step, seed = 0x9E3779B97F4A7C15, 2**62 + 12345
    got = HashScores(seed, (5, 7), torch.device("cpu")).block(slice(None), slice(None))
    for row in range(5):
        for col in range(7):
            expected = mix((mix((row * step + seed) & mask) + col * step) & mask) >> 11
            assert got[row, col].item() == expected * 2.0**-53
