"""A written release as a stranger sees it, and beside raw rows.

Counts of rows and labels come from the files as they lie in the folder. Comparisons with raw rows are for the owner
alone: a figure of them in the release would be a function of the private rows that no claim covers.
"""

from __future__ import annotations

__figures__ = False

import itertools
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from pydantic import JsonValue
from safetensors.torch import load_file

from bench.data.secondary_capture import read_secondary_capture, text_of
from bench.results.run_secret import ABOUT
from bench.runs.release_files import IMAGES, bit_groups, label_counts

LOOKED_AT = 200
"""Released rows whose nearest raw row is searched."""
BLOCK = 256
SHORTEST = 5
"""Letters of a word that may name a person or a file; shorter ones stand in any text."""
SHORTEST_CODE = 3
"""The same of a word with letters and other signs, such as P-61."""
_WORD = re.compile(r"[\w.^-]+")


@dataclass(frozen=True)
class Look:
    """Findings on a folder.

    Args:
        rows, distinct: Released rows, and how many are different ones.
        labels: Number of rows by finding and mark: yes, no, unknown, mixed.
        bytes: Size of all files.
        raw: Released rows that equal a raw row; None if the shapes differ.
        nearest: Least and median root mean square difference of a released row to its nearest raw one, a value.
        between: The median of the same between raw rows; both None if the shapes differ, or there is one raw row.
        words: How often a name of a file or a person stands in the text of a file, by file.
    """

    rows: int
    distinct: int
    labels: dict[str, dict[str, int]]
    bytes: int
    raw: int | None
    nearest: tuple[float, float] | None
    between: float | None
    words: dict[str, int]

    def public(self) -> dict[str, JsonValue]:
        """All that a stranger can count himself."""
        return {
            "rows": self.rows,
            "distinct": self.distinct,
            "labels": {name: {**n} for name, n in self.labels.items()},
        }

    def lines(self) -> Iterator[str]:
        """The findings for the owner."""
        same = "all different" if self.distinct == self.rows else f"only {self.distinct:,} different ones"
        yield f"{self.rows:,} rows, {same}; {self.bytes / 1e6:,.1f} MB"
        if self.raw is None:
            yield "rows are of another shape than raw ones: no distance between them"
        else:
            yield f"{self.raw:,} released rows equal a raw one"
        if self.nearest is not None and self.between is not None:
            least, middle = self.nearest
            yield (
                f"nearest raw row: median difference {middle:.3g} a value, least {least:.3g}; between raw rows "
                f"{self.between:.3g}"
            )
        if self.words:
            files = ", ".join(f"{name} ({count})" for name, count in self.words.items())
            yield f"names of files or people stand in the text of {files}"
        else:
            yield "no name of a file or a person stands in the text of any file"


def private_words(named: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Names of files and people, from `bench.workbench.owned_rows.names_and_people`."""
    words = set(named.get("person", ()))
    for text in named.get("file", ()):
        file = Path(text)
        folders = {part for part in file.parts[:-1] if re.search(r"[\d\s]", part)}  # others are classes, or "images"
        words |= {file.as_posix(), file.name, file.stem, *folders}
    return frozenset(words)


def read_back(folder: Path, kind: str, names: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows (m, ...) float32 and labels (m, k) in the folder."""
    if kind not in IMAGES:
        found = load_file(folder / "release.safetensors")
        return found["samples"], found.get("labels")
    images = [_pixels(folder / name) for name in names]
    return torch.from_numpy(np.stack(images).astype(np.float32) / 255), None


def look(
    folder: Path, samples: torch.Tensor, labels: torch.Tensor | None, findings: Sequence[str], raw: torch.Tensor,
    hashes: tuple[Sequence[bytes], AbstractSet[bytes]], private_words: AbstractSet[str], about: str = "",
) -> Look:  # fmt: skip
    """Look at a folder again.

    Args:
        folder: It holds all files but those that this look goes into.
        samples: (m, ...) as `read_back` gives them.
        labels: (m, k) or None.
        findings: Names of the k columns.
        raw: (n, ...) private rows.
        hashes: Of released rows, in order, and of raw rows.
        private_words: Names of files and people.
        about: The text of release.json so far.
    """
    alike = samples.shape[1:] == raw.shape[1:]
    released, originals = hashes
    nearest = between = None
    if alike and len(raw) > 1:
        distances = _nearest(samples[_spread(len(samples))], raw, apart=None)
        nearest = float(distances.min()), float(distances.median())
        rows = _spread(len(raw))
        between = float(_nearest(raw[rows], raw, apart=rows).median())
    return Look(
        rows=len(samples), distinct=int(bit_groups(released).max()) + 1, labels=label_counts(findings, labels),
        bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        raw=sum(each in originals for each in released) if alike else None, nearest=nearest, between=between,
        words=_words(folder, private_words, about),
    )  # fmt: skip


def _spread(count: int) -> torch.Tensor:
    return torch.from_numpy(np.unique(np.linspace(0, count - 1, min(count, LOOKED_AT)).round().astype(np.int64)))


def _nearest(rows: torch.Tensor, raw: torch.Tensor, *, apart: torch.Tensor | None) -> torch.Tensor:
    """Root mean square difference (r,) to the nearest raw row.

    `apart` (r,) are the rows' own numbers, which are left out.
    """
    flat = rows.detach().cpu().flatten(1).double()
    best = torch.full((len(flat),), torch.inf, dtype=torch.float64)
    for first, part in enumerate(torch.split(raw, BLOCK)):
        squares = torch.cdist(flat, part.detach().cpu().flatten(1).double()).square()
        if apart is not None:
            own = apart - first * BLOCK
            inside = (own >= 0) & (own < len(part))
            squares[inside.nonzero()[:, 0], own[inside]] = torch.inf
        best = torch.minimum(best, squares.amin(dim=1))
    return (best / flat.shape[1]).sqrt()


def _words(folder: Path, private_words: AbstractSet[str], about: str) -> dict[str, int]:
    """Counts of private words in texts, by file."""
    wanted: dict[int, set[tuple[str, ...]]] = {}
    for word in private_words:
        if _telling(word):
            parts = _parts(word)
            wanted.setdefault(len(parts), set()).add(parts)
    found = {}
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    texts = ((path.relative_to(folder).as_posix(), _text(path)) for path in paths)
    for file, text in itertools.chain([(ABOUT, about)], texts):
        said = _parts(text)
        runs = ((said[at : at + size], names) for size, names in wanted.items() for at in range(len(said) - size + 1))
        if count := sum(run in names for run, names in runs):
            found[file] = count
    return found


def names_among(findings: Sequence[str], private_words: AbstractSet[str]) -> list[str]:
    """Findings with the name of a file, folder or person.

    >>> names_among(["Edema", "Müller 61", "of P-61"], {"P-61", "müller 61", "b.png"})
    ['Müller 61', 'of P-61']
    """
    names = {_parts(word) for word in private_words if _telling(word)}

    def holds(finding: str) -> bool:
        said = _parts(finding)
        spans = ((start, end) for start in range(len(said)) for end in range(start + 1, len(said) + 1))
        return any(said[start:end] in names for start, end in spans)

    return [finding for finding in findings if holds(finding)]


def _parts(text: str) -> tuple[str, ...]:
    """The words of a text or a name, in order."""
    found = (word.strip(".-").casefold() for word in _WORD.findall(unicodedata.normalize("NFC", text)))
    return tuple(word for word in found if word)


def _telling(word: str) -> bool:
    """If a name stands in no text by chance."""
    letters = sum(sign.isalpha() for sign in word)
    return bool(_parts(word)) and (len(word) >= SHORTEST or (len(word) >= SHORTEST_CODE and 0 < letters < len(word)))


def _text(path: Path) -> str:
    """All text that a file's format can hold; of tables, their heads."""
    match path.suffix:
        case ".safetensors":
            with path.open("rb") as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            return " ".join([*header, *map(str, header.get("__metadata__", {}).values())])
        case ".png":
            with Image.open(path) as image:
                return " ".join(f"{name} {value}" for name, value in image.info.items())
        case ".dcm":
            return text_of(path)
        case ".csv":
            return path.read_text(encoding="utf-8").partition("\n")[0]
        case _:
            return path.read_text(encoding="utf-8")


def _pixels(path: Path) -> np.ndarray:
    """(c, h, w) uint8."""
    if path.suffix == ".dcm":
        pixels = read_secondary_capture(path)
    else:
        with Image.open(path) as image:
            pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
