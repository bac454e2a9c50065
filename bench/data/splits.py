"""Public, private, control and test rows, disjoint by person and by content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from bench.contract.source import PARTS, DataError
from bench.data.prepared import Prepared
from bench.data.recorded_rows import RecordedRows
from bench.memory.memory_budget import Budget
from bench.seeds import derive, generator
from bench.types import Attributes, Dataset
from bench.validation import at_least

SHARES: Mapping[str, float] = {"private": 0.6, "control": 0.2, "test": 0.2}
PUBLIC_SHARE = 1 / 3


@dataclass(frozen=True, eq=False)
class Candidates:
    """Eve's raw images, if they are not the owner's rows themselves.

    Args:
        rows: n images.
        pairs: (p, 2) int64: the correct pairs of a candidate and a row of the owner.
        attributes: Of the candidates; None if unknown.
        known: (k,) int64, rows of the owner whose released rows Eve knows, and who are no candidates; None for none.
    """

    rows: Dataset
    pairs: torch.Tensor
    attributes: Attributes | None = None
    known: torch.Tensor | None = None


@dataclass(frozen=True, eq=False)
class Splits:
    """The four parts of an experiment, with the indices of their rows.

    Args:
        public: Everyone's knowledge: another collection, set-aside people of the same one, or no row at all.
        private: The data owner's rows, which are released.
        control: People of the same kind who are not released.
        test: The rows that Bob's model is scored on; they keep their natural prevalence.
        rows: For each part its (rows,) int64 indices, sorted, in the prepared data set it comes from.
        public_removed: Public rows left out because the private data set holds an identical image.
        natural: (n, k) labels of the private rows before a surplus was withheld; None if none was withheld.
        attributes: For each part what is known of its rows, of public rows in the groups of the private ones; empty if
            the private data say nothing.
        notes: Notes on the splits for the record.
        candidates: Eve's; None if she holds the private rows themselves.
        recorded: The releases that private rows were made into by another tool; None if a method releases them.
    """

    public: Dataset
    private: Dataset
    control: Dataset
    test: Dataset
    rows: Mapping[str, np.ndarray]
    public_removed: int
    natural: torch.Tensor | None = None
    attributes: Mapping[str, Attributes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    candidates: Candidates | None = None
    recorded: RecordedRows | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows of each part."""
        return {part: len(rows) for part, rows in self.rows.items()}


def split(
    prepared: Prepared, public: Prepared | None, *, seed: int, limit: int | None, public_limit: int | None,
    aside: bool = True, official: bool = False, seen: bool = True, budget: Budget | None = None,
    recorded: RecordedRows | None = None, everybody: bool = False,
) -> Splits:  # fmt: skip
    """Cut 60/20/20 into private, control and test, and set the public part.

    Groups (same person or identical image) stay together. A row's side depends on the data and `seed` only; limits then
    drop whole groups.

    Args:
        prepared: The data set to protect.
        public: The public one; None sets aside the groups of about a third of the rows of `prepared` first.
        aside: False leaves the public part empty if `public` is None.
        seed: Same seed, same split.
        limit: Most private rows; control and test keep at most a third of it each. None keeps all.
        public_limit: Most public rows. None keeps all.
        official: Keep the official test rows together, and cut the others alone.
        seen: Load the rows; if they will be read by an extractor block by block, zeros stand for them.
        budget: By which rows that do not fit are read where they are used; None loads all.
        recorded: Releases whose raw rows are the private ones; the others are cut into control and test rows. If they
            have no links, all of these rows are private, whatever the limit.
        everybody: `recorded` may hold everybody, so that control and test rows are none, nor people set aside.

    Raises:
        DataError: If the two share their origin or differ in shape, a part would be empty, or the set has no official
            parts and they are asked for.
        ValueError: If a limit is below 1.
    """
    at_least(1, limit=limit, public_limit=public_limit)
    if public is not None:
        _check_pair(prepared, public)
    shares = (
        SHARES
        if public is not None or not aside
        else {"public": PUBLIC_SHARE} | {part: share * (1 - PUBLIC_SHARE) for part, share in SHARES.items()}
    )
    chosen = derive(seed, "split", "groups")
    if recorded is not None:
        rows, notes = _around(prepared, recorded, shares, chosen, everybody=everybody)
        limit = len(recorded.members) if limit is None else min(limit, len(recorded.members))
    else:
        rows, notes = _official(prepared, shares, chosen) if official else (cut(prepared.groups, shares, chosen), ())
    removed = 0
    if public is not None:
        private = {row.tobytes() for row in prepared.digests}
        same = np.array([row.tobytes() in private for row in public.digests], dtype=bool)
        removed = int(same.sum())
        rows["public"] = np.flatnonzero(~same)
    rows.setdefault("public", np.zeros(0, dtype=np.int64))
    caps = {"public": public_limit, "private": limit}
    for part in ("control", "test"):
        caps[part] = None if limit is None else max(1, round(limit * SHARES[part] / SHARES["private"]))
    if recorded is not None and not recorded.linked:
        caps["private"] = None
    for part, cap in caps.items():
        groups = (public if part == "public" and public is not None else prepared).groups
        rows[part] = draw(groups, rows[part], cap, derive(seed, "split", "draw", part))
    meant_empty = {"public": public is None and (everybody or not aside), "control": everybody, "test": everybody}
    _check_filled(
        prepared, rows, caps, removed, meant_empty=tuple(name for name, empty in meant_empty.items() if empty)
    )
    of = {part: public or prepared if part == "public" else prepared for part in caps}
    parts: dict[str, Any] = {part: of[part].dataset(rows[part], seen=seen, budget=budget) for part in caps}
    return Splits(
        **parts, rows={part: rows[part] for part in caps}, public_removed=removed, natural=None,
        notes=notes, recorded=recorded,
        attributes=_attributes(prepared, public, rows),
    )  # fmt: skip


def _attributes(prepared: Prepared, public: Prepared | None, rows: Mapping[str, np.ndarray]) -> dict[str, Attributes]:
    """Attributes of each part's rows, as far as they are known."""
    own = prepared.attributes
    if own is None:
        return {}
    known = {part: own.take(torch.from_numpy(rows[part])) for part in SHARES}
    theirs = own if public is None else public.attributes
    if theirs is not None:
        known["public"] = theirs.named_as(own).take(torch.from_numpy(rows["public"]))
    return known


def cut(groups: np.ndarray, shares: Mapping[str, float], seed: int) -> dict[str, np.ndarray]:
    """Deal groups, in random order, to the part furthest below its share.

    The sorted row indices of a part may be empty.
    """
    numbers, member, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    names = list(shares)
    wanting = np.array([shares[name] * len(groups) for name in names])
    side = np.empty(len(numbers), dtype=np.int64)
    for group in _shuffled(len(numbers), seed):
        side[group] = wanting.argmax()
        wanting[side[group]] -= sizes[group]
    return {name: np.flatnonzero(side[member] == part) for part, name in enumerate(names)}


def _official(
    prepared: Prepared, shares: Mapping[str, float], seed: int
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The official test (else validation) rows, the others cut by `shares`, notes.

    Rows of people (or images) that stand on both sides are left out of the training side.
    """
    if prepared.parts is None:
        raise DataError(
            f"{prepared.name} has no official parts: leave out --splits official to split the rows by person"
        )
    judged = next((name for name in ("test", "val") if (prepared.parts == PARTS.index(name)).any()), None)
    if judged is None:
        raise DataError(
            f"{prepared.name}: no row of an official test or validation part is here. Get it, or leave out --splits "
            f"official"
        )
    test = prepared.parts == PARTS.index(judged)
    both = np.isin(prepared.groups, prepared.groups[test]) & ~test & (prepared.parts >= 0)
    rest = np.flatnonzero((prepared.parts >= 0) & ~test & ~both)
    remaining = {part: share / (1 - shares["test"]) for part, share in shares.items() if part != "test"}
    rows = {part: rest[indices] for part, indices in cut(prepared.groups[rest], remaining, seed).items()}
    rows["test"] = np.flatnonzero(test)
    notes = [f"official split: test rows are the official {judged} rows, the others are cut from the rest"]
    if both.any():
        notes.append(
            f"{int(both.sum())} rows of the other official parts were left out, because their people or images are "
            f"among the {judged} rows too"
        )
    if (prepared.parts < 0).any():
        notes.append(f"{int((prepared.parts < 0).sum())} rows that stand in no official part were left out")
    return rows, tuple(notes)


def _around(
    prepared: Prepared, recorded: RecordedRows, shares: Mapping[str, float], seed: int, *, everybody: bool
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Rows by part around a release's raw rows, and notes."""
    members = recorded.members
    known = np.isin(prepared.groups, prepared.groups[members])
    rest = np.flatnonzero(~known)
    if not len(rest) and not everybody:
        raise DataError(
            f"the release was made of images of everybody in {prepared.name}, {len(members)} of {len(prepared)} rows: "
            f"control and test rows must be of other people, so add images that were not released"
        )
    others = {part: share for part, share in shares.items() if part != "private"}
    whole = sum(others.values())
    dealt = cut(prepared.groups[rest], {part: share / whole for part, share in others.items()}, seed)
    rows = {"private": members, **{part: rest[indices] for part, indices in dealt.items()}}
    notes = [f"private rows are the {len(members)} that the recorded release was made of", *recorded.notes]
    if further := int(known.sum()) - len(members):
        notes.append(f"{further} rows of the same people, or of equal images, that were not released are left out")
    return rows, tuple(notes)


def draw(groups: np.ndarray, rows: np.ndarray, limit: int | None, seed: int) -> np.ndarray:
    """At most `limit` of `rows`, in whole random groups that fit."""
    if limit is None or len(rows) <= limit:
        return rows
    numbers, member, sizes = np.unique(groups[rows], return_inverse=True, return_counts=True)
    taken = np.zeros(len(numbers), dtype=bool)
    left = limit
    for group in _shuffled(len(numbers), seed):
        if sizes[group] <= left:
            taken[group] = True
            left -= sizes[group]
            if not left:
                break
    return rows[taken[member]]


def _shuffled(count: int, seed: int) -> list[int]:
    order: list[int] = torch.randperm(count, generator=generator(seed)).tolist()
    return order


def _check_pair(prepared: Prepared, public: Prepared) -> None:
    if prepared.origin == public.origin:
        raise DataError(
            f"{public.name} cannot be the public set of {prepared.name}: both come from {prepared.origin} and may show "
            f"the same people. Choose another --public, or the data set itself, which sets people aside."
        )
    if prepared.samples.shape[1:] != public.samples.shape[1:]:
        raise DataError(
            f"{prepared.name} has samples of shape {prepared.samples.shape[1:]}, its public set {public.name} of "
            f"{public.samples.shape[1:]}. Prepare both at one size, or choose another --public."
        )


def _check_filled(
    prepared: Prepared, rows: Mapping[str, np.ndarray], caps: Mapping[str, int | None], removed: int,
    *, meant_empty: tuple[str, ...],
) -> None:  # fmt: skip
    empty = [part for part in caps if not len(rows[part]) and part not in meant_empty]
    if not empty:
        return
    counts = ", ".join(f"{part} {len(rows[part])}" for part in caps)
    largest = int(np.bincount(prepared.groups).max())
    raise DataError(
        f"{prepared.name}: no row is left for {' and '.join(empty)} ({counts}; {len(prepared)} rows in "
        f"{len(np.unique(prepared.groups))} groups of same person or identical image, the largest of {largest}; "
        f"limits {dict(caps)}; {removed} public rows removed as identical). Use more data or raise the limits."
    )
