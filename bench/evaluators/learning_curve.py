"""The learning-curve evaluator: Bob trains on parts of the release.

Source: Syfer, appendix G.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from pydantic import JsonValue

from bench.bob.plan import BobPlan
from bench.evaluators.predictions import (
    check_labels,
    evidence_of,
    label_note,
    learn,
    plan_of,
    released_labels,
    sample_predictions,
    summary,
)
from bench.evidence import LearningEvidence
from bench.rows.label_classes import labelled
from bench.types import Evaluator, Measurement, NotApplicable, Release
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class LearningCurve(Evaluator[Workbench]):
    """What a model finds in new images after training on parts of the release."""

    name: ClassVar[str] = "learning-curve"
    source: ClassVar[str] = "Syfer, appendix G"
    evidence: ClassVar[type] = LearningEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Bob trains on random parts of the release under the first key, with as many gradient steps as on all."""
        check_labels(bench)
        scheme = bench.scheme()
        start = time.perf_counter()
        release, key = bench.sealed(scheme, 0).release, bench.key(scheme, 0)
        labels = released_labels(bench, release)
        curve, bobs = {}, []
        for fraction in bench.preset.fractions:
            rows = slice(0, max(1, round(fraction * len(release))))  # sealed rows are in random order
            known = len(labelled(labels[rows]))
            if known < 2:
                raise NotApplicable(
                    f"{fraction:.4g} of the release has {known} rows with a label, too few to learn from"
                )
            plan = _longer(plan_of(bench.preset), whole=len(labelled(labels)), part=known)
            part = Release(release.samples[rows], labels[rows], None)
            learned = learn(bench, part, key, plan, bench.seed("bob", 0))
            curve[fraction] = evidence_of(bench, [learned.scores], bench.test)
            bobs.append({"fraction": fraction, **summary(learned.bob)})
        seconds = {"utility": time.perf_counter() - start}
        return Measurement(
            {"": LearningEvidence(curve)}, {"bob": cast(JsonValue, bobs), **label_note(bench)}, seconds, {}
        )

    @classmethod
    def samples(cls) -> Iterator[LearningEvidence]:
        """Random predictions after two parts."""
        one = sample_predictions().one
        yield LearningEvidence({0.25: one, 0.5: one})


def _longer(plan: BobPlan, *, whole: int, part: int) -> BobPlan:
    """The plan for `part` rows with as many gradient steps as it takes on `whole` rows: more epochs of fewer batches.

    >>> _longer(BobPlan(epochs=10, batch=64), whole=1500, part=190).epochs
    115
    """
    batches = [max(1, rows // plan.batch) for rows in (whole, part)]
    return replace(plan, epochs=math.ceil(plan.epochs * batches[0] / batches[1]))
