"""Evidence of releases: anonymity sets, audits, decoding, promises, distributions, seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from bench.types import PrivacyClaim


@dataclass(frozen=True, eq=False)
class AnonymityEvidence:
    """Anonymity set sizes: raw rows that share a released form.

    Args:
        single: (n,) int64: number of raw rows with the released form of row i, itself included.
        intersected: The same among the rows that share its form in a second release too, made of the same rows with
            other people joining and leaving.
        subjects: (n,) int64 or None.
        seed: For the bootstrap.
    """

    single: torch.Tensor
    intersected: torch.Tensor
    subjects: torch.Tensor | None
    seed: int


Noise = Literal["holds", "fails", "unread"]


@dataclass(frozen=True)
class Calls:
    """Decisions of a fixed test on releases of two inputs.

    Releases that the test abstains on are left out.

    Args:
        trials: Fair coins that were tossed: heads releases the first input, tails the second.
        firsts: Coins that fell on the first input.
        hits: Releases of the first input that are called the first's.
        false_alarms: Releases of the second input that are called the first's.
        misses: Releases of the first input that are called the second's.
        rejections: Releases of the second input that are called the second's.
    """

    trials: int
    firsts: int
    hits: int
    false_alarms: int
    misses: int
    rejections: int

    @property
    def guesses(self) -> int:
        """Releases that the test did not abstain on."""
        return self.hits + self.false_alarms + self.misses + self.rejections

    @property
    def correct(self) -> int:
        """Right guesses."""
        return self.hits + self.rejections


@dataclass(frozen=True, eq=False)
class AuditEvidence:
    """A distinguishing game on two inputs, and the noise checks.

    Args:
        claim: What the method claims.
        calls: Of fresh releases; the test was chosen on others.
        confidence: With which the bound is to hold, in (0, 1).
        one_run: All coins lie in one release, and the number of guesses was fixed beforehand.
        games: Names of all games played to choose the test.
        noise: "holds" if the noise follows the mechanism and no number is used twice; "unread" if it is hidden.
    """

    claim: PrivacyClaim
    calls: Calls
    confidence: float
    one_run: bool = False
    games: tuple[str, ...] = ()
    noise: Noise = "unread"


@dataclass(frozen=True, eq=False)
class DecodingEvidence:
    """Test images beside their reconstructions by a key holder's decoder.

    Args:
        raw: (n, c, h, w) float32 in [0, 1].
        decoded: The same shape and range, row by row.
        mean: (c, h, w), the mean training image: the best reconstruction without a release.
        subjects: (n,) int64 or None.
        seed: For the bootstrap.
    """

    raw: torch.Tensor
    decoded: torch.Tensor
    mean: torch.Tensor
    subjects: torch.Tensor | None
    seed: int


PROMISES: Mapping[str, str] = {
    "pairs": "undeclared links",
    "labels": "rows hidden in labels",
    "links": "links withheld",
    "replay": "does otherwise when its key is used again",
}
"""Promises of a method, and the verdict on a method that breaks one."""


@dataclass(frozen=True)
class Promise:
    """The result of checking one promise.

    Args:
        broken: True if the method breaks it, beyond chance.
        p: Probability of such a finding under chance; None if nothing random is in it.
        said: The check and its finding, in words.
    """

    broken: bool
    p: float | None
    said: str


@dataclass(frozen=True)
class HonestyEvidence:
    """Results of all promise checks, and the share of undeclared links.

    Args:
        promises: By the names in `PROMISES`.
        share: Share of the groups (people or rows) claimed by the strongest search that chance does not explain.
        p: Of that search under chance, corrected for all searches.
        n: Groups that it claims.
    """

    promises: Mapping[str, Promise]
    share: float
    p: float
    n: int


@dataclass(frozen=True, eq=False)
class SetEvidence:
    """Original and released rows as two sets.

    Args:
        original: (n, d) float32.
        released: (m, d) float32 in the same space.
        subjects: (n,) int64 of the original rows, or None.
        released_subjects: (m,) int64 if each released row shows one person, else None.
        seed: For the bootstrap.
        labels, released_labels: (n, k) and (m, k) as in `Release`, in the real classes; None if there are none.
        findings: The k names.
        exclusive: Each row has exactly one of the k classes.
    """

    original: torch.Tensor
    released: torch.Tensor
    subjects: torch.Tensor | None
    released_subjects: torch.Tensor | None
    seed: int
    labels: torch.Tensor | None = None
    released_labels: torch.Tensor | None = None
    findings: tuple[str, ...] = ()
    exclusive: bool = False


@dataclass(frozen=True, eq=False)
class TableEvidence:
    """A table before and after its release.

    Args:
        original: (n, d) float32, the private rows.
        released: (m, d) float32, in the same units.
        test: (t, d) float32, raw rows of other people.
        columns: Names of the d columns; their numbers if unknown.
        seed: For the bootstrap.
    """

    original: torch.Tensor
    released: torch.Tensor
    test: torch.Tensor
    columns: tuple[str, ...]
    seed: int


@dataclass(frozen=True, eq=False)
class TimingEvidence:
    """Seconds of timed releases of `images` rows, after warm-up, device synchronised."""

    images: int
    seconds: Sequence[float]
