"""What a throughput record says beside its figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import opened
from made.simulated_cuda import CUDA, SimulatedCuda
from torch import Tensor

from bench.evaluators.throughput import SWEPT, Throughput, _on_card
from bench.evidence import TimingEvidence
from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
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


def test_on_a_device_more_numbers_of_rows_and_the_way_there_are_timed(tmp_path: Path) -> None:
    with SimulatedCuda():
        bench = opened(tmp_path)
        parts = {name: getattr(bench, name).to(CUDA) for name in ("public", "private", "control", "test")}
        moved = replace(bench, cell=replace(bench.cell, device="cuda"), **parts)
        details = Throughput().measure(moved).details
    rates = details["images_per_second_by_rows"]
    assert isinstance(rates, dict)
    assert list(rates) == [str(count) for count in SWEPT]
    assert {"host_to_device_seconds", "device_to_host_seconds", "power"} <= details.keys()


def test_rows_on_disk_have_no_way_to_the_device_of_their_own(tmp_path: Path) -> None:
    bench = opened(tmp_path)
    images = bench.private.samples
    on_disk = Rows.of(images.numpy(), Budget(4 * images.nbytes // 2))
    found = [
        _on_card(replace(bench, private=replace(bench.private, samples=samples)), bench.scheme())
        for samples in (images, on_disk)
    ]
    assert found[0].keys() - found[1].keys() == {"host_to_device_seconds", "device_to_host_seconds"}
