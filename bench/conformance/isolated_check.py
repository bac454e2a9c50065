"""The contract suite in another process, which the plug-in may crash."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import cast

from pydantic import JsonValue

from bench.plugins import registry
from bench.plugins.environments import Environment
from bench.plugins.groups import Group
from bench.plugins.spec import PluginSpec, UsageError, parse
from bench.plugins.third_party import environment_of, files_of
from bench.room_side import refuse_debugger
from bench.sandbox import confined, why_not
from bench.sandbox import environment as room_variables
from bench.shadowing import without_script

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
    spec = parse(text)
    environment = environment_of("methods", spec) or environment_of("attacks", spec)
    ours, ended = _begun(text, device) if environment is None else _begun_in(environment, spec, device)
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
        code = ended()
    if not done:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        detail = f"it ended the process ({how}) without an error: no check could go on"
        yield PluginCheck(group, begun, "failed", detail, "", "", 0.0)


def check_here(text: str, device: str, raised: Callable[[BaseException], None]) -> Iterator[PluginCheck]:
    """The same in this process, where a debugger reaches the plug-in.

    Args:
        text, device: As for `check_plugin`.
        raised: Told what a failed check raised, while its frames live.

    Raises:
        UsageError: As `check_plugin`; or the plug-in is in an environment of its own, which no debugger reaches.
    """
    from bench.conformance import conform
    from bench.plugins.catalogue import groups_of
    from bench.workbench.machine import choose_device

    spec = parse(text)
    if environment_of("methods", spec) or environment_of("attacks", spec):
        raise UsageError(f"{text} is in an environment of its own, where no debugger reaches it: name FILE.py:CLASS")
    for group in groups_of(spec.name):
        for result in conform(group, text, choose_device(device), raised=raised):
            yield PluginCheck(group, **asdict(result))


def _begun(text: str, device: str) -> tuple[Connection, Callable[[], int]]:
    """Connection to a process that checks a plug-in, and its exit code."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(text, device, theirs))
    with without_script():
        process.start()
    theirs.close()

    def ended() -> int:
        process.join()
        return process.exitcode or 0

    return ours, ended


def _begun_in(environment: Environment, spec: PluginSpec, device: str) -> tuple[Connection, Callable[[], int]]:
    """The same in a room of the plug-in's environment."""
    group: Group = "methods" if environment_of("methods", spec) is not None else "attacks"
    environment.check()
    reading, writing = os.pipe()
    task = {**environment.task(group, spec, "smoke"), "mode": "check", "device": device, "answer": writing}
    command, sandbox = environment.command(task), why_not() is None
    environment.check_confined(sandbox=sandbox)
    if sandbox:
        command = confined(
            command, folder=None, files=tuple(files_of(group, spec)), device="cuda" if device == "cuda" else "cpu",
            interpreter=environment.interpreter_files, root=environment.manifest.root,
        )  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=(writing,), env=room_variables(sandbox=sandbox),
        start_new_session=True,
    )  # fmt: skip
    os.close(writing)
    return Connection(reading, writable=False), process.wait


def _wait(ours: Connection, begun: str) -> None:
    """Wait for a message or the process's end; name a hanging check."""
    since = time.monotonic()
    while not ours.poll(PATIENCE):
        print(
            f'"{begun}" goes on after {time.monotonic() - since:.0f} s: Ctrl-C ends it and shows where it is',
            file=sys.stderr,
        )


def host(task: Mapping[str, JsonValue]) -> None:
    """Check a plug-in of `bench.types` for `bench.room_side`."""
    registry.inhabit({(cast(Group, task["group"]), str(task["name"])): str(task["target"])})
    work(str(task["spec"]), str(task["device"]), Connection(cast(int, task["answer"]), readable=False))


def work(text: str, device: str, pipe: Connection) -> None:
    """Check, and send each title as it begins and each result."""
    from bench.conformance import conform
    from bench.plugins.catalogue import groups_of
    from bench.workbench.machine import choose_device

    sys.breakpointhook = refuse_debugger

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
