"""Seeds derived by name, and generators; torch's global one is not used."""

from __future__ import annotations

import hashlib

import torch


def derive(seed: int, *names: str | int) -> int:
    """A 63-bit seed that depends on `seed` and the names only.

    >>> derive(0, "key", 3) == derive(0, "key", 3), derive(0, "key", 3) == derive(0, "key", 4)
    (True, False)
    """
    text = repr((seed, *names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def drawn(n: int, random: torch.Generator, size: int | None = None) -> torch.Tensor:
    """`size` distinct numbers below `n` (None: all), int64, on the generator's device."""
    return torch.randperm(n, generator=random, device=random.device)[:size]


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator on `device` that starts at `seed`."""
    return torch.Generator(device=device).manual_seed(seed)
