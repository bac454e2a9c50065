"""Secrets: names and contents tell them apart, and nothing shows them."""

from __future__ import annotations

import pytest
import torch

from bench.randomness import Secret

SECRET = Secret(bytes(range(32)))
DERIVED = "001301076722d9c46c28e0599480e26f709873b5a373a3e2b7183454d18d15e5"
COMMITMENT = "2d919ac3fc3ef7c469a4f24e00577f753d98bb4381e80f9f5c57babc5f121902"
BOUND = "6fc086a7478db7bc1d828bd06b995d24ee4f0c47ee89e72ab655e0d25719733c"


def test_stored_derivations() -> None:
    assert SECRET.derive("key", 3).content.hex() == DERIVED
    assert SECRET.commitment() == COMMITMENT
    assert SECRET.bound_to(torch.arange(6.0).view(2, 3)).content.hex() == BOUND


def test_names_cannot_run_into_each_other() -> None:
    names = [("a", "b"), ("ab",), ("a,b",), ('a","b',), (1, 2), (12,), ("1", 2), (), ("",)]
    assert len({SECRET.derive(*each).content for each in names}) == len(names)


def test_no_text_shows_a_secret() -> None:
    assert SECRET.content.hex() not in repr(SECRET)
    assert repr(SECRET) == str(SECRET) == "Secret()"


def test_state_keeps_a_secret() -> None:
    assert Secret.load(SECRET.tensor()) == SECRET
    for wrong in (torch.zeros(32), torch.zeros(31, dtype=torch.uint8)):
        with pytest.raises(ValueError, match="a secret must be uint8"):
            Secret.load(wrong)


def test_fresh_secrets_differ() -> None:
    assert Secret.fresh() != Secret.fresh()


@pytest.mark.parametrize("wrong", [b"", bytes(31), bytes(33), "0" * 32])
def test_secrets_have_32_bytes(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Secret(wrong)


def test_noise_is_bound_to_content_shape_and_kind() -> None:
    rows = torch.arange(12.0).view(3, 4)
    others = [rows.view(4, 3), rows.flip(0), rows + 1e-6, rows.double(), rows[:2], torch.zeros(0)]
    assert SECRET.bound_to(rows) == SECRET.bound_to(rows.T.contiguous().T)
    assert len({SECRET.bound_to(each).content for each in (rows, *others)}) == 1 + len(others)
