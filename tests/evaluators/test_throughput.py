"""What a throughput record says beside its figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from made.cells import opened
from made.simulated_cuda import CUDA, SimulatedCuda
from torch import Tensor

from bench.evaluators import throughput
from bench.evaluators.throughput import SWEEPS, SWEPT, Throughput, _on_card
from bench.evidence import TimingEvidence
from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.randomness import Secret
from bench.types import Dataset, Key
from bench.workbench.timing import WARM_UPS, Ran, Timing
from bench.workbench.workbench import Workbench


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


def on_a_device(folder: Path, method: str = "identity", dataset: str = "digits", **more: str | int | bool) -> Workbench:
    """A cell on the simulated device, inside of it."""
    bench = opened(folder, method, dataset, **more)
    parts = {name: getattr(bench, name).to(CUDA) for name in ("public", "private", "control", "test")}
    return replace(bench, cell=replace(bench.cell, device="cuda"), **parts)


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power is watched for a moment, where there is none to see."""
    monkeypatch.setattr(throughput, "WATCHED", 0.01)


def test_on_a_device_more_numbers_of_rows_and_the_way_there_are_timed(tmp_path: Path) -> None:
    with SimulatedCuda():
        details = Throughput().measure(on_a_device(tmp_path)).details
    rates = details["images_per_second_by_rows"]
    assert isinstance(rates, dict)
    assert list(rates) == [str(count) for count in SWEPT]
    assert {"host_to_device_seconds", "device_to_host_seconds", "power"} <= details.keys()
    assert "no_rate_by_rows" not in details


def test_sizes_that_a_method_refuses_or_that_would_take_too_long_have_their_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "LONGEST", 0.0)
    with SimulatedCuda():
        details = Throughput().measure(on_a_device(tmp_path, "instahide")).details
    rates, reasons = details["images_per_second_by_rows"], details["no_rate_by_rows"]
    assert isinstance(rates, dict)
    assert isinstance(reasons, dict)
    assert list(rates) == ["32"]
    assert "3 different rows" in str(reasons["1"])
    assert str(reasons["256"]).startswith("not tried: a release would take about")
    assert list(reasons) == ["1", "256", "2048"]


def test_a_release_that_the_device_cannot_hold_costs_only_its_own_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = throughput._timed

    def full(bench: Workbench, keys: Sequence[Key], rows: Dataset, repeats: int) -> Timing:
        if len(rows) == max(SWEPT):
            raise torch.OutOfMemoryError
        return real(bench, keys, rows, repeats)

    monkeypatch.setattr(throughput, "_timed", full)
    with SimulatedCuda():
        details = Throughput().measure(on_a_device(tmp_path)).details
    assert details["no_rate_by_rows"] == {str(max(SWEPT)): "the device has too little memory"}


def test_a_method_of_equal_classes_is_timed_at_every_size_that_has_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "LONGEST", 600.0)  # the simulation is slow
    with SimulatedCuda():
        bench = on_a_device(tmp_path, "syfer-random[patch_size=4]")
        details = Throughput().measure(bench).details
    rates = details["images_per_second_by_rows"]
    assert isinstance(rates, dict)
    assert {"32", "256", "2048"} <= rates.keys()


def test_energy_is_of_releases_of_the_largest_size_that_was_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def meter(device: torch.device) -> Iterator[Ran]:
        yield Ran(200.0, 1500.0, 3)

    monkeypatch.setattr(throughput, "watched", meter)
    ticks = iter((0.0, 0.004, 0.008, 0.012))  # two releases within a hundredth of a second
    monkeypatch.setattr(throughput, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    with SimulatedCuda():
        details = Throughput().measure(on_a_device(tmp_path)).details
    assert (details["mean_power_w"], details["mean_clock_mhz"], details["power_rows"]) == (200.0, 1500, max(SWEPT))
    assert details["joules_per_image"] == pytest.approx(200.0 * 0.012 / (2 * max(SWEPT)))


def test_rows_on_disk_have_no_way_to_the_device_of_their_own(tmp_path: Path) -> None:
    bench = opened(tmp_path)
    images = bench.private.samples
    on_disk = Rows.of(images.numpy(), Budget(4 * images.nbytes // 2))
    keys = [bench.scheme().sample_key(bench.secret("timing", number)) for number in range(WARM_UPS + SWEEPS)]
    found = [
        _on_card(replace(bench, private=replace(bench.private, samples=samples)), keys) for samples in (images, on_disk)
    ]
    assert found[0].keys() - found[1].keys() == {"host_to_device_seconds", "device_to_host_seconds"}
