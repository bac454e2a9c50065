"""The global random numbers, borrowed and given back: torch modules take no generator of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Within the block, torch's own random numbers (initialisation, dropout) on the CPU and `device` start at `seed`.

    The state before is restored afterwards, so that nobody outside notices.
    """
    device = torch.device(device)
    devices = [] if device.type == "cpu" else [device.index or 0]
    with torch.random.fork_rng(devices=devices, device_type="cuda" if device.type == "cpu" else device.type):
        torch.manual_seed(seed)
        yield
