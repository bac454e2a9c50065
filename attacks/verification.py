"""Verification: people are told apart as public people teach it.

Source: Packhäuser et al. 2022, "Deep learning-based patient re-identification is able to exploit the biometric nature
of medical chest X-ray data" (a siamese network, AUC .994 on raw films); trained again on protected images as the
retrained verifier of Packhäuser et al. 2023 (PriCheXy-Net) is.

Eve, the attacker, learns pairs of two images of one public person, first as they are, then one of them released under
keys that she draws. If a correct pair is an image and the row released of it (profile same-image and its like), she
learns from her candidates under her own keys.

Differences from the papers:
- The backbone is frozen, and linear heads are learned on its features: see `bench.eve.verifier`. The papers train a
  ResNet-50 on 70,000 pairs; public people with several images are hundreds here.
- Releases are read in three ways. "rows": by the backbone, if released rows have the shape of raw ones. "places" and
  "bags": by how a row stands to the others of its release, as `relational`, `leverage` and `moments` see it (quantiles
  of inner products, ridge leverages, moments of patches, in place or as sets); a raw row is then described by releases
  of it under Eve's own keys. Held-out people under held-out keys choose.
- Images are learned from in augmented copies too: flipped, shifted, of another brightness.
- If public rows show fewer than `FEWEST` people with several images, pairs are an image and its augmented copy. That is
  a weaker attack; the record's notes say so. Rows that are no images have no such copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, TypeAlias, get_args

import torch

from bench.backbones.packages import LAST, PACKAGES, SMALLEST
from bench.eve.gram_matching import Look
from bench.eve.outliers import tamed
from bench.eve.own_releases import true_links
from bench.eve.patch_moments import Reading, moments, usual_layout
from bench.eve.verifier import Axes, Course, Pairs, Parts, Trained, principal_axes, train_heads
from bench.nets import linear_heads
from bench.pairs.score_matrices import CosineScores, apart
from bench.progress import report
from bench.randomness import Secret
from bench.rows.grouping import persons_of
from bench.rows.row_sets import in_columns
from bench.seeds import derive, generator
from bench.types import (
    Attack,
    Attacker,
    Dataset,
    LearningCurve,
    NotApplicable,
    Parameter,
    Release,
    View,
)
from bench.validation import at_least, one_of, positive

FEWEST = 20
"""People with several images that pairs of two images are learned from."""
MOST_IMAGES = 8
"""Of one public person: a few people with hundreds of images teach nothing about others."""
LOCATIONS = 16
PIXELS = 32  # side at which images are compared by their pixels
SHIFT, BRIGHTNESS = 0.05, 0.15
VIEWS = 3
HELD_KEYS = 2
Way = Literal["rows", "places", "bags"]
Describe: TypeAlias = "Callable[[torch.Tensor], Parts]"


@dataclass(frozen=True)
class Verification(Attack):
    """Linear heads on frozen features, learned from pairs of people.

    Args:
        backbone: "pixels" (images at 32 x 32), or an ImageNet network that is installed as a package: "mobilenet-v2"
            or "efficientnet-lite0" (see the extractor `package`), or "both" of them.
        size: Side in pixels of what such a network reads; it was trained at 224.
        reading: The reading of a release; "auto" takes that by which held-out people are told apart best.
        keys: Simulated keys to learn from; two more are held out.
        rows: Public rows at most, people with several images first; eight of one person at most.
        steps: Steps at most of each training.
        batch: Raw rows a step.
        learning_rate: Adam's.
        least: Steps before a training may end at a plateau of the loss on held-out people (`bench.eve.plateau`).
    """

    name: ClassVar[str] = "verification"
    source: ClassVar[str] = "Packhäuser et al. 2022 and 2023; heads on frozen features in place of a ResNet-50"
    knowledge: ClassVar[str] = "the raw rows, the release, the scheme, and public rows with their people; no key"
    needs_public: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    trainings: ClassVar[int] = 2
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"keys": 2, "steps": 40, "least": 20, "rows": 128},
        "first-look": {"keys": 6, "rows": 600},
        "standard": {"keys": 16, "steps": 3000, "rows": 4000},
        "paper": {"keys": 32, "steps": 10_000, "rows": 20_000},
    }

    backbone: Literal["pixels", "mobilenet-v2", "efficientnet-lite0", "both"] = "pixels"
    size: int = 224
    reading: Literal["auto", "rows", "places", "bags"] = "auto"
    keys: int = 8
    rows: int = 1500
    steps: int = 600
    batch: int = 256
    learning_rate: float = 1e-3
    least: int = 60

    def __post_init__(self) -> None:
        one_of(("pixels", *PACKAGES, "both"), backbone=self.backbone)
        one_of(("auto", *get_args(Way)), reading=self.reading)
        at_least(SMALLEST, size=self.size)
        at_least(2, keys=self.keys, batch=self.batch, rows=self.rows)
        at_least(1, steps=self.steps, least=self.least)
        positive(learning_rate=self.learning_rate)

    def fit(self, view: View, seed: int) -> VerificationAttacker:
        """Learn from public people, or from candidates.

        Raises:
            NotApplicable: Fewer than 3 candidates; releases without links; rows that the backbone does not read; public
                people that no pair can be made of.
        """
        if len(view.candidates) < 3:
            raise NotApplicable(f"verification compares rows: needs at least 3 candidates, got {len(view.candidates)}")
        pool = _pool(self, view, seed)
        looked = self._features()
        simulated = [_released(view, pool, seed, number) for number in range(self.keys + HELD_KEYS)]
        same = simulated[0][0].shape[1:] == view.candidates.samples.shape[1:]
        ways: list[Way] = ["rows", "places", "bags"] if same else ["places", "bags"]
        if self.reading == "rows" and not same:
            raise NotApplicable(
                f"reading=rows compares rows of one shape: raw rows are {tuple(view.candidates.samples.shape[1:])}, "
                f"released ones {tuple(simulated[0][0].shape[1:])}"
            )
        tried = [
            self._by_rows(view, pool, simulated, looked, seed)
            if way == "rows"
            else self._by_relations(view, pool, simulated, way, seed)
            for way in ways
            if self.reading in ("auto", way)
        ]
        chosen = min(tried, key=lambda reader: reader.trained[-1].loss)
        losses = {f"held-out loss, {reader.way}": reader.trained[-1].loss for reader in tried}
        told: dict[str, int | float | str] = {
            "backbone": self.backbone, **self._hash(), "seed": seed, "pairs": pool.told, "reading": chosen.way,
            "simulated keys": self.keys, **losses, "held-out loss at chance": chosen.trained[-1].chance,
        }  # fmt: skip
        curves = [
            replace(run.learning, part=f"{reader.way}, {run.learning.part}")
            for reader in tried
            for run in reader.trained
        ]
        return VerificationAttacker(chosen, told, tuple(curves))

    @property
    def _networks(self) -> tuple[str, ...]:
        return {"pixels": (), "both": tuple(PACKAGES)}.get(self.backbone, (self.backbone,))

    def _hash(self) -> dict[str, str]:
        return {f"weights of {name}": PACKAGES[name].sha256 for name in self._networks}

    def _features(self) -> Describe:
        """Features of rows by themselves."""
        if not self._networks:
            return _pixels
        networks = [
            PACKAGES[name].network(side=self.size, batch=32, maps=True, instead=", or choose backbone=pixels")
            for name in self._networks
        ]

        def described(samples: torch.Tensor) -> Parts:
            if samples.ndim != 4:
                raise NotApplicable(
                    f"backbone={self.backbone} reads images, and these rows are vectors: use backbone=pixels"
                )
            found = [network.read(samples) for network in networks]
            return tuple(part for each in found for part in (each[:, :LAST], each[:, LAST:]))

        return described

    def _by_rows(
        self, view: View, pool: Pool, simulated: list[tuple[torch.Tensor, torch.Tensor]], features: Describe, seed: int
    ) -> Reader:
        samples, device = pool.rows.samples, view.candidates.samples.device
        views = [features(samples)]
        if samples.ndim == 4:
            views += [features(augmented(samples, derive(seed, "view", number))) for number in range(1, VIEWS)]
        held = features(view.candidates.samples)
        axes = principal_axes([views[0], held])
        raw = [axes(each) for each in views]
        shown = []
        for number, (released, made_of) in enumerate(simulated):
            shown.append(Pairs(raw[0], axes(features(tamed(released))), made_of))
            report("verification, simulated key", number + 1, len(simulated))
        start, trained = linear_heads.Heads(raw[0].shape[1], tied=True).to(device), list[Trained]()
        if not pool.same or pool.copies:
            own, every = pool.copies, torch.arange(len(samples), device=device)
            plain = [Pairs(raw[0], each, every) for each in (raw[1:] if own else raw)]
            trained.append(
                self._train(start, plain, plain[:1], pool, derive(seed, "raw"), "raw rows of public people", own=own)
            )
            start = trained[-1].heads
        trained.append(
            self._train(
                start.apart(),
                shown[:-HELD_KEYS],
                shown[-HELD_KEYS:],
                pool,
                derive(seed, "keys"),
                "rows released under own keys",
                own=pool.same or pool.copies,
            )
        )
        return Reader("rows", features, axes, axes(held), tuple(trained))

    def _by_relations(
        self, view: View, pool: Pool, simulated: list[tuple[torch.Tensor, torch.Tensor]], way: Way, seed: int
    ) -> Reader:
        device, describe = view.candidates.samples.device, partial(related, way, derive(seed, "reference"))
        n, many = len(pool.rows), len(simulated)
        found = [describe(released) for released, _ in simulated]
        by_row = [_by_row(parts, made_of, n) for parts, (_, made_of) in zip(found, simulated, strict=True)]
        total = [sum(parts[1:], parts[0]) for parts in zip(*by_row, strict=True)]
        if pool.same and not pool.copies:
            expected: Parts = tuple(part / many for part in total)
        else:
            releases = [_release_of(view, view.candidates, seed, "candidates", number) for number in range(self.keys)]
            of_key = [_by_row(describe(rows), made_of, len(view.candidates)) for rows, made_of in releases]
            expected = tuple(sum(parts[1:], parts[0]) / len(parts) for parts in zip(*of_key, strict=True))
        axes = principal_axes([*found[:2], expected])
        shown = []
        for parts, own, (_, made_of) in zip(found, by_row, simulated, strict=True):
            others = tuple((whole - mine) / (many - 1) for whole, mine in zip(total, own, strict=True))
            shown.append(Pairs(axes(others), axes(parts), made_of))
        trained = self._train(
            linear_heads.Heads(shown[0].raw.shape[1], tied=False).to(device),
            shown[:-HELD_KEYS], shown[-HELD_KEYS:], pool,
            derive(seed, "keys"), "rows released under own keys", own=pool.same or pool.copies,
        )  # fmt: skip
        return Reader(way, describe, axes, axes(expected), (trained,))

    def _train(
        self,
        start: linear_heads.Heads,
        keys: list[Pairs],
        held: list[Pairs],
        pool: Pool,
        seed: int,
        part: str,
        *,
        own: bool,
    ) -> Trained:
        course = Course(self.steps, self.least, self.batch, self.learning_rate)
        return train_heads(start, keys, held, pool.people, own=own, course=course, seed=seed, part=part)


@dataclass(frozen=True, eq=False)
class Pool:
    """The rows that pairs are made of.

    Args:
        rows: n rows without names.
        people: (n,) int64, what a pair has in common: the person, or the image.
        same: True if a correct pair is an image and the row released of it.
        copies: True if pairs are an image and its augmented copy, for want of people with several images.
        told: In words for the record.
    """

    rows: Dataset
    people: torch.Tensor
    same: bool
    copies: bool
    told: str


@dataclass(frozen=True, eq=False)
class Reader:
    """A way to read a release, and the heads learned for it.

    `raw` are the coordinates (n, d) of the candidates.
    """

    way: Way
    describe: Describe
    axes: Axes
    raw: torch.Tensor
    trained: tuple[Trained, ...]


@dataclass(frozen=True, eq=False)
class VerificationAttacker(Attacker):
    """The reader that did best on held-out people, notes, and all curves."""

    reader: Reader
    told: Mapping[str, int | float | str]
    curves: tuple[LearningCurve, ...]

    def score(self, sealed: Release) -> CosineScores:
        """Cosines of the heads' embeddings.

        Raises NotApplicable for rows that the backbone does not read.
        """
        reader = self.reader
        with torch.no_grad():
            raw, released = reader.trained[-1].heads(reader.raw, reader.axes(reader.describe(tamed(sealed.samples))))
        return CosineScores(*apart(raw, released))

    def learning(self) -> tuple[LearningCurve, ...]:
        """A curve for each reading, of raw and of released rows."""
        return self.curves

    def notes(self) -> Mapping[str, int | float | str]:
        """Backbone with the hash of its weights, seed, pairs, reading and losses."""
        return self.told


def augmented(samples: torch.Tensor, seed: int) -> torch.Tensor:
    """Images, each second one flipped, all shifted and of another brightness.

    Args:
        samples: (n, c, h, w).
        seed: Draws who is flipped, shifts up to `SHIFT` of a side, and factors 1 +- `BRIGHTNESS`.
    """
    random, n = generator(seed), len(samples)
    flip = torch.where(torch.rand(n, generator=random) < 0.5, -1.0, 1.0)
    shift = (2 * torch.rand(n, 2, generator=random) - 1) * 2 * SHIFT
    bright = 1 + BRIGHTNESS * (2 * torch.rand(n, 1, 1, 1, generator=random) - 1)
    move = torch.zeros(n, 2, 3)
    move[:, 0, 0], move[:, 1, 1], move[:, :, 2] = flip, 1.0, shift
    grid = torch.nn.functional.affine_grid(move, list(samples.shape), align_corners=False).to(samples.device)
    moved = torch.nn.functional.grid_sample(samples[:], grid, padding_mode="border", align_corners=False)
    return moved * bright.to(samples.device)


def related(way: Way, seed: int, released: torch.Tensor) -> Parts:
    """Features (m, f) of released rows by their relations, float32.

    Signatures as `relational` reads them, with the ridge leverages, and moments of patches, in place or as a set.
    """
    places = way == "places"
    signatures = Look("places" if places else "bags", LOCATIONS, related=False, seed=seed)(released).signatures
    by_piece = moments(Reading(usual_layout(released), places), released)
    if not places:
        by_piece = by_piece.sort(dim=1).values
    return signatures.float(), by_piece.flatten(1).float()


def _pixels(samples: torch.Tensor) -> Parts:
    if samples.ndim == 4 and max(samples.shape[2:]) > PIXELS:
        samples = torch.nn.functional.adaptive_avg_pool2d(samples[:], PIXELS)
    return (samples[:].flatten(1).float(),)


def _pool(attack: Verification, view: View, seed: int) -> Pool:
    candidates, device = view.candidates, view.candidates.samples.device
    if not view.by_person:
        every = torch.arange(len(candidates), device=device)
        return Pool(candidates, every, True, False, "a candidate and the row released of it")
    public = _public(view)
    people = persons_of(public)
    images = torch.bincount(people)[people]
    known = public.subjects is not None
    several = len(torch.unique(people[images > 1])) if known else 0
    if several >= FEWEST:
        order = torch.randperm(len(public), generator=generator(derive(seed, "pool")))
        order = order[_place_among_own(people[order]) < MOST_IMAGES]
        order = order[(images[order] == 1).long().argsort(stable=True)]  # of one image: they are only other people
        rank = torch.full((int(people.max()) + 1,), len(order)).scatter_reduce(
            0, people[order], torch.arange(len(order)), "amin"
        )
        chosen = order[rank[people[order]].argsort(stable=True)][: attack.rows].to(device)
        told = f"two images of one public person: {several} people with several images in {public.name}"
        shown = torch.unique(people.to(device)[chosen], return_inverse=True)[1]
        return Pool(public.nameless().take(chosen), shown, False, False, told)
    why = f"public rows show {several} people with several images, fewer than {FEWEST}"
    if not known:
        why = "public rows do not say who is who" if len(public) else "there are no public rows"
    if candidates.samples.ndim != 4:
        raise NotApplicable(
            f"verification learns from people with several images: {why}, and rows that are no images have no "
            "augmented copies; choose another --public"
        )
    every = torch.arange(len(candidates), device=device)
    return Pool(candidates, every, False, True, f"an image and its augmented copy, for {why}")


def _place_among_own(people: torch.Tensor) -> torch.Tensor:
    """(n,) int64: how many earlier rows are of the same person."""
    order = people.argsort(stable=True)
    counts = torch.bincount(people)
    place = torch.empty_like(people)
    place[order] = torch.arange(len(people)) - (counts.cumsum(0) - counts)[people[order]]
    return place


def _public(view: View) -> Dataset:
    """The public rows with labels as the candidates have them."""
    public, candidates = view.public, view.candidates
    if len(public) and public.samples.shape[1:] != candidates.samples.shape[1:]:
        raise NotApplicable(
            f"verification learns from public rows of the candidates' shape {tuple(candidates.samples.shape[1:])}: "
            f"those of {public.name} have {tuple(public.samples.shape[1:])}"
        )
    alike = in_columns(public, candidates)
    if alike is None:
        raise NotApplicable(
            f"released samples depend on labels, and those of {public.name} are not of the candidates' findings: "
            "verification cannot release public rows; choose another --public"
        )
    return alike


def _released(view: View, pool: Pool, seed: int, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A release of the pool.

    Of augmented images under every second key, or under all if pairs are copies.
    """
    rows = pool.rows
    if not pool.same and rows.samples.ndim == 4 and (pool.copies or number % 2):
        rows = replace(rows, samples=augmented(rows.samples, derive(seed, "copy", number)))
    return _release_of(view, rows, seed, "key", number)


def _release_of(view: View, rows: Dataset, seed: int, *names: str | int) -> tuple[torch.Tensor, torch.Tensor]:
    """Released rows under a key of Eve's own, and their raw rows."""
    release = view.scheme.sample_key(Secret.of_seed(seed, *names)).release(rows)
    links = true_links(release, "verification learns from links")
    return release.samples[links[:, 1]], links[:, 0]


def _by_row(parts: Parts, made_of: torch.Tensor, n: int) -> Parts:
    """Mean features (n, f) of released rows by raw row; else 0."""
    share = torch.bincount(made_of, minlength=n).clamp_min(1).to(parts[0].dtype)[:, None]
    return tuple(part.new_zeros(n, part.shape[1]).index_add_(0, made_of, part) / share for part in parts)
