"""An attack and a method that look for what they must not see, and say in their notes what they found."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import psutil
from torch import Tensor

from bench.pairs.score_matrices import CosineScores
from bench.types import Attack, Attacker, Dataset, Key, Method, PairScores, Release, Scheme, State, View, paired

SCRATCH = (Path("/tmp"), Path("/dev/shm"))
PLACES = (*(place for place in Path(__file__).parents if place not in SCRATCH), Path(sys.prefix), Path("/usr"))
"""Folders that no plug-in may write."""
HOMES = ("home", "root", "work", "mnt", "srv", "var", "data", "etc", "tmp", "run", "opt")


def found(canary: str) -> dict[str, str]:
    """What this process can reach that it must not."""
    return {what: text for what, text in _looks(canary) if text}


def _looks(canary: str) -> Iterator[tuple[str, str]]:
    yield "canary", next((str(path) for path in _files() if path.name == canary), "")
    yield "network", _reached(("127.0.0.1", int(os.environ.get("OMP_SPIED_PORT", "9"))))
    frames, frame = [], sys._getframe()
    while frame is not None:
        frames += [name for name in frame.f_locals if name in ("bench", "links", "order", "run_secret")]
        frame = frame.f_back  # type: ignore[assignment]
    yield "frames", " ".join(frames)
    yield "others", " ".join(str(each) for each in psutil.pids() if each not in _own())
    yield "secrets", " ".join(name for name in os.environ if "SECRET" in name or "BENCH" in name)
    yield "written", _written()


def _own() -> set[int]:
    me = psutil.Process()
    return {1, me.pid, *(each.pid for each in me.parents())}


def _files() -> Iterator[Path]:
    for home in HOMES:
        for folder, inner, names in os.walk(f"/{home}"):
            inner[:] = [name for name in inner if "site-packages" not in name and name != "lib"]
            yield from (Path(folder, name) for name in names)


def _reached(address: tuple[str, int]) -> str:
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError:
        return ""
    return f"{address}"


def _written() -> str:
    for place in PLACES:
        try:
            (place / "spied").write_text("here")
        except OSError:
            continue
        (place / "spied").unlink()
        return str(place)
    return ""


@dataclass(frozen=True)
class Spy(Attack):
    """Scores by pixels, and looks around."""

    name: ClassVar[str] = "spy"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "whatever it can get"
    canary: str = "canary"

    def fit(self, view: View, seed: int) -> Spying:
        view.candidates.samples.add_(1)  # its own rows alone
        return Spying(view, self.canary)


@dataclass(frozen=True, eq=False)
class Spying(Attacker):
    view: View
    canary: str

    def score(self, sealed: Release) -> PairScores:
        if sealed.links is not None:
            raise AssertionError("links")
        return CosineScores(self.view.candidates.samples.flatten(1) - 1, sealed.samples.flatten(1))

    def notes(self) -> Mapping[str, str]:
        return found(self.canary)


@dataclass(frozen=True)
class SpyMethod(Method):
    """Releases raw rows, and looks around while it does."""

    name: ClassVar[str] = "spy-method"
    source: ClassVar[str] = "a test"
    canary: str = "canary"

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return SpyScheme(found(self.canary), self.canary)

    def load(self, state: State) -> Scheme:
        return SpyScheme({}, self.canary)


@dataclass(frozen=True)
class SpyScheme(Scheme):
    saw: Mapping[str, str]
    canary: str
    seen: list[str] = field(default_factory=list)

    def sample_key(self, secret: object) -> Key:
        return SpyKey(self)

    def load_key(self, state: State) -> Key:
        return SpyKey(self)

    def notes(self) -> Mapping[str, str]:
        return {**found(self.canary), **self.saw}


@dataclass(frozen=True)
class SpyKey(Key):
    scheme: SpyScheme

    def release(self, private: Dataset) -> Release:
        if saw := found(self.scheme.canary):
            raise AssertionError(f"{saw}")
        private.samples.mul_(1)
        return paired(private.samples, private.labels)

    def query(self, samples: Tensor) -> Tensor:
        return samples

    def state(self) -> State:
        return {}
