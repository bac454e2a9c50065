"""The utility evaluator: Bob, who trains on the release under each key, predicts test rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from pydantic import JsonValue

from bench.bob.course import AHEAD
from bench.bob.recipe import Shortlist
from bench.contract.preset import Preset
from bench.evaluators.predictions import (
    check_labels,
    evidence_of,
    label_note,
    learn,
    plan_of,
    published_predictions,
    sample_predictions,
    summary,
)
from bench.evidence import UtilityEvidence
from bench.types import Evaluator, Measurement
from bench.workbench.workbench import Workbench

HELD_OUT = 0.2
PLAN = (
    "under the first key Bob tries every trial on four fifths of the released rows and trains what he chose on all of "
    "them: chosen by control people's labels (the figure), and by the fifth held out (what an outsider can do); "
    f"a network is chosen where it is ahead of linear models by {AHEAD}"
)
IMPATIENT = ", and ends early where it is behind"
AGAIN = "; under the other keys, only the best two of the former and the best of the latter, on all rows"


@dataclass(frozen=True)
class Utility(Evaluator[Workbench]):
    """What a model that was trained on the release finds in new images."""

    name: ClassVar[str] = "utility"
    source: ClassVar[str] = "Syfer, definition 1 and section 5"
    evidence: ClassVar[type] = UtilityEvidence

    def keys(self, preset: Preset) -> int:
        """As many as the preset says."""
        return preset.utility_keys

    def measure(self, bench: Workbench) -> Measurement:
        """Bob trains on the release under each key and predicts the test rows.

        Under the first key he tries everything; under the others, unless the preset has him try everything again, only
        what came out first and second there, and what released rows chose.
        """
        check_labels(bench)
        scheme = bench.scheme()
        start = time.perf_counter()
        plan = replace(plan_of(bench.preset), hold_out=HELD_OUT)
        predictions, outsiders, bobs = list[torch.Tensor](), list[torch.Tensor](), list[dict[str, JsonValue]]()
        shortlist: Shortlist | None = None
        for number in range(bench.preset.utility_keys):
            key = bench.key(scheme, number)
            published = published_predictions(bench, key)
            if published is not None:  # nothing is left for Bob to train
                predictions.append(published)
                continue
            release = bench.sealed(scheme, number).release
            learned = learn(bench, release, key, plan, bench.seed("bob", number), shortlist)
            predictions.append(learned.scores)
            outsiders += [] if learned.outsider is None else [learned.outsider]
            bobs.append(summary(learned.bob))
            shortlist = None if bench.preset.bob_patient else learned.bob.shortlist
        evidence = replace(
            evidence_of(bench, predictions, bench.test), outsiders=outsiders, attributes=bench.attributes.get("test")
        )
        details: dict[str, JsonValue] = {"bob": cast(JsonValue, bobs), **label_note(bench)}
        if bobs:
            details["plan"] = (
                PLAN + ("" if bench.preset.bob_patient else IMPATIENT) + (AGAIN if shortlist and len(bobs) > 1 else "")
            )
        return Measurement({"": evidence}, details, {"utility": time.perf_counter() - start}, {})

    @classmethod
    def samples(cls) -> Iterator[UtilityEvidence]:
        """Random predictions under two keys, and under one of people whom nobody knows."""
        made = sample_predictions()
        yield from (made.many, made.one)
