"""A data owner's release: files to publish, and her key apart.

The data are opened as `bench run` opens them, so that a record with the same options describes this release. Its rows
are the private part, sized by preset and --limit (`--preset paper` takes all of it), with labels balanced as they are
scored; control and test people are left out. The scheme comes from the store that `bench run` fills. Two things differ.
Key and order of the rows come from fresh secrets of the operating system, 256 bits each, and not from the run secret of
the results folder, so that holders of that folder cannot make them again. And the release is not kept. The key file
alone holds the secret of the key.

Into DIR, which appears in one step, complete, or not at all:
- release.safetensors: `samples` (m, ...) float32 and, if labels are released, `labels` (m, k): 1, 0, NaN withheld.
- generator.safetensors in its place, if the method publishes a generator: anyone can then draw rows from it.
- scheme.safetensors: parameters that the method learned from public rows, if any (`Method.load`).
- features.safetensors: parameters that the extractor learned from public images, if any (`Extractor.load`).
- release.json: how to read them, the method and its claim. No name of the data, path, seed or person.

The key (`Scheme.load_key`) goes into a file of its own with mode 0600, never into DIR. So do links on request: a table
with the number (`row`) and the digest of the raw row that each released row was made of, as
`bench.data.release_folder` reads it; of releases without links, of every raw row.
"""

from __future__ import annotations

import hashlib
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

import torch
from pydantic import JsonValue

from bench.contract.seal import Sealed, check, seal
from bench.disk.atomic_file import make_folder, sync, write_new
from bench.disk.disk_errors import writing
from bench.isolation import RemoteKey
from bench.plugins.spec import UsageError
from bench.progress import forward_progress, stage
from bench.randomness import Secret
from bench.results import log_file
from bench.results.reason import Phase, phase_of, withheld
from bench.results.records import claim_record
from bench.results.results import Results
from bench.results.run_secret import ABOUT, MAKER, outside_releases
from bench.rows.grouping import FEWEST, person_groups
from bench.runs.plan import cells
from bench.runs.run_spec import RunSpec
from bench.runs.worker import code_of, text_of
from bench.types import Dataset, Key, Release, State
from bench.wire.tensor_file import write_tensors
from bench.wire.text import line
from bench.workbench.inputs import plugin_record
from bench.workbench.open_data import open_data, prepared_rows, refuse_shared_people
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench

WHOLE = "paper"
"""The preset that leaves no private row out."""


@dataclass(frozen=True, eq=False)
class Publication:
    """Files to publish, by name, release.json, and two secrets.

    They are the key, and the links: None if these were not asked for.
    """

    files: Mapping[str, State]
    about: Mapping[str, JsonValue]
    key: State
    links: str | None


@dataclass(frozen=True, eq=False)
class Published:
    """A finished release: files, places, and lines for its owner to read."""

    publication: Publication
    out: Path
    key_out: Path
    links_out: Path | None
    title: str
    notes: Sequence[str]
    labels: Sequence[str]
    claims: str
    warnings: Sequence[str]


def release(
    spec: RunSpec, place: Place, out: Path, key_out: Path | None = None,
    report: Callable[[str, int, int], None] = lambda stage, done, total: None, links_out: Path | None = None,
) -> Published:  # fmt: skip
    """Release the private rows of a cell and write them.

    Args:
        spec: One method on one data set under one seed.
        place: The results folder holds fitted schemes.
        out: A new folder, to be published whole.
        key_out: A new file for the secret; None for DIR-key.safetensors beside `out`.
        report: Hears the stage and its steps; the phase alone if data may not be shared.
        links_out: A new file for the links between released and raw rows; None writes none.

    Raises:
        UsageError: More than one cell, a path that exists, or a method that releases nothing here.
    """
    where = replace(place, memory=spec.memory)  # as for a run: no method can tell which of the two it is in
    if len(spec.methods) != 1 or len(spec.choices) != 1:
        raise UsageError(
            f"a release needs one data set, one method and one seed: got {len(spec.methods)} methods, "
            f"{len(spec.choices)} choices of data set and seed"
        )
    out = out.resolve()
    key_out = (key_out or out.parent / f"{out.name}-key.safetensors").resolve()
    links_out = None if links_out is None else links_out.resolve()
    _check_places(out, key_out, links_out, where)
    (cell,) = cells(spec)
    progress = _Stages(report)
    with forward_progress(progress.hear), closing(Workbench.open(cell, where, spec.isolation)) as bench:
        progress.restricted = not bench.record.shareable
        refuse_shared_people(cell.choice, where)
        with quiet(bench, where.results, "release") as log:
            made = _release(bench, where, log, linked=links_out is not None)
    _write(made, out, key_out, links_out, shared=bench.record.shareable)
    return _described(bench, made, out, key_out, links_out)


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


def _check_places(out: Path, key_out: Path, links_out: Path | None, where: Place) -> None:
    """Check that all are new, and the secrets apart. Raises UsageError."""
    if not out.parent.is_dir() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise UsageError(f"--out must be a new or empty folder in a folder that exists, got {out}")
    if key_out.is_relative_to(out) or where.results.root.is_relative_to(out):
        raise UsageError(f"the key and --results hold secrets and must lie outside {out}, which is published")
    outside_releases(key_out, "the key")
    if key_out.exists() or not key_out.parent.is_dir():
        raise UsageError(f"--key-out must be a new file in a folder that exists, got {key_out}")
    if links_out is None:
        return
    if links_out.is_relative_to(out):
        raise UsageError(
            f"the links name the raw row of each released one and must lie outside {out}, which is published"
        )
    outside_releases(links_out, "the table of links")
    if links_out.exists() or links_out == key_out or not links_out.parent.is_dir():
        raise UsageError(f"--links-out must be a new file in a folder that exists, got {links_out}")


def _release(bench: Workbench, where: Place, log: Path | None, *, linked: bool) -> Publication:
    """Private rows released under a fresh secret; `log` alone explains a failure."""
    method = plugin_record(bench.cell.method)
    if bench.recorded is not None:
        raise UsageError(f"{method.name} was released already: publish its folder")
    if method.role is not None:
        raise UsageError(
            f"{method.name} is a reference method that checks attacks ({method.role}); it is not for publishing"
        )
    try:
        scheme = bench.scheme()
        key = scheme.sample_key(Secret.fresh())
        stage("release")
        release = bench.untouched(method.name, lambda: key.release(bench.private))
        check(release, bench.private)
    except Exception as reason:  # a method may raise anything, and its words may hold what they were raised over
        raise UsageError(f"{bench.cell.method.shown} releases nothing here: {reason_text(reason, log)}") from reason
    whole = seal(release, Secret.fresh())
    sealed = whole.release
    files = {**_published(sealed), "scheme.safetensors": scheme.state()}
    own = _own(key)
    claim = claim_record(scheme.claim())
    about: dict[str, JsonValue] = {
        "schema": 1,
        "made_by": f"{MAKER} {version('veil-bench')}",
        "method": method.model_dump(exclude={"role"}),
        "claims": bench.method.claims,
        "claim": None if claim is None else claim.model_dump(),
        "findings": [*bench.private.findings],
        "exclusive": bench.private.exclusive,
        **({"labels": "encoded"} if sealed.labels is not None and "decode" in own else {}),
        **({"rows": "encoded"} if "query" in own else {}),
        "raw_shape": [*bench.private.samples.shape[1:]],
        "shape": [*sealed.samples.shape[1:]],
    }
    read = bench.cell.choice.features
    if read is not None:
        # The same extractor, without its view of the private rows; the cache has it.
        side = bench.cell.choice.side(bench.cell.choice.dataset.plugin)
        choice = replace(bench.cell.choice, features=None, scored_in=read, size=side)
        _, images, space = open_data(choice, where, bench.device)
        assert space is not None
        assert images.scored_in is not None
        files["features.safetensors"] = space.state
        about["features"] = {**images.scored_in.model_dump(), "images": [*images.shape]}
    links = _links(bench, where, whole) if linked else None
    return Publication({name: tensors for name, tensors in files.items() if tensors}, about, key.state(), links)


def _own(key: Key) -> Collection[str]:
    """Names of `decode` and `query` that a key has of its own."""
    if isinstance(key, RemoteKey):
        return key.own("release")
    return [name for name in ("decode", "query") if getattr(type(key), name) is not getattr(Key, name)]


def _links(bench: Workbench, where: Place, sealed: Sealed) -> str:
    """The table of links, or of raw rows where there are none."""
    digests = prepared_rows(bench.cell.choice, where).digests
    places = bench.places.tolist()
    named = [(place, digests[place].tobytes().hex()) for place in places]
    if sealed.links is None:
        return "row,digest\n" + "".join(f"{row},{digest}\n" for row, digest in sorted(named))
    primary = None if sealed.primary is None else sealed.primary.int().tolist()
    lines = sorted(
        (released, *named[raw], *([] if primary is None else [primary[number]]))
        for number, (raw, released) in enumerate(sealed.links.tolist())
    )
    head = "released,row,digest" + ("" if primary is None else ",primary")
    return f"{head}\n" + "".join(",".join(map(str, line)) + "\n" for line in lines)


def _published(sealed: Release) -> dict[str, State]:
    if sealed.generator is not None:
        return {"generator.safetensors": sealed.generator.state()}
    labels = {} if sealed.labels is None else {"labels": sealed.labels}
    return {"release.safetensors": {"samples": sealed.samples, **labels}}


def _write(made: Publication, out: Path, key_out: Path, links_out: Path | None, *, shared: bool) -> None:
    """Write the secrets, then the rest in one step; nothing after failures."""
    building = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))  # mode 0700
    secrets: dict[Path, bytes] = {}
    if links_out is not None and made.links is not None:
        secrets[links_out] = made.links.encode()
    written = list[Path]()
    try:
        hashes: dict[str, JsonValue] = {}
        for name, tensors in made.files.items():
            hashes[name] = _packed(tensors, building / name)
        text = json.dumps({**made.about, "sha256": hashes}, indent=1, sort_keys=True, allow_nan=False)
        write_new(building / ABOUT, f"{text}\n".encode(), mode=0o644)
        if shared:
            building.chmod(0o755)
        if made.key:
            content = io.BytesIO()
            write_tensors(content, made.key)
            secrets[key_out] = content.getvalue()
        for path, secret in secrets.items():
            write_new(path, secret, mode=0o600)
            written.append(path)
        building.replace(out)
        sync(out.parent)
    except BaseException:
        if building.exists():  # else the release is in its place, and worth nothing without its key
            shutil.rmtree(building, ignore_errors=True)
            for path in written:
                path.unlink()
        raise


def _packed(tensors: State, path: Path) -> str:
    """Write tensors block by block to a new file; return its SHA-256."""
    with writing(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "wb") as file:
            write_tensors(file, tensors)
        sync(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _described(bench: Workbench, made: Publication, out: Path, key_out: Path, links_out: Path | None) -> Published:
    record, counts, choice = bench.record, bench.record.rows, bench.cell.choice
    title = (
        f"{record.name}: its {counts['private']} private rows (preset {choice.preset}), released by "
        f"{bench.cell.method.shown}; {counts['control'] + counts['test']} control and test rows are not released"
    )
    warnings = []
    if choice.preset != WHOLE:
        warnings.append(
            f"the preset {choice.preset} is a size to measure with: at most {choice.sizes.private:,} private rows, and "
            f"shorter training; --preset {WHOLE} takes all private rows"
        )
    reader = None if choice.features is None else choice.features.plugin
    fitted = {"scheme.safetensors": bench.method, "features.safetensors": reader}
    learned = [name for name, by in fitted.items() if name in made.files and by is not None and by.needs_public]
    if learned and record.public_fingerprint == record.fingerprint:
        warnings.append(
            f"the public rows are set-aside people of the same data, and {' and '.join(learned)} may have learned from "
            "them; --public names others"
        )
    if few := _few(bench.private):
        warnings.append(
            f"fewer than {FEWEST} people have {line(', '.join(few))}: a row with this label may be traced to one of "
            "them"
        )
    if not record.shareable:
        warnings.append("these data may not be shared; only you can read the folder until you change its mode")
    rows = made.files.get("release.safetensors", {})
    labels = _labels(bench.private, bench.natural) if "labels" in rows else []
    notes = [line(note) for note in (*record.notes, *filter(None, [bench.withheld]))]
    return Published(made, out, key_out, links_out, title, notes, labels, bench.method.claims, warnings)


def _labels(private: Dataset, natural: torch.Tensor | None) -> list[str]:
    """Each finding with counts of yes, no and withheld; classes with counts."""
    if private.labels is None:
        return [*private.findings]
    yes, no = ((private.labels == value).sum(dim=0).tolist() for value in (1, 0))
    if private.exclusive:
        return [f"{name} ({rows} rows)" for name, rows in zip(private.findings, yes, strict=True)]
    gone = [0] * len(yes) if natural is None else (private.labels.isnan() & ~natural.isnan()).sum(dim=0).tolist()
    return [
        f"{name} ({has} yes, {lacks} no" + (f", {left} withheld: --no-balance keeps them)" if left else ")")
        for name, has, lacks, left in zip(private.findings, yes, no, gone, strict=True)
    ]


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
