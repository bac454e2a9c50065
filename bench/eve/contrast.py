"""Training of two towers on simulated releases, stopped by its learning curve.

The curve is the mean loss on held-out keys, at the sharpness of the similarity that suits those keys best: the loss of
equal scores (chance, log(n) for n pairs) less what the towers know, in nats. When to stop, besides the last step:
- "solved": the figure is below `enough`.
- "plateau": see `bench.eve.plateau`. A smaller learning rate often helps then, so the run ends with the rest of the
  cosine within a quarter of the steps so far (or the steps that are left): stopping early keeps the gain of the falling
  learning rate.
Chance is no reason to stop: towers that know nothing yet may break through later.

On CUDA the networks compute in bfloat16 while they train (products of embeddings and the loss stay float32). Scores
use float32: two embeddings that bfloat16 cannot tell apart tie, and ties move guesswork.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from bench.eve.plateau import Plateau
from bench.nets import classifier, contrastive_towers, training
from bench.progress import report
from bench.types import LearningCurve

Reason = Literal["solved", "plateau", "last step"]

WARM_UP = 50
CHECK = 25
CHECKS = 40  # of a long training: the next check is after this share of the steps so far
COOLING = 0.25
SHARPNESSES = tuple(2.0**power for power in range(-4, 8))


@dataclass(frozen=True)
class Course:
    """Length and speed of a training.

    Args:
        steps: At most so many, one fresh key each.
        learning_rate: Adam's rate after a warm-up; it falls to zero along a cosine.
        enough: Ends the training when the mean loss on held-out keys is below it.
        least: Steps before which no plateau counts.
    """

    steps: int
    learning_rate: float
    enough: float
    least: int

    def against(self, trained: int) -> Course:
        """The course against a method that trained so many steps.

        It has no plateau before as many steps, and may take twice as many.

        >>> Course(steps=2400, learning_rate=1e-3, enough=0.01, least=600).against(50_000)
        Course(steps=100000, learning_rate=0.001, enough=0.01, least=50000)
        """
        return replace(self, steps=max(self.steps, 2 * trained), least=max(self.least, trained))


@dataclass(frozen=True, eq=False)
class Example:
    """Simulated raw (n, ...) and released (m, ...) rows, links, and labels."""

    raw: torch.Tensor
    released: torch.Tensor
    links: torch.Tensor
    raw_labels: torch.Tensor | None = None
    released_labels: torch.Tensor | None = None

    def linked(self) -> torch.Tensor:
        """(n, m) bool."""
        return contrastive_towers.linked_pairs(self.links, (len(self.raw), len(self.released))).to(self.raw.device)

    def tensors(self) -> Iterator[torch.Tensor]:
        """All tensors, in their order, on the device of the rows."""
        for tensor in (self.raw, self.released, self.links, self.raw_labels, self.released_labels):
            if tensor is not None:
                yield tensor.to(self.raw.device)


@dataclass(frozen=True)
class Outcome:
    """The end of a training.

    Args:
        steps: Taken.
        loss: Mean held-out loss at its end.
        chance: The loss of equal scores.
        reason: Why it ended.
        curve: Steps and held-out losses.
        precision: Of the networks.
    """

    steps: int
    loss: float
    chance: float
    reason: Reason
    curve: tuple[tuple[int, float], ...]
    precision: classifier.Precision

    def learning(self, part: str = "") -> LearningCurve:
        """The curve; not converged if the budget of steps ended first."""
        reasons = {
            "solved": "solved: the held-out links are found",
            "plateau": "plateau: no improvement beyond noise in the second half of the steps",
            "last step": f"the budget of {self.steps} steps ended first",
        }
        figure = f"mean loss on held-out keys of Eve's own, nats a row (chance: {self.chance:.3f})"
        return LearningCurve(figure, self.curve, self.reason != "last step", reasons[self.reason], part)

    def notes(self) -> dict[str, int | float | str]:
        """Steps, losses and the end of the training, for a record."""
        return {
            "steps": self.steps,
            "held-out loss": self.loss,
            "held-out loss at chance": self.chance,
            "ended by": self.reason,
        }


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
    watch, loss = Plateau(chance, course.least), chance
    reason: Reason = "last step"
    check = max(1, min(CHECK, course.steps // 6))
    start, place, end = 0, 0.0, course.steps  # the cosine goes from `place` at step `start` to 1 at step `end`
    step, looked, cooling = 0, 0, False
    towers.train()
    while step < end:
        along = place + (1 - place) * (step - start) / (end - start)
        rise, fall = min(1.0, (step + 1) / WARM_UP), 0.5 * (1 + math.cos(math.pi * along))
        training.set_rate(optimiser, course.learning_rate * rise * fall)
        learning(*example(step).tensors())
        step += 1
        if step - looked < max(check, step // CHECKS) and step < end:
            continue
        looked, loss = step, _held_out_loss(towers, held_out)
        report(f"contrastive, loss on held-out keys {loss:.3f}, step", step, end)
        ended = watch.reached(step, loss)
        if loss < course.enough:
            reason = "solved"
            break
        if not cooling and ended:
            reason, cooling = "plateau", True
            start, place, end = step, along, min(course.steps, step + math.ceil(COOLING * step))
    towers.eval()
    return Outcome(step, loss, chance, reason, tuple(watch.curve), precision)


def _loss(towers: contrastive_towers.Towers, one: Example, precision: classifier.Precision) -> torch.Tensor:
    with torch.autocast(one.raw.device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        raw, released = towers(one.raw, one.released, raw_labels=one.raw_labels, released_labels=one.released_labels)
    return towers.match(raw.float(), released.float(), one.links)


def _held_out_loss(towers: contrastive_towers.Towers, held_out: Sequence[Example]) -> float:
    """Mean loss at the sharpness best for held-out keys, at most chance."""
    towers.eval()
    losses = torch.zeros(len(SHARPNESSES) + 1, dtype=torch.float64)
    with torch.no_grad():
        for one in held_out:
            raw, released = towers(
                one.raw, one.released, raw_labels=one.raw_labels, released_labels=one.released_labels
            )
            logits, linked = raw.float() @ released.float().T, one.linked()
            both = [contrastive_towers.symmetric_loss(sharpness * logits, linked) for sharpness in (0.0, *SHARPNESSES)]
            losses += torch.stack(both).double().cpu() / len(held_out)
    towers.train()
    return float(losses.min())


def _chance(one: Example) -> float:
    linked = one.linked()
    return contrastive_towers.symmetric_loss(torch.zeros(linked.shape, device=linked.device), linked).item()
