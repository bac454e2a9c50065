"""Surrogate: another attack's confident matches train an encoder that rematches all rows.

Source: design of this project; the idea of self-training on confident matches is that of iterative closest point and
of seeded graph matching. If an attack is right more often than chance, its confident mutual matches (each is the
other's best) hold enough true pairs to fit a regression from raw to released rows; wrong pairs average out. Released
rows are then matched by the cosine between the prediction for a raw row and the released row, and the regression is
fitted again, until the matches stay.

- The surrogate is kernel ridge regression in closed form, a location of the image at a time (or of whole rows, where
  locations do not correspond), linear or with a Gaussian kernel.
- A raw row is predicted only by regressions that have not seen its own match, so that a wrong match does not confirm
  itself.
- Which surrogate is used, or none (the base attack's scores stay), is settled on releases under simulated keys, whose
  links Eve, the attacker, knows: the surrogate with the lowest mean logarithm of the links' ranks there, if it is
  surely lower than the base's; else the base stays. Ranks speak of weak scores too, if no link is first. The
  release under attack does not enter. A surrogate that agrees with itself proves nothing: in a test its predictions
  correlated .87 with the released rows that they had been matched to, and no match was right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal, TypeAlias, get_args

import torch

from bench.eve.gram_matching import log_ranks
from bench.eve.outliers import tamed
from bench.eve.own_releases import true_links
from bench.eve.plateau import levelled
from bench.eve.ridge import FOLDS, Kernel, Pairs, predict, predict_in_parts
from bench.eve.tokens import located
from bench.nets.patches import cut, fitting_patch
from bench.pairs.score_blocks import best
from bench.pairs.score_matrices import BlendedScores, CosineScores, apart
from bench.progress import report
from bench.randomness import Secret
from bench.rows.row_sets import renumbered
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, LearningCurve, PairScores, Parameter, Release, Rows, View, rows_at
from bench.validation import at_least

FEWEST_PAIRS = 2 * FOLDS
FADING = 0.7
MOVED = 0.01  # of the matches: fewer count as staying
JUDGED = 1024
SURE = 2.0  # standard errors of the mean over links
End: TypeAlias = Literal["stayed", "moved", "few"]
"""Matches stayed, moved to the last fit, or were too few for any fit."""
BASE: Mapping[str, Parameter] = {"base": "relational"}


@dataclass(frozen=True)
class Student:
    """A way to learn from matches.

    Args:
        kernel: As in `bench.eve.ridge`.
        by_location: Whether each location has a regression of its own.
        loyalty: Weight of the base's scores after the first fit, both in units of their deviation; it fades.
    """

    kernel: Kernel
    by_location: bool
    loyalty: float

    def __str__(self) -> str:
        where = "by location" if self.by_location else "whole rows"
        return f"{self.kernel} ridge, {where}, loyalty {self.loyalty}"


# A loyal student is tried first: it fails on fewer keys, which two of them may not show.
VARIANTS = (
    Student("linear", True, 0.5),
    Student("linear", True, 0.0),
    Student("linear", False, 0.5),
    Student("gauss", True, 0.5),
)


@dataclass(frozen=True)
class Surrogate(Attack):
    """Boosts another attack: learns to encode from its confident matches, then rematches.

    Args:
        base: The attack to start from.
        rounds: Most fits of the surrogate a release.
        most_pairs: Most matches that a surrogate learns from; solving is cubic in them.
        held_out: Simulated keys by which the surrogate is chosen.
    """

    name: ClassVar[str] = "surrogate"
    source: ClassVar[str] = "this project: self-training on confident mutual matches"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme; no key, no labels"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {**BASE, "rounds": 3, "held_out": 1},
        "first-look": BASE,
        "quick": BASE,
        "standard": BASE,
        "paper": BASE,
    }

    base: Attack
    rounds: int = 20
    most_pairs: int = 1000
    held_out: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.base, Attack):
            raise TypeError(f"base must be an attack, got {type(self.base).__name__}")
        if self.base.uses_labels:
            raise ValueError(f"base must be an attack that does without labels, and {self.base.name} asks for them")
        at_least(1, rounds=self.rounds, held_out=self.held_out)
        at_least(FEWEST_PAIRS, most_pairs=self.most_pairs)

    @property
    def needs_public(self) -> bool:
        """As the attack that it follows."""
        return self.base.needs_public

    def fit(self, view: View, seed: int) -> SurrogateAttacker:
        """Fit the base; choose a surrogate. Raises NotApplicable if the base does."""
        base = self.base.fit(view, derive(seed, "base"))
        plain = SurrogateAttacker(self, base, view.candidates.samples, derive(seed, "folds"), None, {})
        releases = []
        for number in range(self.held_out):
            release = view.scheme.sample_key(Secret.of_seed(seed, "held-out", number)).release(view.candidates)
            order = torch.randperm(len(release), generator=generator(derive(seed, "order", number)))
            shuffled = Release(rows_at(release.samples, order), None, None)
            releases.append(
                (shuffled, renumbered(true_links(release, "relational matching pairs rows"), released=order.argsort()))
            )
        ranks: dict[Student | None, torch.Tensor] = {}
        fits: dict[Student | None, Fits] = {}
        for number, variant in enumerate((None, *VARIANTS)):
            attacker = replace(plain, variant=variant)
            by_fit: list[list[torch.Tensor]] = []
            ends: list[End] = []
            for sealed, links in releases:
                curve: list[torch.Tensor] = []
                ends.append(attacker.ended(sealed, partial(_rank, links, curve)).end)
                by_fit.append(curve)
            most = max(map(len, by_fit))
            # A key whose matches stayed keeps its ranks.
            together = [torch.cat([curve[min(fit, len(curve) - 1)] for curve in by_fit]) for fit in range(most)]
            end = max(ends, key=get_args(End).index)
            ranks[variant] = together[-1]
            fits[variant] = Fits([float(each.mean()) for each in together], end, len(together[-1]))
            report("surrogate, variant", number, len(VARIANTS))
            if not ranks[variant].any():
                break
        chosen = _best(ranks)
        means = {variant: float(each.mean()) for variant, each in ranks.items()}
        return replace(plain, variant=chosen, ranks=means, fits=fits)


@dataclass(frozen=True, eq=False)
class SurrogateAttacker(Attacker):
    """The fitted base attack and the surrogate that goes on from it.

    Args:
        attack: Its sizes.
        base: The base attack.
        candidates: Raw rows.
        seed: Draws the folds.
        variant: The chosen surrogate; None keeps the base's scores.
        ranks: Mean binary logarithm of the links' ranks of every variant on simulated keys.
        fits: The fits of every variant on simulated keys.
    """

    attack: Surrogate
    base: Attacker
    candidates: torch.Tensor
    seed: int
    variant: Student | None
    ranks: Mapping[Student | None, float]
    fits: Mapping[Student | None, Fits] = field(default_factory=dict)

    def score(self, sealed: Release) -> PairScores:
        """Cosines of predicted and released rows, combined with the base's scores."""
        return self.ended(sealed).scores

    def ended(self, sealed: Release, watch: Callable[[PairScores], None] = lambda _: None) -> Ended:
        """Scores after the last fit; `watch` sees those before it."""
        base = self.base.score(sealed)
        watch(base)
        student = self.variant
        if student is None:
            return Ended(base, "stayed")
        scores = base
        raw, released = _tokens(self.candidates, sealed.samples, student.by_location)
        fold = torch.randint(FOLDS, (len(self.candidates),), generator=generator(self.seed)).to(sealed.samples.device)
        before: list[torch.Tensor] = []
        for turn in range(self.attack.rounds):
            pairs = self._pairs(scores, fold)
            trace = _trace_of(pairs, sealed)
            if len(trace) < FEWEST_PAIRS:
                return Ended(scores, "few")
            if any(_nearly_equal(trace, old) for old in before):
                return Ended(scores, "stayed")
            before.append(trace)
            fitted = CosineScores(*apart(*_predicted(raw, released, pairs, student.kernel)))
            scores = BlendedScores(fitted, base, student.loyalty * FADING**turn) if student.loyalty else fitted
            watch(scores)
        stayed = _nearly_equal(_trace_of(self._pairs(scores, fold), sealed), before[-1])
        return Ended(scores, "stayed" if stayed else "moved")

    def learning(self) -> tuple[LearningCurve, ...]:
        """The base's curves, and the ranks of links by fits.

        Fits converged if the matches stayed, or the ranks are on a plateau. Unless all links are first, each surrogate
        that was tried has a curve: its ranks may still fall as the budget ends.
        """
        base = tuple(replace(curve, part=f"base {curve.part}".strip()) for curve in self.base.learning())
        chosen = self.fits[self.variant]
        solved = chosen.ranks[-1] == 0
        figure = "mean binary logarithm of the ranks of links of Eve's own keys, by fits"
        converged = True
        if self.variant is not None:
            converged, reason = chosen.ended()
        elif solved:
            reason = "closed form: the base ranked all links of Eve's own keys first, so that no surrogate was tried"
        else:
            reason = "closed form: no surrogate ranked the links of Eve's own keys surely better than the base"
        own = LearningCurve(figure, tuple(enumerate(chosen.ranks)), converged, reason, "surrogate")
        rejected = (
            LearningCurve(figure, tuple(enumerate(fits.ranks)), *fits.ended(), f"rejected surrogate: {student}")
            for student, fits in self.fits.items()
            if student not in (None, self.variant) and not solved
        )
        return (*base, own, *rejected)

    def notes(self) -> Mapping[str, float | int | str]:
        """The choice, the figures behind it, and the base's notes."""
        by_variant = {f"log2 rank on simulated keys, {_named(variant)}": rank for variant, rank in self.ranks.items()}
        base = {f"base: {name}": value for name, value in self.base.notes().items()}
        return {"surrogate": _named(self.variant), **by_variant, **base}

    def _pairs(self, scores: PairScores, fold: torch.Tensor) -> Pairs:
        """Mutual matches with the largest lead, in the order of released rows.

        Fewer than a fit needs are completed by the one-sided matches with the largest lead: learning goes on.
        """
        matches = best(scores)
        leading = matches.lead.argsort(descending=True, stable=True)
        leading = leading[(~matches.mutual[leading]).long().argsort(stable=True)]
        most = min(self.attack.most_pairs, max(FEWEST_PAIRS, int(matches.mutual.sum())))
        released = leading[:most].sort().values
        return Pairs(matches.raw[released], released, fold)


@dataclass(frozen=True)
class Fits:
    """Mean ranks of links by fits, end of matches, number of links."""

    ranks: Sequence[float]
    end: End
    links: int

    def ended(self) -> tuple[bool, str]:
        """True if the fits converged, and the reason why they ended."""
        fits = len(self.ranks) - 1
        if not self.ranks[-1]:
            return True, f"solved: all links were ranked first after {fits} fits"
        if self.end == "few":
            return False, f"too few rows to fit: fewer than {FEWEST_PAIRS} in a release under Eve's own keys"
        if self.end == "stayed":
            return True, f"the matches stayed after {fits} fits at most"
        if levelled(self.ranks, self.links):
            return True, f"plateau: the last two thirds of {fits} fits brought no improvement beyond noise"
        return False, f"the budget of {fits} fits ended first"


@dataclass(frozen=True, eq=False)
class Ended:
    """Scores after the last fit, and the end of their matches."""

    scores: PairScores
    end: End


def _trace_of(pairs: Pairs, sealed: Release) -> torch.Tensor:
    return pairs.raw * len(sealed) + pairs.released


def _nearly_equal(trace: torch.Tensor, old: torch.Tensor) -> bool:
    """True if at most `MOVED` of the matches differ."""
    most = max(len(trace), len(old))
    return most - int(torch.isin(trace, old).sum()) <= MOVED * most


def _best(ranks: Mapping[Student | None, torch.Tensor]) -> Student | None:
    """The student of surely lower ranks than the base; None without any."""
    best = min(ranks, key=lambda variant: float(ranks[variant].mean()))
    gain = ranks[None] - ranks[best]
    return best if gain.mean() > SURE * gain.std() / len(gain) ** 0.5 else None


def _named(variant: Student | None) -> str:
    return "none: the base's scores" if variant is None else str(variant)


def _tokens(candidates: torch.Tensor, samples: torch.Tensor, by_location: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Raw (n, locations, q) and released rows, centred float64, or whole rows."""
    raw = _each(candidates, _patches)
    released = _each(tamed(samples), partial(located, locations=raw.shape[1]))
    if not by_location or raw.shape[1] != released.shape[1]:
        raw, released = raw.flatten(1).unsqueeze(1), released.flatten(1).unsqueeze(1)
    return _centred(raw), _centred(released)


def _each(rows: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    return rows.map(change) if isinstance(rows, Rows) else change(rows)


def _patches(rows: torch.Tensor) -> torch.Tensor:
    patch_size = fitting_patch(rows.shape[2], rows.shape[3]) if rows.ndim == 4 else None
    return rows.flatten(1).unsqueeze(1) if patch_size is None else cut(rows, patch_size)


def _centred(rows: torch.Tensor) -> torch.Tensor:
    rows = rows.double()
    return rows - rows.mean(dim=0)


def _predicted(
    raw: torch.Tensor, released: torch.Tensor, pairs: Pairs, kernel: Kernel
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `bench.eve.ridge.predict`; in parts if rows are read on demand."""
    if isinstance(raw, Rows) or isinstance(released, Rows):
        return predict_in_parts(raw, released, pairs, kernel)
    return predict(list(raw.unbind(dim=1)), list(released.unbind(dim=1)), pairs, kernel)


def _log_ranks(scores: PairScores, links: torch.Tensor) -> torch.Tensor:
    """Binary logarithms of links' ranks, of the first `JUDGED` released rows."""
    links = links[links[:, 1] < JUDGED]
    grid = scores.block(slice(None), slice(0, min(JUDGED, scores.shape[1])))
    return log_ranks(grid, links)


def _rank(links: torch.Tensor, curve: list[torch.Tensor], scores: PairScores) -> None:
    curve.append(_log_ranks(scores, links))
