"""The utility evaluators: Bob trains on the release under each key and predicts test rows; also on parts of it."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, replace
from typing import cast

from pydantic import JsonValue
from torch import Tensor

from bench.bob import Bob, BobPlan, train_bob
from bench.evidence import LearningEvidence, UtilityEvidence
from bench.measurement import Measurement
from bench.nets.classifier import labelled
from bench.presets import Preset
from bench.progress import stage
from bench.types import Attack, Dataset, Key, NotApplicable, Release
from bench.workbench import Workbench


def run_utility(bench: Workbench, attack: Attack | None) -> Measurement:
    """Bob trains on the release under each key, chooses on held-out data, and predicts the test rows."""
    _check_labels(bench)
    scheme = bench.scheme()
    start = time.perf_counter()
    predictions, bobs = [], []
    for number in range(bench.preset.utility_keys):
        release, key = bench.sealed(scheme, number).release, bench.key(scheme, number)
        scores, bob = _learn(bench, release, key, _plan(bench.preset), bench.seed("bob", number))
        predictions.append(scores)
        bobs.append(_summary(bob))
    evidence = _evidence(bench, predictions)
    return Measurement({"": evidence}, {"bob": cast(JsonValue, bobs)}, {"utility": time.perf_counter() - start}, {})


def run_learning_curve(bench: Workbench, attack: Attack | None) -> Measurement:
    """Bob trains on random parts of the release under the first key, with as many gradient steps as on the whole."""
    _check_labels(bench)
    scheme = bench.scheme()
    start = time.perf_counter()
    release, key = bench.sealed(scheme, 0).release, bench.key(scheme, 0)
    labels = _released_labels(bench, release)
    curve, bobs = {}, []
    for fraction in bench.preset.fractions:
        rows = slice(0, max(1, round(fraction * len(release))))  # sealed rows are in random order
        known = len(labelled(labels[rows]))
        if known < 2:
            raise NotApplicable(f"{fraction:.4g} of the release has {known} rows with a label, too few to learn from")
        plan = _longer(_plan(bench.preset), whole=len(labelled(labels)), part=known)
        scores, bob = _learn(bench, Release(release.samples[rows], labels[rows], None), key, plan, bench.seed("bob", 0))
        curve[fraction] = _evidence(bench, [scores])
        bobs.append({"fraction": fraction, **_summary(bob)})
    seconds = {"utility": time.perf_counter() - start}
    return Measurement({"": LearningEvidence(curve)}, {"bob": cast(JsonValue, bobs)}, seconds, {})


def _check_labels(bench: Workbench) -> None:
    if not bench.private.findings:
        raise NotApplicable("no finding has enough cases in every split to train and score a classifier")
    if bench.control.labels is None:
        raise NotApplicable("the data set has no labels")


def _released_labels(bench: Workbench, release: Release) -> Tensor:
    if release.labels is None:
        raise NotApplicable(f"{bench.method.name} releases no labels, so there is nothing to learn")
    return release.labels


def _longer(plan: BobPlan, *, whole: int, part: int) -> BobPlan:
    """The plan for `part` rows with as many gradient steps as it takes on `whole` rows: more epochs of fewer batches.

    >>> _longer(BobPlan(epochs=10, batch=64), whole=1500, part=190).epochs
    115
    """
    batches = [max(1, rows // plan.batch) for rows in (whole, part)]
    return replace(plan, epochs=math.ceil(plan.epochs * batches[0] / batches[1]))


def _learn(bench: Workbench, release: Release, key: Key, plan: BobPlan, seed: int) -> tuple[Tensor, Bob]:
    """Bob's decoded predictions (n, k) for the test rows, and Bob."""
    _released_labels(bench, release)
    stage("utility")
    bob = train_bob(
        release,
        _query(bench, key, bench.control),
        cast(Tensor, bench.control.labels),
        exclusive=bench.private.exclusive,
        plan=plan,
        seed=seed,
        decode=key.decode,
    )
    stage("predict")
    return key.decode(bob.predict(_query(bench, key, bench.test))).float().cpu(), bob


def _evidence(bench: Workbench, predictions: list[Tensor]) -> UtilityEvidence:
    labels = cast(Tensor, bench.test.labels).cpu()
    subjects = None if bench.test.subjects is None else bench.test.subjects.cpu()
    return UtilityEvidence(predictions, labels, subjects, bench.private.findings, bench.seed("utility"))


def _plan(preset: Preset) -> BobPlan:
    return BobPlan(
        epochs=preset.epochs,
        width=preset.bob_width,
        weight_decays=preset.weight_decays,
        dropouts=preset.dropouts,
    )


def _summary(bob: Bob) -> dict[str, JsonValue]:
    """What Bob tried and chose, for the record."""
    trials = [cast(JsonValue, asdict(trial)) for trial in bob.trials]
    return {"architecture": bob.architecture, "dev_auc": bob.dev_auc, "precision": bob.precision, "trials": trials}


def _query(bench: Workbench, key: Key, data: Dataset) -> Tensor:
    """New rows as Bob's model gets them; their labels are handed over only where the method says that it needs them."""
    labels = data.labels if bench.method.uses_labels else None
    return bench.untouched(bench.method.name, lambda: key.query(data.samples, labels))
