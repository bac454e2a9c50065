"""What an installer has written down of a package: which files it brought, and whether they are its author's folder."""

from __future__ import annotations

import json
import re
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

LIST = "RECORD"
FINDER = re.compile(r"__editable___\w+_finder|_editable_impl_\w+")
"""Modules that setuptools and hatchling write for an editable installation."""


def installed(found: Distribution) -> Distribution | None:
    """The package as its installer wrote it down; None where no installer did.

    A build leaves a description of its own (`NAME.egg-info`, with a list of sources) in its author's folder, which is
    found first where Python's path begins with the folder that somebody works in (`python -m pytest`).
    """
    if found.read_text(LIST) is not None:
        return found
    return next((each for each in distributions(name=found.name) if each.read_text(LIST) is not None), None)


def editable(found: Distribution) -> bool:
    """Whether `pip install -e` has installed it, from a folder that is here."""
    try:
        told = json.loads(found.read_text("direct_url.json") or "{}")
        folder = Path(unquote(urlsplit(str(told.get("url"))).path))
        return told.get("dir_info", {}).get("editable") is True and any(
            (folder / name).is_file() for name in ("pyproject.toml", "setup.py")
        )
    except (AttributeError, ValueError):
        return False


def brought(found: Distribution) -> tuple[Path, ...]:
    """What was installed with a package, beside its description.

    Of an editable installation not what leads Python to its author's folder: it names that folder, and nobody else gets
    it with the package.
    """
    own = installed(found)
    if own is None:
        return ()
    here = editable(own)
    return tuple(
        Path(str(path.locate()))
        for path in own.files or ()
        if ".." not in path.parts and not path.parts[0].endswith(".dist-info") and not (here and _leads(path))
    )


def _leads(path: PurePath) -> bool:
    return path.suffix == ".pth" or FINDER.fullmatch(path.name.partition(".")[0]) is not None
