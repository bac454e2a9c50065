"""A scheme with one key, which is itself: what it releases is all that a test has to say."""

from __future__ import annotations

from bench.randomness import Secret
from bench.types import Dataset, Key, Release, Scheme, State


class Keyless(Scheme, Key):
    """Holds no secret; a test adds `release`."""

    def sample_key(self, secret: Secret) -> Key:
        return self

    def load_key(self, state: State) -> Key:
        return self

    def state(self) -> State:
        return {}


class Unlinked(Keyless):
    """Releases the rows and does not say where each went."""

    def release(self, private: Dataset) -> Release:
        return Release(private.samples, None, None)
