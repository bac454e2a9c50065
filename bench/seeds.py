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


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator on `device` that starts at `seed`."""
    return torch.Generator(device=device).manual_seed(seed)
