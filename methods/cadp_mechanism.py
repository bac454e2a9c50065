"""CADP's mechanism: latents of one L1 norm, Laplace noise, and conditions.

Source: Tölle et al., Content-aware differential privacy (2022), Algorithm 1. Every latent z becomes s z / |z|_1: though
the paper calls it a clip, it divides, and lengthens short vectors too. The authors' code does clip: if the matrix
norm of order 1 of a batch, the largest column sum of absolute values, exceeds s, the batch is divided by what is over;
where the flow gives several latents out, each by its own.

What the paper gets wrong:
- Two vectors of L1 norm s differ by up to 2 s, so that noise of scale s / epsilon gives 2 epsilon. Variant `paper` adds
  it and derives 2 epsilon; `corrected` adds 2 s / epsilon.
- The authors' code clips a batch by the largest column sum of its absolute values (a matrix norm).
  Every column then has L1 norm at most s, the batch of width d at most d s, so that changing one row moves the batch,
  all of it, by at most 2 d s: variant `official-code` derives 2 d epsilon, which a batch of one row attains (latents of
  equal elements, all s against all -s).
- s = min(epsilon / 2, 4) makes the noise of `paper` 1 / 2 (of `corrected` 1) for every epsilon up to 8: epsilon moves
  the norm, not the noise. As |z|_1 grows with d (0.29 d on MNIST), s = 0.5 leaves 0.2 % of a latent: what is
  released is a sample of the flow under the row's condition, not the row.
- Theorem 1 needs neither volume preservation nor similar distances in image and latent: decoding is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from bench.nets import cinn, normalising_flow
from bench.owner.grid_noise import GridNoise
from bench.randomness import Stream
from bench.types import Dataset, Mechanism, NotApplicable, PrivacyClaim, Release

MOST_VALUES = 20

SHORTER = 1 - 2.0**-30  # float64 errs by far less in a sum of latents; lest a norm exceeds s
LONGER = 1 + 2.0**-6  # a little more than the norm, for decoding and encoding err: the clip takes it off
SHORTEST = 1e-30  # a latent of zeros stays one
ORDINARY = 64  # rows searched for two that are far apart

Variant = Literal["paper", "corrected", "official-code"]
NOISE: Mapping[str, str] = {
    "paper": "noise s / epsilon; derived: two latents of L1 norm s differ by up to 2 s",
    "corrected": "noise 2 s / epsilon, for two latents of L1 norm s differ by up to 2 s",
    "official-code": (
        "noise s / epsilon, but the norm is that of a batch's matrix; derived: a batch of rows of width d then has L1 "
        "norm at most d s, so that a changed row moves it by up to 2 d s"
    ),
}


@dataclass(frozen=True, eq=False)
class Conditions:
    """The flow's input beside the row: public findings, or table columns.

    All zeros: nothing is known.

    Args:
        findings: Names of the public findings; an exclusive class has one number, another finding two, yes and no.
        exclusive: Whether the findings are classes and each row has exactly one.
        values: (k, 2) float32, column and value: one number for each, 1 if the column has the value. The columns
            are no part of the flow. Without any, findings are the condition.
    """

    findings: tuple[str, ...]
    exclusive: bool
    values: torch.Tensor

    @property
    def width(self) -> int:
        """Numbers of a condition."""
        return len(self.values) or len(self.findings) * (1 if self.exclusive else 2)

    def read(
        self, samples: torch.Tensor, labels: torch.Tensor | None, findings: tuple[str, ...]
    ) -> torch.Tensor | None:
        """Conditions (n, width) float32 of rows and labels; None for width 0."""
        if not self.width:
            return None
        if len(self.values):
            return (samples[:, self.values[:, 0].long()] == self.values[:, 1]).to(samples.dtype)
        known = samples.new_full((len(samples), len(self.findings)), torch.nan)
        if labels is not None:
            shared = [(place, findings.index(name)) for place, name in enumerate(self.findings) if name in findings]
            for place, column in shared:
                known[:, place] = labels[:, column]
        return (known if self.exclusive else torch.cat((known, 1 - known), dim=1)).nan_to_num(0.0)

    def rows(self, samples: torch.Tensor) -> torch.Tensor:
        """The flow's input: the rows without the columns of the condition."""
        return samples[:, self._seen(samples)] if len(self.values) else samples

    def join(self, rows: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
        """Rows of the flow, completed by the condition's columns of `samples`."""
        if not len(self.values):
            return rows
        whole = samples.clone()
        whole[:, self._seen(samples)] = rows
        return whole

    def drawn(self, samples: torch.Tensor, uniform: Callable[[int], torch.Tensor]) -> torch.Tensor:
        """Rows (n, d) with random values in the columns of the condition.

        Every value of a column is as likely.

        Args:
            samples: The rows.
            uniform: Gives that many numbers in [0, 1).
        """
        whole = samples.clone()
        for column in torch.unique(self.values[:, 0]).tolist():
            values = self.values[self.values[:, 0] == column, 1]
            places = (uniform(len(samples)) * len(values)).long().clamp_max(len(values) - 1)
            whole[:, int(column)] = values[places.to(values.device)]
        return whole

    def _seen(self, samples: torch.Tensor) -> torch.Tensor:
        seen = torch.ones(samples.shape[1], dtype=torch.bool, device=samples.device)
        seen[self.values[:, 0].long()] = False
        return seen


def conditions_of(public: Dataset, condition: str) -> Conditions:
    """The condition that a flow for `public` reads.

    Args:
        public: Rows that decide which findings, or which values of a column, there are.
        condition: "labels", or columns of a table as in "1" or "1+3".

    Raises:
        NotApplicable: Columns of images, columns that are not there, or that have too many values.
    """
    samples = public.samples
    if condition == "labels":
        return Conditions(() if public.labels is None else public.findings, public.exclusive, samples.new_zeros(0, 2))
    if samples.ndim != 2:
        raise NotApplicable(f"condition={condition} names columns of a table, and {public.name} holds images")
    columns = sorted({int(part) for part in condition.split("+")})
    if columns[-1] >= samples.shape[1]:
        raise NotApplicable(
            f"condition={condition} counts columns from 0: {public.name} has 0 to {samples.shape[1] - 1}"
        )
    parts = []
    for column in columns:
        values = torch.unique(samples[:, column])
        if len(values) > MOST_VALUES:
            raise NotApplicable(
                f"a column that a flow is conditioned on has at most {MOST_VALUES} values: column {column} of "
                f"{public.name} has {len(values)}"
            )
        parts.append(torch.stack((torch.full_like(values, column), values), dim=1))
    return Conditions((), False, torch.cat(parts))


@dataclass(frozen=True, eq=False)
class NormedLatent(Mechanism):
    """Laplace noise on latents of L1 norm s.

    Args:
        flow: In evaluation mode.
        conditions: What it is conditioned on.
        norm: The L1 norm s.
        gridded: The noise of every element.
        batch: Rows that are clipped by one number, the norm of their matrix, if not `rowwise`.
        rowwise: Divide every row by its own norm.
        drawn: Whether rows are decoded under columns that are drawn at random, in place of their own.
    """

    flow: cinn.CINN
    conditions: Conditions
    norm: float
    gridded: GridNoise
    batch: int
    rowwise: bool = True
    drawn: bool = False

    @property
    def noise_scale(self) -> float:
        """Laplace scale b of every element."""
        return self.gridded.scale

    @property
    def width(self) -> int:
        """Elements d of a latent."""
        return math.prod(self.flow.shape)

    @property
    def scale(self) -> torch.Tensor:
        """(d,) float64, the same for every element."""
        return torch.full((self.width,), self.noise_scale, dtype=torch.float64, device=self.flow.mean.device)

    def locate(self, data: Dataset) -> torch.Tensor:
        """(n, d) float64: normed latents, on the grid, by batch unless `rowwise`."""
        return self.normed(self._latent(data.samples, self.conditions.read(data.samples, data.labels, data.findings)))

    def observe(self, release: Release) -> torch.Tensor:
        """(m, d) float64: noisy latents. Raises NotApplicable for labels of other findings."""
        named = self.conditions.findings
        if named and release.labels is not None and release.labels.shape[1] != len(named):
            raise NotApplicable(
                f"the flow is conditioned on labels: expected {len(named)} columns ({', '.join(named)}), the release "
                f"has {release.labels.shape[1]}"
            )
        return self._latent(release.samples, self.conditions.read(release.samples, release.labels, named))

    def rebuild(self, code: torch.Tensor, data: Dataset) -> torch.Tensor:
        """Rows (n, ...) float32 of codes (n, d), under `data`'s conditions."""
        condition = self.conditions.read(data.samples, data.labels, data.findings)
        return self.conditions.join(normalising_flow.decoded(self.flow, code.float(), condition), data.samples)

    def normed(self, latent: torch.Tensor) -> torch.Tensor:
        """Latents (n, d) float64 of norm s, on the grid.

        The norm is that of a row or of a batch, and at most `most` steps. They are rounded to zero, which makes nothing
        longer; what float64 errs by is taken off before.
        """
        if self.rowwise:
            long = latent.abs().sum(dim=1, keepdim=True)
            return self._rounded(self.norm * SHORTER * latent / long.clamp_min(SHORTEST), along=1)
        batches = torch.split(latent, self.batch)
        return torch.cat([self._rounded(self._clipped_by_part(batch), along=0) for batch in batches])

    def _clipped_by_part(self, batch: torch.Tensor) -> torch.Tensor:
        parts = torch.split(batch, self.flow.parts, dim=1)
        return torch.cat([clipped(part, self.norm * SHORTER) for part in parts], dim=1)

    def together(self, stream: Stream) -> int:
        """Rows released at a time; numbers, batches and noise stay the same."""
        rows = math.lcm(normalising_flow.rows_at_once(torch.empty(1, self.width)), stream.rows_apart(self.width))
        return rows if self.rowwise else math.lcm(rows, self.batch)

    @property
    def most(self) -> int:
        """The L1 norm s of rows (or batches' columns), in grid steps."""
        return math.floor(self.gridded.grid.steps(self.norm))

    def _rounded(self, scaled: torch.Tensor, *, along: int) -> torch.Tensor:
        places = self.gridded.grid.places(scaled, rounding="to zero")
        longest = int(places.abs().sum(dim=along).amax())
        assert longest <= self.most, f"a normed latent has {longest} steps, at most {self.most} are allowed"
        return self.gridded.grid.values(places).double()

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """Rows with opposite latents, along one element or along all.

        All elements are opposite if the norm of a batch allows it. They are what the flow decodes there, with labels
        and without: rows of real numbers, not all in [0, 1]. Last come the two of some rows of `like` with the same
        condition whose codes lie farthest apart.
        """
        labels, device = like.labels, like.samples.device
        usual = 0 if labels is None else int(labels.isfinite().all(dim=1).int().argmax())
        row = like.take(torch.tensor([usual], device=device))
        unknown = row if row.labels is None else replace(row, labels=torch.full_like(row.labels, torch.nan))
        ends = torch.eye(self.width, device=device)[[0, self.width // 2]]
        ends = ends if self.rowwise else (LONGER * self.norm) * torch.ones_like(ends[:1])
        opposite = [
            (self._decoded(along, at), self._decoded(-along, at))
            for at, along in [*((row, end[None]) for end in ends), (unknown, ends[:1])]
        ]
        return [*opposite, self._far_apart(like, row)]

    def _decoded(self, latent: torch.Tensor, like: Dataset) -> Dataset:
        return replace(like, samples=self.rebuild(latent, like))

    def _far_apart(self, like: Dataset, row: Dataset) -> tuple[Dataset, Dataset]:
        conditions = [self.conditions.read(part.samples, part.labels, part.findings) for part in (like, row)]
        same = like.samples.new_ones(len(like), dtype=torch.bool)
        if conditions[0] is not None and conditions[1] is not None:
            same = (conditions[0] == conditions[1]).all(dim=1)
        rows = [like.take(number[None]) for number in same.nonzero()[:ORDINARY, 0]]
        codes = torch.cat([self.locate(part) for part in rows])  # each alone, for a batch shares its norm
        first, second = divmod(int(torch.cdist(codes, codes, p=1).argmax()), len(rows))
        return rows[first], rows[second]

    def _latent(self, samples: torch.Tensor, condition: torch.Tensor | None) -> torch.Tensor:
        return normalising_flow.encoded(self.flow, self.conditions.rows(samples), condition).double()


def clipped(latent: torch.Tensor, norm: float) -> torch.Tensor:
    """A batch of latents (b, d), shortened to the authors' matrix norm.

    The norm is of order 1; a batch below it stays as it is.

    >>> clipped(torch.tensor([[3.0, 0.0], [1.0, 2.0]]), 2.0)
    tensor([[1.5000, 0.0000],
            [0.5000, 1.0000]])
    """
    return latent * (norm / latent.abs().sum(dim=0).amax().clamp_min(norm))


def claim(noise: NormedLatent, variant: Variant, epsilon: float) -> PrivacyClaim:
    """The paper's epsilon, and the bound that follows from norm and noise."""
    columns = sorted({int(column) for column in noise.conditions.values[:, 0]})
    outside = f"columns {columns} (counted from 0) and labels" if columns else "labels"
    released = "columns are drawn at random, labels are" if noise.drawn else f"{outside} are"
    derivation = NOISE[variant]
    return PrivacyClaim(
        unit="image" if len(noise.flow.shape) == 3 else "record",
        epsilon=epsilon,
        delta=0.0,
        assumptions=(
            f"Any two rows with the same {outside} count as neighbours: {released} released as they are. Each "
            "row is released once, and the flow comes from public rows only; it holds for the bits published: latents "
            "and noise are whole steps of a public grid."
        ),
        basis=f"CADP paper, Theorem 1 and Algorithm 1, {derivation}",
        derived=noise.gridded.epsilon(2 * noise.most * (1 if noise.rowwise else noise.width)),
    )
