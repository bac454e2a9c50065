"""What a throughput record says beside its figure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from made.cells import opened
from torch import Tensor

from bench.evaluators.throughput import Throughput
from bench.evidence import TimingEvidence
from bench.randomness import Secret


def test_binding_to_content_is_timed_apart_on_the_private_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[Tensor] = []
    real = Secret.bound_to

    def watched(secret: Secret, samples: Tensor) -> Secret:
        bound.append(samples)
        return real(secret, samples)

    monkeypatch.setattr(Secret, "bound_to", watched)
    bench = opened(tmp_path)
    measured = Throughput().measure(bench)
    assert len(bound) >= bench.preset.repeats  # identity itself binds nothing
    assert all(torch.equal(samples, bench.private.samples) for samples in bound)
    assert float(str(measured.details["binding_seconds"])) > 0
    evidence = measured.evidence[""]
    assert isinstance(evidence, TimingEvidence)
    assert len(evidence.seconds) == bench.preset.repeats
