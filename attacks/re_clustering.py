"""Re-clustering: Eve, the attacker, releases her candidates herself, and looks for her released rows in the release.

Source: the attack that k-Same is built to bound (Newton, Sweeney and Malin 2005, "Preserving privacy by de-identifying
face images"): the clustering is public and deterministic, so that an attacker who holds the raw rows knows which of
them share a released form, and can only guess among those. It works on every method that releases a row in the same
form again.

- A pair's score is minus the squared distance between Eve's own release of the raw row and the released row. Distances
  that rounding may make (`EXACT`) count as none: pairs at no distance are ranked by how few candidates share the form,
  and tie where equally many do. Among rows that share one form there is nothing to choose, so that guesswork on a whole
  release of n rows in clusters of k is (n k + 1) / (n + 1), and (k + 1) / 2, nearly, on a random half of its rows.
- A release may hold fewer rows than there are candidates (k-Same as published drops the last of its owner's rows, and
  every cluster may change with them). Means keep sums: what the candidates sum to beyond the release is the sum of the
  rows that are missing, and non-negative least squares tell which those are. Eve puts her guess at the end of her rows,
  releases them, takes rows whose form is there for present, and guesses among the others until nothing is missing.
- Rows that were identical beforehand are told apart by their order alone, which Eve does not know: she may take one for
  the other where they stand in different clusters.
- Methods that draw fresh noise or keys give her own release another form, and her scores say little; whether two
  releases of hers agree is in the notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from scipy.optimize import nnls
from torch import Tensor

from bench.pair_distances import pair_distances
from bench.randomness import Secret
from bench.rows.label_classes import label_classes
from bench.rows.originals import in_order
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, NotApplicable, PairScores, Release, View
from bench.validation import at_least

EXACT = 2.0**-36
"""Squared distance, in units of a released row's mean squared length, up to which two rows are one but for rounding."""
BLOCK = 1024
EQUATIONS = 512


@dataclass(frozen=True)
class ReClustering(Attack):
    """Matches the release to Eve's own release of the candidates.

    Args:
        rounds: Releases that Eve makes, at most, to find out which candidates are missing where some are.
    """

    name: ClassVar[str] = "re-clustering"
    source: ClassVar[str] = "Newton et al. 2005 (k-Same): the clustering is public and deterministic"
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme, under which she releases the raw rows herself"
    needs_public: ClassVar[bool] = False
    labelled: ClassVar[bool] = False

    rounds: int = 20

    def __post_init__(self) -> None:
        at_least(1, rounds=self.rounds)

    def fit(self, view: View, seed: int) -> ReClusteringAttacker:
        """Release the candidates twice. Raises NotApplicable for releases without one released row a raw row."""
        every = torch.arange(len(view.candidates))
        first, second = (_own_release(view, every, derive(seed, "key", number)) for number in range(2))
        notes: dict[str, int | float | str] = {
            "own releases agree": "yes" if _same(first.forms, second.forms) else "no: fresh noise or keys",
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
        forms: (n, d) float32: the released form of each candidate; 0 where it was left out.
        present: (n,) bool: whether the candidate has a form.
        keeps_labels: Whether labels are released, and as they are.
    """

    forms: Tensor
    present: Tensor
    keeps_labels: bool


def _own_release(view: View, order: Tensor, seed: int) -> OwnRelease:
    """Of the candidates, handed over in that order."""
    order = order.to(view.candidates.samples.device)
    rows = view.candidates.take(order)
    release = view.scheme.sample_key(Secret.of_seed(seed)).release(rows)
    made, found = in_order(release, release.links, rows, "the method")
    forms = made.samples.flatten(1).new_zeros(len(rows), made.samples[0].numel())
    forms[order[found]] = made.samples.flatten(1)
    present = torch.zeros(len(rows), dtype=torch.bool, device=order.device)
    present[order[found]] = True
    kept = (
        rows.labels is not None
        and release.labels is not None
        and release.links is not None
        and _same(rows.labels[release.links[:, 0]], release.labels[release.links[:, 1]])
    )
    return OwnRelease(forms, present, kept)


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether rows (n, k) are equal, with NaN as a value."""
    return a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())


@dataclass(frozen=True, eq=False)
class ReClusteringAttacker(Attacker):
    """Eve's view, her first own release, and the labels (n, k) that have to agree; None where they need not."""

    view: View
    seed: int
    rounds: int
    first: OwnRelease
    labels: Tensor | None
    said: dict[str, int | float | str]

    def score(self, sealed: Release) -> FormScores:
        """Minus squared distances. Raises NotApplicable where the release has rows of another shape than Eve's own."""
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
        alike = exact * _sharing(own.forms, number) / n
        return FormScores(own, released.double(), exact, alike, number, given)

    def _completed(self, released: Tensor, exact: float) -> OwnRelease:
        """Eve's releases with her guesses of the missing rows at their end, each candidate in its best form."""
        rows = self.view.candidates.samples.flatten(1).double()
        n, missing = len(rows), len(rows) - len(released)
        beyond = rows.sum(dim=0) - released.double().sum(dim=0) if rows.shape[1] == released.shape[1] else None
        best = torch.full((n,), torch.inf, dtype=torch.float64, device=rows.device)
        forms, present = torch.zeros_like(self.first.forms), torch.zeros_like(self.first.present)
        tried: set[tuple[int, ...]] = set()
        random = generator(derive(self.seed, "missing"))
        for number in range(self.rounds):
            left = (best > exact).nonzero().flatten()
            if len(left) <= missing:
                break
            guess = left[_summing_to(rows[left], beyond, missing)] if beyond is not None else left[:missing]
            if tuple(guess.tolist()) in tried:
                guess = left[torch.randperm(len(left), generator=random)[:missing].to(left.device)].sort().values
            tried.add(tuple(guess.tolist()))
            kept = torch.ones_like(present).index_fill_(0, guess, False).nonzero().flatten()
            own = _own_release(self.view, torch.cat((kept, guess)), derive(self.seed, "key", number + 2))
            gap = torch.where(own.present, _nearest(own.forms, released), torch.inf)
            better = gap < best
            forms, present = torch.where(better[:, None], own.forms, forms), present | better
            best = torch.minimum(best, gap)
        self.said["missing rows"] = missing
        self.said["rows whose form is there"] = int((best <= exact).sum())
        return OwnRelease(forms, present, self.first.keeps_labels)

    def notes(self) -> Mapping[str, int | float | str]:
        """Whether Eve's own releases agree, what labels do, and how much of the last release she made again."""
        return self.said


def _summing_to(rows: Tensor, total: Tensor, many: int) -> Tensor:
    """The `many` of rows (n, d) float64 that sum to `total` (d,), as far as non-negative weights tell; ascending."""
    mean = rows.mean(dim=0)
    equations, goal = (rows - mean).T, total - many * mean
    if len(equations) > EQUATIONS:  # sums of equations hold too
        mixing = torch.randn(EQUATIONS, len(equations), generator=generator(0), dtype=torch.float64).to(rows.device)
        equations, goal = mixing @ equations, mixing @ goal
    size = equations.square().sum(dim=0).mean().sqrt()
    equations = torch.cat((equations, size.expand(1, len(rows))))  # as many as are missing
    goal = torch.cat((goal, (size * many)[None]))
    weights, _ = nnls(equations.cpu().numpy(), goal.cpu().numpy())
    return torch.from_numpy(weights).argsort(descending=True, stable=True)[:many].sort().values.to(rows.device)


def _nearest(forms: Tensor, released: Tensor) -> Tensor:
    """(n,) float64: squared distance of each form (n, d) to the nearest released row."""
    distinct, number = torch.unique(forms, dim=0, return_inverse=True)
    others = torch.unique(released, dim=0)
    return torch.cat([pair_distances(part, others, 2).amin(dim=1) for part in distinct.split(BLOCK)])[number]


def _sharing(forms: Tensor, labels: Tensor | None) -> Tensor:
    """(n,) how many candidates share the form, and the class of labels (n,) where there is one."""
    number = torch.unique(forms, dim=0, return_inverse=True)[1]
    if labels is not None:
        number = torch.unique(torch.stack((number, labels), dim=1), dim=0, return_inverse=True)[1]
    return torch.bincount(number)[number]


class FormScores(PairScores):
    """Minus the squared distance between Eve's own form of the raw row and the released row.

    Pairs with other labels come after all others, and candidates without a form after those.

    Args:
        own: Eve's release of the n candidates.
        released: (m, d) float64.
        exact: Squared distance up to which a form is there.
        alike: (n,) float64, at most `exact`: what a distance up to `exact` counts as.
        classes, given: (n,) and (m,) int64 classes of labels that have to agree; None where they need not.
    """

    def __init__(
        self,
        own: OwnRelease,
        released: Tensor,
        exact: float,
        alike: Tensor,
        classes: Tensor | None,
        given: Tensor | None,
    ) -> None:
        self.shape = (len(own.forms), len(released))
        self.own, self.released, self.exact, self.alike = own.forms.double(), released, exact, alike
        self.absent, self.classes, self.given = ~own.present, classes, given
        lengths = [part.square().sum(dim=1).max().item() for part in (self.own, released)]
        self.beyond = 4 * max(lengths) + 1  # (|a| + |b|)^2 <= 4 max(|a|, |b|)^2

    def block(self, rows: slice, cols: slice) -> Tensor:
        """Scores (rows, cols), float64."""
        apart = pair_distances(self.own[rows], self.released[cols], 2)
        apart = torch.where(apart <= self.exact, self.alike[rows, None], apart)
        if self.classes is not None and self.given is not None:
            apart += self.beyond * (self.classes[rows, None] != self.given[cols])
        return -apart.masked_fill(self.absent[rows, None], 2 * self.beyond)
