"""Training of two towers on simulated releases, stopped by held-out keys.

When to stop, besides the last step (steps before the warm-up ends count for nothing):
- "solved": the mean loss on held-out keys is below `enough`.
- "chance": for `patience` steps no smoothed held-out loss was better than chance, which is known: the loss of equal
  scores, log(n) for n pairs. A smaller learning rate would not help, so the run ends at once. Losses above chance
  count as chance: towers that learn nothing begin above it and fall towards it for hundreds of steps.
- "plateau": the best smoothed loss is as old, but better than chance. A smaller learning rate often helps here, so the
  run ends with the rest of the cosine within `patience` steps (or the steps that are left): stopping early keeps the
  gain of the falling learning rate.
A loss counts as better when it is lower by a hundredth of chance.

On CUDA the networks compute in bfloat16 while they train (products of embeddings and the loss stay float32). Scores
use float32: two embeddings that bfloat16 cannot tell apart tie, and ties move guesswork.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from bench.nets import classifier, contrastive_towers, training
from bench.progress import report

Reason = Literal["solved", "chance", "plateau", "last step"]

WARM_UP = 50
CHECK = 25
SMOOTHED = 3
LEAST = 0.01


@dataclass(frozen=True)
class Course:
    """Length and speed of a training.

    Args:
        steps: At most so many, one fresh key each.
        learning_rate: Adam's rate after a warm-up; it falls to zero along a cosine.
        enough: Ends the training when the mean loss on held-out keys is below it.
        patience: Steps without a better held-out loss after which the training ends; see the module.
    """

    steps: int
    learning_rate: float
    enough: float
    patience: int


@dataclass(frozen=True, eq=False)
class Example:
    """Simulated raw (n, ...) and released (m, ...) rows, links, and labels."""

    raw: torch.Tensor
    released: torch.Tensor
    links: torch.Tensor
    raw_labels: torch.Tensor | None = None
    released_labels: torch.Tensor | None = None

    def tensors(self) -> Iterator[torch.Tensor]:
        """All tensors, in their order, on the device of the rows."""
        for tensor in (self.raw, self.released, self.links, self.raw_labels, self.released_labels):
            if tensor is not None:
                yield tensor.to(self.raw.device)


@dataclass(frozen=True)
class Outcome:
    """Steps taken, mean held-out loss, chance's loss, and the training's end."""

    steps: int
    loss: float
    chance: float
    reason: Reason
    patience: int
    precision: classifier.Precision

    @property
    def ended_by(self) -> str:
        """Why it ended, in words."""
        waited = f" for {self.patience} steps" if self.reason in ("chance", "plateau") else ""
        return f"{self.reason}{waited}"

    def notes(self) -> dict[str, int | float | str]:
        """Steps, losses and the end of the training, for a record."""
        return {
            "steps": self.steps,
            "held-out loss": self.loss,
            "held-out loss at chance": self.chance,
            "ended by": self.ended_by,
        }


@dataclass
class Plateau:
    """Watches held-out losses and says when to give up; see the module.

    >>> watch = Plateau(chance=4.0, patience=50)
    >>> [watch.stale(step, 4.0) for step in (50, 75, 100, 125)]
    [False, False, False, True]
    """

    chance: float
    patience: int
    seen: list[float] = field(default_factory=list)
    best: float = math.inf
    best_step: int = WARM_UP

    def stale(self, step: int, loss: float) -> bool:
        """Take in a loss; True after `patience` steps without a better one."""
        self.seen = [*self.seen, min(loss, self.chance)][-SMOOTHED:]
        smoothed = sum(self.seen) / len(self.seen)
        if smoothed < min(self.best, self.chance) - LEAST * self.chance:
            self.best, self.best_step = smoothed, max(step, WARM_UP)
        return step - self.best_step > self.patience

    @property
    def left_chance(self) -> bool:
        """True if any smoothed loss was better than chance."""
        return self.best < (1 - LEAST) * self.chance


def training_precision(device: torch.device) -> classifier.Precision:
    """Precision of networks in training: bfloat16 on CUDA devices that have it."""
    return "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"


def train(
    towers: contrastive_towers.Towers, example: Callable[[int], Example], held_out: Sequence[Example], course: Course
) -> Outcome:
    """Train the towers in place, which stay in evaluation mode.

    Args:
        towers: On the device of the examples.
        example: The simulated release of a step, under a key of its own.
        held_out: Releases under keys that no step uses.
        course: Length and speed of the training.
    """
    device = held_out[0].raw.device
    optimiser, precision = (
        training.adam(towers.parameters(), course.learning_rate, device),
        training_precision(device),
    )

    def learn(raw: torch.Tensor, released: torch.Tensor, links: torch.Tensor, *labels: torch.Tensor) -> torch.Tensor:
        """One step: the loss before it."""
        optimiser.zero_grad(set_to_none=True)
        loss = _loss(towers, Example(raw, released, links, *labels), precision)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(towers.parameters(), 1.0)
        optimiser.step()
        return loss.detach()

    learning = training.Replay(learn)
    chance = sum(_chance(one) for one in held_out) / len(held_out)
    watch, loss = Plateau(chance, course.patience), chance
    reason: Reason = "last step"
    check = max(1, min(CHECK, course.steps // 6))
    start, place, end = 0, 0.0, course.steps  # the cosine goes from `place` at step `start` to 1 at step `end`
    step, cooling = 0, False
    towers.train()
    while step < end:
        along = place + (1 - place) * (step - start) / (end - start)
        rise, fall = min(1.0, (step + 1) / WARM_UP), 0.5 * (1 + math.cos(math.pi * along))
        training.set_rate(optimiser, course.learning_rate * rise * fall)
        learning(*example(step).tensors())
        step += 1
        if step % check and step < end:
            continue
        loss = _held_out_loss(towers, held_out)
        report(f"contrastive, loss on held-out keys {loss:.3f}, step", step, end)
        if loss < course.enough:
            reason = "solved"
            break
        if not cooling and watch.stale(step, loss):
            if not watch.left_chance:
                reason = "chance"
                break
            reason, cooling = "plateau", True
            start, place, end = step, along, min(course.steps, step + course.patience)
    towers.eval()
    return Outcome(step, loss, chance, reason, course.patience, precision)


def _loss(towers: contrastive_towers.Towers, one: Example, precision: classifier.Precision) -> torch.Tensor:
    with torch.autocast(one.raw.device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        raw, released = towers(one.raw, one.released, raw_labels=one.raw_labels, released_labels=one.released_labels)
    return towers.match(raw.float(), released.float(), one.links)


def _held_out_loss(towers: contrastive_towers.Towers, held_out: Sequence[Example]) -> float:
    towers.eval()
    with torch.no_grad():
        mean = sum(_loss(towers, one, "float32").item() for one in held_out) / len(held_out)
    towers.train()
    return mean


def _chance(one: Example) -> float:
    linked = torch.zeros(len(one.raw), len(one.released), dtype=torch.bool)
    linked[one.links[:, 0].cpu(), one.links[:, 1].cpu()] = True
    level = torch.zeros(linked.shape)
    return (
        contrastive_towers.matching_loss(level, linked) + contrastive_towers.matching_loss(level.T, linked.T)
    ).item() / 2
