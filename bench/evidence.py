"""What the harness hands to a metric: one frozen type a kind. A metric names its kind by its type argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from torch import Tensor

from bench.types import Metric, NotApplicable, PrivacyClaim
from metrics.pairs import PairCounts


@dataclass(frozen=True, eq=False)
class PairLevel:
    """Counts under one notion of a correct pair.

    Args:
        counts: By key, then by data sample.
        links: (p, 2) int64 of the first key's whole release: raw row, released row.
        whole: By key, on the whole grid, the true links of people who can be exchanged; empty where nobody counted it.
        permuted: By key, then by set: likewise with people exchanged at random (`metrics.patients.exchanged_links`
            gives both). What chance gives where a person's images score alike: scores that are drawn independently are
            no null for them. Where there are none, that null is the one used.
        full: By key, on the whole grid, all true links; empty where nobody counted them.
    """

    counts: Sequence[Sequence[PairCounts]]
    links: Tensor
    whole: Sequence[PairCounts] = ()
    permuted: Sequence[Sequence[PairCounts]] = ()
    full: Sequence[PairCounts] = ()

    def __post_init__(self) -> None:
        if self.permuted and not len(self.whole) == len(self.permuted) == len(self.counts):
            raise ValueError(
                f"permuted counts need the whole grid's own, for the same keys: expected {len(self.counts)} of each, "
                f"got {len(self.whole)} whole and {len(self.permuted)} permuted"
            )


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """One attack against one method: counts for every key and every data sample.

    Args:
        shape: (n, m) of the whole grid.
        images: A correct pair is the same image.
        patients: A correct pair is the same person; None where nobody knows the subjects.
        samples: The data samples: int64 raw rows, drawn by person without replacement.
        seed: For the null distribution's own draws.
        primary: A correct pair is a released row and the raw row that it was made for; None where rows are not mixed.
    """

    shape: tuple[int, int]
    images: PairLevel
    patients: PairLevel | None
    samples: Sequence[Tensor]
    seed: int
    primary: PairLevel | None = None

    def level(self, name: Literal["image", "patient"]) -> PairLevel:
        """The counts at that level; NotApplicable where the data set does not say who is who."""
        if name == "image":
            return self.images
        if self.patients is None:
            raise NotApplicable("patient-level figures need subjects: this data set does not say who is who")
        return self.patients


@dataclass(frozen=True, eq=False)
class UtilityEvidence:
    """Bob's predictions for the test rows, decoded to the real classes, once per key.

    Args:
        scores: One (n, k) float32 a key; higher is likelier.
        labels: (n, k) float32: 1, 0, NaN.
        subjects: (n,) int64 or None.
        findings: The k names.
        seed: For the bootstrap.
    """

    scores: Sequence[Tensor]
    labels: Tensor
    subjects: Tensor | None
    findings: tuple[str, ...]
    seed: int


@dataclass(frozen=True, eq=False)
class LearningEvidence:
    """Bob's predictions after training on parts of the release, by the share (above 0, below 1) of its rows."""

    curve: Mapping[float, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class TransferEvidence:
    """Predictions of classifiers trained and tested on original (o) and on private (p) rows.

    `by_route` maps "o/o", "p/o", "o/p" and "p/p" (trained on / tested on) to predictions; a route that makes no sense
    for the method is missing.
    """

    by_route: Mapping[str, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class DetectionEvidence:
    """Scores of a likelihood ratio of two density models for rows of the release, with the rows' true labels.

    Args:
        released: (m, 1) scores of the released rows, higher is likelier abnormal.
        original: The same for the raw rows.
    """

    released: UtilityEvidence
    original: UtilityEvidence


@dataclass(frozen=True, eq=False)
class ProbeEvidence:
    """How a detector, trained on releases that Eve made herself, scores real releases with and without a mark.

    Args:
        released: By probe, scores (n, 1) of released rows against whether the raw row carried the mark.
        original: The same for raw rows: what there was to hide.
    """

    released: Mapping[str, UtilityEvidence]
    original: Mapping[str, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class LinearProbeEvidence:
    """Predictions of linear probes for test rows, clean and with Gaussian noise on them.

    Args:
        by_noise: By the noise's standard deviation, in standard deviations of the original rows (0 is clean):
            predictions, one (n, k) a seed; every seed has a key, a probe and noise of its own.
    """

    by_noise: Mapping[float, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class MembershipEvidence:
    """One membership attack against one method.

    Args:
        scores: By key, (n,) float64 on the CPU: higher is likelier a member.
        members: (n,) bool: whether the candidate was in the private data.
        subjects: (n,) int64 or None. A person is wholly among the members or wholly outside.
        seed: For the bootstrap and the null distribution.
    """

    scores: Sequence[Tensor]
    members: Tensor
    subjects: Tensor | None
    seed: int


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

    single: Tensor
    intersected: Tensor
    subjects: Tensor | None
    seed: int


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

    original: Tensor
    released: Tensor
    test: Tensor
    columns: tuple[str, ...]
    seed: int


@dataclass(frozen=True, eq=False)
class AuditEvidence:
    """A distinguishing game on two inputs: how often a test chosen beforehand calls a release the first input's.

    Args:
        claim: What the method claims.
        trials: Fresh releases of each input, none of which had a part in choosing the test.
        hits: Releases of the first input that the test calls the first's.
        false_alarms: Releases of the second input that it calls the first's.
        confidence: With which the bound is to hold, in (0, 1).
    """

    claim: PrivacyClaim
    trials: int
    hits: int
    false_alarms: int
    confidence: float


@dataclass(frozen=True, eq=False)
class DecodingEvidence:
    """Test images beside what a decoder, trained by somebody who holds the key, makes of their released form.

    Args:
        raw: (n, c, h, w) float32 in [0, 1].
        decoded: Likewise, row by row.
        mean: (c, h, w), the mean of the images that the decoder was trained on: what it would say knowing nothing.
        subjects: (n,) int64 or None.
        seed: For the bootstrap.
    """

    raw: Tensor
    decoded: Tensor
    mean: Tensor
    subjects: Tensor | None
    seed: int


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

    original: Tensor
    released: Tensor
    subjects: Tensor | None
    released_subjects: Tensor | None
    seed: int
    labels: Tensor | None = None
    released_labels: Tensor | None = None
    findings: tuple[str, ...] = ()
    exclusive: bool = False


@dataclass(frozen=True, eq=False)
class TimingEvidence:
    """Seconds of each timed repeat of `Key.release` over `images` rows, after warm-up, device synchronised."""

    images: int
    seconds: Sequence[float]


Evidence = (
    PairEvidence
    | MembershipEvidence
    | AnonymityEvidence
    | UtilityEvidence
    | LinearProbeEvidence
    | LearningEvidence
    | TransferEvidence
    | DetectionEvidence
    | DecodingEvidence
    | SetEvidence
    | TableEvidence
    | ProbeEvidence
    | AuditEvidence
    | TimingEvidence
)


def evidence_type(metric: type) -> type:
    """The kind of evidence that a metric class takes: the argument of its `Metric[...]` base.

    Raises:
        TypeError: The class does not say.
    """
    for base in getattr(metric, "__orig_bases__", ()):
        if get_origin(base) is Metric:
            found = get_args(base)[0]
            if isinstance(found, type):
                return found
    raise TypeError(f"{metric.__name__} must derive from Metric[...] with the kind of evidence it takes")
