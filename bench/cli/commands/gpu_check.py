"""`bench gpu-check`: does everything work on this GPU, with the CPU's figures, and how fast? A table to attach."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

import torch

from bench.cli.gpu.conformance import conformed
from bench.cli.gpu.figures import compared
from bench.cli.gpu.rates import rates, yardstick
from bench.results.atomic_file import write_atomically
from bench.results.record_parts import ScoreRecord
from bench.workbench.machine import choose_device, git_state, hardware, versions


def main(options: argparse.Namespace) -> int:
    """Print the table as Markdown while it is made, and write it to --out; 1 if anything failed or differs."""
    device, start, failed = choose_device(options.device), time.monotonic(), 0
    lines = list[str]()
    for line, bad in _report(device):
        failed += bad
        lines.append(line)
        print(line, flush=True)
    lines.append(f"\n{failed} findings; {time.monotonic() - start:.0f} s")
    print(lines[-1])
    if options.out is not None:
        write_atomically(options.out, ("\n".join(lines) + "\n").encode())
    return int(failed > 0)


def _report(device: torch.device) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each is a finding."""
    yield f"# bench gpu-check on {device.type}\n", False
    facts = {**hardware(device), **versions(), "commit": git_state()}
    yield "\n".join(f"- {name}: {value}" for name, value in facts.items()), False
    yield "\n## Speed: 64 x 64 grey images, smallest training\n", False
    unit = yardstick(device)
    yield f"ResNet-18 forward, float32: {unit:,.0f} images/s\n", False
    head = ("method", "fit, s", "CPU, images/s", f"{device.type}, images/s", "of ResNet-18", "peak / rows", "waits")
    yield _row(head), False
    yield _row(["---"] * 7), False
    for rate in rates(device):
        told = (
            (rate.method, rate.error)
            if rate.error
            else (
                rate.method, f"{rate.fit_seconds:.2f}", f"{rate.cpu:,.0f}", f"{rate.other:,.0f}",
                f"{rate.other / unit:.2f}", f"{rate.peak_over_rows:.1f}", str(rate.waits),
            )
        )  # fmt: skip
        yield _row(told), bool(rate.error)
    yield "\n## Figures: digits, smoke, CPU beside the device\n", False
    yield _row(("method", "measured by", "figure", "CPU", device.type, "s", "verdict")), False
    yield _row(["---"] * 7), False
    for each in compared(device):
        verdict = each.error or ("APART" if each.apart else "agree")
        if len(each.pairs) > 1 and not each.error:
            verdict += " on one side under every seed" if each.apart else ": apart under the first seed, not under all"
        figures = ("; ".join(map(_figure, side)) for side in zip(*each.pairs, strict=True))
        seconds = f"{each.seconds[0]:.1f} / {each.seconds[1]:.1f}"
        yield _row((each.method, each.plan, each.metric, *figures, seconds, verdict)), each.apart
    yield "\n## The contract of every plug-in\n", False
    for found in conformed(device):
        if found.failed:
            yield f"- **{found.name}** ({found.group}): " + "; ".join(found.failed), True
        elif found.why_not:
            yield f"- {found.name} ({found.group}): not checked: {found.why_not}", False
        else:
            yield f"- {found.name} ({found.group}): {found.passed} hold, {found.seconds:.1f} s", False


def _figure(score: ScoreRecord | None) -> str:
    if score is None:
        return ""
    bounds = "" if score.low is None or score.high is None else f" ({score.low:.4g} – {score.high:.4g})"
    return f"{score.value:.4g}{bounds}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
