"""Keys that can be guessed are noticed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from bench.conformance.method_basics import check_secrets
from bench.conformance.outcome import Skip
from bench.contract.seal import ContractError
from bench.randomness import Secret
from bench.types import Dataset, Key, Release, Scheme, State, paired
from methods.identity import Identity


@dataclass(frozen=True)
class FewBits(Scheme, Key):
    """Weights that a generator of torch draws from so many bits of the secret, or those bits alone."""

    bits: int
    kept: str
    seed: int = 0

    def sample_key(self, secret: Secret) -> Key:
        return FewBits(self.bits, self.kept, int.from_bytes(secret.content, "big") % (1 << self.bits))

    def load_key(self, state: State) -> Key:
        return self

    def state(self) -> State:
        if self.kept == "seed":
            return {"seed": torch.tensor(self.seed)}
        return {"weights": torch.rand(64, generator=torch.Generator().manual_seed(self.seed))}

    def release(self, private: Dataset) -> Release:
        return paired(private.samples, None)


def test_keys_of_a_seed_of_16_bits_meet() -> None:
    with pytest.raises(ContractError, match=r"1024 secrets gave only 10\d\d different keys"):
        check_secrets(FewBits(16, "weights"))


def test_a_state_of_63_bits_is_too_little() -> None:
    with pytest.raises(ContractError, match="holds 64 bits"):
        check_secrets(FewBits(63, "seed"))


def test_keys_without_a_secret_are_not_asked() -> None:
    with pytest.raises(Skip, match="hold no secret"):
        check_secrets(Identity().load({}))
