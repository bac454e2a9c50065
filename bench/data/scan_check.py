"""Whether what a source found fits together, before anything is decoded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Sized

import numpy as np

from bench.contract.source import PARTS, DataError, Scan, Source
from bench.data.grey_depth import FEWEST, MOST
from bench.data.groups import read_groups
from bench.data.people import people
from bench.data.spelling import spelling
from bench.validation import within

_LONGEST = 200
ATTRIBUTE = re.compile(r"[a-z][a-z0-9 -]{0,39}")
"""What an attribute may be called."""


def check_scan(source: Source, scan: Scan, size: int | None) -> None:
    """Raise ValueError where a plug-in's scan contradicts itself, DataError where it is empty."""
    n, k = scan.labels.shape
    if not n:
        raise DataError(f"{source.name}: no row was found. {source.obtain}")
    parts: dict[str, Sized | None] = {
        "labels": scan.labels, "subjects": scan.subjects, "paths": scan.paths, "samples": scan.samples,
        "parts": scan.parts, "bits": scan.bits if isinstance(scan.bits, Sequence) else None,
    }  # fmt: skip
    parts |= {f"attribute {name}": words for name, words in scan.attributes.items()}
    rows = {part: len(values) for part, values in parts.items() if values is not None}
    if len(set(rows.values())) != 1 or (scan.paths is None) == (scan.samples is None):
        raise ValueError(f"{source.name}: expected {n} paths or samples (one of them) and subjects, got rows {rows}")
    if scan.subjects is not None and not all(isinstance(subject, str) for subject in scan.subjects):
        raise ValueError(f"{source.name}: subjects must be text, as the data set writes them, and None for no people")
    for bits in set(scan.bits) if isinstance(scan.bits, Sequence) else {scan.bits}:
        within(FEWEST, MOST, bits=bits)
    if odd_parts := set(scan.parts or ()) - {*PARTS, ""}:
        raise ValueError(f"{source.name}: parts must be among {', '.join(PARTS)} or blank, got {min(odd_parts)!r}")
    if odd := [name for name in scan.attributes if ATTRIBUTE.fullmatch(name) is None]:
        raise DataError(
            f"{source.name}: an attribute must be called by at most 40 of a-z, 0-9, blanks and hyphens, got {odd[0]!r}"
        )
    _check_findings(source, scan.findings)
    _check_words(source, scan)
    if scan.labels.dtype != np.float32 or k != len(scan.findings):
        raise ValueError(
            f"{source.name}: labels must be float32 with {len(scan.findings)} columns, got {k} of {scan.labels.dtype}"
        )
    if not (np.isnan(scan.labels) | (scan.labels == 0) | (scan.labels == 1)).all():
        raise ValueError(f"{source.name}: labels must be 0, 1 or NaN")
    if scan.exclusive and not (scan.labels.sum(axis=1) == 1).all():
        raise ValueError(f"{source.name}: exclusive labels must have exactly one 1 in each row")
    if scan.exclusive and k < 2:
        raise DataError(f"{source.name}: expected at least two classes, found {k}. {source.obtain}")
    if scan.paths is not None and (size is None or scan.channels not in (1, 3)):
        raise ValueError(f"{source.name}: image files need a size and 1 or 3 channels, got {size} and {scan.channels}")
    if scan.samples is not None and f"{scan.samples.ndim} {scan.samples.dtype}" not in ("4 uint8", "2 float32"):
        raise ValueError(
            f"{source.name}: samples must be (n, c, h, w) uint8 or (n, d) float32, got "
            f"{scan.samples.shape} {scan.samples.dtype}"
        )


def _check_words(source: Source, scan: Scan) -> None:
    """Raise DataError where people or groups cannot be read, before hours of decoding."""
    try:
        people(scan.subjects)
        read_groups(scan.attributes)
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from None


def _check_findings(source: Source, findings: Sequence[str]) -> None:
    """Raise DataError where the names of findings or classes cannot be told apart, read or shown."""
    for finding in findings:
        if not finding.strip() or len(finding) > _LONGEST:
            raise DataError(
                f"{source.name}: a finding or class must have a name of 1 to {_LONGEST} letters, got {finding[:20]!r}"
            )
    try:
        counts = Counter(spelling(finding) for finding in findings)
    except DataError as error:
        raise DataError(f"{source.name}: the name of a finding or class: {error}: rename it") from None
    if again := [name for name, count in counts.items() if count > 1]:
        raise DataError(
            f"{source.name}: two findings or classes are called {again[0]!r}, whether or not in capitals: rename one"
        )
