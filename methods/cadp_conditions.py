"""Conditions of CADP's flow: a row's labels, or columns of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.types import Dataset, NotApplicable

MOST_VALUES = 20


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
        """The conditions (n, width) float32 of rows; None for width 0.

        The labels (n, k) of the rows have columns `findings`.
        """
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
    found = []
    for column in columns:
        values = torch.unique(samples[:, column])
        if len(values) > MOST_VALUES:
            raise NotApplicable(
                f"a column that a flow is conditioned on has at most {MOST_VALUES} values: column {column} of "
                f"{public.name} has {len(values)}"
            )
        found.append(torch.stack((torch.full_like(values, column), values), dim=1))
    return Conditions((), False, torch.cat(found))
