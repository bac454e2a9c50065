"""People behind a release, and the worth of its claim for each.

A person has several images, and one image may stand several times in a folder, under several names: then a cluster of k
rows holds fewer than k people, and a bound of differential privacy per image grows with a person's images. People are
those that the data name; rows of one content count as one person's, too.

Composition over the g images of a person: if each released row is made of one image with noise of its own, (g epsilon,
g delta); else group privacy, (g epsilon, g e^((g - 1) epsilon) delta) (Dwork and Roth 2014, theorem 2.2 and lemma 2.2
of Vadhan 2017). Gaussian noise in which every row takes part is mu-Gaussian private, and g mu for g rows at any delta
(Dong, Roth and Su 2022, theorem 2.14): there the bound has the claim's own delta.
"""

from __future__ import annotations

__figures__ = False

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from pydantic import JsonValue

from bench.results.record_parts import PersonClaim
from bench.results.records import ClaimRecord
from bench.rows.row_sets import different_behind, distinct, people_and_contents
from bench.runs.release_terms import LARGEST_EPSILON, Cause
from bench.types import Dataset, PrivacyClaim, Release

HASHED = 256
LARGEST_SIZE = 20.0
"""Of a Gaussian claim's mu: its epsilon is above 200."""


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
    release: Release, private: Dataset, *, k: int | None, claim: PrivacyClaim | ClaimRecord | None
) -> PeopleBehind:
    """The people and images behind released rows.

    Args:
        release: With its links, in the owner's order.
        private: Its raw rows.
        k: Of a claim of k-anonymity, else None.
        claim: Of differential privacy, else None.
    """
    counted = "people are not named, so that images of other content count as people"
    named = "" if private.subjects is not None else f" ({counted})"
    if k is not None and release.links is not None:
        return _anonymity(release, private, k, named)
    return PeopleBehind() if claim is None else _composed(claim, private, release, named)


def _anonymity(release: Release, private: Dataset, k: int, named: str) -> PeopleBehind:
    """Distinct people and images for each form that rows are released in."""
    assert release.links is not None
    raw, released = release.links.cpu().T
    form = torch.unique(distinct(release.samples.flatten(1))[1].cpu()[released], return_inverse=True)[1]
    people, images = different_behind(form, *(of[raw] for of in people_and_contents(private)))
    fewer = int(((people < k) | (images < k)).sum())
    least, least_images = int(people.min()), int(images.min())
    lines = [f"the least number behind a released form: {least} people{named}, {least_images} different images"]
    causes: tuple[Cause, ...] = ()
    if fewer:  # no private cause: it is published, or the claim beside it would be false
        text = f"k-anonymity of people does not hold: forms stand for fewer than k = {k} people or different images"
        causes = (
            Cause(text, f"{fewer:,} of {len(people):,} forms; at the least {least} people, {least_images} images"),
        )
        lines.append(f"{fewer:,} of {len(people):,} forms stand for fewer than k = {k} people or different images")
    return PeopleBehind(tuple(lines), {"fewest people": least, "fewest images": least_images}, causes)


def most_images(private: Dataset) -> int:
    """The most images of one person; equal ones are one person's."""
    return int(torch.bincount(people_and_contents(private)[0]).max())


def person_claim(claim: PrivacyClaim | ClaimRecord, private: Dataset, images: int, *, apart: bool) -> PersonClaim:
    """A claim for so many images of one person.

    Args:
        claim: As the method makes it, which may be of Gaussian noise; or its record.
        private: Rows whose shape says how many units an image has.
        images: Of one person.
        apart: If each released row is made of one image, with noise of its own.
    """
    from scipy.optimize import brentq  # only where there is a claim: planning imports this file

    from bench.statistics.epsilon_bounds import gaussian_epsilon

    each = claim.epsilon if claim.derived is None else claim.derived
    if each is None or math.isinf(each):
        return PersonClaim(images=images, epsilon=None, delta=claim.delta, how="by group privacy")
    units = -(-images * (math.prod(private.samples.shape[1:]) if claim.unit == "pixel" else 1) // claim.units)
    gaussian = isinstance(claim, PrivacyClaim) and claim.family == "Gaussian" and claim.sampling_rate in (None, 1.0)
    if gaussian and not apart and units > 1 and each < gaussian_epsilon(LARGEST_SIZE, claim.delta):
        size = units * float(brentq(lambda mu: gaussian_epsilon(mu, claim.delta) - each, 0, LARGEST_SIZE))
        if size <= LARGEST_SIZE:
            epsilon = gaussian_epsilon(size, claim.delta)
            return PersonClaim(
                images=images, epsilon=epsilon, delta=claim.delta, how="by group privacy of Gaussian noise"
            )
    growth = 0.0 if apart or claim.delta == 0 else (units - 1) * each
    delta = min(1.0, math.exp(min(growth, 700.0)) * units * claim.delta)
    return PersonClaim(
        images=images, epsilon=units * each, delta=delta, how="composed" if apart else "by group privacy"
    )


def _composed(claim: PrivacyClaim | ClaimRecord, private: Dataset, release: Release, named: str) -> PeopleBehind:
    """A claim composed over the units of one person."""
    links = None if release.links is None else release.links.cpu()
    apart = links is not None and len(torch.unique(links[:, 0])) == len(links) == len(torch.unique(links[:, 1]))
    found = person_claim(claim, private, most_images(private), apart=apart)
    one = found.images == 1
    images = "one image" if one else f"{found.images} images"
    if found.epsilon is None:
        line = f"per person, {'each with' if one else 'of up to'} {images}{named}: no finite epsilon"
        return PeopleBehind((line,), {"epsilon per person": None, "images per person": found.images})
    over = "each with one image" if one else f"{found.how} over up to {images}"
    line = f"epsilon per person, {over}{named}: {found.epsilon:g}; delta {found.delta:g}"
    about: dict[str, JsonValue] = {
        "epsilon per person": found.epsilon, "delta per person": found.delta, "images per person": found.images,
    }  # fmt: skip
    if found.images == 1 or claim.unit == "pixel" or found.epsilon <= LARGEST_EPSILON:
        return PeopleBehind((line,), about)
    text = f"epsilon per person, with all images of one, is above {LARGEST_EPSILON:g} and promises next to nothing"
    return PeopleBehind((line,), about, (Cause(text, f"{found.epsilon:g} for {images}", private=True),))


def row_hashes(samples: torch.Tensor, *, exactly: bool = False) -> Iterator[bytes]:
    """A hash of each row; images as 8-bit files, or exactly."""
    for part in torch.split(samples, HASHED):
        rows = part.detach().cpu().contiguous()
        if rows.ndim == 4 and not exactly:
            rows = (rows.clamp(-1, 2) * 255).round().to(torch.int16)
        for row in rows.flatten(1).numpy():
            yield hashlib.blake2b(row.tobytes(), digest_size=16).digest()
