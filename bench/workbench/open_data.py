"""Open a choice of data: prepare, split, select and extract features."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from pydantic import JsonValue

from bench.contract.preset import PRESETS
from bench.contract.source import DataError, Source
from bench.data.candidates import seen_by
from bench.data.prepare import Prepared, prepare
from bench.data.recorded_rows import RecordedRows
from bench.data.scorable import scorable
from bench.data.splits import Splits, split
from bench.features.feature_space import Space, digest, open_space, read_splits
from bench.plugins.profile_spec import read_profile
from bench.plugins.spec import parameters
from bench.progress import report, stage
from bench.results.records import DatasetRecord
from bench.rows.grouping import named_groups
from bench.seeds import derive
from bench.workbench.choice import NO_PUBLIC, Choice
from bench.workbench.place import Place


def open_data(
    choice: Choice, place: Place, device: torch.device, *, workers: int = 0
) -> tuple[Splits, DatasetRecord, Space | None]:
    """The splits of a choice of data, and their record.

    Where the choice has `features`, the splits hold those; `device` is what images are read on. The space is that of
    `scored_in`, None without one. Private rows are those that the choice's `eve` leaves to the owner.
    """
    splits, record, space = _opened(choice, place, device, workers)
    profile = read_profile(choice.eve)
    if profile.everyone:
        return splits, record, space
    splits, notes = seen_by(profile, splits, derive(choice.seed, "data"))
    parts = {"private": splits.private}
    if splits.candidates is not None and len(splits.candidates.rows):
        parts["candidates"] = splits.candidates.rows
    rows = {name: len(part) for name, part in parts.items()}
    people = {name: len(torch.unique(part.subjects)) for name, part in parts.items() if part.subjects is not None}
    changed = {
        "name": f"{record.name} under {profile}",
        "rows": record.rows | rows,
        "subjects": record.subjects | people,
        "notes": [*record.notes, *notes],
    }
    return splits, record.model_copy(update=changed), space


def _opened(
    choice: Choice, place: Place, device: torch.device, workers: int
) -> tuple[Splits, DatasetRecord, Space | None]:
    """The same with all private rows."""
    preset = PRESETS[choice.preset]
    source = choice.dataset.plugin
    private = _prepared(place.source(choice.dataset), choice, place, workers)
    beside = choice.beside
    public = None if beside is None else _prepared(beside.plugin, choice, place, workers)
    aside = choice.public != NO_PUBLIC
    if public is not None and public.samples.shape[1:] != private.samples.shape[1:]:
        raise DataError(
            f"{private.name} has rows of shape {private.samples.shape[1:]}, its public set {public.name} of shape "
            f"{public.samples.shape[1:]}: choose --public and --size so that they agree"
        )
    stage("split")
    seed = derive(choice.seed, "data")
    usual = None if choice.this_release else preset.private  # a release is judged whole
    limit = min((cap for cap in (usual, choice.limit) if cap is not None), default=None)
    splits = split(
        private, public, seed=seed, limit=limit, public_limit=preset.public, aside=aside,
        official=choice.splits == "official",
        seen=choice.features is None or choice.features.plugin.side is None, budget=place.budget,
        recorded=_recorded(choice, place, private), everybody=choice.this_release,
    )  # fmt: skip
    splits, dropped = scorable(splits, seed, balanced=choice.balanced)
    notes = [*private.notes, *splits.notes, *dropped, *_sides(choice, private)]
    if splits.public_removed:
        notes.append(f"{splits.public_removed} public rows were left out because the private set holds the same image")
    parts = {"public": splits.public, "private": splits.private, "control": splits.control, "test": splits.test}
    own = private.name if aside else NO_PUBLIC, private.fingerprint if aside else NO_PUBLIC
    told, stamp = own if public is None else (public.name, public.fingerprint)
    record = DatasetRecord(
        name=private.name,
        parameters={name: value for name, value in parameters(source).items() if name not in source.confidential},
        fingerprint=private.fingerprint,
        public=told,
        public_fingerprint=stamp,
        rows={name: len(part) for name, part in parts.items()},
        subjects={name: len(torch.unique(part.subjects)) for name, part in parts.items() if part.subjects is not None},
        shape=list(splits.private.samples.shape[1:]),
        findings=list(splits.private.findings),
        attributes=named_groups(
            [(parts[part], splits.attributes[part]) for part in ("private", "test") if splits.attributes]
        ),
        shareable=private.shareable and (public is None or public.shareable),
        skipped=private.skipped + (public.skipped if public is not None else 0),
        notes=notes,
    )
    if choice.features is None and choice.scored_in is None:
        return splits, record, None
    return _seen(choice, place, device, splits, record, private, public or private)


def _recorded(choice: Choice, place: Place, private: Prepared) -> RecordedRows | None:
    """The releases whose raw rows are private; None if a draw decides."""
    if choice.rows_of is None:
        return None
    found = choice.rows_of.plugin.recorded
    if found is None:
        raise DataError(f"{choice.rows_of.shown} holds no rows here: name its folder, as in imported[path=FOLDER]")
    if choice.splits == "official":
        raise DataError("the folder says which rows are private: leave out --splits official")
    from bench.data.release_folder import open_folder  # imports pandas, which few jobs need

    return open_folder(found, private, place.source(choice.dataset), place.roots)


def _sides(choice: Choice, private: Prepared) -> Iterator[str]:
    """Notes on the images' side and the extractor's."""
    reader = choice.extractor
    side = None if reader is None else reader.plugin.side
    if reader is None or side is None or private.size is None:
        return
    if private.size < side:
        yield f"images have {private.size} pixels a side and are enlarged to the {side} that {reader.plugin.name} reads"
    elif choice.features is not None and choice.size is None and private.size == side:
        yield f"images were prepared at {side} pixels a side, which {reader.plugin.name} reads"


def _seen(
    choice: Choice, place: Place, device: torch.device, splits: Splits, record: DatasetRecord, private: Prepared,
    public: Prepared,
) -> tuple[Splits, DatasetRecord, Space | None]:  # fmt: skip
    """The same through the extractor of the choice."""
    assert choice.extractor is not None
    if splits.private.samples.ndim != 4:
        raise DataError(
            f"{record.name} is a table: its rows are vectors already, so leave out --features and --scored-in"
        )
    rows: dict[str, JsonValue] = {"data": public.fingerprint, "rows": digest([torch.from_numpy(splits.rows["public"])])}
    learns = choice.extractor.plugin.side is None
    shown = splits.public if learns else public.dataset(splits.rows["public"][:1])  # of no row, where there is none
    space = open_space(
        choice.extractor, shown.to(device), rows=rows, seed=derive(choice.seed, "features"),
        cache=place.cache,
    )  # fmt: skip
    if choice.features is None:
        name = f"{record.name}, seen through {space.shown}"
        return splits, record.model_copy(update={"name": name, "scored_in": space.record()}), space
    splits, features = read_splits(space, splits, private=private, public=public, cache=place.cache)
    changed = {"name": f"{record.name} as {space.shown}", "shape": [features.dimensions], "features": features}
    return splits, record.model_copy(update=changed), None


def _prepared(source: Source, choice: Choice, place: Place, workers: int) -> Prepared:
    stage(f"prepare {source.name}")
    return prepare(
        source, roots=place.roots, cache=place.cache, size=choice.side(source), workers=workers,
        skip_corrupt=choice.skip_corrupt, max_pixels=choice.max_pixels,
        report=partial(report, f"prepare {source.name}"),
    )  # fmt: skip


def prepared_rows(choice: Choice, place: Place) -> Prepared:
    """The prepared data set of a choice, all rows of it."""
    return _prepared(place.source(choice.dataset), choice, place, 0)


def refuse_shared_people(choice: Choice, place: Place) -> None:
    """Raise DataError if public and private sets name the same people.

    Only the user's own folders are compared, which may be of one hospital. Both sets are prepared already.
    """
    if choice.beside is None or choice.dataset.plugin.name != choice.beside.plugin.name:
        return
    from bench.data.sets.folder import Folder  # imports pandas, which few jobs need

    if not isinstance(choice.dataset.plugin, Folder):
        return
    private, public = (
        prepare(
            source, roots=place.roots, cache=place.cache, size=choice.side(source), skip_corrupt=choice.skip_corrupt,
            max_pixels=choice.max_pixels,
        )
        for source in (choice.dataset.plugin, choice.beside.plugin)
    )  # fmt: skip
    if private.marks is None or public.marks is None:
        return
    named, known = ({row.tobytes() for row in marks if row.any()} for marks in (public.marks, private.marks))
    if both := len(named & known):
        raise DataError(
            f"{public.name} cannot be the public set of {private.name} as it is: {both} of its {len(named)} people are "
            f"named as people of the private set are. Take their rows out of the public set; where names agree by "
            f"chance, give those people other names; or leave out --public, and people are set aside."
        )
