"""One-sided limits of areas and shares, behind a statement of absence."""

from __future__ import annotations

import math
from statistics import NormalDist

from bench.statistics.confidence_intervals import around, components, upper_proportion
from bench.statistics.order_statistics import SURE
from bench.types import Replicates


def upper_limit(replicates: Replicates, *, people: int, answers: int | None = None, level: float = SURE) -> float:
    """One-sided upper confidence limit over people and keys.

    The limit of an area (ReID AUC by image or by person) is that of Student's t for its log odds, with the variance
    components of `bench.statistics.confidence_intervals.components`. The limit of a share of answers (top-1) is Clopper
    and Pearson's for the effective number of independent answers (Korn and Graubard 1998, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data"): the number whose binomial
    t interval is as wide as that of the components, and no more than there are. A share that is the same under every
    resample and key counts as one answer of each person.

    Args:
        replicates: The figure by key and resample, a share or an area in [0, 1].
        people: Number of people behind the release.
        answers: Answers behind a share: released rows times keys. None for an area.
        level: Confidence.

    Returns:
        A number in [0, 1], not below the figure.

    Raises:
        ValueError: A figure outside [0, 1].
    """
    figure = math.fsum(replicates.by_key) / len(replicates.by_key)
    if not 0 <= figure <= 1:
        raise ValueError(f"an upper limit needs an area or a share in [0, 1], got {figure}")
    parts = components(replicates)
    width = parts.width(level)
    if answers is None and 0 < figure < 1:
        return around(figure, width, "share")[1]
    trials = float(people)
    if answers is not None and 0 < figure < 1:
        plain = width * figure * (1 - figure) if replicates.scale == "share" else width
        z = NormalDist().inv_cdf(level)
        trials = min(float(answers), figure * (1 - figure) * (z / plain) ** 2) if plain else float(answers)
    return float(upper_proportion(figure * trials, trials, 1 - level))
