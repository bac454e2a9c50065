"""The copies evaluator: private images in a release, against a hold-out.

Source: Amin et al. 2026, "Phantoms and disclosures: a causal framework for auditing synthetic data" (arXiv 2606.16952):
an image that a release shows may have been learned (a true disclosure) or look so by itself (a phantom); images of
the same kind that the release was not made from show how often the second happens. Distances as ratios: Meehan,
Chaudhuri and Dasgupta 2020, "A non-parametric test to detect data-copying in generative models".

It needs one release, the rows that it was made from and rows of other people: no scheme, no second training, no links.
A row's score is the log distance to the nearest control row less that to the nearest released one, so that "the
distribution is like that" gives private and held-out rows the same scores. Labels are not read: a copy under another
label, or under a withheld one, is a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from pydantic import JsonValue

from bench.evidence import CopyEvidence
from bench.pictures.strips import SHOWN, draw
from bench.rows.row_sets import joined
from bench.seeds import generator
from bench.statistics.nearest_rows import log_distances, nearest
from bench.types import Evaluator, Measurement, NotApplicable, Picture
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Copies(Evaluator[Workbench]):
    """Private rows nearer to released rows than held-out rows are."""

    name: ClassVar[str] = "copies"
    source: ClassVar[str] = "Amin et al. 2026; Meehan, Chaudhuri and Dasgupta 2020"
    evidence: ClassVar[type] = CopyEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Distances of private and test rows to the first release."""
        private, control = bench.private, bench.control
        rows, released = joined(private, bench.test), bench.sealed(bench.scheme(), 0).release
        shape = tuple(rows.samples.shape[1:])
        if released.samples.shape[1:] != shape:
            raise NotApplicable(
                f"copies are sought among rows of shape {shape}, and {bench.method.name} releases rows of shape "
                f"{tuple(released.samples.shape[1:])}"
            )
        vectors = rows.samples.flatten(1)
        theirs, known = (nearest(vectors, others.samples.flatten(1)) for others in (released, control))
        scores = log_distances(known) - log_distances(theirs)
        inside = torch.arange(len(rows)) < len(private)
        subjects = None if rows.subjects is None else rows.subjects.cpu()
        seeds = bench.seed("copies"), bench.seed("copies people")
        details: dict[str, JsonValue] = {
            "private rows": len(private),
            "held-out rows": len(bench.test),
            "control rows": len(control),
            "released rows": len(released),
        }
        evidence = CopyEvidence([scores], [inside], subjects, *seeds)
        return Measurement({"": evidence}, details, {}, {}, released.samples)

    def pictures(self, bench: Workbench, found: Measurement) -> Mapping[str, Picture]:
        """The private images that stand out most, with their neighbours."""
        if bench.private.samples.ndim != 4:
            return {}
        released = cast("torch.Tensor", found.shown)
        scores = cast(CopyEvidence, found.evidence[""]).scores[0][: len(bench.private)]
        rows = bench.private.samples[scores.argsort(descending=True)[:SHOWN].to(bench.private.samples.device)]
        png = draw([rows, _nearest_rows(rows, released), _nearest_rows(rows, bench.control.samples)])
        caption = (
            "Private images that stand out most, above the nearest released row and the nearest image of other people"
        )
        return {"copies": Picture(caption, png)}

    @classmethod
    def samples(cls) -> Iterator[CopyEvidence]:
        """Random scores, and a release with copies."""
        subjects = torch.arange(240) // 2
        inside = subjects % 3 != 0
        scores = torch.rand(240, generator=generator(0)).double()
        yield CopyEvidence([scores], [inside], subjects, 1, 1)
        yield CopyEvidence([scores + inside], [inside], None, 1, 1)


def _nearest_rows(rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """For few rows (b, ...), the nearest other row of each."""
    flat = others.flatten(1)
    places = [int(torch.linalg.vector_norm(flat - row, dim=1).argmin()) for row in rows.flatten(1)]
    return others[torch.tensor(places, device=others.device)]
