"""The throughput evaluator: releases per second."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import ClassVar

import torch
from pydantic import JsonValue

from bench.contract.preset import Preset
from bench.contract.seal import check
from bench.data.scorable import balance, equal_classes
from bench.evidence import TimingEvidence
from bench.progress import stage
from bench.types import Dataset, Evaluator, Key, Measurement, NotApplicable, Rows
from bench.workbench.timing import WARM_UPS, Timing, repeat, resnet18_rate, settle, timed_release, watched
from bench.workbench.workbench import Workbench

SWEPT = (1, 32, 256, 2048)
"""Numbers of rows of further releases timed on CUDA."""
SWEEPS = 3
LONGEST = 2.5
"""Seconds of a release beyond which, by the rate of a smaller one, it is not tried."""
WATCHED = 1.0
"""Seconds of releases for which power and clock are watched: the tool gives means of the last moments."""


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
        keys = [scheme.sample_key(bench.secret("timing", number)) for number in range(repeats + WARM_UPS)]
        timing = _timed(bench, keys, bench.private, repeats)
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
            details |= _on_card(bench, keys)
        if not (bench.apart and bench.device.type == "cuda"):  # another process's GPU memory is not visible
            details["peak_mib"] = round(timing.peak_bytes / 2**20, 1)
        evidence = TimingEvidence(len(bench.private), timing.seconds)
        return Measurement({"": evidence}, details, {"timed": sum(timing.seconds)}, {})

    @classmethod
    def samples(cls) -> Iterator[TimingEvidence]:
        """Three repeats."""
        yield TimingEvidence(100, (0.5, 0.4, 0.6))


def _timed(bench: Workbench, keys: Sequence[Key], rows: Dataset, repeats: int) -> Timing:
    """Releases of rows, each under its own key; each one checked."""
    timed = [timed_release(key, rows) for key in keys]
    unused, fetched = iter(timed), iter(timed)
    stage(f"time releases of {len(rows)} rows")
    return repeat(
        lambda: next(unused)[0](), device=bench.device, repeats=repeats, process=bench.process,
        after=lambda made: check(next(fetched)[1](made), rows),
    )  # fmt: skip


def _on_card(bench: Workbench, keys: Sequence[Key]) -> dict[str, JsonValue]:
    """Rates by release size, power, and transfer seconds.

    A size without a rate has its reason; rows on disk have no transfers of their own. The keys serve for one release of
    each size: some take seconds to draw.
    """
    rates, reasons = dict[str, float](), dict[str, str]()
    last, seconds = 0, 0.0  # of the largest release so far
    for count in SWEPT:
        expected = seconds * (count / last if last > 1 else 1)  # one row costs little more than the start
        if expected > LONGEST:
            reasons[str(count)] = f"not tried: a release would take about {expected:.1f} s, more than {LONGEST} s"
            continue
        try:
            timing = _timed(bench, keys, _repeated(bench, count), SWEEPS)
        except NotApplicable as refusal:  # a method that needs more or other rows
            reasons[str(count)] = str(refusal)
        except torch.OutOfMemoryError:
            reasons[str(count)] = "the device has too little memory"
        else:
            last, seconds = count, median(timing.seconds)
            rates[str(count)] = round(count / seconds, 1)
    details: dict[str, JsonValue] = {"images_per_second_by_rows": {**rates}}
    if reasons:
        details["no_rate_by_rows"] = {**reasons}
    if rates:
        details |= _power(bench, keys[0], last)
    if isinstance(bench.private.samples, Rows):  # blocks move to the device within a release
        return details
    on_device, on_host = bench.private.samples, bench.private.samples.cpu()
    to_device = repeat(lambda: on_host.to(bench.device), device=bench.device, repeats=SWEEPS)
    back = repeat(on_device.cpu, device=bench.device, repeats=SWEEPS)
    return {
        **details,
        "host_to_device_seconds": median(to_device.seconds),
        "device_to_host_seconds": median(back.seconds),
    }


def _power(bench: Workbench, key: Key, count: int) -> dict[str, JsonValue]:
    """Power, clock and energy an image, of `WATCHED` seconds of releases."""
    release, fetch = timed_release(key, _repeated(bench, count))
    releases = 0
    stage("watch the power")
    with watched(bench.device) as ran:
        start = time.perf_counter()
        while (spent := time.perf_counter() - start) < WATCHED:
            fetch(release())  # of another process, which would keep it otherwise
            settle(bench.device)
            releases += 1
    if ran.watts is None or ran.megahertz is None:
        return {"power": "unknown: nvidia-smi says nothing"}
    return {
        "mean_power_w": round(ran.watts, 1), "mean_clock_mhz": round(ran.megahertz), "power_readings": ran.seen,
        "power_rows": count, "joules_per_image": ran.watts * spent / (releases * count),
    }  # fmt: skip


def _repeated(bench: Workbench, count: int) -> Dataset:
    """So many private rows, repeated from the first if too few.

    Surplus labels are withheld as of the private rows for a method that needs equally frequent classes.
    """
    rows = bench.private.take(torch.arange(count, device=bench.device) % len(bench.private))
    if rows.labels is None or not bench.method.equal_classes:
        return rows
    labels = equal_classes(rows.labels, 0) if rows.exclusive else balance(rows.labels, 0, exclusive=False)
    return replace(rows, labels=labels)
