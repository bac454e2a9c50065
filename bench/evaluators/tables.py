"""The tables evaluator: the columns of a table before and after, for those who work with them as they are."""

from __future__ import annotations

from typing import cast

from torch import Tensor

from bench.contract.source import Source
from bench.evidence import TableEvidence
from bench.plugins import registry
from bench.types import Attack, NotApplicable
from bench.workbench.measurement import Measurement
from bench.workbench.workbench import Workbench


def run_tables(bench: Workbench, attack: Attack | None) -> Measurement:
    """The private rows, their release under the first key, and test rows as they are.

    A released column counts as the original's column of the same place; nobody can see in the numbers whether a method
    kept its units or its meaning.
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


def check_columns(bench: Workbench, released: Tensor) -> None:
    """Raise NotApplicable unless the release has as many columns as the table."""
    if released.shape[1:] != bench.private.samples.shape[1:]:
        raise NotApplicable(
            f"{bench.method.name} releases rows of shape {tuple(released.shape[1:])}, so that none of their columns is "
            f"one of the table's {bench.private.samples.shape[1]}"
        )


def column_names(bench: Workbench) -> tuple[str, ...]:
    """The names that the data set gives to its columns; else their numbers, from 0."""
    source = cast(Source, registry.build("datasets", bench.cell.data.dataset, bench.cell.data.preset))
    return source.columns or tuple(str(column) for column in range(bench.private.samples.shape[1]))
