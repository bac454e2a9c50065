"""Host process of a plug-in: builds it, then answers calls in order.

Started by `bench.isolation.room`. Neither rows nor secrets are here before they are handed over, and
owner, benchmark and release ask in the same words.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import resource
import select
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

import torch
from pydantic import JsonValue

from bench import room_side
from bench.checkpoint import save_checkpoints
from bench.contract.seal import ContractError, check
from bench.determinism import exact, register
from bench.isolation import rpc_codec
from bench.isolation.call_shape import UNDECLARED
from bench.isolation.method_proxy import JudgeLine, KnownMethod
from bench.isolation.remote_method import RemoteScheme
from bench.isolation.rpc_codec import Generators, Handle, Learned, Value, pack, raise_told, told, unpack
from bench.memory.memory_budget import Budget
from bench.plugins.configured import configure, to_fit
from bench.plugins.groups import Group
from bench.plugins.registry import inhabit
from bench.progress import LOGGER, Forwarder
from bench.room_side import MESSAGE_BYTES, refuse_debugger
from bench.types import (
    Attack,
    Attacker,
    Dataset,
    Generator,
    Key,
    Mechanism,
    Method,
    NotApplicable,
    PairScores,
    Release,
    Scheme,
    View,
)
from bench.wire.message import Reader, WireError, send
from bench.wire.tensor_file import TensorsError, pack_tensors, read_tensor

KINDS = (Method, Scheme, Key, Generator, Mechanism, Attack, Attacker, PairScores)
ASKED: Mapping[type, tuple[str, ...]] = {kind: rpc_codec.ASKED[kind.__name__] for kind in KINDS}
"""Names that may be called, by the type of the contract."""
EXPECTED = NotApplicable, ContractError, TensorsError, MemoryError


Exchange = Callable[[dict[str, JsonValue]], dict[str, JsonValue]]
"""Sends the judge a call, and waits for the answer."""


class PluginHost:
    """The objects of this process, and the calls to them."""

    def __init__(
        self, group: Group, spec: str, preset: str, device: torch.device, folder: Path, memory: int,
        exchange: Exchange,
    ) -> None:  # fmt: skip
        self._exchange, self._asked, self._forgotten = exchange, 0, list[int]()
        self._budget = Budget(memory, folder / "out") if memory else None
        self._group, self._spec, self._preset = group, spec, preset
        self._device, self._folder = device, folder
        self._objects: dict[int, object] = {}
        self._numbers = itertools.count(1)

    def answer(self, request: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The answer to a request: {"number", "ok"} or {"number", "error"}."""
        number = self._asked = cast(int, request["number"])
        try:
            values = [self._unpacked(part) for part in cast("list[JsonValue]", request["with"])]
            result = self._ask(cast("int | None", request["whom"]), str(request["what"]), values)
            packed = self._packed(self._shown(result))
        except BaseException as error:  # any error of a plug-in becomes an answer; the log has its trace
            if not isinstance(error, EXPECTED):
                traceback.print_exc()
            return {"number": number, "error": told(error)}
        return {"number": number, "ok": packed}

    def _packed(self, value: Value) -> JsonValue:
        """A value as JSON; its tensors go into the answer's file."""
        tensors: dict[str, torch.Tensor] = {}

        def keep(part: torch.Tensor) -> JsonValue:
            name = f"t{len(tensors)}"
            tensors[name] = part
            return name

        packed = pack(value, keep)
        if tensors:
            pack_tensors(tensors, self._folder / "out" / f"{self._asked}.safetensors")
        return packed

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop objects that the judge no longer uses."""
        for number in numbers:
            self._objects.pop(number, None)

    def _ask(self, target: int | None, name: str, values: Sequence[Value]) -> Value:
        if name == "hold":
            return self._handle(cast(Dataset, values[0]), "Dataset")
        if target is None:
            plugin = _plugin(self._group, self._spec, self._preset)
            if isinstance(plugin, Attack):
                public, learned, candidates, control, seed, trained, profile, known, queries, *others = values
                scheme = self._scheme(cast(Learned, learned))
                view = View(
                    cast(Dataset, public), scheme, cast(Dataset, candidates), cast(Dataset, control),
                    cast(int, trained), cast(str, profile), cast("Dataset | None", known), cast(int, queries),
                    _loaded(cast(Learned, others[0]), self._preset) if others else None,
                )  # fmt: skip
                return plugin.fit(view, cast(int, seed))
            callee: object = to_fit(plugin) if name == "fit" else plugin
        else:
            callee = self._objects[target]
        allowed = next((names for kind, names in ASKED.items() if isinstance(callee, kind)), ())
        if name == "call" and callable(callee):
            return callee(*values)
        if name == "fetch":
            return self._objects.pop(cast(int, target))
        if name not in allowed:
            raise ContractError(f"{name} of a {type(callee).__name__} may not be called")
        if name == "own":  # the functions that a key overrides, or a mechanism has
            of, usual = type(callee), Key if isinstance(callee, Key) else object
            return [own for own in room_side.OWN if getattr(of, own, None) is not getattr(usual, own, None)]
        attribute = getattr(callee, name)
        if name == "block":
            top, bottom, left, right = cast("list[int]", values)
            values = [slice(top, bottom), slice(left, right)]
        if isinstance(callee, Method) and name == "fit":
            with save_checkpoints(self._folder / "kept", earlier=self._folder / "in"):
                return callee.fit(cast(Dataset, values[0]), cast(int, values[1]))
        result = attribute(*values) if callable(attribute) else attribute
        if isinstance(callee, Key) and name == "release":
            return self._checked(result, cast(Dataset, values[0]))
        return result

    def _scheme(self, learned: Learned) -> Scheme:
        """The scheme Eve knows, loaded here or called through the judge."""
        if learned.method is None:
            self._known: Scheme = RemoteScheme(KnownMethod(JudgeLine(self._relayed)), learned.state)
        else:
            self._known = _loaded(learned, self._preset)
        return self._known

    def _relayed(
        self, target: Handle | None, name: str, values: Sequence[Value], generator: Generators | None
    ) -> Value:
        """Call the judge, who awaits this process's answer meanwhile."""
        dropped: list[JsonValue] = []
        while self._forgotten:
            dropped.append(self._forgotten.pop())
        answer = self._exchange({
            "asks": name, "whom": None if target is None else target.number, "with": self._packed(list(values)),
            "forgot": dropped,
        })  # fmt: skip
        if "error" in answer:
            raise_told(answer["error"])
        value = unpack(answer["ok"], self._find, generator or self._known.load_generator)
        if isinstance(value, Handle):
            weakref.finalize(value, self._forgotten.append, value.number).atexit = False
        return value

    def _unpacked(self, part: JsonValue) -> Value:
        value = unpack(part, self._find, lambda state: self._known.load_generator(state))
        return self._objects[value.number] if isinstance(value, Handle) else value

    def _find(self, place: JsonValue) -> torch.Tensor:
        number, name = cast("list[JsonValue]", place)
        path = self._folder / "in" / f"{number}.safetensors"
        return read_tensor(path, str(name), self._budget).to(self._device)  # the file itself stays as it is

    def _shown(self, value: Value) -> Value:
        """The value, or a handle for an object that stays here."""
        if isinstance(value, Handle):
            return value
        kind = next((kind.__name__ for kind in ASKED if isinstance(value, kind)), None)
        if kind is None and callable(value):
            kind = "Classifier"
        return value if kind is None else self._handle(value, kind)

    def _handle(self, value: object, kind: str) -> Handle:
        number = next(self._numbers)
        self._objects[number] = value
        return Handle(number, kind)

    def _checked(self, result: object, private: Dataset) -> Handle:
        """Check a release and keep it here: transfer is not timed."""
        if not isinstance(result, Release):
            raise ContractError(f"a key must release a Release, got {type(result).__name__}")
        if private.labels is None and isinstance(result.labels, torch.Tensor) and result.labels.numel():
            raise ContractError(UNDECLARED)
        check(result, private)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return self._handle(result, "Release")


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer calls until the judge is gone."""
    gc.freeze()
    gc.enable()
    group, spec, preset, device, threads, requests, answers, folder, memory = arguments
    sys.breakpointhook = refuse_debugger
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.set_num_threads(int(threads))
    register()
    reading, writing = int(requests), int(answers)
    reader = Reader(reading, MESSAGE_BYTES)
    threading.Thread(target=_end_with_judge, args=(reading,), daemon=True).start()
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    LOGGER.addHandler(
        Forwarder(lambda name, done, total: send(writing, {"progress": [name, done, total]}, MESSAGE_BYTES))
    )

    def exchange(message: dict[str, JsonValue]) -> dict[str, JsonValue]:
        send(writing, message, MESSAGE_BYTES)
        while True:
            select.select([reading], [], [])
            for answer in list(reader.messages()):  # no more than one is due
                return answer

    host = PluginHost(cast(Group, group), spec, preset, exact(device), Path(folder), int(memory), exchange)
    while True:
        select.select([reading], [], [])
        try:
            for request in list(reader.messages()):  # all of them: answering one may read others
                if "forget" in request:
                    host.forget(cast("list[int]", request["forget"]))
                else:
                    _reply(writing, host.answer(request))
        except EOFError:
            sys.exit(0)


def host(task: Mapping[str, JsonValue]) -> NoReturn:
    """Host a plug-in of `bench.types` for `bench.room_side`."""
    inhabit({(cast(Group, task["group"]), str(task["name"])): str(task["target"])})
    names = ("group", "spec", "preset", "device", "threads", "requests", "answers", "folder", "memory")
    main([str(task[name]) for name in names])


def _loaded(learned: Learned, preset: str) -> Scheme:
    """The scheme of a method of this project."""
    assert learned.method is not None
    return configure("methods", learned.method, preset, here=True).plugin.load(learned.state)


def _plugin(group: Group, spec: str, preset: str) -> Method | Attack:
    if group == "methods":
        return configure("methods", spec, preset, here=True).plugin
    return configure("attacks", spec, preset, here=True).plugin


def _reply(writing: int, answer: dict[str, JsonValue]) -> None:
    try:
        send(writing, answer, MESSAGE_BYTES)
    except WireError as error:
        reason = f"what a plug-in hands over must be plain JSON of bounded size: {error}"
        send(writing, {"number": answer["number"], "error": ["contract", reason]}, MESSAGE_BYTES)


def _end_with_judge(reading: int) -> None:
    """End this process when the judge closes its end."""
    watch = select.poll()
    watch.register(reading, 0)  # reports a broken connection, and nothing else
    watch.poll()
    os._exit(1)
