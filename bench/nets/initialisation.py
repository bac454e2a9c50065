"""The global random numbers, borrowed and given back: torch modules take no generator of their own.

The first weights of a network that is trained on private rows, drawn from a secret.

torch's modules draw their own from a generator of 32 bits; whoever guesses those knows where training began.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bench.randomness import Stream


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


def start(network: torch.nn.Module, stream: Stream) -> None:
    """Give every layer of `network` new weights and biases, in the order of `modules`.

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
