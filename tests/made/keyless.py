"""A scheme with one key, which is itself: what it releases is all that a test has to say."""

from __future__ import annotations

from bench.types import Key, Scheme, State


class Keyless(Scheme, Key):
    def sample_key(self, seed: int) -> Key:
        return self

    def load_key(self, state: State) -> Key:
        return self

    def state(self) -> State:
        return {}
