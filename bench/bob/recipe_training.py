"""Training of recipes on released rows, judged on the way.

A linear recipe gives a model at every penalty of its path, a network one at every tenth of its course. Each judge keeps
the model with its best AUC.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from bench.bob.linear_models import logistic_path
from bench.bob.recipes import Best, BobPlan, Choice, Model, Recipe, Trial, every_view, probabilities, shifted
from bench.nets.classifier import Precision, Standardise, outputs, train
from bench.nets.convolutional_networks import resnet18, strided_cnn
from bench.nets.patches import fitting_patch
from bench.nets.training import seeded
from bench.nets.transformers import InstanceSAU
from bench.progress import report
from bench.rows.grouping import labelled
from bench.seeds import derive

CHECKS = 10


@dataclass(frozen=True, eq=False)
class Moment:
    """A model at one point of training, and judged rows' logits.

    The network changes afterwards: copy it to keep it.
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
    """The models of one training, each judged on sets of rows."""
    recipe_seed = derive(seed, "bob", str(recipe))
    if recipe.architecture == "linear":
        yield from _path(recipe, samples, labels, judged, exclusive=exclusive)
        return
    course = plan.course(recipe, len(labelled(labels)), precision)
    total = course.total(len(labelled(labels)))
    with seeded(recipe_seed, samples.device):
        network = _network(recipe, samples, labels.shape[1], plan)
        vary, done = (shifted if recipe.augmented else None), 0
        for step in train(network, samples, labels, course, exclusive=exclusive, seed=recipe_seed, vary=vary):
            tenths = CHECKS * step // total
            if tenths > done or step == total:
                done = tenths
                logits = tuple(outputs(network, rows, precision).double() for rows in judged)
                yield Moment(tenths / CHECKS, network, logits)


def _path(
    recipe: Recipe, samples: torch.Tensor, labels: torch.Tensor, judged: Sequence[torch.Tensor], *, exclusive: bool
) -> Iterator[Moment]:
    view = every_view(samples)[recipe.view](samples)
    with torch.no_grad():
        vectors = [view(rows) for rows in judged]
        path = logistic_path(view(samples), labels, exclusive=exclusive)
        for model in path:
            width, classes = model.weights.shape
            layer = torch.nn.Linear(width, classes, device=model.weights.device)
            layer.weight.copy_(model.weights.T)
            layer.bias.copy_(model.bias)
            yield Moment(
                model.strength, torch.nn.Sequential(view, layer), tuple(layer(rows).double() for rows in vectors)
            )


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


SLACK = 0.06
"""A network ends if it is behind the best trial by this much AUC, times the remaining share of its course."""
EARLIEST = 0.3
"""Smallest share of its course; a half if no trial is clear of chance."""
AHEAD = 0.01
"""Lead in AUC that a network needs over a linear model: it costs more, and its best tenth is one of several."""
CLEAR = 0.6
"""An AUC that is clear of chance."""
LEAST = 0.55
"""AUC that a network needs by half of its course if no trial is clear of chance."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Released rows (m, ...) and their labels (m, k)."""

    samples: torch.Tensor
    labels: torch.Tensor

    def take(self, rows: torch.Tensor) -> Rows:
        """The given rows (int64 indices)."""
        return Rows(self.samples[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class Judge:
    """Judged rows, and the value of predictions for them."""

    samples: torch.Tensor
    value: Callable[[torch.Tensor, float], float]


@dataclass(frozen=True, eq=False)
class Course:
    """A training: best points and networks by judge; early stop."""

    recipe: Recipe
    best: tuple[Best, ...]
    networks: tuple[torch.nn.Module, ...]
    stopped: bool
    seconds: float

    def rank(self, judge: int) -> float:
        """A judge's ranking: its best AUC, less `AHEAD` for networks."""
        return self.best[judge].auc - (0.0 if self.recipe.architecture == "linear" else AHEAD)

    def trial(self) -> Trial:
        """The record, with dev rows as first judge and held-out rows second."""
        dev, *others = self.best
        return Trial(self.recipe, dev, others[0] if others else None, self.stopped, self.seconds)


@dataclass(frozen=True, eq=False)
class Training:
    """Common settings of trainings: plan, arithmetic, seed."""

    exclusive: bool
    plan: BobPlan
    precision: Precision
    seed: int

    def tried(self, recipes: Sequence[Recipe], rows: Rows, judges: Sequence[Judge]) -> list[Course]:
        """Every recipe in turn; impatient plans end networks that fall behind."""
        courses: list[Course] = []
        for recipe in recipes:
            lead = [max((course.best[j].auc for course in courses), default=0.0) for j in range(len(judges))]
            courses.append(self.train(recipe, rows, judges, None if self.plan.patient else lead))
        return courses

    def again(self, course: Course, rows: Rows, judge: Judge) -> Course:
        """A course's recipe on other rows; impatient plans may end it."""
        return self.train(course.recipe, rows, [judge], None if self.plan.patient else [course.best[0].auc])

    def train(
        self,
        recipe: Recipe,
        rows: Rows,
        judges: Sequence[Judge],
        lead: Sequence[float] | None = None,
        until: float = 1.0,
    ) -> Course:
        """One recipe, up to a share of its course or falling behind."""
        start, stopped = time.perf_counter(), False
        best: list[Best] = []
        networks: list[torch.nn.Module] = []
        for moment in self._moments(recipe, rows, judges):
            values = [
                judge.value(probabilities(logits, self.exclusive), moment.at)
                for judge, logits in zip(judges, moment.logits, strict=True)
            ]
            if not best:
                best = [Best(value, moment.at) for value in values]
                networks = [copy.deepcopy(moment.network) for _ in judges]
            for j, value in enumerate(values):
                if value > best[j].auc:
                    best[j], networks[j] = Best(value, moment.at), copy.deepcopy(moment.network)
            report(f"bob {recipe}, percent", 100 if recipe.architecture == "linear" else round(100 * moment.at), 100)
            if recipe.architecture == "linear":
                continue
            if lead is not None and moment.at < 1:
                stopped = all(value < _needed(ahead, moment.at) for value, ahead in zip(values, lead, strict=True))
            if stopped or moment.at >= until:
                break
        return Course(recipe, tuple(best), tuple(networks), stopped, time.perf_counter() - start)

    def taken(self, choice: Choice, rows: Rows) -> Model:
        """The model nearest to a point of a training on those rows."""
        nearest = Judge(rows.samples[:1], lambda scores, at: -abs(math.log(at / choice.at)))
        return self.model(self.train(choice.recipe, rows, [nearest], until=choice.at))

    def model(self, course: Course) -> Model:
        """The model that the first judge of a course keeps."""
        precision = "float32" if course.recipe.architecture == "linear" else self.precision
        return Model(Choice(course.recipe, course.best[0].at), course.networks[0], self.exclusive, precision)

    def _moments(self, recipe: Recipe, rows: Rows, judges: Sequence[Judge]) -> Iterator[Moment]:
        return moments(
            recipe, rows.samples, rows.labels, [judge.samples for judge in judges], exclusive=self.exclusive,
            plan=self.plan, precision=self.precision, seed=self.seed,
        )  # fmt: skip


def _needed(ahead: float, at: float) -> float:
    """The AUC a network needs to continue; the best has `ahead`."""
    if ahead < CLEAR:
        return LEAST if at >= 0.5 else 0.0
    return ahead - SLACK * (1 - at) if at >= EARLIEST else 0.0
