"""Evidence: frozen results that evaluators hand to metrics.

Metrics read these types alone, so a metric runs without a method, an attack or a data set.
"""

from __future__ import annotations

__figures__ = True

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from bench.pairs.sweep import PairCounts
from bench.types import Attributes, NotApplicable, PrivacyClaim

EVES_FORM, OWNERS_FORM = "trained on simulations of Eve's form", "trained on simulations of the owner's form"
"""Evidence of an attack that was trained twice, on releases of another author's method (`part_of`)."""


def part_of(finding: str, form: str) -> str:
    """Name of evidence of a finding (may be empty) and a form.

    >>> part_of("classes", OWNERS_FORM), part_of("", EVES_FORM)
    ("classes, trained on simulations of the owner's form", "trained on simulations of Eve's form")
    """
    return f"{finding}, {form}" if finding else form


def finding_of(part: str) -> str:
    """The finding in a name of evidence.

    >>> finding_of(part_of("classes", OWNERS_FORM)), finding_of(EVES_FORM), finding_of("classes")
    ('classes', '', 'classes')
    """
    for form in (EVES_FORM, OWNERS_FORM):
        part = "" if part == form else part.removesuffix(f", {form}")
    return part


@dataclass(frozen=True, eq=False)
class PersonRisk:
    """People identified by an attack: P people, K keys.

    Args:
        found: (K, P) float64 in [0, 1]: the probability of identification, tied best scores at random; 0 or 1 without
            ties.
        luck: (K, P) float64 in [0, 1]: the probability of identification if the attack's answers stayed the same and
            rows were dealt to people at random. An attack that names one person for every row always finds that person.
        chance: (P,) float64: the same probability for random scores.
        asked: (K, P) bool: keys under which a person could be found, at least one each. None stands for all.
        groups: By attribute and group, (P,) bool: its members. Sex, age, view and site if the data name them,
            findings, and the number of images.
        wrong: If `luck` was estimated by counting: (P,) int64 false identifications of each person, and (P,) int64
            trials. None if `luck` is exact.
    """

    found: torch.Tensor
    luck: torch.Tensor
    chance: torch.Tensor
    groups: Mapping[str, Mapping[str, torch.Tensor]] = field(default_factory=dict)
    asked: torch.Tensor | None = None
    wrong: tuple[torch.Tensor, torch.Tensor] | None = None

    @property
    def trials(self) -> torch.Tensor:
        """(K, P) bool: keys under which each person could be found."""
        return torch.ones_like(self.found, dtype=torch.bool) if self.asked is None else self.asked

    def __post_init__(self) -> None:
        shape = self.found.shape
        if self.found.ndim != 2 or self.luck.shape != shape or self.chance.shape != shape[1:] or not self.found.numel():
            raise ValueError(
                f"expected found and luck (keys, people) and chance (people), at least one of each, got "
                f"{tuple(shape)}, {tuple(self.luck.shape)} and {tuple(self.chance.shape)}"
            )
        if bool(((self.found > 0) & ~self.trials).any()) or not bool(self.trials.any(dim=0).all()):
            raise ValueError("expected each person to have a key, and to be found only under such keys")


@dataclass(frozen=True, eq=False)
class PairLevel:
    """Counts under one notion of a correct pair.

    Args:
        counts: By key, then by data sample.
        links: (p, 2) int64 of the first key's whole release: raw row, released row.
        whole: By key, on the whole grid, the true links of exchangeable people; empty if not counted.
        permuted: By key, then by set: the same counts with people exchanged at random
            (`bench.pairs.person_links.exchanged_links` gives both): the null distribution if a person's images score
            alike. If empty, the null of independent scores is used.
        full: By key, on the whole grid, all true links.
        owners: By key (c,) int64, the person (`PairEvidence.persons`) behind each released row with a link, in the
            order of `PairCounts.top_1`.
    """

    counts: Sequence[Sequence[PairCounts]]
    links: torch.Tensor
    whole: Sequence[PairCounts] = ()
    permuted: Sequence[Sequence[PairCounts]] = ()
    full: Sequence[PairCounts] = ()
    owners: Sequence[torch.Tensor] = ()

    def __post_init__(self) -> None:
        if self.permuted and not len(self.whole) == len(self.permuted) == len(self.counts):
            raise ValueError(
                f"permuted counts need the whole grid's own, for the same keys: expected {len(self.counts)} of each, "
                f"got {len(self.whole)} whole and {len(self.permuted)} permuted"
            )
        if not len(self.full) == len(self.owners) == len(self.counts):
            raise ValueError(
                f"the whole release and its rows' people are needed for every key: expected {len(self.counts)} of "
                f"each, got {len(self.full)} and {len(self.owners)}"
            )


@dataclass(frozen=True, eq=False)
class ExchangedAreas:
    """ReID AUC of true links and of links with people exchanged.

    Args:
        level: Of the links: an attack's primary figure is by person if people have several images, else by image.
        areas: (1 + sets,) float64, mean over keys, the true links first (`bench.pairs.exchanged_areas`).
        people: A hash of the exchanges.
    """

    level: Literal["image", "patient"]
    areas: torch.Tensor
    people: str

    def __post_init__(self) -> None:
        if self.areas.ndim != 1 or len(self.areas) < 2 or not bool(self.areas.isfinite().all()):
            raise ValueError(f"expected the area of each exchange, two or more, got {tuple(self.areas.shape)}")


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """One attack against one method: counts by key and data sample.

    Args:
        shape: (n, m) of the whole grid.
        images: A correct pair is the same image.
        patients: A correct pair is the same person; None if the subjects are unknown.
        samples: The data samples: int64 raw rows, drawn by person without replacement.
        persons: (n,) int64, the person of each raw row, from 0; one per row if the subjects are unknown.
        known: True if the data name the subjects.
        draws: Seed of people drawn with replacement: the same for every method and attack on the same rows.
        resamples: A name shared by all evidence of the same people and resamples; may be empty.
        seed: For the null distribution's own draws.
        primary: A correct pair is a released row and the raw row that it was made for; None if rows are not mixed.
        people: People identified by Eve's first guesses; None if not measured.
        exchanged: ReID AUC among those of exchanged people; None with too few people to exchange.
        trainings: By key, the number of the attack's training; empty if it gives no learning curve.
    """

    shape: tuple[int, int]
    images: PairLevel
    patients: PairLevel | None
    samples: Sequence[torch.Tensor]
    persons: torch.Tensor
    known: bool
    draws: int
    resamples: str
    seed: int
    primary: PairLevel | None = None
    people: PersonRisk | None = None
    exchanged: ExchangedAreas | None = None
    trainings: Sequence[int] = ()

    def __post_init__(self) -> None:
        if len(self.trainings) not in (0, len(self.images.full)):
            raise ValueError(
                f"expected the training of each of {len(self.images.full)} keys, or none, got {len(self.trainings)}"
            )

    def level(self, name: Literal["image", "patient"]) -> PairLevel:
        """The counts at that level; NotApplicable for "patient" without subjects."""
        if name == "image":
            return self.images
        if self.patients is None:
            raise NotApplicable("patient-level figures need subjects: this data set does not say who is who")
        return self.patients


@dataclass(frozen=True, eq=False)
class MembershipEvidence:
    """One membership attack against one method.

    Args:
        scores: By key, (n,) float64 on the CPU: higher is likelier a member.
        members: By key, (n,) bool: the candidate was among the rows of that key's release. Drawn independently for each
            key.
        subjects: (n,) int64 or None. A person is wholly among the members of a key or wholly outside.
        seed: For the null distribution.
        draws: Seed of people drawn with replacement: the same for every method and attack on the same candidates.
        groups: By attribute and group, (people,) bool, people in the order of their numbers: its members.
    """

    scores: Sequence[torch.Tensor]
    members: Sequence[torch.Tensor]
    subjects: torch.Tensor | None
    seed: int
    draws: int
    groups: Mapping[str, Mapping[str, torch.Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.members) != len(self.scores) or not self.scores:
            raise ValueError(
                f"expected members for every key, and a key, got {len(self.members)} for {len(self.scores)} keys"
            )


@dataclass(frozen=True, eq=False)
class CopyEvidence(MembershipEvidence):
    """One release, scored at private and at held-out rows.

    Members are the private rows, others the held-out ones; a score is higher the nearer a released row is, beside
    other known rows.
    """


@dataclass(frozen=True, eq=False)
class UtilityEvidence:
    """Bob's predictions for test rows in the real classes, by key.

    Args:
        scores: One (n, k) float32 a key; higher is likelier.
        labels: (n, k) float32: 1, 0, NaN.
        subjects: (n,) int64 or None.
        findings: The k names.
        seed: For the bootstrap.
        outsiders: Predictions as `scores`, by models chosen without other people's labels, on held-out released rows
            alone; empty if no such choice was made.
        attributes: Groups that the rows belong to; None if unknown.
    """

    scores: Sequence[torch.Tensor]
    labels: torch.Tensor
    subjects: torch.Tensor | None
    findings: tuple[str, ...]
    seed: int
    outsiders: Sequence[torch.Tensor] = ()
    attributes: Attributes | None = None


@dataclass(frozen=True, eq=False)
class LearningEvidence:
    """Bob's predictions by the share of released rows in his training."""

    curve: Mapping[float, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class LinearProbeEvidence:
    """Predictions of linear probes for clean and for noisy test rows.

    Args:
        by_noise: By the noise's standard deviation, in standard deviations of the original rows (0 is clean):
            predictions, one (n, k) a seed; every seed has a key, a probe and noise of its own.
    """

    by_noise: Mapping[float, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class DetectionEvidence:
    """Likelihood-ratio scores of released rows, with the rows' true labels.

    Args:
        released: (m, 1) scores of the released rows, higher is likelier abnormal.
        original: The same for the raw rows.
    """

    released: UtilityEvidence
    original: UtilityEvidence


@dataclass(frozen=True, eq=False)
class TransferEvidence:
    """Predictions by route, trained/tested on original or released: "o/o", "p/o", "o/p", "p/p"."""

    by_route: Mapping[str, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class CADPClassifierEvidence(TransferEvidence):
    """The same of the classifier of the CADP paper."""


@dataclass(frozen=True, eq=False)
class ProbeEvidence:
    """Detector scores of releases, and raw rows, with and without a mark.

    The detector was trained on releases that Eve made herself. By probe, scores (n, 1) beside whether the raw row
    carried the mark.
    """

    released: Mapping[str, UtilityEvidence]
    original: Mapping[str, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class AttributeEvidence:
    """Guesses at attributes of people by a model of Eve's releases.

    By attribute: scores (n, g) for its g groups beside the truth (n, g), for the same n raw rows in all. Of two groups
    one is scored.

    Args:
        released: From released rows alone, by key.
        original: From the raw rows, by as many trainings as keys or one.
        labels: From released labels alone, by key; empty if none are released.
    """

    released: Mapping[str, UtilityEvidence]
    original: Mapping[str, UtilityEvidence]
    labels: Mapping[str, UtilityEvidence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = {len(part.labels) for part in self.released.values()}
        if len(rows) != 1 or set(self.original) != set(self.released) or set(self.labels) - set(self.released):
            raise ValueError(
                f"expected the same attributes of the same rows, one at least, got {sorted(self.released)} of "
                f"{sorted(rows)} rows, {sorted(self.original)} of raw rows and {sorted(self.labels)} of labels"
            )


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
CoinUse = Literal["replace", "include"]


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

    @property
    def sides(self) -> Literal["both", "first", "second"]:
        """Inputs that are guessed at all."""
        if not self.misses + self.rejections:
            return "first"
        return "both" if self.hits + self.false_alarms else "second"


@dataclass(frozen=True, eq=False)
class AuditEvidence:
    """A distinguishing game on two inputs, and the noise checks.

    Args:
        claim: What the method claims.
        calls: Of fresh releases; the test was chosen on others.
        confidence: With which the bound is to hold, in (0, 1).
        one_run: All coins lie in one release, and the number of guesses was fixed beforehand.
        games: Names of all games played to choose the test.
        coins: Use of the coins: "replace" a row by another, or "include" it.
        runs: Independent releases, each with the same number of coins and guesses; 1 if all coins count together.
        black_box: Calls of a weaker game, one run too, on the publication alone; None without such a game.
        reach: Bound that the best test is expected to show of a mechanism of just the claimed epsilon; None if unknown.
        noise: "holds" if the noise follows the mechanism and no number is used twice; "unread" if it is hidden.
        sided: False counts guesses of one side as those of both, as records did before they held `runs`.
        limited: False leaves out the most that the test could show, as earlier records did.
    """

    claim: PrivacyClaim
    calls: Calls
    confidence: float
    one_run: bool = False
    games: tuple[str, ...] = ()
    noise: Noise = "unread"
    coins: CoinUse = "replace"
    runs: int = 1
    black_box: Calls | None = None
    reach: float | None = None
    sided: bool = True
    limited: bool = True


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


@dataclass(frozen=True, eq=False)
class Likeness:
    """Likeness of n raw images to K reconstructions and two guesses.

    Args:
        rebuilt: (K, n) float64, by key.
        mean: (n,) of the mean image of Eve's people.
        nearest: (n,) of the public image that is nearest to the raw image.
        exchanged: (1 + S,) means over exchangeable rows of the first key, the true one first, then with people
            exchanged; may be empty.
    """

    rebuilt: torch.Tensor
    mean: torch.Tensor
    nearest: torch.Tensor
    exchanged: torch.Tensor


@dataclass(frozen=True, eq=False)
class ReconstructionEvidence:
    """Images that Eve rebuilds from released rows, compared with the raw ones.

    Args:
        likeness: By figure: "SSIM", "MS-SSIM", "PSNR".
        scales: Of MS-SSIM.
        places: (K, n) float64 in [0, 1]: the share of other raw images that are farther from a reconstruction than its
            own, ties one half: the mean is a ReID AUC by row.
        first: (K, n) float64: the probability that its own raw image is the nearest, ties at random.
        exchanged: (1 + S,) means of `places` of exchangeable people, the true ones first, then with people exchanged;
            empty if there are none.
        subjects: (n,) int64 or None.
        seed: For the bootstrap.
    """

    likeness: Mapping[str, Likeness]
    scales: int
    places: torch.Tensor
    first: torch.Tensor
    exchanged: torch.Tensor
    subjects: torch.Tensor | None
    seed: int


PROMISES: Mapping[str, str] = {
    "pairs": "undeclared links",
    "labels": "rows hidden in labels",
    "links": "links withheld",
    "replay": "does otherwise when its key is used again",
    "faces": "does otherwise when called as by an attacker",
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
class ImageSet:
    """Images as a network's features, and the likeness of random pairs.

    Args:
        features: (n, d) float32; None without a network.
        people: (n,) int64: rows of one number show one person; None if unknown.
        labels: (n, k): 1, 0 or NaN; None if there are none.
        alike: By finding (the empty name: of all images), MS-SSIM (p,) float64 of pairs that share no image.
    """

    features: torch.Tensor | None
    people: torch.Tensor | None
    labels: torch.Tensor | None
    alike: Mapping[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class FidelityEvidence:
    """Released images and raw ones, each beside raw images of other people.

    Args:
        reference: Raw images of people who are not in the release.
        original: The private images.
        released: The released images.
        network: Name of the network that read the features, and its side; without one, the reason.
        findings: The k names.
        seed: For groups of people, and draws of equal numbers.
    """

    reference: ImageSet
    original: ImageSet
    released: ImageSet
    network: str
    findings: tuple[str, ...]
    seed: int


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
