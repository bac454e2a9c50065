"""The utility evaluator: Bob, who trains on the release under each key, predicts test rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, cast

from pydantic import JsonValue

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
        """Bob trains on the release under each key, chooses on held-out data, and predicts the test rows."""
        check_labels(bench)
        scheme = bench.scheme()
        start = time.perf_counter()
        predictions, bobs = [], []
        for number in range(bench.preset.utility_keys):
            key = bench.key(scheme, number)
            published = published_predictions(bench, key)
            if published is not None:  # nothing is left for Bob to train
                predictions.append(published)
                continue
            release = bench.sealed(scheme, number).release
            scores, bob = learn(bench, release, key, plan_of(bench.preset), bench.seed("bob", number))
            predictions.append(scores)
            bobs.append(summary(bob))
        evidence = evidence_of(bench, predictions, bench.test)
        details = {"bob": cast(JsonValue, bobs), **label_note(bench)}
        return Measurement({"": evidence}, details, {"utility": time.perf_counter() - start}, {})

    @classmethod
    def samples(cls) -> Iterator[UtilityEvidence]:
        """Random predictions under two keys, and under one of people whom nobody knows."""
        made = sample_predictions()
        yield from (made.many, made.one)
