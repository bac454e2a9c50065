"""The evaluators of distributions: released rows beside raw rows.

`sets` compares the two as sets of vectors, `tables` column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import torch

from bench.contract.seal import Sealed
from bench.evidence import SetEvidence, TableEvidence
from bench.pictures.strips import before_and_after
from bench.rows.row_sets import originals
from bench.seeds import generator
from bench.types import Evaluator, Measurement, NotApplicable, Picture
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Sets(Evaluator[Workbench]):
    """Diversity of released rows, distance to raw rows, class proportions."""

    name: ClassVar[str] = "sets"
    source: ClassVar[str] = "Di Salvo et al. 2024 (CVAE paper), section 4.1"
    evidence: ClassVar[type] = SetEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """The private rows and their first release, both as vectors."""
        scheme = bench.scheme()
        sealed = bench.sealed(scheme, 0)
        subjects = None if bench.private.subjects is None else bench.private.subjects.cpu()
        labels, released_labels = bench.private.labels, sealed.release.labels
        evidence = SetEvidence(
            original=bench.vectors(bench.private.samples).cpu(),
            released=bench.vectors(sealed.release.samples).cpu(),
            subjects=subjects,
            released_subjects=_people(sealed, subjects),
            seed=bench.seed("sets"),
            labels=None if labels is None else labels.cpu(),
            released_labels=None if released_labels is None else bench.key(scheme, 0).decode(released_labels).cpu(),
            findings=bench.private.findings,
            exclusive=bench.private.exclusive,
        )
        return Measurement({"": evidence}, {}, {}, {}, sealed)

    def pictures(self, bench: Workbench, found: Measurement) -> Mapping[str, Picture]:
        """Raw above released images, or a t-SNE plane; nothing for other pairs."""
        sealed, evidence = cast(Sealed, found.shown), cast(SetEvidence, found.evidence[""])
        raw, released = bench.private.samples, sealed.release.samples
        if raw.ndim == 4 or raw.shape[1:] != released.shape[1:]:
            png = before_and_after(raw, sealed)
            caption = "Private images above the released rows in which they stand, under the first key"
            return {} if png is None else {"release": Picture(caption, png)}
        from bench.pictures.sheets import Cloud, scatter_sheet  # imports matplotlib, which takes seconds

        original = Cloud("original", evidence.original, evidence.labels)
        shown = Cloud("released", evidence.released, evidence.released_labels)
        png = scatter_sheet(original, [shown], evidence.findings, "", seed=bench.seed("scatter"))
        caption = (
            "Original and released feature vectors in one t-SNE plane, coloured by class; distances between clusters "
            "mean little in such a plane"
        )
        return {"plane": Picture(caption, png)}

    @classmethod
    def samples(cls) -> Iterator[SetEvidence]:
        """Random rows released in another order, and as five equal rows."""
        rows, number = torch.rand(48, 8, generator=generator(0)), torch.arange(48)
        labels = torch.stack((number % 2, number // 2 % 2), dim=1).to(torch.float32)
        labels[0] = torch.nan
        subjects, both = number // 3, ("first", "second")
        yield SetEvidence(rows, rows.flip(0).clone(), subjects, subjects.flip(0), 1, labels, labels.flip(0), both)
        yield SetEvidence(rows, torch.zeros(5, 8), None, None, 1, labels, labels[:5], both)


def _people(sealed: Sealed, subjects: torch.Tensor | None) -> torch.Tensor | None:
    """Person of each released row, if each has one raw row."""
    if subjects is None or sealed.links is None:
        return None
    try:
        return subjects[originals(sealed.links.cpu(), len(sealed.release), "the method")]
    except NotApplicable:
        return None


@dataclass(frozen=True)
class Tables(Evaluator[Workbench]):
    """The columns of a table before and after its release."""

    name: ClassVar[str] = "tables"
    source: ClassVar[str] = "Tölle et al. 2022 (CADP), figure 6"
    evidence: ClassVar[type] = TableEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """The private rows, their first release, and test rows, column by column."""
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
    """The data set's column names; else column numbers from 0."""
    numbers = range(bench.private.samples.shape[1])
    return bench.cell.choice.dataset.plugin.columns or tuple(str(column) for column in numbers)
