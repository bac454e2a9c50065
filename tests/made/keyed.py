"""A method whose keys are a test's own: it names the class of key, and learns nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bench.randomness import Secret
from bench.types import Dataset, Key, Method, Scheme, State


@dataclass(frozen=True)
class KeyedScheme(Scheme):
    """Every key is a new instance of one class."""

    key: type[Key]

    def sample_key(self, secret: Secret) -> Key:
        return self.key()

    def load_key(self, state: State) -> Key:
        return self.key()


@dataclass(frozen=True)
class Keyed(Method):
    """Hands out keys of the class that `key` names, one of `keys`."""

    name: ClassVar[str] = "made"
    source: ClassVar[str] = "nowhere"
    keys: ClassVar[tuple[type[Key], ...]]
    scheme: ClassVar[type[KeyedScheme]] = KeyedScheme
    key: str

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return self.load({})

    def load(self, state: State) -> Scheme:
        return self.scheme(next(key for key in self.keys if key.__name__ == self.key))
