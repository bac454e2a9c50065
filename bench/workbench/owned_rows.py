"""A data owner's rows: all of them, or those she chose.

A measurement keeps people back as controls and test cases. A release keeps none back: every row and every label of
the data set is private. Public rows come from another collection (`--public`), or from the people whom the owner's
table leaves out; a method that learns from public rows says so where there are none.
"""

from __future__ import annotations

__figures__ = False

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from bench.contract.source import DataError
from bench.data.prepare import Prepared, left_out
from bench.data.scorable import balance, of_equal_classes
from bench.data.splits import Splits
from bench.determinism import exact
from bench.features.feature_space import digest, open_space, read_splits
from bench.plugins.spec import UsageError, parameters
from bench.results.records import DatasetRecord
from bench.results.store import Artefact
from bench.sandbox import Isolation
from bench.seeds import derive
from bench.types import Scheme, State
from bench.wire.tensor_file import checksum_of
from bench.workbench.cell import Cell
from bench.workbench.choice import NO_PUBLIC, given_scheme
from bench.workbench.inputs import cell_secret
from bench.workbench.open_data import _prepared, prepared_rows
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench, _apart

REMEDY = (
    "name a public set (--public), give a scheme that was fitted elsewhere (--scheme), or list the rows to release in "
    "a table (--rows): the people that it leaves out are then the public ones"
)


@dataclass(frozen=True, eq=False)
class Owned:
    """An owner's rows ready for a release.

    Args:
        bench: The cell; control and test parts are empty.
        prepared: The whole data set.
        rows: (n,) int64, the prepared row of each private one.
        chosen: Whether a table chose them.
        outsiders: Number of rows of people who were left out and are the public ones; 0 if none are.
        given: The fitted scheme that the owner gave; None if it is fitted here.
        reader: What the extractor learned, and the shape of the images that it reads; empty without one.
    """

    bench: Workbench
    prepared: Prepared
    rows: np.ndarray
    chosen: bool
    outsiders: int
    given: Artefact | None
    reader: tuple[State, tuple[int, ...]] = ({}, ())

    @property
    def scheme_hash(self) -> str | None:
        """SHA-256 of the given scheme; None if it is fitted here."""
        return None if self.given is None else checksum_of(self.given.tensors)

    def scheme(self) -> Scheme:
        """The scheme that was given, or the one fitted on public rows.

        Raises:
            UsageError: The given one does not fit the method.
        """
        if self.given is None:
            return self.bench.scheme()
        self.bench.check_people()
        return self.bench.loaded(self.given.tensors)


def open_owned(
    cell: Cell, place: Place, isolation: Isolation = "none", *, rows: Path | None = None, scheme: Path | None = None
) -> Owned:
    """The owner's rows, prepared and read; close its `bench` afterwards.

    Args:
        cell: Method, data set and device; sizes of its preset and limits count for nothing here.
        place: Folders of this machine.
        isolation: Where the method runs.
        rows: A CSV table with a column row, raw or path: the rows to release. None releases all.
        scheme: A safetensors file of a fitted scheme. None fits one.

    Raises:
        DataError: Unusable data or tables.
        UsageError: The method learns from public rows, and there are none; or the file holds no scheme.
    """
    device, choice = exact(cell.device), cell.choice
    prepared = prepared_rows(choice, place)
    kept = np.arange(len(prepared)) if rows is None else _listed(rows, cell, place, prepared)
    given = None if scheme is None else Artefact(given_scheme(str(scheme)), {})
    public, known = _public(cell, place, prepared, kept, learns=given is None, chosen=rows is not None)
    unseen = choice.features is not None and choice.features.plugin.side is not None
    none = np.zeros(0, dtype=np.int64)
    parts = {"public": known, "private": kept, "control": none, "test": none}
    of = {name: public if name == "public" else prepared for name in parts}
    data = {name: of[name].dataset(part, seen=not unseen, budget=place.budget) for name, part in parts.items()}
    splits = Splits(data["public"], data["private"], data["control"], data["test"], rows=parts, public_removed=0)
    if prepared.attributes is not None:
        splits = replace(splits, attributes={"private": prepared.attributes.take(torch.from_numpy(kept))})
    splits, withheld = _balanced(splits, cell)
    record = _record(cell, place, prepared, public, splits)
    reader: tuple[State, tuple[int, ...]] = ({}, ())
    if choice.features is not None:
        splits, record, reader = _seen(cell, place, device, splits, record, (prepared, public))
    secret = cell_secret(place.results, cell, record)
    bench = Workbench(
        cell=cell, preset=choice.sizes, method=_apart(cell, place, isolation, secret),
        public=splits.public.to(device), private=splits.private.to(device), control=splits.control.to(device),
        test=splits.test.to(device), record=record, store=replace(place.results.store, budget=place.budget),
        run_secret=secret, natural=splits.natural, attributes=splits.attributes, withheld=withheld,
        places=torch.from_numpy(kept),
    )  # fmt: skip
    outsiders = len(known) if public is prepared else 0
    return Owned(bench, prepared, kept, rows is not None, outsiders, given, reader)


def names_and_people(owned: Owned, place: Place) -> Mapping[str, list[str]]:
    """File and person of each private row, as written.

    They are the owner's alone. Keys: `file` and `person`, each only where it is known.
    """
    source, choice = place.source(owned.bench.cell.choice.dataset), owned.bench.cell.choice
    scan = source.scan(place.roots, choice.side(source))
    whole = range(len(scan.labels))
    if scan.paths is not None:
        gone = left_out(owned.prepared)
        whole = [number for number in whole if str(scan.paths[number]) not in gone]  # type: ignore[assignment]
    order = list(whole)
    if len(order) != len(owned.prepared):
        raise DataError(f"{owned.prepared.name}: its files have changed since it was prepared: start again")
    picked = [order[row] for row in owned.rows.tolist()]
    found: dict[str, list[str]] = {}
    if scan.paths is not None:
        top = scan.folder
        paths = [scan.paths[number] for number in picked]
        found["file"] = [
            path.relative_to(top).as_posix() if top is not None and path.is_relative_to(top) else path.name
            for path in paths
        ]
    if scan.subjects is not None:
        found["person"] = [scan.subjects[number] for number in picked]
    return found


def _listed(table: Path, cell: Cell, place: Place, prepared: Prepared) -> np.ndarray:
    """The rows that the owner's table names, in order."""
    from bench.data.release_folder import named_rows  # imports pandas, which few jobs need

    return np.sort(named_rows(table, prepared, place.source(cell.choice.dataset), place.roots))


def _public(
    cell: Cell, place: Place, prepared: Prepared, kept: np.ndarray, *, learns: bool, chosen: bool
) -> tuple[Prepared, np.ndarray]:
    """The collection of public rows, and their numbers in it."""
    choice, beside = cell.choice, cell.choice.beside
    none = np.zeros(0, dtype=np.int64)
    if beside is not None:
        public = _prepared(beside.plugin, choice, place, 0)
        if public.origin == prepared.origin or public.samples.shape[1:] != prepared.samples.shape[1:]:
            raise DataError(
                f"{public.name} cannot be the public set of {prepared.name}: expected other people's rows of shape "
                f"{prepared.samples.shape[1:]}, got rows of shape {public.samples.shape[1:]} from {public.origin}. "
                f"Choose another --public, or --size"
            )
        own = {row.tobytes() for row in prepared.digests}
        return public, np.flatnonzero([row.tobytes() not in own for row in public.digests])
    readers = [choice.features] if choice.features is not None else []
    needing = [each.shown for each in (cell.method if learns else None, *readers) if each and each.plugin.needs_public]
    if not needing or choice.public == NO_PUBLIC:
        return prepared, none
    others = np.flatnonzero(~np.isin(prepared.groups, prepared.groups[kept])) if chosen else none
    if not len(others):
        raise UsageError(
            f"{' and '.join(needing)} learns from public rows, and all people of {prepared.name} are to be released: "
            f"{REMEDY}"
        )
    return prepared, others


def _balanced(splits: Splits, cell: Cell) -> tuple[Splits, str]:
    """The splits with labels as the owner wants them, and a note."""
    choice, labels = cell.choice, splits.private.labels
    if not choice.balanced or labels is None:
        return splits, ""
    seed = derive(choice.seed, "data")
    if splits.private.exclusive:
        return of_equal_classes(splits, seed) if cell.method.plugin.equal_classes else (splits, "")
    left = balance(labels, derive(seed, "balance", "private"), exclusive=False)
    return replace(splits, private=replace(splits.private, labels=left), natural=labels), ""


def _record(cell: Cell, place: Place, prepared: Prepared, public: Prepared, splits: Splits) -> DatasetRecord:
    source = cell.choice.dataset.plugin
    parts = {"public": splits.public, "private": splits.private, "control": splits.control, "test": splits.test}
    known = len(splits.public) > 0
    return DatasetRecord(
        name=prepared.name,
        parameters={name: value for name, value in parameters(source).items() if name not in source.confidential},
        fingerprint=prepared.fingerprint,
        public=public.name if known else NO_PUBLIC,
        public_fingerprint=public.fingerprint if known else NO_PUBLIC,
        rows={name: len(part) for name, part in parts.items()},
        subjects={name: len(torch.unique(part.subjects)) for name, part in parts.items() if part.subjects is not None},
        shape=list(splits.private.samples.shape[1:]),
        findings=list(splits.private.findings),
        shareable=prepared.shareable and public.shareable,
        skipped=prepared.skipped,
        notes=list(prepared.notes),
    )


def _seen(
    cell: Cell, place: Place, device: torch.device, splits: Splits, record: DatasetRecord,
    sets: tuple[Prepared, Prepared],
) -> tuple[Splits, DatasetRecord, tuple[State, tuple[int, ...]]]:  # fmt: skip
    """The same through the extractor of the choice."""
    choice, (prepared, public) = cell.choice, sets
    assert choice.features is not None
    if splits.private.samples.ndim != 4:
        raise DataError(f"{record.name} is a table: its rows are vectors already, so leave out --features")
    rows = {"data": public.fingerprint, "rows": digest([torch.from_numpy(splits.rows["public"])])}
    learns = choice.features.plugin.side is None
    shown = splits.public if learns else public.dataset(splits.rows["public"][:1])
    space = open_space(
        choice.features, shown.to(device), rows=dict(rows), seed=derive(choice.seed, "features"), cache=place.cache
    )
    seen, features = read_splits(space, splits, private=prepared, public=public, cache=place.cache)
    changed = {"name": f"{record.name} as {space.shown}", "shape": [features.dimensions], "features": features}
    return seen, record.model_copy(update=changed), (space.state, tuple(splits.private.samples.shape[1:]))
