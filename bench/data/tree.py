"""Files below a folder, and the one rule about links: they are followed, wherever they lead, and their number is said.

A link that leads nowhere, to itself, or back to a folder that it was reached through, is an error, never passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.contract.source import DataError


@dataclass(frozen=True)
class Tree:
    """What lies below a folder, links followed; names that start with a dot, and what is below them, left out.

    Args:
        folders: The folder itself and all below, in order.
        files: Files, in order.
    """

    folders: tuple[Path, ...]
    files: tuple[Path, ...]


def walk(top: Path) -> Tree:
    """The tree below `top`.

    Raises:
        DataError: A link leads nowhere or in circles, a folder cannot be read, or something is neither file nor folder;
            the text counts them and names none.
    """
    folders: list[Path] = []
    files: list[Path] = []
    wrong: list[Path] = []
    waiting = [(top, frozenset[tuple[int, int]]())]
    while waiting:
        folder, above = waiting.pop()
        try:
            found = folder.stat()
            here = (found.st_dev, found.st_ino)
            if here in above:
                raise OSError("a link back to a folder above it")
            names = sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208
        except OSError:
            wrong.append(folder)
            continue
        folders.append(folder)
        for path in (folder / name for name in names):
            if path.is_dir():
                waiting.append((path, above | {here}))
            else:
                (files if path.is_file() else wrong).append(path)
    if wrong:
        raise DataError(
            f"{len(wrong)} names in the folder are links that lead nowhere or in circles, folders that cannot be read, "
            f"or pipes and the like. `find -L FOLDER -type l` lists such links; remove or mend them."
        )
    return Tree(tuple(sorted(folders)), tuple(sorted(files)))


def links_note(paths: Sequence[Path], folder: Path | None) -> Iterator[str]:
    """A note where files are reached through links, with how many of them lie outside `folder` (None: nobody asks)."""
    homes: dict[Path, str] = {}
    top = None if folder is None else os.path.join(os.path.realpath(folder), "")  # noqa: PTH118
    linked = outside = 0
    for path in paths:
        home = homes.get(path.parent)
        if home is None:
            home = homes[path.parent] = os.path.realpath(path.parent)
        plain = os.path.join(home, path.name)  # noqa: PTH118
        real = os.path.realpath(path) if path.is_symlink() else plain
        linked += real != os.path.abspath(path)  # noqa: PTH100
        outside += top is not None and not real.startswith(top)
    if linked or outside:
        yield f"{linked} of {len(paths)} images are reached through links, and {outside} lie outside the set's folder"
