"""Other people whom Eve knows, and releases of their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from bench.contract.seal import check
from bench.pictures.strips import stands
from bench.rows.grouping import persons_of
from bench.rows.row_sets import joined
from bench.seeds import generator
from bench.types import Attributes, Dataset, Key, NotApplicable, Release
from bench.workbench.workbench import Workbench


def other_people(
    bench: Workbench, purpose: str, *, most: int, described: bool = False
) -> tuple[Dataset, Attributes | None]:
    """Public and control rows, and their attributes if all are known.

    Another author's method knows the public rows: then they are control and test rows, no more than the owner's. People
    of different parts are different. Labels come in the columns of the private rows, unknown if a part has none.

    Args:
        bench: The cell.
        purpose: Of the rows, for the draw and the message.
        most: Rows at most.
        described: Leave out a public set that names no attributes, if the private set names some.

    Raises:
        NotApplicable: There are none of the private rows' shape.
    """
    whole: Dataset | None = None
    told: list[Attributes] = []
    unknown = False
    for name in ("control", "test") if bench.outside else ("public", "control"):
        part: Dataset = getattr(bench, name)
        known = bench.attributes.get(name)
        if not len(part) or part.samples.shape[1:] != bench.private.samples.shape[1:]:
            continue
        if described and bench.attributes and known is None:
            continue
        unknown |= known is None
        told += [] if known is None else [known]
        part = _as_private(part, bench.private)
        if whole is not None:
            assert whole.subjects is not None
            assert part.subjects is not None
            part = replace(part, subjects=part.subjects + int(whole.subjects.max()) + 1)
        whole = part if whole is None else joined(whole, part)
    if whole is None:
        raise NotApplicable(f"Eve learns {purpose} from public and control people, and there are none")
    attributes = None if unknown else told[0].followed_by(told[1]) if len(told) > 1 else told[0]
    most = min(most, len(bench.private)) if bench.outside else most
    if len(whole) > most:
        chosen = torch.randperm(len(whole), generator=generator(bench.seed(purpose, "rows")))[:most].sort().values
        whole = whole.take(chosen.to(bench.device))
        attributes = None if attributes is None else attributes.take(chosen)
    return bench.as_owned(whole, purpose), attributes


def _as_private(part: Dataset, private: Dataset) -> Dataset:
    """The rows with the private rows' name and label columns."""
    labels = None
    if private.labels is not None:
        labels = part.samples.new_full((len(part), len(private.findings)), torch.nan)
        for column, name in enumerate(private.findings):
            if part.labels is not None and name in part.findings:
                labels[:, column] = part.labels[:, part.findings.index(name)]
    subjects = persons_of(part).to(part.samples.device)
    return replace(
        part, name=private.name, labels=labels, subjects=subjects, findings=private.findings,
        exclusive=private.exclusive, shareable=private.shareable,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class OwnRows:
    """Released rows (p, ...), labels if released, and ascending raw rows."""

    samples: torch.Tensor
    labels: torch.Tensor | None
    rows: torch.Tensor


def whole_release(bench: Workbench, key: Key, data: Dataset) -> Release:
    """A release under Eve's key, with links.

    Raises NotApplicable if the method gives none.
    """
    release = bench.untouched(bench.method.name, lambda: key.release(data))
    check(release, data)
    if release.links is None:
        raise NotApplicable(f"{bench.method.name} gives no links for rows of Eve's own: she has nothing to learn from")
    return release


def first_rows(release: Release, n: int) -> OwnRows:
    """The first released row of each of n raw rows."""
    assert release.links is not None
    place = stands(release.links, release.primary, n=n, m=len(release))
    there = (place < len(release)).nonzero()[:, 0]
    labels = None if release.labels is None else release.labels[place[there]]
    return OwnRows(release.samples[place[there]], labels, there)


def released(bench: Workbench, key: Key, data: Dataset) -> OwnRows:
    """The first released row of each raw row under Eve's key.

    Raises NotApplicable if the method gives no links.
    """
    return first_rows(whole_release(bench, key, data), len(data))
