"""The transfer evaluator: training and testing across original and released images.

Source: Tölle et al., Content-Aware Differential Privacy with Conditional Invertible Neural Networks (CADP), figure 4:
"Training/testing is performed on either original (o) or CADP altered (p) data". Their own figure is p/o.

Differences: one Bob is chosen for each kind of training row as in `bench.bob.model_selection`, on control rows of the
same kind. Test rows are released under the key of the training rows, with noise of their own, and without labels unless
the method declares that it needs them: the record then notes that figures on such rows (p/p, o/p) measure the label as
well. Rows are not rescaled: a release in other units than the raw rows loses in p/o.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from pydantic import JsonValue

from bench.bob import model_selection, recipes
from bench.contract.seal import check
from bench.evaluators.predictions import (
    check_labels,
    evidence_of,
    mixed,
    plan_of,
    published_predictions,
    queried,
    released_labels,
    sample_predictions,
    summary,
    true_label_note,
)
from bench.evidence import CADPClassifierEvidence, TransferEvidence, UtilityEvidence
from bench.nets.convolutional_networks import DROPOUT
from bench.progress import stage
from bench.rows.row_sets import in_order
from bench.types import Dataset, Evaluator, Key, Measurement, NotApplicable, Release
from bench.workbench.workbench import Workbench

LARGE, LARGE_BATCH, SMALL_BATCH = 64, 64, 512
"""Batches of the CADP paper's Table 1: for images of that side or more, and for others."""


@dataclass(frozen=True)
class Transfer(Evaluator[Workbench]):
    """Transfer of a trained model between released and original images."""

    name: ClassVar[str] = "transfer"
    source: ClassVar[str] = "Tölle et al. 2022 (CADP), figure 4"
    evidence: ClassVar[type] = TransferEvidence

    def plan(self, bench: Workbench) -> recipes.BobPlan:
        """Bob's plan."""
        return plan_of(bench.preset)

    def measure(self, bench: Workbench) -> Measurement:
        """Train Bob on original and on released rows; test on both."""
        check_labels(bench)
        scheme = bench.scheme()
        key, start = bench.key(scheme, 0), time.perf_counter()
        published = published_predictions(bench, key)
        routes: dict[str, UtilityEvidence] = {}
        details: dict[str, JsonValue] = {}
        if published is not None:
            routes["p/o"] = evidence_of(bench, [published], bench.test)
            details["note"] = "the method publishes a classifier: Bob does not train, and there are no released rows"
        else:
            release = bench.sealed(scheme, 0).release
            released_labels(bench, release)
            left_out: dict[str, JsonValue] = {}
            tests: dict[str, Dataset | str] = {"o": bench.test, "p": _released(bench, key, bench.test)}
            bobs: dict[str, JsonValue] = {}
            for trained in "op":
                rows = Release(bench.private.samples, bench.private.labels, None) if trained == "o" else release
                readable: dict[str, Dataset] = {}
                for tested, test in tests.items():
                    route = f"{trained}/{tested}"
                    if isinstance(test, str):
                        left_out[route] = test
                    elif test.samples.shape[1:] != rows.samples.shape[1:]:
                        left_out[route] = (
                            f"trained on rows of shape {tuple(rows.samples.shape[1:])}, tested on rows of shape "
                            f"{tuple(test.samples.shape[1:])}"
                        )
                    else:
                        readable[route] = test
                if readable:
                    predictions, bobs[trained] = _learn(
                        bench, key, rows, readable, self.plan(bench), coded=trained == "p"
                    )
                    routes |= predictions
            details |= {"bob": bobs, "left out": left_out}
            if not isinstance(tests["p"], str):
                details |= true_label_note(bench)
        return Measurement({"": self.evidence(routes)}, details, {"transfer": time.perf_counter() - start}, {})

    @classmethod
    def samples(cls) -> Iterator[TransferEvidence]:
        """Random predictions of exclusive classes."""
        yield TransferEvidence({"p/o": sample_predictions().exclusive})


@dataclass(frozen=True)
class CADPClassifier(Transfer):
    """The CADP paper's own classifier on original and released images.

    One network (`bench.nets.convolutional_networks`) under Adam at 5e-4, in batches of 512 for MNIST and of 64 for
    images of 128 pixels, in the place of the best of Bob's. The paper leaves open for how long it is trained, and which
    moment of the training counts. Here it is as long as the preset trains any network of Bob's, and the tenth of the
    course that is best on control rows. The rate rises and falls along one cycle, with its peak at 5e-4.
    """

    name: ClassVar[str] = "cadp-classifier"
    source: ClassVar[str] = "Tölle et al. 2022 (CADP), figure 4 and Table 1"
    evidence: ClassVar[type] = CADPClassifierEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """As `Transfer.measure`. Raises NotApplicable for tables, which the network does not read."""
        if bench.private.samples.ndim != 4:
            raise NotApplicable("the classifier of the CADP paper reads images, and these rows are a table's")
        return super().measure(bench)

    def plan(self, bench: Workbench) -> recipes.BobPlan:
        """The plan with that network alone."""
        side = min(bench.private.samples.shape[2:])
        return replace(
            plan_of(bench.preset), architectures=("strided",), weight_decays=(0.0,), dropouts=(DROPOUT,), augment=False,
            patient=True, batch=LARGE_BATCH if side >= LARGE else SMALL_BATCH,
        )  # fmt: skip

    @classmethod
    def samples(cls) -> Iterator[CADPClassifierEvidence]:
        """Random predictions of exclusive classes."""
        yield CADPClassifierEvidence({"p/o": sample_predictions().exclusive})


def _learn(
    bench: Workbench, key: Key, rows: Release, tests: dict[str, Dataset], plan: recipes.BobPlan, *, coded: bool
) -> tuple[dict[str, UtilityEvidence], JsonValue]:
    """Predictions for each of `tests` after training on `rows`, perhaps coded; summary."""
    dev: Dataset | str = _released(bench, key, bench.control) if coded else bench.control
    stage("utility")
    if isinstance(dev, str):  # control rows as Bob's model receives them
        dev = replace(bench.control, samples=queried(bench, key, bench.control))
    bob = model_selection.train_bob(
        rows, dev.samples, cast(torch.Tensor, dev.labels), exclusive=bench.private.exclusive, plan=plan,
        seed=bench.seed("bob", 0), decode=key.decode if coded else None,
    )  # fmt: skip
    stage("predict")
    predictions = {}
    for route, test in tests.items():
        scores = bob.predict(test.samples)
        predictions[route] = evidence_of(bench, [(key.decode(scores) if coded else scores).float().cpu()], test)
    return predictions, summary(bob)


def _released(bench: Workbench, key: Key, data: Dataset) -> Dataset | str:
    """`data` released by the key with raw labels, or a reason."""
    data = data.take(mixed(bench, data))  # data sets list their rows by class
    shown = data if bench.method.uses_labels else replace(data, labels=None)
    try:
        release = bench.untouched(bench.method.name, lambda: bench.completing(key).release(shown))
        check(release, shown)
        return in_order(release, release.links, data, bench.method.name)[0]
    except NotApplicable as reason:
        return str(reason)
