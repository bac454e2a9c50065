"""Evidence of attacks: pair counts, membership scores, people identified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from bench.pairs.sweep import PairCounts
from bench.types import NotApplicable


@dataclass(frozen=True, eq=False)
class PersonRisk:
    """People identified by an attack: P people, K keys.

    Args:
        found: (K, P) bool.
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
        return torch.ones_like(self.found) if self.asked is None else self.asked

    def __post_init__(self) -> None:
        shape = self.found.shape
        if self.found.ndim != 2 or self.luck.shape != shape or self.chance.shape != shape[1:] or not self.found.numel():
            raise ValueError(
                f"expected found and luck (keys, people) and chance (people), at least one of each, got "
                f"{tuple(shape)}, {tuple(self.luck.shape)} and {tuple(self.chance.shape)}"
            )
        if bool((self.found & ~self.trials).any()) or not bool(self.trials.any(dim=0).all()):
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
