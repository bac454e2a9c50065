"""Guard against foreign modules, and against the caller's script in children."""

from __future__ import annotations

__figures__ = False

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

# Both load entry points of every installed package when they are imported, and would run other authors' code here.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

PACKAGES = ("bench", "methods", "attacks", "metrics", "leaderboard")
HOME = Path(__file__).resolve().parent.parent


class ShadowedError(ImportError):
    """Something else answers to the names of packages of this project.

    Args:
        places: What each of the names leads to; None for nothing at all. The message holds these paths: it is for the
            terminal, while a record takes no more than the names.
    """

    def __init__(self, places: Mapping[str, Path | None]) -> None:
        super().__init__("\n".join(_complaint(name, place) for name, place in places.items()))
        self.names = tuple(places)


def guard() -> None:
    """Check the working folder, and the places of this project's packages.

    Raises:
        ShadowedError: The place found, the place expected, and the remedy.
        FileNotFoundError: As `check_folder`.
    """
    check_folder()
    shadowed = {name: place for name in PACKAGES if (place := _place(name)) != HOME / name}
    if shadowed:
        raise ShadowedError(shadowed)


def check_folder() -> None:
    """Raise FileNotFoundError if the working folder was removed.

    The mathematics library below torch ends the process without it.
    """
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise FileNotFoundError("the working folder was removed: change to one that exists, and try again") from error


def _place(name: str) -> Path | None:
    """The folder or file that `import name` would take, or None."""
    spec = find_spec(name)
    if spec is None:
        return None
    folders = spec.submodule_search_locations  # of a package, with or without an __init__.py
    place = next(iter(folders), None) if folders is not None else spec.origin
    return None if place is None else Path(place).resolve()


def _complaint(name: str, place: Path | None) -> str:
    ours = HOME / name
    if place is None:
        return f"the package {name!r} of Veil Bench is missing: expected {ours}; install Veil Bench again"
    asked = {Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    if place.parent in asked:
        remedy = f"take {place.parent} off PYTHONPATH"
    elif place.parent == Path.cwd().resolve():
        remedy = "start the command from another folder"
    else:
        remedy = "install Veil Bench in an environment of its own"
    return (
        f"the name {name!r} leads to {place}, which is not part of Veil Bench; expected {ours}. "
        f"Rename what is there, or {remedy}."
    )


@contextmanager
def without_script() -> Iterator[None]:
    """Processes that start within the block do not import the caller's script.

    `multiprocessing` has a new process import the `__main__` of the one that starts it: a script without a guard would
    run once more in each. What travels to our processes is text and this project's own functions.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
