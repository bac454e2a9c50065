"""Fidelity: how much released images look like raw images of other people.

KID is unbiased for any number of images and leads. FID is biased by the number of images, precision, recall, density
and coverage depend on it: they compare equal numbers, drawn at random. Beside each figure stands that of the private
images themselves against the same reference ("raw against raw"): no release can be expected to do better.

Intervals are delete-a-group jackknives over `GROUPS` groups of people on both sides (Efron and Tibshirani 1993,
chapter 11): they hold for the figure at these numbers of images, bias included. Identical rows of a release are left
out together where they are fewer than its people.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import scipy
import torch

from bench.evidence import FidelityEvidence, ImageSet
from bench.rows.row_sets import distinct
from bench.seeds import derive, generator
from bench.types import FIDELITY, Column, Metric, NotApplicable, Score

GROUPS = 10
NEIGHBOURS = 5
"""k of precision, recall, density and coverage: what Naeem et al. choose."""
FEWEST = 20
"""Images of a finding on each side, below which it has no part."""
RAW = "what raw images of other people give against the same reference"

Figure: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], float]"
"""Of features of reference (n, d) and other images (m, d), float64."""


def kid(reference: torch.Tensor, other: torch.Tensor, people: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Kernel inception distance: an unbiased squared MMD, possibly below 0.

    Binkowski et al. 2018, section 4 and equation 4, kernel (x.y / d + 1)^3, over all images instead of subsets. Within
    a set only pairs of different people count, which keeps the estimate unbiased if people have several images.

    Args:
        reference, other: (n, d) and (m, d) float64.
        people: Their people, (n,) and (m,).

    >>> line = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> kid(line, line, (torch.arange(2), torch.arange(2)))  # 1 + 1 - 2 (1 + 1 + 1 + 8) / 4
    -3.5
    """
    means = []
    for rows, numbers in zip((reference, other), people, strict=True):
        apart = numbers[:, None] != numbers
        if not bool(apart.any()):
            raise NotApplicable("KID needs images of two people on both sides")
        means.append(float((_kernel(rows, rows) * apart).sum() / apart.sum()))
    return means[0] + means[1] - 2 * float(_kernel(reference, other).mean())


def _kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a @ b.T / a.shape[1] + 1) ** 3


def fid(reference: torch.Tensor, other: torch.Tensor) -> float:
    """Fréchet distance of two Gaussians with the sets' moments.

    Heusel et al. 2017, equation 6. The trace of the root of C1 C2 is the sum of singular values of A1 A2^T, where the
    centred rows A are divided by the root of their number less one, or of their triangular factors.

    Args:
        reference, other: (n, d) and (m, d) float64, two rows or more.

    >>> line = torch.tensor([[0.0], [2.0]], dtype=torch.float64)
    >>> round(fid(line, line * 2 + 3), 9)  # means 1 and 5, deviations sqrt(2) and 2 sqrt(2): 16 + 2
    18.0
    """
    parts = []
    for rows in (reference, other):
        centred = (rows - rows.mean(dim=0)) / math.sqrt(len(rows) - 1)
        parts.append(torch.linalg.qr(centred, mode="r").R if len(rows) > rows.shape[1] else centred)
    spread = sum(float(part.square().sum()) for part in parts)
    shift = float((reference.mean(dim=0) - other.mean(dim=0)).square().sum())
    return max(0.0, shift + spread - 2 * float(torch.linalg.svdvals(parts[0] @ parts[1].T).sum()))


def precision(reference: torch.Tensor, other: torch.Tensor) -> float:
    """Share of the other images within a reference image's radius.

    Kynkäänniemi et al. 2019, equation 2; a radius is the distance to the k-th nearest image of the same set.
    """
    return float((torch.cdist(reference, other) < _radii(reference)[:, None]).any(dim=0).double().mean())


def recall(reference: torch.Tensor, other: torch.Tensor) -> float:
    """`precision` with both sides exchanged: the reference's share among the others."""
    return precision(other, reference)


def density(reference: torch.Tensor, other: torch.Tensor) -> float:
    """Reference radii that hold an image, divided by k, on average.

    Naeem et al. 2020, equation 4: about 1 of raw images; it may exceed 1.
    """
    inside = torch.cdist(reference, other) < _radii(reference)[:, None]
    return float(inside.double().sum(dim=0).mean()) / NEIGHBOURS


def coverage(reference: torch.Tensor, other: torch.Tensor) -> float:
    """Share of the reference images with another image within their radius.

    Naeem et al. 2020, equation 5; of raw images 1 - 2^-k, about, if people have one image each.
    """
    return float((torch.cdist(reference, other).amin(dim=1) < _radii(reference)).double().mean())


def _radii(rows: torch.Tensor) -> torch.Tensor:
    """(n,) distance to the `NEIGHBOURS`-th nearest other row."""
    apart = torch.cdist(rows, rows)
    apart.fill_diagonal_(0)
    return apart.kthvalue(NEIGHBOURS + 1, dim=1).values


@dataclass(frozen=True, eq=False)
class _Rows:
    """Features (n, d) float64, people (n,), and units (n,) left out together.

    Units are people or identical rows, whichever are fewer.
    """

    features: torch.Tensor
    people: torch.Tensor
    units: torch.Tensor

    @classmethod
    def of(cls, images: ImageSet, why: str) -> _Rows:
        if images.features is None:
            raise NotApplicable(why)
        rows = images.features.double()
        people, same = torch.arange(len(rows)) if images.people is None else images.people, distinct(rows)[1]
        return cls(rows, people, min(_numbered(people), _numbered(same), key=lambda units: int(units.max())))

    def at(self, chosen: torch.Tensor) -> _Rows:
        return _Rows(
            self.features[chosen], self.people[chosen], torch.unique(self.units[chosen], return_inverse=True)[1]
        )

    def drawn(self, count: int, seed: int) -> _Rows:
        return self.at(torch.randperm(len(self.features), generator=generator(seed))[:count].sort().values)


def _numbered(numbers: torch.Tensor) -> torch.Tensor:
    """The same groups, numbered from 0."""
    places: torch.Tensor = torch.unique(numbers, return_inverse=True)[1]
    return places


Compare: TypeAlias = "Callable[[_Rows, _Rows], float]"


def _with_interval(figure: Compare, reference: _Rows, other: _Rows, *, least: float, most: float, seed: int) -> Score:
    """The figure with its jackknife interval; none with fewer than `GROUPS` people."""
    value, variance = figure(reference, other), 0.0
    sides = (reference, other)
    if min(int(side.units.max()) + 1 for side in sides) < GROUPS:
        return Score(value, None, None, len(other.features), note=f"no interval: fewer than {GROUPS} people")
    for place, side in enumerate(sides):
        groups = (
            torch.randperm(int(side.units.max()) + 1, generator=generator(derive(seed, place)))[side.units] % GROUPS
        )
        left = []
        for group in range(GROUPS):
            kept = side.at((groups != group).nonzero().flatten())
            left.append(figure(kept, other) if place == 0 else figure(reference, kept))
        mean = sum(left) / GROUPS
        variance += (GROUPS - 1) / GROUPS * sum((each - mean) ** 2 for each in left)
    if variance == 0:  # all of a share, or nothing of it
        return Score(value, None, None, len(other.features), note="no interval: every group of people gives the same")
    width = float(scipy.special.stdtrit(GROUPS - 1, 0.975)) * math.sqrt(variance)
    note = f"standard error {math.sqrt(variance):.3g}; 95 % jackknife interval over {GROUPS} groups of people"
    low, high = max(least, value - width), min(most, value + width)
    return Score(value, min(low, value), max(high, value), len(other.features), note=note)


@dataclass(frozen=True)
class _Measured:
    """A figure with its range, of all images or equal numbers."""

    figure: Compare
    equal: bool = True
    least: float = 0.0
    most: float = math.inf
    by_finding: bool = True

    def score(self, evidence: FidelityEvidence) -> Score:
        """Released against reference; null: original against it; parts by finding."""
        reference, original, released = (
            _Rows.of(each, evidence.network) for each in (evidence.reference, evidence.original, evidence.released)
        )
        score = self._beside(reference, original, released, evidence.seed)
        parts = {}
        held = (evidence.reference.labels, evidence.original.labels, evidence.released.labels)
        if self.by_finding and all(labels is not None for labels in held):
            for k, name in enumerate(evidence.findings):
                rows = [(labels[:, k] == 1).nonzero().flatten() for labels in held if labels is not None]
                if min(len(each) for each in rows) >= FEWEST:
                    some = [side.at(each) for side, each in zip((reference, original, released), rows, strict=True)]
                    parts[name] = self._beside(some[0], some[1], some[2], derive(evidence.seed, name))
        return replace(score, parts=parts, note=f"{score.note}; features of {evidence.network}")

    def _beside(self, reference: _Rows, original: _Rows, released: _Rows, seed: int) -> Score:
        sides = [reference, original, released]
        if self.equal:
            count = min(len(side.features) for side in sides)
            sides = [side.drawn(count, derive(seed, "equal", place)) for place, side in enumerate(sides)]
        raw, score = (
            _with_interval(self.figure, sides[0], side, least=self.least, most=self.most, seed=seed)
            for side in sides[1:]
        )
        return replace(score, null=raw.value, null_low=raw.low, null_high=raw.high)


def _plain(figure: Figure) -> Compare:
    return lambda reference, other: figure(reference.features, other.features)


class _OfSets(Metric[FidelityEvidence]):
    """A figure of features, by `measured`."""

    better: ClassVar[Literal["higher", "lower"]] = "higher"
    on_request: ClassVar[bool] = True
    measured: ClassVar[_Measured]

    def __call__(self, evidence: FidelityEvidence) -> Score:
        """The figure; parts: by finding.

        Raises:
            NotApplicable: No network is installed, or a side shows too few people.
        """
        return self.measured.score(evidence)


@dataclass(frozen=True)
class KID(_OfSets):
    """Kernel inception distance of released from raw images of other people."""

    name: ClassVar[str] = "kid"
    unit: ClassVar[str] = "squared MMD"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Binkowski et al. 2018, arXiv 1801.01401, section 4; on another network than Inception"
    column: ClassVar[Column] = Column(
        title="KID",
        meaning="The kernel inception distance of released images from raw images of other people, read by an ImageNet "
        "network: 0 of raw images, on average, for any number of images. It compares with figures of the same network "
        "and side alone, and not with those of Inception.",
        group=FIDELITY,
        chance=RAW,
        order=10,
    )
    measured: ClassVar[_Measured] = _Measured(
        lambda a, b: kid(a.features, b.features, (a.people, b.people)), equal=False, least=-math.inf
    )


@dataclass(frozen=True)
class FID(_OfSets):
    """Fréchet inception distance of as many released as raw images."""

    name: ClassVar[str] = "fid"
    unit: ClassVar[str] = "squared distance"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Heusel et al. 2017, arXiv 1706.08500, equation 6; on another network than Inception"
    column: ClassVar[Column] = Column(
        title="FID",
        meaning="The Fréchet inception distance of released images from as many raw images of other people, read by an "
        "ImageNet network. It is biased upwards, the more the fewer images there are: read it beside the figure of raw "
        "images.",
        group=FIDELITY,
        chance=RAW,
        order=15,
    )
    measured: ClassVar[_Measured] = _Measured(_plain(fid), by_finding=False)


@dataclass(frozen=True)
class Precision(_OfSets):
    """Share of released images among the raw images of other people."""

    name: ClassVar[str] = "precision"
    unit: ClassVar[str] = "share of images"
    source: ClassVar[str] = "Kynkäänniemi et al. 2019, arXiv 1904.06991, equation 2, with k = 5"
    column: ClassVar[Column] = Column(
        title="Precision",
        meaning="The share of released images that lie among raw images of other people: nearer to one of them than "
        "its fifth nearest neighbour.",
        group=FIDELITY,
        digits=3,
        chance=RAW,
        order=20,
    )
    measured: ClassVar[_Measured] = _Measured(_plain(precision), most=1.0)


@dataclass(frozen=True)
class Recall(_OfSets):
    """Share of raw images of other people that released images reach."""

    name: ClassVar[str] = "recall"
    unit: ClassVar[str] = "share of images"
    source: ClassVar[str] = "Kynkäänniemi et al. 2019, arXiv 1904.06991, equation 2, with k = 5"
    column: ClassVar[Column] = Column(
        title="Recall",
        meaning="The share of raw images of other people that lie among the released images: how much of the variety "
        "of raw images the release reaches.",
        group=FIDELITY,
        digits=3,
        chance=RAW,
        order=25,
    )
    measured: ClassVar[_Measured] = _Measured(_plain(recall), most=1.0)


@dataclass(frozen=True)
class Density(_OfSets):
    """Raw neighbourhoods that a released image lies in, divided by their size."""

    name: ClassVar[str] = "density"
    unit: ClassVar[str] = "ratio"
    source: ClassVar[str] = "Naeem et al. 2020, arXiv 2002.09797, equation 4, with k = 5"
    column: ClassVar[Column] = Column(
        title="Density",
        meaning="In how many neighbourhoods of five raw images of other people a released image lies, divided by five: "
        "about 1 of raw images, and more if the release crowds where raw images are common.",
        group=FIDELITY,
        digits=3,
        chance=RAW,
        order=30,
    )
    measured: ClassVar[_Measured] = _Measured(_plain(density))


@dataclass(frozen=True)
class Coverage(_OfSets):
    """Share of other people's raw images with a released image near by."""

    name: ClassVar[str] = "coverage"
    unit: ClassVar[str] = "share of images"
    source: ClassVar[str] = "Naeem et al. 2020, arXiv 2002.09797, equation 5, with k = 5"
    column: ClassVar[Column] = Column(
        title="Coverage",
        meaning="The share of raw images of other people that have a released image nearer than their fifth nearest "
        "neighbour among themselves.",
        group=FIDELITY,
        digits=3,
        chance=RAW,
        order=35,
    )
    measured: ClassVar[_Measured] = _Measured(_plain(coverage), most=1.0)


@dataclass(frozen=True)
class PairLikeness(Metric[FidelityEvidence]):
    """Mean MS-SSIM of random pairs of released images: less is more diverse."""

    name: ClassVar[str] = "pair-ms-ssim"
    unit: ClassVar[str] = "MS-SSIM"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Odena, Olah and Shlens 2017, arXiv 1610.09585, section 4.2; Wang et al. 2003"
    column: ClassVar[Column] = Column(
        title="Pairs alike",
        meaning="The mean MS-SSIM of random pairs of released images: the higher it is, the less varied the release. "
        "Noise lowers it too: read it beside the figure of raw images.",
        group=FIDELITY,
        digits=3,
        chance="pairs of the raw images",
        order=40,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: FidelityEvidence) -> Score:
        """The mean over pairs; parts: pairs within a finding.

        Raises:
            NotApplicable: Either set has no two pairs.
        """
        both = evidence.released.alike, evidence.original.alike
        found = {
            name: _likeness(both[0][name], both[1][name])
            for name in ("", *evidence.findings)
            if all(name in each and len(each[name]) > 1 for each in both)
        }
        if "" not in found:
            raise NotApplicable("MS-SSIM of pairs needs two pairs of images of different people in both sets")
        return replace(found.pop(""), parts=found)


def _likeness(released: torch.Tensor, original: torch.Tensor) -> Score:
    ends = []
    for pairs in (released, original):
        error = float(pairs.std()) / math.sqrt(len(pairs))
        ends.append((float(pairs.mean()), float(scipy.special.stdtrit(len(pairs) - 1, 0.975)) * error))
    (value, width), (raw, apart) = ends
    return Score(
        value, value - width, value + width, len(released), null=raw, null_low=raw - apart, null_high=raw + apart,
        note=f"95 % t interval over {len(released)} pairs that share no image",
    )  # fmt: skip
