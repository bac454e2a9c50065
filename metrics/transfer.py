"""Transfer: classifiers between original and released rows (CADP, figure 4).

A route names its training and its test rows: original (o) or released (p).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import CADPClassifierEvidence, TransferEvidence, UtilityEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import ONE_EACH, draw_weights, name_of
from bench.statistics.classification_scores import auc_score
from bench.statistics.confidence_intervals import never_certain, with_interval
from bench.types import Column, Metric, NotApplicable, Replicates, Score

DRAWS = 200
HEADLINES = ("p/o", "p/p")
"""Trained on the release and tested on original rows, as the paper reports; on released rows if that fails."""


@dataclass(frozen=True)
class TransferAUC(Metric[TransferEvidence]):
    """Mean test AUC on original rows after training on released ones."""

    name: ClassVar[str] = "transfer-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "CADP, figure 4; AUC as in Syfer, definition 1"
    column: ClassVar[Column] = Column(
        title="Transfer AUC",
        meaning="Utility AUC of a model trained on the release and tested on original images (p/o), with the "
        "other three routes beside it: o/o, o/p, p/p.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=25,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: TransferEvidence) -> Score:
        """`auc_score` of each route. Raises NotApplicable without training on the release."""
        return _headline({route: auc_score(part) for route, part in evidence.by_route.items()})


@dataclass(frozen=True)
class TransferAccuracy(Metric[TransferEvidence]):
    """Accuracy on original rows after training on released ones."""

    name: ClassVar[str] = "transfer-accuracy"
    unit: ClassVar[str] = "share of rows"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "CADP, figure 4"
    column: ClassVar[Column] = Column(
        title="Transfer accuracy",
        meaning="The share of original test images whose class a model trained on the release names, with the "
        "other three routes beside it.",
        group="Utility",
        digits=3,
        chance="the share of the most frequent class",
        order=30,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: TransferEvidence) -> Score:
        """`accuracy` of each route.

        Raises NotApplicable if nothing was trained on the release, or classes are not exclusive.
        """
        return _headline({route: accuracy(part) for route, part in evidence.by_route.items()})


@dataclass(frozen=True)
class CADPClassifierAccuracy(Metric[CADPClassifierEvidence]):
    """The CADP classifier's accuracy on original rows, trained on released ones."""

    name: ClassVar[str] = "cadp-classifier-accuracy"
    unit: ClassVar[str] = "share of rows"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "CADP, figure 4 and Table 1"
    column: ClassVar[Column] = Column(
        title="Accuracy of CADP's classifier",
        meaning="Transfer accuracy of the CADP paper's own classifier (strided convolutions) in the place of the best "
        "of several models.",
        group="Utility",
        digits=3,
        chance="the share of the most frequent class",
        order=31,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: CADPClassifierEvidence) -> Score:
        """`accuracy` of each route.

        Raises NotApplicable if nothing was trained on the release, or classes are not exclusive.
        """
        return _headline({route: accuracy(part) for route, part in evidence.by_route.items()})


def accuracy(evidence: UtilityEvidence) -> Score:
    """Share of rows with the highest score at the true class.

    t classes that tie for it count 1 / t. Rows without a label are left out. The interval is over people and keys;
    chance is the share of the most frequent class, which needs no image at all.

    Raises:
        NotApplicable: Labels are not those of exclusive classes, or no row has one.
    """
    known = ~evidence.labels.isnan().any(dim=1)
    labels = evidence.labels[known]
    one_hot = ((labels == 0) | (labels == 1)).all() and (labels.sum(dim=1) == 1).all()
    if labels.shape[1] < 2 or not bool(one_hot):
        raise NotApplicable(
            f"accuracy needs exclusive classes, one of two or more a row: {', '.join(evidence.findings)} are findings "
            "that may come together or not at all"
        )
    if not len(labels):
        raise NotApplicable("accuracy needs test rows with a label, and there is none")
    hits = torch.stack([_hits(scores[known], labels) for scores in evidence.scores])
    subjects = None if evidence.subjects is None else evidence.subjects[known]
    weights = draw_weights(subjects, len(labels), DRAWS, seed=derive(evidence.seed, "accuracy")).double()
    drawn = hits @ weights.T / weights.sum(dim=1)
    people = len(labels) if subjects is None else len(torch.unique(subjects))
    score = Score(
        float(hits.mean()), None, None, len(labels), null=float(labels.double().mean(dim=0).amax()),
        note="" if subjects is not None else ONE_EACH,
    )  # fmt: skip
    degrees = float(max(1, min(people, DRAWS) - 1))
    replicates = Replicates(hits.mean(dim=1).tolist(), drawn.tolist(), degrees, name_of(weights), "share")
    return never_certain(with_interval(score, replicates, over="test people"), people)


def _hits(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """(n,) float64: 1 / t for the true one of t leaders."""
    best = (scores == scores.amax(dim=1, keepdim=True)).double()
    return (best * labels).sum(dim=1) / best.sum(dim=1)


def _headline(parts: Mapping[str, Score]) -> Score:
    for route in HEADLINES:
        if route in parts:
            note = f"trained/tested on {route} (o original, p released); {parts[route].note}"
            return replace(parts[route], parts=parts, note=note)
    raise NotApplicable(
        f"transfer needs a classifier trained on the release: none of {', '.join(HEADLINES)} was possible"
    )
