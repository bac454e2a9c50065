"""A page before it is drawn: its name, its inputs, its function."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path


@dataclass(frozen=True)
class Page:
    """A file of the site.

    Args:
        name: Below the site's folder.
        inputs: A hash of everything that it is made from: where that is the same, so is the page.
        make: Gives its content.
    """

    name: str
    inputs: str
    make: Callable[[], str | bytes]


def inputs(*told: object) -> str:
    """A hash of a page's inputs, and of the code and templates."""
    text = json.dumps([_maker(), *told], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plain(name: str, content: str | bytes) -> Page:
    """A file that is its own input."""
    told = content if isinstance(content, bytes) else content.encode()
    return Page(name, hashlib.sha256(told).hexdigest(), lambda: content)


@cache
def _maker() -> str:
    """A hash of this package: its code, templates and styles."""
    found = hashlib.sha256()
    for name, content in sorted(_files(resources.files("leaderboard"))):
        found.update(f"{name} {len(content)} ".encode() + content)
    return found.hexdigest()


@cache
def code() -> str:
    """A hash of the packages that process records before they are shown."""
    found = hashlib.sha256()
    for package in ("bench", "methods", "attacks", "metrics"):
        for folder in (Path(place) for place in importlib.import_module(package).__path__):
            for path in sorted(folder.rglob("*")):
                if path.suffix in (".py", ".yaml"):
                    content = path.read_bytes()
                    found.update(f"{path.relative_to(folder).as_posix()} {len(content)} ".encode() + content)
    return found.hexdigest()


def _files(folder: resources.abc.Traversable) -> Iterable[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name in ("templates", "static"):
            yield from ((f"{entry.name}/{name}", content) for name, content in _files(entry))
        elif entry.is_file() and entry.name.endswith((".py", ".html", ".css", ".js", ".json", ".yaml")):
            yield entry.name, entry.read_bytes()
