"""Presets and suites as pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import bench
from bench.contract import preset as presets
from docs.generator.docstrings import arguments
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page
from docs.generator.types import value

SUITES = Path(bench.__file__).parent / "suites"


def presets_page(targets: Mapping[str, str]) -> Page:
    """The values of every preset."""
    prose = Prose("presets.md", targets)
    helps = arguments(presets.Preset)
    rows = [
        (f"`{field.name}`", *(value(getattr(preset, field.name)) for preset in presets.PRESETS.values()),
         prose.line(helps.get(field.name, "")))
        for field in dataclasses.fields(presets.Preset)
    ]  # fmt: skip
    return Page("presets.md", "Presets", join(
        "# Presets",
        prose.line((presets.__doc__ or "").partition("\n")[0]),
        "Sizes of methods and attacks by preset stand on their own pages; what the command line names wins over both.",
        table(("size", *presets.PRESETS, "what it is"), rows),
    ))  # fmt: skip


def suites_page(targets: Mapping[str, str]) -> Page:
    """The content of every suite."""
    prose = Prose("suites.md", targets)
    parts = []
    for path in sorted(SUITES.glob("*.yaml")):
        lines = path.read_text(encoding="utf-8").splitlines()
        said = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
        content = "\n".join(line for line in lines if not line.startswith("#"))
        parts += [f"## {path.stem} {{#{path.stem}}}", prose.line(" ".join(said)),
                  f"```sh\nbench run --suite {path.stem}\n```", f"```yaml\n{content}\n```"]  # fmt: skip
    return Page("suites.md", "Suites", join(
        "# Suites",
        "A suite is a [configuration file of a run](configuration.md#run) that comes with the project.",
        *parts,
    ))  # fmt: skip
