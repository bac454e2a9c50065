"""The options of configuration files: those of a run (`--config`, suites) and those of a user."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import get_type_hints

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import bench.cli
import bench.cli.options
from bench.data import roots
from docs.generator.command_line import anchor, options, subcommands, verb_path
from docs.generator.docstrings import arguments
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page, relative
from docs.generator.types import default, value, words

PATH = "configuration.md"
_ENOUGH = {"methods", "datasets", "attacks"}  # what tells the options of a run from other classes


def configuration_page(targets: Mapping[str, str]) -> Page:
    """The page on configuration files."""
    prose = Prose(PATH, targets)
    flags = {option.dest: option for option in options(subcommands(bench.cli.parser())["run"])}
    helps = arguments(run_options())
    rows = []
    for name, kind, usual in run_keys():
        flag = flags.get(name.removesuffix("s")) or flags.get(name)
        said = helps.get(name) or (flag.help if flag and flag.help else "")
        link = ""
        if flag:
            link = f"[`{flag.option_strings[0]}`]({relative(verb_path('run'), PATH)}#{anchor(flag)})"
        rows.append((f"`{name}`", prose.line(kind), prose.line(usual), link, prose.line(said.replace("%%", "%"))))
    return Page(PATH, "Configuration files", join(
        "# Configuration files",
        "## Of a run {#run}",
        "`bench run --config FILE` reads a YAML file with the keys below; [suites](suites.md) are such files that come "
        "with the project. Lists are written as lists. A plug-in is written as on the command line, or with its "
        "parameters below its name. Where a key stands in the file and on the command line, the command line wins.",
        "```yaml\nmethods:\n  - identity\n  - dp-simple[scale=20]\n  - dp-simple: {scale: 10}\ndatasets: [digits]\n"
        "attacks: [chance, nearest-neighbour]\npreset: smoke\nseeds: [0, 1]\n```",
        table(("key", "type", "default", "option", "what it is"), rows),
        "## Of a user {#user}",
        "`config.yaml` in the user's configuration folder (on Linux `~/.config/veil-bench`) has one key, `data_roots`: "
        "a list of folders above the data sets.",
        prose.line((roots.resolve.__doc__ or "").partition("\n")[0]),
    ))  # fmt: skip


def run_options() -> type:
    """The class that holds the options of a run, wherever `bench.cli.options` has it from.

    Raises:
        LookupError: No class there has methods, datasets and attacks among its fields, or several have.
    """
    classes = {cls for cls in vars(bench.cli.options).values() if isinstance(cls, type)}
    models = [cls for cls in classes if issubclass(cls, BaseModel) and set(cls.model_fields) >= _ENOUGH]
    frozen = [cls for cls in classes if dataclasses.is_dataclass(cls) and set(_names(cls)) >= _ENOUGH]
    found = models or frozen
    if len(found) != 1:
        raise LookupError(
            f"expected one class in bench.cli.options with the fields {sorted(_ENOUGH)}, got "
            f"{sorted(cls.__name__ for cls in found)}: tell docs.generator.configuration which it is"
        )
    return found[0]


def run_keys() -> Iterator[tuple[str, str, str]]:
    """Every key of a run's configuration file: name, type and default in words."""
    cls = run_options()
    if issubclass(cls, BaseModel):
        for name, info in cls.model_fields.items():
            usual = "required" if info.default is PydanticUndefined else value(info.default)
            yield name, words(info.annotation), usual
    else:
        hints = get_type_hints(cls)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            yield field.name, words(hints[field.name]), default(field)


def _names(cls: type) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]
