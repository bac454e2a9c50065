"""Speed of releases on a GPU, beside the CPU and a ResNet-18 forward, with peak memory and waits for the device.

Run with `pytest tests/benchmarks/test_speed_on_a_gpu.py -s` on a machine with one; it prints a table.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from statistics import median

import pytest
import torch

from bench.conformance.outcome import sample_data
from bench.plugins import registry
from bench.plugins.configured import Configured, configure
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.types import Dataset, Method, NotApplicable, Scheme
from bench.workbench.timing import repeat, resnet18_rate, settle

ROWS = {"cpu": 128, "cuda": 4096}
FIT_ROWS = 256
REPEATS = 3


@dataclass(frozen=True)
class Rate:
    """Speed of one method on 64 x 64 grey images.

    Args:
        method: Its name.
        fit_seconds: Of the smallest training, on the device.
        cpu, other: Images released a second.
        peak_over_rows: Most device memory held within a release, as a multiple of the rows' own.
        waits: Times that a release made the host wait for the device.
        error: What went wrong; empty where nothing did.
    """

    method: str
    fit_seconds: float = 0.0
    cpu: float = 0.0
    other: float = 0.0
    peak_over_rows: float = 0.0
    waits: int = 0
    error: str = ""


def yardstick(device: torch.device) -> float:
    """Images a second of a ResNet-18 forward on such rows."""
    found = resnet18_rate(sample_data(rows=ROWS[device.type]).samples, device)
    assert found is not None
    return found


def rates(device: torch.device) -> Iterator[Rate]:
    """Time every built-in method that takes images."""
    for name in sorted(registry.own("methods")):
        try:
            yield _rate(configure("methods", name, "smoke"), device)
        except (NotApplicable, UsageError):
            continue
        except Exception as failure:  # whatever fails on a device is what this looks for
            yield Rate(name, error=f"{type(failure).__name__}: {failure}")


def _rate(chosen: Configured[Method], device: torch.device) -> Rate:
    cpu, other = torch.device("cpu"), device
    here, _, _ = _timed(chosen.plugin.fit(sample_data(rows=FIT_ROWS, seed=1), 0), cpu)
    public = sample_data(rows=FIT_ROWS, seed=1).to(other)
    settle(other)
    start = time.perf_counter()
    scheme = chosen.plugin.fit(public, 0)
    settle(other)
    spent = time.perf_counter() - start
    there, peak, rows = _timed(scheme, other)
    return Rate(chosen.spec.shown, spent, here, there, peak / rows.samples.nbytes, _waits(scheme, rows))


def _timed(scheme: Scheme, device: torch.device) -> tuple[float, int, Dataset]:
    rows = sample_data(rows=ROWS[device.type], seed=2)
    rows = replace(rows, subjects=torch.arange(len(rows))).to(device)
    keys = (scheme.sample_key(Secret.of_seed(number)) for number in count())
    timing = repeat(lambda: next(keys).release(rows), device=device, repeats=REPEATS)
    return len(rows) / median(timing.seconds), timing.peak_bytes, rows


def _waits(scheme: Scheme, rows: Dataset) -> int:
    """Warnings of torch's own watch over synchronisation, of one release."""
    if rows.samples.device.type != "cuda":
        return 0
    key = scheme.sample_key(Secret.of_seed(0))
    settle(rows.samples.device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            key.release(rows)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(each.message) for each in caught)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: torch finds none on this machine")
def test_every_method_releases_on_the_gpu() -> None:
    device = torch.device("cuda")
    unit = yardstick(device)
    print(f"ResNet-18 forward, float32: {unit:,.0f} images/s")
    print("| method | fit, s | CPU, images/s | GPU, images/s | of ResNet-18 | peak / rows | waits |")
    found = list(rates(device))
    for rate in found:
        print(
            f"| {rate.method} | {rate.fit_seconds:.2f} | {rate.cpu:,.0f} | {rate.other:,.0f} | {rate.other / unit:.2f} "
            f"| {rate.peak_over_rows:.1f} | {rate.waits} |"
        )
    assert [f"{rate.method}: {rate.error}" for rate in found if rate.error] == []


def test_rates_cover_methods_and_name_what_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "cpu", 16)
    monkeypatch.setattr(registry, "own", lambda group: ["identity", "blur"])
    cpu = torch.device("cpu")
    found = {rate.method.partition("[")[0]: rate for rate in rates(cpu)}
    assert found["identity"].other > found["blur"].other > 0
    monkeypatch.setitem(globals(), "_timed", lambda scheme, device: 1 / 0)
    assert [rate.error for rate in rates(cpu)] == ["ZeroDivisionError: division by zero"] * 2
