"""A data owner's release: a folder to publish, and her secrets apart.

All rows and all labels go out, or those that her table names; parameters stand at the paper's unless she wrote others
(`bench.workbench.owned_rows`). Key and order of the rows come from fresh secrets of the operating system, 256 bits
each, and not from the run secret of the results folder, so that holders of that folder cannot make them again. The
release is not kept. What speaks against it (`bench.runs.release_terms`) needs her reason, which goes into the folder.

Into DIR, which appears in one step, complete, or not at all:
- release.safetensors: `samples` (m, ...) float32 and, if labels are released, `labels` (m, k): 1, 0, NaN unknown.
- generator.safetensors in its place, if the method publishes a generator: anyone can then draw rows from it.
- scheme.safetensors: parameters that the method learned from public rows, if any (`Method.load`).
- features.safetensors: parameters that the extractor learned from public images, if any (`Extractor.load`).
- release.json: how to read them, the method and its claim. No name of the data, path, seed or person.
- tables of labels and equal rows, README.md, a data card, scripts, hashes (`bench.runs.release_files`).
With `--format png` or `dicom`, images/ holds the rows in place of release.safetensors.

The key (`Scheme.load_key`) goes into a file of its own with mode 0600, never into DIR; so does the table of links, with
the number (`row`) and the digest of the raw row that each released one was made of, its file and its person, as
`bench.data.release_folder` reads it; of releases without links, of every raw row. A secret that is noise alone, of a
method with a claim of differential privacy, is not written at all unless a file for it is named: its holder could take
the noise away.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias

import platformdirs
import torch
from PIL import Image
from pydantic import JsonValue

from bench.contract.seal import Sealed, check, seal
from bench.data.release_folder import RELEASE
from bench.data.secondary_capture import write_secondary_capture
from bench.disk.atomic_file import make_folder, sync, write_new
from bench.disk.disk_errors import writing
from bench.isolation import RemoteKey
from bench.plugins.spec import UsageError, parameters
from bench.progress import forward_progress, stage
from bench.randomness import Secret
from bench.results import log_file
from bench.results.reason import Phase, phase_of, withheld
from bench.results.records import claim_record
from bench.results.results import Results
from bench.results.run_secret import ABOUT, MAKER, outside_releases
from bench.rows.grouping import FEWEST, person_groups, persons_of
from bench.runs.owner_key import SCHEME, opened_key, packed_key
from bench.runs.plan import cells
from bench.runs.release_files import (
    IMAGES,
    IMAGES_HASH,
    Contents,
    bit_groups,
    images_hash,
    label_counts,
    sha256_of,
    table_text,
    write_card,
    write_sums,
    write_texts,
)
from bench.runs.release_ledger import (
    Entry,
    Ledger,
    composition_text,
    earlier_of_same_people,
    of_composition,
    refuse_key_under_another_scale,
)
from bench.runs.release_people import people_behind, row_hashes
from bench.runs.release_terms import (
    Cause,
    ReleaseRefusedError,
    check_reason,
    distinct,
    of_claim,
    of_notes,
    of_parameters,
)
from bench.runs.run_spec import RunSpec
from bench.runs.second_look import Look, look, names_among, private_words, read_back
from bench.runs.worker import code_of, text_of
from bench.types import Dataset, Key, Release, Scheme, State
from bench.wire.tensor_file import checksum_of, write_tensors
from bench.wire.text import line
from bench.workbench.cell import Cell
from bench.workbench.inputs import plugin_record
from bench.workbench.open_data import refuse_shared_people
from bench.workbench.owned_rows import Owned, names_and_people, open_owned
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench

Form = Literal["safetensors", "png", "dicom"]
WHOLE = "paper"
"""The preset whose sizes are the papers'."""


@dataclass(frozen=True)
class Order:
    """An owner's wishes for a release.

    Args:
        out: A new folder, to be published whole.
        key_out: A new file for the secret; None for DIR-key.safetensors beside `out`, and for no file if it is noise.
        links_out: A new file for the links between released and raw rows; None for DIR-links.csv beside `out`.
        rows: A CSV table of the rows to release; None for all.
        scheme: A file of a fitted scheme; None fits one.
        accept: The owner's reason to release in spite of every cause; None for none.
        dry: Write nothing, and say what would leave.
        form: The file format of the rows.
        passphrase: Encrypts the key file; None leaves it open to its owner.
        key: An earlier key file to use again; None draws a fresh key.
        ledger: The folder of the owner's ledger; None for the usual one of this user.
        accept_names: Publish findings that are called as a file, a folder or a person.
    """

    out: Path
    key_out: Path | None = None
    links_out: Path | None = None
    rows: Path | None = None
    scheme: Path | None = None
    accept: str | None = None
    dry: bool = False
    form: Form = "safetensors"
    passphrase: str | None = None
    key: Path | None = None
    ledger: Path | None = None
    accept_names: bool = False

    def resolved(self) -> Order:
        """The same with absolute paths, secrets beside the folder by default."""
        out = self.out.resolve()
        links = self.links_out or out.parent / f"{out.name}-links.csv"
        return replace(
            self, out=out, key_out=None if self.key_out is None else self.key_out.resolve(), links_out=links.resolve()
        )

    @property
    def book(self) -> Ledger:
        """The owner's ledger."""
        usual = Path(platformdirs.user_data_dir("veil-bench")) / "releases"
        return Ledger((self.ledger or usual).resolve())

    @property
    def key_place(self) -> Path:
        """The file of the key, if one is written."""
        return self.key_out or self.out.parent / f"{self.out.name}-key.safetensors"


@dataclass(frozen=True, eq=False)
class Publication:
    """Files to publish, by name, release.json, and two secrets.

    `key` is empty if there is no secret, or it is not kept; `noise` says which. `links` is a table. `entry` is for the
    ledger, and `composition` says how the release adds to earlier ones of the same people. `people` are lines on the
    people behind the claim.
    """

    files: Mapping[str, State]
    about: Mapping[str, JsonValue]
    key: State
    links: str
    noise: bool
    scheme: str
    entry: Entry
    composition: str
    people: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Published:
    """A release, finished or tried: lines for its owner to read.

    `publication` is None if nothing was written; `causes` speak against the release. `look` is what was found in the
    folder after it was written.
    """

    publication: Publication | None
    order: Order
    title: str
    notes: Sequence[str]
    labels: Sequence[str]
    claims: str
    warnings: Sequence[str]
    causes: Sequence[Cause]
    look: Look | None = None


Verdicts: TypeAlias = "Callable[[Owned], Sequence[Cause]]"
"""What records say against a release of these rows."""


def release(
    spec: RunSpec, place: Place, order: Order, verdicts: Verdicts,
    report: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Published:  # fmt: skip
    """Release an owner's rows and write them.

    Args:
        spec: One method on one data set under one seed.
        place: The results folder holds fitted schemes.
        order: The owner's wishes.
        verdicts: Reads the records of these rows.
        report: Hears the stage and its steps; the phase alone if data may not be shared.

    Raises:
        UsageError: More than one cell, a path that exists, or a method that releases nothing here.
        ReleaseRefusedError: Something speaks against it, and the owner gave no reason.
    """
    where = replace(place, memory=spec.memory)  # as for a run: no method can tell which of the two it is in
    if len(spec.methods) != 1 or len(spec.choices) != 1:
        raise UsageError(
            f"a release needs one data set, one method and one seed: got {len(spec.methods)} methods, "
            f"{len(spec.choices)} choices of data set and seed"
        )
    try:
        check_reason(order.accept)
    except ValueError as error:
        raise UsageError(str(error)) from None
    order = order.resolved()
    _check_places(order, where)
    (cell,) = cells(spec)
    _check_method(cell)
    progress = _Stages(report)
    with forward_progress(progress.hear):
        owned = open_owned(cell, where, spec.isolation, rows=order.rows, scheme=order.scheme)
        with closing(owned.bench) as bench:
            progress.restricted = not bench.record.shareable
            refuse_shared_people(cell.choice, where)
            causes = distinct([*verdicts(owned), *of_parameters(cell.method.plugin), *of_notes(bench.record.notes)])
            with quiet(bench, where.results, "release") as log:
                if order.dry or (causes and order.accept is None and cell.method.plugin.needs_public):
                    made = None  # no training for a release that will not be
                else:
                    made, more = _release(owned, where, order, log)
                    causes = distinct([*causes, *more])
    if order.dry:
        return _described(owned, None, order, causes)
    if made is None or (causes and order.accept is None):
        raise ReleaseRefusedError(causes)
    if causes:
        told: JsonValue = {"reason": line(order.accept or ""), "in spite of": [cause.text for cause in causes]}
        made = replace(made, about={**made.about, "accepted": told})
    seen = _write(made, order, owned, shared=bench.record.shareable)
    return replace(_described(owned, made, order, causes), look=seen)


class _Stages:
    """Passes stages on; with `restricted`, the phase replaces the method's own words."""

    restricted = False

    def __init__(self, report: Callable[[str, int, int], None]) -> None:
        self._report = report
        self._phase: Phase = "start"

    def hear(self, name: str, done: int, total: int) -> None:
        """A new stage (0 of 0), or its number of steps done."""
        self._phase = phase_of(name, self._phase, total)
        self._report(self._phase if self.restricted else name, done, total)


def _check_places(order: Order, where: Place) -> None:
    """Check that all are new, and the secrets apart. Raises UsageError."""
    out = order.out
    if not out.parent.is_dir() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise UsageError(f"--out must be a new or empty folder in a folder that exists, got {out}")
    if where.results.root.is_relative_to(out):
        raise UsageError(f"--results holds secrets and must lie outside {out}, which is published")
    assert order.links_out is not None
    secrets = {"--key-out": (order.key_place, "the key"), "--links-out": (order.links_out, "the table of links")}
    for flag, (path, what) in secrets.items():
        if path.is_relative_to(out):
            raise UsageError(f"{what} is a secret and must lie outside {out}, which is published")
        outside_releases(path, what)
        if path.exists() or not path.parent.is_dir():
            raise UsageError(f"{flag} must be a new file in a folder that exists, got {path}")
    if order.links_out == order.key_place:
        raise UsageError(f"--links-out must be another file than the key's, got {order.links_out}")


def _check_method(cell: Cell) -> None:
    """Raise UsageError for methods that are not for publishing."""
    method = plugin_record(cell.method)
    if cell.method.plugin.releases is not None:
        raise UsageError(f"{method.name} was released already: publish its folder")
    if method.role is not None:
        raise UsageError(
            f"{method.name} is a reference method that checks attacks ({method.role}); it is not for publishing"
        )


def _release(owned: Owned, where: Place, order: Order, log: Path | None) -> tuple[Publication, Sequence[Cause]]:
    """Private rows released under a fresh secret; `log` alone explains a failure."""
    bench = owned.bench
    method = plugin_record(bench.cell.method)
    try:
        scheme = owned.scheme()
        learned = checksum_of(scheme.state()) if scheme.state() else "none"
        key = scheme.sample_key(Secret.fresh()) if order.key is None else _again(order, scheme, learned)
        stage("release")
        release = bench.untouched(method.name, lambda: key.release(bench.private))
        check(release, bench.private)
    except UsageError:
        raise
    except Exception as reason:  # a method may raise anything, and its words may hold what they were raised over
        raise UsageError(f"{bench.cell.method.shown} releases nothing here: {reason_text(reason, log)}") from reason
    whole = seal(release, Secret.fresh())
    sealed = whole.release
    files = {**_published(sealed), "scheme.safetensors": scheme.state()}
    own = _own(key)
    claim = claim_record(scheme.claim())
    noise = claim is not None and "decode" not in own
    k = parameters(bench.cell.method.plugin).get("k") if "k-anonymity" in bench.method.claims else None
    behind = people_behind(release, bench.private, k=k if isinstance(k, int) else None, claim=claim)
    about: dict[str, JsonValue] = {
        "schema": 2,
        "made_by": f"{MAKER} {version('veil-bench')}",
        "method": method.model_dump(exclude={"role"}),
        "claims": bench.method.claims,
        "claim": None if claim is None else claim.model_dump(),
        "findings": [*bench.private.findings],
        "exclusive": bench.private.exclusive,
        **({"labels": "encoded"} if sealed.labels is not None and "decode" in own else {}),
        **({"rows": "encoded"} if "query" in own and not bench.method.raw_like else {}),
        "raw_shape": [*bench.private.samples.shape[1:]],
        "shape": [*sealed.samples.shape[1:]],
    }
    read = bench.record.features
    if read is not None:
        state, images = owned.reader
        files["features.safetensors"] = state
        about["features"] = {**read.model_dump(exclude={"fingerprint", "notes"}), "images": [*images]}
    made = {name: tensors for name, tensors in files.items() if tensors}
    secret = key.state()
    kept = {} if noise and order.key_out is None else secret
    about["secret"] = "kept" if kept else "destroyed" if secret else "none"
    links = _links(owned, where, whole, order.form)
    if (telling := names_among(bench.private.findings, private_words(links))) and not order.accept_names:
        raise UsageError(
            f"{len(telling)} of {len(bench.private.findings)} findings are called as a file, a folder or a person of "
            f"the data, and would be published: {line(', '.join(telling[:3]))}. Name findings in a labels.csv; or, if "
            f"these words name no one, --accept-names"
        )
    ledger = order.book
    marks = None if owned.prepared.marks is None else owned.prepared.marks[owned.rows]
    entry = ledger.entry(about, claim, owned.prepared.digests[owned.rows], marks, key=secret, scheme=learned)
    entries = ledger.entries()
    refuse_key_under_another_scale(entry, entries)
    before = earlier_of_same_people(entry, entries)
    composition = composition_text(entry, before)
    publication = Publication(made, about, kept, links, noise, learned, entry, composition, behind.lines)
    causes = [*of_claim(claim), *behind.causes, *_raw_rows(sealed, bench.private), *of_composition(entry, before)]
    return publication, [*_few_people(bench.private), *causes]


def _again(order: Order, scheme: Scheme, learned: str) -> Key:
    """An earlier key. Raises UsageError if it belongs to another scheme."""
    assert order.key is not None
    state, told = opened_key(order.key, order.passphrase)
    if told.get(SCHEME) != learned:
        raise UsageError(
            f"{order.key} is the key of another scheme than this one: use it with the scheme of its release "
            f"(--scheme), or draw a fresh one"
        )
    return scheme.load_key(state)


def _few_people(private: Dataset) -> Sequence[Cause]:
    """The cause that a release is of few people."""
    people = len(torch.unique(persons_of(private)))
    return (Cause(f"the release is of fewer than {FEWEST} people", f"{people}"),) if people < FEWEST else ()


def _raw_rows(sealed: Release, private: Dataset) -> Sequence[Cause]:
    """The cause that released rows are raw ones."""
    if sealed.generator is not None or sealed.samples.shape[1:] != private.samples.shape[1:]:
        return ()
    raw = set(row_hashes(private.samples))
    same = sum(row in raw for row in row_hashes(sealed.samples))
    return (Cause("released rows are raw rows, unchanged", f"{same:,} of {len(sealed):,}"),) if same else ()


def _own(key: Key) -> Collection[str]:
    """Names of `decode` and `query` that a key has of its own."""
    if isinstance(key, RemoteKey):
        return key.own("release")
    return [name for name in ("decode", "query") if getattr(type(key), name) is not getattr(Key, name)]


def _links(owned: Owned, where: Place, sealed: Sealed, form: Form) -> str:
    """The table of links, or of raw rows where there are none."""
    told = names_and_people(owned, where)
    digests = owned.prepared.digests
    named = [
        (row, digests[row].tobytes().hex(), *(told[name][number] for name in told))
        for number, row in enumerate(owned.rows.tolist())
    ]
    if sealed.links is None:
        return table_text(["row", "digest", *told], sorted(named))
    primary = None if sealed.primary is None else sealed.primary.int().tolist()
    return table_text(
        ["released", "row", "digest", *told, *([] if primary is None else ["primary"])],
        sorted(
            (_name(released, form), *named[raw], *([] if primary is None else [primary[number]]))
            for number, (raw, released) in enumerate(sealed.links.tolist())
        ),
    )


def _bound(links: str, release: str) -> str:
    """The table of links with the hash of its release."""
    head, *lines = csv.reader(io.StringIO(links))
    return table_text([*head, RELEASE], ([*each, release] for each in lines))


def _name(row: int, form: Form) -> int | str:
    """A released row as tables call it: its number, or its image."""
    return f"images/{row:06d}{IMAGES[form][0]}" if form in IMAGES else row


def _published(sealed: Release) -> dict[str, State]:
    if sealed.generator is not None:
        return {"generator.safetensors": sealed.generator.state()}
    labels = {} if sealed.labels is None else {"labels": sealed.labels}
    return {"release.safetensors": {"samples": sealed.samples, **labels}}


def _write(made: Publication, order: Order, owned: Owned, *, shared: bool) -> Look | None:
    """Write the secrets, then the rest in one step; nothing after failures."""
    out = order.out
    building = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))  # mode 0700
    assert order.links_out is not None
    secrets: dict[Path, bytes] = {}
    written = list[Path]()
    try:
        found = _folder(made, order, owned, building)
        if shared:
            building.chmod(0o755)
        release = sha256_of(building / ABOUT)
        secrets[order.links_out] = _bound(made.links, release).encode()
        if made.key:
            secrets[order.key_place] = packed_key(
                made.key, release=release, scheme=made.scheme, passphrase=order.passphrase
            )
        for path, secret in secrets.items():
            write_new(path, secret, mode=0o600)
            written.append(path)
        written.append(order.book.write(made.entry))
        building.replace(out)
        sync(out.parent)
    except BaseException:
        if building.exists():  # else the release is in its place, and worth nothing without its key
            shutil.rmtree(building, ignore_errors=True)
            for path in written:
                path.unlink()
        raise
    return found


def _folder(
    made: Publication, order: Order, owned: Owned, folder: Path
) -> Look | None:  # fmt: skip
    """Write all files of a release; a look at any rows."""
    images = order.form in IMAGES
    rows = made.files.get("release.safetensors")
    if images and rows is None:
        raise UsageError(f"--format {order.form} is for released images, and this method publishes a generator")
    hashes: dict[str, JsonValue] = {}
    for name, tensors in made.files.items():
        if not images or name != "release.safetensors":
            hashes[name] = _packed(tensors, folder / name)
    about: dict[str, JsonValue] = {**made.about, "sha256": hashes, "format": order.form}
    found = None
    if rows is not None:
        names = (
            _images(rows["samples"], folder, order.form)
            if images
            else [str(row) for row in range(len(rows["samples"]))]
        )
        if images:
            about[IMAGES_HASH] = images_hash(folder)
        samples, _ = read_back(folder, order.form, names)
        released = list(row_hashes(samples))
        contents = Contents(names, rows.get("labels"), bit_groups(released), about, order.form)
        write_texts(folder, contents)
        private = owned.bench.private.samples
        found = look(
            folder, samples, rows.get("labels"), contents.findings, private,
            (released, set(row_hashes(private))), private_words(made.links), json.dumps(about, ensure_ascii=False),
        )  # fmt: skip
        about["looked_at"] = found.public()
    text = json.dumps(about, indent=1, sort_keys=True, allow_nan=False)
    write_new(folder / ABOUT, f"{text}\n".encode(), mode=0o644)
    if rows is not None:
        write_card(folder, contents)
    write_sums(folder)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        path.chmod(0o644)
        sync(path)
    return found


def _images(samples: torch.Tensor, folder: Path, form: Form) -> list[str]:
    """Write rows as image files of 8 bits; their names.

    Raises UsageError for rows that are no images with values from 0 to 1.
    """
    if samples.ndim != 4 or samples.shape[1] not in (1, 3):
        raise UsageError(
            f"--format {form} is for grey or colour images, and released rows have shape {list(samples.shape[1:])}: "
            "use --format safetensors"
        )
    low, high = float(samples.amin()), float(samples.amax())
    if low < 0 or high > 1:
        raise UsageError(
            f"--format {form} holds values from 0 to 1, and released ones go from {low:.3g} to {high:.3g}: use "
            "--format safetensors"
        )
    (folder / "images").mkdir()
    names = []
    for number, row in enumerate(samples):
        pixels = (row.cpu() * 255).round().to(torch.uint8).permute(1, 2, 0).squeeze(2).numpy()
        name = str(_name(number, form))
        with writing(folder / name):
            if form == "png":
                Image.fromarray(pixels).save(folder / name)
            else:
                write_secondary_capture(folder / name, pixels, number=number, made_by=MAKER)
        names.append(name)
    return names


def _packed(tensors: State, path: Path) -> str:
    """Write tensors block by block to a new file; return its SHA-256."""
    with writing(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "wb") as file:
            write_tensors(file, tensors)
        sync(path)
    return sha256_of(path)


def _described(owned: Owned, made: Publication | None, order: Order, causes: Sequence[Cause]) -> Published:
    bench, record = owned.bench, owned.bench.record
    rows, people = record.rows["private"], record.subjects.get("private")
    title = f"{record.name}: {rows:,} rows" + (f" of {people:,} people" if people is not None else "")
    title += f", the {'chosen ones' if owned.chosen else 'whole data set'}, by {bench.cell.method.shown}"
    warnings = []
    files = {} if made is None else made.files
    reader = None if bench.cell.choice.features is None else bench.cell.choice.features.plugin
    fitted = {"scheme.safetensors": bench.method, "features.safetensors": reader}
    learned = [name for name, by in fitted.items() if name in files and by is not None and by.needs_public]
    if owned.outsiders:
        what = " and ".join(learned) or "its public part"
        warnings.append(
            f"public rows are {owned.outsiders:,} rows of people whom --rows leaves out, and {what} may have learned "
            "from them; --public names others"
        )
    if few := _few(bench.private):
        warnings.append(
            f"fewer than {FEWEST} people have {line(', '.join(few))}: a row with this label may be traced to one of "
            "them"
        )
    if not record.shareable:
        warnings.append("these data may not be shared; only you can read the folder until you change its mode")
    if made is not None and made.noise and order.key_out is not None:
        warnings.append("the key file holds the noise: its holder can take it away, so keep it only if you must")
    released = files.get("release.safetensors", {}).get("labels")
    encoded = made is not None and made.about.get("labels") == "encoded"
    labels = _labels(bench.private.findings, bench.private.labels if made is None else released, encoded=encoded)
    notes = [line(note) for note in (*record.notes, *filter(None, [bench.withheld]))]
    if bench.natural is not None and bench.private.labels is not None:
        gone = int((bench.private.labels.isnan() & ~bench.natural.isnan()).sum())
        notes.append(f"{gone:,} labels are withheld, so that yes and no are equally frequent: --no-balance keeps them")
    return Published(made, order, title, notes, labels, bench.method.claims, warnings, causes)


def _labels(findings: Sequence[str], labels: torch.Tensor | None, *, encoded: bool) -> list[str]:
    """Each finding with counts over the rows: yes, no and unknown."""
    if labels is None:
        return []
    lines = []
    for name, marks in label_counts(findings, labels).items():
        if encoded or marks["mixed"]:
            text = f"{len(labels) - marks['unknown']} {'encoded' if encoded else 'mixed'}"
        else:
            text = f"{marks['yes']} yes, {marks['no']} no"
        lines.append(f"{name} ({text}" + (f", {marks['unknown']} unknown)" if marks["unknown"] else ")"))
    return lines


def _few(private: Dataset) -> list[str]:
    """Findings and classes that some have, but fewer than `FEWEST` people."""
    people = person_groups(private, None).get("finding", {})
    return [name for name, having in people.items() if 0 < int(having.sum()) < FEWEST]


@contextmanager
def quiet(bench: Workbench, results: Results, verb: str) -> Iterator[Path | None]:
    """The log of prints within the block; None for data without restrictions."""
    if bench.record.shareable:
        yield None
        return
    with redirected(results.log(verb, bench.cell.method.shown)) as log:
        yield log


@contextmanager
def redirected(log: Path) -> Iterator[Path]:
    """Standard output and error go into the log within the block."""
    copies = [os.dup(number) for number in (1, 2)]
    sys.stdout.flush()
    make_folder(log.parent)
    target = None
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        for number in (1, 2):
            os.dup2(target, number)
        yield log
    finally:
        sys.stdout.flush()
        for number, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        if target is not None:
            log_file.close(log, target)


def reason_text(error: BaseException, log: Path | None) -> str:
    """An error's text for the terminal, or the path of its log."""
    code = code_of(error)
    if log is None:
        return text_of(error, code)
    traceback.print_exception(error, file=sys.__stderr__)  # which is the log
    return f"{withheld(code)} (log: {log})"
