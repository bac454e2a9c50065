"""Utility AUC (Syfer, definition 1): overall, by group, release size, and density."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import DetectionEvidence, LearningEvidence, UtilityEvidence
from bench.statistics.classification_scores import auc_score, mean_score
from bench.types import Column, Metric, NotApplicable, Score

FEWEST = 10
"""Test rows of either class that a finding needs within a group."""


@dataclass(frozen=True)
class UtilityAUC(Metric[UtilityEvidence]):
    """Mean test AUC over findings of Bob's best classifier by held-out data."""

    name: ClassVar[str] = "utility-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, definition 1 and section 5"
    column: ClassVar[Column] = Column(
        title="Utility AUC",
        meaning="How well a model trained on the release finds the findings in new images: area under the ROC "
        "curve, the mean over findings.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=5,
    )

    def __call__(self, evidence: UtilityEvidence) -> Score:
        """`auc_score` over findings and keys, each finding as a part.

        The interval is over test people and keys. The note says what the model comes to that was chosen without
        anybody's labels but the release's.

        Raises:
            NotApplicable: No finding has both classes among the test rows.
        """
        score = auc_score(evidence)
        if not evidence.outsiders:
            return score
        other = auc_score(replace(evidence, scores=evidence.outsiders, outsiders=()))
        span = "" if other.low is None or other.high is None else f" ({other.low:.3f} to {other.high:.3f})"
        note = (
            f"{score.note}; chosen by the labels of control people; chosen by held-out released rows, as an outsider "
            f"can: {other.value:.3f}{span}"
        )
        return replace(score, note=note)


@dataclass(frozen=True)
class UtilityByGroup(Metric[UtilityEvidence]):
    """Utility AUC in each group; the headline is the worst group."""

    name: ClassVar[str] = "utility-by-group"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "subgroup AUC, as in Seyyed-Kalantari et al. 2021 and Larrazabal et al. 2020"
    column: ClassVar[Column] = Column(
        title="Utility AUC of the worst group",
        meaning="The lowest utility AUC among groups of test people by sex, age, view or site, as far as the data set "
        "knows them; all groups stand beside it.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=11,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: UtilityEvidence) -> Score:
        """`auc_score` of each group, over its findings with enough rows.

        A finding needs at least ten rows of either class in the group.

        Raises:
            NotApplicable: The data set knows no groups, or none has such a finding.
        """
        if evidence.attributes is None:
            raise NotApplicable("the data set does not say which groups its rows belong to")
        parts = {}
        for attribute, members in evidence.attributes.members().items():
            for group, rows in members.items():
                among = _among(evidence, rows)
                if among is not None:
                    parts[f"{attribute}: {group}"] = replace(auc_score(among), parts={})
        if not parts:
            raise NotApplicable(f"no group has a finding with {FEWEST} positive and {FEWEST} negative test rows")
        worst = min(parts, key=lambda group: parts[group].value)
        note = (
            f"worst group: {worst}, of {len(parts)}: the lowest of several lies low by chance too; {parts[worst].note}"
        )
        return replace(parts[worst], parts=parts, note=note)


def _among(evidence: UtilityEvidence, rows: torch.Tensor) -> UtilityEvidence | None:
    """Evidence of rows (n,) bool and findings judgeable there; None without any."""
    labels = evidence.labels[rows]
    columns = [
        k
        for k, column in enumerate(labels.T)
        if int((column == 1).sum()) >= FEWEST and int((column == 0).sum()) >= FEWEST
    ]
    if not columns:
        return None
    return replace(
        evidence,
        scores=[scores[rows][:, columns] for scores in evidence.scores],
        labels=labels[:, columns],
        subjects=None if evidence.subjects is None else evidence.subjects[rows],
        findings=tuple(evidence.findings[k] for k in columns),
        outsiders=(),
        attributes=None,
    )


@dataclass(frozen=True)
class LearningCurve(Metric[LearningEvidence]):
    """Mean utility AUC after training on parts of the release."""

    name: ClassVar[str] = "learning-curve"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, appendix G and figure 6"
    column: ClassVar[Column] = Column(
        title="Learning curve",
        meaning="Utility AUC after training on parts of the release, averaged over the parts: how well Bob does "
        "with less.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=20,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: LearningEvidence) -> Score:
        """Mean over the parts; each has its `auc_score` with its interval."""
        parts = {f"{fraction:.4g} of the release": auc_score(part) for fraction, part in evidence.curve.items()}
        return replace(mean_score(list(parts.values()), "mean over the parts"), parts=parts)


@dataclass(frozen=True)
class DetectionAUC(Metric[DetectionEvidence]):
    """AUC of abnormal against normal released images by raw public densities.

    The score of an image is a ratio of two densities (DP-GLOW, section 5).
    """

    name: ClassVar[str] = "detection-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "DP-GLOW, section 5 and table 3, after Shibata et al."
    column: ClassVar[Column] = Column(
        title="Detection AUC",
        meaning="How well two density models, one of normal and one of all public images, tell abnormal from "
        "normal released images without any classifier.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=35,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: DetectionEvidence) -> Score:
        """AUC on released rows, that on raw rows as a part.

        The interval bootstraps people.

        Raises:
            NotApplicable: The rows are all normal or all abnormal.
        """
        (released,) = auc_score(evidence.released).parts.values()
        (raw,) = auc_score(evidence.original).parts.values()
        return replace(released, parts={"raw image": raw}, note="95 % bootstrap over people")
