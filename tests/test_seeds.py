"""Seeds by name: reproducible everywhere, and apart from each other."""

from __future__ import annotations

import hashlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bench.seeds import derive, generator

NAMES = st.lists(st.one_of(st.text(max_size=8), st.integers()), max_size=4)


def test_a_seed_is_the_same_on_every_machine_and_in_every_version() -> None:
    """Stored results depend on it; the expected number is the definition written out."""
    expected = int(hashlib.sha256(b"(7, 'key', 3)").hexdigest()[:16], 16) // 2
    assert derive(7, "key", 3) == expected


@given(st.integers(), NAMES)
def test_a_seed_suits_torch(seed: int, names: list[str | int]) -> None:
    found = derive(seed, *names)
    assert 0 <= found < 2**63
    generator(found)


@given(st.integers(), st.integers(), NAMES, NAMES)
def test_seeds_differ_where_seed_or_names_differ(
    first: int, second: int, names: list[str | int], others: list[str | int]
) -> None:
    assert (derive(first, *names) == derive(second, *others)) == ((first, names) == (second, others))


@pytest.mark.parametrize(("names", "others"), [(("ab",), ("a", "b")), (("1",), (1,)), (("a", "b"), ("b", "a"))])
def test_names_are_not_run_together(names: tuple[str | int, ...], others: tuple[str | int, ...]) -> None:
    assert derive(0, *names) != derive(0, *others)


def test_a_generator_starts_at_its_seed_and_leaves_the_global_one_alone() -> None:
    before = torch.random.get_rng_state()
    first, second, other = (torch.rand(5, generator=generator(seed)) for seed in (3, 3, 4))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_streams_of_neighbouring_seeds_are_uncorrelated() -> None:
    rows = torch.stack([torch.randn(4000, generator=generator(derive(0, "key", number))) for number in range(8)])
    correlation = torch.corrcoef(rows) - torch.eye(8)
    assert float(correlation.abs().max()) < 5 / 4000**0.5
