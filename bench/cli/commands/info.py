"""`bench info NAME`: a plug-in's parameters, paper, claim and requirements."""

from __future__ import annotations

import argparse
import dataclasses
import inspect

from bench.cli.commands.list import summary
from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from bench.plugins.spec import UsageError, did_you_mean, parse

_SHOWN = (
    "title", "meaning", "chance", "group", "source", "claims", "knowledge", "requires", "unit", "better", "public",
    "licence", "obtain",
)  # fmt: skip


def main(options: argparse.Namespace) -> int:
    """Print what is known about every plug-in of that name."""
    options.name = parse(options.name).name
    groups = groups_of(options.name)
    for group in groups:
        cls = registry.load(group, options.name)
        print(f"{options.name}  ({registry.noun(group)}, from {registry.origin(group, options.name)})")
        print(f"  {summary(cls)}")
        column = getattr(cls, "column", None)  # metrics have one
        for name in _SHOWN:
            if value := getattr(cls, name, None) or getattr(column, name, None):
                print(f"  {name}: {value}")
        if "shareable" in vars(cls):
            print(f"  shareable: {'yes' if cls.shareable else 'no: its pixels stay on this machine'}")  # type: ignore[attr-defined]
        sized = getattr(cls, "presets", {}).get(options.preset, {})
        print("  parameters:" if dataclasses.fields(cls) else "  parameters: none")
        for field in dataclasses.fields(cls):
            print(f"    {field.name}: {field.type} = {_default(field, sized, options.preset)}")
        module = inspect.getdoc(inspect.getmodule(cls)) or ""
        print("\n" + "\n".join(f"  {line}".rstrip() for line in module.splitlines()))
    return 0


def groups_of(name: str) -> list[Group]:
    """The groups that know `name`; for a file, the one its class belongs to.

    Raises:
        UsageError: No group knows it.
    """
    if ".py:" in name:
        cls = registry.load("methods", name)
        found = [group for group in GROUPS if issubclass(cls, registry.kind(group))]
        if not found:
            bases = ", ".join(registry.kind(group).__name__ for group in GROUPS)
            raise UsageError(f"{name} is none of: {bases}")
        return found
    found = [group for group in GROUPS if name in registry.entries(group)]
    if not found:
        known = [known for group in GROUPS for known in registry.entries(group)]
        raise UsageError(f"unknown plug-in {name!r}; {did_you_mean(name, known)}")
    return found


def _default(field: dataclasses.Field[object], sized: object, preset: str) -> str:
    given = sized.get(field.name, dataclasses.MISSING) if isinstance(sized, dict) else dataclasses.MISSING
    if given is not dataclasses.MISSING:
        return f"{given} (preset {preset})"
    return "required" if field.default is dataclasses.MISSING else str(field.default)
