"""The evaluators of utility: Bob trains on a release, predicts test rows.

`utility`: under each key. `learning-curve` (Syfer, appendix G): on parts of the release. `linear-probe`: one layer on
released vectors predicts test rows, clean and with Gaussian noise (CVAE paper, sections 4.2 and 4.3, table 1: three
seeds, validation and test rows not anonymised, noise of standard deviation 1, 2 and 3 on standardised test vectors).

Differences of the linear probe: Bob standardises by the released rows, as he holds no others, but noise is in standard
deviations of the original private rows as they reach his model (`Key.query`; k-Same and CVAE leave rows as they are),
by dimension: the same noise for every method. The authors' code takes deviations of each method's own released rows,
which favours methods with narrow releases. Constant dimensions get no noise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from pydantic import JsonValue

from bench.bob import linear_models, recipe_training, recipes
from bench.contract.preset import Preset
from bench.evaluators.predictions import (
    check_labels,
    evidence_of,
    label_note,
    learn,
    plan_of,
    published_predictions,
    queried,
    released_labels,
    sample_predictions,
    summary,
)
from bench.evidence import LearningEvidence, LinearProbeEvidence, UtilityEvidence
from bench.progress import stage
from bench.rows.grouping import labelled
from bench.seeds import derive, generator
from bench.types import Evaluator, Key, Measurement, NotApplicable, Release
from bench.workbench.workbench import Workbench

HELD_OUT = 0.2
PLAN = (
    "under the first key Bob tries every trial on four fifths of the released rows and trains what he chose on all of "
    "them: chosen by control people's labels (the figure), and by the fifth held out (what an outsider can do); "
    "a network is chosen where it is ahead of linear models by {ahead}; the best two or three vote where their vote is "
    "no worse"
)
IMPATIENT = ", and ends early where it is behind"
AGAIN = "; under the other keys, only the best three of the former and the best of the latter, on all rows"


@dataclass(frozen=True)
class Utility(Evaluator[Workbench]):
    """Predictions for new images by a model trained on the release."""

    name: ClassVar[str] = "utility"
    source: ClassVar[str] = "Syfer, definition 1 and section 5"
    evidence: ClassVar[type] = UtilityEvidence

    def keys(self, preset: Preset) -> int:
        """As many as the preset says."""
        return preset.utility_keys

    def measure(self, bench: Workbench) -> Measurement:
        """Train Bob on the release under each key; predict test rows.

        Unless the preset is patient, he tries only the first key's best three, and its choice by released rows,
        under others.
        """
        check_labels(bench)
        scheme = bench.scheme()
        start = time.perf_counter()
        plan = replace(plan_of(bench.preset), hold_out=HELD_OUT)
        predictions, outsiders, bobs = list[torch.Tensor](), list[torch.Tensor](), list[dict[str, JsonValue]]()
        shortlist: recipes.Shortlist | None = None
        for number in range(bench.preset.utility_keys):
            key = bench.key(scheme, number)
            published = published_predictions(bench, key)
            if published is not None:  # Bob trains nothing
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
                PLAN.format(ahead=recipe_training.AHEAD)
                + ("" if bench.preset.bob_patient else IMPATIENT)
                + (AGAIN if shortlist and len(bobs) > 1 else "")
            )
        return Measurement({"": evidence}, details, {"utility": time.perf_counter() - start}, {})

    @classmethod
    def samples(cls) -> Iterator[UtilityEvidence]:
        """Random predictions under two keys, and one without subjects."""
        samples = sample_predictions()
        yield from (samples.many, samples.one)


@dataclass(frozen=True)
class LearningCurve(Evaluator[Workbench]):
    """Predictions for new images after training on parts of the release."""

    name: ClassVar[str] = "learning-curve"
    source: ClassVar[str] = "Syfer, appendix G"
    evidence: ClassVar[type] = LearningEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Train Bob on parts of the first release, with equal steps."""
        check_labels(bench)
        scheme = bench.scheme()
        start = time.perf_counter()
        release, key = bench.sealed(scheme, 0).release, bench.key(scheme, 0)
        labels = released_labels(bench, release)
        curve, bobs = {}, []
        for fraction in bench.preset.fractions:
            rows = slice(0, max(1, round(fraction * len(release))))  # sealed rows are in random order
            labelled_rows = len(labelled(labels[rows]))
            if labelled_rows < 2:
                raise NotApplicable(
                    f"{fraction:.4g} of the release has {labelled_rows} rows with a label, too few to learn from"
                )
            plan = _longer(plan_of(bench.preset), whole=len(labelled(labels)), part=labelled_rows)
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


def _longer(plan: recipes.BobPlan, *, whole: int, part: int) -> recipes.BobPlan:
    """The plan for `part` rows with the gradient steps of `whole` rows.

    >>> _longer(recipes.BobPlan(epochs=10, batch=64), whole=1500, part=190).epochs
    115
    """
    batches = [max(1, rows // plan.batch) for rows in (whole, part)]
    return replace(plan, epochs=math.ceil(plan.epochs * batches[0] / batches[1]))


SEEDS = 3  # linear probes, each under its own key
NOISE = (0.0, 1.0, 2.0, 3.0)


@dataclass(frozen=True)
class LinearProbes(Evaluator[Workbench]):
    """Predictions of one linear layer, for clean and noisy test rows."""

    name: ClassVar[str] = "linear-probe"
    source: ClassVar[str] = "Di Salvo et al. 2024 (CVAE paper), sections 4.2 and 4.3"
    evidence: ClassVar[type] = LinearProbeEvidence

    def keys(self, preset: Preset) -> int:
        """As many as the preset says."""
        return SEEDS

    def measure(self, bench: Workbench) -> Measurement:
        """Train a probe per key, on fresh draws of any generator."""
        check_labels(bench)
        if bench.private.samples.ndim == 4 and bench.cell.choice.scored_in is None:
            raise NotApplicable("linear probes read feature vectors: choose --features, or --scored-in for images")
        scheme = bench.scheme()
        predictions: dict[float, list[torch.Tensor]] = {sigma: [] for sigma in NOISE}
        probes: list[JsonValue] = []
        start = time.perf_counter()
        for number in range(SEEDS):
            # Releases by another tool are as many as there are: the same one may serve several trainings.
            made = number if bench.recorded is None else number % len(bench.recorded.releases)
            key, release = bench.key(scheme, number), bench.sealed(scheme, made).release
            stage("linear probe")
            probe = _train(bench, release, key, bench.seed("linear-probe", number))
            original, clean = (bench.vectors(queried(bench, key, part)) for part in (bench.private, bench.test))
            random = generator(bench.seed("linear-probe noise", number))
            noise = torch.randn(clean.shape, generator=random).to(clean) * original.std(dim=0, correction=0)
            for sigma in NOISE:
                predictions[sigma].append(key.decode(probe.predict(clean + sigma * noise)).float().cpu())
            probes.append({"epochs": probe.epochs, "best epoch": probe.best, "validation loss": probe.loss})
        by_noise = {sigma: evidence_of(bench, scores, bench.test) for sigma, scores in predictions.items()}
        details: dict[str, JsonValue] = {
            "probes": probes,
            "trained on": "the released rows"
            if release.generator is None
            else "fresh draws from the published generator",
            **label_note(bench),
        }
        seconds = {"linear probe": time.perf_counter() - start}
        return Measurement({"": LinearProbeEvidence(by_noise)}, details, seconds, {})

    @classmethod
    def samples(cls) -> Iterator[LinearProbeEvidence]:
        """Random predictions, clean and noisy."""
        samples = sample_predictions()
        yield LinearProbeEvidence({0.0: samples.many, 1.0: samples.many})
        yield LinearProbeEvidence({0.0: samples.one, 2.0: samples.one})


def _train(bench: Workbench, release: Release, key: Key, seed: int) -> linear_models.LinearProbe:
    def rows(drawn: Release) -> linear_models.Rows:
        return bench.vectors(drawn.samples), released_labels(bench, drawn)

    source, stored = release.generator, rows(release)
    return linear_models.train_probe(
        stored,
        (bench.vectors(queried(bench, key, bench.control)), cast(torch.Tensor, bench.control.labels)),
        exclusive=bench.private.exclusive,
        seed=seed,
        fresh=None if source is None else lambda epoch: rows(source.sample(len(release), derive(seed, "epoch", epoch))),
        decode=key.decode,
    )
