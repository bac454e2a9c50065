"""The judge's side of a plug-in's process, whose answers are all checked."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import select
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

import torch
from pydantic import JsonValue

from bench.contract.seal import ContractError
from bench.isolation.room_folder import KeptTraining, new_folder, remove
from bench.isolation.rpc_codec import (
    CallBack,
    Generators,
    Handle,
    RefusedError,
    UnlikeError,
    Value,
    pack,
    raise_told,
    told,
    unpack,
)
from bench.isolation.tenant import Tenant
from bench.plugins.spec import parse
from bench.progress import report, stage
from bench.room_side import MESSAGE_BYTES
from bench.sandbox import ROOM, confined, end, environment
from bench.types import NotApplicable
from bench.wire.message import Reader, WireError, send
from bench.wire.tensor_file import TensorsError, pack_tensors, unpack_tensors

TENSOR_BYTES = 1 << 34
LOOK_SECONDS = 1.0
LINGER_SECONDS = 5.0
PROGRESS_CHARACTERS = 200
HINTS: Mapping[int, str] = {
    signal.SIGKILL: " (out of memory?)",
    signal.SIGSYS: " (a program of 32 bits? The sandbox's filter of system calls runs none: use one of 64 bits)",
}
"""What a signal usually means."""
ERRORS = 2  # the descriptor that plug-ins print to
PART_BYTES, MOST_CHUNKS = 1 << 16, 16
# Most of a process's start is the import of torch, an eighth faster without garbage collection.
START = "import gc, sys; gc.disable(); from bench.isolation.plugin_host import main; main(sys.argv[1:])"


class DiedError(Exception):
    """A plug-in's process ended or broke the protocol; the text says how."""


class Room:
    """A running process; `close` ends it and its children."""

    def __init__(self, tenant: Tenant) -> None:
        self._device, self._budget = torch.device(tenant.device), tenant.budget
        self._folder, self._lock = new_folder(tenant.folder)
        theirs, self._write = os.pipe()
        self._read, answers = os.pipe()
        # Always the same descriptors and place, so that a process cannot tell a benchmark from a release.
        requests, replies = (fcntl.fcntl(end, fcntl.F_DUPFD, wanted) for end, wanted in ((theirs, 200), (answers, 201)))
        place = ROOM if tenant.sandbox else str(self._folder)
        command = _command(tenant, requests, replies, place)
        if tenant.sandbox:
            command = confined(
                command, folder=self._folder, files=tenant.files, device=tenant.device, hidden=tenant.hidden,
                interpreter=tenant.interpreter, root=tenant.root,
            )  # fmt: skip
        self._output, prints = os.pipe()  # of its own: rooms could read and count what others write into a shared log
        try:
            with os.fdopen(prints, "wb", buffering=0) as printer:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=printer, stderr=printer, pass_fds=(requests, replies),
                    cwd=self._folder, env=environment(sandbox=tenant.sandbox), start_new_session=not tenant.sandbox,
                )  # fmt: skip
        finally:
            for end in (theirs, answers, requests, replies):
                os.close(end)
        self._reader = Reader(self._read, MESSAGE_BYTES)
        self._numbers = itertools.count()
        self._forgotten: list[int] = []
        self.open = self._prints = True
        self.proxy: CallBack | None = None

    @property
    def process(self) -> int:
        """The id of the process, or of its sandbox."""
        return self._process.pid

    def ask(
        self, target: Handle | None, name: str, *values: Value, generator: Generators | None = None,
        training: KeptTraining | None = None,
    ) -> Value:  # fmt: skip
        """Call an object of the other process.

        Args:
            target: The object; None for the plug-in itself.
            name: Its function or property.
            values: Arguments.
            generator: Makes a release's generator of its state, if one may come.
            training: Storage of the checkpoints of a training that begins now.

        Raises:
            NotApplicable, ContractError, ValueError, MemoryError: As the plug-in raised them.
            OutsideError: It raised another error.
            DiedError: Its process ended or broke the protocol.
        """
        if not self.open:
            raise DiedError("the plug-in's process has ended")
        self._let_go()
        number = next(self._numbers)
        packed, file = self._packed(list(values), str(number))
        number_of_target = None if target is None else target.number
        try:
            if training is not None:
                training.hand_over(self._folder / "in")
            send(self._write, {"number": number, "whom": number_of_target, "what": name, "with": packed}, MESSAGE_BYTES)
            answer = self._wait(number, training)
            if "error" in answer:
                self._raise(answer["error"])
            return self._unpacked(answer.get("ok"), number, generator)
        except (BrokenPipeError, EOFError):
            self._died()
        except (WireError, TensorsError) as error:
            self.close()
            raise DiedError(f"the plug-in's process sent an invalid answer: {error}") from error
        finally:
            file.unlink(missing_ok=True)
            if self.open:
                (self._folder / "out" / f"{number}.safetensors").unlink(missing_ok=True)

    def _raise(self, error: JsonValue) -> NoReturn:
        """Raise the process's error, or RefusedError after a method's refusal."""
        try:
            raise_told(error)
        except NotApplicable as reason:
            if self.proxy is not None and self.proxy.refused:
                raise RefusedError(str(reason)) from None
            raise

    def close(self) -> None:
        """End the process and its children, and remove the exchanged files."""
        if not self.open:
            return
        self.open = False
        os.close(self._write)
        end(self._process)
        for _ in range(MOST_CHUNKS):
            if not self._pass_output(0.0):
                break
        os.close(self._output)
        os.close(self._read)
        remove(self._folder)
        os.close(self._lock)

    def _let_go(self) -> None:
        """Tell the process which of its objects are no longer used."""
        dropped: list[JsonValue] = []
        while self._forgotten:
            dropped.append(self._forgotten.pop())
        if dropped:
            with contextlib.suppress(BrokenPipeError):  # the next call reports it
                send(self._write, {"forget": dropped}, MESSAGE_BYTES)

    def _wait(self, number: int, training: KeptTraining | None) -> dict[str, JsonValue]:
        """The answer with that number; progress is passed on meanwhile."""
        while True:
            self._pass_output(LOOK_SECONDS)
            self._check_files(number)
            if training is not None:
                training.take(self._folder / "kept")
            for message in self._reader.messages():
                if "progress" in message:
                    _pass_on(message["progress"])
                elif message.get("number") == number:
                    return message
                elif "asks" in message and self.proxy is not None:
                    self._answer(self.proxy, message, number)
                else:
                    raise WireError("not-json", "an answer came to no question")

    def _pass_output(self, seconds: float) -> bool:
        """Pass on a part of the printed output; True if any.

        Waits that long for some, or for an answer.
        """
        ready, _, _ = select.select([self._read, *([self._output] if self._prints else [])], [], [], seconds)
        if self._output not in ready:
            return False
        part = os.read(self._output, PART_BYTES)
        self._prints = part != b""
        sys.stderr.flush()
        with contextlib.suppress(OSError):  # the judge's own output is closed, or full
            os.write(ERRORS, part)
        return self._prints

    def _answer(self, proxy: CallBack, message: Mapping[str, JsonValue], number: int) -> None:
        """Answer a call that the process makes during question `number`."""
        proxy.forget([key for key in cast("list[object]", message.get("forgot")) if isinstance(key, int)])
        try:
            values = self._unpacked(message.get("with"), number, proxy.generator)
            target = cast("int | None", message.get("whom"))
            result = proxy.ask(target, str(message["asks"]), cast("Sequence[Value]", values))
            packed, _ = self._packed(result, f"{number}-answer")
            answer: dict[str, JsonValue] = {"ok": packed}
        except (DiedError, UnlikeError, WireError, TensorsError):
            raise
        except Exception as error:
            answer = {"error": told(error)}
        (self._folder / "out" / f"{number}.safetensors").unlink(missing_ok=True)
        send(self._write, answer, MESSAGE_BYTES)

    def _packed(self, value: Value, name: str) -> tuple[JsonValue, Path]:
        """A value as JSON, and the file with its tensors, if any."""
        tensors: dict[str, torch.Tensor] = {}

        def keep(part: torch.Tensor) -> JsonValue:
            tensors[f"t{len(tensors)}"] = part
            return [name, f"t{len(tensors) - 1}"]

        packed, file = pack(value, keep), self._folder / "in" / f"{name}.safetensors"
        if tensors:
            file.unlink(missing_ok=True)  # of the previous answer, which was read
            pack_tensors(tensors, file)
        return packed, file

    def _check_files(self, number: int) -> None:
        """Raise TensorsError for any file but the answer's in the process's folder."""
        with os.scandir(self._folder / "out") as entries:
            for entry in entries:
                if entry.name != f"{number}.safetensors" or not entry.is_file(follow_symlinks=False):
                    raise TensorsError("a plug-in's process may write the file that it answers with, and no other")
                if entry.stat(follow_symlinks=False).st_size > TENSOR_BYTES:
                    raise TensorsError(f"a plug-in may hand over {TENSOR_BYTES >> 30} GiB at once")

    def _unpacked(self, content: JsonValue, number: int, generator: Generators | None) -> Value:
        tensors: dict[str, torch.Tensor] = {}

        def find(place: JsonValue) -> torch.Tensor:
            if not tensors:
                path = self._folder / "out" / f"{number}.safetensors"
                tensors.update(unpack_tensors(path, TENSOR_BYTES, self._budget))
            return tensors[cast(str, place)].to(self._device)

        def make(state: Mapping[str, torch.Tensor]) -> Value:
            if generator is None:
                raise ContractError("a generator came that was not asked for")
            return generator(state)

        try:
            value = unpack(content, find, make)
        except FileNotFoundError:
            raise WireError("not-json", "named tensors did not come") from None
        if isinstance(value, Handle):
            weakref.finalize(value, self._forgotten.append, value.number).atexit = False
        return value

    def _died(self) -> NoReturn:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LINGER_SECONDS)
        code = self._process.poll()
        self.close()
        if code is None:
            raise DiedError("the plug-in's process closed its connection")
        number = -code if code < 0 else code - 128 if code > 128 else 0  # bubblewrap passes a signal on as 128 + n
        known = number in set(signal.Signals)
        cause = signal.Signals(number).name if known else f"exit code {code}"
        raise DiedError(f"the plug-in's process died: {cause}{HINTS.get(number, '')}")


def _command(tenant: Tenant, requests: int, answers: int, place: str) -> list[str]:
    """The command of a room, by this interpreter or the plug-in's own."""
    threads, memory = torch.get_num_threads(), tenant.memory or 0
    if tenant.environment is None:
        words = (tenant.group, tenant.spec, tenant.preset, tenant.device, threads, requests, answers, place, memory)
        return [sys.executable, "-u", "-P", "-c", START, *map(str, words)]
    task = {
        **tenant.environment.task(tenant.group, parse(tenant.spec), tenant.preset), "mode": "serve",
        "device": tenant.device, "threads": threads, "requests": requests, "answers": answers, "folder": place,
        "memory": memory,
    }  # fmt: skip
    return tenant.environment.command(task)


def _pass_on(progress: JsonValue) -> None:
    """Report the progress of the process here."""
    if isinstance(progress, list) and len(progress) == 3:
        name, done, total = progress
        if isinstance(name, str) and isinstance(done, int) and isinstance(total, int):
            short = name[:PROGRESS_CHARACTERS]
            report(short, done, total) if total else stage(short)
