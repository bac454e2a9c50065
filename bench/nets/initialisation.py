"""Initialisation of networks: seeded torch numbers, or weights from a secret.

torch's modules take no generator of their own, and draw from one of 32 bits: an attacker could guess the first weights.
Networks that are trained on private rows therefore start from a secret's stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bench.randomness import Stream


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's random numbers on the CPU and `device`; restore them afterwards."""
    device = torch.device(device)
    devices = [] if device.type == "cpu" else [device.index or 0]
    with torch.random.fork_rng(devices=devices, device_type="cuda" if device.type == "cpu" else device.type):
        torch.manual_seed(seed)
        yield


def start(network: torch.nn.Module, stream: Stream) -> None:
    """New weights and biases for every layer, in `modules` order.

    Distributed as torch's own: of linear and convolutional layers uniform within 1 / root of the inputs of a unit (He
    et al. 2015 with slope root 5); of norms by groups 1, and 0 for the biases.

    Raises:
        TypeError: A layer of another kind has weights.
    """
    for layer in network.modules():
        if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            for part in (layer.weight, layer.bias):
                if part is not None:
                    with torch.no_grad():
                        part.copy_((2 * stream.uniform(*part.shape) - 1) * bound)
        elif isinstance(layer, torch.nn.GroupNorm):
            layer.reset_parameters()
        elif any(True for _ in layer.parameters(recurse=False)):
            raise TypeError(
                f"only linear and convolutional layers and norms by groups can be started, got {type(layer).__name__}"
            )
