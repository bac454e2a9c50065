"""GAN-Leaks: a generator makes rows nearer to candidates that it learned from.

Source: Chen, Yu, Zhang and Fritz 2020, "GAN-Leaks: a taxonomy of membership inference attacks against generative
models": the full black-box attack (section 4.3, the distance to the nearest generated row) with attack calibration
(section 4.6), which takes off the distance to the rows of a reference generator. That removes the difficulty of
the candidate for any generator.

Differences:
- The reference generator is the very scheme under a key that Eve, the attacker, draws, run on rows that she knows to be
  outside the release: her control rows, and the public rows if they are of the same collection. It learned from
  other rows than the owner's, and from another number of them.
- Distances are Euclidean after every column is scaled by those rows. The paper adds a perceptual distance for photos.
- A release without a generator, and references to it, give no more rows than were released.
- Labels are not looked at: on chest X-rays, counting only generated rows of the candidate's class changed the AUC by
  less than .005 (k-Same with k of 2, 5 and 10, CVAE).

Limits: columns are divided by their deviation outside the release, so that noise in columns that hardly vary there (the
border of an image) drowns all others: digits under noise of .25 gave an AUC of .48 (.91 without such columns; `dcr`:
.93). As `dcr`, it is blind to a release in other units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.eve.own_releases import own_rows
from bench.progress import report
from bench.randomness import Secret
from bench.rows.row_sets import drawn
from bench.seeds import derive
from bench.statistics.nearest_rows import nearest, standardise
from bench.types import Attack, Attacker, Dataset, Parameter, Release, View
from bench.validation import at_least


@dataclass(frozen=True)
class GANLeaks(Attack):
    """Minus distance to generated rows, calibrated by a generator that Eve trains.

    Args:
        calibrate: Take the distance to the reference generator's rows off.
        draws: Rows drawn from a published generator, as a multiple of the released rows; 0 draws none.
        references: Reference releases, each under a key of its own, over which distances are averaged.
    """

    name: ClassVar[str] = "gan-leaks"
    source: ClassVar[str] = "Chen et al. 2020, GAN-Leaks: full black-box attack with calibration"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    knowledge: ClassVar[str] = (
        "the candidates and the release (a generator where one is published); to calibrate, the scheme, which she runs "
        "on her control rows and on public ones of the same collection"
    )
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"draws": 1, "references": 1}}

    calibrate: bool = True
    draws: int = 10
    references: int = 4

    def __post_init__(self) -> None:
        at_least(0, draws=self.draws)
        at_least(1, references=self.references)

    @property
    def makes_releases(self) -> bool:
        """True if it calibrates."""
        return self.calibrate

    def fit(self, view: View, seed: int) -> GANLeaksAttacker:
        """Run the scheme on Eve's rows. Raises NotApplicable if it cannot."""
        own = own_rows(view)
        bare = GANLeaksAttacker(self, view.candidates, own, (), seed)
        distances = []
        for number in range(self.references if self.calibrate else 0):
            release = view.scheme.sample_key(Secret.of_seed(seed, "reference", number)).release(own)
            distances.append(bare.distance(release, derive(seed, number)))
            report("gan-leaks, reference", number + 1, self.references)
        return replace(bare, reached=tuple(distances))


@dataclass(frozen=True, eq=False)
class GANLeaksAttacker(Attacker):
    """The candidates, Eve's own rows, and distances to each reference release, (n,)."""

    attack: GANLeaks
    candidates: Dataset
    own: Dataset
    reached: tuple[torch.Tensor, ...]
    seed: int

    def membership(self, sealed: Release) -> torch.Tensor:
        """Minus (calibrated) distance (n,) float64. Raises NotApplicable for another shape."""
        distance = self.distance(sealed, self.seed)
        if not self.reached:
            return -distance
        # The mean of differences, so that equal distances leave no rounding behind.
        return torch.stack([reached - distance for reached in self.reached]).mean(dim=0)

    def distance(self, sealed: Release, seed: int) -> torch.Tensor:
        """Distance (n,) to the nearest row that is released or generated."""
        _, rows = standardise(self.own.samples, self.candidates.samples)
        _, released = standardise(self.own.samples, drawn(sealed, self.attack.draws, seed).samples)
        return nearest(rows, released)
