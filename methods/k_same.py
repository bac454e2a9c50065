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
cluster and each keeps its label: a row whose label no other row of its cluster has is found by it. And rows are
counted, not people: if a person has several rows, they lie near one another and may fill a cluster.

Differences from the paper and its code:
- `within-class`, the default, clusters the rows of a class (of equal labels, a withheld one being a value like any
  other) by themselves and drops none: the last cluster of a class, its innermost rows, takes the fewer than k that are
  left over. (Each of them in the cluster next to it would lose .1 to 1 % less, in squared distances to the means of two
  classes of 599 chest images with k - 1 rows left over.) `paper` does what the code does: clusters across classes, and
  the last n % k rows are dropped.
- Distances are exact (see there), and of rows at equal distances the earlier comes first; the code computes in float32
  and leaves ties open.
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
from bench.types import Dataset, Key, Method, NotApplicable, Release, Scheme, State, by_blocks, paired
from bench.validation import at_least, one_of

Variant = Literal["within-class", "paper"]
SmallClasses = Literal["error", "suppress", "merge"]
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
    """

    name: ClassVar[str] = "k-same"
    source: ClassVar[str] = "Newton et al. 2005 (k-Same), as in Di Salvo et al. 2024 (CVAE) and their code"
    needs_public: ClassVar[bool] = False
    claims: ClassVar[str] = "k-anonymity (within-class); no differential privacy"
    needs_labels: ClassVar[bool] = True
    unlearned: ClassVar[frozenset[str]] = frozenset({"k", "variant", "small_classes"})

    k: int = 5
    variant: Variant = "within-class"
    small_classes: SmallClasses = "error"

    def __post_init__(self) -> None:
        at_least(2, k=self.k)
        one_of(get_args(Variant), variant=self.variant)
        one_of(get_args(SmallClasses), small_classes=self.small_classes)
        if self.variant == "paper" and self.small_classes != "error":
            raise ValueError(
                f"variant=paper makes clusters across classes, whatever their sizes: leave small_classes out, "
                f"got {self.small_classes}"
            )

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
        k, small = self.method.k, self.method.small_classes
        if self.method.variant == "paper":
            return {"left-over rows": f"of n rows the last n % {k} are not released"}
        treatment = {
            "suppress": "not released, so that figures are of the other classes alone",
            "merge": "made one with the next smallest classes until they have as many, and released without labels",
        }
        return {f"classes of fewer than {k} rows": treatment[small]} if small in treatment else {}

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
        n, k = len(private), self.method.k
        finite = [part.flatten(1).isfinite().all(dim=1) for part in torch.split(private.samples, ROWS)]
        bad = (~torch.cat(finite)).nonzero()
        if len(bad):
            raise ValueError(
                f"k-same takes means of finite rows: row {int(bad[0])} is not finite ({len(bad)} such rows)"
            )
        if n < k:
            raise NotApplicable(f"k-same needs at least k = {k} rows, got {n}: choose a smaller k")
        if self.method.variant == "paper":
            whole = slice(0, n - n % k)
            labels = None if private.labels is None else private.labels[whole]
            rows = torch.split(private.samples, [whole.stop, n - whole.stop])[0]
            return paired(_means(rows, same_size_clusters(rows, k)), labels)
        number, classes = label_classes(private.labels, n)
        number = number.to(private.samples.device)
        sizes = torch.bincount(number, minlength=len(classes)).tolist()
        small = [c for c, size in enumerate(sizes) if size < k]
        labels = private.labels
        if small and self.method.small_classes == "suppress":
            return self._without(private, torch.isin(number, torch.tensor(small, device=number.device)))
        if small and self.method.small_classes == "merge":
            merged = _smallest(sizes, k)
            within = torch.isin(number, torch.tensor(merged, device=number.device))
            number = torch.where(within, merged[0], number)
            labels = None if labels is None else torch.where(within[:, None].to(labels.device), torch.nan, labels)
            if labels is not None and bool(labels.isnan().all()):
                raise NotApplicable(
                    f"k-same merges the smallest classes to one of at least k = {k} rows without labels: as "
                    f"{_named(private, classes[merged[0]])} has {sizes[merged[0]]}, no label would be left; choose a "
                    "smaller k, or, where some class has k rows, small_classes=suppress"
                )
        elif small:
            raise NotApplicable(
                f"k-same makes clusters of at least k = {k} rows of one class, and {len(small)} of the {len(classes)} "
                f"classes have fewer: {_named(private, classes[small[0]])} has {sizes[small[0]]}; choose a "
                "smaller k, variant=paper (clusters across classes), or small_classes=suppress or merge"
            )
        cluster, first = torch.empty_like(number), 0
        for c in torch.unique(number).tolist():
            rows = (number == c).nonzero()[:, 0]
            cluster[rows] = first + same_size_clusters(private.samples, k, rows)
            first = int(cluster[rows].amax()) + 1
        return paired(_means(private.samples, cluster), labels)

    def _without(self, private: Dataset, small: torch.Tensor) -> Release:
        """The release of the rows that are not `small` (n,) bool."""
        others = (~small).nonzero()[:, 0]
        if not len(others):
            raise NotApplicable(
                f"k-same makes clusters of at least k = {self.method.k} rows of one class, and no class has them"
            )
        release = self.release(private.take(others))
        links = torch.stack((others, torch.arange(len(others), device=others.device)), dim=1)
        return Release(release.samples, release.labels, links.cpu())

    def state(self) -> State:
        """Empty."""
        return {}


def _smallest(sizes: list[int], k: int) -> list[int]:
    """The smallest classes: all below k rows, and until they have k."""
    order = sorted(range(len(sizes)), key=lambda c: (sizes[c], c))
    taken: list[int] = []
    for c in order:
        if sizes[c] >= k and sum(sizes[d] for d in taken) >= k:
            break
        taken.append(c)
    return taken


def _means(samples: torch.Tensor, cluster: torch.Tensor) -> torch.Tensor:
    """Every row (n, ...) as its cluster's mean, summed in float64."""
    counts, shape = torch.bincount(cluster), samples.shape[1:]
    sums = torch.zeros(len(counts), shape.numel(), dtype=torch.float64, device=samples.device)
    for own, part in zip(torch.split(cluster, ROWS), torch.split(samples, ROWS), strict=True):
        sums.index_add_(0, own, part.flatten(1).double())
    means = sums.div_(counts[:, None]).to(samples.dtype)
    del sums
    return by_blocks(cluster, lambda own: means[own].reshape(len(own), *shape), ROWS, like=samples)


def _named(data: Dataset, values: torch.Tensor) -> str:
    """A class's name if exclusive, else the values (k,) of its labels."""
    values_by_name = dict(zip(data.findings, values.tolist(), strict=True))
    if data.exclusive and 1.0 in values_by_name.values():
        return next(name for name, value in values_by_name.items() if value == 1.0)
    return ", ".join(
        f"{name} unknown" if value != value else f"{name} = {value:g}" for name, value in values_by_name.items()
    )
