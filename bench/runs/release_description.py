"""A release in lines for its owner to read."""

from __future__ import annotations

__figures__ = False

from collections.abc import Sequence

import torch

from bench.rows.grouping import FEWEST, person_groups
from bench.runs.release_files import label_counts
from bench.runs.release_order import Order, Publication, Published
from bench.runs.release_terms import Cause
from bench.types import Dataset
from bench.wire.text import line
from bench.workbench.owned_rows import Owned


def described(owned: Owned, made: Publication | None, order: Order, causes: Sequence[Cause]) -> Published:
    """Lines on a release; `made` is None before a training."""
    bench, record = owned.bench, owned.bench.record
    rows, people = record.rows["private"], record.subjects.get("private")
    title = f"{record.name}: {rows:,} rows" + (f" of {people:,} people" if people is not None else "")
    title += f", the {'chosen ones' if owned.chosen else 'whole data set'}, by {bench.cell.method.shown}"
    warnings = []
    files = {} if made is None else made.files
    reader = None if bench.cell.choice.features is None else bench.cell.choice.features.plugin
    fitted = {"scheme.safetensors": bench.method, "features.safetensors": reader}
    learned = [name for name, by in fitted.items() if name in files and by is not None and by.needs_public]
    if owned.outsiders:
        what = " and ".join(learned) or "its public part"
        warnings.append(
            f"public rows are {owned.outsiders:,} rows of people whom --rows leaves out, and {what} may have learned "
            "from them; --public names others"
        )
    if few := _few(bench.private):
        warnings.append(
            f"fewer than {FEWEST} people have {line(', '.join(few))}: a row with this label may be traced to one of "
            "them"
        )
    if not record.shareable:
        warnings.append("these data may not be shared; only you can read the folder until you change its mode")
    if made is not None and made.noise and order.key_out is not None:
        warnings.append("the key file holds the noise: its holder can take it away, so keep it only if you must")
    released = files.get("release.safetensors", {}).get("labels")
    encoded = made is not None and made.about.get("labels") == "encoded"
    labels = _labels(bench.private.findings, bench.private.labels if made is None else released, encoded=encoded)
    notes = [line(note) for note in (*record.notes, *filter(None, [bench.withheld]))]
    if bench.natural is not None and bench.private.labels is not None:
        gone = int((bench.private.labels.isnan() & ~bench.natural.isnan()).sum())
        withheld = "1 label is" if gone == 1 else f"{gone:,} labels are"
        if gone:
            notes.append(f"{withheld} withheld, so that yes and no are equally frequent: --no-balance keeps them")
    return Published(made, order, title, notes, labels, bench.method.claims, warnings, causes)


def _labels(findings: Sequence[str], labels: torch.Tensor | None, *, encoded: bool) -> list[str]:
    """Each finding with counts over the rows: yes, no and unknown."""
    if labels is None:
        return []
    lines = []
    for name, marks in label_counts(findings, labels).items():
        if encoded or marks["mixed"]:
            text = f"{len(labels) - marks['unknown']} {'encoded' if encoded else 'mixed'}"
        else:
            text = f"{marks['yes']} yes, {marks['no']} no"
        lines.append(f"{name} ({text}" + (f", {marks['unknown']} unknown)" if marks["unknown"] else ")"))
    return lines


def _few(private: Dataset) -> list[str]:
    """Findings and classes that some have, but fewer than `FEWEST` people."""
    people = person_groups(private, None).get("finding", {})
    return [name for name, having in people.items() if 0 < int(having.sum()) < FEWEST]
