"""The tables evaluator: the columns of a table before and after, for those who work with them as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.evidence import TableEvidence
from bench.seeds import generator
from bench.types import Evaluator, Measurement, NotApplicable
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Tables(Evaluator[Workbench]):
    """The columns of a table before and after its release."""

    name: ClassVar[str] = "tables"
    source: ClassVar[str] = "Tölle et al. 2022 (CADP), figure 6"
    evidence: ClassVar[type] = TableEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """The private rows, their release under the first key, and test rows as they are.

        A released column counts as the original's column of the same place; nobody can see in the numbers whether a
        method kept its units or its meaning.
        """
        if bench.private.samples.ndim != 2:
            raise NotApplicable(f"columns are compared of tables, and {bench.private.name} holds images")
        released = bench.sealed(bench.scheme(), 0).release.samples
        check_columns(bench, released)
        evidence = TableEvidence(
            original=bench.private.samples.cpu(),
            released=released.cpu(),
            test=bench.test.samples.cpu(),
            columns=column_names(bench),
            seed=bench.seed("tables"),
        )
        return Measurement({"": evidence}, {}, {}, {})

    @classmethod
    def samples(cls) -> Iterator[TableEvidence]:
        """A random table whose release is a little higher."""
        random = generator(0)
        rows, test = (torch.rand(48, 3, generator=random) for _ in range(2))
        yield TableEvidence(rows, rows + 0.1, test, ("a", "b", "c"), 1)


def check_columns(bench: Workbench, released: torch.Tensor) -> None:
    """Raise NotApplicable unless the release has as many columns as the table."""
    if released.shape[1:] != bench.private.samples.shape[1:]:
        raise NotApplicable(
            f"{bench.method.name} releases rows of shape {tuple(released.shape[1:])}, so that none of their columns is "
            f"one of the table's {bench.private.samples.shape[1]}"
        )


def column_names(bench: Workbench) -> tuple[str, ...]:
    """The names that the data set gives to its columns; else their numbers, from 0."""
    numbers = range(bench.private.samples.shape[1])
    return bench.cell.choice.dataset.plugin.columns or tuple(str(column) for column in numbers)
