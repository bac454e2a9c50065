"""A method, an attack and a metric that misbehave as they are told: how (`mode`) and where (`place`).

A plug-in that goes on after its misdeed does so as `identity`, `chance` or a metric of its own would.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import logging
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from attacks.chance import Chance, ChanceAttacker
from bench.evidence import SetEvidence
from bench.progress import report, stage
from bench.types import Column, KeylessKey, KeylessScheme, Metric, NotApplicable, PrivacyClaim, Score
from methods.identity import Identity

LONG = 1000.0  # seconds, and longer than any run of the matrix
ODD = "../../odd\x1b[2J\x1b[31m<script>alert(1)</script>[bold red]\u202e\x07\r"
BIG = "/a'" * 10_000_000


def _raise(error: BaseException) -> None:
    raise error


def _mute() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    raise MuteError


def _endless() -> None:
    class EndlessError(Exception):
        def __str__(self) -> str:
            time.sleep(LONG)
            return ""

    raise EndlessError


def _not_applicable_subclass() -> None:
    raise type("N" * 100_000 + "\x1b[31m", (NotApplicable,), {})(ODD * 10_000)


def _busy() -> None:
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        pass


def _deaf() -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    time.sleep(LONG)


def _fork(*, go_on: bool = False, daemon: bool = False, times: int = 1) -> None:
    for _ in range(times):
        if os.fork() == 0:
            if go_on:
                return
            if daemon:
                os.setsid()
                if os.fork():
                    os._exit(0)
            with contextlib.suppress(OSError, ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(LONG)
            os._exit(0)


def _daemon_and_gone() -> None:
    _fork(daemon=True)
    os._exit(0)


def _child_that_eats() -> None:
    if os.fork() == 0:
        _eat()
    time.sleep(LONG)


def _eat() -> None:
    held = []
    while True:
        held.append(b"\1" * 20_000_000)


def _thread() -> None:
    threading.Thread(target=time.sleep, args=(LONG,)).start()


def _print_gigabyte() -> None:
    for _ in range(1024):
        os.write(1, b"x" * 2**20)


def _print_odd() -> None:
    print(ODD * 1000, ODD.encode(), file=sys.stderr)


def _write_everywhere(content: bytes) -> None:
    for descriptor in range(3, 256):
        with contextlib.suppress(OSError):
            os.set_blocking(descriptor, False)
            os.write(descriptor, content)


def _framed(message: object) -> bytes:
    content = json.dumps(message).encode()
    return len(content).to_bytes(4, "big") + content


def _close_everything() -> None:
    os.closerange(3, 256)


def _flood() -> None:
    for number in range(20_000):
        stage(f"{ODD} {number}")
        report(ODD * 100, number, 10**30)


def _patch(owner: object, name: str) -> None:
    def broken(*given: object, **named: object) -> object:
        raise RuntimeError("patched")

    setattr(owner, name, broken)


def _globals() -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    logging.disable()
    os.environ.clear()
    os.umask(0)
    os.chdir("/")
    sys.path.clear()


def _few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))


def _no_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _other_program() -> None:
    os.execv("/bin/sleep", ["sleep", str(LONG)])


def _kill_parent(what: signal.Signals) -> None:
    os.kill(os.getppid(), what)
    time.sleep(LONG)


def _recurse() -> None:
    _recurse()


ACTS: dict[str, Callable[[], object]] = {
    "raise": lambda: _raise(RuntimeError("no")),
    "raise-exit": lambda: _raise(SystemExit(0)),
    "raise-interrupt": lambda: _raise(KeyboardInterrupt()),
    "raise-base": lambda: _raise(BaseException(ODD)),
    "raise-memory": lambda: _raise(MemoryError(ODD)),
    "raise-recursion": _recurse,
    "raise-50-mb": lambda: _raise(ValueError(BIG)),
    "raise-slashes": lambda: _raise(ValueError("/" * 30_000_000)),
    "raise-odd": lambda: _raise(type("Odd\x1b[31m<b>", (ValueError,), {})(ODD + "\ud800")),
    "raise-mute": _mute,
    "raise-endless": _endless,
    "not-applicable-odd": _not_applicable_subclass,
    "hang": lambda: time.sleep(LONG),
    "busy": _busy,
    "deaf": _deaf,
    "fork-and-both-go-on": lambda: _fork(go_on=True),
    "fork-and-leave": _fork,
    "fork-50": lambda: _fork(times=50),
    "daemon": lambda: _fork(daemon=True),
    "daemon-and-gone": _daemon_and_gone,
    "subprocess": lambda: subprocess.Popen(["sleep", str(LONG)], start_new_session=True),
    "new-session": lambda: contextlib.suppress(OSError).__enter__() or os.setpgid(0, 0),
    "kill-parent": lambda: _kill_parent(signal.SIGKILL),
    "stop-parent": lambda: _kill_parent(signal.SIGSTOP),
    "kill-group": lambda: os.killpg(0, signal.SIGKILL),
    "stop-itself": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "thread": _thread,
    "exit-0": lambda: os._exit(0),
    "exit-77": lambda: os._exit(77),
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "other-program": _other_program,
    "at-exit": lambda: atexit.register(time.sleep, LONG),
    "eat-memory": _eat,
    "eat-memory-in-child": _child_that_eats,
    "print-1-gb": _print_gigabyte,
    "print-odd": _print_odd,
    "close-descriptors": _close_everything,
    "garbage": lambda: _write_everywhere(b"\xff" + os.urandom(1 << 12)),
    "half-message": lambda: _write_everywhere(_framed({"kind": "answer"})[:-3]),
    "announce-1-gb": lambda: _write_everywhere((1 << 30).to_bytes(4, "big")),
    "forged-answer": lambda: _write_everywhere(_framed({"kind": "answer", "status": "ok", "value": {"x": ODD}})),
    "pickled": lambda: _write_everywhere(pickle.dumps(_Opens())),
    "flood": _flood,
    "patch-json": lambda: _patch(json, "dumps"),
    "patch-torch": lambda: [_patch(torch, name) for name in ("randperm", "equal", "cat", "zeros")],
    "patch-os": lambda: [_patch(os, name) for name in ("write", "open", "read")],
    "globals": _globals,
    "few-descriptors": _few_descriptors,
    "no-files": _no_files,
}  # fmt: skip


class _Opens:
    """Leaves a file where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, ...]]:
        return (os.system, (f"touch {os.environ.get('HOSTILE_MARK', '/tmp')}/unpickled",))


def _nested(depth: int) -> object:
    found: object = 1
    for _ in range(depth):
        found = [found]
    return found


VALUES: dict[str, Callable[[Any], object]] = {
    "none": lambda value: None,
    "object": lambda value: object(),
    "nan": lambda value: _floats(value, float("nan")),
    "infinite": lambda value: _floats(value, float("inf")),
    "wrong-dtype": lambda value: _tensors(value, lambda rows: rows.to(torch.complex64)),
    "wrong-shape": lambda value: _tensors(value, lambda rows: rows.flatten()[:-1]),
    "empty": lambda value: _tensors(value, lambda rows: rows[:0]),
    "views": lambda value: _tensors(value, lambda rows: rows[:1].expand(rows.shape)),
    "mutation": lambda value: _tensors(value, lambda rows: rows.zero_() if rows.is_leaf else rows),
    "sparse": lambda value: _tensors(value, lambda rows: rows.to_sparse()),
    "names": lambda value: _texts(value, ODD),
    "surrogates": lambda value: _texts(value, "\ud800"),
    "long-text": lambda value: _texts(value, BIG),
    "nested": lambda value: {"deep": _nested(900)} if isinstance(value, dict) else _nested(900),
    "reduce": lambda value: {"a": _Opens()} if isinstance(value, dict) else _Opens(),
    "tensor": lambda value: {"a": torch.zeros(3)} if isinstance(value, dict) else torch.zeros(3),
    "heap": lambda value: {str(number): number for number in range(200_000)},
}  # fmt: skip
MODES = (*ACTS, *VALUES)
PLACES = ("fit", "release", "query", "notes", "claim", "attack", "metric")


def _tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> object:
    if isinstance(value, torch.Tensor):
        return change(value)
    if hasattr(value, "samples"):
        return replace(value, samples=change(value.samples))
    return {"a": change(torch.ones(2, 2))} if isinstance(value, dict) else change(torch.ones(2, 2))


def _floats(value: Any, number: float) -> object:
    if isinstance(value, Score):
        return replace(value, value=number)
    if isinstance(value, PrivacyClaim):
        return replace(value, epsilon=number, delta=number)
    return {"a": number} if isinstance(value, dict) else _tensors(value, lambda rows: torch.full_like(rows, number))


def _texts(value: Any, text: str) -> object:
    if isinstance(value, Score):
        return replace(value, note=text, parts={text: value})
    if isinstance(value, PrivacyClaim):
        return replace(value, assumptions=text, basis=text, unit=text)
    return {text: text, "a": {text: [text]}} if isinstance(value, dict) else text


def misbehave(asked: tuple[str, str], place: str, value: Callable[[], object]) -> Any:
    """What `value` gives, spoiled if this is the place."""
    mode, where = asked
    if where != place:
        return value()
    if mode in ACTS:
        ACTS[mode]()
        return value()
    return VALUES[mode](value())


@dataclass(frozen=True)
class Hostile(Identity):
    """A method that misbehaves."""

    name: ClassVar[str] = "hostile"
    role: ClassVar[None] = None
    claims: ClassVar[str] = "a bound that a test made up"
    mode: str = "raise"
    place: str = "fit"

    def fit(self, *given: Any) -> Any:
        return misbehave((self.mode, self.place), "fit", lambda: HostileScheme(Identity(), (self.mode, self.place)))

    def load(self, state: Any) -> Any:
        return HostileScheme(Identity(), (self.mode, self.place))


@dataclass(frozen=True)
class HostileScheme(KeylessScheme):
    asked: tuple[str, str]

    def sample_key(self, *given: Any) -> Any:
        return HostileKey(self.method, self.asked)

    def load_key(self, state: Any) -> Any:
        return HostileKey(self.method, self.asked)

    def notes(self) -> Any:
        return misbehave(self.asked, "notes", lambda: {"bits": 1})

    def claim(self) -> Any:
        return misbehave(self.asked, "claim", lambda: PrivacyClaim("image", 1.0, 0.0, "none", "a test"))


@dataclass(frozen=True)
class HostileKey(KeylessKey):
    asked: tuple[str, str]

    def release(self, private: Any) -> Any:
        return misbehave(self.asked, "release", lambda: super(HostileKey, self).release(private))

    def query(self, samples: Any) -> Any:
        return misbehave(self.asked, "query", lambda: samples)


@dataclass(frozen=True)
class HostileAttack(Chance):
    """An attack that misbehaves."""

    name: ClassVar[str] = "hostile"
    mode: str = "raise"

    def fit(self, view: Any, seed: Any) -> Any:
        made = super().fit(view, seed)
        return HostileAttacker(made.seed, made.candidates, self.mode)


@dataclass(frozen=True)
class HostileAttacker(ChanceAttacker):
    mode: str = "raise"

    def score(self, sealed: Any) -> Any:
        scores = super().score(sealed)
        if self.mode in ACTS:
            ACTS[self.mode]()
            return scores
        if self.mode in ("none", "object", "nested", "reduce", "tensor", "heap", "names", "surrogates", "long-text"):
            return VALUES[self.mode](scores)
        block = scores.block
        scores.block = lambda rows, cols: VALUES[self.mode](block(rows, cols))
        return scores


@dataclass(frozen=True)
class HostileMetric(Metric[SetEvidence]):
    """A metric that misbehaves."""

    name: ClassVar[str] = "hostile"
    unit: ClassVar[str] = "rows"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "a test"
    on_request: ClassVar[bool] = True
    column: ClassVar[Column] = Column("Rows", "Rows released.", "Released set", digits=0)
    mode: ClassVar[str] = "raise"

    def __call__(self, evidence: SetEvidence) -> Any:
        plain = Score(1.0, None, None, len(evidence.released), note="no interval: counted")
        return misbehave((self.mode, "metric"), "metric", lambda: plain)


METRICS = {mode: f"Metric{number}" for number, mode in enumerate(MODES)}  # a metric takes no parameters
for _mode, _name in METRICS.items():
    globals()[_name] = type(_name, (HostileMetric,), {"__doc__": _mode, "__module__": __name__, "mode": _mode})


def specs(place: str, modes: tuple[str, ...], file: Path) -> Iterator[str]:
    """The plug-ins of a place as the command line takes them."""
    for mode in modes:
        if place == "attack":
            yield f"{file}:HostileAttack[mode={mode}]"
        elif place == "metric":
            yield f"{file}:{METRICS[mode]}"
        else:
            yield f"{file}:Hostile[mode={mode},place={place}]"
