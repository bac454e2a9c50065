"""Re-clustering: Eve, the attacker, repeats the release and compares its rows.

Source: the attack that k-Same is built to bound (Newton, Sweeney and Malin 2005, "Preserving privacy by de-identifying
face images"): the clustering is public and deterministic, so that an attacker who holds the raw rows knows which of
them share a released form, and can only guess among those. It works on every method that gives a row the same form in
each release.

- A pair's score is minus the squared distance between Eve's own release of the raw row and the released row. Distances
  that rounding may make (`EXACT`) count as none: pairs at no distance are ranked by how few candidates share the form,
  and tie if equally many do. Among rows that share one form there is nothing to choose, so that guesswork on a whole
  release of n rows in clusters of k is (n k + 1) / (n + 1), and (k + 1) / 2, nearly, on a random half of its rows.
- A release may hold fewer rows than there are candidates (k-Same as published drops the last of its owner's rows, and
  every cluster may change with them). Means keep sums: the candidates' sum less that of the release is the sum of the
  missing rows, and non-negative least squares identify them. Eve puts her guess at the end of her rows and releases
  them. Rows whose form is there count as present, and she guesses among the others until none is missing.
- Rows that were identical beforehand are told apart by their order alone, which Eve does not know: she may take one for
  the other if they stand in different clusters.
- Rows and releases that do not fit in memory are read in blocks; equal rows are found by digests of 16
  bytes. Sums over all rows are then added up in float64 block by block: only guesses of missing rows could differ.
- Methods that draw fresh noise or keys give her own release another form, and her scores say little; whether two
  releases of hers agree is in the notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.eve.released_forms import (
    chosen_rows,
    forms_at,
    nearest_row,
    same_rows,
    sharing,
    squared_distances,
    summing_to,
)
from bench.randomness import Secret
from bench.rows.grouping import label_classes
from bench.rows.row_sets import originals
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, NotApplicable, PairScores, Release, View
from bench.validation import at_least

EXACT = 2.0**-36
"""Squared distance, in units of a released row's mean squared length, up to which two rows are one but for rounding."""


@dataclass(frozen=True)
class ReClustering(Attack):
    """Matches the release to Eve's own release of the candidates.

    Args:
        rounds: Releases that Eve makes, at most, to find out which candidates are missing if some are.
    """

    name: ClassVar[str] = "re-clustering"
    source: ClassVar[str] = "Newton et al. 2005 (k-Same): the clustering is public and deterministic"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme, under which she releases the raw rows herself"
    needs_public: ClassVar[bool] = False
    labelled: ClassVar[bool] = False

    rounds: int = 20

    def __post_init__(self) -> None:
        at_least(1, rounds=self.rounds)

    def fit(self, view: View, seed: int) -> ReClusteringAttacker:
        """Release candidates twice. Raises NotApplicable unless raw and released rows pair up."""
        every = torch.arange(len(view.candidates))
        first, second = (_own_release(view, every, derive(seed, "key", number)) for number in range(2))
        notes: dict[str, int | float | str] = {
            "own releases agree": "yes" if same_rows(first.forms, second.forms) else "no: fresh noise or keys",
        }
        candidates = None
        if self.labelled:
            candidates = view.candidates.labels if first.keeps_labels else None
            notes["labels"] = (
                "not given"
                if view.candidates.labels is None
                else "must agree"
                if first.keeps_labels
                else "encoded or withheld: not used"
            )
        return ReClusteringAttacker(view, seed, self.rounds, first, candidates, notes)


@dataclass(frozen=True, eq=False)
class OwnRelease:
    """Eve's own release of the candidates.

    Args:
        forms: (n, d) float32: the released form of each candidate; 0 if it was left out. `Rows` if the release
            comes as such.
        present: (n,) bool: whether the candidate has a form.
        keeps_labels: Whether labels are released, and as they are.
    """

    forms: torch.Tensor
    present: torch.Tensor
    keeps_labels: bool


def _own_release(view: View, order: torch.Tensor, seed: int) -> OwnRelease:
    """Of the candidates, handed over in that order."""
    order = order.to(view.candidates.samples.device)
    rows = view.candidates.take(order)
    release = view.scheme.sample_key(Secret.of_seed(seed)).release(rows)
    place = torch.full((len(rows),), -1, dtype=torch.int64, device=order.device)
    raw = originals(release.links, len(release), "the method").to(order.device)
    place[order[raw]] = torch.arange(len(release), device=order.device)
    same_labels = (
        rows.labels is not None
        and release.labels is not None
        and release.links is not None
        and same_rows(rows.labels[release.links[:, 0]], release.labels[release.links[:, 1]])
    )
    return OwnRelease(forms_at(release.samples.flatten(1), place), place >= 0, same_labels)


@dataclass(frozen=True, eq=False)
class ReClusteringAttacker(Attacker):
    """Eve's view, first own release, and labels (n, k) that must agree."""

    view: View
    seed: int
    rounds: int
    first: OwnRelease
    labels: torch.Tensor | None
    said: dict[str, int | float | str]

    def score(self, sealed: Release) -> FormScores:
        """Minus squared distances. Raises NotApplicable for rows of another shape."""
        released = sealed.samples.flatten(1)
        if released.shape[1] != self.first.forms.shape[1]:
            raise NotApplicable(
                f"rows of Eve's own release have {self.first.forms.shape[1]} numbers, those of this release "
                f"{released.shape[1]}"
            )
        n, exact = len(self.view.candidates), EXACT * float(released.double().square().sum(dim=1).mean())
        number, given = None, None
        if self.labels is not None and sealed.labels is not None:
            both = label_classes(torch.cat((self.labels, sealed.labels)), n + len(released))[0]
            number, given = both[:n], both[n:]
        own = self.first if len(released) >= n else self._completed(released, exact)
        alike = exact * sharing(own.forms, number).double() / n
        return FormScores(own, released.double(), exact, alike, number, given)

    def _completed(self, released: torch.Tensor, exact: float) -> OwnRelease:
        """Eve's releases with guessed rows appended, each candidate in its best form."""
        rows = self.view.candidates.samples.flatten(1).double()
        n, missing = len(rows), len(rows) - len(released)
        beyond = rows.sum(dim=0) - released.double().sum(dim=0) if rows.shape[1] == released.shape[1] else None
        best = torch.full((n,), torch.inf, dtype=torch.float64, device=rows.device)
        first = self.first.forms
        forms: torch.Tensor = torch.zeros((), dtype=first.dtype, device=first.device).expand(first.shape)
        present = torch.zeros_like(self.first.present)
        tried: set[tuple[int, ...]] = set()
        random = generator(derive(self.seed, "missing"))
        for number in range(self.rounds):
            left = (best > exact).nonzero().flatten()
            if len(left) <= missing:
                break
            guess = left[:missing] if beyond is None else summing_to(rows, left, beyond, missing)
            if tuple(guess.tolist()) in tried:
                guess = left[torch.randperm(len(left), generator=random)[:missing].to(left.device)].sort().values
            tried.add(tuple(guess.tolist()))
            others = torch.ones_like(present).index_fill_(0, guess, False).nonzero().flatten()
            own = _own_release(self.view, torch.cat((others, guess)), derive(self.seed, "key", number + 2))
            gap = torch.where(own.present, nearest_row(own.forms, released), torch.inf)
            better = gap < best
            forms, present = chosen_rows(better, own.forms, forms), present | better
            best = torch.minimum(best, gap)
        self.said["missing rows"] = missing
        self.said["rows whose form is there"] = int((best <= exact).sum())
        return OwnRelease(forms, present, self.first.keeps_labels)

    def notes(self) -> Mapping[str, int | float | str]:
        """Agreement of Eve's releases, use of labels, and the share she repeated."""
        return self.said


class FormScores(PairScores):
    """Minus the squared distance between Eve's form and the released row.

    Pairs with other labels come after all others, and candidates without a form after those.

    Args:
        own: Eve's release of the n candidates.
        released: (m, d) float64.
        exact: Squared distance up to which a form is there.
        alike: (n,) float64, at most `exact`: what a distance up to `exact` counts as.
        classes, given: (n,) and (m,) int64 classes of labels that have to agree; None if they need not.
    """

    def __init__(
        self,
        own: OwnRelease,
        released: torch.Tensor,
        exact: float,
        alike: torch.Tensor,
        classes: torch.Tensor | None,
        given: torch.Tensor | None,
    ) -> None:
        self.shape = (len(own.forms), len(released))
        self.own, self.released, self.exact, self.alike = own.forms.double(), released, exact, alike
        self.absent, self.classes, self.given = ~own.present, classes, given
        lengths = [part.square().sum(dim=1).max().item() for part in (self.own, released)]
        self.beyond = 4 * max(lengths) + 1  # (|a| + |b|)^2 <= 4 max(|a|, |b|)^2

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Scores (rows, cols), float64."""
        apart = squared_distances(self.own, self.released, rows, cols)
        apart = torch.where(apart <= self.exact, self.alike[rows, None], apart)
        if self.classes is not None and self.given is not None:
            apart += self.beyond * (self.classes[rows, None] != self.given[cols])
        return -apart.masked_fill(self.absent[rows, None], 2 * self.beyond)


@dataclass(frozen=True)
class LabelLinkage(ReClustering):
    """Re-clustering among the candidates with the released row's labels.

    k-Same as its reference code runs it clusters rows across classes while every row keeps its own label, so that a
    cluster's rows can be told apart by them: a lone positive in a mixed cluster is unique (Sweeney 2002, linking by
    attributes that were left). Clusters within a class give nothing more than re-clustering.

    Pairs whose labels differ are ruled out; a label is the whole row of them, an unknown label being a value of its
    own. Rows that share their form with fewer candidates of the same label come first. Eve is given labels only if the
    method's release depends on them. Without labels (on the reference methods too), or if her own release shows that
    they are encoded or withheld, this is re-clustering; the notes say so.

    Args:
        rounds: As in `ReClustering`.
    """

    name: ClassVar[str] = "label-linkage"
    source: ClassVar[str] = "Sweeney 2002 on k-Same with the labels that its reference code leaves beside every row"
    knowledge: ClassVar[str] = "as re-clustering, with raw and released labels where the release depends on labels"
    labelled: ClassVar[bool] = True
