"""Attacks: Eve's view, her scores of pairs, and the attacker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from pydantic import JsonValue

from bench.contract.dataset import Dataset, Release
from bench.contract.eve_profile import SAME_IMAGE, OtherStudy, TwoReleases
from bench.contract.learning_curve import LearningCurve
from bench.contract.method import Scheme
from bench.contract.plugin import NotApplicable, Plugin
from bench.contract.seal import ContractError


@dataclass(frozen=True, eq=False)
class View:
    """Eve's knowledge before she sees the release: no links, no keys.

    Args:
        public: The public data set, with labels.
        scheme: The fitted scheme; she may draw her own keys from it.
        candidates: The raw rows she tries to find in the release, by `profile` (worst case: exactly the released
            rows), in another order than their owner's. Labels only for attacks that ask for them, and where released
            samples depend on them; subjects never. For membership attacks, which always get labels: the released rows
            among as many others as there are, in random order.
        control: Rows of the same kind that are known not to be in the release, and not among the candidates.
        trained: Gradient steps of the method's own training, 0 if it names none: a learned attack takes as many.
        profile: What Eve holds, as `bench.contract.eve_profile.Profile` writes itself. Under `two-releases` the
            candidates are rows of an earlier release, and no raw images; under `public-only` there are none.
        known: Raw rows whose released rows come with each release (`Attacker.score_knowing`), and which are no
            candidates; None for none.
        queries: Images that she may choose, and whose encodings come with each release (`Attacker.queries`); 0 for
            none.
        other: The fitted scheme of the release that the candidates are rows of, if another method made it.
    """

    public: Dataset
    scheme: Scheme
    candidates: Dataset
    control: Dataset
    trained: int = 0
    profile: str = SAME_IMAGE
    known: Dataset | None = None
    queries: int = 0
    other: Scheme | None = None

    @property
    def relinks(self) -> bool:
        """True if the candidates are rows of an earlier release."""
        return self.profile.partition("[")[0] == TwoReleases.name

    @property
    def earlier(self) -> Scheme:
        """The scheme of the earlier release."""
        return self.scheme if self.other is None else self.other

    @property
    def by_person(self) -> bool:
        """True if a correct pair is two images of one person."""
        return self.profile.partition("[")[0] == OtherStudy.name


class PairScores(ABC):
    """Scores of (raw row, released row) pairs; higher means likelier equal.

    They are read in blocks, never whole.
    """

    shape: tuple[int, int]

    @abstractmethod
    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Scores of a block, float32 or float64, equal in every block."""

    def factors(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Rows (n, d) and (m, d) with the scores as inner products.

        None (the default) if there are none.

        Float64 multiples of 2^-26, no row longer than 1 + 2^-10, so that float64 products of them are exact in any
        order. They spare the judge half of the reading; `bench.pairs.score_matrices.CosineScores` has them.
        """
        return None


class Attacker(ABC):  # noqa: B024  (an attacker overrides whichever of the two it can do)
    """A trained attack. It only scores; the harness judges."""

    def score(self, sealed: Release) -> PairScores:
        """Scores of all (candidate, released) pairs for a shuffled release without links."""
        raise NotApplicable(f"{type(self).__name__} does not score pairs")

    def score_knowing(self, sealed: Release, raw: Dataset, released: Release) -> PairScores:
        """Scores of an Eve who knows pairs under the release's key.

        Default: `score`, as if she knew none.

        Args:
            sealed: The release, without the rows that she knows.
            raw: (k, ...) rows that she knows, without labels.
            released: (k, ...) the row released of each, or its encoding.
        """
        return self.score(sealed)

    def queries(self, budget: int) -> torch.Tensor | None:
        """Images (q, ...) that she has encoded under each key.

        q is at most `budget`. Default: None, for the first control rows.
        """
        return None

    def membership(self, sealed: Release) -> torch.Tensor:
        """Membership scores (n,), float32 or float64; higher means likelier a member."""
        raise NotApplicable(f"{type(self).__name__} does not score membership")

    def notes(self) -> Mapping[str, int | float | str]:
        """Notes for the record on the attack and its last release.

        Default: none.
        """
        return {}

    def learning(self) -> Sequence[LearningCurve]:
        """The curve of each training; required if the attack `learns`.

        Default: none, which says that nothing was trained.
        """
        return ()


class Attack(Plugin):
    """An attack: fits on Eve's view, then scores releases under unseen keys.

    `scores` says which of the two an attacker gives; `knowledge` in a sentence what Eve is assumed to know;
    `uses_labels` asks for raw and released labels (membership attacks always get them). `learns` says that it trains a
    model by steps: its attackers then give the curve of each training, and a bound rests on it only if it converged.
    `trainings` counts trainings with a seed each, to which keys are dealt: intervals then hold over trainings too.
    `relinks` says that it can link rows of two releases: its candidates are then released rows (`two-releases`), and it
    is fitted anew for each key.
    """

    scores: ClassVar[Literal["pairs", "membership"]] = "pairs"
    knowledge: ClassVar[str]
    uses_labels: ClassVar[bool] = False
    learns: ClassVar[bool] = False
    trainings: ClassVar[int] = 1
    relinks: ClassVar[bool] = False

    @property
    def makes_releases(self) -> bool:
        """If it cannot do without releases of Eve's own. Default: False.

        It does not apply where another tool released the rows. No key of a record holds it, as no figure does.
        """
        return False

    @abstractmethod
    def fit(self, view: View, seed: int) -> Attacker:
        """Train or set up.

        It draws its own keys with `view.scheme.sample_key` if it needs any.
        """


def learning_of(attack: Attack, attacker: Attacker, part: str = "") -> list[JsonValue]:
    """The attacker's trainings as a record holds them, under `LEARNING`.

    Args:
        attack: The attack that made it.
        attacker: After its last score.
        part: The finding, if there is an attacker for each.

    Raises:
        ContractError: The attack learns, and there is no curve.
    """
    curves = attacker.learning()
    if attack.learns and not curves:
        raise ContractError(f"{attack.name} says that it learns: expected a LearningCurve of each training, got none")
    return [{**curve.content(), "part": f"{part} {curve.part}".strip()} for curve in curves]
