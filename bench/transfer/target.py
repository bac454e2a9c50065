"""A place elsewhere that keeps content by name: a folder, S3, SFTP, or any other file system of fsspec.

What is written there is read back before it gets its name, or before anything speaks of it. What is read is read in
blocks and never beyond the size that was stated, whatever is sent.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.plugins.spec import UsageError
from bench.results.atomic_file import make_folder, sync
from bench.transfer.content_name import UNFINISHED, known

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci"})
"""There content appears whole or not at all, and there are no folders; elsewhere it is renamed when it is whole."""
BLOCK = 8 << 20
LINK = "it is a link, or no file"
EXTRA = "pip install 'veil-bench[transfer]'"
_USER = re.compile(r"//[^/@\s]*@")


class TransferError(Exception):
    """Content did not get where it should; the text says which, and why."""


class StoppedError(Exception):
    """The command is being stopped; the work in hand is left."""


@dataclass(frozen=True, eq=False)
class Target:
    """A place elsewhere.

    Args:
        place: What it is called in messages: no user, no password.
        fs: The file system.
        root: The folder there.
        objects: Whether it is one of `OBJECT_STORES`.
        local: Whether it is a folder of this machine.
        stop: Set to end the work in hand.
    """

    place: str
    fs: Any = field(repr=False)
    root: str = field(repr=False)
    objects: bool
    local: bool
    stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def open(cls, url: str) -> Target:
        """The place that a URL or a path names. Nothing is made there yet.

        Raises:
            UsageError: What it takes to reach it is not installed, or it cannot be reached.
        """
        place = named(url)
        if "::" in url:
            raise UsageError(f"{place} goes through another file system: name the place itself")
        try:
            import fsspec.core

            if place.startswith(("sftp://", "ssh://")):
                from bench.transfer import sftp

                fs, root = sftp.opened(url)
            else:
                fs, root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
        except ImportError as error:
            raise UsageError(f"{place} cannot be reached: {error}; {EXTRA} brings S3 and SFTP") from error
        except Exception as error:  # every file system has errors of its own
            raise UsageError(f"{place} cannot be reached: {_bare(error)}") from error
        kinds = {fs.protocol} if isinstance(fs.protocol, str) else {*fs.protocol}
        return cls(place, fs, str(root).rstrip("/"), bool(kinds & OBJECT_STORES), "file" in kinds)

    def inside(self, folder: Path) -> bool:
        """Whether it is a folder of this machine that lies in another, or holds it."""
        own = Path(self.root).resolve()
        return self.local and (own == folder or own in folder.parents or folder in own.parents)

    def listed(self) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Sizes by name of what pushes have put there, and by name what else is there, and why it is refused."""
        self.fs.invalidate_cache()
        found: dict[str, int] = {}
        refused: list[tuple[str, str]] = []
        # Otherwise a folder that cannot be read passes for an empty one.
        strict = {} if self.objects else {"on_error": "raise"}
        try:
            with self._told(self.place):
                if not self.objects and not self.fs.exists(self.root):
                    return {}, []
                listing = self.fs.find(self.root, detail=True, **strict)
        except TransferError as error:
            raise UsageError(f"{self.place} cannot be read: {error}") from error
        for path, told in listing.items():
            name = str(path).removeprefix(f"{self.root}/")
            size = told.get("size")
            if told.get("islink") or told.get("type") != "file":
                refused.append((name, LINK))
            elif not known(name):
                refused.append((name, "nothing that `bench push` writes has such a name"))
            elif not isinstance(size, int) or (size <= 0 and UNFINISHED.fullmatch(name) is None):
                refused.append((name, f"its size is {size}"))
            else:
                found[name] = size
        return found, refused

    def read(self, name: str, size: int) -> bytes:
        """All of a small file of that size. Raises TransferError where it cannot be had, or is of another size."""
        return b"".join(self._blocks(name, size))

    def digest(self, name: str, size: int) -> str:
        """SHA-256 of a file of that size, of any length. Raises TransferError as `read` does."""
        found = hashlib.sha256()
        for block in self._blocks(name, size):
            found.update(block)
        return found.hexdigest()

    def fetch(self, name: str, size: int, to: Path) -> str:
        """Write a file of that size to `to`, and give its SHA-256. Raises TransferError as `read` does."""
        found = hashlib.sha256()
        with to.open("xb") as file:
            for block in self._blocks(name, size):
                found.update(block)
                file.write(block)
        return found.hexdigest()

    def write(self, name: str, content: bytes | Path, sha256: str) -> int:
        """Put content there, under its name once all of it has arrived, and give its size.

        Raises TransferError where something else arrived than was sent.
        """
        self._go_on()
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        unfinished = name if self.objects else f"unfinished/{sha256}-{secrets.token_hex(8)}"
        self._folder(unfinished)
        try:
            with self._told(name):
                self._send(unfinished, content)
            if self.digest(unfinished, size) != sha256:
                raise TransferError(f"{name}: other bytes arrived than were sent")
            self._go_on()
            if unfinished != name:
                self._folder(name)
                self._rename(unfinished, name)
        except BaseException:
            self.remove(unfinished)
            raise
        return size

    def remove(self, name: str) -> None:
        """Remove content, if that can be done."""
        with suppress(Exception):  # the next command removes it, or finds that it is not what its name says
            self.fs.rm_file(self._path(name))

    def _send(self, name: str, content: bytes | Path) -> None:
        if isinstance(content, bytes):
            self.fs.pipe_file(self._path(name), content)
        else:
            self.fs.put_file(str(content), self._path(name))

    def _rename(self, old: str, new: str) -> None:
        with self._told(new):
            if self.local:  # else a crash could leave the name without the bytes
                sync(Path(self._path(old)))
                Path(self._path(old)).replace(self._path(new))
                sync(Path(self._path(new)).parent)
            else:
                self.fs.mv(self._path(old), self._path(new))

    def _folder(self, name: str) -> None:
        if self.objects:
            return
        with self._told(name):
            parent = self._path(name).rpartition("/")[0]
            if self.local:
                make_folder(Path(self.root), mode=0o700)  # until its owner opens it to others
                make_folder(Path(parent))
            else:
                self.fs.makedirs(parent, exist_ok=True)

    def _blocks(self, name: str, size: int) -> Iterator[bytes]:
        read = 0
        while read < size:
            self._go_on()
            wanted = min(BLOCK, size + 1 - read)  # a byte more than there should be at the end
            with self._told(name):
                block: bytes = self.fs.cat_file(self._path(name), start=read, end=read + wanted)
            read += len(block)
            if not block or len(block) > wanted or read > size:
                raise TransferError(f"{name}: it is of another size than the {size} bytes that were stated")
            yield block

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _go_on(self) -> None:
        if self.stop.is_set():
            raise StoppedError

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        try:
            yield
        except TransferError:
            raise
        except Exception as error:  # every file system has errors of its own
            raise TransferError(f"{name}: {_bare(error)}") from error


def named(url: str) -> str:
    """A target as it is called in messages, the same for the same place: without user and password."""
    bare = _USER.sub("//", url).rstrip("/")
    return bare if "://" in url or "::" in url else f"file://{Path(url).resolve()}"


def _bare(error: Exception) -> str:
    return _USER.sub("//", f"{type(error).__name__}: {error}")
