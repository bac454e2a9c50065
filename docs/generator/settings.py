"""Pages of configuration files, presets, suites, schema, and a board's cost."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import bench
from bench.contract.preset import PRESETS, Preset
from bench.data import raw_files
from bench.plugins.spec import defaults, flag_of
from bench.plugins.spec import options as known_options
from bench.results import records
from bench.results.record_parts import Part
from bench.results.records import Record
from bench.runs.cost import costs, hours_on
from bench.runs.run_spec import RunSpec
from bench.workbench.choice import Choice
from docs.generator.command_line import verb_path
from docs.generator.markdown import Page, escape, join, relative, shown, table
from leaderboard.packed_rows import published_results
from leaderboard.published import PUBLISHED

SUITES = Path(bench.__file__).parent / "suites"
RECORD = "record.schema.json"
ROWS = (10_000, 50_000, 100_000)
WORKERS = (1, 10, 50, 200)


def settings_pages() -> list[Page]:
    """The pages, and the schema of records as a file."""
    schema = json.dumps(records.json_schema(), indent=2, sort_keys=True) + "\n"
    return [_configuration(), _presets(), _suites(), _cost(), _records(), Page(RECORD, "", schema)]


def _configuration() -> Page:
    path, rows = "configuration.md", []
    for name, flag, usual, text in run_keys():
        link = f"[`{flag}`]({relative(verb_path('run'), path)}#{flag.lstrip('-')})"
        rows.append((f"`{name}`", escape(usual), link, escape(text)))
    return Page(path, "Configuration files", join(
        "# Configuration files",
        "## Of a run {#run}",
        "`bench run --config FILE` reads a YAML file with the keys below; [suites](suites.md) are such files that come "
        "with the project. Lists are written as lists. A plug-in is written as on the command line, or with its "
        "parameters below its name. The command line overrides the file.",
        "```yaml\nmethods:\n  - identity\n  - dp-simple[scale=20]\n  - dp-simple: {scale: 10}\ndatasets: [digits]\n"
        "attacks: [chance, nearest-neighbour]\npreset: smoke\nseeds: [0, 1]\n```",
        "A list `parts` of mappings combines several runs in one: each part adds to or replaces the keys above it. "
        "Parts run in their order, and the command line overrides each. A list within a list is flattened, so that "
        "parts can share entries by an anchor.",
        "```yaml\npreset: smoke\nparts:\n  - {datasets: [digits], methods: [&both [identity, dp-simple], blur]}\n"
        "  - {datasets: [diabetes], methods: [*both, k-same]}\n```",
        table(("key", "default", "option", "what it is"), rows),
        "## Of a user {#user}",
        "`config.yaml` in the user's configuration folder (on Linux `~/.config/veil-bench`) has one key, `data_roots`: "
        "a list of folders above the data sets.",
        escape((raw_files.resolve.__doc__ or "").partition("\n")[0]),
    ))  # fmt: skip


def run_keys() -> Iterator[tuple[str, str, str, str]]:
    """Name, flag, default and help of every key of a configuration."""
    for cls in (Choice, RunSpec):
        usual = defaults(cls)
        for name, known in known_options(cls).items():
            default = usual[name] if known.usual is None else known.usual
            text = "" if default is dataclasses.MISSING or default is None else shown(default)
            yield known.many or name, flag_of(name, known), text, known.help


def _presets() -> Page:
    rows = [(f"`{field.name}`", *(shown(getattr(preset, field.name)) for preset in PRESETS.values()))
            for field in dataclasses.fields(Preset)]  # fmt: skip
    return Page("presets.md", "Presets", join(
        "# Presets",
        "The page of each method and attack lists its own sizes by preset; the command line overrides both.",
        table(("size", *PRESETS), rows),
        f"::: {Preset.__module__}.Preset\n    options:\n      members: false",
    ))  # fmt: skip


def _suites() -> Page:
    parts = []
    for path in sorted(SUITES.glob("*.yaml")):
        lines = path.read_text(encoding="utf-8").splitlines()
        comment = " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
        content = "\n".join(line for line in lines if not line.startswith("#"))
        parts += [f"## {path.stem} {{#{path.stem}}}", escape(comment), f"```sh\nbench run --suite {path.stem}\n```",
                  f"```yaml\n{content}\n```"]  # fmt: skip
    introduction = "A suite is a [configuration file of a run](configuration.md#run) that comes with the project."
    return Page("suites.md", "Suites", join("# Suites", introduction, *parts))


def _records() -> Page:
    options = "    options:\n      heading_level: 2\n      show_root_heading: true\n      filters: ['!^_']"
    return Page("records.md", "Records", join(
        "# Records",
        "Every outcome is a record: one JSON file for each evaluator of each cell, with sorted keys. An evaluator that "
        "failed or does not apply has a record too, with the reason. Pages and tables are built only from records.",
        f'For programs: <a href="{RECORD}">{RECORD}</a>, the JSON Schema that every record follows.',
        f"::: {records.Record.__module__}.Record\n{options}",
        f"::: {Part.__module__}\n{options}",
    ))  # fmt: skip


@cache
def _published() -> tuple[Record, ...]:
    """Read once, for MkDocs asks for the pages more than once."""
    return tuple(one for _, one in published_results(PUBLISHED).records() if isinstance(one, Record))


def _cost() -> Page:
    """Hours of every evaluator by size and workers, from published records."""
    by_size = {size: costs(_published(), size) for size in ROWS}
    paper, least = PRESETS["paper"], PRESETS["first-look"]
    cells = len({record.cell for record in _published()})
    rows = [
        (f"`{each.kind}`", each.device, str(each.jobs), f"{each.rows:,}", f"{each.seconds:.1f}",
         f"{each.growth:.2f}" if each.fitted else "1 (one size only)",
         *(f"{one.hours:.1f}" for some in by_size.values() for one in some
           if (one.kind, one.device) == (each.kind, each.device)))
        for each in by_size[ROWS[0]]
    ]  # fmt: skip
    whole = ("all", "", str(sum(each.jobs for each in by_size[ROWS[0]])), "", "", "",
             *(f"{sum(each.hours for each in some):.1f}" for some in by_size.values()))  # fmt: skip
    head = ("evaluator", "device", "jobs", "at rows", "seconds a job", "grows as rows to the",
            *(f"hours at {size:,} rows" for size in ROWS))  # fmt: skip
    workers = [(str(count), *(f"{hours_on(some, count):.1f}" for some in by_size.values())) for count in WORKERS]
    return Page("cost.md", "What a board costs", join(
        "# What a board costs",
        f"Computed from the seconds of the {len(_published()):,} published records ({cells} cells), as `bench status "
        "--cost --results leaderboard/published --rows 50000 --workers 50` does for any folder: for each evaluator, "
        "the median of its jobs at their largest size, extrapolated as a power of the number of private rows. The "
        "exponent is fitted if there are records of several sizes, and is 1 otherwise.",
        table(head, [*rows, whole]),
        "Shortest wall-clock time in hours for a number of equal workers; a job runs on one worker.",
        table(("workers", *(f"at {size:,} rows" for size in ROWS)), workers),
        "This extrapolates only the number of rows. A preset changes more: "
        f"`paper` trains decoders for {paper.decoder_steps:,} steps and "
        f"Bob for {paper.bob_steps:,}, while `first-look`, the preset of most of these records, takes "
        f"{least.decoder_steps:,} and {least.bob_steps:,}. So these hours are a lower bound; a job is stopped after "
        f"{paper.timeout / 3600:.0f} hours. Run your plan at two sizes for a better estimate. Fitting a method is a "
        "job of its own and is not included.",
        "To spread the work: [Run on several machines](how-to/run-on-several-machines.md).",
    ))  # fmt: skip
