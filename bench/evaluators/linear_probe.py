"""The linear-probe evaluator: one layer on released vectors predicts test rows, clean and under Gaussian noise.

Source: CVAE paper, sections 4.2 and 4.3 (table 1): three seeds, validation and test rows not anonymised, noise of
standard deviation 1, 2 and 3 on standardised test vectors.

Differences: Bob standardises by the released rows, as he holds no others, but noise is in standard deviations of the
original private rows as they reach his model (`Key.query`; k-Same and CVAE leave rows as they are), by dimension: the
same noise for every method. In the authors' code it is in deviations of each method's own released rows, which spares
the methods whose releases are narrow. Dimensions in which no original row differs get none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from pydantic import JsonValue

from bench.bob.linear_layer import LinearProbe, Rows, train_probe
from bench.contract.preset import Preset
from bench.evaluators.predictions import (
    check_labels,
    evidence_of,
    label_note,
    queried,
    released_labels,
    sample_predictions,
)
from bench.evidence import LinearProbeEvidence
from bench.progress import stage
from bench.seeds import derive, generator
from bench.types import Evaluator, Key, Measurement, NotApplicable, Release
from bench.workbench.workbench import Workbench

SEEDS = 3  # linear probes of a release, each under a key of its own
NOISE = (0.0, 1.0, 2.0, 3.0)


@dataclass(frozen=True)
class LinearProbes(Evaluator[Workbench]):
    """What one linear layer learns from released vectors, on clean test rows and on noisy ones."""

    name: ClassVar[str] = "linear-probe"
    source: ClassVar[str] = "Di Salvo et al. 2024 (CVAE paper), sections 4.2 and 4.3"
    evidence: ClassVar[type] = LinearProbeEvidence

    def keys(self, preset: Preset) -> int:
        """As many as the preset says."""
        return SEEDS

    def measure(self, bench: Workbench) -> Measurement:
        """Train a probe on the release under each key, on fresh draws where it holds a generator, and predict."""
        check_labels(bench)
        if bench.private.samples.ndim == 4 and bench.cell.choice.scored_in is None:
            raise NotApplicable("linear probes read feature vectors: choose --features, or --scored-in for images")
        scheme = bench.scheme()
        predictions: dict[float, list[torch.Tensor]] = {sigma: [] for sigma in NOISE}
        probes: list[JsonValue] = []
        start = time.perf_counter()
        for number in range(SEEDS):
            key, release = bench.key(scheme, number), bench.sealed(scheme, number).release
            stage("linear probe")
            probe = _train(bench, release, key, bench.seed("linear-probe", number))
            original, clean = (bench.vectors(queried(bench, key, part)) for part in (bench.private, bench.test))
            random = generator(bench.seed("linear-probe noise", number))
            noise = torch.randn(clean.shape, generator=random).to(clean) * original.std(dim=0, correction=0)
            for sigma in NOISE:
                predictions[sigma].append(key.decode(probe.predict(clean + sigma * noise)).float().cpu())
            probes.append({"epochs": probe.epochs, "best epoch": probe.best, "validation loss": probe.loss})
        by_noise = {sigma: evidence_of(bench, found, bench.test) for sigma, found in predictions.items()}
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
        made = sample_predictions()
        yield LinearProbeEvidence({0.0: made.many, 1.0: made.many})
        yield LinearProbeEvidence({0.0: made.one, 2.0: made.one})


def _train(bench: Workbench, release: Release, key: Key, seed: int) -> LinearProbe:
    def rows(drawn: Release) -> Rows:
        return bench.vectors(drawn.samples), released_labels(bench, drawn)

    source, stored = release.generator, rows(release)
    return train_probe(
        stored,
        (bench.vectors(queried(bench, key, bench.control)), cast(torch.Tensor, bench.control.labels)),
        exclusive=bench.private.exclusive,
        seed=seed,
        fresh=None if source is None else lambda epoch: rows(source.sample(len(release), derive(seed, "epoch", epoch))),
        decode=key.decode,
    )
