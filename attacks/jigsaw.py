"""Jigsaw: moved, turned and negated blocks are put back together.

Sources: Chuman and Kiya 2022, "Security evaluation of block-based image encryption for vision transformer against
jigsaw puzzle solver attack" (arXiv 2202.00806), and 2023 (Information 14(6):311); the solver is
`bench.eve.jigsaw_puzzle`. No key, no known pair and no candidate enters it: it reads the release, and raw images of
other people in general. What it puts together is an image; only then are candidates compared with it, by the cosine of
centred pixels.

Differences from the papers:
- They encrypt each image with the same blocks' key, and solve each image alone. Under one key for all images the
  difference across a border is a mean over all of them, and the puzzle falls: `keys="one"` of `etc-blocks` is solved
  wholly where a single image is solved in part.
- Readings (rows as they are; one puzzle for all; one an image; each with borders alone, and with the mean image) are
  tried on a key of Eve's own, and the one under which its links stand foremost is used: the first of equals.
- Shuffled pixels within blocks leave no borders, and are not undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.eve.gram_matching import log_rank
from bench.eve.jigsaw_puzzle import Knowledge, solve
from bench.eve.own_releases import own_rows, some_released, true_links
from bench.nets.patches import fitting_patch, patch_sizes
from bench.pairs.score_matrices import CosineScores, apart
from bench.seeds import derive, drawn, generator
from bench.types import Attack, Attacker, NotApplicable, PairScores, Release, View
from bench.validation import at_least

PROBE_ROWS = 128
KNOWN_ROWS = 1024
CHANNELS = (1, 3)
PUZZLES = 1 << 21
"""States of all images' puzzles, up to which each image is solved alone."""


@dataclass(frozen=True)
class Reading:
    """A way to put images together; `one` None leaves them unchanged."""

    words: str
    one: bool | None
    weight: float = 0.0


AS_THEY_ARE = Reading("rows as they are", None)
READINGS = (
    AS_THEY_ARE,
    Reading("one puzzle for all images, borders alone", True),
    Reading("one puzzle for all images, borders and the mean image", True, 0.3),
    Reading("a puzzle an image, borders alone", False),
    Reading("a puzzle an image, borders and the mean image", False, 0.3),
)


@dataclass(frozen=True)
class Jigsaw(Attack):
    """Solves the puzzle of moved, turned and negated blocks, and compares pixels.

    Args:
        patch_size: Side of a block in pixels; 0 takes the largest up to 16 that divides the image.
    """

    name: ClassVar[str] = "jigsaw"
    source: ClassVar[str] = "Chuman and Kiya 2022, 2023; Gallagher 2012 (jigsaw puzzles of unknown orientation)"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release, raw rows of other people and the scheme; no key, no labels"
    needs_public: ClassVar[bool] = False

    patch_size: int = 0

    def __post_init__(self) -> None:
        at_least(0, patch_size=self.patch_size)

    def fit(self, view: View, seed: int) -> JigsawAttacker:
        """Choose a reading. Raises NotApplicable without blocks, links or equal shapes."""
        raw = view.candidates.samples
        known = _known(view, self.patch_size)
        chosen = drawn(len(raw), generator(derive(seed, "probe"), raw.device), PROBE_ROWS)
        rows, release = some_released(view.scheme, view.candidates, chosen, seed, "probe")
        links = true_links(release, "jigsaw looks for raw rows")
        best: tuple[float, JigsawAttacker] | None = None
        alone = len(raw) * known.states <= PUZZLES
        for reading in READINGS if alone else (reading for reading in READINGS if reading.one is not False):
            attacker = JigsawAttacker(rows.samples, known, reading, 0.0)
            scores = attacker.score(release).block(slice(None), slice(None))
            rank = log_rank(scores, links)
            found = float((scores.argmax(dim=0)[links[:, 1]] == links[:, 0]).double().mean())
            if best is None or rank < best[0]:
                best = rank, JigsawAttacker(raw, known, reading, found)
            if rank == 0:
                break
        assert best is not None
        return best[1]


@dataclass(frozen=True, eq=False)
class JigsawAttacker(Attacker):
    """The candidates, and how released rows are put together.

    Args:
        candidates: (n, c, h, w).
        known: Raw images in general.
        reading: Of released rows.
        found: Share of the links of Eve's own key that this reading ranks first.
    """

    candidates: torch.Tensor
    known: Knowledge
    reading: Reading
    found: float

    def score(self, sealed: Release) -> PairScores:
        """Cosines of centred pixels. Raises NotApplicable if the shapes differ."""
        a, b = (rows.flatten(1).double() for rows in (self.candidates, self.solved(sealed)))
        return CosineScores(*apart(a - a.mean(dim=0, keepdim=True), b - b.mean(dim=0, keepdim=True)))

    def solved(self, sealed: Release) -> torch.Tensor:
        """The released images (m, c, h, w) put together."""
        if tuple(sealed.samples.shape[1:]) != self.known.shape:
            raise NotApplicable(
                f"jigsaw puts images of shape {self.known.shape} together: released rows are "
                f"{tuple(sealed.samples.shape[1:])}"
            )
        if self.reading.one is None:
            return sealed.samples
        return solve(sealed.samples, self.known, one=self.reading.one, weight=self.reading.weight)

    def notes(self) -> Mapping[str, int | float | str]:
        """The reading, its success on Eve's own key, and the blocks."""
        return {
            "reading": self.reading.words,
            "links found under a simulated key": round(self.found, 4),
            "side of a block": self.known.side,
        }


def _known(view: View, patch_size: int) -> Knowledge:
    samples = view.candidates.samples
    if samples.ndim != 4 or samples.shape[1] not in CHANNELS:
        raise NotApplicable(
            f"jigsaw puts images of 1 or 3 channels together, and raw rows are {tuple(samples.shape[1:])}"
        )
    if len(samples) < 2:
        raise NotApplicable(f"jigsaw compares candidates: needs at least 2, got {len(samples)}")
    h, w = samples.shape[2:]
    side, sides = patch_size or fitting_patch(h, w), [size for size in patch_sizes(h, w) if 1 < size < min(h, w)]
    if side not in sides:
        raise NotApplicable(
            f"jigsaw needs blocks of 2 pixels or more that divide the image, two or more a side: images are {h}x{w}, "
            f"which patch_size {', '.join(map(str, sides)) or 'of no size'} does"
        )
    assert side is not None
    return Knowledge.of(own_rows(view).samples[:KNOWN_ROWS], side)
