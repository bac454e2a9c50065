"""Plug-ins that compute on a device, and why one cannot be built from its name."""

from __future__ import annotations

from bench.plugins.chosen import choose
from bench.plugins.groups import GROUPS, Group
from bench.plugins.spec import UsageError

COMPUTING: tuple[Group, ...] = tuple(group for group in GROUPS if group != "datasets")  # rows are read on the host


def needs_more(group: Group, name: str) -> str:
    """Why a plug-in cannot be built from its name alone (weights, a folder); empty if it can."""
    if group == "evaluators":  # some are built around an attack, which their own checks choose
        return ""
    try:
        choose(group, name, "smoke")
    except UsageError as error:
        return str(error)
    return ""
