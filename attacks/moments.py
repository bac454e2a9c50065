"""Moments: the spread of a patch's numbers identifies it, even when shuffled.

Source: Carlini et al., "NeuraCrypt is not private" (2021): a random network keeps relations between the statistics of a
patch before and after encoding; two small networks, trained by contrast on keys that Eve, the attacker, draws, learn
them. Features of a patch, after the mean over the data set is subtracted at each position: its mean, and the i-th root
of the absolute i-th central moment, i = 2 to 14, as logarithms.

Differences from the source:
- It matches patches and then assigns images to images. Here an image's embedding is a network of the mean over its
  patches' embeddings (Zaheer et al. 2017, Deep Sets), so that an image is scored at once, whatever the order of its
  patches.
- Raw patches carry a learned vector of their place. Released patches do if their places are kept.
- Neither the pieces of a release nor whether their places are kept is known to Eve: she compares the features of two
  releases under keys of her own, by every layout, in place and sorted. Towers are trained for a few steps on what
  repeats best and on the usual patches (16 pixels, if they fit), in place and as a set; the lowest loss on held-out
  keys decides. What repeats does not decide by itself: under noise neither order repeats, and yet one may be learned.
- Every step has a fresh key; held-out keys say when to stop (`bench.eve.contrast`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch

from bench.eve.contrast import Course, Example, Outcome, train
from bench.eve.outliers import tamed
from bench.eve.own_releases import some_released, true_links
from bench.eve.patch_moments import FEATURES, Reading, moments, usual_layout
from bench.eve.tokens import Layout, layouts
from bench.nets import contrastive_towers
from bench.nets.training import seeded
from bench.pairs.score_matrices import CosineScores, apart
from bench.seeds import derive, drawn, generator
from bench.types import (
    Attack,
    Attacker,
    Dataset,
    LearningCurve,
    NotApplicable,
    Parameter,
    Release,
    Scheme,
    View,
)
from bench.validation import at_least, positive

MOST_LOCATIONS = 256
PROBE_ROWS = 256
HELD_OUT = 4
TRIED = 50  # steps of training that tell readings apart


@dataclass(frozen=True)
class Moments(Attack):
    """Learns from simulated keys the moments of patches that identify images.

    Args:
        steps: Training steps at most, one fresh key each.
        batch: Candidates a step; more if the method does not release so few (`bench.eve.own_releases`).
        width: Width of the networks and the embeddings.
        learning_rate: Adam's rate after a warm-up; it falls to zero along a cosine.
        enough: Training ends when the mean loss on held-out keys is below this.
        least: Steps before training may end at a plateau of the loss on held-out keys (see `bench.eve.plateau`). A
            method that trains for more than `least` steps gives both numbers their lower bounds (`Course.against`).
    """

    name: ClassVar[str] = "moments"
    source: ClassVar[str] = "Carlini et al. 2021, NeuraCrypt is not private"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme; no key, no labels"
    needs_public: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    trainings: ClassVar[int] = 2
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"steps": 60, "width": 32},
        "first-look": {"steps": 1600},
        "quick": {"steps": 3000},
        "standard": {"steps": 10_000, "width": 128, "least": 1000},
        "paper": {"steps": 20_000, "width": 256, "least": 4000},
    }

    steps: int = 800
    batch: int = 128
    width: int = 64
    learning_rate: float = 3e-3
    enough: float = 0.01
    least: int = 400

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps, width=self.width, least=self.least)
        at_least(2, batch=self.batch)
        positive(learning_rate=self.learning_rate)

    def fit(self, view: View, seed: int) -> MomentsAttacker:
        """Choose a layout, train. Raises NotApplicable for one candidate and without links."""
        candidates, device = view.candidates, view.candidates.samples.device
        if len(candidates) < 2:
            raise NotApplicable(f"moments compares rows: needs at least 2 candidates, got {len(candidates)}")

        def example(name: str, number: int) -> Example:
            chosen = drawn(len(candidates), generator(derive(seed, "batch", name, number), device), self.batch)
            return _simulate(view.scheme, candidates, chosen, derive(seed, name, number))[1]

        def trained(reading: Reading, steps: int) -> tuple[contrastive_towers.Towers, Outcome]:
            with seeded(derive(seed, "towers"), device):
                raw = Reading(_raw_layout(held_out[0].raw, reading), in_place=True)
                pair = (self._tower(raw, held_out[0].raw), self._tower(reading, held_out[0].released))
                towers = contrastive_towers.Towers(*pair).to(device)
                course = Course(steps, self.learning_rate, self.enough, self.least)
                course = course.against(view.trained) if steps == self.steps else course
                return towers, train(towers, lambda step: example("attack-key", step), held_out, course)

        readings = _readings(view, seed)
        held_out = [example("held-out-key", number) for number in range(HELD_OUT)]
        tried = [trained(reading, min(self.steps, TRIED))[1].loss for reading in readings] if readings[1:] else [0.0]
        reading = readings[tried.index(min(tried))]
        towers, outcome = trained(reading, self.steps)
        return MomentsAttacker(towers, candidates.samples, reading, outcome)

    def _tower(self, reading: Reading, rows: torch.Tensor) -> contrastive_towers.PieceTower:
        places = reading.layout.cut(rows[:1]).shape[1] if reading.in_place else None
        return contrastive_towers.PieceTower(partial(moments, reading), FEATURES, self.width, places=places)


@dataclass(frozen=True, eq=False)
class MomentsAttacker(Attacker):
    """Trained towers, raw rows (n, ...), the reading, and the training's outcome."""

    towers: contrastive_towers.Towers
    candidates: torch.Tensor
    reading: Reading
    outcome: Outcome

    def score(self, sealed: Release) -> CosineScores:
        """Cosines between the embeddings of the candidates and of the released rows."""
        with torch.no_grad():
            raw, released = self.towers(self.candidates, tamed(sealed.samples))
        return CosineScores(*apart(raw, released))

    def learning(self) -> tuple[LearningCurve, ...]:
        """The curve of the training."""
        return (self.outcome.learning(),)

    def notes(self) -> Mapping[str, int | float | str]:
        """The reading of a release, and the outcome of the training."""
        return {
            "layout": str(self.reading.layout),
            "pieces": "in place" if self.reading.in_place else "as a set",
            **self.outcome.notes(),
        }


def _simulate(scheme: Scheme, candidates: Dataset, chosen: torch.Tensor, seed: int) -> tuple[Dataset, Example]:
    rows, release = some_released(scheme, candidates, chosen, seed)
    links = true_links(release, "moments learns from links", main=False)
    return rows, Example(rows.samples, tamed(release.samples), links)


def _raw_layout(rows: torch.Tensor, released: Reading) -> Layout:
    """Raw pieces: patches as released, else usual patches, or the whole row."""
    if rows.ndim == 4 and released.layout.kind == "patches" and released.layout in layouts(tuple(rows.shape[1:])):
        return released.layout
    return usual_layout(rows)


def _readings(view: View, seed: int) -> list[Reading]:
    """Usual patches in either order, and the reading that repeats best."""
    device = view.candidates.samples.device
    probe = drawn(len(view.candidates), generator(derive(seed, "probe"), device), PROBE_ROWS)
    rows, one = _simulate(view.scheme, view.candidates, probe, derive(seed, "probe", 0))
    _, two = _simulate(view.scheme, rows, torch.arange(len(rows), device=device), derive(seed, "probe", 1))
    usual = usual_layout(one.released)
    ranks = {
        reading: _repeats(reading, one, two)
        for layout in dict.fromkeys((usual, *layouts(tuple(one.released.shape[1:]))))
        if _summed_up(layout, one.released)
        for reading in _orders(layout, one.released)
    }
    # If layouts do equally well, in place and the usual patches.
    best = sorted(ranks, key=lambda reading: (ranks[reading], reading.in_place, reading.layout == usual))[-1:]
    return list(dict.fromkeys([*_orders(usual, one.released), *best]))


def _orders(layout: Layout, rows: torch.Tensor) -> list[Reading]:
    return [Reading(layout, in_place) for in_place in ((True, False) if layout.cut(rows[:1]).shape[1] > 1 else (True,))]


def _summed_up(layout: Layout, rows: torch.Tensor) -> bool:
    """True for a single piece, or fewer moments than numbers a piece."""
    locations, numbers = layout.cut(rows[:1]).shape[1:]
    return locations == 1 or (locations <= MOST_LOCATIONS and numbers >= FEATURES)


def _repeats(reading: Reading, one: Example, two: Example) -> float:
    """Mean reciprocal rank of a row's features among another key's release."""
    first, second = (_described(reading, example) for example in (one, two))
    scores = first @ second.T
    same = one.links[:, None, 0] == two.links[None, :, 0]
    grid = scores[one.links[:, 1]][:, two.links[:, 1]]
    best = grid.masked_fill(~same, -torch.inf).amax(dim=1)
    return float((1 / (grid >= best[:, None]).sum(dim=1)).mean())


def _described(reading: Reading, example: Example) -> torch.Tensor:
    features = moments(reading, example.released)
    if not reading.in_place:
        features = features.sort(dim=1).values
    flat = features.flatten(1)
    centred = flat - flat.mean(dim=0)
    return torch.nn.functional.normalize(centred / centred.std(dim=0, correction=0).clamp_min(1e-3), dim=1)
