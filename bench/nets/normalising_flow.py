"""Normalising flows between rows and standard normal latents; their training.

Training is by maximum likelihood, judged on held-out people.

Source: Kingma and Dhariwal, Glow (2018), appendix B (uniform dequantisation, warm-up, initialisation by data), and
Ardizzone et al. (2019), as in the CADP paper: loss mean(0.5 |z|^2 - log |det|) / d, Adam with epsilon 1e-6.

Differences: gradients are clipped, and a run that diverges ends with an error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from bench.checkpoint import steps
from bench.memory.rows import by_blocks
from bench.nets.training import Replay, adam, seeded, set_rate
from bench.progress import report
from bench.seeds import derive, drawn, generator
from bench.validation import at_least, positive, within

CHUNK = 2**18  # elements (rows x d) that are worked on at once


class Flow(nn.Module, ABC):
    """An invertible network; its latent is standard normal after training.

    A condition (n, k), float32, is what else the density of rows may depend on; None for an unconditional flow. In
    another batch the last digits may differ.
    """

    @abstractmethod
    def encode(self, samples: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Latents (n, d) of rows, and log |det Jacobian| (n,); float32."""

    @abstractmethod
    def decode(self, latent: Tensor, condition: Tensor | None = None) -> Tensor:
        """Rows (n, ...) of latents (n, d), inverse of `encode`; float32."""

    def initialise(self, samples: Tensor, condition: Tensor | None = None) -> None:
        """Set weights that depend on data by a first batch."""

    def log_density(self, samples: Tensor, condition: Tensor | None = None) -> Tensor:
        """Log density (n,) of rows in nats, under a standard normal latent."""
        latent, log_det = self.encode(samples, condition)
        return -0.5 * (latent.square() + math.log(2 * math.pi)).sum(dim=1) + log_det


def encoded(flow: Flow, samples: Tensor, condition: Tensor | None = None) -> Tensor:
    """Latents (n, d) of any number of rows, without gradients, in float32."""
    return _each(lambda *part: flow.encode(*part)[0], samples, condition)


def decoded(flow: Flow, latent: Tensor, condition: Tensor | None = None) -> Tensor:
    """Rows (n, ...) of any number of latents, without gradients, in float32."""
    return _each(flow.decode, latent, condition)


def log_densities(flow: Flow, samples: Tensor, condition: Tensor | None = None) -> Tensor:
    """Log densities (n,) in nats of any rows, without gradients, float32."""
    return _each(flow.log_density, samples, condition)


def rows_at_once(rows: Tensor) -> int:
    """Rows that these functions work on at a time."""
    return max(1, CHUNK // max(1, rows[:1].numel()))


def _each(work: Callable[[Tensor, Tensor | None], Tensor], rows: Tensor, condition: Tensor | None) -> Tensor:
    """`work` on rows and their conditions, a part at a time."""

    def made(index: Tensor) -> Tensor:
        return work(rows[index], None if condition is None else condition[index])

    with torch.no_grad():
        return by_blocks(torch.arange(len(rows), device=rows.device), made, rows_at_once(rows))


ADAM_EPSILON = 1e-6
INITIAL_ROWS, INITIAL_NUMBERS = 256, 1 << 22  # of rows, whose activations are hundreds of times as many at once
EXPLOSION = 100.0  # nats a dimension above the lowest loss so far; training that succeeds spans less than ten


class FlowDiverged(RuntimeError):  # noqa: N818  (an outcome of training)
    """Training diverged; the text names the step, loss and remedy."""


@dataclass(frozen=True)
class FlowCourse:
    """Training of a flow.

    Args:
        steps: Gradient steps of Adam.
        batch: Rows a step; all of them where there are fewer.
        learning_rate: Peak rate.
        warm_up: Steps over which the rate rises to its peak.
        milestones: Shares of the steps at which the rate falls to a tenth; () keeps it; None lets it fall along a
            cosine to zero.
        clip_norm: Longest gradient.
        weight_decay: L2 penalty.
        noise: Added to every row anew: "uniform" fills the steps of 8-bit images in [0, 1] (x + (u - 1/2) / 255);
            a number is the standard deviation of Gaussian noise.
        condition_dropout: Share of rows whose condition is replaced by zeros, which then stand for "unknown".
    """

    steps: int
    batch: int
    learning_rate: float
    warm_up: int = 100
    milestones: tuple[float, ...] | None = None
    clip_norm: float = 50.0
    weight_decay: float = 0.0
    noise: Literal["uniform"] | float = "uniform"
    condition_dropout: float = 0.0

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps, batch=self.batch)
        positive(learning_rate=self.learning_rate, clip_norm=self.clip_norm)
        at_least(0, warm_up=self.warm_up, weight_decay=self.weight_decay)
        if self.noise != "uniform" and (isinstance(self.noise, str) or not self.noise >= 0):
            raise ValueError(f'noise must be "uniform" or a number of at least 0, got {self.noise!r}')
        within(0, 1, condition_dropout=self.condition_dropout)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        rise = min(1.0, (step + 1) / max(1, self.warm_up))
        if self.milestones is None:
            return self.learning_rate * rise * 0.5 * (1 + math.cos(math.pi * step / self.steps))
        return self.learning_rate * rise * 0.1 ** sum(step >= share * self.steps for share in self.milestones)


@dataclass(frozen=True)
class FlowFit:
    """Fit to held-out rows, in nats and (images) bits of 8-bit pixels."""

    steps: int
    rows: int
    nats_per_dim: float
    bits_per_dim: float | None


def train_flow(
    flow: Flow,
    samples: Tensor,
    condition: Tensor | None,
    course: FlowCourse,
    *,
    held_out: tuple[Tensor, Tensor | None],
    seed: int,
) -> FlowFit:
    """Train `flow` in place; leave it in evaluation mode.

    It is judged on `held_out` rows and condition. Same seed, same bits on a CPU. Raises FlowDiverged if loss or
    gradient are no longer finite, or the loss has exploded.
    """
    device, d = samples.device, samples[0].numel()
    order, random = generator(derive(seed, "rows"), device), generator(derive(seed, "noise"), device)
    optimiser = adam(
        flow.parameters(), course.learning_rate, device, eps=ADAM_EPSILON, weight_decay=course.weight_decay
    )
    watch, every = _Watch(device), max(1, course.steps // 50)

    def learn(rows: Tensor, *conditions: Tensor) -> Tensor:
        """One step: (loss before it, gradient length), (2,)."""
        latent, log_det = flow.encode(rows, *conditions)
        loss = (0.5 * latent.square().sum(dim=1) - log_det).mean() / d
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        length = nn.utils.clip_grad_norm_(flow.parameters(), course.clip_norm)
        optimiser.step()
        return torch.stack((loss.detach(), length))

    learning = Replay(learn)
    with seeded(derive(seed, "flow"), device):
        flow.train()
        first = min(INITIAL_ROWS, max(course.batch, INITIAL_NUMBERS // d))
        flow.initialise(*_batch(samples, condition, course, first, order, random))
        for step in steps(course.steps, flow, optimiser, order, random, watch):
            rows, conditions = _batch(samples, condition, course, course.batch, order, random)
            set_rate(optimiser, course.rate(step))
            watch.see(step, *learning(rows, *(() if conditions is None else (conditions,))))
            if (step + 1) % every == 0 or step + 1 == course.steps:
                report(f"flow, loss {watch.loss():.3f} nats a dimension, step", step + 1, course.steps)
    flow.eval()
    return _judge(flow, held_out, course.steps, seed)


class _Watch:
    """Monitor of every step; the host waits only when it asks."""

    def __init__(self, device: torch.device) -> None:
        nothing = torch.full((), math.inf, device=device)
        self._lowest, self._last = nothing, nothing
        self._first = torch.full((4,), -1.0, dtype=torch.float64, device=device)  # of diverging: see `_diverged`

    def see(self, step: int, loss: Tensor, length: Tensor) -> None:
        """Record a step's loss and gradient length."""
        self._last, self._lowest = loss, torch.fmin(self._lowest, loss)
        wrong = ~(loss.isfinite() & length.isfinite() & (loss < self._lowest + EXPLOSION))
        seen = torch.stack((torch.full_like(loss, step), loss, self._lowest, length)).double()
        self._first = torch.where(wrong & (self._first[0] < 0), seen, self._first)

    def state_dict(self) -> Mapping[str, Tensor]:
        """The recorded statistics."""
        return {"lowest": self._lowest, "last": self._last, "first": self._first}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take what another has seen."""
        self._lowest, self._last, self._first = (state[name].to(self._first.device) for name in self.state_dict())

    def loss(self) -> float:
        """Of the last step; raises FlowDiverged for the first that diverged."""
        step, *figures, last = torch.cat((self._first, self._last[None].double())).tolist()
        if step >= 0:
            raise _diverged(int(step), *figures)
        return float(last)


def _batch(
    samples: Tensor, condition: Tensor | None, course: FlowCourse, rows: int, order: torch.Generator,
    random: torch.Generator,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    chosen = drawn(len(samples), order, rows)
    batch = _noisy(samples[chosen], course.noise, random)
    if condition is None:
        return batch, None
    mask = torch.rand(len(chosen), 1, generator=random, device=samples.device) >= course.condition_dropout
    return batch, condition[chosen] * mask


def _noisy(samples: Tensor, noise: Literal["uniform"] | float, random: torch.Generator) -> Tensor:
    shape, device = samples.shape, samples.device
    if isinstance(noise, str):
        return samples + (torch.rand(shape, generator=random, device=device) - 0.5) / 255
    return samples + noise * torch.randn(shape, generator=random, device=device)


def _judge(flow: Flow, held_out: tuple[Tensor, Tensor | None], steps: int, seed: int) -> FlowFit:
    samples, condition = held_out
    image = samples.ndim == 4
    if image:
        samples = _noisy(samples, "uniform", generator(derive(seed, "held out"), samples.device))
    nats = -float(log_densities(flow, samples, condition).double().mean()) / samples[0].numel()
    if not math.isfinite(nats):
        raise _diverged(steps, nats, math.nan, math.nan)
    return FlowFit(steps, len(samples), nats, nats / math.log(2) + math.log2(255) if image else None)


def _diverged(step: int, loss: float, lowest: float, length: float) -> FlowDiverged:
    return FlowDiverged(
        f"the flow diverged at step {step}: loss {loss:.4g} nats a dimension (lowest before {lowest:.4g}), length of "
        f"the gradient {length:.4g}; lower learning_rate or clip_norm, or lengthen warm_up"
    )
