"""k-Same: rows become means of clusters of at least k rows.

Source: Newton et al., Preserving Privacy by De-identifying Face Images (2005), as Di Salvo et al., Privacy-preserving
datasets by capturing feature distributions with Conditional VAEs (2024), compare with it: the authors' code for the
clustering (`bench.owner.same_size_clusters`). Rows are images (pixels), tables, or the feature vectors that images were
turned into; distances are Euclidean in their own units.

What it gives: at least k raw rows share each released form. Eve, the attacker, may know the clusters; without labels
she then finds every raw row among k equal rows. At best she tries the k places of one cluster in turn for one raw row:
guesswork (k + 1) / 2. Attacks that score equal rows equally do not get below (k^2 + 1) / (k + 1) (one cluster first,
its k^2 pairs in any order), and get (n k + 1) / (n + 1), about k, if all clusters score alike. The ReID AUC of these
is 1 - (k - 1) / (2 (n - 1)), near 1 for any k: guesswork is the figure to read.

What it does not: k-anonymity promises nothing about membership (a mean shows that rows like it were there), nor about
what the rows of a cluster have in common (in `within-class`, their labels). In `paper`, rows of several classes share a
cluster and each keeps its label: a row whose label no other row of its cluster has is found by it. And `unit=row`, the
default and the paper's, counts rows, not people: if a person has several rows, or one image stands several times, these
lie near one another and may fill a cluster, which then is the mean of one person. `unit=person` counts people, and
`unit=image` rows of different content.

Differences from the paper and its code:
- `within-class`, the default, clusters the rows of a class (of equal labels, a withheld one being a value like any
  other) by themselves and drops none: the last cluster of a class, its innermost rows, takes the fewer than k that are
  left over. (Each of them in the cluster next to it would lose .1 to 1 % less, in squared distances to the means of two
  classes of 599 chest images with k - 1 rows left over.) `paper` does what the code does: clusters across classes, and
  the last n % k rows are dropped.
- Distances are exact (see there), and of rows at equal distances the earlier comes first; the code computes in float32
  and leaves ties open.
- With `unit=person`, a person's rows of one class are first replaced by their mean, these means are clustered, and
  each of the person's rows becomes the mean of her cluster's means: every person weighs the same, and a cluster has k
  people and, as equal rows count as one person's, k different images. Rows of other classes are in other clusters. The
  number of equal rows in the release still shows how many rows the k people have. `unit=image` does so with copies.
- New rows reach Bob, who trains a model on the release, as they are, as in the code, which tests on raw rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch

from bench.owner.same_size_clusters import same_size_clusters
from bench.randomness import Secret
from bench.rows.grouping import label_classes
from bench.rows.row_sets import people_and_contents
from bench.types import Dataset, Key, Method, NotApplicable, Release, Scheme, State, by_blocks, paired
from bench.validation import at_least, one_of

Variant = Literal["within-class", "paper"]
SmallClasses = Literal["error", "suppress", "merge"]
Unit = Literal["row", "image", "person"]
UNITS: Mapping[Unit, str] = {"row": "rows", "image": "different images", "person": "people"}
ROWS = 256


@dataclass(frozen=True)
class KSame(Method):
    """Means of clusters of k neighbours in place of the rows.

    Args:
        k: Rows a cluster: 2, 5, 10 and 15 in the paper.
        variant: Clusters within classes, nothing dropped; or, as published, across classes without the last n % k rows.
        small_classes: Within classes, what becomes of classes of fewer than k rows: "error"; "suppress" releases none
            of their rows; "merge" makes one class of the smallest ones, as many as it takes to have k rows, and
            withholds its labels, which must not be all there are.
        unit: Within classes, the unit that k counts: rows, as published; images of different content; or people, of
            whom each may have several images. Different images of unknown people count as of different ones.
    """

    name: ClassVar[str] = "k-same"
    source: ClassVar[str] = "Newton et al. 2005 (k-Same), as in Di Salvo et al. 2024 (CVAE) and their code"
    needs_public: ClassVar[bool] = False
    claims: ClassVar[str] = "k-anonymity (within-class); no differential privacy"
    needs_labels: ClassVar[bool] = True
    unlearned: ClassVar[frozenset[str]] = frozenset({"k", "variant", "small_classes", "unit"})

    k: int = 5
    variant: Variant = "within-class"
    small_classes: SmallClasses = "error"
    unit: Unit = "row"

    def __post_init__(self) -> None:
        at_least(2, k=self.k)
        one_of(get_args(Variant), variant=self.variant)
        one_of(get_args(SmallClasses), small_classes=self.small_classes)
        if self.variant == "paper" and self.small_classes != "error":
            raise ValueError(
                f"variant=paper makes clusters across classes, whatever their sizes: leave small_classes out, "
                f"got {self.small_classes}"
            )
        one_of(get_args(Unit), unit=self.unit)
        if self.unit != "row":
            if self.variant == "paper":
                raise ValueError(f"variant=paper counts rows, as published: leave unit out, got {self.unit}")
            claims = f"k-anonymity of {UNITS[self.unit]} (within-class); no differential privacy"
            object.__setattr__(self, "claims", claims)  # of this instance
            for name in ("uses_subjects", "needs_subjects"):
                object.__setattr__(self, name, self.unit == "person")

    def fit(self, public: Dataset, seed: int) -> KSameScheme:
        """Nothing to learn."""
        return KSameScheme(self)

    def load(self, state: State) -> KSameScheme:
        """The scheme, which has no state."""
        return KSameScheme(self)


@dataclass(frozen=True)
class KSameScheme(Scheme):
    """All keys are the same."""

    method: KSame

    def notes(self) -> Mapping[str, int | float | str]:
        """The treatment of rows without a cluster."""
        k, small, noun = self.method.k, self.method.small_classes, UNITS[self.method.unit]
        if self.method.variant == "paper":
            return {"left-over rows": f"of n rows the last n % {k} are not released"}
        treatment = {
            "suppress": "not released, so that figures are of the other classes alone",
            "merge": "made one with the next smallest classes until they have as many, and released without labels",
        }
        return {f"classes of fewer than {k} {noun}": treatment[small]} if small in treatment else {}

    def sample_key(self, secret: Secret) -> KSameKey:
        """The key, whatever the seed."""
        return KSameKey(self.method)

    def load_key(self, state: State) -> KSameKey:
        """The key, which has no state."""
        return KSameKey(self.method)


@dataclass(frozen=True)
class KSameKey(Key):
    """Nothing secret: everybody who has the raw rows can make the release."""

    method: KSame

    def release(self, private: Dataset) -> Release:
        """Every row as its cluster's mean, with its own label.

        Raises:
            NotApplicable: A class (or, in `paper`, the whole) has fewer than k rows; or to merge the smallest classes
                would withhold every label.
            ValueError: A row is not finite.
        """
        finite = [part.flatten(1).isfinite().all(dim=1) for part in torch.split(private.samples, ROWS)]
        bad = (~torch.cat(finite)).nonzero()
        if len(bad):
            raise ValueError(
                f"k-same takes means of finite rows: row {int(bad[0])} is not finite ({len(bad)} such rows)"
            )
        return self._released(private, self._units(private))

    def _released(self, private: Dataset, units: torch.Tensor | None) -> Release:
        """The release of rows whose units (n,) are known."""
        k, n = self.method.k, len(private)
        noun, count = UNITS[self.method.unit], n if units is None else len(torch.unique(units))
        if count < k:
            raise NotApplicable(f"k-same needs at least k = {k} {noun}, got {count}: choose a smaller k")
        if self.method.variant == "paper":
            whole = slice(0, n - n % k)
            labels = None if private.labels is None else private.labels[whole]
            rows = torch.split(private.samples, [whole.stop, n - whole.stop])[0]
            return paired(_means(rows, same_size_clusters(rows, k)), labels)
        number, classes = label_classes(private.labels, n)
        number = number.to(private.samples.device)
        within = number if units is None else _numbered(number, units)[1]
        sizes = torch.bincount(within, minlength=len(classes)).tolist()
        small = [c for c, size in enumerate(sizes) if size < k]
        labels = private.labels
        if small and self.method.small_classes == "suppress":
            return self._without(private, torch.isin(number, torch.tensor(small, device=number.device)), units)
        if small and self.method.small_classes == "merge":
            merged = _smallest(sizes, k, number, units)
            taken = torch.isin(number, torch.tensor(merged, device=number.device))
            number = torch.where(taken, merged[0], number)
            labels = None if labels is None else torch.where(taken[:, None].to(labels.device), torch.nan, labels)
            if labels is not None and bool(labels.isnan().all()):
                raise NotApplicable(
                    f"k-same merges the smallest classes to one of at least k = {k} {noun} without labels: as "
                    f"{_named(private, classes[merged[0]])} has {sizes[merged[0]]}, no label would be left; choose a "
                    f"smaller k, or, where some class has k {noun}, small_classes=suppress"
                )
        elif small:
            raise NotApplicable(
                f"k-same makes clusters of at least k = {k} {noun} of one class, and {len(small)} of the "
                f"{len(classes)} classes have fewer: {_named(private, classes[small[0]])} has {sizes[small[0]]}; "
                "choose a smaller k, variant=paper (clusters of rows across classes), or small_classes=suppress or "
                "merge"
            )
        if units is None:
            return paired(_means(private.samples, _clusters(private.samples, k, number)), labels)
        own, of_units = _numbered(number, units)
        means = _each_mean(private.samples, own)
        return paired(_means(means, _clusters(means, k, of_units), own, like=private.samples), labels)

    def _units(self, private: Dataset) -> torch.Tensor | None:
        """The unit (n,) int64 of each row; None for the row itself."""
        if self.method.unit == "row":
            return None
        people, contents = people_and_contents(private)
        return (people if self.method.unit == "person" else contents).to(private.samples.device)

    def _without(self, private: Dataset, small: torch.Tensor, units: torch.Tensor | None) -> Release:
        """The release of the rows that are not `small` (n,) bool.

        Units are of all rows: an image that two names share may be among those left out.
        """
        others = (~small).nonzero()[:, 0]
        if not len(others):
            raise NotApplicable(
                f"k-same makes clusters of at least k = {self.method.k} {UNITS[self.method.unit]} of one class, and no "
                "class has them"
            )
        release = self._released(private.take(others), None if units is None else units[others])
        links = torch.stack((others, torch.arange(len(others), device=others.device)), dim=1)
        return Release(release.samples, release.labels, links.cpu())

    def state(self) -> State:
        """Empty."""
        return {}


def _numbered(number: torch.Tensor, units: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers (n,) of units within a class, and their classes (u,)."""
    pairs, own = torch.unique(torch.stack((number, units)), dim=1, return_inverse=True)
    return own, pairs[0]


def _smallest(sizes: list[int], k: int, number: torch.Tensor, units: torch.Tensor | None) -> list[int]:
    """The smallest classes: all below k units, and until they have k.

    A unit with rows of several classes counts once.
    """
    order = sorted(range(len(sizes)), key=lambda c: (sizes[c], c))
    taken: list[int] = []
    for c in order:
        held = sum(sizes[d] for d in taken)
        if units is not None and taken:
            held = len(torch.unique(units[torch.isin(number, torch.tensor(taken, device=number.device))]))
        if sizes[c] >= k and held >= k:
            break
        taken.append(c)
    return taken


def _clusters(samples: torch.Tensor, k: int, number: torch.Tensor) -> torch.Tensor:
    """The cluster of every row, within classes by `number` (n,) int64."""
    cluster, first = torch.empty_like(number), 0
    for c in torch.unique(number).tolist():
        rows = (number == c).nonzero()[:, 0]
        cluster[rows] = first + same_size_clusters(samples, k, rows)
        first = int(cluster[rows].amax()) + 1
    return cluster


def _each_mean(samples: torch.Tensor, cluster: torch.Tensor) -> torch.Tensor:
    """Means (c, ...) of clusters of rows (n, ...), summed in float64."""
    counts, shape = torch.bincount(cluster), samples.shape[1:]
    sums = torch.zeros(len(counts), shape.numel(), dtype=torch.float64, device=samples.device)
    for own, part in zip(torch.split(cluster, ROWS), torch.split(samples, ROWS), strict=True):
        sums.index_add_(0, own, part.flatten(1).double())
    return sums.div_(counts[:, None]).to(samples.dtype).reshape(len(counts), *shape)


def _means(
    samples: torch.Tensor, cluster: torch.Tensor, own: torch.Tensor | None = None, *, like: torch.Tensor | None = None
) -> torch.Tensor:
    """Every row as the mean of its cluster of `samples`.

    Args:
        samples: (s, ...) float32.
        cluster: (s,) int64.
        own: (n,) int64, the sample that stands for each row; None stands for the samples themselves.
        like: The rows, if they are others than the samples.
    """
    means = _each_mean(samples, cluster)
    form = cluster if own is None else cluster[own]
    return by_blocks(form, means.__getitem__, ROWS, like=samples if like is None else like)


def _named(data: Dataset, values: torch.Tensor) -> str:
    """A class's name if exclusive, else the values (k,) of its labels."""
    values_by_name = dict(zip(data.findings, values.tolist(), strict=True))
    if data.exclusive and 1.0 in values_by_name.values():
        return next(name for name, value in values_by_name.items() if value == 1.0)
    return ", ".join(
        f"{name} unknown" if value != value else f"{name} = {value:g}" for name, value in values_by_name.items()
    )
