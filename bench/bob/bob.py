"""Bob, who trains a classifier on a release: how useful is what was released?

Source: Yala et al., Syfer (2022), section 5: several architectures, dropout rates and weight
decays, chosen by the validation AUC. Differences: all findings are learned jointly, with unknown labels masked (their
paper trains one model a finding); the best epoch is kept by the same AUC.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from bench.nets.classifier import Course, Precision, Standardise, fast_precision, outputs, train
from bench.nets.patches import fitting_patch
from bench.nets.resnet import resnet18
from bench.nets.sau import InstanceSAU
from bench.nets.seeded import seeded
from bench.progress import report
from bench.rows.label_classes import labelled
from bench.seeds import derive
from bench.types import NotApplicable, Release
from bench.validation import at_least

Architecture = Literal["resnet18", "sau", "linear"]
LINEAR_EPOCHS = 10  # an epoch of a linear model costs next to nothing
Decode = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class BobPlan:
    """How hard Bob tries. Every combination of architecture, weight decay and dropout is trained once.

    Args:
        architectures: Those that do not fit the kind of row are left out: resnet18 and sau read images, linear vectors.
        epochs: Passes over the release; the linear model takes ten times as many.
        steps: Upper bound on gradient steps a training; None for no bound.
        batch: Rows a step.
        width: Channels of the ResNet's first stage (64 is the usual ResNet-18).
        sau_width, sau_depth: Size of the SAU.
        learning_rate: Peak rate of the ResNet; the SAU and the linear model take the same.
        weight_decays, dropouts: Values to try.
        precision: None takes the faster one of the device; the choice is kept in `Bob.precision`.
    """

    architectures: tuple[Architecture, ...] = ("resnet18", "sau", "linear")
    epochs: int = 12
    steps: int | None = None
    batch: int = 64
    width: int = 64
    sau_width: int = 128
    sau_depth: int = 3
    learning_rate: float = 3e-3
    weight_decays: tuple[float, ...] = (0.05,)
    dropouts: tuple[float, ...] = (0.0,)
    precision: Precision | None = None

    def __post_init__(self) -> None:
        at_least(2, batch=self.batch)
        at_least(1, epochs=self.epochs, steps=self.steps)
        at_least(1, width=self.width, sau_width=self.sau_width, sau_depth=self.sau_depth)
        unknown = set(self.architectures) - {"resnet18", "sau", "linear"}
        if unknown or not self.architectures:
            raise ValueError(f"architectures must be some of resnet18, sau, linear; got {self.architectures}")
        if not self.weight_decays or not self.dropouts:
            raise ValueError("weight_decays and dropouts must each hold at least one value")


@dataclass(frozen=True)
class Trial:
    """One training: its choices, the best dev AUC, the step (gradient steps done) it was reached at, and its time."""

    architecture: Architecture
    weight_decay: float
    dropout: float
    dev_auc: float
    step: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Bob:
    """The chosen model.

    Args:
        network: The trained network, its standardisation included.
        exclusive: Whether predictions are a softmax over classes or one sigmoid a finding.
        chosen: The trial the network comes from.
        trials: All trials.
        precision: Arithmetic of the network.
    """

    network: nn.Module
    exclusive: bool
    chosen: Trial
    trials: tuple[Trial, ...]
    precision: Precision

    @property
    def architecture(self) -> Architecture:
        """The chosen architecture."""
        return self.chosen.architecture

    @property
    def dev_auc(self) -> float:
        """Mean dev AUC of the chosen model."""
        return self.chosen.dev_auc

    @property
    def dev_aucs(self) -> dict[Architecture, float]:
        """The best dev AUC of each architecture."""
        best: dict[Architecture, float] = {}
        for trial in self.trials:
            best[trial.architecture] = max(trial.dev_auc, best.get(trial.architecture, 0.0))
        return best

    def predict(self, samples: Tensor) -> Tensor:
        """Probabilities (n, k), float64, in the release's own label code: `Key.decode` makes them real classes."""
        return _probabilities(outputs(self.network, samples, self.precision), self.exclusive)


def train_bob(
    release: Release,
    dev_samples: Tensor,
    dev_labels: Tensor,
    *,
    exclusive: bool,
    plan: BobPlan,
    seed: int,
    decode: Decode | None = None,
) -> Bob:
    """Train on the release and choose by the mean AUC on dev rows.

    Args:
        release: With labels (m, k) in [0, 1], soft or hard; NaN is unknown. Balance beforehand. Works on its device.
        dev_samples: (n, ...) as `Key.query` gives them.
        dev_labels: (n, k) real labels; NaN is unknown.
        exclusive: Whether each row has exactly one class.
        plan: Architectures and sizes.
        seed: Same seed, same Bob.
        decode: `Key.decode`; None leaves predictions as they are.

    Raises:
        NotApplicable: The release has no labels, no architecture fits its rows, or no dev finding has both classes.
    """
    if release.labels is None:
        raise NotApplicable("utility needs labels: none were released")
    if not _judged_findings(dev_labels):
        raise NotApplicable("utility needs dev rows of both classes: no finding has them")
    precision = plan.precision or fast_precision(release.samples.device)
    architectures = [name for name in plan.architectures if _fits(name, release.samples)]
    if not architectures:
        raise NotApplicable(
            f"none of {', '.join(plan.architectures)} reads released rows of shape {tuple(release.samples.shape[1:])}"
        )
    best: tuple[Trial, nn.Module] | None = None
    trials = []
    for name, decay, dropout in itertools.product(architectures, plan.weight_decays, plan.dropouts):
        epochs = plan.epochs * (LINEAR_EPOCHS if name == "linear" else 1)
        course = Course(epochs, plan.steps, plan.batch, plan.learning_rate, decay, precision)
        own_seed = derive(seed, "bob", name, repr(decay), repr(dropout))
        with seeded(own_seed, release.samples.device):
            network = _network(name, release.samples, release.labels.shape[1], plan, dropout)
            trial = _train_one(
                network, release, dev_samples, dev_labels, course, exclusive, own_seed, decode, (name, decay, dropout)
            )
        trials.append(trial)
        if best is None or trial.dev_auc > best[0].dev_auc:
            best = trial, network
    assert best is not None
    return Bob(best[1], exclusive, best[0], tuple(trials), precision)


def _train_one(
    network: nn.Module,
    release: Release,
    dev_samples: Tensor,
    dev_labels: Tensor,
    course: Course,
    exclusive: bool,
    seed: int,
    decode: Decode | None,
    choice: tuple[Architecture, float, float],
) -> Trial:
    """Train `network`, leave it with the weights of its best epoch."""
    assert release.labels is not None
    start, best_auc, best_step = time.perf_counter(), -1.0, 0
    weights: dict[str, Tensor] = {}
    total = course.total(len(labelled(release.labels)))
    for step in train(network, release.samples, release.labels, course, exclusive=exclusive, seed=seed):
        scores = _probabilities(outputs(network, dev_samples, course.precision), exclusive)
        dev_auc = mean_auc(scores if decode is None else decode(scores), dev_labels)
        report(f"bob {choice[0]}, dev AUC {dev_auc:.3f}, step", step, total)
        if dev_auc > best_auc:
            best_auc, best_step = dev_auc, step
            weights = {part: tensor.clone() for part, tensor in network.state_dict().items()}
    network.load_state_dict(weights)
    return Trial(*choice, dev_auc=best_auc, step=best_step, seconds=time.perf_counter() - start)


def mean_auc(scores: Tensor, labels: Tensor) -> float:
    """The mean, over findings with both classes, of the AUC of scores (n, k) against labels (n, k) with NaN left out.

    Raises ValueError if no finding has both classes.
    """
    findings = _judged_findings(labels)
    if not findings:
        raise ValueError("no finding has rows of both classes")
    from sklearn.metrics import roc_auc_score  # takes more than a second to import, which few workers need

    known = ~labels.isnan()
    aucs = [
        float(roc_auc_score(labels[known[:, j], j].cpu().numpy() > 0.5, scores[known[:, j], j].cpu().numpy()))
        for j in findings
    ]
    return sum(aucs) / len(aucs)


def _judged_findings(labels: Tensor) -> list[int]:
    yes, no = (labels > 0.5).any(dim=0), (labels <= 0.5).any(dim=0)
    return [int(j) for j in (yes & no).nonzero()[:, 0]]


def _fits(name: Architecture, samples: Tensor) -> bool:
    if name == "linear":
        return samples.ndim == 2
    if name == "sau":
        return samples.ndim == 4 and fitting_patch(samples.shape[2], samples.shape[3]) is not None
    return samples.ndim == 4


def _network(name: Architecture, samples: Tensor, outputs: int, plan: BobPlan, dropout: float) -> nn.Module:
    shape = tuple(samples.shape[1:])
    body: nn.Module
    if name == "resnet18":
        body = resnet18((shape[0], shape[1], shape[2]), outputs, width=plan.width, dropout=dropout)
    elif name == "sau":
        patch_size = fitting_patch(shape[1], shape[2])
        encoder = InstanceSAU(shape, width=plan.sau_width, depth=plan.sau_depth, patch_size=patch_size, dropout=dropout)
        body = nn.Sequential(encoder, nn.Linear(plan.sau_width, outputs))
    else:
        # A convex problem: from zero, the first step already goes the right way, wherever it ends.
        linear = nn.Linear(shape[0], outputs)
        nn.init.zeros_(linear.weight)
        body = nn.Sequential(nn.Dropout(dropout), linear)
    network = nn.Sequential(Standardise(samples), body).to(samples.device)
    return network.to(memory_format=torch.channels_last) if samples.ndim == 4 else network


def _probabilities(logits: Tensor, exclusive: bool) -> Tensor:
    logits = logits.double()
    return logits.softmax(dim=1) if exclusive else logits.sigmoid()
