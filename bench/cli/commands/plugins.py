"""`bench list`, `info`, `new` and `check`: plug-ins listed, described, begun and checked."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

from rich.table import Table
from rich.text import Text

from bench.api import running
from bench.cli.parameters import Preset, switch
from bench.cli.terminal import to_stdout
from bench.plugins.groups import Group, Kind

LONG = 5.0  # seconds of a check that are worth a note
Name = Annotated[str, switch("a plug-in's name or FILE.py:CLASS")]


def list_plugins(group: Annotated[Group | None, switch("only this group")] = None, /) -> int:
    """Print a table a group; a broken plug-in shows its reason."""
    console = to_stdout()
    for title, rows in running.list_plugins(group).items():
        table = Table("name", "what it is", "from", "state", title=title, title_justify="left")
        for row in rows:
            table.add_row(row.name, row.about, row.origin, row.state)
        console.print(table)
    return 0


def info(name: Name, /, *, preset: Preset = "quick") -> int:
    """Print what is known about every plug-in of that name."""
    print(running.info(name, preset))
    return 0


def new(
    kind: Annotated[Kind, switch("kind of plug-in, or a package")],
    name: Annotated[str, switch("its name, of a-z, 0-9 and hyphens")],
    /,
    *,
    into: Annotated[Path, switch("the folder to write to", metavar="DIR")] = Path(),
) -> int:
    """Write the files and print the next command."""
    texts = running.new(kind, name, into)
    for path in texts:
        print(path)
    if kind == "package":
        folder = shlex.quote(str(into / name))
        print(f"Next: cd {folder} && python -m pip install -e '.[dev]' && bench check {name}")
    else:
        path, text = next(iter(texts.items()))
        cls = next(line for line in text.splitlines() if line.startswith("class ")).partition("(")[0][6:]
        print(f"Next: bench check {shlex.quote(f'{path}:{cls}')}")
    return 0


def check(
    name: Name,
    /,
    *names: Name,
    device: Annotated[Literal["auto", "cpu", "cuda"], switch("the device to check on", show_default=True)] = "auto",
) -> int:
    """Print a line a check, and the first cause; 1 after failures."""
    from bench.conformance.isolated_check import PluginCheck, check_plugin

    failed: list[PluginCheck] = []
    for text in (name, *names):
        tables: dict[str, Table] = {}
        own: list[PluginCheck] = []
        for result in check_plugin(text, device):
            title = f"{text} ({result.group})"
            table = tables.setdefault(title, Table("check", "result", "detail", title=title, title_justify="left"))
            detail = f"{result.where}: {result.detail}" if result.status == "failed" and result.where else result.detail
            if result.seconds >= LONG:
                detail = f"{detail} ({result.seconds:.0f} s)".strip()
            table.add_row(result.check, result.status.replace("-", " "), Text(detail))
            own += [result] if result.status == "failed" else []
        for table in tables.values():
            to_stdout().print(table)
        for result in own[:1]:
            at = f" at {result.where}" if result.where else ""
            print(f'First cause: "{result.check}" failed{at}: {result.detail}', file=sys.stderr)
            if result.trace:
                print(result.trace, file=sys.stderr)
        failed += own
    print(f"{len(failed)} failed" if failed else "all checks passed")
    return 1 if failed else 0
