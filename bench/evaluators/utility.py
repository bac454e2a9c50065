"""The utility evaluators: Bob trains on the release under each key and predicts test rows; also on parts of it."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, replace
from typing import cast

from pydantic import JsonValue
from torch import Tensor

from bench.bob.bob import Bob, BobPlan, train_bob
from bench.evidence import LearningEvidence, UtilityEvidence
from bench.progress import stage
from bench.rows.label_classes import labelled
from bench.types import Attack, Dataset, Key, NotApplicable, Release
from bench.workbench.measurement import Measurement
from bench.workbench.presets import Preset
from bench.workbench.workbench import Workbench

LABELLED = "released rows and queries depend on their true labels: figures on such rows tell what the label put in"


def run_utility(bench: Workbench, attack: Attack | None) -> Measurement:
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
        scores, bob = _learn(bench, release, key, plan_of(bench.preset), bench.seed("bob", number))
        predictions.append(scores)
        bobs.append(summary(bob))
    evidence = evidence_of(bench, predictions, bench.test)
    details = {"bob": cast(JsonValue, bobs), **label_note(bench)}
    return Measurement({"": evidence}, details, {"utility": time.perf_counter() - start}, {})


def run_learning_curve(bench: Workbench, attack: Attack | None) -> Measurement:
    """Bob trains on random parts of the release under the first key, with as many gradient steps as on the whole."""
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
            raise NotApplicable(f"{fraction:.4g} of the release has {known} rows with a label, too few to learn from")
        plan = _longer(plan_of(bench.preset), whole=len(labelled(labels)), part=known)
        scores, bob = _learn(bench, Release(release.samples[rows], labels[rows], None), key, plan, bench.seed("bob", 0))
        curve[fraction] = evidence_of(bench, [scores], bench.test)
        bobs.append({"fraction": fraction, **summary(bob)})
    seconds = {"utility": time.perf_counter() - start}
    return Measurement({"": LearningEvidence(curve)}, {"bob": cast(JsonValue, bobs), **label_note(bench)}, seconds, {})


def published_predictions(bench: Workbench, key: Key) -> Tensor | None:
    """Predictions (n, k) for the test rows by the classifier that the key publishes; None where it publishes none."""
    stage("utility")
    classify = bench.untouched(bench.method.name, lambda: key.classifier(bench.private))
    return None if classify is None else classify(bench.test.samples).float().cpu()


def check_labels(bench: Workbench) -> None:
    """Raises NotApplicable where no classifier can be trained or scored."""
    if not bench.private.findings:
        raise NotApplicable("no finding has enough cases in every split to train and score a classifier")
    if bench.control.labels is None:
        raise NotApplicable("the data set has no labels")


def label_note(bench: Workbench) -> dict[str, JsonValue]:
    """What a record must say where released rows and queries are made with their labels; else nothing."""
    return {"note": LABELLED} if bench.method.uses_labels else {}


def released_labels(bench: Workbench, release: Release) -> Tensor:
    """The labels that come with a release. Raises NotApplicable where none do."""
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
    released_labels(bench, release)
    stage("utility")
    bob = train_bob(
        release,
        queried(bench, key, bench.control),
        cast(Tensor, bench.control.labels),
        exclusive=bench.private.exclusive,
        plan=plan,
        seed=seed,
        decode=key.decode,
    )
    stage("predict")
    return key.decode(bob.predict(queried(bench, key, bench.test))).float().cpu(), bob


def evidence_of(bench: Workbench, predictions: list[Tensor], test: Dataset) -> UtilityEvidence:
    """Predictions, one (n, k) a key, beside the labels and people of the rows that they are of."""
    labels = cast(Tensor, test.labels).cpu()
    subjects = None if test.subjects is None else test.subjects.cpu()
    return UtilityEvidence(predictions, labels, subjects, bench.private.findings, bench.seed("utility"))


def plan_of(preset: Preset) -> BobPlan:
    """How hard Bob tries under that preset."""
    return BobPlan(
        epochs=preset.epochs,
        width=preset.bob_width,
        weight_decays=preset.weight_decays,
        dropouts=preset.dropouts,
    )


def summary(bob: Bob) -> dict[str, JsonValue]:
    """What Bob tried and chose, for the record."""
    trials = [cast(JsonValue, asdict(trial)) for trial in bob.trials]
    return {"architecture": bob.architecture, "dev_auc": bob.dev_auc, "precision": bob.precision, "trials": trials}


def queried(bench: Workbench, key: Key, data: Dataset) -> Tensor:
    """New rows as Bob's model gets them; their labels are handed over only where the method says that it needs them."""
    labels = data.labels if bench.method.uses_labels else None
    return bench.untouched(bench.method.name, lambda: key.query(data.samples, labels))
