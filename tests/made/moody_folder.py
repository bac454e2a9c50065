"""A file system of fsspec over a folder that fails, cuts short, lies or dies when it is told to."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from bench.transfer.crew import Crew
from bench.transfer.target import Target

Mood = Callable[[str, bytes], bytes]
"""What becomes of bytes on their way, by `read` or `write`; it may raise."""


class KilledError(BaseException):
    """The process dies here."""


class MoodyFolder(LocalFileSystem):  # type: ignore[misc]
    cachable = False

    def __init__(self, mood: Mood, tidy: bool = True) -> None:
        super().__init__()
        self.mood, self.tidy = mood, tidy

    def pipe_file(self, path: str, value: bytes, **more: Any) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(self.mood("write", value))

    def put_file(self, lpath: str, rpath: str, **more: Any) -> None:
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: Any) -> bytes:
        return self.mood("read", Path(path).read_bytes()[start:end])

    def rm_file(self, path: str) -> None:
        if self.tidy:  # who is dead removes nothing
            super().rm_file(path)


def moody(root: Path, mood: Mood, *, objects: bool = False, tidy: bool = True) -> Target:
    """A target in that mood; of an object store, no name is changed."""
    root.mkdir(exist_ok=True)
    for name in ("records", "artefacts", "blobs"):
        (root / name).mkdir(exist_ok=True)
    return Target(f"moody://{root.name}", MoodyFolder(mood, tidy), str(root), objects=objects, local=False)


def calm(kind: str, content: bytes) -> bytes:
    return content


def failing(share: float, seed: int) -> Mood:
    """Fails, cuts short or changes a byte in a share of all reads and writes.

    Which byte, and to what, is drawn: what is read back must not undo by chance what happened when it was written.
    """
    chance, lock = random.Random(seed), threading.Lock()

    def mood(kind: str, content: bytes) -> bytes:
        with lock:
            drawn, how, where, change = chance.random(), chance.randrange(3), chance.random(), chance.randrange(1, 256)
        if drawn > share or not content:
            return content
        if how == 0:
            raise OSError("the network is gone")
        at = int(where * len(content))
        return content[:at] if how == 1 else content[:at] + bytes([content[at] ^ change]) + content[at + 1 :]

    return mood


def dying(after: int) -> Mood:
    """Dies in the write after that number."""
    count, lock = [0], threading.Lock()

    def mood(kind: str, content: bytes) -> bytes:
        if kind == "write":
            with lock:
                count[0] += 1
            if count[0] > after:
                raise KilledError
        return content

    return mood


def crew(target: Target, jobs: int = 4) -> Crew:
    """Who transfers without waiting."""
    return Crew(jobs, target.stop, pause=0.0)
