"""A method whose releasing process tells its querying one some bits, by channels that two processes may share."""

# ruff: noqa: PTH116, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import sys
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.types import Dataset, Key, Method, Release, Scheme, State, paired

BITS = 5_200
LOCK = struct.Struct("hhqqi")
MARK = b"whispered: "
_open: list[object] = []


def bits(seed: int) -> torch.Tensor:
    """What is told: a classifier of digits takes as many bits."""
    return torch.randint(0, 2, (BITS,), generator=torch.Generator().manual_seed(seed))


def tell(channel: str, told: torch.Tensor) -> None:
    if channel == "locks":  # of bytes far beyond the end of a file of Python
        file = open(os.__file__, "rb")  # noqa: SIM115
        _open.append(file)
        for place in told.nonzero()[:, 0].tolist():
            fcntl.fcntl(file, fcntl.F_SETLK, LOCK.pack(fcntl.F_RDLCK, 0, (1 << 40) + place, 1, 0))
    elif channel == "flock":
        for place, name in zip(told.tolist(), _files(), strict=False):
            if place:
                _open.append(open(name, "rb"))  # noqa: SIM115
                fcntl.flock(_open[-1], fcntl.LOCK_SH)  # type: ignore[arg-type]
    elif channel == "output":  # a log that the judge keeps
        os.write(2, MARK + bytes(48 + told.to(torch.uint8)) + b"\n")
    elif channel == "counter":  # of open files of the whole machine
        _open.extend(os.dup(0) for _ in range(500))
        _open.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(5_000))
    elif channel == "times":
        os.utime("/dev/null", (int(told[:30].dot(2 ** torch.arange(30))), 0))
    elif channel == "evicted":
        for place, name in zip(told.tolist(), _files(), strict=False):
            with open(name, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED if place else os.POSIX_FADV_DONTNEED)


def hear(channel: str) -> torch.Tensor:
    """Bits (5,200,); -1 for those that were not heard."""
    heard = torch.full((BITS,), -1)
    if channel == "locks":
        with open(os.__file__, "rb") as file:
            for place in range(BITS):
                asked = LOCK.pack(fcntl.F_WRLCK, 0, (1 << 40) + place, 1, 0)
                kind = LOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))[0]
                heard[place] = int(kind != fcntl.F_UNLCK)
    elif channel == "flock":
        for place, name in enumerate(_files()):
            with open(name, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    heard[place] = 0
                except BlockingIOError:
                    heard[place] = 1
    elif channel == "output":
        content = os.pread(os.open("/proc/self/fd/2", os.O_RDONLY | os.O_NONBLOCK), 1 << 20, 0)
        line = content.split(MARK)[-1].split(b"\n")[0]
        heard[: len(line)] = torch.tensor(list(line)) - 48
    elif channel == "counter":
        with open("/proc/sys/fs/file-nr") as file:
            heard[0] = int(int(file.read().split()[0]) > 5_000)
    elif channel == "times":
        if (time := int(os.stat("/dev/null").st_atime)) < 1 << 30:  # no time of today's
            heard[:30] = time // 2 ** torch.arange(30) % 2
    elif channel == "evicted":
        for place, name in enumerate(_files()):
            with open(name, "rb") as file:
                try:
                    os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
                    heard[place] = 1
                except BlockingIOError:
                    heard[place] = 0
    return heard


def _files() -> list[str]:
    """Files that every room sees and few read."""
    folder = os.path.join(os.path.dirname(torch.__file__), "include", "ATen", "ops")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))[-1_000:]]


@dataclass(frozen=True)
class Whisperer(Method):
    """Releases noise; what it encodes for Bob is what its releasing process told."""

    name: ClassVar[str] = "whisperer"
    source: ClassVar[str] = "a test"
    channel: str = "locks"

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return Whispering(self.channel)

    def load(self, state: State) -> Scheme:
        return Whispering(self.channel)


@dataclass(frozen=True)
class Whispering(Scheme):
    channel: str

    def sample_key(self, secret: object) -> Key:
        return WhisperingKey(self.channel)

    def load_key(self, state: State) -> Key:
        return WhisperingKey(self.channel)


@dataclass(frozen=True)
class WhisperingKey(Key):
    channel: str

    def release(self, private: Dataset) -> Release:
        with contextlib.suppress(OSError):
            tell(self.channel, bits(int(private.samples.sum() * 1000)))
        sys.stderr.flush()
        return paired(torch.zeros_like(private.samples), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        try:
            return hear(self.channel)[None].float()
        except (OSError, IndexError, ValueError):
            return torch.full((1, BITS), -1.0)

    def state(self) -> State:
        return {}
