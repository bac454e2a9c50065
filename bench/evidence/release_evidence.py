"""Among how many raw rows each one hides.

Counts of a distinguishing game.

Test images beside what a decoder makes of their released form.

What the judge found of a method's word: links, the lack of them, labels, and a key that does the same again.

The original rows beside the released ones, as sets.

A table before and after its release.

Seconds of timed releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from bench.types import PrivacyClaim


@dataclass(frozen=True, eq=False)
class AnonymityEvidence:
    """Among how many raw rows each one hides.

    Args:
        single: (n,) int64: how many raw rows share the released form of row i, itself included.
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
    """What a test that was fixed beforehand calls releases of the two inputs. Those that it abstains on are left out.

    Args:
        trials: Fair coins that were tossed: heads releases the first input, tails the second.
        firsts: How many of them fell on the first.
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
    """A distinguishing game on two inputs, and what else bears on the claim.

    Args:
        claim: What the method claims.
        calls: Of fresh releases, none of which had a part in choosing the test.
        confidence: With which the bound is to hold, in (0, 1).
        one_run: All coins lie in one release, and the number of guesses was fixed beforehand.
        games: All that was played when the test was chosen, by name.
        noise: Whether the noise is what the mechanism says, every number drawn afresh; "unread" where that cannot be
            seen.
    """

    claim: PrivacyClaim
    calls: Calls
    confidence: float
    one_run: bool = False
    games: tuple[str, ...] = ()
    noise: Noise = "unread"


@dataclass(frozen=True, eq=False)
class DecodingEvidence:
    """Test images beside what a decoder, trained by somebody who holds the key, makes of their released form.

    Args:
        raw: (n, c, h, w) float32 in [0, 1].
        decoded: The same shape and range, row by row.
        mean: (c, h, w), the mean of the images that the decoder was trained on: what it would say knowing nothing.
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
"""What a method gives its word on, and what is said of a method that breaks it."""


@dataclass(frozen=True)
class Promise:
    """One thing that was looked into.

    Args:
        broken: Whether the method does otherwise, beyond chance.
        p: Probability under chance of what was found; None where nothing random is in it.
        said: How it was looked into, and what was found.
    """

    broken: bool
    p: float | None
    said: str


@dataclass(frozen=True)
class HonestyEvidence:
    """Every promise that was looked into, and how many rows were found where no link leads.

    Args:
        promises: By the names of `PROMISES`.
        share: Of the groups (people, or rows) that the strongest search claims, those that chance does not explain.
        p: Of that search under chance, allowing for all searches.
        n: Groups that it claims.
    """

    promises: Mapping[str, Promise]
    share: float
    p: float
    n: int


@dataclass(frozen=True, eq=False)
class SetEvidence:
    """The original rows beside the released ones, as sets.

    Args:
        original: (n, d) float32.
        released: (m, d) float32 in the same space.
        subjects: (n,) int64 of the original rows, or None.
        released_subjects: (m,) int64 of the released rows where every one has one person behind it, else None.
        seed: For the bootstrap.
        labels, released_labels: (n, k) and (m, k) as in `Release`, in the real classes; None where there are none.
        findings: The k names.
        exclusive: Whether each row has exactly one of the k classes.
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
    """A table before and after.

    Args:
        original: (n, d) float32, the private rows.
        released: (m, d) float32, in the same units.
        test: (t, d) float32, raw rows of other people.
        columns: Names of the d columns, as far as they are known; otherwise their numbers.
        seed: For the bootstrap.
    """

    original: torch.Tensor
    released: torch.Tensor
    test: torch.Tensor
    columns: tuple[str, ...]
    seed: int


@dataclass(frozen=True, eq=False)
class TimingEvidence:
    """Seconds of each timed repeat of `Key.release` over `images` rows, after warm-up, device synchronised."""

    images: int
    seconds: Sequence[float]
