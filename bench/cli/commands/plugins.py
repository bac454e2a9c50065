"""`bench list`, `info`, `new`, `check` and `plugin`: commands on plug-ins."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.table import Table
from rich.text import Text

from bench.api import running
from bench.cli.parameters import RESULTS, DataRoots, Format, Preset, switch
from bench.cli.terminal import print_json, to_stdout, unheard, waiting
from bench.plugins.groups import Group, New
from bench.plugins.spec import UsageError, parse
from bench.wire.text import shown

if TYPE_CHECKING:
    from bench.conformance.isolated_check import PluginCheck

LONG = 5.0  # seconds of a check that are worth a note
TRY = "bench run --dataset digits --preset smoke"
NEXT = {
    "method": f"{TRY} --method {{}} --attack nearest-neighbour --attack relational",
    "attack": f"{TRY} --method blur --attack {{}} --metric guesswork --metric reid-auc --controls",
    "metric": f"{TRY} --method blur --attack none --metric {{}}",
    "dataset": "bench run --dataset {} --preset smoke --method blur --attack none",
    "evaluator": f"{TRY} --method blur --attack none --evaluator {{0}} --metric {{0}}Share",
}
"""A command that leads a new plug-in to a column or a row of a page, by its kind."""
Name = Annotated[str, switch("a plug-in's name or FILE.py:CLASS")]


def list_plugins(
    group: Annotated[Group | None, switch("only this group")] = None, /, *, form: Format = "text"
) -> int:  # fmt: skip
    """Print a table a group; a broken plug-in shows its reason."""
    if form == "json":
        print_json(plugins=[{"group": title, **asdict(row)} for title, rows in running.list_plugins(group).items()
                            for row in rows])  # fmt: skip
        return 0
    console = to_stdout()
    for title, rows in running.list_plugins(group).items():
        table = Table("name", "what it is", "from", "state", title=title, title_justify="left")
        for row in rows:
            table.add_row(row.name, row.about, row.origin, row.state)
        console.print(table)
    return 0


def info(
    name: Annotated[str | None, switch("a plug-in's name or FILE.py:CLASS; without one, this machine")] = None, /, *,
    preset: Preset = "quick", form: Format = "text",
) -> int:  # fmt: skip
    """Print every plug-in of that name, or this machine."""
    if name is None:
        facts = running.machine_facts()
        if form == "json":
            print_json(machine=facts)
            return 0
        for title, value in facts.items():
            written = ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
            if written is not None:
                print(f"{title.removesuffix('_gib').replace('_', ' ')}: {shown(str(written))}", end="")
                print(" GiB" if title.endswith("_gib") else "")
        return 0
    if form == "json":
        print_json(plugins=[asdict(each) for each in running.details(name, preset)])
        return 0
    print(running.info(name, preset))
    return 0


def new(
    kind: Annotated[New, switch("kind of plug-in, a package, or an example of a release by another tool")],
    name: Annotated[str, switch("its name, of a-z, 0-9 and hyphens")],
    /,
    *,
    into: Annotated[Path, switch("the folder to write to", metavar="DIR")] = Path(),
) -> int:
    """Write the files and print the next command."""
    texts = running.new(kind, name, into)
    if kind == "release-folder":
        written = into / name
        print(f"{written}: {len(texts)} files")
        print(f"Next: bench check {shlex.quote(f'imported[path={written}]')} --dataset digits")
        return 0
    for path in texts:
        print(path)
    if kind == "package":
        folder = shlex.quote(str(into / name) if into != Path() else f"./{name}")  # a bare name may be an index's
        print(f"Next: bench plugin add {folder} && bench check {name}")
    else:
        path, cls = next(iter(texts)), running.class_name(name)
        print(f"Next: bench check {shlex.quote(f'{path}:{cls}')}")
        print(f"Then: {NEXT[kind].format(shlex.quote(f'{path}:{cls}'))}")
        if kind == "method":
            print(f"For a row of the board, with every attack: {TRY} --method {shlex.quote(f'{path}:{cls}')}")
    return 0


def check(
    name: Name,
    /,
    *names: Name,
    device: Annotated[Literal["auto", "cpu", "cuda"], switch("the device to check on", show_default=True)] = "auto",
    dataset: Annotated[str | None, switch("data set of the raw rows of imported[path=FOLDER]", metavar="NAME")] = None,
    size: Annotated[int | None, switch("side in pixels of its images", metavar="PIXELS")] = None,
    data_root: DataRoots = (),
    pdb: Annotated[
        bool, switch("check in this process, print what it prints, and open the debugger where a check fails")
    ] = False,
    junit: Annotated[Path | None, switch("also write the results as JUnit XML", metavar="FILE")] = None,
    form: Format = "text",
) -> int:
    """Print a line a check, and the first cause; 1 after failures.

    Of imported[path=FOLDER] the folder is checked, and its layout printed.
    """
    from bench.cli.debugger import open_debugger
    from bench.cli.junit import write_junit
    from bench.conformance.isolated_check import check_here, check_plugin
    from bench.conformance.release_folders import LAYOUT, RawRows, check_folder, is_recorded

    raw = None if dataset is None else RawRows(dataset, running.open_place(RESULTS, data_root), size)
    folders = [text for text in (name, *names) if is_recorded(text) and "[" in text]
    recorded = [text for text in (name, *names) if is_recorded(text)]
    if raw is not None and not recorded:
        raise UsageError("--dataset names the raw rows of a release by another tool: check imported[path=FOLDER]")
    if pdb and form == "json":
        raise UsageError("--pdb is for a terminal, and --format json for scripts: leave one of them out")

    def results(text: str) -> Iterator[PluginCheck]:
        if text in folders:
            yield from check_folder(text, raw)
        elif pdb:
            yield from check_here(text, device, open_debugger)
        else:
            yield from check_plugin(text, device)

    found: dict[str, list[PluginCheck]] = {}
    for text in dict.fromkeys((name, *names)):
        with nullcontext(unheard) if pdb else waiting(f"check {text}", messages=False) as hear:
            own = found[text] = []
            for one in results(text):
                own.append(one)
                hear(f"check {text}: done with {one.check!r}", 0, 0)
        if form == "text":
            _print_checks(text, found[text])
    failed = [(text, one) for text, own in found.items() for one in own if one.status == "failed"]
    if junit is not None:
        write_junit(junit, found)
    if form == "json":
        print_json(checks=[{"plugin": text, **asdict(one)} for text, own in found.items() for one in own],
                   failed=len(failed))  # fmt: skip
        return 1 if failed else 0
    if recorded:
        print(f"The layout of a folder for {parse(recorded[0]).name}:\n\n{LAYOUT.partition(chr(10))[2].strip(chr(10))}")
    print(f"{len(failed)} failed" if failed else "all checks passed")
    for text in folders:
        if not any(text == other for other, _ in failed):
            data = shlex.join(["--dataset", dataset]) if dataset is not None else "--dataset NAME"
            print(f"Next: bench run --method {shlex.quote(text)} {data} --preset first-look")
    return 1 if failed else 0


def _print_checks(text: str, results: Sequence[PluginCheck]) -> None:
    """A table a group, and the first cause of a failure."""
    tables: dict[str, Table] = {}
    for result in results:
        title = f"{text} ({result.group})"
        table = tables.setdefault(title, Table("check", "result", "detail", title=title, title_justify="left"))
        detail = f"{result.where}: {result.detail}" if result.status == "failed" and result.where else result.detail
        if result.seconds >= LONG:
            detail = f"{detail} ({result.seconds:.0f} s)".strip()
        table.add_row(result.check, result.status.replace("-", " "), Text(detail))
    for table in tables.values():
        to_stdout().print(table)
    first = next((result for result in results if result.status == "failed"), None)
    if first is not None:
        at = f" at {first.where}" if first.where else ""
        print(f'First cause: "{first.check}" failed{at}: {first.detail}', file=sys.stderr)
        if first.trace:
            print(first.trace, file=sys.stderr)


def add(
    *words: Annotated[str, switch("packages, folders or wheels as pip takes them, and files of Python", name="WHAT")],
    python: Annotated[
        str | None,
        switch("interpreter of the environment; with no packages to install, it is used as it is", metavar="PATH"),
    ] = None,
    root: Annotated[
        str | None,
        switch(
            "folder of an unpacked container image, the root of its rooms; --python is then a path in it "
            "(/usr/bin/python3 if it is not given)",
            metavar="FOLDER",
        ),
    ] = None,
    repo: Annotated[
        str | None,
        switch(
            "checkout of the authors' code that the file, an adapter, runs; it is copied as committed", metavar="PATH"
        ),
    ] = None,
    commit: Annotated[
        str | None, switch("commit of the checkout to take; by default what is checked out", metavar="COMMIT")
    ] = None,
    name: Annotated[str | None, switch("name of the environment")] = None,
    alone: Annotated[
        bool, switch("share no package with the benchmark, such as torch; --python implies it", negative="")
    ] = False,
    isolation: Annotated[
        Literal["sandbox", "processes"],
        switch("where setup code of packages runs; processes: with your rights", show_default=True),
    ] = "sandbox",
) -> int:
    """Print each plug-in that was found."""
    from bench.plugins.environment_build import Wanted
    from bench.plugins.environment_build import add as add_environment

    wanted = Wanted.of(
        words, python=python, alone=alone, sandbox=isolation == "sandbox", root=root, repo=repo, commit=commit
    )
    made = add_environment(wanted, name, lambda text: print(text, flush=True))
    print(f"added as {made.name} (environment {made.manifest.digest}, {made.manifest.python})")
    return 0


def list_added(name: Annotated[str | None, switch("only this environment")] = None, /) -> int:
    """Print a table of the environments."""
    from bench.plugins import environments
    from bench.plugins.spec import UsageError

    table = Table("name", "plug-ins", "interpreter", "environment", "added", "state")
    known = environments.known() if name is None else {name: environments.read(name)}
    for each, found in known.items():
        if isinstance(found, UsageError):
            table.add_row(each, "", "", "", "", str(found))
            continue
        try:
            found.check()
            state = "ready"
        except UsageError as error:
            state = str(error)
        made = found.manifest
        shown = ", ".join(f"{plugin.name} ({plugin.group})" for plugin in made.plugins)
        table.add_row(each, shown, made.python, made.digest, made.added[:10], state)
    to_stdout().print(table)
    for each, found in known.items():
        if not isinstance(found, UsageError) and found.manifest.repository is not None:
            print(each, *found.manifest.repository.told(), sep="\n  ")
    print(f"in {environments.root()}")
    return 0


def remove(name: Annotated[str, switch("name of the environment")], /) -> int:
    """Remove one environment."""
    from bench.plugins import environment_build

    environment_build.remove(name)
    print(f"removed {name}")
    return 0
