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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import torch
from pydantic import JsonValue

from bench.contract.seal import Sealed, check, seal
from bench.isolation import RemoteKey
from bench.plugins.spec import UsageError, parameters
from bench.progress import forward_progress, stage
from bench.randomness import Secret
from bench.results.reason import Phase, phase_of
from bench.results.records import ClaimRecord, claim_record
from bench.results.run_secret import MAKER
from bench.rows.grouping import FEWEST, persons_of
from bench.runs.owner_key import SCHEME, opened_key
from bench.runs.plan import cells
from bench.runs.quiet_output import quiet, reason_text
from bench.runs.release_description import described
from bench.runs.release_files import table_text
from bench.runs.release_ledger import (
    Entry,
    composition_text,
    earlier_of_same_people,
    of_composition,
    refuse_key_under_another_scale,
)
from bench.runs.release_order import Form, Order, Publication, Published, check_places
from bench.runs.release_people import people_behind, row_hashes
from bench.runs.release_terms import (
    Cause,
    ReleaseRefusedError,
    check_reason,
    distinct,
    of_claim,
    of_notes,
    of_parameters,
    trains,
)
from bench.runs.release_writing import check_form, clear, name_of, write
from bench.runs.run_spec import RunSpec
from bench.runs.second_look import names_among, private_words
from bench.sandbox import Isolation
from bench.types import Dataset, Key, Release, Scheme, State
from bench.wire.tensor_file import checksum_of
from bench.wire.text import line
from bench.workbench.cell import Cell
from bench.workbench.inputs import plugin_record
from bench.workbench.open_data import refuse_shared_people
from bench.workbench.owned_rows import Owned, names_and_people, open_owned
from bench.workbench.place import Place

WHOLE = "paper"
"""The preset whose sizes are the papers'."""
LOOKED = "what a look at the written folder finds: names in its texts, and the nearest raw rows"
FITTED = "released rows that equal raw ones, people behind the claim, and its sum with earlier releases"
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
    left = list(clear(order))
    check_places(order, where)
    (cell,) = cells(spec)
    _check_method(cell)
    turn = nullcontext() if order.dry else order.book.turn(lambda: report("wait for the release before", 0, 0))
    with turn:
        return replace(_published(cell, spec.isolation, where, order, verdicts, _Stages(report)), left=left)


def _published(
    cell: Cell, isolation: Isolation, where: Place, order: Order, verdicts: Verdicts, progress: _Stages
) -> Published:
    """The release, written; or its trial."""
    with forward_progress(progress.hear):
        owned = open_owned(cell, where, isolation, rows=order.rows, scheme=order.scheme)
        with closing(owned.bench) as bench:
            progress.restricted = not bench.record.shareable
            refuse_shared_people(cell.choice, where)
            causes = [*verdicts(owned), *of_parameters(cell.method.plugin), *of_notes(bench.record.notes)]
            with quiet(bench, where.results, "release") as log:
                named = names_and_people(owned, where)
                causes += _foreseen(owned, order, private_words(named))
                fits = owned.given is None and cell.method.plugin.needs_public
                idle = fits and bool(causes) and order.accept is None  # for a release that will not be
                made = None
                if not idle and not (order.dry and (fits or trains(cell.method.plugin))):
                    made, found = _release(owned, named, order, log)
                    causes += found
            causes = distinct(causes)
    lines = described(owned, made, order, causes)
    if order.dry:
        unknown = (
            [FITTED, *([] if order.key is None else ["if the key is of the fitted scheme"])] if made is None else []
        )
        return replace(lines, unknown=[*unknown, LOOKED])
    if made is None or (causes and order.accept is None):
        raise ReleaseRefusedError(causes)
    if order.accept is not None:  # whether anything private speaks against it or not
        in_spite_of: JsonValue = [cause.text for cause in causes if not cause.private]
        told: JsonValue = {"reason": line(order.accept), "in spite of": in_spite_of}
        made = replace(made, about={**made.about, "accepted": told})
    progress.restricted = False  # what follows are stages of this project, with no word of a method
    with forward_progress(progress.hear):
        seen = write(made, order, owned, shared=bench.record.shareable)
    return replace(lines, publication=made, look=seen)


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


def _check_method(cell: Cell) -> None:
    """Raise UsageError for methods that are not for publishing."""
    method = plugin_record(cell.method)
    if cell.method.plugin.releases is not None:
        raise UsageError(f"{method.name} was released already: publish its folder")
    if method.role is not None:
        raise UsageError(
            f"{method.name} is a reference method that checks attacks ({method.role}); it is not for publishing"
        )


def _foreseen(owned: Owned, order: Order, words: Collection[str]) -> Iterator[Cause]:
    """Causes in rows and ledger, known before any fit.

    Raises UsageError for findings that name someone, and for a key file that does not open.
    """
    bench = owned.bench
    if (telling := names_among(bench.private.findings, frozenset(words))) and not order.accept_names:
        raise UsageError(
            f"{len(telling)} of {len(bench.private.findings)} findings are called as a file, a folder or a person of "
            f"the data, and would be published: {line(', '.join(telling[:3]))}. Name findings in a labels.csv; or, if "
            f"these words name no one, --accept-names"
        )
    if order.key is not None:
        opened_key(order.key, order.passphrase)
    people = len(torch.unique(persons_of(bench.private)))
    if people < FEWEST:
        yield Cause(f"the release is of fewer than {FEWEST} people", f"{people}", private=True)
    about: dict[str, JsonValue] = {"method": plugin_record(bench.cell.method).model_dump(exclude={"role"}),
                                   "claims": bench.method.claims}  # fmt: skip
    entry = _entry(owned, order, about, {}, "unknown")
    yield from of_composition(entry, earlier_of_same_people(entry, order.book.entries()))


def _entry(
    owned: Owned, order: Order, about: dict[str, JsonValue], key: State, scheme: str, claim: ClaimRecord | None = None
) -> Entry:  # fmt: skip
    marks = None if owned.prepared.marks is None else owned.prepared.marks[owned.rows]
    return order.book.entry(about, claim, owned.prepared.digests[owned.rows], marks, key=key, scheme=scheme)


def _release(
    owned: Owned, named: Mapping[str, list[str]], order: Order, log: Path | None
) -> tuple[Publication, list[Cause]]:  # fmt: skip
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
    files = {**_files(sealed), "scheme.safetensors": scheme.state()}
    own = _own(key)
    claim = claim_record(scheme.claim())
    noise = claim is not None and "decode" not in own
    k = parameters(bench.cell.method.plugin).get("k") if "k-anonymity" in bench.method.claims else None
    hashes = list(row_hashes(bench.private.samples))
    behind = people_behind(release, bench.private, k=k if isinstance(k, int) else None, claim=scheme.claim())
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
    links = _links(owned, named, whole, order.form)
    words = private_words(named)
    entry = _entry(owned, order, about, secret, learned, claim)
    entries = order.book.entries()
    refuse_key_under_another_scale(entry, entries)
    before = earlier_of_same_people(entry, entries)
    raw = frozenset(hashes)
    publication = Publication(
        made, about, kept, links, noise, learned, entry, composition_text(entry, before), words, raw, behind.lines
    )
    check_form(publication, order)
    causes = [*of_claim(claim), *behind.causes, *_raw_rows(sealed, bench.private, raw)]
    return publication, [*causes, *of_composition(entry, before)]


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


def _raw_rows(sealed: Release, private: Dataset, raw: Collection[bytes]) -> Sequence[Cause]:
    """The cause that released rows are raw ones."""
    if sealed.generator is not None or sealed.samples.shape[1:] != private.samples.shape[1:]:
        return ()
    same = sum(row in raw for row in row_hashes(sealed.samples))
    text = "released rows are raw rows, unchanged"
    return (Cause(text, f"{same:,} of {len(sealed):,}", private=True),) if same else ()


def _own(key: Key) -> Collection[str]:
    """Names of `decode` and `query` that a key has of its own."""
    if isinstance(key, RemoteKey):
        return key.own("release")
    return [name for name in ("decode", "query") if getattr(type(key), name) is not getattr(Key, name)]


def _links(owned: Owned, told: Mapping[str, list[str]], sealed: Sealed, form: Form) -> str:
    """The table of links, or of raw rows where there are none."""
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
            (name_of(released, form), *named[raw], *([] if primary is None else [primary[number]]))
            for number, (raw, released) in enumerate(sealed.links.tolist())
        ),
    )


def _files(sealed: Release) -> dict[str, State]:
    if sealed.generator is not None:
        return {"generator.safetensors": sealed.generator.state()}
    labels = {} if sealed.labels is None else {"labels": sealed.labels}
    return {"release.safetensors": {"samples": sealed.samples, **labels}}
