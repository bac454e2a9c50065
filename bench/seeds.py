"""Random numbers: integer seeds derived by name, generators made where they are used, never the global one."""

from __future__ import annotations

import hashlib

import torch


def derive(seed: int, *names: str | int) -> int:
    """A 63-bit seed that depends on `seed` and every name, and on nothing else.

    >>> derive(0, "key", 3) == derive(0, "key", 3), derive(0, "key", 3) == derive(0, "key", 4)
    (True, False)
    """
    text = repr((seed, *names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def drawn(n: int, random: torch.Generator, size: int | None = None) -> torch.Tensor:
    """`size` of the numbers below `n` in random order, each at most once; all of them without a size.

    int64, on the device of the generator: a GPU that draws for itself waits for nobody.
    """
    return torch.randperm(n, generator=random, device=random.device)[:size]


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator on `device` that starts at `seed`."""
    return torch.Generator(device=device).manual_seed(seed)
