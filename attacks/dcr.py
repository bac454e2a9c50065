"""Distance to the closest record: candidates near released rows are likely members.

Source: DCR, the usual first look at synthetic tables (Park et al. 2018, "Data synthesis based on generative adversarial
networks", section 6), as a membership attack: Chen et al. 2020 (GAN-Leaks), equation 3, without their calibration.

Differences:
- The usual figure compares distances of training rows with those of a hold-out. Here both stand among the candidates,
  and the harness compares them. Its AUC covers all thresholds; a share of "closer to the training rows" covers one.
- Distances are Euclidean in the units of the rows. Scaled by the control rows (`scaled`) they found fewer members of
  k-Same, which clusters in those units: AUC .59-.67 in place of .61-.72 (k = 5; pneumonia X-rays in an eigenspace and
  digits, three seeds each). Columns in different units need it nevertheless.
- `labels` looks only at released rows of the candidate's own class: .65-.72 in place of .61-.67 on the X-rays above.
  Rows with the same labels are of one class, a withheld label being a value like any other
  (`bench.rows.grouping`). Candidates of a class that was not released are compared with all rows. So are
  all candidates if either side has no labels.
- If a generator is published, many more rows are drawn from it than were released, and the nearest of all counts.

Limits: a release in other units than the raw rows (1 - x, 1000 x + 5000, permuted columns) blinds it although nothing
is hidden, and so does a single column of noise a thousand times as large as the others (AUC .45 to .52 and .50 in place
of .93, on digits under noise of .25). The other attacks on membership compare rows in the same place, and are blind to
other units as well; a row far beyond all others, copies of rows and a constant column change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.rows.row_sets import drawn
from bench.statistics.nearest_rows import in_one_space, nearest_in_class, standardise
from bench.types import Attack, Attacker, Parameter, Release, View
from bench.validation import at_least


@dataclass(frozen=True)
class DCR(Attack):
    """Scores a candidate by how near the closest released row is.

    Args:
        labels: Whether only released rows of the candidate's class count.
        scaled: Whether columns are divided by their deviation among the control rows (but for those without any).
        draws: Rows drawn from a published generator, as a multiple of the released rows; 0 draws none.
    """

    name: ClassVar[str] = "dcr"
    source: ClassVar[str] = "distance to the closest record (Park et al. 2018; Chen et al. 2020, equation 3)"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    knowledge: ClassVar[str] = "the candidates, the release and the control rows; a generator where one is published"
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"draws": 2}}

    labels: bool = True
    scaled: bool = False
    draws: int = 10

    def __post_init__(self) -> None:
        at_least(0, draws=self.draws)

    def fit(self, view: View, seed: int) -> DCRAttacker:
        """Nothing is trained."""
        return DCRAttacker(self, view, seed)


@dataclass(frozen=True, eq=False)
class DCRAttacker(Attacker):
    """The candidates, and the control rows whose scale is used."""

    attack: DCR
    view: View
    seed: int

    def membership(self, sealed: Release) -> torch.Tensor:
        """Minus the nearest distance (n,) float64. Raises NotApplicable for other shapes."""
        release = drawn(sealed, self.attack.draws, self.seed)
        candidates = self.view.candidates.samples
        if self.attack.scaled:
            rows, released = (standardise(self.view.control.samples, each)[1] for each in (candidates, release.samples))
        else:
            rows, released = in_one_space(candidates, release.samples)
        labels = self.view.candidates.labels if self.attack.labels else None
        return -nearest_in_class(rows, released, labels, release.labels)
