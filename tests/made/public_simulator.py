"""Attacks that learn from releases of public rows under keys of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.eve.own_releases import own_rows
from bench.pairs.score_matrices import TableScores
from bench.randomness import Secret
from bench.types import Attack, Attacker, PairScores, Release, View

LEAST = 0.5


def leverages(rows: torch.Tensor) -> torch.Tensor:
    """Leverage (n,) of each row, which a linear map of all rows keeps."""
    rows = rows.flatten(1).double()
    left, sizes, _ = torch.linalg.svd(rows, full_matrices=False)
    found: torch.Tensor = left[:, sizes > 1e-6 * sizes[0]].square().sum(dim=1)
    return found


@dataclass(frozen=True)
class PublicSimulator(Attack):
    """Matches rows by leverage if releases of public rows keep it."""

    name: ClassVar[str] = "public-simulator"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "public rows and the scheme"

    def fit(self, view: View, seed: int) -> Attacker:
        release = view.scheme.sample_key(Secret.of_seed(seed, "key")).release(view.public)
        assert release.links is not None
        pairs = torch.stack((leverages(view.public.samples)[release.links[:, 0]],
                             leverages(release.samples)[release.links[:, 1]]))  # fmt: skip
        kept = float(torch.corrcoef(pairs)[0, 1])
        return LeverageAttacker(leverages(view.candidates.samples), kept)


@dataclass(frozen=True)
class LeverageAttacker(Attacker):
    """Leverages (n,) of candidates, and their correlation over a release."""

    raw: torch.Tensor
    kept: float

    def score(self, sealed: Release) -> PairScores:
        released = leverages(sealed.samples)
        scores = -(self.raw[:, None] - released).abs()
        return TableScores(scores if self.kept > LEAST else torch.zeros_like(scores))

    def notes(self) -> Mapping[str, int | float | str]:
        return {"kept": self.kept}


@dataclass(frozen=True)
class PublicMembers(Attack):
    """Takes released candidates for members if a release of Eve's rows shows them."""

    name: ClassVar[str] = "public-members"
    source: ClassVar[str] = "a test"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    knowledge: ClassVar[str] = "control and public rows, and the scheme"

    def fit(self, view: View, seed: int) -> Attacker:
        own = own_rows(view)
        release = view.scheme.sample_key(Secret.of_seed(seed, "key")).release(own)
        shown = float(_distances(own.samples, release.samples).mean()) < 1e-6
        return DistanceAttacker(view.candidates.samples, shown)


@dataclass(frozen=True)
class DistanceAttacker(Attacker):
    """Candidates, and whether releases show their rows."""

    raw: torch.Tensor
    shown: bool

    def membership(self, sealed: Release) -> torch.Tensor:
        distances = _distances(self.raw, sealed.samples)
        return -distances if self.shown else torch.zeros_like(distances)

    def notes(self) -> Mapping[str, int | float | str]:
        return {"shown": str(self.shown)}


def _distances(rows: torch.Tensor, released: torch.Tensor) -> torch.Tensor:
    """Squared distance (n,) to the nearest released row."""
    return (rows.flatten(1).double()[:, None] - released.flatten(1).double()).square().sum(dim=2).amin(dim=1)
