"""Draws: run secrets from the board, after code and data are committed.

An author who draws run secrets can try many and hand in the luckiest. So the author first writes a *commitment*: for
each measurement a hash of its code, parameters and data. The board answers with a signed *draw*, 256 random bits. Keys
and row orders of every cell follow from it by name (HKDF), and so does the seed of the splits. A verifier derives them
again, so nothing is disclosed. The board's register holds every draw in order, each with the digest of the one before,
so that draws that were never answered by a bundle are counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal, TypeVar

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from bench.disk.atomic_file import make_folder, read_plain, write_atomically, write_new
from bench.disk.disk_errors import unread
from bench.plugins.spec import UsageError, parse
from bench.randomness import Secret
from bench.results import signed_json
from bench.results.record_parts import Part
from bench.results.records import CHOICE, DatasetRecord, Record
from bench.results.results import Results
from bench.results.signed_json import AlteredError, content_key
from bench.results.signing_key import SigningKey
from bench.runs.plan import work
from bench.runs.run_spec import RunSpec
from bench.runs.tasks import OpenTask, open_task
from bench.workbench.cell import Cell
from bench.workbench.inputs import COMMITMENT, drawn_people, plugin_record, record_inputs
from bench.workbench.place import Place

COMMITTED, DRAWN = "commitment", "draw"
ENDING = ".draw.json"
DAYS = 90
"""Days in which a draw must be answered."""
SEEDS = 10**9
FREE = frozenset({COMMITMENT, CHOICE, "rows", "features", "scored in"})
"""Inputs that follow from the draw: the cell's secret, and what the seed splits and fits."""
PEOPLE = frozenset({"data"})
"""The further one if the draw draws the people of the data, too."""
Hex = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


File = TypeVar("File", bound=Part)


class DrawError(Exception):
    """An invalid draw or commitment; the text names no local path."""


class CommittedRow(Part):
    """A row before it is measured.

    Args:
        method, dataset: As the command line takes them; `origin` is the package of the method.
        records: A hash of all that decides each measurement but for the draw, by evaluator.
        code: The digest of the method's code; empty in commitments of earlier versions.
    """

    method: str
    origin: str
    dataset: str
    preset: str
    records: dict[str, str]
    code: str = ""

    def names(self, key: str) -> Iterator[tuple[str, ...]]:
        """Names by which its draws are counted, on its data and preset.

        They are its name and origin, its code, and the key of its author.
        """
        place = self.dataset, self.preset
        yield ("name", parse(self.method).name, self.origin, *place)
        yield from [("code", self.code, *place)] if self.code else []
        yield from [("key", key, *place)] if key else []


class Commitment(Part):
    """The rows that an author is about to measure."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    made_by: str
    created: str
    rows: list[CommittedRow] = Field(min_length=1)

    @property
    def digest(self) -> str:
        """The hash by which the register knows it."""
        return hashlib.sha256(signed_json.written(self.model_dump(mode="json", by_alias=True))).hexdigest()


class Draw(Part):
    """The board's answer to a commitment.

    Args:
        number: Of the register, from 1.
        value: 256 bits from the board's operating system.
        created, expires: When it was drawn, and until when it must be answered, in UTC.
        previous: The digest of the draw before it; empty for the first.
        author: The public key that signed the commitment; empty if none did.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    number: Annotated[int, Field(ge=1)]
    commitment: Commitment
    value: Hex
    created: str
    expires: str
    previous: str
    author: str = ""

    @property
    def secret(self) -> Secret:
        """The run secret of the folder that answers it."""
        return Secret(bytes.fromhex(self.value))

    @property
    def seed(self) -> int:
        """The seed of splits and public trainings."""
        return self.secret.derive("seed").number() % SEEDS

    def is_over(self, now: datetime) -> bool:
        """True if it can no longer be answered."""
        return now > datetime.fromisoformat(self.expires)

    def faults(self, records: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
        """Differences between records and what was committed, by name."""
        left = {(digest, name) for row in self.commitment.rows for name, digest in row.records.items()}
        known = set(left)
        for name, record in records.items():
            found = (committed_hash(record.inputs, record.choice), record.evaluator)
            if record.seed != self.seed:
                yield name, f"its seed is {record.seed}, and draw {self.number} gives {self.seed}"
            elif found not in known:
                yield name, f"it was not committed before draw {self.number}: its code, parameters or data are others"
            left.discard(found)
        for _, name in sorted(left):
            yield "cells", f"{name} was committed before draw {self.number}, and is not in the bundle"


@dataclass(frozen=True)
class SignedDraw:
    """A draw with its file's digest and its signer's public key."""

    draw: Draw
    digest: str
    signer: str


def committed_hash(inputs: Mapping[str, JsonValue], choice: Mapping[str, str | int | bool | None]) -> str:
    """A hash of all that decides a measurement but for the draw."""
    free = FREE if drawn_people(choice) is None else FREE | PEOPLE
    kept = {name: value for name, value in inputs.items() if name not in free}
    chosen: dict[str, JsonValue] = {name: value for name, value in choice.items() if name != "seed"}
    return content_key({**kept, CHOICE: chosen})


def commit(specs: Sequence[RunSpec], place: Place, out: Path, signer: SigningKey | None = None) -> Commitment:
    """Write a commitment to a run; its data are opened.

    Args:
        specs: The run, whose seeds do not count.
        place: Where its data are.
        out: A new file.
        signer: Signs it.

    Raises:
        UsageError: The file exists, or a plug-in or its parameters are files, which a verifier does not have.
        DataError: Its data are not here.
    """
    rows: dict[str, CommittedRow] = {}
    for spec in specs:
        for cell, asked in work(spec).items():
            method = plugin_record(cell.method)
            if cell.method.placeless != str(cell.method) or ".py:" in str(cell.method):
                raise UsageError(f"{method.written} names a file, which a verifier does not have: make a package of it")
            data = _opened(cell, place)
            shown = cell.choice.shown()
            records = {each.name: committed_hash(record_inputs(cell, data, each, None), shown) for each in asked}
            row = CommittedRow(
                method=method.written, origin=method.origin, dataset=str(shown["dataset"]), preset=cell.choice.preset,
                records=records, code=method.code,
            )  # fmt: skip
            rows[_without_seed(cell)] = row
    made = Commitment(made_by=f"veil-bench {version('veil-bench')}", created=_now(datetime.now(UTC)),
                      rows=[*rows.values()])  # fmt: skip
    _write(out, made, COMMITTED, signer)
    return made


def _opened(cell: Cell, place: Place) -> DatasetRecord:
    """A cell's data; people of the draw are others for now."""
    with TemporaryDirectory(prefix="bench-commit-") as folder:
        secretly = cell.choice.dataset.plugin.draws_people
        where = replace(place, results=Results(Path(folder)), cache=Path(folder, "cache")) if secretly else place
        return open_task(OpenTask(cell.choice, where, cell.device, 1)).data


def _without_seed(cell: Cell) -> str:
    return content_key({name: value for name, value in cell.identity().items() if name != "seed"})


def draw(path: Path, register: Path, signer: SigningKey, *, days: int = DAYS) -> tuple[Path, Draw]:
    """Answer a commitment, and enter the draw in the board's register.

    Args:
        path: The commitment's file.
        register: The folder of all draws.
        signer: The board's key.
        days: In which the draw must be answered.

    Raises:
        UsageError: It is no commitment, it was answered already, or the register is not whole.
    """
    try:
        commitment, author = _read(path, Commitment, COMMITTED)
        before = registered(register)
    except DrawError as error:
        raise UsageError(str(error)) from error
    if (answered := next((one for one in before if one.draw.commitment.digest == commitment.digest), None)) is not None:
        raise UsageError(f"{path} was answered by draw {answered.draw.number}: a commitment gets one draw")
    now = datetime.now(UTC)
    made = Draw(
        number=len(before) + 1, commitment=commitment, value=Secret.fresh().content.hex(), created=_now(now),
        expires=_now(now + timedelta(days=days)), previous=before[-1].digest if before else "",
        author=author or "",
    )  # fmt: skip
    make_folder(register)
    target = register / f"{made.number:04d}{ENDING}"
    _write(target, made, DRAWN, signer)
    return target, made


def begin(path: Path, specs: Sequence[RunSpec], results: Results) -> None:
    """Begin the results folder that answers a draw.

    Raises:
        UsageError: It is no draw, its time is over, something else is to be run than was committed, or the folder has
            another run secret.
    """
    try:
        found = read(path).draw
    except DrawError as error:
        raise UsageError(str(error)) from error
    if found.is_over(datetime.now(UTC)):
        raise UsageError(f"draw {found.number} had to be answered by {found.expires}: commit anew, and ask for another")
    known = {(row.method, row.dataset, row.preset): row for row in found.commitment.rows}
    for spec in specs:
        for cell, asked in work(spec).items():
            shown = cell.choice.shown()
            row = known.get((plugin_record(cell.method).written, str(shown["dataset"]), cell.choice.preset))
            missing = [each.name for each in asked if row is None or each.name not in row.records]
            if missing or cell.choice.seed != found.seed:
                raise UsageError(
                    f"draw {found.number} answers a commitment without {missing[0] if missing else 'this seed'} of "
                    f"{cell.method.shown} on {shown['dataset']}, preset {cell.choice.preset}: run what was committed"
                )
    if not results.draw_file.exists() and results.commitment is not None:
        raise UsageError(f"{results.root} has a run secret of its own: answer a draw in a new --results folder")
    results.keep_secret(found.secret)
    if not results.draw_file.exists():
        write_atomically(results.draw_file, path.read_bytes())


def registered(register: Path, trusted: AbstractSet[str] | None = None) -> list[SignedDraw]:
    """Every draw of a register, in order.

    Args:
        register: The folder.
        trusted: The board's public keys; None takes any.

    Raises:
        DrawError: A draw is missing, altered, or signed by none of these keys.
    """
    found: list[SignedDraw] = []
    for path in sorted(register.glob(f"*{ENDING}")):
        made = read(path)
        if made.draw.number != len(found) + 1 or made.draw.previous != (found[-1].digest if found else ""):
            raise DrawError(f"{path.name} does not follow the draw before it: the register is not whole")
        if trusted is not None and made.signer not in trusted:
            raise DrawError(f"{path.name} is signed by the key {made.signer[:16]}, and none of the board's")
        found.append(made)
    return found


def read(path: Path) -> SignedDraw:
    """The draw in a file. Raises DrawError."""
    try:
        return parsed(read_plain(path), path.name)
    except OSError as error:
        raise DrawError(f"{path.name} cannot be read: {unread(error)}") from error


def parsed(content: bytes, name: str) -> SignedDraw:
    """A draw from its bytes. Raises DrawError."""
    found, signer = _parsed(content, Draw, DRAWN, name)
    if signer is None:
        raise DrawError(f"{name} is signed by no key: it is no draw of a board")
    try:
        times = [datetime.fromisoformat(text) for text in (found.created, found.expires, found.commitment.created)]
    except ValueError as error:
        raise DrawError(f"{name} says no time: {error}") from error
    if any(time.tzinfo is None for time in times) or times[2] > times[0] + timedelta(days=1):
        raise DrawError(f"{name} was drawn before its commitment was made")
    return SignedDraw(found, hashlib.sha256(content).hexdigest(), signer)


def handed_out(register: Iterable[SignedDraw]) -> dict[tuple[str, ...], frozenset[int]]:
    """Numbers of draws by what they are counted by (`CommittedRow.names`)."""
    found: dict[tuple[str, ...], frozenset[int]] = {}
    for each in (one.draw for one in register):
        for name in {name for row in each.commitment.rows for name in row.names(each.author)}:
            found[name] = found.get(name, frozenset()) | {each.number}
    return found


def _now(time: datetime) -> str:
    return time.isoformat(timespec="seconds")


def _write(path: Path, content: Commitment | Draw, kind: str, signer: SigningKey | None) -> None:
    text = signed_json.written(signed_json.attest(content.model_dump(mode="json", by_alias=True), kind, signer))
    try:
        write_new(path, text, mode=0o644)
    except FileExistsError as error:
        raise UsageError(f"{path} is there already: name another file") from error


def _read(path: Path, kind: type[File], name: str) -> tuple[File, str | None]:
    try:
        return _parsed(read_plain(path), kind, name, path.name)
    except OSError as error:
        raise DrawError(f"{path.name} cannot be read: {unread(error)}") from error


def _parsed(content: bytes, kind: type[File], name: str, where: str) -> tuple[File, str | None]:
    try:
        found = kind.model_validate(signed_json.read(content, name))
    except AlteredError as error:
        raise DrawError(f"{where}: {error}") from error
    except ValidationError as error:
        raise DrawError(f"{where} is no {name}: {error.errors()[0]['msg']}") from error
    return found, signed_json.signer(content)
