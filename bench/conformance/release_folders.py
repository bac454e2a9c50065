"""Checks of a folder that another tool released (`bench.data.release_folder` describes it)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bench.conformance.isolated_check import PluginCheck
from bench.contract.seal import ContractError
from bench.data import release_folder
from bench.data.prepare import prepare
from bench.data.recorded_rows import Rows
from bench.data.release_folder import open_folder
from bench.plugins import registry
from bench.plugins.configured import Configured, configure
from bench.plugins.spec import UsageError, parameters, parse
from bench.types import DataError, Method, NotApplicable, PrivacyClaim, Recorded
from bench.workbench.place import Place

LAYOUT = release_folder.__doc__ or ""
"""The layout of a folder, for a terminal."""
PRESET = "smoke"
SIDE = 64  # of images that say none
_WRONG = (DataError, ValueError, UsageError, ContractError, NotApplicable)


@dataclass(frozen=True)
class RawRows:
    """The raw rows of a release.

    Args:
        dataset: The data set's spec.
        place: Folders of this machine.
        size: Side in pixels; None stands for that of the released images, or the data set's own.
    """

    dataset: str
    place: Place
    size: int | None = None


def is_recorded(text: str) -> bool:
    """If a spec names a method whose releases another tool made."""
    name = parse(text).name
    if name not in registry.own("methods"):
        return False
    cls = registry.load("methods", name)
    return issubclass(cls, Method) and cls.recorded is not Method.recorded


def check_folder(text: str, raw: RawRows | None) -> Iterator[PluginCheck]:
    """Each check of a spec's folder; none without a folder.

    Raises:
        UsageError: The spec cannot be read.
    """
    start = time.perf_counter()
    chosen = configure("methods", text, PRESET)
    recorded = chosen.plugin.recorded
    if recorded is None:
        return
    yield PluginCheck("methods", "the folder is there", "passed", f"sha256 {recorded.sha256}", "", "",
                      time.perf_counter() - start)  # fmt: skip
    checks: dict[str, Callable[[], str]] = {
        "release.json is understood": lambda: _told(chosen),
        "released rows are read": lambda: _read(recorded),
        "tables name released rows": lambda: release_folder.tables_of(recorded),
    }
    if raw is not None:
        checks[f"raw rows are found in {raw.dataset}"] = lambda: _found(recorded, raw)
    failed = ""
    for title, work in checks.items():
        start = time.perf_counter()
        found = PluginCheck("methods", title, "passed", "", "", "", 0.0)
        if failed:
            yield replace(found, status="not-reached", detail=f'because "{failed}" failed')
            continue
        try:
            found = replace(found, detail=work())
        except _WRONG as error:
            found, failed = replace(found, status="failed", detail=str(error)), title
        yield replace(found, seconds=time.perf_counter() - start)
    if raw is None:
        said = "not checked: name the data set by --dataset NAME"
        yield PluginCheck("methods", "raw rows are found", "skipped", said, "", "", 0.0)


def _told(chosen: Configured[Method]) -> str:
    claim: PrivacyClaim | None = chosen.plugin.load({}).claim()
    said = f"maker {parameters(chosen.plugin)['maker'] or 'not named'}"
    if claim is None:
        return f"{said}; no claim"
    return f"{said}; claims epsilon {claim.epsilon:g}, delta {claim.delta:g} per {claim.unit}, which is not audited"


def _read(recorded: Recorded) -> str:
    said = []
    for place in recorded.places():
        rows = Rows.found(place)
        shape = tuple(rows.samples((1, rows.side or SIDE, rows.side or SIDE)).shape[1:])
        what = f"images of {rows.side} pixels a side" if rows.shape is None and rows.side else f"rows of shape {shape}"
        said.append("; ".join([f"{rows.count} {what}", *rows.notes]))
    return f"{len(said)} {'release' if len(said) == 1 else 'releases'}: {' | '.join(said)}"


def _found(recorded: Recorded, raw: RawRows) -> str:
    source = raw.place.source(configure("datasets", raw.dataset, PRESET))
    size = raw.size if raw.size is not None or source.default_size is None else release_folder.side_of(recorded)
    prepared = prepare(source, roots=raw.place.roots, cache=raw.place.cache, size=size)
    found = open_folder(recorded, prepared, source, raw.place.roots)
    others = len(prepared) - len(found.members)
    said = [f"{len(found.members)} raw rows, and {others} others of {prepared.name} for control and test"]
    links = sum(0 if release.links is None else len(release.links) for release in found.releases)
    labels = sum(release.labels is not None or release.from_raw for release in found.releases)
    said += [f"{links} links"] if links else []
    said.append("labels" if labels else "no labels, so that there is nothing to learn")
    return "; ".join([*said, *found.notes])
