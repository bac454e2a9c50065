"""Guesswork: how many guesses Eve needs for her first correct pair (Syfer, definition 2 and appendix A)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import ClassVar, Literal

from bench.evidence import PairEvidence
from bench.seeds import derive
from bench.types import Metric, Score
from metrics.null import interval_of_mean, simulate_guesswork
from metrics.pairs import PairCounts
from metrics.resampling import spread


def guesswork(counts: PairCounts) -> float:
    """Rank of the first correct pair when all pairs are guessed from the highest score down, averaged over ties.

    With t the best linked score: #{S > t} + (#{S = t} + 1) / (#{S = t and linked} + 1).
    """
    above, tied, correct = int(counts.others[-1]), int(counts.others[-2]), int(counts.linked[-1])
    return above + (tied + correct + 1) / (correct + 1)


def chance_guesswork(counts: PairCounts) -> float:
    """Expected guesswork when all scores are the same, or distinct and random: (n m + 1) / (p + 1)."""
    return (counts.shape[0] * counts.shape[1] + 1) / (int(counts.linked.sum()) + 1)


@dataclass(frozen=True)
class Guesswork(Metric[PairEvidence]):
    """Guesses until a released image is tied to its raw image for the first time."""

    name: ClassVar[str] = "guesswork"
    unit: ClassVar[str] = "guesses"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, definition 2 and appendix A"
    level: ClassVar[Literal["image", "patient"]] = "image"

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys and data samples; the interval is their spread, the null that of random distinct scores.

        The level of people has no null: what chance gives there depends on how alike the images of a person score.
        """
        level = evidence.level(self.level)
        figures = [[guesswork(part) for part in key] for key in level.counts]
        n = level.counts[0][0].shape[0]
        if self.level == "patient":
            # Images of one person score alike, so hits come in clusters: independent random scores are no null for it.
            score = spread(figures, n=n, null=None, null_low=None, null_high=None)
            return replace(
                score, note=f"{score.note}; chance depends on how alike a person's images score: see `noise`"
            )
        draws = simulate_guesswork(evidence.shape, level.links, evidence.samples, seed=derive(evidence.seed, "null"))
        low, high = interval_of_mean(draws, len(level.counts), seed=derive(evidence.seed, "null-mean"))
        return spread(
            figures,
            n=n,
            null=fmean(chance_guesswork(part) for key in level.counts for part in key),
            null_low=low,
            null_high=high,
        )


@dataclass(frozen=True)
class PatientGuesswork(Guesswork):
    """Guesses until a released image is tied to any raw image of the same person for the first time."""

    name: ClassVar[str] = "patient-guesswork"
    source: ClassVar[str] = "Syfer, definition 2, with the person as the match"
    level: ClassVar[Literal["image", "patient"]] = "patient"
