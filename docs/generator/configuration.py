"""The options of configuration files, of a run and of a user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING

from bench.data import raw_files
from bench.plugins.option import Option, defaults, flag_of
from bench.plugins.option import options as known_options
from bench.runs.run_spec import RunSpec
from bench.workbench.choice import Choice
from docs.generator.command_line import verb_path
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page, relative
from docs.generator.types import value, words

PATH = "configuration.md"


def configuration_page(targets: Mapping[str, str]) -> Page:
    """The page on configuration files."""
    prose = Prose(PATH, targets)
    rows = []
    for name, flag, kind, usual, said in run_keys():
        link = f"[`{flag}`]({relative(verb_path('run'), PATH)}#{flag.lstrip('-')})"
        rows.append((f"`{name}`", prose.line(kind), prose.line(usual), link, prose.line(said)))
    return Page(PATH, "Configuration files", join(
        "# Configuration files",
        "## Of a run {#run}",
        "`bench run --config FILE` reads a YAML file with the keys below; [suites](suites.md) are such files that come "
        "with the project. Lists are written as lists. A plug-in is written as on the command line, or with its "
        "parameters below its name. Where a key stands in the file and on the command line, the command line wins.",
        "```yaml\nmethods:\n  - identity\n  - dp-simple[scale=20]\n  - dp-simple: {scale: 10}\ndatasets: [digits]\n"
        "attacks: [chance, nearest-neighbour]\npreset: smoke\nseeds: [0, 1]\n```",
        "A list `parts` of further mappings makes one run of several: each part adds its keys to those above it, or "
        "replaces them; parts run in their order, and the command line wins over each. A list within a list stands for "
        "its entries, so that parts can share some of a list by an anchor.",
        "```yaml\npreset: smoke\nparts:\n  - {datasets: [digits], methods: [&both [identity, dp-simple], blur]}\n"
        "  - {datasets: [diabetes], methods: [*both, k-same]}\n```",
        table(("key", "type", "default", "option", "what it is"), rows),
        "## Of a user {#user}",
        "`config.yaml` in the user's configuration folder (on Linux `~/.config/veil-bench`) has one key, `data_roots`: "
        "a list of folders above the data sets.",
        prose.line((raw_files.resolve.__doc__ or "").partition("\n")[0]),
    ))  # fmt: skip


def run_keys() -> Iterator[tuple[str, str, str, str, str]]:
    """Every key of a run's configuration file: name, flag, type, default, help."""
    for cls in (Choice, RunSpec):
        usual = defaults(cls)
        for name, known in known_options(cls).items():
            kind = f"list of {words(known.kind)}" if known.many else words(known.kind)
            yield known.many or name, flag_of(name, known), kind, _usual(known, usual[name]), known.help


def _usual(known: Option, default: object) -> str:
    """The default of a missing key; empty if the help explains it."""
    if known.usual is not None:
        return value(known.usual)
    return "" if default is MISSING or default is None else value(default)
