"""InstaHide: secret mixtures of private rows under random masks of signs.

Source: Huang, Song, Li and Arora, InstaHide (ICML 2020), in its inside-dataset form, and the authors' public training
code; k = 3 as in the Syfer paper (section 5): "mixes each private image with 2 other private images and then randomly
flips each pixel sign".

As in the authors' code: weights are |N(0, 1)| over their sum, redrawn while the largest exceeds 0.65; each further
constituent comes from a random permutation of the rows; the sign is drawn anew for each image, pixel and channel; rows
are standardised by channel first (numbers that are all positive would give the mask away); mixed labels are the
weighted sum of the constituents' labels.

Differences:
- A release happens once. The authors' training encrypts the whole set anew in every epoch, which hands out hundreds of
  mixtures of each image; here each row is the first constituent of one mixture, a constituent of k in all, and a key
  mixes the same rows in the same way whenever it is asked.
- The k constituents of a row are distinct. Independent permutations now and then mix a row with itself; these places
  are mended by swaps. Up to 2 k - 2 rows leave few ways to do so: their permutations are shifts of a random circle.
- Rows are standardised by the public set's mean and deviation (a table's by column), not by those of the private rows.
- The paper knows every label. Here a mixed label is the weighted mean over the constituents whose label is known, and
  NaN if none is.
- New images reach Bob, who trains a model on the release, without partners, whose labels would show in his predictions;
  see `query`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch

from bench.owner.secret_key import SecretKey, SecretScheme
from bench.randomness import Stream
from bench.types import Dataset, Method, NotApplicable, Release, State, by_blocks
from bench.validation import at_least, one_of

FEWEST_KEPT = 0.01  # of the weights drawn: redrawing the others then ends soon
TRIAL_DRAWS = 10_000
ROWS = 256  # a multiple of 8, for signs come as bits


@dataclass(frozen=True)
class InstaHide(Method):
    """Mixes k private rows and flips signs at random.

    Args:
        k: Private rows in each released row.
        largest: The largest weight that a constituent may have.
        query: How new rows reach Bob's model, each on its own: "plain" as the authors' code evaluates, standardised and
            not hidden; "signed" under a fresh random mask as in the release, which mostly costs some utility.
    """

    name: ClassVar[str] = "instahide"
    source: ClassVar[str] = "Huang et al. 2020, inside-dataset, and the authors' code; k as in Yala et al. 2022 (Syfer)"
    encodes_labels: ClassVar[bool] = True

    k: int = 3
    largest: float = 0.65
    query: Literal["plain", "signed"] = "plain"

    def __post_init__(self) -> None:
        at_least(2, k=self.k)
        one_of(("plain", "signed"), query=self.query)
        if not 0 < self.largest <= 1:
            raise ValueError(f"largest must be above 0 and at most 1, got {self.largest}")
        trial = abs(np.random.default_rng(0).standard_normal((TRIAL_DRAWS, self.k)))
        share = float((trial.max(axis=1) <= self.largest * trial.sum(axis=1)).mean())
        if share < FEWEST_KEPT:
            raise ValueError(
                f"largest must leave at least {FEWEST_KEPT:.0%} of the weights that are drawn, and {self.largest} "
                f"leaves {share:.2%} for k {self.k} (the largest of k weights is never below 1/k): raise it"
            )

    def fit(self, public: Dataset, seed: int) -> InstaHideScheme:
        """Mean and deviation of public rows. Raises NotApplicable if constant."""
        samples = public.samples
        axes = (0, 2, 3) if samples.ndim == 4 else (0,)
        std, mean = torch.std_mean(samples.double(), dim=axes, correction=0, keepdim=True)
        if not bool((std > 0).any()):
            raise NotApplicable(f"instahide standardises by the public rows: those of {public.name} are all the same")
        return self.load({"mean": mean[0], "std": torch.where(std > 0, std, 1)[0]})

    def load(self, state: State) -> InstaHideScheme:
        """The scheme that `InstaHideScheme.state` described."""
        return InstaHideScheme(self, dict(state))


@dataclass(frozen=True, eq=False)
class InstaHideKey(SecretKey):
    """A secret; with the rows it decides fresh partners, weights and signs."""

    scheme: InstaHideScheme

    def release(self, private: Dataset) -> Release:
        """Row i mixed with others; soft labels. Raises ValueError below k rows."""
        method, samples = self.scheme.method, private.samples
        secret = self.secret.derive("release").bound_to(samples)
        mixture = mix(len(samples), method.k, method.largest, secret.stream("mixture"))
        rows, weights = mixture.rows.to(samples.device), mixture.weights.to(samples)
        every, signs = torch.arange(len(samples), device=samples.device), secret.stream("signs")

        def mixed(index: torch.Tensor) -> torch.Tensor:
            parts = (self.scheme.standardise(samples[one]) for one in rows[index].T)
            return _flip(_weighted(parts, weights[index]), signs)

        released = every.repeat_interleave(method.k)
        first = torch.arange(method.k, device=samples.device).repeat(len(samples)) == 0
        return Release(
            samples=by_blocks(every, mixed, ROWS, like=samples, draws=True),
            labels=None if private.labels is None else soft_labels(private.labels, rows, weights),
            links=torch.stack((rows.flatten(), released), dim=1),
            primary=first,
        )

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Standardised rows, unmixed; under fresh signs if `query` is "signed"."""
        if self.scheme.method.query == "plain":
            return by_blocks(samples, self.scheme.standardise, ROWS)
        signs = self.secret.derive("query").bound_to(samples).stream("signs")
        return by_blocks(samples, lambda part: _flip(self.scheme.standardise(part), signs), ROWS, draws=True)


@dataclass(frozen=True, eq=False)
class InstaHideScheme(SecretScheme):
    """`learned`: the public `mean` and `std`, float64, shaped to broadcast over rows."""

    key = InstaHideKey
    purpose = "instahide"

    method: InstaHide
    learned: State

    def state(self) -> State:
        """The public mean and deviation."""
        return self.learned

    def standardise(self, samples: torch.Tensor) -> torch.Tensor:
        """Publicly standardised rows (n, ...) float32. Raises ValueError for other shapes."""
        mean, std = (self.learned[part].to(samples) for part in ("mean", "std"))
        if samples.ndim != mean.ndim + 1 or samples.shape[1] != len(mean):
            kind = "images (n, {}, h, w)" if mean.ndim == 3 else "tables (n, {})"
            raise ValueError(f"this key mixes {kind.format(len(mean))}, got shape {tuple(samples.shape)}")
        return (samples - mean) / std


@dataclass(frozen=True, eq=False)
class Mixture:
    """Who is mixed with whom.

    Args:
        rows: (n, k) int64 raw rows, distinct within a row; the first column counts up. Each column is a permutation.
        weights: (n, k) float32, positive, each row with sum 1.
    """

    rows: torch.Tensor
    weights: torch.Tensor


def mix(n: int, k: int, largest: float, stream: Stream) -> Mixture:
    """A random mixture of n rows. Raises NotApplicable below k rows."""
    if n < k:
        raise NotApplicable(
            f"instahide mixes {k} different rows: expected at least {k}, got {n}; lower k or release more"
        )
    return Mixture(_partners(n, k, stream), _weights(n, k, largest, stream))


def soft_labels(labels: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weighted means (n, findings) of known labels; NaN without any.

    The weights are those of the constituents.

    Args:
        labels: (n, findings) float32, NaN if unknown.
        rows, weights: As in `Mixture`.

    >>> soft_labels(torch.tensor([[1.0], [0.0], [float("nan")]]), torch.tensor([[0, 1, 2]]), torch.full((1, 3), 1 / 3))
    tensor([[0.5000]])
    """
    known = (~labels.isnan()).to(weights.dtype)
    weight, total = (_weighted((values[row] for row in rows.T), weights) for values in (known, labels.nan_to_num()))
    return torch.where(weight > 0, total / weight, float("nan"))


def _partners(n: int, k: int, stream: Stream) -> torch.Tensor:
    if n <= 2 * (k - 1):
        circle = stream.permutation(n)
        steps = 1 + stream.permutation(n - 1)[: k - 1]
        shifts = [circle[(circle.argsort() + int(step)) % n] for step in steps]
        return torch.stack((torch.arange(n), *shifts), dim=1)
    rows = torch.arange(n)[:, None]
    for _ in range(k - 1):
        rows = torch.cat((rows, _mended(stream.permutation(n), rows, stream)[:, None]), dim=1)
    return rows


def _mended(column: torch.Tensor, rows: torch.Tensor, stream: Stream) -> torch.Tensor:
    """`column` (n,), a permutation, without repeats in `rows` (n, taken).

    Entries are swapped until none stands in its row of `rows` already. A row may swap with any other if neither then
    repeats: with all but 2 * taken rows at most, so n must be larger.
    """
    for row in (rows == column[:, None]).any(dim=1).nonzero()[:, 0].tolist():
        if not bool((rows[row] == column[row]).any()):
            continue  # an earlier swap has mended it
        fits = ~(torch.isin(column, rows[row]) | (rows == column[row]).any(dim=1))
        choices = fits.nonzero()[:, 0]
        other = int(choices[stream.integers(len(choices))])
        column[[row, other]] = column[[other, row]]
    return column


def _weights(n: int, k: int, largest: float, stream: Stream) -> torch.Tensor:
    weights, wanting = torch.empty(n, k), torch.arange(n)
    while len(wanting):
        drawn = _drawn(len(wanting), k, stream)
        weights[wanting] = drawn
        wanting = wanting[drawn.amax(dim=1) > largest]
    return weights


def _drawn(n: int, k: int, stream: Stream) -> torch.Tensor:
    drawn = stream.normal(n, k).float().abs_()
    return drawn / drawn.sum(dim=1, keepdim=True)


def _weighted(constituents: Iterable[torch.Tensor], weights: torch.Tensor) -> torch.Tensor:
    """Sums (n, ...) of k constituents (n, ...) with weights (n, k)."""
    total = weights.new_zeros(())
    for values, weight in zip(constituents, weights.T, strict=True):
        total = torch.addcmul(total, values, weight.reshape(-1, *(1 for _ in values.shape[1:])))
    return total


def _flip(rows: torch.Tensor, stream: Stream) -> torch.Tensor:
    return rows * stream.signs(*rows.shape).to(rows.device)
