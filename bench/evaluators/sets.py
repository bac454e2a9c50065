"""The sets evaluator: the released rows under the first key beside the raw rows, as sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import torch

from bench.contract.seal import Sealed
from bench.evidence import SetEvidence
from bench.pictures.strips import before_and_after
from bench.rows.originals import originals
from bench.seeds import generator
from bench.types import Evaluator, Measurement, NotApplicable, Picture
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Sets(Evaluator[Workbench]):
    """How varied the released rows are, how near the raw ones, and in which proportions of classes."""

    name: ClassVar[str] = "sets"
    source: ClassVar[str] = "Di Salvo et al. 2024 (CVAE paper), section 4.1"
    evidence: ClassVar[type] = SetEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """The private rows and their release under the first key, both as vectors."""
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
        """Raw images above released ones; vectors as t-SNE; nothing where the two are not of one kind."""
        sealed, evidence = cast(Sealed, found.shown), cast(SetEvidence, found.evidence[""])
        raw, released = bench.private.samples, sealed.release.samples
        if raw.ndim == 4 or raw.shape[1:] != released.shape[1:]:
            png = before_and_after(raw, sealed)
            caption = "Private images above the released rows in which they stand, under the first key"
            return {} if png is None else {"release": Picture(caption, png)}
        from bench.pictures.sheets import Cloud, scatter_sheet  # only here: what draws it takes seconds to import

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
    """Who stands in each released row, where every row has exactly one raw row behind it."""
    if subjects is None or sealed.links is None:
        return None
    try:
        return subjects[originals(sealed.links.cpu(), len(sealed.release), "the method")]
    except NotApplicable:
        return None
