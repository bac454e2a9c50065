"""Installed packages: their files, and trespasses on others' names."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Set
from importlib.metadata import Distribution, PackageNotFoundError, distributions, requires
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

from bench.plugins.groups import GROUPS
from bench.shadowing import PACKAGES

LIST = "RECORD"
FINDER = re.compile(r"__editable___\w+_finder|_editable_impl_\w+")
"""Modules that setuptools and hatchling write for an editable installation."""


def installed(package: Distribution) -> Distribution | None:
    """The package as its installer wrote it down; None without installer.

    A build leaves a description of its own (`NAME.egg-info`, with a list of sources) in its author's folder, which is
    found first where Python's path begins with the folder that somebody works in (`python -m pytest`).
    """
    if package.read_text(LIST) is not None:
        return package
    return next((each for each in distributions(name=package.name) if each.read_text(LIST) is not None), None)


def editable(package: Distribution) -> bool:
    """If `pip install -e` installed it from a folder on this machine."""
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
        folder = Path(unquote(urlsplit(str(origin.get("url"))).path))
        return origin.get("dir_info", {}).get("editable") is True and any(
            (folder / name).is_file() for name in ("pyproject.toml", "setup.py")
        )
    except (AttributeError, ValueError):
        return False


def brought(package: Distribution) -> tuple[Path, ...]:
    """A package's installed files, without its metadata.

    An editable installation's links to its author's folder are left out: only the author has them.
    """
    own = installed(package)
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


AT_EVERY_START = ("sitecustomize", "usercustomize")
ELSEWHERE = ("bin", "Scripts", "share", "etc", "include")
"""Where a package may put files beside its modules."""
EDITABLE = re.compile(r"import (__editable___\w+_finder); ?\1\.install\(\)|import _editable_impl_\w+")
"""What setuptools and hatchling write for an editable installation of modules that share their folder with others."""


_looks = True


def vetted() -> None:
    """Skip the check of packages, in processes for vetted plug-ins.

    In a sandbox it cannot be looked into again: of a package that is installed editable only the modules are there.
    """
    global _looks
    _looks = False


def trespass(distribution: Distribution) -> str:
    """A package's trespasses and their remedy; empty if none."""
    own = installed(distribution) if _looks else None
    reason = "" if own is None else next(_found(own), "")
    return f"its package {reason}: such a package is not used, uninstall it" if reason else ""


def _found(distribution: Distribution) -> Iterator[str]:
    files = [str(path) for path in distribution.files or ()]
    site, here = Path(str(distribution.locate_file(""))), editable(distribution)
    names = {_top(path) for path in files if not path.startswith("..") and not path.endswith(".pth")}
    if here:
        names = {name for name in names if not FINDER.fullmatch(name)}
    for path in files:
        if path.endswith(".pth") and "/" not in path and (site / path).is_file():
            yield from _run(site, path, editable=here)
    for name in sorted(names & {*AT_EVERY_START}):
        yield f"runs code in every Python ({name})"
    own, needed = {_plain(distribution.name), *_targets(distribution)}, _needed()
    for name in sorted(names):
        alike = any(_plain(name) == each or _plain(name).startswith(f"{each}_") for each in own)
        if not alike or _plain(name) in needed:
            yield f"brings the top-level name {name!r}, which is neither its own nor that of its plug-ins"
    beside = [path for path in files if path.startswith("..")]
    for path in beside:
        inner = path.rpartition("../")[2].split("/")
        if inner[0] not in ELSEWHERE or re.match("python|bench$", inner[-1]):
            yield f"puts the file {path} where none of its own may lie"
    whole = {name for name in names if (site / name / "__init__.py").exists()}  # others may add to a namespace
    wanted = {*(f"{path}," for path in beside), *(f"{name}/" for name in whole), *(f"{name}.py," for name in names)}
    for listed in site.glob("*.dist-info/RECORD"):
        other = listed.parent.name.partition("-")[0]
        if _plain(other) != _plain(distribution.name):
            content = b"\n" + listed.read_bytes()
            yield from (
                f"puts files where {other} has its own ({text.rstrip('/,')})"
                for text in sorted(wanted)
                if f"\n{text}".encode() in content
            )


def _run(site: Path, name: str, *, editable: bool) -> Iterator[str]:
    """The code that a `.pth` file makes every Python run."""
    for line in (site / name).read_text(encoding="utf-8-sig", errors="replace").splitlines():
        if line.startswith(("import ", "import\t")):
            match = EDITABLE.fullmatch(line.strip())
            if not editable or match is None:
                yield f"runs code in every Python ({name})"
            elif match[1] and (taken := _mapped(site / f"{match[1]}.py") & {*AT_EVERY_START, *PACKAGES, *_needed()}):
                yield f"brings the top-level name {min(taken)!r}, which is neither its own nor that of its plug-ins"
        elif line.strip() and not line.startswith("#"):
            for each in AT_EVERY_START:
                if any((site / line.strip()).glob(f"{each}*")):
                    yield f"runs code in every Python ({each}, of a folder that {name} names)"


def _mapped(finder: Path) -> Set[str]:
    """The top-level names that an editable installation maps to folders."""
    for node in ast.parse(finder.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id == "MAPPING":
                return {str(name).partition(".")[0] for name in ast.literal_eval(node.value)}
    return set()


def _targets(distribution: Distribution) -> Set[str]:
    """The top-level names that its plug-ins lie in."""
    groups = {f"bench.{group}" for group in GROUPS}
    return {
        _plain(point.value.partition(":")[0].partition(".")[0])
        for point in distribution.entry_points
        if point.group in groups
    }


def _needed() -> Set[str]:
    """The names of this project's packages and their installed dependencies."""
    try:
        listed = requires("veil-bench") or ()
    except PackageNotFoundError:
        listed = ()
    return {*PACKAGES, *(_plain(re.split(r"[^\w.-]", each, maxsplit=1)[0]) for each in listed)}


def _top(path: str) -> str:
    """The import name of a file, or of its metadata folder."""
    parts = path.split("/")
    first = parts[1] if parts[0] == "__pycache__" and len(parts) > 1 else parts[0]
    return first.split("-")[0] if first.endswith((".dist-info", ".egg-info")) else first.split(".")[0]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
