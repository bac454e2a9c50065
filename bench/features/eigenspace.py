"""Eigenspace: an image by its first principal components.

Source: Newton, Sweeney and Malin 2005, k-Same-Eigen (after Turk and Pentland 1991, eigenfaces).

Differences from the source:
- The components are those of public images, not of the private ones, which a published basis would leak from.
- The vectors are the coefficients themselves; released vectors are not turned back into images.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import scipy
import torch

from bench.contract.extractor import Embedding, Extractor, check_images, check_shape
from bench.types import Dataset, NotApplicable, Parameter, State
from bench.validation import at_least

BLOCK = 4096
PRECISION = 1e-12  # share of the largest variance below which a component of float64 sums is rounding


@dataclass(frozen=True)
class Eigenspace(Extractor):
    """Coefficients on the principal components of public images.

    Args:
        components: Dimensions of the vectors.
    """

    name: ClassVar[str] = "eigenspace"
    source: ClassVar[str] = "Newton et al. 2005 (k-Same-Eigen); Turk and Pentland 1991"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"components": 16}}

    components: int = 64

    def __post_init__(self) -> None:
        at_least(1, components=self.components)

    def fit(self, public: Dataset, seed: int) -> Coefficients:
        """Components of public images; NotApplicable for tables and for too few directions."""
        shape = check_images(public, self.name)
        rows = public.samples.flatten(1)
        variances, basis, mean, whole = principal_components(rows, self.components)
        if len(variances) < self.components:
            raise NotApplicable(
                f"{self.components} components are configured, but {len(rows)} public images of {rows.shape[1]} pixels "
                f"vary in {len(variances)} directions: choose at most eigenspace[components={len(variances)}]"
            )
        return Coefficients(torch.tensor(shape), mean, basis, torch.cat((variances, whole[None])))

    def load(self, state: State) -> Coefficients:
        """See `Extractor.load`."""
        return Coefficients(state["shape"], state["mean"], state["basis"], state["variances"])


@dataclass(frozen=True, eq=False)
class Coefficients(Embedding):
    """Images minus the public mean, projected.

    Float64: `basis` (d, p) has orthonormal rows, the one of most variance first; `variances` (d + 1,) are those of
    the components, then of all pixels together.
    """

    images: torch.Tensor
    mean: torch.Tensor
    basis: torch.Tensor
    variances: torch.Tensor

    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, d), independent of the batch."""
        check_shape(samples, tuple(self.images.tolist()), "eigenspace")
        return ((samples.flatten(1).double() - self.mean) @ self.basis.T).float()

    def state(self) -> State:
        """Basis, mean, variances and image shape."""
        return {"shape": self.images, "mean": self.mean, "basis": self.basis, "variances": self.variances}

    def notes(self) -> Mapping[str, int | float | str]:
        """The share of the public images' variance in the components."""
        return {"explained variance": float(self.variances[:-1].sum() / self.variances[-1])}


def principal_components(
    rows: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The first `count` principal components of rows (n, p).

    They are fewer if the rows vary in fewer directions. From the eigenvectors of the smaller of the two Gram matrices,
    in float64. Each component points where its largest coefficient is positive, so that the result is unique while
    variances differ.

    Returns:
        Variances (d,), components (d, p), the mean (p,) and the variance of all columns together, float64, on the
        device of the rows.
    """
    n, p = rows.shape
    mean = rows.mean(dim=0, dtype=torch.float64)
    gram = torch.zeros((min(n, p),) * 2, dtype=torch.float64, device=rows.device)
    columns = torch.split(torch.arange(p, device=rows.device), BLOCK)
    if p > n:
        for part in columns:
            centred = rows[:, part].double() - mean[part]
            gram += centred @ centred.T
    else:
        for block in torch.split(rows, BLOCK):
            centred = block.double() - mean
            gram += centred.T @ centred
    values, vectors = scipy.linalg.eigh(gram.cpu().numpy(), subset_by_index=[max(0, len(gram) - count), len(gram) - 1])
    valid = (values > PRECISION * values[-1]) & (values > 0)
    squares, basis = (
        torch.from_numpy(part[..., valid][..., ::-1].copy()).to(rows.device) for part in (values, vectors)
    )
    if p > n:
        basis = torch.cat([(rows[:, part].double() - mean[part]).T @ basis for part in columns])
        basis = basis / basis.norm(dim=0)
    largest = basis.abs().argmax(dim=0, keepdim=True)
    basis = (basis * basis.gather(0, largest).sign()).T.contiguous()
    return squares / n, basis, mean, gram.diagonal().sum() / n
