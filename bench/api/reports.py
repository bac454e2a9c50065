"""`bench report`: a release attacked on its owner's data."""

from __future__ import annotations

__figures__ = False

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bench.api.running import Observer, RunResult, foresee, records_of, run
from bench.contract.recorded import Recorded
from bench.plugins import registry
from bench.plugins.spec import PluginSpec, UsageError, parameters, parse, text
from bench.results.log_file import last_words
from bench.results.log_file import lines as log_lines
from bench.results.reason import NO_FIGURE, SAID, withheld
from bench.results.records import Record
from bench.results.run_secret import MAKER
from bench.wire.text import line
from bench.workbench.place import Place

if TYPE_CHECKING:  # imported where it is used, for a list of plug-ins needs no pages
    from bench.types import Attack
    from leaderboard.board import Row
    from leaderboard.declaration import Declaration
    from leaderboard.risk_page import Worst
    from leaderboard.risk_report import Claim, RiskReport

PROFILES = ("same-image", "other-study", "public-only")
"""What Eve holds, if nothing else is asked for."""
PROFILE, TWINS = "profile ", "twin"
"""Names of the parts of a report: a profile of Eve, and the twin."""
LONGEST = 400
"""Letters of a reason."""
PAIRS = ("people-found", "person-risk", "top-1", "guesswork", "reid-auc", "patient-reid-auc")
WITHOUT = ("attribute-advantage", "reconstruction-ssim", "reconstruction-reid")
TWIN = (
    "membership-auc", "membership-tpr", "members-found", "member-risk", "utility-auc", "linear-probe-auc",
    "broken-promises", "empirical-epsilon",
)  # fmt: skip


LINKING = ("same-image", "other-study")
"""The profiles that a bound on the risk of a person needs."""


@dataclass(frozen=True)
class Asked:
    """The request of a report, on a release or before one.

    Args:
        folder: The release, as `bench release` wrote it; None before there is one.
        links: The table of links that was written beside it.
        profiles: Of Eve.
        options: Data and machine, by their names in a configuration file.
        declared: The owner's declaration.
        out: The folder of the report.
        ledger: The owner's ledger of releases; None for the usual one.
        method: The configuration before its release; it is sized as in its paper, or as it says itself.
        annex: Draw the private annex.
        form: Text of a declaration to fill in; None for none.
    """

    folder: Path | None
    links: Path | None
    profiles: Sequence[str]
    options: Mapping[str, object]
    declared: Declaration
    out: Path
    ledger: Path | None = None
    method: str | None = None
    annex: bool = True
    form: str | None = None

    @property
    def scheme(self) -> str | None:
        """The file of the fitted scheme that was released; None without one."""
        fitted = None if self.folder is None else self.folder / "scheme.safetensors"
        return str(fitted) if fitted is not None and fitted.is_file() else None


@dataclass(frozen=True)
class Reported:
    """A finished report, its files, and what could not be measured.

    `reasons` are those that records withhold, for the owner's eyes. `verdict` is the board's on the configuration, in a
    word and a sentence; empty on a release.
    """

    report: RiskReport
    files: Sequence[Path]
    left_out: Mapping[str, str]
    failed: int
    reasons: Mapping[str, str]
    verdict: tuple[str, str] = ("", "")


def report(asked: Asked, place: Place, observer: Observer) -> Reported:
    """Measure what is missing, and write the report.

    Measurements are records of the results folder: a report that was interrupted goes on where it stopped.

    Raises:
        UsageError: The folder is no release of this project, or an option that cannot be taken.
    """
    from leaderboard.board import rows
    from leaderboard.risk_page import write
    from leaderboard.risk_report import Release, risk_report

    method, digest, earlier = _subject(asked)
    results = _runs(asked, method, place, observer)
    left_out = {name: found for name, found in results.items() if isinstance(found, str)}
    board = rows(_in_full(record, place) for record in records_of(place.results))
    cells = {name: _cells(found) for name, found in results.items() if isinstance(found, RunResult)}

    def measured(part: str) -> Row | None:
        mine = [row for row in board if row.cell in cells.get(part, ()) and row.records[0].method.role is None]
        return mine[0] if mine else None

    very = {name: row for name in results if name != TWINS and (row := measured(name)) is not None}
    twin = measured(TWINS)
    if not very:
        raise UsageError(f"nothing of the release could be measured: {'; '.join(left_out.values()) or 'see above'}")
    label = next(iter(very.values())).label
    made = Release(
        digest, label, f"{MAKER} {version('veil-bench')}", datetime.now(UTC).isoformat(timespec="seconds")
    )  # fmt: skip
    missing = list(_missing(asked, very, left_out))
    found = risk_report(made, list(very.values()), twin, asked.declared, earlier, missing)
    found = found.model_copy(
        update={"untried": [*(f"{name}: {why}" for name, why in left_out.items()), *found.untried]}
    )
    if found.claim is not None and asked.folder is not None:
        found = found.model_copy(update={"claim": _claim_in_full(found.claim, _about(asked.folder)[0])})
    reasons = dict(chain.from_iterable(_withheld_reasons(row, place) for row in very.values()))
    if asked.annex:
        observer.display.message("drawing the private annex: the strongest attack runs once more")
    annex = _annex(found, very, results, place, asked, reasons) if asked.annex else None
    observer.display.message("writing the report")
    failed = sum(len(each.summary.failures) for each in results.values() if isinstance(each, RunResult))
    verdict = (twin.standing.word, twin.standing.sentence) if twin is not None and not digest else ("", "")
    return Reported(found, write(found, asked.out, annex, asked.form), left_out, failed, reasons, verdict)


def _subject(asked: Asked) -> tuple[PluginSpec, str, list[str]]:
    """The method, the SHA-256 of release.json, and sentences on earlier releases."""
    from bench.data.release_folder import check_release
    from bench.runs.release_files import changed

    if asked.folder is None:
        assert asked.method is not None
        spec = parse(asked.method)
        sized = parameters(registry.build("methods", spec, "paper"))
        method = PluginSpec(spec.name, None, tuple((name, text(value)) for name, value in sized.items()))
        return method, "", ["Not released yet: `bench release` looks up the ledger."]
    told, digest = _about(asked.folder)
    if different := changed(asked.folder):
        names = ", ".join(different[:5])
        raise UsageError(f"{asked.folder} is not as it was released: put back {names}, or release again")
    assert asked.links is not None
    if not check_release(asked.links, asked.folder):
        raise UsageError(
            f"{asked.links} names no release: give the table that `bench release` wrote beside "
            f"{asked.folder}, as it was written"
        )
    return _method(told), digest, _earlier(asked, asked.folder, digest)


def _cells(found: RunResult) -> set[str]:
    return {record.cell for record in found.summary.records}


def _missing(asked: Asked, very: Mapping[str, Row], left_out: Mapping[str, str]) -> Iterator[str]:
    """Profiles that link people and were not measured.

    An attacker with another image of the person is no gap where hardly anyone has two: it must be asked for, though,
    and be left out for that reason alone.
    """
    from bench.data.candidates import FEWEST_PEOPLE, SEVERAL

    data = next((row.data for row in very.values() if row.data is not None), None)
    people = None if data is None else data.subjects.get("private")
    seldom = data is not None and people is not None and data.rows.get("private", 0) - people < FEWEST_PEOPLE
    for name in LINKING:
        if f"{PROFILE}{name}" in very:
            continue
        if name not in asked.profiles:
            yield f"profile {name} was not asked for (--eve {name})"
            continue
        why = left_out.get(f"{PROFILE}{name}", "see above")
        if not (name == "other-study" and seldom and SEVERAL in why):
            yield f"profile {name} was not measured: {why}"


def _in_full(record: Record, place: Place) -> Record:
    """The record with the reason that its public form withholds.

    It stands in the log, which only the owner can read, as a report.
    """
    if record.reason is None or record.code is None or record.reason != withheld(record.code):
        return record
    log = place.results.log(record.cell, "fit" if record.phase == "fit" else record.evaluator)
    words = line(last_words(log), LONGEST)
    return record.model_copy(update={"reason": f"{SAID[record.code]}: {words}"}) if words else record


def _claim_in_full(claim: Claim, told: Mapping[str, object]) -> Claim:
    """The claim with basis and assumptions, as the release has them."""
    published = told.get("claim")
    if not isinstance(published, dict):
        return claim
    text = f"{published['basis']}. Assumed: {published['assumptions']}"
    return claim.model_copy(update={"implementation": text})


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


def _earlier(asked: Asked, folder: Path, digest: str) -> list[str]:
    """Sentences on the releases of the same people before this one.

    The ledger knows a release by the SHA-256 of its release.json: two of one configuration are told apart.
    """
    from bench.runs.release_ledger import composition_text, earlier_of_same_people
    from bench.runs.release_order import Order

    entries = Order(folder, ledger=asked.ledger).book.entries()
    mine = next((entry for entry in entries if entry.release == digest), None)
    if mine is None:
        return ["The ledger of releases does not have this one: whether others are of the same people is unknown."]
    before = earlier_of_same_people(mine, [entry for entry in entries if entry.created < mine.created])
    later = earlier_of_same_people(mine, [entry for entry in entries if entry.created > mine.created])
    have = "1 later release has" if len(later) == 1 else f"{len(later)} later releases have"
    after = [f"{have} some of these people: report on the last one, too."] if later else []
    return [composition_text(mine, before) or "The ledger has no earlier release of these people.", *after]


def _method(told: Mapping[str, object]) -> PluginSpec:
    """The method with all its parameters, whatever a preset says."""
    from bench.runs.owner_key import parameters_of

    method = cast("Mapping[str, object]", told["method"])
    sizes = parameters_of(cast("Mapping[str, str | int | float | bool | None]", method["parameters"]))
    return PluginSpec(str(method["name"]), None, tuple((name, text(value)) for name, value in sizes.items()))


def _runs(asked: Asked, method: PluginSpec, place: Place, observer: Observer) -> dict[str, RunResult | str]:
    """Each part's result, or the reason why it was left out."""
    from bench.runs.request import Request, run_spec

    very: dict[str, object] = {"controls": True}
    if asked.folder is not None:
        assert asked.links is not None
        source = PluginSpec(
            "imported", None, (("path", str(asked.folder.resolve())), ("links", str(asked.links.resolve())))
        )
        very |= {"rows_of": str(source), "this_release": True}
    scheme = {} if asked.scheme is None else {"scheme": asked.scheme}  # other keys are of what was released
    parts: dict[str, dict[str, object]] = {}
    for name in asked.profiles:
        measured = WITHOUT if name.startswith("public-only") else PAIRS
        parts[f"{PROFILE}{name}"] = {**very, "eve": name, "metrics": list(measured)}
        if measured is WITHOUT:
            parts[f"{PROFILE}{name}"] |= {"attacks": "none", "controls": False}
    named = cast("Sequence[str] | None", asked.options.get("attacks"))
    members = _on_membership()
    if named is not None:
        members = [name for name in named if parse(name).name in members]
    parts[TWINS] = {"metrics": list(TWIN), "attacks": members or "none", "controls": True}
    found: dict[str, RunResult | str] = {}
    requests = {
        name: Request({**asked.options, **scheme, **options, "methods": [str(method)]}, verb="report")
        for name, options in parts.items()
    }
    for name, request in requests.items():
        foresee(name, request, place, observer.display)
    for name, request in requests.items():
        observer.display.begin(name)
        if (count := len(run_spec(request).choices)) != 1:
            raise UsageError(f"a report is on one data set and one seed: got {count} choices of them")
        result = run(request, place, observer)
        if result.summary.stopped is not None:
            raise result.summary.stopped
        found[name] = "; ".join(result.summary.reasons.values()) or result
    return found


def _annex(
    found: RiskReport, very: Mapping[str, Row], results: Mapping[str, RunResult | str], place: Place, asked: Asked,
    reasons: Mapping[str, str],
) -> str:  # fmt: skip
    """The private annex as HTML."""
    from leaderboard.risk_page import annex_page

    people = {} if asked.links is None else _people(asked.links)
    worst = [
        part for name, row in very.items()
        if isinstance(result := results[name], RunResult)
        and (part := _worst(row, result, place, people)) is not None
    ]  # fmt: skip
    return annex_page(found, worst, reasons)


def _worst(row: Row, result: RunResult, place: Place, people: Mapping[int, str]) -> Worst | None:
    """The people whom the strongest attack finds; None without links."""
    from bench.plugins.profile_spec import profile_of
    from bench.progress import forward_progress
    from bench.runs.plan import cells
    from bench.runs.quiet_output import redirected
    from bench.runs.worst_cases import worst_cases
    from bench.workbench.cell import Planned
    from leaderboard.entries import short
    from leaderboard.risk_page import Person, Worst
    from leaderboard.risk_report import AVERAGE, MAXIMUM

    profile = profile_of(row.choice.get("eve"))
    scored = [record for record in row.records if record.attack is not None and AVERAGE in record.scores]
    if not profile.images or not scored:
        return None

    def strength(record: Record) -> list[float]:
        return [record.scores[name].value if name in record.scores else 0.0 for name in (MAXIMUM, AVERAGE)]

    strongest = max(scored, key=strength)
    name = short(strongest.evaluator)
    spec = result.parts[0][0]
    cell = next(each for each in cells(spec) if each.folder == row.cell)
    planned = next(
        each for attack in spec.attacks if (each := Planned("reidentification", attack, ())).name == strongest.evaluator
    )
    turned = any("turned" in str(note) for key, note in strongest.details.items() if key.endswith("sign"))
    log = place.results.log(row.cell, "annex")
    part = partial(Worst, str(profile), profile.holds, name)
    try:
        with redirected(log), forward_progress(lambda stage, done, total: None):
            found = worst_cases(cell, place, spec.isolation, planned, turned=turned)
    except Exception as error:  # an attack may raise anything; the report stands without its pictures
        return part([], f"The pictures could not be made ({type(error).__name__}); the log says more: {log}")
    shown = [
        Person(
            people.get(case.row, f"row {case.row}"),
            f"Named under {case.found:.0%} of {case.keys} keys; under the first one "
            f"{'correctly' if case.named else 'another person is ranked first'}.",
            [image.numpy() for image in case.images],
        )
        for case in found
    ]
    return part(shown)


def _people(links: Path) -> dict[int, str]:
    """File and person of each prepared row, from the owner's table."""
    from bench.data.csv_tables import read_table

    cells = read_table(links, ["row"], optional=("file", "person"))
    told = [name for name in ("person", "file") if name in cells]
    return (
        {int(line["row"]): ", ".join(str(line[name]) for name in told) for _, line in cells.iterrows()} if told else {}
    )


def _withheld_reasons(row: Row, place: Place) -> Iterator[tuple[str, str]]:
    """Reasons of single metrics that records withhold, from the logs."""
    for record in row.records:
        hidden = [name for name, why in record.not_applicable.items() if why == withheld("not-applicable")]
        said = log_lines(place.results.log(record.cell, record.evaluator)) if hidden else []
        for name in hidden:
            start = f"{NO_FIGURE}{name}: "
            why = next((each.removeprefix(start) for each in reversed(said) if each.startswith(start)), "")
            if why:
                yield f"{name}, {record.evaluator}, {row.choice.get('eve') or 'same-image'}", line(why, LONGEST)


def _on_membership() -> list[str]:
    """This project's attacks on membership."""
    return [
        name for name in registry.own("attacks")
        if cast("type[Attack]", registry.load("attacks", name)).scores == "membership"
    ]  # fmt: skip
