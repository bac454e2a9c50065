"""`bench report`: a release attacked on its owner's data."""

from __future__ import annotations

__figures__ = False

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bench.api.running import Observer, RunResult, records_of, run
from bench.contract.recorded import Recorded
from bench.plugins import registry
from bench.plugins.spec import PluginSpec, UsageError, parse, text
from bench.results.log_file import last_words
from bench.results.reason import SAID, withheld
from bench.results.records import Record
from bench.results.run_secret import MAKER
from bench.wire.text import line
from bench.workbench.place import Place

if TYPE_CHECKING:  # imported where it is used, for a list of plug-ins needs no pages
    from pydantic import JsonValue

    from bench.types import Attack
    from leaderboard.board import Row
    from leaderboard.risk_report import Declaration, RiskReport

PROFILES = ("same-image", "other-study", "public-only")
"""What Eve holds, if nothing else is asked for."""
LONGEST = 400
"""Letters of a reason."""
PAIRS = ("people-found", "person-risk", "top-1", "guesswork", "reid-auc", "patient-reid-auc")
WITHOUT = ("attribute-advantage", "reconstruction-ssim", "reconstruction-reid")
TWIN = (
    "membership-auc", "membership-tpr", "members-found", "member-risk", "utility-auc", "linear-probe-auc",
    "broken-promises", "empirical-epsilon",
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """The request of a report.

    Args:
        folder: The release, as `bench release` wrote it.
        links: The table of links that was written beside it.
        profiles: Of Eve.
        options: Data and machine, by their names in a configuration file.
        declared: The owner's declaration.
        out: The folder of the report.
        ledger: The owner's ledger of releases; None for the usual one.
    """

    folder: Path
    links: Path
    profiles: Sequence[str]
    options: Mapping[str, object]
    declared: Declaration
    out: Path
    ledger: Path | None = None

    @property
    def scheme(self) -> str | None:
        """The file of the fitted scheme that was released; None without one."""
        fitted = self.folder / "scheme.safetensors"
        return str(fitted) if fitted.is_file() else None


@dataclass(frozen=True)
class Reported:
    """A finished report, its files, and what could not be measured."""

    report: RiskReport
    files: Sequence[Path]
    left_out: Mapping[str, str]
    failed: int


def report(asked: Asked, place: Place, observer: Observer) -> Reported:
    """Measure what is missing, and write the report.

    Measurements are records of the results folder: a report that was interrupted goes on where it stopped.

    Raises:
        UsageError: The folder is no release of this project, or an option that cannot be taken.
    """
    from bench.data.release_folder import check_release
    from bench.runs.release_files import changed
    from leaderboard.board import rows
    from leaderboard.risk_report import Release, risk_report, write

    told, digest = _about(asked.folder)
    if different := changed(asked.folder):
        names = ", ".join(different[:5])
        raise UsageError(f"{asked.folder} is not as it was released: put back {names}, or release again")
    if not check_release(asked.links, asked.folder):
        raise UsageError(
            f"{asked.links} names no release: give the table that `bench release` wrote beside "
            f"{asked.folder}, as it was written"
        )
    method = _method(told)
    results = [*_runs(asked, method, place, observer)]
    left_out = {name: found for name, found in results if isinstance(found, str)}
    board = rows(_in_full(record, place) for record in records_of(place.results))
    cells = {record.cell for _, found in results if isinstance(found, RunResult) for record in found.summary.records}
    mine = [row for row in board if row.cell in cells and row.records[0].method.role is None]
    very = [row for row in mine if row.choice.get("this_release")]
    twin: Row | None = next((row for row in mine if not row.choice.get("this_release")), None)
    if not very:
        raise UsageError(f"nothing of the release could be measured: {'; '.join(left_out.values()) or 'see above'}")
    made = Release(
        digest, very[0].label, f"{MAKER} {version('veil-bench')}", datetime.now(UTC).isoformat(timespec="seconds")
    )  # fmt: skip
    found = risk_report(made, very, twin, asked.declared, _earlier(asked, told))
    found = found.model_copy(
        update={"untried": [*(f"{name}: {why}" for name, why in left_out.items()), *found.untried]}
    )
    failed = sum(len(each.summary.failures) for _, each in results if isinstance(each, RunResult))
    return Reported(found, write(found, asked.out), left_out, failed)


def _in_full(record: Record, place: Place) -> Record:
    """The record with the reason that its public form withholds.

    It stands in the log, which only the owner can read, as a report.
    """
    if record.reason is None or record.code is None or record.reason != withheld(record.code):
        return record
    log = place.results.log(record.cell, "fit" if record.phase == "fit" else record.evaluator)
    words = line(last_words(log), LONGEST)
    return record.model_copy(update={"reason": f"{SAID[record.code]}: {words}"}) if words else record


def _about(folder: Path) -> tuple[Mapping[str, object], str]:
    """release.json and its SHA-256. Raises UsageError."""
    path = folder / Recorded.ABOUT
    try:
        content = path.read_bytes()
        told = json.loads(content)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder} must be a folder that `bench release` wrote, with {Recorded.ABOUT}; a release of another tool "
            f"is scored by bench run --method 'imported[path=FOLDER]'"
        ) from error
    if not isinstance(told, dict) or not isinstance(told.get("method"), dict):
        raise UsageError(f"{path} names no method: it must be as `bench release` wrote it")
    return told, hashlib.sha256(content).hexdigest()


def _earlier(asked: Asked, told: Mapping[str, object]) -> list[str]:
    """Sentences on the releases of the same people before this one."""
    from bench.runs.publication import Order
    from bench.runs.release_ledger import composition_text, configuration, earlier_of_same_people
    from bench.workbench.choice import scheme_hash

    scheme = "none" if asked.scheme is None else scheme_hash(asked.scheme)
    wanted = configuration(cast("Mapping[str, JsonValue]", told), scheme)
    entries = Order(asked.folder, ledger=asked.ledger).book.entries()
    mine = [entry for entry in entries if entry.configuration == wanted]
    if not mine:
        return ["The ledger of releases does not have this one: whether others are of the same people is unknown."]
    before = earlier_of_same_people(mine[-1], [entry for entry in entries if entry.created < mine[-1].created])
    return [composition_text(mine[-1], before) or "The ledger has no earlier release of these people."]


def _method(told: Mapping[str, object]) -> PluginSpec:
    """The method with all its parameters, whatever a preset says."""
    method = cast("Mapping[str, object]", told["method"])
    parameters = cast("Mapping[str, str | int | float | bool | None]", method["parameters"])
    return PluginSpec(str(method["name"]), None, tuple((name, text(value)) for name, value in parameters.items()))


def _runs(asked: Asked, method: PluginSpec, place: Place, observer: Observer) -> list[tuple[str, RunResult | str]]:
    """Each part's result, or the reason why it was left out."""
    from bench.runs.request import Request

    source = PluginSpec(
        "imported", None, (("path", str(asked.folder.resolve())), ("links", str(asked.links.resolve())))
    )
    very: dict[str, object] = {"rows_of": str(source), "this_release": True, "controls": True}
    scheme = {} if asked.scheme is None else {"scheme": asked.scheme}  # other keys are of what was released
    parts: dict[str, dict[str, object]] = {}
    for name in asked.profiles:
        measured = WITHOUT if name.startswith("public-only") else PAIRS
        parts[f"profile {name}"] = {**very, "eve": name, "metrics": list(measured)}
        if measured is WITHOUT:
            parts[f"profile {name}"] |= {"attacks": "none", "controls": False}
    named = cast("Sequence[str] | None", asked.options.get("attacks"))
    members = _on_membership()
    if named is not None:
        members = [name for name in named if parse(name).name in members]
    parts["twin"] = {"metrics": list(TWIN), "attacks": members or "none", "controls": True}
    found: list[tuple[str, RunResult | str]] = []
    for name, options in parts.items():
        request = Request({**asked.options, **scheme, **options, "methods": [str(method)]}, verb="report")
        result = run(request, place, observer)
        if result.summary.stopped is not None:
            raise result.summary.stopped
        found.append((name, "; ".join(result.summary.reasons.values()) or result))
    return found


def _on_membership() -> list[str]:
    """This project's attacks that tell members."""
    return [
        name for name in registry.own("attacks")
        if cast("type[Attack]", registry.load("attacks", name)).scores == "membership"
    ]  # fmt: skip
