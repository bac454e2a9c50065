"""The board cut into data sets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from bench.results.records import DatasetRecord
from bench.workbench.choice import NO_PUBLIC, balanced, collection
from leaderboard.board import Row, source_of
from leaderboard.bounds import CORE, profile
from leaderboard.names import digest, parameters_text, slug
from leaderboard.reach import PAIRS

EVES = {
    "other-study": "has another image", "superset": "has images of more people", "subset": "has half of the images",
    "known-pairs": "knows {k} pairs", "oracle": "had {queries} images encoded",
    "two-releases": "has two releases, no image",
    "public-only": "has images of other people only",
}  # fmt: skip
"""What Eve has, by the name of her profile and with its parameters, in as few words as a tab takes."""


@dataclass(frozen=True)
class Credit:
    """Source and licence of images, by the plug-in of their data."""

    title: str
    source: str
    licence: str


@lru_cache
def credit(dataset: str) -> Credit | None:
    """The credit of a data set; None without its plug-in.

    >>> credit("kermany-cxr").licence, credit("a-set-from-elsewhere")
    ('CC BY 4.0', None)
    """
    source = source_of(dataset)
    if source is None or source.name == "folder":  # images of a user, whose owner the project does not know
        return None
    return Credit(*(str(getattr(source, name, "not stated")) for name in ("title", "source", "licence")))


def credited(name: str, owner: Credit | None) -> str:
    """Source and licence in a sentence, as they stand beside images."""
    if owner is None:
        return f"{name}; source and licence are not known here"
    return f"{owner.title} ({owner.source}). Licence: {owner.licence}"


@dataclass(frozen=True)
class Section:
    """The rows scored on one data set.

    Args:
        slug: Anchor and file stem.
        title: The data set's name, with parameters and, if another version stands beside it, its fingerprint.
        name: The same as short as it may be on this board: the name alone if no other section has it.
        data: The data set; None if no row got as far as reading it.
        rows: In the order of the board.
        balanced: Whether surplus labels are withheld.
        splits: Per split: its name, and how many rows and people it holds in words ("300", or "300 to 1,000" if
            presets differ, else "unknown").
    """

    slug: str
    title: str
    name: str
    data: DatasetRecord | None
    rows: tuple[Row, ...]
    balanced: bool
    splits: tuple[tuple[str, str, str], ...]

    @property
    def credit(self) -> Credit | None:
        """Source and licence of the images."""
        return credit(str(self.rows[0].choice.get("dataset"))) if self.rows else None

    @property
    def size(self) -> str:
        """Number and size of the private rows, in words; empty if unknown."""
        private = next((split for split in self.splits if split[0] == "private"), None)
        if self.data is None or not self.data.shape or private is None:
            return ""
        (_, count, people), shape = private, self.data.shape
        what = f"images of {shape[1]} x {shape[2]} pixels" if len(shape) == 3 else f"rows of {shape[0]} columns"
        return f"{count} private {what}" + (f", of {people} people" if people != "unknown" else "")

    def of(self, rows: Sequence[Row]) -> Section:
        """The section as if it had these rows only."""
        return replace(self, rows=tuple(rows), splits=_splits(rows))

    @property
    def eve(self) -> str:
        """Eve's images in words; empty for all released ones."""
        profiles = {profile(row.records[0]) for row in self.rows}
        apart = [one.holds for one in profiles if not one.everyone]
        return apart[0] if len(profiles) == len(apart) == 1 else ""

    def keys(self, kind: str) -> str:
        """The keys behind records of a kind, in words."""
        found = sorted({one.keys for row in self.rows for one in row.records if one.kind == kind and one.scores})
        return "" if not found else str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"

    @property
    def never_run(self) -> list[str]:
        """Attacks of the core list that no row has.

        Empty if none on pairs ran.
        """
        ran = {one.attack.name for row in self.rows for one in row.records if one.attack and one.kind == PAIRS}
        return [name for name in CORE if name not in ran] if ran else []


def sections(board: Sequence[Row]) -> list[Section]:
    """One section a data set; different fingerprints are different data sets."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in board:
        groups.setdefault(_identity(row), []).append(row)
    for key in [key for key in groups if not key[1]]:  # rows that never read their data join the only data set they fit
        known = [other for other in groups if other[0] == key[0] and other[1]]
        if len(known) == 1:
            groups[known[0]].extend(groups.pop(key))
    alike = Counter(key[0] for key in groups)
    keys = sorted(groups)
    titles = _titles(groups, keys)
    parts = []
    for key, title in zip(keys, titles, strict=True):
        data = _shown_data(groups[key])
        parts.append(
            Section(
                f"{slug(key[0])[:40]}-{digest('/'.join(key))}",
                title,
                _name(groups[key][0]) if alike[key[0]] == 1 else title,
                data,
                tuple(groups[key]),
                balanced(groups[key][0].choice),
                _splits(groups[key]),
            )
        )
    return parts


def names(board: Sequence[Row]) -> dict[str, str]:
    """Each cell's data set as the board writes it."""
    return {row.cell: section.name for section in sections(board) for row in section.rows}


def _shown_data(rows: Sequence[Row]) -> DatasetRecord | None:
    """The data of the most trusted row."""
    by_trust = sorted(rows, key=lambda row: not row.trusted)  # others may describe data as they like
    return next((row.data for row in by_trust if row.data), None)


def _titles(groups: Mapping[tuple[str, ...], Sequence[Row]], keys: Sequence[tuple[str, ...]]) -> list[str]:
    """Names of data sets, with their parameters.

    Sets of one name are told apart by the size of an image, else the public set, else choices, else the fingerprint.
    """
    data, firsts = [_shown_data(groups[key]) for key in keys], [groups[key][0] for key in keys]
    titles = [
        _name(first) + (f" [{parameters_text(of.parameters).replace(',', ', ')}]" if of and of.parameters else "")
        for first, of in zip(firsts, data, strict=True)
    ]
    titles = told_apart(titles, [None if of is None else at_pixels(of) for of in data])
    titles = told_apart(titles, [None if of is None else f" · {_public(of)}" for of in data])
    titles = told_apart(titles, _choices(titles, firsts))
    titles = told_apart(titles, [None if of is None else f" · {of.fingerprint[:8]}" for of in data])
    return told_apart(titles, [None if of is None else f" · public rows {of.public_fingerprint[:8]}" for of in data])


def base_name(row: Row) -> str:
    """The row's data set without the profile of Eve."""
    eve = row.choice.get("eve")
    return row.dataset if eve is None else row.dataset.removesuffix(f" under {eve}")


def _name(row: Row) -> str:
    """The row's data set, with what an unusual Eve has."""
    eve = profile(row.records[0])
    if row.choice.get("eve") is None or eve.name not in EVES:
        return row.dataset
    words = EVES[eve.name]
    more = [
        f"; {name} {value}" for name, value in vars(eve).items() if value is not None and f"{{{name}}}" not in words
    ]
    return f"{base_name(row)} (Eve {words.format(**vars(eve))}{''.join(more)})"


def told_apart(titles: Sequence[str], words: Sequence[str | None]) -> list[str]:
    """The titles, those alike with their words if these differ.

    None is an unknown word: it differs from no other.

    >>> told_apart(["a", "a", "a", "b"], [" 1", " 2", None, " 1"])
    ['a 1', 'a 2', 'a', 'b']
    """
    found: dict[str, set[str]] = {}
    for title, word in zip(titles, words, strict=True):
        if word is not None:
            found.setdefault(title, set()).add(word)
    return [
        title + word if word is not None and len(found[title]) > 1 else title
        for title, word in zip(titles, words, strict=True)
    ]


def at_pixels(data: DatasetRecord) -> str:
    """The size of its images, after a name; empty for features."""
    if len(data.shape) != 3:
        return ""
    height, width = data.shape[1:]
    return f" at {height} pixels" if height == width else f" at {height} x {width} pixels"


def _public(data: DatasetRecord) -> str:
    return "no public rows" if data.public == NO_PUBLIC else f"public {data.public}"


def _choices(titles: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """The choices in which data of one title differ."""
    chosen = [dict(cast("tuple[tuple[str, object], ...]", collection(row.choice, None))) for row in rows]
    found = []
    for number, title in enumerate(titles):
        own, twins = chosen[number], [chosen[other] for other in range(len(titles)) if titles[other] == title]
        apart = [name for name in own if any(twin.get(name) != own[name] for twin in twins)]
        words = (f"{name.replace('_', ' ')} {'by default' if own[name] is None else own[name]}" for name in apart)
        found.append("".join(f" · {word}" for word in words))
    return found


def _identity(row: Row) -> tuple[str, ...]:
    if row.data is None:
        return (row.dataset, "")
    prepared = json.dumps(collection(row.choice, row.data))
    return (row.dataset, json.dumps(row.data.parameters, sort_keys=True), prepared)


def _splits(rows: Sequence[Row]) -> tuple[tuple[str, str, str], ...]:
    data = [row.data for row in rows if row.data]
    usual = ("public", "private", "control", "test")
    known = {name for one in data for name in one.rows}
    names = [name for name in usual if name in known] + sorted(known.difference(usual))
    return tuple(
        (name, _range([one.rows.get(name) for one in data]), _range([one.subjects.get(name) for one in data]))
        for name in names
    )


def _range(counts: Sequence[int | None]) -> str:
    known = sorted({count for count in counts if count is not None})
    if not known:
        return "unknown"
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"
