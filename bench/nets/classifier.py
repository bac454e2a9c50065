"""Training of classifiers by gradient steps, for Bob and for attacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from bench.nets.training import Replay, adamw, set_rate
from bench.rows.grouping import labelled
from bench.seeds import drawn, generator

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Course:
    """Training of a classifier.

    Args:
        epochs: Passes over the rows, in batches of equal size.
        steps: Upper bound on gradient steps, whatever the epochs say; None for no bound.
        batch: Rows a step, at least 2 (batch norm); a little more where the rows do not divide evenly.
        learning_rate: Peak of a one-cycle schedule: linear rise over a tenth of the steps, cosine fall to zero.
        weight_decay: Of AdamW.
        precision: Arithmetic of the network; loss, weights and predictions stay float32.
    """

    epochs: int
    steps: int | None
    batch: int
    learning_rate: float
    weight_decay: float
    precision: Precision

    def batches(self, rows: int) -> int:
        """Batches per epoch, each of at least `batch` rows if possible."""
        return max(1, rows // self.batch)

    def total(self, rows: int) -> int:
        """Gradient steps for that many rows."""
        steps = self.epochs * self.batches(rows)
        return steps if self.steps is None else min(steps, self.steps)


def fast_precision(device: torch.device) -> Precision:
    """bfloat16 if the device computes convolutions faster in it, else float32."""
    if device.type == "cpu":
        if torch.backends.cpu.get_cpu_capability() != "AVX512":
            return "float32"
        capabilities = torch.cpu.get_capabilities()
        return "bfloat16" if capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") else "float32"
    return "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"


class Standardise(torch.nn.Module):
    """Standardisation of rows (n, ...) by `samples`, per channel or column."""

    mean: torch.Tensor
    factor: torch.Tensor

    def __init__(self, samples: torch.Tensor) -> None:
        super().__init__()
        axes = (0, 2, 3) if samples.ndim == 4 else (0,)
        std, mean = torch.std_mean(samples, dim=axes, correction=0, keepdim=True)
        self.register_buffer("mean", mean)
        self.register_buffer("factor", torch.where(std > 0, 1 / std.clamp_min(1e-30), torch.ones_like(std)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, ...) to (n, ...)."""
        return (rows - self.mean) * self.factor


def label_loss(exclusive: bool) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Cross-entropy of logits by class or finding; NaN labels are ignored."""

    def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        known = ~labels.isnan().any(dim=1)
        losses = -(labels.nan_to_num() * torch.nn.functional.log_softmax(logits, dim=1)).sum(dim=1)
        return (losses * known).sum() / known.sum().clamp_min(1)

    def binary(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        known = ~labels.isnan()
        losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels.nan_to_num(), reduction="none")
        return (losses * known).sum() / known.sum().clamp_min(1)

    return cross_entropy if exclusive else binary


def train(
    network: torch.nn.Module,
    samples: torch.Tensor,
    labels: torch.Tensor,
    course: Course,
    *,
    exclusive: bool,
    seed: int,
    vary: Callable[[torch.Tensor, torch.Generator], torch.Tensor] | None = None,
) -> Iterator[int]:
    """Train in place; yield the steps done after every epoch.

    Rows without any known label are left out; ValueError if none is left. The caller seeds torch for dropout.
    `vary` makes of a batch what the network sees of it, at random; None shows rows as they are.
    """
    rows = labelled(labels)
    if not len(rows):
        raise ValueError("a classifier needs labels: every label of every row is NaN")
    samples, labels = _laid_out(samples[rows]), labels[rows]
    loss_of, order = label_loss(exclusive), generator(seed, samples.device)
    decayed = [weight for weight in network.parameters() if weight.ndim > 1]
    others = [weight for weight in network.parameters() if weight.ndim <= 1]
    optimiser = adamw(
        [{"params": decayed, "weight_decay": course.weight_decay}, {"params": others, "weight_decay": 0.0}],
        course.learning_rate, samples.device,
    )  # fmt: skip

    def learn(batch: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """One step: the loss before it."""
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(forward(network, batch, course.precision), truth)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.detach()

    learning = Replay(learn)
    total, done = course.total(len(rows)), 0
    rise = max(1, total // 10)
    while done < total:
        network.train()
        shuffled = drawn(len(rows), order)
        for batch in shuffled.tensor_split(course.batches(len(rows)))[: total - done]:
            share = min((done + 1) / rise, 0.5 * (1 + math.cos(math.pi * max(0, done - rise) / max(1, total - rise))))
            set_rate(optimiser, course.learning_rate * share)
            seen = samples[batch] if vary is None else _laid_out(vary(samples[batch], order))
            learning(seen, labels[batch])
            done += 1
        yield done


def forward(network: torch.nn.Module, samples: torch.Tensor, precision: Precision) -> torch.Tensor:
    """The network's output for samples (n, ...), float32."""
    with torch.autocast(samples.device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        out: torch.Tensor = network(samples)
    return out.float()


def outputs(network: torch.nn.Module, samples: torch.Tensor, precision: Precision, rows: int = 1024) -> torch.Tensor:
    """`forward` in evaluation mode, `rows` at a time; independent of the batch."""
    network.eval()
    with torch.no_grad():
        return torch.cat([forward(network, _laid_out(part), precision) for part in torch.split(samples, rows)])


def _laid_out(samples: torch.Tensor) -> torch.Tensor:
    return samples.contiguous(memory_format=torch.channels_last) if samples.ndim == 4 else samples
