"""A plain seed for keys that tests make: nothing of theirs has to stay secret."""

from __future__ import annotations

from bench.randomness import Secret


def toy_seed(secret: Secret) -> int:
    """31 bits of a secret."""
    return int(secret.stream("toy").integers(1 << 31))
