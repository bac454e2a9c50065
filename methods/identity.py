"""Identity: rows are released as they are. The reference row for full utility and no privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bench.randomness import Secret
from bench.types import Dataset, Key, Method, Release, Role, Scheme, State, paired


@dataclass(frozen=True)
class Identity(Method):
    """Nothing is hidden: every attack must find every row."""

    name: ClassVar[str] = "identity"
    role: ClassVar[Role | None] = "hides nothing"
    source: ClassVar[str] = "reference row: the raw data"
    needs_public: ClassVar[bool] = False

    def fit(self, public: Dataset, seed: int) -> IdentityScheme:
        """Nothing to learn."""
        return IdentityScheme()

    def load(self, state: State) -> IdentityScheme:
        """The scheme, which has no state."""
        return IdentityScheme()


class IdentityScheme(Scheme):
    """All keys are the same."""

    def sample_key(self, secret: Secret) -> IdentityKey:
        """The key, whatever the seed."""
        return IdentityKey()

    def load_key(self, state: State) -> IdentityKey:
        """The key, which has no state."""
        return IdentityKey()


class IdentityKey(Key):
    """Nothing secret."""

    def release(self, private: Dataset) -> Release:
        """The private rows and labels themselves."""
        return paired(private.samples, private.labels)

    def state(self) -> State:
        """Empty."""
        return {}
