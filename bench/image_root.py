"""Root file system of a container image in a room.

An unpacked folder stands in a room for the machine's own root. Bubblewrap shows each of its entries read-only, without
set-uid rights and devices. The folders of the sandbox itself (`OWN`) are never those of the image. No link of an image
is followed here: a room follows it, within the image.
"""

from __future__ import annotations

__figures__ = False

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

OWN = frozenset({"dev", "proc", "room", "run", "sys", "tmp"})
"""Folders at the top of an image that its rooms do not see."""
ARCHIVES = ("manifest.json", "index.json", "oci-layout", "repositories")
"""Files of an image in layers, as `docker save` and the OCI layout have them."""
UNPACK = "unpack it: `docker export $(docker create IMAGE) | tar -x -C FOLDER`, and name that folder"


class ImageError(ValueError):
    """A folder cannot be an image; the text says why."""


def checked(root: Path, private: Sequence[Path]) -> Path:
    """The full path of a root.

    Args:
        root: A folder.
        private: Files and folders that no room may see.

    Raises:
        ImageError: It is no unpacked image, or holds something private.
    """
    if not root.is_dir():
        raise ImageError(
            f"{root} is an archive of an image: {UNPACK}" if root.exists() else f"no such folder of an image: {root}"
        )
    if any((root / name).exists() for name in ARCHIVES) and not (root / "usr").exists():
        raise ImageError(f"{root} holds an image in layers: {UNPACK}")
    whole = root.resolve()
    if held := [path for path in private if path.resolve().is_relative_to(whole)]:
        raise ImageError(f"{root} holds {held[0]}, which no room may see: name the folder of an image alone")
    return whole


def bound(root: Path, beside: Sequence[Path]) -> Iterator[str]:
    """Words for bubblewrap that show an image.

    Args:
        root: Its folder.
        beside: Files of the machine that the room sees as well, by their own paths: they are bound afterwards.

    Raises:
        ImageError: The image has a link or a file on the way to one of them.
    """
    way = {parent for path in beside for parent in path.parents}
    folders = [Path("/")]
    for folder in folders:
        with os.scandir(root / folder.relative_to("/")) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            place = folder / entry.name
            if folder == Path("/") and entry.name in OWN:
                continue
            if place in way and (entry.is_symlink() or not entry.is_dir()):
                raise ImageError(f"the image has no folder, but a link or a file, at {place}, where {beside[0]} lies")
            if entry.is_symlink():
                yield from ("--symlink", str(Path(entry.path).readlink()), str(place))
            elif place in way:
                yield from ("--dir", str(place))
                folders.append(place)
            else:
                yield from ("--ro-bind", entry.path, str(place))


def files(root: Path) -> Iterator[tuple[str, Path]]:
    """Files and links of an image that rooms see, in order."""
    for place, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if place != str(root) or name not in OWN)
        links = [name for name in inner if Path(place, name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(place, name)
            if place != str(root) or name not in OWN:
                yield path.relative_to(root).as_posix(), path


def folders(root: Path, endings: Sequence[str]) -> Iterator[Path]:
    """Folders of an image with such endings, as its rooms name them."""
    for place, inner, _ in os.walk(root):
        inner[:] = [name for name in inner if place != str(root) or name not in OWN]
        seen = Path("/") / Path(place).relative_to(root)
        if str(seen).endswith(tuple(f"/{ending}" for ending in endings)):
            inner.clear()
            yield seen
