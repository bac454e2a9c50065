"""Float holes: last bits of released numbers rule out most raw rows.

Source: Mironov, On significance of the least significant bits for differential privacy (2012). Noise that is added in
floating point has holes: released = fl(z + b N) takes only some of the numbers nearby, and others for another raw row
z. If a released number is finer than the noise that would have to be there, its last bits are those of z.

A released number y can be reached from z if there is a float32 number N with fl(z + b N) = y. Here b is the stated
scale, and the product may be rounded or not (a fused operation does not round). The three numbers next to (y - z) / b
are tried. If the noise is not made as b N, any float32 noise e with fl(z + e) = y will do. Eve, the attacker, chooses
between the two by a release of her own: all of its rows must be possible. That is generous, for real samplers reach
fewer numbers. A candidate's score is minus the count of numbers of a released row that cannot be reached from it. If
rows and noise are whole steps of a grid, every number can be reached from every row, and all scores are equal: chance.

A scheme that states no noise is taken to add none: then only equal numbers can be reached. A code that cannot be read
to the last bit from a release (a decoded one) gives no such evidence. Neither do rows that are released in other units
without noise: no numbers are equal, and all scores are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias

import torch

from bench.randomness import Secret
from bench.types import Attack, Attacker, Mechanism, NotApplicable, PairScores, Release, View
from bench.validation import at_least

OWN_ROWS = 16
ROWS = 1024
Way: TypeAlias = "Callable[..., torch.Tensor]"


@dataclass(frozen=True)
class FloatHoles(Attack):
    """Tests by the last bits if a row can give released numbers.

    Args:
        elements: Numbers of a released row that are tested: those nearest to zero, which are finest.
    """

    name: ClassVar[str] = "float-holes"
    source: ClassVar[str] = "Mironov 2012, on the noise that a scheme states"
    knowledge: ClassVar[str] = "the raw rows, the release to the last bit, and where the scheme puts a row before noise"
    needs_public: ClassVar[bool] = False

    elements: int = 64

    def __post_init__(self) -> None:
        at_least(1, elements=self.elements)

    def fit(self, view: View, seed: int) -> FloatHolesAttacker:
        """Locate the candidates. Raises NotApplicable unless releases are the noisy code itself."""
        mechanism, candidates = view.scheme.mechanism(), view.candidates
        if mechanism is None:
            return FloatHolesAttacker(None, candidates.samples.flatten(1).double(), self.elements, equal)
        rows = candidates.take(torch.arange(min(OWN_ROWS, len(candidates)), device=candidates.samples.device))
        release = view.scheme.sample_key(Secret.of_seed(seed, "key")).release(rows)
        if not mechanism.exact or release.links is None:
            raise NotApplicable("the noisy code is not what is released, and its last bits are lost")
        own = mechanism.locate(rows)[release.links[:, 0]]
        shown = mechanism.observe(replace(release, links=None, primary=None))[release.links[:, 1]].double()
        for way in (partial(by_product, scale=mechanism.scale), by_sum):
            if bool(way(own, shown).all()):
                return FloatHolesAttacker(mechanism, mechanism.locate(candidates), self.elements, way)
        raise NotApplicable("what releases show of the noisy code is not exact to the last bit")


@dataclass(frozen=True, eq=False)
class FloatHolesAttacker(Attacker):
    """Mechanism (None: no noise), candidates' codes (n, d) float64, and the test."""

    mechanism: Mechanism | None
    located: torch.Tensor
    elements: int
    way: Way

    def score(self, sealed: Release) -> HoleScores:
        """Minus the unreachable numbers. Raises NotApplicable for rows of another shape."""
        observed = sealed.samples.flatten(1) if self.mechanism is None else self.mechanism.observe(sealed)
        if observed.shape[1] != self.located.shape[1]:
            raise NotApplicable(
                f"released rows have {observed.shape[1]} numbers where raw ones have {self.located.shape[1]}"
            )
        return HoleScores(self.located, observed.double(), self.elements, self.way)


class HoleScores(PairScores):
    """Scores (n, m) of codes (n, d) and observed (m, d), float64."""

    def __init__(self, located: torch.Tensor, observed: torch.Tensor, elements: int, way: Way) -> None:
        self.shape = len(located), len(observed)
        self._located, self._observed, self._way = located, observed, way
        self._chosen = torch.cat([part.abs().argsort(dim=1)[:, :elements] for part in torch.split(observed, ROWS)])

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """float32, whole numbers at most 0."""
        located, observed = self._located[rows], self._observed[cols]
        scores = located.new_zeros(len(located), len(observed), dtype=torch.float32)
        for place, chosen in enumerate(self._chosen[cols]):
            possible = self._way(located[:, chosen], observed[place, chosen], chosen)
            scores[:, place] = -(~possible).sum(dim=1)
        return scores


def equal(located: torch.Tensor, observed: torch.Tensor, chosen: torch.Tensor | None = None) -> torch.Tensor:
    """bool: no noise at all."""
    return located == observed


def by_sum(located: torch.Tensor, observed: torch.Tensor, chosen: torch.Tensor | None = None) -> torch.Tensor:
    """True if float32 noise e gives fl(located + e) = observed (float64).

    >>> by_sum(torch.tensor([0.1, 0.0]).double(), torch.tensor([2.0**-30]).double()).tolist()
    [False, True]
    """
    possible = torch.zeros_like(observed - located, dtype=torch.bool)
    for noise in _around((observed - located).float()):
        possible |= ((located + noise.double()).float() == observed) | (located.float() + noise == observed)
    return possible


def by_product(
    located: torch.Tensor, observed: torch.Tensor, chosen: torch.Tensor | None = None, *, scale: torch.Tensor
) -> torch.Tensor:
    """True if a float32 N gives fl(located + scale N) = observed."""
    scale = (scale if chosen is None else scale[chosen]).float()
    possible = torch.zeros_like(observed - located, dtype=torch.bool)
    for number in _around(((observed - located) / scale).float()):
        possible |= (located + scale.double() * number.double()).float() == observed
        possible |= located.float() + scale * number == observed
    return possible


def _around(nearest: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    up, down = (torch.nextafter(nearest, nearest.new_tensor(end)) for end in (torch.inf, -torch.inf))
    return nearest, up, down
