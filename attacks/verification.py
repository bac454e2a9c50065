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
- A release is read in several ways, and their cosines are added with weights that are learned on people and keys that
  no head has seen. "rows": by pixels and by the backbone, if released rows have the shape of raw ones, and by the
  backbone once more on images that the Wiener filter restores (`bench.eve.readings`). "places" and "bags": by how a row
  stands to the others of its release, as `relational`, `leverage` and `moments` see it (quantiles of inner products,
  ridge leverages, moments of patches, in place or as sets). Untrained readings are among them, plain pixels included:
  what noise leaves is often too little to learn from.
- A raw row is described as it is, and as it looks when it is released: by the mean over releases of it under Eve's own
  keys. Relations are described in the second way alone.
- Images are learned from in augmented copies too: flipped, shifted, of another brightness.
- If public rows show fewer than `FEWEST` people with several images, or there are none, pairs are an image and its
  augmented copy. That is a weaker attack; the record's notes say so. Rows that are no images have no such copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, get_args

import torch

from bench.backbones.packages import LAST, PACKAGES, SMALLEST, network_side
from bench.eve.outliers import tamed
from bench.eve.own_releases import true_links
from bench.eve.readings import COARSE, augmented, numbers, related, restorer
from bench.eve.verifier import Course, Parts, combine, folds_of
from bench.eve.verifier_lessons import HELD_KEYS, Describe, Form, Lessons, Pool, Released, RowReading, Way
from bench.nets import linear_heads
from bench.pairs.score_matrices import CosineScores, apart
from bench.randomness import Secret
from bench.rows.grouping import persons_of
from bench.rows.row_sets import in_columns
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, Dataset, LearningCurve, NotApplicable, Parameter, Release, View
from bench.validation import at_least, one_of, positive

FEWEST = 20
"""People with several images that pairs of two images are learned from."""
MOST_IMAGES = 8
"""Of one public person: a few people with hundreds of images teach nothing about others."""


@dataclass(frozen=True)
class Verification(Attack):
    """Linear heads on frozen features, learned from pairs of people.

    Args:
        backbone: "pixels" (images at 32 x 32), or an ImageNet network that is installed as a package: "mobilenet-v2"
            or "efficientnet-lite0" (see the extractor `package`), or "both" of them.
        size: Side in pixels of what such a network reads; None: twice the images' own, within 96 and 224.
        reading: The readings of a release that are tried; "auto" tries all that apply.
        keys: Simulated keys to learn from; two more are held out.
        rows: Public rows at most, people with several images first; eight of one person at most.
        steps: Steps at most of each training.
        batch: Raw rows a step.
        learning_rate: Adam's.
        least: Steps before a training may end at a plateau of the loss on held-out people (`bench.eve.plateau`).
    """

    name: ClassVar[str] = "verification"
    source: ClassVar[str] = "Packhäuser et al. 2022 and 2023; heads on frozen features in place of a ResNet-50"
    makes_releases = True
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
    size: int | None = None
    reading: Literal["auto", "rows", "places", "bags"] = "auto"
    keys: int = 8
    rows: int = 1500
    steps: int = 1500
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
        if self.networks:
            _check_images(view.candidates.samples, self.backbone)
        pool = _pool(self, view, seed)
        simulated = [_released(view, pool, seed, number) for number in range(self.keys + HELD_KEYS)]
        same = simulated[0][0].shape[1:] == view.candidates.samples.shape[1:]
        if self.reading == "rows" and not same:
            raise NotApplicable(
                f"reading=rows compares rows of one shape: raw rows are {tuple(view.candidates.samples.shape[1:])}, "
                f"released ones {tuple(simulated[0][0].shape[1:])}"
            )
        own = simulated
        if not pool.same or pool.copies:
            own = [_release_of(view, view.candidates, seed, "candidates", number) for number in range(self.keys)]
        course = Course(self.steps, self.least, self.batch, self.learning_rate)
        lessons = Lessons(
            view.candidates, pool, simulated, own, folds_of(pool.people, derive(seed, "folds")), course, seed
        )
        forms = [
            form for reading in self._readings(view, pool, simulated, seed, same=same) for form in lessons.of(reading)
        ]
        if self.reading != "auto":
            forms = [form for form in forms if form.way == self.reading]
        entries = [(place, entry) for place, form in enumerate(forms) for entry in form.entries]
        chosen = combine(
            [entry for _, entry in entries], pool.people, folds=lessons.folds, own=lessons.own_pairs,
            seed=derive(seed, "weights"),
        )  # fmt: skip
        kept = [Kept(forms[entries[place][0]], linear_heads.mean_heads(entries[place][1].heads), weight)
                for place, weight in chosen.weights.items()]  # fmt: skip
        total = sum(chosen.weights.values())
        by_share = sorted(chosen.weights.items(), key=lambda item: -item[1])
        words = ", ".join(f"{entries[place][1].name} ({weight / total:.2f})" for place, weight in by_share)
        losses = {f"held-out loss, {entry.name}": loss for (_, entry), loss in zip(entries, chosen.losses, strict=True)}
        notes: dict[str, int | float | str] = {
            "backbone": self.backbone, **self._hash(), "seed": seed, "pairs": pool.words,
            "reading": words, "chosen": "the best reading" if chosen.alone else "a weighted sum of readings",
            "simulated keys": self.keys, **losses, "held-out loss, weighted sum": chosen.loss,
            "held-out loss at chance": chosen.chance,
        }  # fmt: skip
        if self.networks:
            notes["side that networks read"] = self._side(view.candidates.samples)
        return VerificationAttacker(tuple(kept), notes, tuple(run.learning for form in forms for run in form.trained))

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that rows are read by."""
        return {"pixels": (), "both": tuple(PACKAGES)}.get(self.backbone, (self.backbone,))

    def _hash(self) -> dict[str, str]:
        return {f"weights of {name}": PACKAGES[name].sha256 for name in self.networks}

    def _side(self, samples: torch.Tensor) -> int:
        return network_side(samples) if self.size is None else self.size

    def _readings(self, view: View, pool: Pool, simulated: Released, seed: int, *, same: bool) -> Iterator[RowReading]:
        if same and self.reading in ("auto", "rows"):
            yield RowReading("plain pixels", "rows", numbers, 0.0, trained=False)
            yield RowReading("pixels", "rows", numbers, 0.5)
            if view.candidates.samples.ndim == 4:
                yield RowReading("coarse pixels", "rows", partial(numbers, side=COARSE), 0.0, trained=False)
            if self.networks:
                side = self._side(view.candidates.samples)
                network = _by_networks(self.networks, side, ", or choose backbone=pixels")
                name = " and ".join(self.networks)
                yield RowReading(name, "rows", network, 0.5)
                plain = [(rows, made_of) for number, (rows, made_of) in enumerate(simulated[: self.keys])
                         if pool.same or not _is_copied(pool, number)]  # fmt: skip
                restore = restorer(pool.rows.samples, plain) if plain else None
                if restore is not None:
                    yield RowReading(f"{name} on restored images", "rows", lambda rows: network(restore(rows)), 0.5)
        for way in ("places", "bags"):
            if self.reading in ("auto", way):
                describe = partial(related, way, derive(seed, "reference"))
                yield RowReading(f"relations in {way}", way, describe, 0.5)


@dataclass(frozen=True, eq=False)
class Kept:
    """A score of the sum: coordinates, heads, weight."""

    form: Form
    heads: linear_heads.Heads
    weight: float


@dataclass(frozen=True, eq=False)
class VerificationAttacker(Attacker):
    """The scores of the weighted sum, notes, and all curves."""

    kept: tuple[Kept, ...]
    told: Mapping[str, int | float | str]
    curves: tuple[LearningCurve, ...]

    def score(self, sealed: Release) -> CosineScores:
        """Weighted sum of the cosines of the heads' embeddings.

        Raises NotApplicable for rows that the backbone does not read.
        """
        samples, sides, described = tamed(sealed.samples), list[tuple[torch.Tensor, torch.Tensor]](), {}
        with torch.no_grad():
            for each in self.kept:
                form = each.form
                if form.describe not in described:
                    described[form.describe] = form.describe(samples)
                raw, released = each.heads(form.raw, form.axes(described[form.describe]))
                sides.append((each.weight**0.5 * raw, each.weight**0.5 * released))
        return CosineScores(*apart(*(torch.cat(side, dim=1) for side in zip(*sides, strict=True))))

    def learning(self) -> tuple[LearningCurve, ...]:
        """A curve for each reading, of raw and of released rows."""
        return self.curves

    def notes(self) -> Mapping[str, int | float | str]:
        """Backbone with its hash, seed, pairs, shares of readings, losses."""
        return self.told


def _pool(attack: Verification, view: View, seed: int) -> Pool:
    candidates, device = view.candidates, view.candidates.samples.device
    if not view.by_person:
        every = torch.arange(len(candidates), device=device)
        return Pool(candidates, every, True, False, "a candidate and the row released of it")
    public = _public(view) if len(view.public) else view.public
    people = persons_of(public)
    images = torch.bincount(people)[people]
    known = len(public) > 0 and public.subjects is not None
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
    if public.samples.shape[1:] != candidates.samples.shape[1:]:
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
    if _is_copied(pool, number):
        rows = replace(rows, samples=augmented(rows.samples, derive(seed, "copy", number)))
    return _release_of(view, rows, seed, "key", number)


def _release_of(view: View, rows: Dataset, seed: int, *names: str | int) -> tuple[torch.Tensor, torch.Tensor]:
    """Released rows under a key of Eve's own, and their raw rows."""
    release = view.scheme.sample_key(Secret.of_seed(seed, *names)).release(rows)
    links = true_links(release, "verification learns from links")
    return release.samples[links[:, 1]], links[:, 0]


def _is_copied(pool: Pool, number: int) -> bool:
    """If a release under key `number` is of augmented images."""
    return not pool.same and pool.rows.samples.ndim == 4 and (pool.copies or number % 2 == 1)


def _by_networks(names: Sequence[str], side: int, instead: str) -> Describe:
    """Last and middle features of installed networks."""
    networks = [PACKAGES[name].network(side=side, batch=32, maps=True, instead=instead) for name in names]

    def described(samples: torch.Tensor) -> Parts:
        found = [network.read(samples) for network in networks]
        return tuple(part for each in found for part in (each[:, :LAST], each[:, LAST:]))

    return described


def _check_images(samples: torch.Tensor, backbone: str) -> None:
    """Raise NotApplicable for rows that a network of images does not read."""
    if samples.ndim != 4:
        raise NotApplicable(f"backbone={backbone} reads images, and these rows are vectors: use backbone=pixels")
