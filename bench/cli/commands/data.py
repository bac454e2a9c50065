"""`bench data list | info | prepare | verify`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import cast

from rich.progress import Progress
from rich.table import Table

from bench.cli.about import summary
from bench.cli.options import check_side, place
from bench.cli.terminal import to_stdout
from bench.contract.source import DataError, Source
from bench.data.attribute_groups import read_groups
from bench.data.prepare import Prepared, check_scan, prepare, verify
from bench.data.subjects import people
from bench.data.verification import check_current, checks
from bench.plugins import registry
from bench.plugins.spec import parameters, parse


def main(options: argparse.Namespace) -> int:
    """Dispatch to the verb."""
    if options.data_verb == "list":
        return _list(options)
    check_side(options.size)
    spec = registry.canonical("datasets", parse(options.name), "quick")  # as `bench run` prepares it
    source = cast(Source, registry.build("datasets", spec, "quick"))
    return {"info": _info, "prepare": _prepare, "verify": _verify}[options.data_verb](source, options)


def _list(options: argparse.Namespace) -> int:
    """Every data set, and whether its files are here."""
    roots = place(options).roots
    table = Table("name", "what it is", "files", title="data sets", title_justify="left")
    for name, entry in sorted(registry.entries("datasets").items()):
        error = registry.inspect(entry).error
        table.add_row(name, "" if error else summary(registry.load("datasets", name)), error or _here(name, roots))
    to_stdout().print(table)
    print("Say where files are with --data-root; `bench data info NAME` tells what was expected, and where to get it.")
    return 0


def _here(name: str, roots: Sequence[Path]) -> str:
    cls = registry.load("datasets", name)
    if any(field.default is MISSING and field.init for field in fields(cls)):
        return f"{name}:..., where you say"
    try:
        return cast(Source, registry.build("datasets", parse(name), "quick")).here(roots) or "not here"
    except PermissionError as error:  # of one set, which hides no other
        return f"{error.filename} may not be read"


def _info(source: Source, options: argparse.Namespace) -> int:
    print(f"{source.name}: {source.title}")
    print(f"  source: {source.source}\n  licence: {source.licence}\n  public set: {source.public}")
    print(f"  shareable: {'yes' if source.shareable else 'no: its pixels stay on this machine'}")
    for name, value in parameters(source).items():
        print(f"  {name} = {value}")
    print(f"  how to get it: {source.obtain}")
    try:
        size = options.size or source.default_size
        scan = source.scan(place(options).roots, size)
        check_scan(source, scan, size)
    except DataError as error:
        print(f"  here: no\n{str(error).replace(source.obtain, '').rstrip()}")  # how to get it stands above
        return 1
    who = people(scan.subjects)
    count = "unknown" if who.numbers is None else who.count
    print(f"  here: yes, {len(scan.labels)} rows, {count} people, findings {', '.join(scan.findings)}")
    if (told := read_groups(scan.attributes)) is not None:
        print("  groups: " + "; ".join(f"{name} ({', '.join(groups)})" for name, groups in told.named().items()))
    for note in (*scan.told, *who.notes):
        print(f"  note: {note}")
    return 0


def _prepare(source: Source, options: argparse.Namespace) -> int:
    where = place(options)
    if options.download:
        root = where.roots[0] if where.roots else Path.cwd()
        source.download(root)
        where = place(argparse.Namespace(**{**vars(options), "data_root": [*(options.data_root or ()), root]}))
    start = time.perf_counter()
    found = _prepared(source, options)
    print(f"{found.name}: {len(found)} rows of shape {found.samples.shape[1:]}, {found.skipped} corrupt left out")
    print(f"fingerprint {found.fingerprint}\nin {found.folder} ({time.perf_counter() - start:.1f} s)")
    for note in found.notes:
        print(f"note: {note}")
    return 0


def _verify(source: Source, options: argparse.Namespace) -> int:
    scan = source.scan(place(options).roots, options.size or source.default_size)
    found = _prepared(source, options)
    check_current(scan, found)
    verify(found)
    print(found.name)
    for check in checks(scan, found):
        print(f"  {check.state:8}{check.text}")
    said = {str(each) for each in scan.official}
    for note in found.notes:
        if note not in said:  # as a check that differs
            print(f"  note    {note}")
    return int(any(not each.agrees and each.is_checksum for each in scan.official))


def _prepared(source: Source, options: argparse.Namespace) -> Prepared:
    where = place(options)
    with Progress(console=to_stdout(), transient=True) as progress:
        task = progress.add_task(f"prepare {source.name}", total=None)
        return prepare(
            source,
            roots=where.roots,
            cache=where.cache,
            size=options.size,
            workers=(getattr(options, "jobs", None) or os.cpu_count() or 1),
            skip_corrupt=bool(options.skip_corrupt),
            max_pixels=options.max_pixels,
            report=lambda done, total: progress.update(task, completed=done, total=total),
        )
