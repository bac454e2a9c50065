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
from typing import cast

import torch
from pydantic import JsonValue
from torch import Tensor

from bench.bob.linear_layer import LinearProbe, Rows, train_probe
from bench.evaluators.utility import check_labels, evidence_of, label_note, queried, released_labels
from bench.evidence import LinearProbeEvidence
from bench.progress import stage
from bench.seeds import derive, generator
from bench.types import Attack, Key, NotApplicable, Release
from bench.workbench.measurement import Measurement
from bench.workbench.presets import PROBES
from bench.workbench.workbench import Workbench

NOISE = (0.0, 1.0, 2.0, 3.0)


def run_linear_probe(bench: Workbench, attack: Attack | None) -> Measurement:
    """Train a probe on the release under each of three keys, on fresh draws where it holds a generator, and predict."""
    check_labels(bench)
    if bench.private.samples.ndim == 4 and bench.cell.data.scored_in is None:
        raise NotApplicable("linear probes read feature vectors: choose --features, or --scored-in for images")
    scheme = bench.scheme()
    predictions: dict[float, list[Tensor]] = {sigma: [] for sigma in NOISE}
    probes: list[JsonValue] = []
    start = time.perf_counter()
    for number in range(PROBES):
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
        "trained on": "the released rows" if release.generator is None else "fresh draws from the published generator",
        **label_note(bench),
    }
    seconds = {"linear probe": time.perf_counter() - start}
    return Measurement({"": LinearProbeEvidence(by_noise)}, details, seconds, {})


def _train(bench: Workbench, release: Release, key: Key, seed: int) -> LinearProbe:
    def rows(drawn: Release) -> Rows:
        return bench.vectors(drawn.samples), released_labels(bench, drawn)

    source, stored = release.generator, rows(release)
    return train_probe(
        stored,
        (bench.vectors(queried(bench, key, bench.control)), cast(Tensor, bench.control.labels)),
        exclusive=bench.private.exclusive,
        seed=seed,
        fresh=None if source is None else lambda epoch: rows(source.sample(len(release), derive(seed, "epoch", epoch))),
        decode=key.decode,
    )
