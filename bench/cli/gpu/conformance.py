"""The contract suite of every plug-in that can be built by name, on the device."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from bench.conformance import conform
from bench.plugins import registry
from bench.plugins.chosen import choose
from bench.plugins.groups import GROUPS, Group
from bench.plugins.spec import UsageError
from bench.workbench.timing import settle

TOUCHED: tuple[Group, ...] = tuple(group for group in GROUPS if group != "datasets")  # rows are read on the host


@dataclass(frozen=True)
class Conformed:
    """What became of one plug-in.

    Args:
        group, name: Which.
        passed: Checks that hold.
        failed: Those that do not, each as "check: reason".
        seconds: On the wall.
        why_not: Why it was not checked; empty where it was.
    """

    group: Group
    name: str
    passed: int
    failed: tuple[str, ...]
    seconds: float
    why_not: str = ""


def conformed(device: torch.device) -> Iterator[Conformed]:
    """Check this project's plug-ins one after the other."""
    for group in TOUCHED:
        for name in sorted(registry.own(group)):
            start = time.perf_counter()
            if why := needs_more(group, name):
                yield Conformed(group, name, 0, (), 0.0, why)
                continue
            found = conform(group, name, device)
            settle(device)
            failed = tuple(f"{each.check}: {each.detail}" for each in found if each.status == "failed")
            passed = sum(each.status == "passed" for each in found)
            yield Conformed(group, name, passed, failed, time.perf_counter() - start)


def needs_more(group: Group, name: str) -> str:
    """Why a plug-in cannot be built from its name alone (weights, a folder); empty where it can."""
    if group == "evaluators":  # some are built around an attack, which their own checks choose
        return ""
    try:
        choose(group, name, "smoke")
    except UsageError as error:
        return str(error)
    return ""
