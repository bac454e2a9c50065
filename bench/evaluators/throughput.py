"""The throughput evaluator: releases per second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

import torch
from pydantic import JsonValue

from bench.contract.preset import Preset
from bench.contract.seal import check
from bench.evidence import TimingEvidence
from bench.progress import stage
from bench.types import Dataset, Evaluator, Measurement, NotApplicable, Rows, Scheme
from bench.workbench.timing import WARM_UPS, Ran, Timing, repeat, resnet18_rate, timed_release, watched
from bench.workbench.workbench import Workbench

SWEPT = (1, 32, 256, 2048)
"""Numbers of rows of further releases timed on CUDA."""
SWEEPS = 3


@dataclass(frozen=True)
class Throughput(Evaluator[Workbench]):
    """Rows released per second, after warm-up, on the run's device.

    The cost of binding noise to the content of these rows is timed separately (`binding_seconds` in the details):
    methods that do so pay it within a release. The rate of a ResNet-18 forward pass on the same rows and device is the
    reference. On CUDA, other numbers of rows, transfers to the device and back, power and clock are measured too.
    """

    name: ClassVar[str] = "throughput"
    source: ClassVar[str] = "this project: median of timed repeats, device synchronised"
    evidence: ClassVar[type] = TimingEvidence
    alone: ClassVar[bool] = True

    def keys(self, preset: Preset) -> int:
        """As many as there are timed repeats."""
        return preset.repeats

    def measure(self, bench: Workbench) -> Measurement:
        """Time releases of the private rows, each under a fresh key."""
        scheme, repeats = bench.scheme(), bench.preset.repeats
        with watched(bench.device) as ran:
            timing = _timed(bench, scheme, "timing", bench.private, repeats)
        # The cost of hashing rows, which binds noise to their content.
        secret, rows = bench.secret("binding"), bench.private.samples
        binding = repeat(lambda: secret.bound_to(rows), device=bench.device, repeats=repeats)
        details: dict[str, JsonValue] = {
            "binding_seconds": median(binding.seconds),
            "repeats": repeats,
            "images": len(bench.private),
        }
        if (yardstick := resnet18_rate(rows, bench.device)) is not None:
            details["resnet18_images_per_second"] = round(yardstick, 1)
        if bench.device.type == "cuda":
            details |= _on_card(bench, scheme) | _running(ran, len(bench.private) / median(timing.seconds))
        if not (bench.apart and bench.device.type == "cuda"):  # another process's GPU memory is not visible
            details["peak_mib"] = round(timing.peak_bytes / 2**20, 1)
        evidence = TimingEvidence(len(bench.private), timing.seconds)
        return Measurement({"": evidence}, details, {"timed": sum(timing.seconds)}, {})

    @classmethod
    def samples(cls) -> Iterator[TimingEvidence]:
        """Three repeats."""
        yield TimingEvidence(100, (0.5, 0.4, 0.6))


def _timed(bench: Workbench, scheme: Scheme, purpose: str, rows: Dataset, repeats: int) -> Timing:
    """Releases of rows, each under its own key; each one checked."""
    keys = [scheme.sample_key(bench.secret(purpose, number)) for number in range(repeats + WARM_UPS)]
    timed = [timed_release(key, rows) for key in keys]
    unused, fetched = iter(timed), iter(timed)
    stage(f"time releases of {len(rows)} rows")
    return repeat(
        lambda: next(unused)[0](), device=bench.device, repeats=repeats, process=bench.process,
        after=lambda made: check(next(fetched)[1](made), rows),
    )  # fmt: skip


def _on_card(bench: Workbench, scheme: Scheme) -> dict[str, JsonValue]:
    """Images per second by release size; transfer seconds if rows fit."""
    rates: dict[str, JsonValue] = {}
    for count in SWEPT:
        rows = bench.private.take(torch.arange(count, device=bench.device) % len(bench.private))
        try:
            timing = _timed(bench, scheme, f"sweep {count}", rows, SWEEPS)
        except NotApplicable:  # a method that needs more or other rows
            continue
        rates[str(count)] = round(count / median(timing.seconds), 1)
    if isinstance(bench.private.samples, Rows):  # blocks move to the device within a release
        return {"images_per_second_by_rows": rates}
    on_device, on_host = bench.private.samples, bench.private.samples.cpu()
    to_device = repeat(lambda: on_host.to(bench.device), device=bench.device, repeats=SWEEPS)
    back = repeat(on_device.cpu, device=bench.device, repeats=SWEEPS)
    return {
        "images_per_second_by_rows": rates,
        "host_to_device_seconds": median(to_device.seconds),
        "device_to_host_seconds": median(back.seconds),
    }


def _running(ran: Ran, rate: float) -> dict[str, JsonValue]:
    """Power, clock and energy per image."""
    if ran.watts is None or ran.megahertz is None:
        return {"power": "unknown: nvidia-smi says nothing"}
    return {
        "mean_power_w": round(ran.watts, 1), "mean_clock_mhz": round(ran.megahertz), "power_readings": ran.seen,
        "joules_per_image": ran.watts / rate,
    }  # fmt: skip
