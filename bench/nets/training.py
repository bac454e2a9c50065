"""Training of networks: seeded starts, optimisers, and steps as CUDA graphs.

A step of a small network is thousands of kernels of a few microseconds each, and the host takes longer to launch them
than the GPU to run them. `Replay` runs the first calls as they are (they are ordinary steps), captures the next one as
a CUDA graph, and replays that: kernels and results are the same. What cannot be captured runs as it is, with a warning.
On a CPU nothing is captured.

torch's modules take no generator of their own, and draw from one of 32 bits: an attacker could guess the first weights.
Networks that are trained on private rows therefore start from a secret's stream (`start`).
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch

from bench.randomness import Stream

Shapes: TypeAlias = "tuple[torch.Size, ...]"
WARM_UP = 3
"""Calls before a capture: libraries choose their kernels, compilers compile, optimisers make their state."""
SHAPES = 2
"""Shapes of inputs that are captured: each capture holds memory of its own."""


class ReplayWarning(UserWarning):
    """A training step could not be captured; its kernels are launched separately."""


class Replay:
    """A step whose work differs only in the numbers of inputs.

    `step` does not wait for the device, and draws random numbers from torch's own generator alone. `SHAPES` shapes
    of inputs are captured, others run as they are. The tensor that comes back is that of the latest call.
    """

    def __init__(self, step: Callable[..., torch.Tensor]) -> None:
        self._step, self._refused = step, False
        self._calls: Counter[Shapes] = Counter()
        self._captured: dict[Shapes, tuple[tuple[torch.Tensor, ...], Callable[[], torch.Tensor]]] = {}

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor:
        """One step."""
        if inputs[0].device.type != "cuda" or self._refused:
            return self._step(*inputs)
        shapes = tuple(tensor.shape for tensor in inputs)
        if self._calls[shapes] < WARM_UP:
            self._calls[shapes] += 1
            return beside(self._step, inputs)
        if shapes not in self._captured and len(self._captured) < SHAPES:
            held = tuple(tensor.clone() for tensor in inputs)
            try:
                self._captured[shapes] = held, captured(self._step, held)
            except RuntimeError as error:
                self._refused = True
                self._captured.clear()
                why = str(error).splitlines()[0]
                warnings.warn(f"a training step is launched kernel by kernel: {why}", ReplayWarning, stacklevel=2)
        if shapes not in self._captured:
            return self._step(*inputs)
        held, again = self._captured[shapes]
        torch._foreach_copy_(held, inputs)
        return again()


def beside(step: Callable[..., torch.Tensor], inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """A call on a separate stream, as required before capture."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        out = step(*inputs)
    torch.cuda.current_stream().wait_stream(stream)
    return out


def captured(step: Callable[..., torch.Tensor], inputs: tuple[torch.Tensor, ...]) -> Callable[[], torch.Tensor]:
    """A function that repeats `step` on the inputs' current contents."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step(*inputs)

    def again() -> torch.Tensor:
        graph.replay()
        return out

    return again


def adam(
    parameters: Iterable[torch.nn.Parameter], learning_rate: float, device: torch.device, *, eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> torch.optim.Adam:  # fmt: skip
    """Adam; on CUDA one fused kernel, with a rate readable in replays."""
    return torch.optim.Adam(parameters, eps=eps, weight_decay=weight_decay, **_paced(learning_rate, device))


def adamw(groups: Iterable[dict[str, Any]], learning_rate: float, device: torch.device) -> torch.optim.AdamW:
    """AdamW for groups with a decay each; on CUDA as `adam`."""
    return torch.optim.AdamW(groups, **_paced(learning_rate, device))


def _paced(learning_rate: float, device: torch.device) -> dict[str, Any]:
    if device.type != "cuda":
        return {"lr": learning_rate}
    return {"lr": torch.tensor(learning_rate, device=device), "fused": True, "capturable": True}


def set_rate(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the rate of the next steps, in place if a tensor."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(learning_rate)
        else:
            group["lr"] = learning_rate


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's random numbers on the CPU and `device`; restore them afterwards."""
    device = torch.device(device)
    devices = [] if device.type == "cpu" else [device.index or 0]
    with torch.random.fork_rng(devices=devices, device_type="cuda" if device.type == "cpu" else device.type):
        torch.manual_seed(seed)
        yield


def start(network: torch.nn.Module, stream: Stream) -> None:
    """New weights, distributed as torch's own, for every layer in `modules` order.

    Linear and convolutional layers: uniform within 1 / root of a unit's inputs; norms by groups: 1 and 0. Raises
    TypeError for weights of another kind of layer.
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
