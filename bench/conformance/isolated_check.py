"""The contract suite in another process, which the plug-in may crash."""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection

from bench.plugins.spec import UsageError

PATIENCE = 60.0  # seconds after which a check that goes on is named


@dataclass(frozen=True)
class PluginCheck:
    """The result of one check.

    `where` is the author's line, `trace` the traceback; both empty if it passed.
    """

    group: str
    check: str
    status: str
    detail: str
    where: str
    trace: str
    seconds: float


def check_plugin(text: str, device: str) -> Iterator[PluginCheck]:
    """Each result of the contract suite, as it comes.

    Args:
        text: A plug-in's name or FILE.py:CLASS.
        device: "auto", "cpu" or "cuda".

    Raises:
        UsageError: No plug-in has the name, or the device is not there.
    """
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
                raise UsageError(message["error"])
            group = message["group"]
            begun = message["begun"] or begun
            if message["result"] is not None:
                yield PluginCheck(group, **message["result"])
    finally:
        process.join()
    if not done:
        assert process.exitcode is not None
        how = f"signal {-process.exitcode}" if process.exitcode < 0 else f"exit code {process.exitcode}"
        detail = f"it ended the process ({how}) without an error: no check could go on"
        yield PluginCheck(group, begun, "failed", detail, "", "", 0.0)


def _wait(ours: Connection, begun: str) -> None:
    """Wait for a message or the process's end; name a hanging check."""
    since = time.monotonic()
    while not ours.poll(PATIENCE):
        print(
            f'"{begun}" goes on after {time.monotonic() - since:.0f} s: Ctrl-C ends it and shows where it is',
            file=sys.stderr,
        )


def _work(text: str, device: str, pipe: Connection) -> None:
    """Check, and send each title as it begins and each result."""
    from bench.conformance import conform
    from bench.plugins.catalogue import groups_of
    from bench.plugins.spec import parse
    from bench.workbench.machine import choose_device

    def tell(group: str, begun: str | None, result: dict[str, object] | None = None) -> None:
        pipe.send_bytes(json.dumps({"group": group, "begun": begun, "result": result}).encode())

    try:
        where = choose_device(device)
        for group in groups_of(parse(text).name):
            for result in conform(group, text, where, partial(tell, group)):
                tell(group, None, asdict(result))
        pipe.send_bytes(json.dumps({"done": True}).encode())
    except UsageError as error:
        pipe.send_bytes(json.dumps({"error": str(error)}).encode())
