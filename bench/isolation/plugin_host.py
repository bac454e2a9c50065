"""The process in which a plug-in works: it builds the plug-in, then answers what the judge asks, one thing at a time.

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

from bench.checkpoint import save_checkpoints
from bench.contract.seal import ContractError, check
from bench.determinism import exact, register
from bench.isolation.method_proxy import KnownMethod, Relay
from bench.isolation.remote_method import RemoteScheme
from bench.isolation.rpc_codec import MESSAGE_BYTES, Generators, Handle, Learned, Value, pack, raise_told, told, unpack
from bench.memory.memory_budget import Budget
from bench.plugins.chosen import choose, to_fit
from bench.plugins.groups import Group
from bench.plugins.trespass import vetted
from bench.progress import LOGGER, Forwarder
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

ASKED: Mapping[type, frozenset[str]] = {
    Method: frozenset({"fit", "load"}),
    Scheme: frozenset({"state", "claim", "accounts", "notes", "mechanism", "sample_key", "load_key", "load_generator"}),
    Key: frozenset({"release", "query", "decode", "classifier", "state", "own"}),
    Generator: frozenset({"sample"}),
    Mechanism: frozenset({
        "exact", "rowwise", "scale", "fence", "locate", "observe", "witnesses", "log_density", "noise", "stopped",
    }),
    Attack: frozenset({"fit"}),
    Attacker: frozenset({"score", "membership", "notes"}),
    PairScores: frozenset({"shape", "block", "factors"}),
}  # fmt: skip
"""What of an object may be asked for, by the type of the contract that it has."""
EXPECTED = NotApplicable, ContractError, TensorsError, MemoryError
OWN = ("query", "decode", "classifier")


Exchange = Callable[[dict[str, JsonValue]], dict[str, JsonValue]]
"""Sends the judge a question, and waits for the answer."""


class Inside:
    """The objects of this process, and what is done with them."""

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
        """What becomes of a request: {"number", "ok"} or {"number", "error"}."""
        number = self._asked = cast(int, request["number"])
        try:
            values = [self._unpacked(part) for part in cast("list[JsonValue]", request["with"])]
            found = self._ask(cast("int | None", request["whom"]), str(request["what"]), values)
            packed = self._packed(self._shown(found))
        except BaseException as error:  # whatever a plug-in raises becomes an answer; the log has the rest
            if not isinstance(error, EXPECTED):
                traceback.print_exc()
            return {"number": number, "error": told(error)}
        return {"number": number, "ok": packed}

    def _packed(self, value: Value) -> JsonValue:
        """A value as JSON, its tensors in the file that goes with the question being answered."""
        beside: dict[str, torch.Tensor] = {}

        def keep(part: torch.Tensor) -> JsonValue:
            name = f"t{len(beside)}"
            beside[name] = part
            return name

        packed = pack(value, keep)
        if beside:
            pack_tensors(beside, self._folder / "out" / f"{self._asked}.safetensors")
        return packed

    def forget(self, numbers: Sequence[int]) -> None:
        """Let objects go that the judge asks for no more."""
        for number in numbers:
            self._objects.pop(number, None)

    def _ask(self, whom: int | None, what: str, values: Sequence[Value]) -> Value:
        if what == "hold":
            return self._held(cast(Dataset, values[0]), "Dataset")
        if whom is None:
            plugin = _plugin(self._group, self._spec, self._preset)
            if isinstance(plugin, Attack):
                public, learned, candidates, control, seed = values
                scheme = self._scheme(cast(Learned, learned))
                view = View(cast(Dataset, public), scheme, cast(Dataset, candidates), cast(Dataset, control))
                return plugin.fit(view, cast(int, seed))
            target: object = to_fit(plugin) if what == "fit" else plugin
        else:
            target = self._objects[whom]
        allowed = next((names for kind, names in ASKED.items() if isinstance(target, kind)), frozenset())
        if what == "call" and callable(target):
            return target(*values)
        if what == "fetch":
            return self._objects.pop(cast(int, whom))
        if what not in allowed:
            raise ContractError(f"nobody may ask {type(target).__name__} for {what}")
        if what == "own":  # of what a key may leave as it is
            return [name for name in OWN if getattr(type(target), name) is not getattr(Key, name)]
        found = getattr(target, what)
        if what == "block":
            top, bottom, left, right = cast("list[int]", values)
            values = [slice(top, bottom), slice(left, right)]
        if isinstance(target, Method) and what == "fit":
            with save_checkpoints(self._folder / "kept", earlier=self._folder / "in"):
                return target.fit(cast(Dataset, values[0]), cast(int, values[1]))
        result = found(*values) if callable(found) else found
        if isinstance(target, Key) and what == "release":
            return self._checked(result, cast(Dataset, values[0]))
        return result

    def _scheme(self, learned: Learned) -> Scheme:
        """The scheme that Eve knows: loaded here, or asked by the judge in a process of its own."""
        if learned.method is None:
            self._known: Scheme = RemoteScheme(KnownMethod(Relay(self._relayed)), learned.state)
        else:
            self._known = choose("methods", learned.method, self._preset, here=True).plugin.load(learned.state)
        return self._known

    def _relayed(self, whom: Handle | None, what: str, values: Sequence[Value], generator: Generators | None) -> Value:
        """What comes of a question to the judge, who waits for an answer of this process meanwhile."""
        gone: list[JsonValue] = []
        while self._forgotten:
            gone.append(self._forgotten.pop())
        found = self._exchange({
            "asks": what, "whom": None if whom is None else whom.number, "with": self._packed(list(values)),
            "forgot": gone,
        })  # fmt: skip
        if "error" in found:
            raise_told(found["error"])
        value = unpack(found["ok"], self._find, generator or self._known.load_generator)
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
        return value if kind is None else self._held(value, kind)

    def _held(self, value: object, kind: str) -> Handle:
        number = next(self._numbers)
        self._objects[number] = value
        return Handle(number, kind)

    def _checked(self, result: object, private: Dataset) -> Handle:
        """A release that stays here until it is fetched: its way to the judge is no part of the time that it takes."""
        if not isinstance(result, Release):
            raise ContractError(f"a key must release a Release, got {type(result).__name__}")
        check(result, private)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return self._held(result, "Release")


def main() -> NoReturn:
    """Answer until the judge is gone."""
    gc.freeze()
    gc.enable()
    group, spec, preset, device, threads, requests, answers, folder, memory = sys.argv[1:]
    vetted()
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

    inside = Inside(cast(Group, group), spec, preset, exact(device), Path(folder), int(memory), exchange)
    while True:
        select.select([reading], [], [])
        try:
            for request in list(reader.messages()):  # to the end: what answers one reads others
                if "forget" in request:
                    inside.forget(cast("list[int]", request["forget"]))
                else:
                    _reply(writing, inside.answer(request))
        except EOFError:
            sys.exit(0)


def _plugin(group: Group, spec: str, preset: str) -> Method | Attack:
    if group == "methods":
        return choose("methods", spec, preset, here=True).plugin
    return choose("attacks", spec, preset, here=True).plugin


def _reply(writing: int, answer: dict[str, JsonValue]) -> None:
    try:
        send(writing, answer, MESSAGE_BYTES)
    except WireError as error:
        said = f"what a plug-in hands over must be plain JSON of bounded size: {error}"
        send(writing, {"number": answer["number"], "error": ["contract", said]}, MESSAGE_BYTES)


def _end_with_judge(reading: int) -> None:
    """End this process when the other end of its line is closed, also while a plug-in computes."""
    watch = select.poll()
    watch.register(reading, 0)  # only what is always told: that the line is broken
    watch.poll()
    os._exit(1)
