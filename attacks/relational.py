"""Relational: the release is matched by the relations among its rows.

Source: design of this project; graph matching by Gram matrices. A wide network with random weights has a nearly
deterministic kernel, so that Eve, the attacker, knows the inner products of released rows in advance: she releases the
candidates under keys of her own and takes the mean. Signatures of rows (length, quantiles of inner products, leverages
at several ridges), compared in units of how far they differ from key to key (Fisher's discriminant), begin a one-to-one
matching (Hungarian method), which is then refined in turn: score each pair by the inner product of their Gram rows, the
columns matched as they are now; match anew; until the matching stays.

Differences from plain relational matching:
- The diagonal of Gram matrices is left out of the refinement; it would hold every matching in place.
- Each location (and the whole row) has a Gram matrix; it counts by how well it survives a change of key. If those of
  all locations would take more than a GiB, or their comparison more than `MATCHED` products a round, an even part of
  the locations has one.
- How a release is read (patches in place, absolute values, bags of patches, patches put back in place), whether the
  matching is refined, how strongly the first scores stay in, and how sharp the posterior is: all are chosen by the
  likelihood of the links of held-out simulated keys. No figure of the release enters the choice.

Scores are log-posteriors: softmax over the candidates of each released row, and over the released rows of each
candidate in turn (Sinkhorn) if there are equally many. Above `refine_up_to` rows, `LANDMARKS` random candidates are
matched with the release in their stead, and score all pairs (`bench.eve.landmark_matching`); the record's notes say so.
Of many rows (thousands) an even part of the locations
has signatures, as many as have `SORTED` inner products, and the reading is tried on some of the candidates: the notes
say so too. Of 600 phantoms under two keys, signatures of 9, of 4 and of 2 of 17 locations gave mean ranks of 1.00, 1.03
and 1.66 (`syfer-random`) and of 122, 158 and 195 (`instahide[k=3]`); an even part of the Gram matrices, down to 2 of
17, changed nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import torch

from bench.eve.gram_matching import (
    REFERENCE_ROWS,
    KeyStatistics,
    Look,
    Refined,
    Seen,
    learn,
    likelihood,
    log_posterior,
    log_ranks,
    of_one,
    refine,
    standardise,
)
from bench.eve.landmark_matching import BalancedScores, Landmarks, standardised
from bench.eve.own_releases import own_rows, some_released, true_links
from bench.eve.plateau import levelled
from bench.eve.tokens import READINGS
from bench.nets.patches import fitting_patch
from bench.pairs.score_matrices import CosineScores, TableScores, apart
from bench.progress import report
from bench.randomness import Secret
from bench.seeds import derive, drawn, generator
from bench.types import (
    Attack,
    Attacker,
    Dataset,
    LearningCurve,
    NotApplicable,
    PairScores,
    Parameter,
    Release,
    Scheme,
    View,
    paired,
)
from bench.validation import at_least, one_of

TRIAL_KEYS = 2
GRAM_BYTES = 1 << 30  # of the Gram matrices of a release; four times that is held while keys are learned from
MATCHED = 1 << 36  # products of numbers in a round, as many rows being released: 318 locations of 600 rows, 20 of 1,500
SORTED = 1 << 30  # inner products of a release with reference rows: of 5,000 rows a hundred locations have them
TRIED_ON = 2048  # candidates that readings are tried on
LANDMARKS = 1024
ENOUGH = -0.02
LOCATIONS = 16
JUDGED_ROWS = 1024  # released rows by which a variant is judged where the matching is not refined
OWN_SHARES = (1.0, 0.3, 0.1)
TRIAL_BLENDS = (0.3,)
BLENDS = (0.1, 0.3, 1.0)
SHARPNESSES = tuple(2.0**power for power in range(-3, 7))


@dataclass(frozen=True)
class Relational(Attack):
    """Matches the Gram matrices of the release to those of simulated releases.

    Args:
        keys: Simulated keys behind the mean Gram matrices and signatures.
        held_out: Further simulated keys, by which the variant is chosen.
        reading: The reading of released rows (see `bench.eve.tokens`); "auto" tries all on two simulated keys.
        refine_up_to: Rows up to which all are matched in the refinement; the Hungarian method takes cubic time. Of
            more, landmarks are. 0 refines nothing: signatures alone are compared, by their cosine.
    """

    name: ClassVar[str] = "relational"
    source: ClassVar[str] = "this project: graph matching by Gram matrices of simulated releases"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme; no key, no labels"
    needs_public: ClassVar[bool] = False
    relinks: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"keys": 4, "held_out": 1},
        "first-look": {"keys": 8},
        "quick": {"keys": 12},
        "standard": {"keys": 16},
        "paper": {"keys": 32},
    }

    keys: int = 12
    held_out: int = 2
    reading: Literal["auto", "places", "sizes", "bags", "unshuffled"] = "auto"
    refine_up_to: int = 2000

    def __post_init__(self) -> None:
        at_least(2, keys=self.keys)
        at_least(1, held_out=self.held_out)
        one_of(("auto", *READINGS), reading=self.reading)
        at_least(0, refine_up_to=self.refine_up_to)

    def fit(self, view: View, seed: int) -> RelationalAttacker:
        """Simulate keys. Raises NotApplicable without links or with fewer than 3 rows."""
        raw = own_rows(view) if view.relinks else view.candidates
        n = min(len(raw), len(view.candidates))
        if n < 3:
            raise NotApplicable(f"relational matching compares rows with each other: needs at least 3, got {n}")
        n = len(raw)
        simulate = partial(_simulate, view.scheme, raw, seed)
        few = _some(view.scheme, raw, derive(seed, "tried on"))
        trial, held = (partial(_simulate, view.scheme, few, seed, name) for name in ("trial", "held-out"))
        many = max(n, len(view.candidates))  # of an earlier release there may be more than Eve's own
        landmarks = None if many <= self.refine_up_to else min(n, LANDMARKS)
        a = many if landmarks is None else landmarks
        related = bool(self.refine_up_to)
        spent = 0 if landmarks is None else raw.samples[0].numel() * many * a  # of whole rows with landmarks
        most = max(1, min(GRAM_BYTES // (4 * many * a), (MATCHED - spent) // (many * a * a)))
        signed = None if many <= REFERENCE_ROWS else max(1, SORTED // (many * REFERENCE_ROWS))
        looks = [
            Look(reading, _locations(raw.samples), related, derive(seed, "reference"), most, signed, landmarks)
            for reading in READINGS
            if self.reading in ("auto", reading)
        ]
        tried: list[Variant] = []
        for look in looks:
            if look.reading == "unshuffled" and tried and tried[0].statistics.of[1] == 1:
                continue  # one patch has no order
            if len(looks) > 1 and (not tried or tried[-1].likelihood < ENOUGH):
                tried.append(_calibrate(learn(look, trial, TRIAL_KEYS, len(few)), held, 1, TRIAL_BLENDS))
        chosen = max(tried, key=lambda variant: variant.likelihood).statistics.look if tried else looks[0]
        statistics = learn(chosen, partial(simulate, "key"), self.keys, n)
        if view.relinks:  # one release takes the place of the mean over keys
            statistics = of_one(statistics, _simulate(view.earlier, raw, seed, "earlier", 0), n)
        fitted = _calibrate(statistics, partial(simulate, "held-out"), self.held_out, BLENDS)
        if view.relinks:
            earlier = paired(view.candidates.samples, None)
            fitted = replace(fitted, statistics=of_one(fitted.statistics, earlier, len(earlier)))
        return RelationalAttacker(fitted, self.keys, len(few) if tried else n)


@dataclass(frozen=True, eq=False)
class Variant:
    """A way to score, and how it did on held-out keys.

    Args:
        statistics: The result of simulated keys.
        own: As in `KeyStatistics.factors`.
        blend: As in `bench.eve.gram_matching.refine`; None compares signatures only.
        sharpness: As in `bench.eve.gram_matching.log_posterior`.
        likelihood: Mean log-posterior of the links of held-out keys, in nats.
        ranks: Mean binary logarithm of the ranks of held-out links before the refinement and after each round.
        links: The number of these links.
        stayed: Whether the matching of every held-out key stayed.
        rejected: Refined variants that made held-out links less likely than this one.
    """

    statistics: KeyStatistics
    own: float
    blend: float | None
    sharpness: float
    likelihood: float
    ranks: tuple[float, ...] = ()
    links: int = 0
    stayed: bool = True
    rejected: tuple[Variant, ...] = ()

    def ended(self) -> tuple[bool, str]:
        """True if its refinement converged, and the reason why it ended."""
        rounds = len(self.ranks) - 1
        if self.stayed:
            return True, f"the matchings stayed after {rounds} rounds at most"
        if self.likelihood > ENOUGH:
            return True, f"solved: held-out links were known after {rounds} rounds"
        if levelled(self.ranks, self.links):
            return True, f"plateau: the last two thirds of {rounds} rounds brought no improvement beyond noise"
        return False, f"the budget of {rounds} rounds ended first"

    def refined(
        self, seen: Seen, cols: torch.Tensor | None = None, watch: Callable[[torch.Tensor], None] | None = None
    ) -> Refined:
        """Standardised scores (n, m) of released rows `cols` (int64; None: all).

        `watch` is called with the scores before the refinement and after each round.
        """
        raw, released = self.statistics.factors(seen, self.own)
        asked = CosineScores(*apart(raw, released if cols is None else released[cols]))
        grams, weights = self.statistics.grams, self.statistics.weights
        if self.blend is not None and grams is not None and seen.parts:
            at = self.statistics.look.chosen(len(raw)).to(raw.device)
            start = CosineScores(*apart(raw[at], released)).block(slice(None), slice(None))
            matched = Landmarks(at, grams, weights).matched(seen.parts, start, self.blend, watch)
            return Refined(matched.scores(asked, self.blend, cols), matched.stayed)
        if seen.parts and cols is None:
            return Refined(standardised(asked, raw.device), True)
        start = asked.block(slice(None), slice(None))
        if self.blend is None or grams is None or seen.grams is None:
            scores = standardise(start)
            if watch is not None:
                watch(scores)
            return Refined(scores, True)
        return refine(grams, seen.grams, weights, start, self.blend, watch)


@dataclass(frozen=True, eq=False)
class RelationalAttacker(Attacker):
    """The variant that did best on held-out simulated keys.

    Args:
        variant: The way it scores.
        keys: Number of keys behind it.
        tried_on: Candidates that its reading was tried on.
    """

    variant: Variant
    keys: int
    tried_on: int

    def score(self, sealed: Release) -> PairScores:
        """Log-posteriors; cosines of signatures if `refine_up_to` is 0."""
        statistics = self.variant.statistics
        look, seen = statistics.look, statistics.look(sealed.samples)
        if not look.related:
            return CosineScores(*apart(*statistics.factors(seen, self.variant.own)))
        if look.landmarks:
            return BalancedScores(self.variant.refined(seen).scores, self.variant.sharpness)
        return TableScores(log_posterior(self.variant.refined(seen).scores, self.variant.sharpness))

    def learning(self) -> tuple[LearningCurve, ...]:
        """Ranks of held-out links by rounds of refinement.

        A refinement converged if the matchings stayed, or the ranks are on a plateau. Unless held-out links are known,
        each that was tried has a curve: its ranks may still fall as the budget ends.
        """
        variant = self.variant
        figure = "mean binary logarithm of the ranks of held-out links of Eve's own keys, by rounds of refinement"
        converged = True
        if not variant.statistics.look.related:
            reason = "closed form: signatures only, as refine_up_to=0 says"
        elif variant.blend is not None:
            converged, reason = variant.ended()
        elif variant.likelihood > ENOUGH:
            reason = "closed form: held-out links were known already, so that no refinement was tried"
        else:
            reason = "closed form: no refinement made held-out links likelier"
        others = () if variant.likelihood > ENOUGH else variant.rejected
        return (
            LearningCurve(figure, tuple(enumerate(variant.ranks)), converged, reason),
            *(
                LearningCurve(figure, tuple(enumerate(other.ranks)), *other.ended(), f"rejected blend {other.blend}")
                for other in others
            ),
        )

    def notes(self) -> Mapping[str, float | int | str]:
        """The variant."""
        refined = self.variant.blend is not None
        statistics, why = self.variant.statistics, ""
        if not statistics.look.related:
            why = " (refine_up_to is 0)"
        elif statistics.look.landmarks and refined:
            why = f", {statistics.look.landmarks} of {len(statistics.signatures)} candidates as landmarks"
        parts: dict[str, str] = (
            {}
            if statistics.grams is None
            else {"Gram matrices": f"{len(statistics.grams)} of {statistics.of[1]} parts of a row"}
        )
        if statistics.of[0] < statistics.of[1]:
            parts["signatures"] = f"{statistics.of[0]} of {statistics.of[1]} parts of a row"
        if self.tried_on < len(statistics.signatures):
            parts["reading tried on"] = f"{self.tried_on} of {len(statistics.signatures)} candidates"
        return {
            **parts,
            "reading": statistics.look.reading,
            "matching": (f"refined, blend {self.variant.blend}" if refined else "signatures only") + why,
            "simulated keys": self.keys,
            "own share of covariance": self.variant.own,
            "log-posterior of held-out links": self.variant.likelihood,
        }


def _simulate(scheme: Scheme, candidates: Dataset, seed: int, name: str, number: int) -> Release:
    return scheme.sample_key(Secret.of_seed(seed, name, number)).release(candidates)


def _some(scheme: Scheme, candidates: Dataset, seed: int) -> Dataset:
    """`TRIED_ON` random candidates, or as many as the method releases."""
    n = len(candidates)
    if n <= TRIED_ON:
        return candidates
    chosen = drawn(n, generator(seed, candidates.samples.device), TRIED_ON)
    return some_released(scheme, candidates, chosen, seed)[0]


def _locations(samples: torch.Tensor) -> int:
    """Number of parts of a released vector: patches of a raw image."""
    patch_size = fitting_patch(samples.shape[2], samples.shape[3]) if samples.ndim == 4 else None
    return LOCATIONS if patch_size is None else samples.shape[2] * samples.shape[3] // patch_size**2


def _calibrate(
    statistics: KeyStatistics, simulate: Callable[[int], Release], held_out: int, blends: Sequence[float]
) -> Variant:
    """The likeliest variant."""
    releases = [simulate(number) for number in range(held_out)]
    shown = [
        (statistics.look(release.samples), true_links(release, "relational matching pairs rows"))
        for release in releases
    ]
    best = max((_judged(statistics, own, None, shown) for own in OWN_SHARES), key=lambda variant: variant.likelihood)
    if not statistics.look.related or best.likelihood > ENOUGH:
        return best
    refined = []
    for number, blend in enumerate(blends):
        refined.append(_judged(statistics, best.own, blend, shown))
        report("relational, variant", number + 1, len(blends))
    chosen = max((best, *refined), key=lambda variant: variant.likelihood)
    return replace(chosen, rejected=tuple(variant for variant in refined if variant is not chosen))


def _judged(
    statistics: KeyStatistics, own: float, blend: float | None, shown: Sequence[tuple[Seen, torch.Tensor]]
) -> Variant:
    """The variant at the sharpness that suits it best."""
    raw = Variant(statistics, own, blend, 1.0, -math.inf)
    likelihoods = torch.zeros(len(SHARPNESSES), dtype=torch.float64)
    curves: list[list[float]] = []
    ranked, look = 0, statistics.look
    stayed = True
    for seen, links in shown:
        cols, followed = None, links
        if look.landmarks and blend is not None:  # rounds match landmarks alone
            place = links.new_full((len(statistics.signatures),), -1)
            marks = look.chosen(len(place)).to(links.device)
            place[marks] = torch.arange(len(marks), device=links.device)
            followed = torch.stack((place[links[:, 0]], links[:, 1]), dim=1)[place[links[:, 0]] >= 0]
        if look.landmarks or not look.related:  # so many rows that all pairs are too many
            cols = torch.unique(links[:, 1])
            cols = cols[:: -(-len(cols) // JUDGED_ROWS)].contiguous()
            links = links[torch.isin(links[:, 1], cols)]
            links = torch.stack((links[:, 0], torch.searchsorted(cols, links[:, 1].contiguous())), dim=1)
            followed = links if blend is None else followed
        curve: list[float] = []
        refined = raw.refined(seen, cols, partial(_rank, followed, curve))
        curves.append(curve)
        ranked += len(followed)
        stayed = stayed and refined.stayed
        for number, sharpness in enumerate(SHARPNESSES):
            likelihoods[number] += likelihood(refined.scores, links, sharpness) / len(shown)
    at = int(likelihoods.argmax())
    rounds = max(map(len, curves))
    # A key whose matching stayed keeps its ranks.
    kept = [[*curve, *curve[-1:] * (rounds - len(curve))] for curve in curves]
    ranks = tuple(sum(of_round) / len(kept) for of_round in zip(*kept, strict=True))
    return Variant(statistics, own, blend, SHARPNESSES[at], float(likelihoods[at]), ranks, ranked, stayed)


def _rank(links: torch.Tensor, curve: list[float], scores: torch.Tensor) -> None:
    curve.append(float(log_ranks(scores, links).mean()))
