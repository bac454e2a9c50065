"""Distance to the closest record: a candidate near a released row was probably among the rows that it was made from.

Source: DCR, the usual first look at synthetic tables (Park et al. 2018, "Data synthesis based on generative adversarial
networks", section 6), as a membership attack: Chen et al. 2020 (GAN-Leaks), equation 3, without their calibration.

Differences:
- The usual figure compares distances of training rows with those of a hold-out. Here both stand among the candidates,
  and the harness compares them: its AUC is what a share of "closer to the training rows" says at one threshold only.
- Distances are Euclidean in the units of the rows. Scaled by the control rows (`scaled`) they found fewer members of
  k-Same, which clusters in those units: AUC .59-.67 in place of .61-.72 (k = 5; pneumonia X-rays in an eigenspace and
  digits, three seeds each). Columns in different units want it all the same.
- `labels` looks only at released rows of the candidate's own class: .65-.72 in place of .61-.67 on the X-rays above.
  Candidates of which a label is unknown or withheld, and those of a class that was not released, are compared with all
  rows; so is everybody where candidates or released rows have no labels.
- Where a generator is published, many more rows are drawn from it than were released, and the nearest of all counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from bench.label_classes import label_classes
from bench.progress import report
from bench.seeds import derive
from bench.types import Attack, Attacker, NotApplicable, Parameter, Release, View
from metrics.distances import standardise
from metrics.nearest_neighbour_distance import nearest


@dataclass(frozen=True)
class DCR(Attack):
    """Scores a candidate by how near the closest released row is.

    Args:
        labels: Whether only released rows of the candidate's class count, where that is known.
        scaled: Whether columns are divided by their deviation among the control rows (but for those without any).
        draws: How many times as many rows as were released are drawn from a published generator; 0 draws none.
    """

    name: ClassVar[str] = "dcr"
    source: ClassVar[str] = "distance to the closest record (Park et al. 2018; Chen et al. 2020, equation 3)"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    knowledge: ClassVar[str] = "the candidates, the release and the control rows; a generator where one is published"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"draws": 2}}

    labels: bool = True
    scaled: bool = False
    draws: int = 20

    def __post_init__(self) -> None:
        if self.draws < 0:
            raise ValueError(f"draws must be at least 0, got {self.draws}")

    def fit(self, view: View, seed: int) -> DCRAttacker:
        """Nothing is trained."""
        return DCRAttacker(self, view, seed)


@dataclass(frozen=True, eq=False)
class DCRAttacker(Attacker):
    """The candidates, and the control rows whose scale is used."""

    attack: DCR
    view: View
    seed: int

    def membership(self, sealed: Release) -> Tensor:
        """Minus the distance to the nearest released or generated row, (n,) float64.

        Raises:
            NotApplicable: Released rows have another shape than candidates.
        """
        rows, labels = self._read(self.view.candidates.samples), self.view.candidates.labels
        found = torch.full((len(rows),), torch.inf, dtype=torch.float64)
        for release in self._releases(sealed):
            released = self._read(release.samples)
            if self.attack.labels and labels is not None and release.labels is not None:
                distances = _within_classes(rows, labels, released, release.labels)
            else:
                distances = nearest(rows, released)
            found = torch.minimum(found, distances)
        return -found

    def _read(self, samples: Tensor) -> Tensor:
        """Rows as vectors, float64."""
        control = self.view.control.samples
        if self.attack.scaled:
            return standardise(control, samples)[1]
        if samples.shape[1:] != control.shape[1:]:
            raise NotApplicable(
                f"distances need one space: raw rows have shape {tuple(control.shape[1:])}, released rows "
                f"{tuple(samples.shape[1:])}"
            )
        return samples.flatten(1).double()

    def _releases(self, sealed: Release) -> Iterator[Release]:
        """The release, then as many rows again from its generator, over and over."""
        yield sealed
        for number in range(self.attack.draws if sealed.generator is not None else 0):
            assert sealed.generator is not None
            yield sealed.generator.sample(len(sealed), derive(self.seed, "draw", number))
            report("dcr, draw", number + 1, self.attack.draws)


def _within_classes(rows: Tensor, labels: Tensor, released: Tensor, of_released: Tensor) -> Tensor:
    """Distance of each row to the nearest released row of its class; to any where it is unknown or was not released."""
    if labels.shape[1] != of_released.shape[1]:
        raise NotApplicable(
            f"classes need the same findings: candidates have {labels.shape[1]} labels, released rows "
            f"{of_released.shape[1]}; use labels=false"
        )
    number, classes = label_classes(torch.cat((labels, of_released)), len(rows) + len(released))
    own, theirs = number[: len(rows)], number[len(rows) :]
    own = torch.where(labels.isnan().any(dim=1) | ~torch.isin(own, theirs), len(classes), own)
    found = torch.empty(len(rows), dtype=torch.float64)
    for each in torch.unique(own).tolist():
        others = released if each == len(classes) else released[theirs == each]
        found[(own == each).cpu()] = nearest(rows[own == each], others)
    return found
