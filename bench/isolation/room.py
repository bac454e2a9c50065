"""A process in which a plug-in works, seen from the judge: it is asked one thing at a time, and believed nothing."""

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
    MESSAGE_BYTES,
    Answering,
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
from bench.progress import report, stage
from bench.sandbox import ROOM, confined, end, environment
from bench.types import NotApplicable
from bench.wire.message import Reader, WireError, send
from bench.wire.tensor_file import TensorsError, pack_tensors, unpack_tensors

TENSOR_BYTES = 1 << 34
LOOK_SECONDS = 1.0
LINGER_SECONDS = 5.0
PROGRESS_CHARACTERS = 200
# Most of a process's start is torch, which is imported an eighth faster where nothing looks for garbage meanwhile.
START = "import gc; gc.disable(); from bench.isolation.plugin_host import main; main()"


class DiedError(Exception):
    """A plug-in's process ended, or spoke another language; the text says how."""


class Room:
    """A running process; `close` ends it and all that it started."""

    def __init__(self, tenant: Tenant) -> None:
        self._device, self._budget = torch.device(tenant.device), tenant.budget
        self._folder, self._lock = new_folder(tenant.folder)
        theirs, self._write = os.pipe()
        self._read, answers = os.pipe()
        # The same numbers and the same place whatever is asked for: nothing tells a benchmark from a release.
        requests, replies = (fcntl.fcntl(end, fcntl.F_DUPFD, wanted) for end, wanted in ((theirs, 200), (answers, 201)))
        place = ROOM if tenant.sandbox else str(self._folder)
        command = [
            sys.executable, "-u", "-P", "-c", START, tenant.group, tenant.spec, tenant.preset,
            tenant.device, str(torch.get_num_threads()), str(requests), str(replies), place, str(tenant.memory or 0),
        ]  # fmt: skip
        if tenant.sandbox:
            command = confined(command, folder=self._folder, files=tenant.files, device=tenant.device)
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=(requests, replies), cwd=self._folder,
                env=environment(sandbox=tenant.sandbox), start_new_session=not tenant.sandbox,
            )  # fmt: skip
        finally:
            for end in (theirs, answers, requests, replies):
                os.close(end)
        self._reader = Reader(self._read, MESSAGE_BYTES)
        self._numbers = itertools.count()
        self._forgotten: list[int] = []
        self.open = True
        self.errands: Answering | None = None

    @property
    def process(self) -> int:
        """The number of the process, or of the sandbox that it runs in."""
        return self._process.pid

    def ask(
        self, whom: Handle | None, what: str, *values: Value, generator: Generators | None = None,
        training: KeptTraining | None = None,
    ) -> Value:  # fmt: skip
        """What an object of the other process gives when it is called.

        Args:
            whom: The object; None for the plug-in itself.
            what: Its function or property.
            values: Arguments.
            generator: Makes a release's generator of its state, where one may come.
            training: What was kept of a training that begins now, and where more of it is kept.

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
        whom_number = None if whom is None else whom.number
        try:
            if training is not None:
                training.hand_over(self._folder / "in")
            send(self._write, {"number": number, "whom": whom_number, "what": what, "with": packed}, MESSAGE_BYTES)
            answer = self._wait(number, training)
            if "error" in answer:
                self._raise(answer["error"])
            return self._understood(answer.get("ok"), number, generator)
        except (BrokenPipeError, EOFError):
            self._died()
        except (WireError, TensorsError) as error:
            self.close()
            raise DiedError(f"the plug-in's process sent what nobody can read: {error}") from error
        finally:
            file.unlink(missing_ok=True)
            if self.open:
                (self._folder / "out" / f"{number}.safetensors").unlink(missing_ok=True)

    def _raise(self, error: JsonValue) -> NoReturn:
        """Raise what the process told; where a method had refused what it asked for, that may be the reason."""
        try:
            raise_told(error)
        except NotApplicable as reason:
            if self.errands is not None and self.errands.refused:
                raise RefusedError(str(reason)) from None
            raise

    def close(self) -> None:
        """End the process and everything that it started, and remove what was handed over."""
        if not self.open:
            return
        self.open = False
        os.close(self._write)
        end(self._process)
        os.close(self._read)
        remove(self._folder)
        os.close(self._lock)

    def _let_go(self) -> None:
        """Tell the process which of its objects nobody can ask for any more: it keeps neither them nor their files."""
        gone: list[JsonValue] = []
        while self._forgotten:
            gone.append(self._forgotten.pop())
        if gone:
            with contextlib.suppress(BrokenPipeError):  # the question that follows tells
                send(self._write, {"forget": gone}, MESSAGE_BYTES)

    def _wait(self, number: int, training: KeptTraining | None) -> dict[str, JsonValue]:
        """The answer with that number; what is said of progress on the way is passed on."""
        while True:
            select.select([self._read], [], [], LOOK_SECONDS)
            self._look_out(number)
            if training is not None:
                training.take(self._folder / "kept")
            for message in self._reader.messages():
                if "progress" in message:
                    _pass_on(message["progress"])
                elif message.get("number") == number:
                    return message
                elif "asks" in message and self.errands is not None:
                    self._run(self.errands, message, number)
                else:
                    raise WireError("not-json", "an answer came that nobody had asked for")

    def _run(self, errands: Answering, message: Mapping[str, JsonValue], number: int) -> None:
        """Answer what the process asks while it is asked question `number`; either side's tensors go when read."""
        errands.forget([each for each in cast("list[object]", message.get("forgot")) if isinstance(each, int)])
        try:
            values = self._understood(message.get("with"), number, errands.generator)
            whom = cast("int | None", message.get("whom"))
            found = errands.ask(whom, str(message["asks"]), cast("Sequence[Value]", values))
            packed, _ = self._packed(found, f"{number}-answer")
            answer: dict[str, JsonValue] = {"ok": packed}
        except (DiedError, UnlikeError, WireError, TensorsError):
            raise
        except Exception as error:
            answer = {"error": told(error)}
        (self._folder / "out" / f"{number}.safetensors").unlink(missing_ok=True)
        send(self._write, answer, MESSAGE_BYTES)

    def _packed(self, value: Value, name: str) -> tuple[JsonValue, Path]:
        """A value as JSON, and the file with its tensors, if it has any."""
        beside: dict[str, torch.Tensor] = {}

        def keep(part: torch.Tensor) -> JsonValue:
            beside[f"t{len(beside)}"] = part
            return [name, f"t{len(beside) - 1}"]

        packed, file = pack(value, keep), self._folder / "in" / f"{name}.safetensors"
        if beside:
            file.unlink(missing_ok=True)  # of the answer before, which was read by now
            pack_tensors(beside, file)
        return packed, file

    def _look_out(self, number: int) -> None:
        """Raise TensorsError where the process has put more into its folder than the file that it answers with."""
        with os.scandir(self._folder / "out") as entries:
            for entry in entries:
                if entry.name != f"{number}.safetensors" or not entry.is_file(follow_symlinks=False):
                    raise TensorsError("a plug-in's process may write the file that it answers with, and no other")
                if entry.stat(follow_symlinks=False).st_size > TENSOR_BYTES:
                    raise TensorsError(f"a plug-in may hand over {TENSOR_BYTES >> 30} GiB at once")

    def _understood(self, found: JsonValue, number: int, generator: Generators | None) -> Value:
        tensors: dict[str, torch.Tensor] = {}

        def find(place: JsonValue) -> torch.Tensor:
            if not tensors:
                path = self._folder / "out" / f"{number}.safetensors"
                tensors.update(unpack_tensors(path, TENSOR_BYTES, self._budget))
            return tensors[cast(str, place)].to(self._device)

        def made(state: Mapping[str, torch.Tensor]) -> Value:
            if generator is None:
                raise ContractError("a generator came where none may be")
            return generator(state)

        try:
            value = unpack(found, find, made)
        except FileNotFoundError:
            raise WireError("not-json", "tensors were named that did not come") from None
        if isinstance(value, Handle):
            weakref.finalize(value, self._forgotten.append, value.number).atexit = False
        return value

    def _died(self) -> NoReturn:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LINGER_SECONDS)
        code = self._process.poll()
        self.close()
        if code is None:
            raise DiedError("the plug-in's process closed its end of the line")
        number = -code if code < 0 else code - 128 if code > 128 else 0  # bubblewrap passes a signal on as 128 + n
        known = number in set(signal.Signals)
        cause = signal.Signals(number).name if known else f"exit code {code}"
        hint = " (out of memory?)" if number == signal.SIGKILL else ""
        raise DiedError(f"the plug-in's process died: {cause}{hint}")


def _pass_on(said: JsonValue) -> None:
    """Progress, as if it were said here."""
    if isinstance(said, list) and len(said) == 3:
        name, done, total = said
        if isinstance(name, str) and isinstance(done, int) and isinstance(total, int):
            short = name[:PROGRESS_CHARACTERS]
            report(short, done, total) if total else stage(short)
