"""People behind a release, and the worth of its claim for each.

A person has several images, and one image may stand several times in a folder, under several names: then a cluster of k
rows holds fewer than k people, and a bound of differential privacy per image grows with a person's images. People are
those that the data name; rows of one content count as one person's, too.

Composition over the g images of a person: if each released row is made of one image with noise of its own, (g epsilon,
g delta); else group privacy, (g epsilon, g e^((g - 1) epsilon) delta) (Dwork and Roth 2014, theorem 2.2 and lemma 2.2
of Vadhan 2017).
"""

from __future__ import annotations

__figures__ = False

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import JsonValue

from bench.data.prepared import connect
from bench.data.subjects import codes
from bench.results.records import ClaimRecord
from bench.runs.release_terms import LARGEST_EPSILON, Cause
from bench.types import Dataset, Release

HASHED = 256


@dataclass(frozen=True)
class PeopleBehind:
    """Counts of people behind a release, and causes against it.

    Args:
        lines: For the owner to read beside the claim.
        about: The same by name. They are figures of private rows outside every claim, and published nowhere.
        causes: What they say against the release.
    """

    lines: tuple[str, ...] = ()
    about: Mapping[str, JsonValue] | None = None
    causes: tuple[Cause, ...] = ()


def people_behind(
    release: Release, private: Dataset, *, k: int | None, claim: ClaimRecord | None,
    hashes: Sequence[bytes] | None = None,
) -> PeopleBehind:  # fmt: skip
    """The people and images behind released rows.

    Args:
        release: With its links, in the owner's order.
        private: Its raw rows.
        k: Of a claim of k-anonymity, else None.
        claim: Of differential privacy, else None.
        hashes: `row_hashes` of the raw rows; None computes them.
    """
    hashed = row_hashes(private.samples) if hashes is None else hashes
    digests = np.array([np.frombuffer(each, dtype=np.uint8) for each in hashed])
    contents = codes([each.tobytes() for each in digests])
    subjects = None if private.subjects is None else private.subjects.cpu().numpy()
    person = connect(subjects, digests)
    counted = "people are not named, so that images of other content count as people"
    named = "" if subjects is not None else f" ({counted})"
    if k is not None and release.links is not None:
        return _anonymity(release, person, contents, k, named)
    if claim is None:
        return PeopleBehind()
    return _composed(claim, private, release, int(np.bincount(person).max()), named)


def _anonymity(release: Release, person: np.ndarray, contents: np.ndarray, k: int, named: str) -> PeopleBehind:
    """Distinct people and images for each form that rows are released in."""
    assert release.links is not None
    links = release.links.cpu().numpy()
    form = codes(list(row_hashes(release.samples, exactly=True)))[links[:, 1]]
    people, images = (np.bincount(np.unique(np.stack((form, of[links[:, 0]])), axis=1)[0]) for of in (person, contents))
    fewer = int(((people < k) | (images < k)).sum())
    least, least_images = int(people.min()), int(images.min())
    lines = [f"the least number behind a released form: {least} people{named}, {least_images} different images"]
    causes: tuple[Cause, ...] = ()
    if fewer:
        text = f"k-anonymity of people does not hold: forms stand for fewer than k = {k} people or different images"
        causes = (
            Cause(text, f"{fewer:,} of {len(people):,} forms; at the least {least} people, {least_images} images"),
        )
        lines.append(f"{fewer:,} of {len(people):,} forms stand for fewer than k = {k} people or different images")
    return PeopleBehind(tuple(lines), {"fewest people": least, "fewest images": least_images}, causes)


def _composed(claim: ClaimRecord, private: Dataset, release: Release, most: int, named: str) -> PeopleBehind:
    """A claim composed over the units of one person."""
    each = claim.epsilon if claim.derived is None else claim.derived
    units = -(-most * (math.prod(private.samples.shape[1:]) if claim.unit == "pixel" else 1) // claim.units)
    images = f"{most} image{'s' if most > 1 else ''}"
    if each is None:
        line = f"per person, of up to {images}{named}: no finite epsilon"
        return PeopleBehind((line,), {"epsilon per person": None, "images per person": most})
    links = None if release.links is None else release.links.cpu()
    apart = links is not None and len(torch.unique(links[:, 0])) == len(links) == len(torch.unique(links[:, 1]))
    epsilon = units * each
    growth = 0.0 if apart or claim.delta == 0 else (units - 1) * each
    delta = min(1.0, math.exp(min(growth, 700.0)) * units * claim.delta)
    how = "composed" if apart else "by group privacy"
    line = f"epsilon per person, {how} over up to {images}{named}: {epsilon:g}; delta {delta:g}"
    about: dict[str, JsonValue] = {"epsilon per person": epsilon, "delta per person": delta, "images per person": most}
    if units == 1 or claim.unit == "pixel" or epsilon <= LARGEST_EPSILON:
        return PeopleBehind((line,), about)
    text = f"epsilon per person, with all images of one, is above {LARGEST_EPSILON:g} and promises next to nothing"
    return PeopleBehind((line,), about, (Cause(text, f"{epsilon:g} for {images}"),))


def row_hashes(samples: torch.Tensor, *, exactly: bool = False) -> Iterator[bytes]:
    """A hash of each row; images as 8-bit files, or exactly."""
    for part in torch.split(samples, HASHED):
        rows = part.detach().cpu().contiguous()
        if rows.ndim == 4 and not exactly:
            rows = (rows.clamp(-1, 2) * 255).round().to(torch.int16)
        for row in rows.flatten(1).numpy():
            yield hashlib.blake2b(row.tobytes(), digest_size=16).digest()
