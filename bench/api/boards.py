"""Functions of boards, records and data sets, one a command."""

from __future__ import annotations

__figures__ = False

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.api.running import open_place, records_of
from bench.contract.source import Source
from bench.plugins import catalogue, registry
from bench.plugins.spec import PluginSpec, UsageError, did_you_mean, parse
from bench.progress import report
from bench.results.records import Record
from bench.results.results import Results
from bench.results.signing_key import SigningKey, read_public
from bench.workbench.place import Place

if TYPE_CHECKING:  # each function imports what it needs: a list of plug-ins needs no pages
    from bench.data.prepare import Prepared
    from bench.exchange.bundle_tiers import Board as Drawn
    from bench.exchange.check import Finding
    from bench.exchange.draws import Commitment, Draw
    from bench.exchange.merge import Outcomes
    from bench.exchange.verify import Verification
    from bench.results.store import Regenerable
    from bench.results.verdict import Verdict
    from bench.runs.request import Request
    from bench.runs.run_spec import RunSpec
    from bench.workbench.choice import Choice
    from leaderboard.board import Row
    from leaderboard.comparison import Compared, Ranked
    from leaderboard.intake import Draws
    from leaderboard.one_scale import Scale
    from leaderboard.published import Publication
    from leaderboard.quotation import Misquoted
    from leaderboard.reach import Step
    from leaderboard.reproduction import Reproduction

CORRUPT = re.compile(r".+-[0-9a-f]{16}-corrupt\.txt")
"""Lists of the files that could not be decoded, beside a prepared folder."""

SITE = "board"


@dataclass(frozen=True)
class Comparison:
    """Two rows of a board's part, or all with their ranks."""

    dataset: str
    preset: str
    seed: int
    first: Row | None = None
    second: Row | None = None
    figures: Sequence[Compared] = ()
    ranks: Sequence[Ranked] = ()

    @property
    def empty(self) -> bool:
        """True if nothing could be compared."""
        return not self.ranks and not any(figure.paired is not None for figure in self.figures)


def compare(
    results: Results, methods: Sequence[str] = (), metrics: Sequence[str] = (), attack: str | None = None
) -> list[Comparison]:
    """Compare two methods, or all, on the same people and keys.

    Raises:
        UsageError: No records, or a name that none of them has.
    """
    return compare_and_scale(results, methods, metrics, attack)[0]


def compare_and_scale(
    results: Results, methods: Sequence[str] = (), metrics: Sequence[str] = (), attack: str | None = None
) -> tuple[list[Comparison], list[Scale]]:
    """As `compare`; and two methods' gains over a guess, by threat.

    Raises UsageError as `compare` does.
    """
    from bench.workbench.choice import collection
    from leaderboard.board import rows
    from leaderboard.comparison import compared, ranked
    from leaderboard.one_scale import scales
    from leaderboard.sections import names

    records = list(records_of(results))
    board = rows(records)
    _check_names(records, board, methods, metrics, attack)
    written = names(board)
    parts: dict[tuple[object, ...], list[Row]] = {}
    for row in board:
        parts.setdefault((row.dataset, row.preset, row.seed, *collection(row.choice, row.data)), []).append(row)
    chosen = list(metrics) or sorted({name for row in board for name in row.entries})
    comparisons = []
    for part in parts.values():
        where = written[part[0].cell], part[0].preset, part[0].seed
        if not methods:
            ranks = [rank for name in chosen if (rank := ranked(part, name)) is not None]
            comparisons.append(Comparison(*where, ranks=ranks))
            continue
        first, second = (_row_of(name, part) for name in methods)
        if first is None or second is None:
            continue
        if first is second:
            raise UsageError(f"{methods[0]!r} and {methods[1]!r} are the same row: name two different ones")
        comparisons.append(Comparison(*where, first, second, compared(first, second, chosen, attack)))
    return comparisons, scales([row for row in board if any(_fits(row, parse(name)) for name in methods)])


def _check_names(
    records: Sequence[Record], board: Sequence[Row], methods: Sequence[str], metrics: Sequence[str], attack: str | None
) -> None:
    if not board:
        raise UsageError("no records to compare: run something first, or name the folder with --results")
    figures = sorted({name for row in board for name in row.entries})
    for name in metrics:
        if name not in figures:
            raise UsageError(f"no record has a figure called {name!r}; {did_you_mean(name, figures)}")
    if len(methods) not in (0, 2):
        raise UsageError(f"name two methods, or none to compare all: got {len(methods)}")
    if attack is not None and not methods:
        raise UsageError("--attack goes with two methods: ranks use the strongest attack on each method")
    attacks = {record.attack.name for record in records if record.attack is not None}
    attacks |= {record.evaluator for record in records if record.attack is not None}
    if attack is not None and attack not in attacks:
        raise UsageError(f"no record is of an attack called {attack!r}; {did_you_mean(attack, sorted(attacks))}")
    for name in methods:
        if not any(_fits(row, parse(name)) for row in board):
            labels = ", ".join(dict.fromkeys(row.label for row in board))
            raise UsageError(f"no record is of {name!r}; there are {labels}")


def _row_of(name: str, part: Sequence[Row]) -> Row | None:
    """The row of a method as written; None if none fits.

    A row with exactly these parameters has precedence. Raises UsageError if several fit.
    """
    from leaderboard.names import unusual

    spec = parse(name)
    fitting = [row for row in part if _fits(row, spec)]
    written = {key for key, _ in spec.parameters}
    exact = [row for row in fitting if unusual(row.records[0]).keys() == written]
    fitting = exact if len(exact) == 1 else fitting
    if len(fitting) > 1:
        raise UsageError(f"{name!r} may be any of {', '.join(row.label for row in fitting)}: name more parameters")
    return fitting[0] if fitting else None


def _fits(row: Row, spec: PluginSpec) -> bool:
    return is_meant(row.method, row.parameters, spec)


def is_meant(method: str, parameters: Mapping[str, object], spec: PluginSpec) -> bool:
    """True if a row has that name and the written parameters."""
    return method == spec.name and all(_same(parameters.get(key), value) for key, value in spec.parameters)


def _same(recorded: object, written: object) -> bool:
    """True if a recorded parameter is the written value (20 is 20.0)."""
    if isinstance(recorded, bool) or recorded is None:
        return str(recorded).lower() == str(written).lower()
    if isinstance(recorded, int | float):
        try:
            return float(str(written)) == recorded
        except ValueError:
            return False
    return str(recorded) == str(written)


def reach(results: Results, preset: str) -> tuple[list[Step], list[Step]]:
    """Ladder steps of the folder's records, and all at the preset.

    Raises:
        UsageError: No attack was measured at the preset.
    """
    from leaderboard.reach import shipped, steps

    measured = steps(records_of(results))
    known = [step for step in (*measured, *shipped()) if step.preset == preset]
    if not known:
        raise UsageError(
            f"no attack was measured on the ladder at preset {preset}: run `bench run --suite ladder --preset {preset}`"
        )
    return measured, known


def clean(place: Place, only: Literal["artefacts", "cache"] | None = None) -> list[Regenerable]:
    """Artefacts and caches that can be made again.

    Only folders with our CACHEDIR.TAG count, and in them only files of ours. `Regenerable.remove` removes one.

    Raises:
        UsageError: Artefacts are asked for, and it is no results folder.
    """
    from bench.results.store import of_store

    items: list[Regenerable] = []
    if only != "cache":
        if not place.results.begun:
            raise UsageError(f"expected a results folder, got {place.results.root}: it has neither cells nor artefacts")
        items += of_store(place.results.store.root)
    return items if only == "artefacts" else [*items, *_cached(place.cache)]


def _cached(cache: Path) -> Iterator[Regenerable]:
    from bench.data.prepared import FILES
    from bench.features.feature_space import VECTORS
    from bench.results.build_folder import is_cache
    from bench.results.store import Regenerable, of_store, only

    yield from of_store(cache / "features")
    for folder, names in ((cache, FILES), (cache / "features" / "vectors", VECTORS)):
        if not is_cache(folder):
            continue
        for path in sorted(folder.iterdir()):
            # Empty folders stay: nothing says that they were made here.
            if path.is_dir() and not path.is_symlink() and (folder_files := only(path, names)) and folder_files.size:
                yield Regenerable(path, folder_files.size, path.with_suffix(".lock") if names is VECTORS else None)
            elif names is FILES and CORRUPT.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                yield Regenerable(path, path.stat().st_size)


def dataset(name: str) -> Source:
    """A data set as `bench run` opens it. Raises UsageError."""
    spec = registry.canonical("datasets", parse(name), "quick")
    source = registry.build("datasets", spec, "quick")
    assert isinstance(source, Source)
    return source


def data_list(place: Place) -> list[tuple[str, str, str]]:
    """Name, first line, and place or problem of every data set."""
    rows = []
    for name, entry in sorted(registry.entries("datasets").items()):
        error = registry.inspect(entry).error
        about = "" if error else catalogue.summary(registry.load("datasets", name))
        rows.append((name, about, error or _location(name, place.roots)))
    return rows


def _location(name: str, roots: Sequence[Path]) -> str:
    if catalogue.needs_argument(registry.load("datasets", name)):
        return f"{name}:..., where you say"
    source = registry.build("datasets", parse(name), "quick")
    assert isinstance(source, Source)
    try:
        return source.here(roots) or "not here"
    except PermissionError as error:  # of one set, which hides no other
        return f"{error.filename} may not be read"


def data_prepare(
    source: Source, place: Place, *, size: int | None = None, skip_corrupt: bool = False,
    max_pixels: int | None = None, jobs: int | None = None, report: Callable[[int, int], None] | None = None,
) -> Prepared:  # fmt: skip
    """Decode and resize a data set unless prepared. Raises DataError."""
    import os

    from bench.data.prepare import prepare

    return prepare(
        source, roots=place.roots, cache=place.cache, size=size, workers=jobs or os.cpu_count() or 1,
        skip_corrupt=skip_corrupt, max_pixels=max_pixels, report=report or (lambda done, total: None),
    )  # fmt: skip


def build_board(
    results: Path | None = None, site: Path | None = None, trusted: Sequence[Path] = ()
) -> tuple[Path, list[tuple[str, str]]]:
    """Write the pages of a results folder, or of the published records.

    Returns:
        The index page, and what was refused: a name and the reason.

    Raises:
        UsageError: Published records are asked for, and this is an installed package.
    """
    from bench.results.results import ReadOnce
    from leaderboard.site import build

    place = open_place(results or Path("results"), trusted=trusted)
    if results is not None:
        read = ReadOnce(place.results.root, place.results.storage, place.results.trusted)
        index = build(read, (site or read.root / "site").resolve(), report=report)
        return index, [(name, read.bare(name, reason)) for name, reason in read.refused()]
    return _published_board((site or Path(SITE)).resolve(), place.results.trusted)


def _published_board(site: Path, trusted: frozenset[str] | None) -> tuple[Path, list[tuple[str, str]]]:
    from dataclasses import replace

    from bench.results.verdict import Verdict
    from leaderboard.intake import board_verdicts
    from leaderboard.packed_rows import published_results
    from leaderboard.published import PUBLISHED, problems, submitted, withdrawn
    from leaderboard.site import build

    _check_checkout("name a results folder with --results, or build in a checkout of the project")
    judgements = list(board_verdicts())
    verdicts = tuple(verdict for verdict in judgements if isinstance(verdict, Verdict))
    others, refused = submitted()
    others = [replace(other, trusted=trusted) for other in others]
    draws, broken = _draws(verdicts)
    refused = [*refused, *broken]
    published = published_results(PUBLISHED, trusted)
    index = build(
        published, site, *others, verdicts=verdicts, refused=refused, draws=draws,
        withdrawn=withdrawn(), report=report,
    )  # fmt: skip
    unread = [("verdict", str(verdict)) for verdict in judgements if not isinstance(verdict, Verdict)]
    checked = problems(results=published if trusted is None else None)
    return index, [*checked, *refused, *unread]


def _draws(verdicts: Sequence[Verdict]) -> tuple[Draws, list[tuple[str, str]]]:
    """Draws handed out, and those that rows answer; or the register's fault."""
    from bench.exchange.draws import DrawError, handed_out, registered
    from bench.results.verdict import verifiers
    from leaderboard.intake import DRAWS, NO_DRAWS, VERIFIERS, Draws

    try:
        register = registered(DRAWS, verifiers(VERIFIERS))
    except DrawError as error:
        return NO_DRAWS, [("draws", str(error))]
    answered = frozenset(row.draw for verdict in verdicts for row in verdict.rows.values() if row.draw is not None)
    return Draws(handed_out(register), {one.draw.number: one.draw.author for one in register}, answered), []


def publish(place: Place, to: Path | None = None) -> Publication:
    """Copy a results folder to the published records. Raises UsageError."""
    from leaderboard import published

    if not (place.results.root / "cells").is_dir():
        raise UsageError(
            f"expected a results folder, got {place.results.root}; `bench run --suite reference` makes one"
        )
    return published.publish(place.results, to or published.PUBLISHED)


def ledger(*, renew: bool = False) -> tuple[Reproduction, list[Misquoted]]:
    """The papers' reproduced figures, and those unlike their source.

    `renew` writes the latter anew.

    Raises:
        UsageError: This is an installed package, or a figure has no source.
    """
    from bench.disk.atomic_file import write_atomically
    from leaderboard.packed_rows import published_results
    from leaderboard.published import PUBLISHED
    from leaderboard.quotation import misquoted, renewed
    from leaderboard.reach import shipped
    from leaderboard.reproduction import FILE, read

    _check_checkout("use a checkout of the project")
    path, root = PUBLISHED.parent / FILE, PUBLISHED.parent.parent
    reproduction = read(path)
    published = published_results(PUBLISHED)
    wrong = list(misquoted(reproduction, published, shipped(), root))
    if wrong and renew:
        try:
            text = renewed(path.read_text(encoding="utf-8"), published, shipped(), root)
        except LookupError as error:
            raise UsageError(f"{path.name}: a figure has no source, and must be removed: {error.args[0]}") from error
        write_atomically(path, text.encode())
    return reproduction, wrong


def _check_checkout(remedy: str) -> None:
    from leaderboard.published import PUBLISHED

    if not PUBLISHED.is_dir():
        raise UsageError(f"the published records are not part of an installed package: {remedy}")


@dataclass(frozen=True)
class Board:
    """A run's rows, the verdict of each by cell, and the limit."""

    rows: Sequence[Row]
    verdicts: Mapping[str, str]
    limit: int | None


def board(records: Sequence[Record], place: Place) -> Board:
    """The board of a run's records; verdicts use all in its folder."""
    from leaderboard.board import rows

    # The pages refuse limited records; the person who asked for a limit still wants to see the figures.
    shown = [record.model_copy(update={"choice": {**record.choice, "limit": None}}) for record in records]
    pool = list(records_of(place.results))
    board_rows = rows(shown, {record.cell: record.cell.partition("/")[0] for record in shown}, pool)
    panels = {row.cell: (row.panel, row.membership) for row in (*board_rows, *rows(pool))}  # of all that is on record
    verdicts = {row.cell: "; ".join(panel.verdict for panel in panels[row.cell] if panel.members) for row in board_rows}
    limits = [record.limit for record in records if record.limit is not None]
    return Board(board_rows, verdicts, min(limits, default=None))


AUDIT_METRIC = "empirical-epsilon"


@dataclass(frozen=True)
class AuditRow:
    """An audited claim as text, and if the audit violates it."""

    method: str
    claimed: str = ""
    derived: str = ""
    shown: str = ""
    ceiling: str = ""
    verdict: str = ""
    test: str = ""
    violated: bool = False


@dataclass(frozen=True)
class Audited:
    """The claims of all methods on one choice of data."""

    choice: Choice
    rows: Sequence[AuditRow]


def audits(spec: RunSpec, place: Place, confidence: float) -> list[Audited]:
    """The claims of a run's methods, with bounds of that confidence."""
    from bench.runs.plan import data_key, standing, work

    by_choice: dict[Choice, list[AuditRow]] = {}
    for cell, planned in work(spec).items():
        data = place.results.journal.data(data_key(cell.choice))
        record = standing(place.results, cell, planned[0], data, spec.isolation).record
        if record is not None:
            by_choice.setdefault(cell.choice, []).append(_audit_row(cell.method.shown, record, confidence))
    return [Audited(choice, rows) for choice, rows in by_choice.items()]


def _audit_row(method: str, record: Record, confidence: float) -> AuditRow:
    from leaderboard.board import epsilon_text
    from leaderboard.claims import SURE, CountsError, at, left_out, verdict
    from leaderboard.entries import number, reason

    claim = record.claim
    claimed, derived = ("", "") if claim is None else (epsilon_text(claim.epsilon), epsilon_text(claim.derived))
    if claim is None or AUDIT_METRIC not in record.scores:
        why = record.not_applicable.get(AUDIT_METRIC) or reason(record)
        text = why if why.startswith(record.status) else f"{record.status}: {why}"
        return AuditRow(method, claimed, derived, verdict=text)
    try:
        score, sure = (at(record, level) for level in (confidence, max(confidence, SURE)))
    except CountsError as error:
        return AuditRow(method, claimed, derived, verdict=str(error))
    judgement, details = verdict(claim, score, sure, left_out(record)), record.details
    interval = f"\n({number(score.value, None)} – {'∞' if score.high is None else number(score.high, None)})"
    test = ""
    if "trials" in details:
        accounts = details["accounting"]
        assert isinstance(accounts, dict)
        test = (
            f"{details['inputs']}\n{details['statistic']}\n"
            f"{details['correct']} of {details['guesses']} guesses correct, "
            f"{details['trials']} trials\nnoise: {details['noise_checks']}"
            + "".join(f"\nε by {name}: {number(float(str(spent)), None)}" for name, spent in accounts.items())
        )
    return AuditRow(
        method, claimed, derived, number(score.value, None) + interval, number(score.parts["ceiling"].value, None),
        judgement.sentence, test, violated=judgement.word in ("violated", "noise fails"),
    )  # fmt: skip


def submit(
    results: Results, out: Path | None = None, *, signer: SigningKey | None = None, disclose: bool = False,
    disclose_to: Path | None = None,
) -> tuple[Path, Sequence[Finding]]:  # fmt: skip
    """Pack a results folder into a bundle (`bench.exchange.submit`)."""
    from bench.exchange import submit as room

    return room.submit(results, out, signer=signer, disclose=disclose, disclose_to=disclose_to)


def verify(
    bundle: Path, place: Place, *, secret: Path | None = None, rerun: int | None = None, sealed: bool = False,
    signer: SigningKey | None = None, out: Path | None = None, register: Path | None = None,
    received: str | None = None, releases: Sequence[str] = (),
) -> Verification:  # fmt: skip
    """Judge a bundle again and write the verdict (`bench.exchange.verify`).

    `register` is the folder of the board's draws; None stands for the project's, if this is a checkout. `received` is
    when the board got the bundle, by the board's own clock; None for now.
    """
    from bench.exchange import verify as room
    from bench.exchange.disclosed_secrets import Disclosed

    apart = Disclosed.read(secret) if secret else None
    return room.verify(
        bundle, place, secrets=apart, rerun=rerun, sealed=sealed, signer=signer, out=out,
        board=_register(register, received), strongest=_strongest, releases=releases,
    )  # fmt: skip


def _register(folder: Path | None, received: str | None) -> Drawn | None:
    """The draws of a register, signed by the board's keys. Raises UsageError.

    The keys are those in `leaderboard/verifiers/`, or in the folder that is named.
    """
    from datetime import UTC, datetime

    from bench.exchange.bundle_tiers import Board
    from bench.exchange.draws import DrawError, registered
    from bench.results.verdict import verifiers
    from leaderboard.intake import DRAWS, VERIFIERS

    if folder is None and not VERIFIERS.is_dir():
        return None  # an installed package
    trusted, time = verifiers(VERIFIERS) if folder is None else verifiers(folder), datetime.now(UTC)
    if received is not None:
        try:
            time = datetime.fromisoformat(received)
        except ValueError as error:
            raise UsageError(f"--received must be a date or time, such as 2026-11-27, got {received!r}") from error
        time = time.replace(tzinfo=time.tzinfo or UTC)
        if time > datetime.now(UTC):
            raise UsageError(f"--received must be a time of the past, got {received}")
    try:
        return Board(registered(folder or DRAWS, trusted), time)
    except DrawError as error:
        raise UsageError(f"the register of draws: {error}") from error


MOST_USUAL = 5


def _strongest(dataset: str) -> list[str]:
    """The attacks that decide most published rows of a data set."""
    from collections import Counter
    from contextlib import suppress

    from bench.results.records import RecordError, loads
    from bench.results.verdict import deciding
    from leaderboard.packed_rows import read_row, row_files
    from leaderboard.published import PUBLISHED

    counts = Counter[str]()
    for path in row_files(PUBLISHED, dataset):
        with suppress(RecordError, UnicodeDecodeError):
            records = [loads(text.decode(), path.name) for text in read_row(path).records.values()]
            if records[0].method.role is None:
                attacks = {record.evaluator for record in records if record.attack is not None}
                counts.update(sorted(deciding(records) & attacks))
    return [name for name, _ in counts.most_common(MOST_USUAL)]


def commit(request: Request, place: Place, out: Path, signer: SigningKey | None = None) -> Commitment:
    """Write a commitment to a run, for a draw (`bench.exchange.draws`)."""
    from bench.exchange import draws
    from bench.runs.request import run_specs

    return draws.commit(run_specs(request), place, out, signer)


def draw(
    commitment: Path, signer: SigningKey, register: Path | None = None, days: int | None = None
) -> tuple[Path, Draw]:
    """Answer a commitment with a draw of the board (`bench.exchange.draws`)."""
    from bench.exchange import draws
    from leaderboard.intake import DRAWS

    if register is None:
        _check_checkout("name the register's folder with --register")
    return draws.draw(commitment, register or DRAWS, signer, days=draws.DAYS if days is None else days)


def verify_folder(results: Results) -> list[tuple[str, str]]:
    """Altered files of a results folder, each with the reason.

    Raises UsageError if it holds no record."""
    from leaderboard.site import altered

    if not results.root.is_dir():
        raise UsageError(f"expected a results folder, got {results.root}; `bench run` makes one")
    pages = ((f"site/{name}", reason) for name, reason in altered(results.root / "site"))
    problems = [*results.problems(), *pages]
    if not problems and next(results.records(), None) is None:
        raise UsageError(f"no records in {results.root}: run something first, or name the folder with --results")
    return problems


def merge(
    sources: Sequence[Path], into: Path, *, trusted: Sequence[Path] = (),
    prefer: Literal["newest", "first"] | None = None, secret_of: Path | None = None,
) -> Outcomes:  # fmt: skip
    """Join results folders (`bench.exchange.merge`)."""
    from bench.exchange import merge as room

    keys = frozenset(map(read_public, trusted)) if trusted else None
    folders = [Results(path.resolve(), trusted=keys) for path in dict.fromkeys(sources)]
    owner = None if secret_of is None else Results(secret_of.resolve(), trusted=keys)
    return room.merge(folders, Results(into.resolve(), trusted=keys), prefer=prefer, secret_of=owner)


def export(results: Results, folder: Path, *, restricted: bool = False) -> Outcomes:
    """Copy what may leave into a folder (`bench.exchange.export`)."""
    from bench.exchange import export as room

    return room.export(results, folder, restricted=restricted)
