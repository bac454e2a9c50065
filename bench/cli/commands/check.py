"""`bench check NAME`: run the contract suite over a plug-in, in a process of its own, up to the first cause."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

LONG = 5.0  # seconds of a check that are said
PATIENCE = 60.0  # seconds after which it is said that a check goes on


def main(options: argparse.Namespace) -> int:
    """Print a line a check, and the first cause with the author's line; 1 if any failed."""
    from bench.cli.terminal import to_stdout

    failed = [result for text in options.name for result in _checked(text, options.device, to_stdout())]
    print(f"{len(failed)} failed" if failed else "all checks passed")
    return 1 if failed else 0


def _checked(text: str, device: str, console: Console) -> list[dict[str, Any]]:
    """Print what becomes of a plug-in's checks, and give those that failed."""
    tables: dict[str, Table] = {}
    failed = []
    for group, result in _told(text, device):
        table = tables.get(group)
        if table is None:
            table = tables[group] = Table("check", "result", "detail", title=f"{text} ({group})", title_justify="left")
        detail = result["detail"]
        if result["status"] == "failed":
            failed.append(result)
            detail = f"{result['where']}: {detail}" if result["where"] else detail
        if result["seconds"] >= LONG:
            detail = f"{detail} ({result['seconds']:.0f} s)".strip()
        table.add_row(result["check"], result["status"].replace("-", " "), Text(detail))
    for table in tables.values():
        console.print(table)
    for result in failed[:1]:
        at = f" at {result['where']}" if result["where"] else ""
        print(f'First cause: "{result["check"]}" failed{at}: {result["detail"]}', file=sys.stderr)
        if result["trace"]:
            print(result["trace"], file=sys.stderr)
    return failed


def _told(text: str, device: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each result, from a process that a plug-in may end, or crash."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(text, device, theirs))
    process.start()
    theirs.close()
    group, begun, done = "methods", "loads", False
    try:
        while not done:
            _wait(ours, begun)
            try:
                message = json.loads(ours.recv_bytes())
            except EOFError:
                break
            if message.get("done"):
                done = True
                continue
            if "error" in message:
                from bench.plugins.spec import UsageError

                raise UsageError(message["error"])
            group = message["group"]
            begun = message["begun"] or begun
            if message["result"] is not None:
                yield group, message["result"]
    finally:
        process.join()
    if not done:
        assert process.exitcode is not None
        how = f"signal {-process.exitcode}" if process.exitcode < 0 else f"exit code {process.exitcode}"
        detail = f"it ended the process ({how}) without an error: no check could go on"
        yield group, {"check": begun, "status": "failed", "detail": detail, "where": "", "trace": "", "seconds": 0.0}


def _wait(ours: Connection, begun: str) -> None:
    """Until the other process says something or ends; what hangs is named meanwhile."""
    since = time.monotonic()
    while not ours.poll(PATIENCE):
        print(
            f'"{begun}" goes on after {time.monotonic() - since:.0f} s: Ctrl-C ends it and shows where it is',
            file=sys.stderr,
        )


def _work(text: str, device: str, pipe: Connection) -> None:
    """What the other process does: check, and tell each title as it begins and each result."""
    from bench.cli.about import groups_of
    from bench.conformance import conform
    from bench.plugins.spec import UsageError, parse
    from bench.workbench.machine import choose_device

    def tell(group: str, begun: str | None, result: dict[str, Any] | None = None) -> None:
        pipe.send_bytes(json.dumps({"group": group, "begun": begun, "result": result}).encode())

    try:
        where = choose_device(device)
        for group in groups_of(parse(text).name):
            for result in conform(group, text, where, partial(tell, group)):
                tell(group, None, asdict(result))
        pipe.send_bytes(json.dumps({"done": True}).encode())
    except UsageError as error:
        pipe.send_bytes(json.dumps({"error": str(error)}).encode())
