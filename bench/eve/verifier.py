"""A verifier: two linear heads that bring rows of one person together.

Source: Packhäuser et al. 2022 train a siamese network to say if two chest X-rays show one person; here the network is
frozen and its features are learned on, by the contrastive loss over many people of Khosla et al. 2020 ("Supervised
Contrastive Learning", equation 2), which needs fewer pairs.

Features are centred by their set, turned to principal axes and divided by the root of each axis's deviation (half
whitening: axes that vary much say less of a person than their length claims). The heads, one for raw and one for
released rows, begin as the identity, are held to it by a squared penalty, and end with the figures of their best check
on held-out people under held-out keys: what is not learned does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeAlias

import torch

from bench.eve.contrast import SHARPNESSES
from bench.eve.plateau import Plateau
from bench.nets import contrastive_towers, linear_heads, training
from bench.progress import report
from bench.seeds import derive, generator
from bench.types import LearningCurve

AXES = 256
"""Most axes of a part of the features."""
SMALLEST = 1e-6  # of the first axis's deviation: axes that vary less hold no information
CONSTANT = 1e-9  # deviations of rows below it are errors of rounding
SCALE = 10.0
KEPT = 1e-2  # weight of the squared distance to the identity
CHECK = 10
SHUT = -1e4  # logit of an image and a row released of itself, if that is no pair
SHARE = 4  # one in so many people is held out
Parts: TypeAlias = "tuple[torch.Tensor, ...]"
"""Features of one set in parts of equal weight, each (n, f)."""


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of each part, divided by the root of their deviations."""

    axes: Parts

    def __call__(self, parts: Parts) -> torch.Tensor:
        """Coordinates (n, d) float32 of one set's rows, centred by it."""
        return torch.cat([((part - part.mean(dim=0)) @ axes.T) for part, axes in zip(parts, self.axes, strict=True)], 1)


def principal_axes(sets: Sequence[Parts]) -> Axes:
    """Axes of the rows of all sets, each set centred by itself."""
    found = []
    for parts in zip(*sets, strict=True):
        rows = torch.cat([part - part.mean(dim=0) for part in parts]).double()
        _, sizes, axes = torch.linalg.svd(rows, full_matrices=False)
        keep = min(AXES, max(1, int((sizes > SMALLEST * sizes[0]).sum())))
        scaled = axes[:keep] / sizes[:keep, None].clamp_min(CONSTANT).sqrt()
        weight = (rows @ scaled.T).square().sum(dim=1).mean().sqrt().clamp_min(CONSTANT)
        found.append((scaled / weight).float())
    return Axes(tuple(found))


@dataclass(frozen=True, eq=False)
class Pairs:
    """One release of the pool under a key of Eve's own.

    Args:
        raw: (n, d) coordinates of the pool's rows.
        released: (m, d) coordinates of released rows.
        made_of: (m,) int64, the row of the pool in each.
    """

    raw: torch.Tensor
    released: torch.Tensor
    made_of: torch.Tensor


@dataclass(frozen=True)
class Course:
    """Length and speed of a training.

    Args:
        steps: At most so many.
        least: Steps before which no plateau counts.
        rows: Raw rows a step, of whole people.
        learning_rate: Of Adam.
    """

    steps: int
    least: int
    rows: int
    learning_rate: float


@dataclass(frozen=True, eq=False)
class Trained:
    """Heads at their best check, their figure, chance, and the curve."""

    heads: linear_heads.Heads
    loss: float
    chance: float
    learning: LearningCurve


def held_out_people(people: torch.Tensor, seed: int) -> torch.Tensor:
    """(n,) bool: the rows of one in `SHARE` people.

    As many of those with several rows as of those with one, for without the former there is no pair to judge by.
    """
    sizes = torch.bincount(people.cpu())
    order = torch.randperm(len(sizes), generator=generator(seed))
    held = torch.zeros(len(sizes), dtype=torch.bool)
    for group in (sizes > 1, sizes == 1):
        members = order[group[order]]
        held[members[: max(1, len(members) // SHARE)]] = True
    return held[people.cpu()].to(people.device)


def train_heads(
    start: linear_heads.Heads, keys: Sequence[Pairs], held_keys: Sequence[Pairs], people: torch.Tensor, *, own: bool,
    course: Course, seed: int, part: str,
) -> Trained:  # fmt: skip
    """Train on some people and keys; others decide the end.

    Args:
        start: Heads to begin with; they stay as they are.
        keys, held_keys: Releases of one pool to learn from, and to judge by.
        people: (n,) int64, the person of each row of the pool.
        own: True if an image and a row released of itself is a pair, False if only other images of the person are.
        course: Length and speed of the training.
        seed: Draws the people held out, the batches and their keys.
        part: Name of the training in the record.
    """
    heads, device = deepcopy(start), people.device
    held = held_out_people(people, derive(seed, "held out"))
    before = linear_heads.Heads(len(heads.raw), tied=False).to(device)
    optimiser = training.adam(heads.parameters(), course.learning_rate, device)
    learn_from, order = (~held).nonzero()[:, 0], generator(derive(seed, "batches"))
    first, chance = _figure(heads, held_keys, people, held, own=own)
    best, best_loss, curve = deepcopy(heads), first, [(0, first)]
    watch, converged = Plateau(first, course.least), False
    for step in range(1, course.steps + 1):
        pairs = keys[int(torch.randint(len(keys), (), generator=order))]
        some = torch.zeros(len(people), dtype=torch.bool, device=device)
        some[_whole_people(people, learn_from, course.rows, order)] = True
        optimiser.zero_grad(set_to_none=True)
        logits, linked = _logits(heads, pairs, people, some, own=own)
        if not bool(linked.any()):
            continue
        loss = contrastive_towers.symmetric_loss(SCALE * logits, linked)
        loss = loss + KEPT * sum(
            (mine - theirs.detach()).square().sum()
            for mine, theirs in zip((heads.raw, heads.released), before.parameters(), strict=True)
        )
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % CHECK and step < course.steps:
            continue
        figure, _ = _figure(heads, held_keys, people, held, own=own)
        curve.append((step, figure))
        report(f"verifier, {part}, loss on held-out people {figure:.3f}, step", step, course.steps)
        if figure < best_loss:
            best, best_loss = deepcopy(heads), figure
        if watch.reached(step, figure):
            converged = True
            break
    reason = "plateau: no improvement beyond noise in the second half of the steps; the best check is kept"
    if not converged:
        reason = f"the budget of {course.steps} steps ended first; the best check is kept"
    figure_name = f"mean loss on held-out people under held-out keys, nats a row (chance: {chance:.3f})"
    return Trained(best, best_loss, chance, LearningCurve(figure_name, tuple(curve), converged, reason, part))


def _whole_people(people: torch.Tensor, rows: torch.Tensor, most: int, order: torch.Generator) -> torch.Tensor:
    """About `most` of the rows, of people drawn at random."""
    if len(rows) <= most:
        return rows
    rank = torch.randperm(int(people.max()) + 1, generator=order).to(people.device)[people[rows]]
    return rows[rank.argsort(stable=True)[:most]]


def _logits(
    heads: linear_heads.Heads, pairs: Pairs, people: torch.Tensor, some: torch.Tensor, *, own: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines of some raw rows and their released rows, and pairs."""
    rows, columns = some.nonzero()[:, 0], some[pairs.made_of].nonzero()[:, 0]
    made_of = pairs.made_of[columns]
    raw, released = heads(pairs.raw[rows], pairs.released[columns])
    logits, linked = raw @ released.T, people[rows][:, None] == people[made_of][None]
    if not own:
        itself = rows[:, None] == made_of[None]
        logits, linked = logits.masked_fill(itself, SHUT), linked & ~itself
    return logits, linked


def _figure(
    heads: linear_heads.Heads, keys: Sequence[Pairs], people: torch.Tensor, held: torch.Tensor, *, own: bool
) -> tuple[float, float]:
    """Mean loss at the best sharpness, and that of equal scores."""
    losses = torch.zeros(len(SHARPNESSES) + 1, dtype=torch.float64)
    with torch.no_grad():
        for pairs in keys:
            logits, linked = _logits(heads, pairs, people, held, own=own)
            shut = logits == SHUT
            each = [
                contrastive_towers.symmetric_loss((sharpness * logits).masked_fill(shut, SHUT), linked)
                for sharpness in (0.0, *SHARPNESSES)
            ]
            losses += torch.stack(each).double().cpu() / len(keys)
    return float(losses.min()), float(losses[0])
