"""Utility by group: AUC among women, men, age bands, views and sites."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import UtilityEvidence
from bench.statistics.classification_scores import auc_score
from bench.types import Column, Metric, NotApplicable, Score

FEWEST = 10
"""Test rows of either class that a finding needs within a group."""


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
    """The evidence of chosen rows (n,) bool and their judgeable findings.

    None if no finding can be judged there.
    """
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
