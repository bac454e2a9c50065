"""A verifier: readings with two linear heads each, and their sum.

Source: Packhäuser et al. 2022 train a siamese network to say if two chest X-rays show one person; here the network is
frozen and its features are learned on, by the contrastive loss over many people of Khosla et al. 2020 ("Supervised
Contrastive Learning", equation 2), which needs fewer pairs. Cosines of several readings are combined by weights of at
least 0 (stacked regression: Breiman 1996), learned by the same loss.

Features are centred by their set, turned to principal axes and divided by the root of each axis's deviation (half
whitening: axes that vary much say less of a person than their length claims). The heads, one for raw and one for
released rows, begin as the identity and are held to it by a squared penalty. People are dealt to `FOLDS` folds, and
heads are learned for each fold on the people of the others, so that every pair of the pool is judged by heads that
never saw its people. The heads of the best check are kept, that before the first step included, and the weights are
learned on the cosines of unseen people under held-out keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeAlias

import numpy
import scipy
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
FOLDS = 3
JUDGED = 1024  # raw rows at most of a fold that is judged
PENALTY = 1e-4  # of the squared weights of a combination
NEGLIGIBLE = 0.01  # of the sum of all weights
Parts: TypeAlias = "tuple[torch.Tensor, ...]"
"""Features of one set in parts of equal weight, each (n, f)."""


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of each part, divided by the root of their deviations."""

    axes: Parts

    def __call__(self, parts: Parts) -> torch.Tensor:
        """Coordinates (n, d) float32 of one set's rows, centred by it."""
        return torch.cat([((part - part.mean(dim=0)) @ axes.T) for part, axes in zip(parts, self.axes, strict=True)], 1)


def principal_axes(sets: Sequence[Parts], power: float = 0.5) -> Axes:
    """Axes of the rows of all sets, each set centred by itself.

    Coordinates are divided by the deviation's `power`: 0 keeps all inner products, 0.5 is half whitening.
    """
    found = []
    for parts in zip(*sets, strict=True):
        rows = torch.cat([part - part.mean(dim=0) for part in parts]).double()
        _, sizes, axes = torch.linalg.svd(rows, full_matrices=False)
        keep = min(AXES, max(1, int((sizes > SMALLEST * sizes[0]).sum())))
        scaled = axes[:keep] / sizes[:keep, None].clamp_min(CONSTANT) ** power
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
    """Each fold's heads at the best check, figure, chance, and curve."""

    heads: tuple[linear_heads.Heads, ...]
    loss: float
    chance: float
    learning: LearningCurve


def folds_of(people: torch.Tensor, seed: int) -> torch.Tensor:
    """(n,) int64: the fold of each row, that of its person.

    Those with several rows are dealt evenly, and so are those with one, for without the former there is no pair to
    judge by.
    """
    sizes = torch.bincount(people.cpu())
    order = torch.randperm(len(sizes), generator=generator(seed))
    fold = torch.zeros(len(sizes), dtype=torch.int64)
    for group in (sizes > 1, sizes == 1):
        members = order[group[order]]
        fold[members] = torch.arange(len(members)) % FOLDS
    return fold[people.cpu()].to(people.device)


def train_heads(
    start: Sequence[linear_heads.Heads], keys: Sequence[Pairs], held_keys: Sequence[Pairs], people: torch.Tensor, *,
    folds: torch.Tensor, own: bool, course: Course, seed: int, part: str,
) -> Trained:  # fmt: skip
    """Train each fold's heads on other people; its own decide the end.

    Args:
        start: Heads to begin with, one a fold; they stay as they are.
        keys, held_keys: Releases of one pool to learn from, and to judge by.
        people: (n,) int64, the person of each row of the pool.
        folds: (n,) int64, as of `folds_of`.
        own: True if an image and a row released of itself is a pair, False if only other images of the person are.
        course: Length and speed of the training.
        seed: Draws the batches and their keys.
        part: Name of the training in the record.
    """
    heads, device = [deepcopy(each) for each in start], people.device
    before = linear_heads.Heads(len(heads[0].raw), tied=False).to(device)
    optimiser = training.adam(
        [parameter for each in heads for parameter in each.parameters()], course.learning_rate, device
    )
    learn_from = [(folds != number).nonzero()[:, 0] for number in range(FOLDS)]
    order = generator(derive(seed, "batches"))
    judged = judged_rows(people, folds, derive(seed, "judged"))
    first, chance = _figure(heads, held_keys, people, judged, own=own)
    best, best_loss, curve = deepcopy(heads), first, [(0, first)]
    watch, converged = Plateau(first, course.least), False
    for step in range(1, course.steps + 1):
        pairs = keys[int(torch.randint(len(keys), (), generator=order))]
        losses = []
        for each, rows in zip(heads, learn_from, strict=True):
            some = torch.zeros(len(people), dtype=torch.bool, device=device)
            some[_whole_people(people, rows, course.rows, order)] = True
            logits, linked = _logits(each, pairs, people, some, own=own)
            if not bool(linked.any()):
                continue
            losses.append(contrastive_towers.symmetric_loss(SCALE * logits, linked))
            losses += [
                KEPT * (mine - theirs.detach()).square().sum()
                for mine, theirs in zip((each.raw, each.released), before.parameters(), strict=True)
            ]
        if not losses:
            continue
        optimiser.zero_grad(set_to_none=True)
        sum(losses[1:], losses[0]).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % CHECK and step < course.steps:
            continue
        figure, _ = _figure(heads, held_keys, people, judged, own=own)
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
    return Trained(tuple(best), best_loss, chance, LearningCurve(figure_name, tuple(curve), converged, reason, part))


def judged_rows(people: torch.Tensor, folds: torch.Tensor, seed: int) -> list[torch.Tensor]:
    """(n,) bool by fold: at most `JUDGED` rows, of whole people."""
    order, found = generator(seed), []
    for number in range(FOLDS):
        rows = torch.zeros(len(people), dtype=torch.bool, device=people.device)
        rows[_whole_people(people, (folds == number).nonzero()[:, 0], JUDGED, order)] = True
        found.append(rows)
    return found


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
    heads: Sequence[linear_heads.Heads], keys: Sequence[Pairs], people: torch.Tensor, judged: Sequence[torch.Tensor], *,
    own: bool,
) -> tuple[float, float]:  # fmt: skip
    """Mean loss at the best sharpness, and that of equal scores."""
    losses, count = torch.zeros(len(SHARPNESSES) + 1, dtype=torch.float64), 0
    with torch.no_grad():
        for pairs in keys:
            for each, rows in zip(heads, judged, strict=True):
                logits, linked = _logits(each, pairs, people, rows, own=own)
                if not bool(linked.any()):
                    continue
                losses += _losses(logits, linked)
                count += 1
    losses /= max(count, 1)
    return float(losses.min()), float(losses[0])


def _losses(logits: torch.Tensor, linked: torch.Tensor) -> torch.Tensor:
    """Losses float64 without scores and at each sharpness."""
    shut = logits == SHUT
    each = [
        contrastive_towers.symmetric_loss((sharpness * logits).masked_fill(shut, SHUT), linked)
        for sharpness in (0.0, *SHARPNESSES)
    ]
    return torch.stack(each).double().cpu()


@dataclass(frozen=True, eq=False)
class Entry:
    """One score of the combination.

    Args:
        name: In words for the record.
        heads: One a fold.
        pairs: Releases under held-out keys, in the coordinates that the heads read.
    """

    name: str
    heads: tuple[linear_heads.Heads, ...]
    pairs: Sequence[Pairs]


@dataclass(frozen=True, eq=False)
class Combination:
    """Weights of cosines, and their figures.

    Args:
        weights: By the number of the entry, those above 0.
        losses: Mean loss on held-out people of each entry by itself, at the sharpness that suits them best.
        loss: That of weights learned on the people of other folds.
        chance: That of equal scores.
        alone: True if one entry did better than the combination, and is taken by itself.
    """

    weights: dict[int, float]
    losses: tuple[float, ...]
    loss: float
    chance: float
    alone: bool


def combine(
    entries: Sequence[Entry], people: torch.Tensor, *, folds: torch.Tensor, own: bool, seed: int
) -> Combination:
    """Learn weights on people unseen; the combination or the best entry.

    Both are judged by folds that their weights or their sharpness were not learned on.
    """
    blocks = [list(part) for part in zip(*_blocks(entries, people, folds, own=own, seed=seed), strict=True)]
    every = [block for part in blocks for block in part]
    chance = _loss(torch.zeros(len(entries), dtype=torch.float64), every)[0]

    losses = tuple(
        _crossed([[(cosines[place, None], linked) for cosines, linked in part] for part in blocks])
        for place in range(len(entries))
    )
    loss, best = _crossed(blocks), min(range(len(entries)), key=losses.__getitem__)
    weights = _weights(every)
    kept = {place: float(weight) for place, weight in enumerate(weights) if weight > NEGLIGIBLE * weights.sum()}
    alone = losses[best] < loss or not kept
    return Combination({best: 1.0} if alone else kept, losses, loss, chance, alone)


def _crossed(blocks: Sequence[list[Block]]) -> float:
    """Mean loss of each fold by the weights of the other folds."""
    found = []
    for fold, part in enumerate(blocks):
        others = [block for place, other in enumerate(blocks) if place != fold for block in other]
        found.append(_loss(_weights(others), part)[0])
    return sum(found) / len(found)


Block: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"
"""Cosines (e, r, c) of e entries, `SHUT` for an image and itself, and true pairs (r, c)."""


def _blocks(
    entries: Sequence[Entry], people: torch.Tensor, folds: torch.Tensor, *, own: bool, seed: int
) -> Iterator[list[Block]]:
    """For each held-out key, a block for each fold."""
    judged = judged_rows(people, folds, derive(seed, "judged"))
    with torch.no_grad():
        for key in range(len(entries[0].pairs)):
            found = []
            for fold, rows in enumerate(judged):
                each = [_logits(entry.heads[fold], entry.pairs[key], people, rows, own=own) for entry in entries]
                found.append((torch.stack([logits for logits, _ in each]), each[0][1]))
            yield found


def _loss(weights: torch.Tensor, blocks: Sequence[Block]) -> tuple[float, torch.Tensor]:
    """Mean loss of weighted cosines, and its gradient (e,) float64."""
    variable = weights.clone().requires_grad_()
    total, count = variable.new_zeros(()), 0
    for cosines, linked in blocks:
        if not bool(linked.any()):
            continue
        shut = cosines[0] == SHUT
        logits = torch.einsum("e,erc->rc", variable.to(cosines), cosines).masked_fill(shut, SHUT)
        total = total + contrastive_towers.symmetric_loss(logits, linked).double().cpu()
        count += 1
    total = total / max(count, 1)
    if count:
        total.backward()  # type: ignore[no-untyped-call]
    return float(total.detach()), torch.zeros_like(weights) if variable.grad is None else variable.grad


def _weights(blocks: Sequence[Block]) -> torch.Tensor:
    """Weights (e,) float64 of least penalised loss."""
    count = len(blocks[0][0])

    def penalised(values: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        weights = torch.from_numpy(values)
        loss, gradient = _loss(weights, blocks)
        return loss + PENALTY * float(weights.square().sum()), (gradient + 2 * PENALTY * weights).numpy()

    start = numpy.full(count, SCALE / count)
    found = scipy.optimize.minimize(penalised, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * count)
    return torch.from_numpy(found.x)
