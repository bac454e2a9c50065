"""One recipe trained on released rows: a model at every penalty of a path, or at every tenth of a network's course."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from bench.bob.linear_path import logistic_path
from bench.bob.plan import BobPlan
from bench.bob.recipe import Recipe
from bench.bob.shifts import shifted
from bench.bob.views import every_view
from bench.nets.classifier import Precision, Standardise, outputs, train
from bench.nets.patches import fitting_patch
from bench.nets.resnet import resnet18
from bench.nets.sau import InstanceSAU
from bench.nets.seeded import seeded
from bench.nets.strided_cnn import strided_cnn
from bench.rows.label_classes import labelled
from bench.seeds import derive

CHECKS = 10


@dataclass(frozen=True, eq=False)
class Moment:
    """A model in its training.

    Args:
        at: Where it stands; see `Choice.at`.
        network: From rows (n, ...) to logits (n, k). One module goes on changing: copy what is to be kept.
        logits: What it gives for each of the judged sets of rows.
    """

    at: float
    network: torch.nn.Module
    logits: tuple[torch.Tensor, ...]


def moments(
    recipe: Recipe,
    samples: torch.Tensor,
    labels: torch.Tensor,
    judged: Sequence[torch.Tensor],
    *,
    exclusive: bool,
    plan: BobPlan,
    precision: Precision,
    seed: int,
) -> Iterator[Moment]:
    """The models of one training.

    Args:
        recipe: What to train.
        samples, labels: Released rows; NaN labels are unknown.
        judged: Sets of rows (n, ...) that every model is to be judged on.
        exclusive: Whether each row has exactly one class.
        plan: Sizes and courses.
        precision: Of networks.
        seed: Same seed, same models.
    """
    own = derive(seed, "bob", str(recipe))
    if recipe.architecture == "linear":
        yield from _path(recipe, samples, labels, judged, exclusive=exclusive)
        return
    course = plan.course(recipe, len(labelled(labels)), precision)
    total = course.total(len(labelled(labels)))
    with seeded(own, samples.device):
        network = _network(recipe, samples, labels.shape[1], plan)
        vary, seen = (shifted if recipe.augmented else None), 0
        for step in train(network, samples, labels, course, exclusive=exclusive, seed=own, vary=vary):
            tenths = CHECKS * step // total
            if tenths > seen or step == total:
                seen = tenths
                logits = tuple(outputs(network, rows, precision).double() for rows in judged)
                yield Moment(tenths / CHECKS, network, logits)


def _path(
    recipe: Recipe, samples: torch.Tensor, labels: torch.Tensor, judged: Sequence[torch.Tensor], *, exclusive: bool
) -> Iterator[Moment]:
    view = every_view(samples)[recipe.view](samples)
    with torch.no_grad():
        seen = [view(rows) for rows in judged]
        path = logistic_path(view(samples), labels, exclusive=exclusive)
        for model in path:
            width, classes = model.weights.shape
            layer = torch.nn.Linear(width, classes, device=model.weights.device)
            layer.weight.copy_(model.weights.T)
            layer.bias.copy_(model.bias)
            yield Moment(model.strength, torch.nn.Sequential(view, layer), tuple(layer(rows).double() for rows in seen))


def _network(recipe: Recipe, samples: torch.Tensor, classes: int, plan: BobPlan) -> torch.nn.Module:
    shape = (samples.shape[1], samples.shape[2], samples.shape[3])
    body: torch.nn.Module
    if recipe.architecture == "resnet18":
        body = resnet18(shape, classes, width=plan.width, dropout=recipe.dropout, narrow=True)
    elif recipe.architecture == "strided":
        body = strided_cnn(shape, classes, dropout=recipe.dropout)
    else:
        patch = fitting_patch(shape[1], shape[2])
        encoder = InstanceSAU(
            shape, width=plan.sau_width, depth=plan.sau_depth, patch_size=patch, dropout=recipe.dropout
        )
        body = torch.nn.Sequential(encoder, torch.nn.Linear(plan.sau_width, classes))
    network = torch.nn.Sequential(Standardise(samples), body).to(samples.device)
    return network.to(memory_format=torch.channels_last)
