"""Noise that follows its stated distribution passes; noise that is wrong or repeated does not."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import laplace

from bench.audit.noise_checks import NEAR, check_density, check_reuse
from bench.contract.seal import ContractError
from bench.seeds import generator

CALLS = ("release", "release under another key")


def quantiles(rows: int, elements: int, seed: int = 0) -> torch.Tensor:
    """Exact Laplace quantiles in random places: their Kolmogorov distance is 1 / (2 n), the least there is."""
    n = rows * elements
    numbers = torch.from_numpy(laplace.ppf((torch.arange(n).double().numpy() + 0.5) / n))
    return numbers[torch.randperm(n, generator=generator(seed))].view(rows, elements)


def two_calls(rows: int = 64, elements: int = 32) -> dict[str, torch.Tensor]:
    return {name: quantiles(rows, elements, seed) for seed, name in enumerate(CALLS)}


def test_laplace_numbers_pass_both_checks() -> None:
    check_density(two_calls())
    check_reuse(two_calls())


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_noise_of_another_scale_is_refused(factor: float) -> None:
    # sup |F(x) - F(x / 1.25)| = 0.041; of 8192 numbers the limit is sqrt(ln(2e6) / 16384) = 0.030.
    noise = {name: factor * part for name, part in two_calls(128, 32).items()}
    with pytest.raises(ContractError, match="does not follow the stated density"):
        check_density(noise)


def test_one_element_of_another_scale_is_refused_and_named() -> None:
    noise = two_calls(256, 32)
    for part in noise.values():
        part[:, 5] *= 2
    with pytest.raises(ContractError, match="element 5 is"):
        check_density(noise)


def test_noise_that_is_not_finite_is_refused() -> None:
    noise = two_calls()
    noise[CALLS[0]][0, 0] = torch.nan
    with pytest.raises(ContractError, match="finite"):
        check_density(noise)


def test_noise_of_one_call_in_another_is_refused() -> None:
    noise = two_calls()
    with pytest.raises(ContractError, match="two calls"):
        check_reuse({CALLS[0]: noise[CALLS[0]], CALLS[1]: noise[CALLS[0]].clone()})


def test_noise_of_one_row_in_another_is_refused() -> None:
    noise = two_calls(8, 512)
    noise[CALLS[0]][1] = -noise[CALLS[0]][0]
    with pytest.raises(ContractError, match="two rows"):
        check_reuse(noise)


def test_a_repeated_part_of_a_row_is_refused() -> None:
    noise = two_calls(4, 2048)
    part = noise[CALLS[0]]
    part[1, :100] = part[0, :100]  # 5 % of the row: its signs correlate by .05, its numbers repeat a hundred times
    assert 10 * NEAR * 2048 < 100
    with pytest.raises(ContractError, match="numbers are the same in two rows"):
        check_reuse(noise)
