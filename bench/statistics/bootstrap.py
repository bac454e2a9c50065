"""Bootstrap over people: weights, intervals, and halves of the people."""

from __future__ import annotations

import hashlib
import math

import scipy
import torch

from bench.seeds import generator

ENDS = (0.025, 0.975)
"""The quantiles that end a 95 % interval."""
ONE_EACH = "people are not known: assumes one image a person"
"""Note of a figure whose data set names no subjects."""
ONE_PERSON = "no interval: all rows are of one person"


def draw_weights(subjects: torch.Tensor | None, n: int, draws: int, *, seed: int) -> torch.Tensor:
    """Times (draws, n) each row occurs when people (or rows) are resampled."""
    codes, people = _person_codes(subjects, n)
    drawn = torch.randint(people, (draws, people), generator=generator(seed))
    times = torch.zeros(draws, people, dtype=torch.int64).scatter_add_(1, drawn, torch.ones_like(drawn))
    return times[:, codes]


def bootstrap_sums(values: torch.Tensor, subjects: torch.Tensor | None, draws: int, *, seed: int) -> torch.Tensor:
    """Sums (draws, c): `draw_weights` @ values, one draw at a time."""
    codes, people = _person_codes(subjects, len(values))
    own = torch.zeros(people, values.shape[1], dtype=torch.float64).index_add_(0, codes, values.to(torch.float64))
    random = generator(seed)
    sums = torch.empty(draws, values.shape[1], dtype=torch.float64)
    for draw in range(draws):
        sums[draw] = own.index_select(0, torch.randint(people, (people,), generator=random)).sum(dim=0)
    return sums


def bounds(
    value: float, drawn: torch.Tensor, units: int, *, least: float = -math.inf, most: float = math.inf
) -> tuple[float, float] | tuple[None, None]:
    """95 % interval from the figure on resamples (draws,), ignoring NaN.

    (None, None) if one unit was resampled. The percentile interval, widened by Student's quantile and the factor n / (n
    - 1) of the variance (Hesterberg 2015, "What teachers should know about the bootstrap"): percentiles alone covered
    the truth in 79 of 100 samples of five people and 41 of two.

    Args:
        value: The figure on the sample itself.
        drawn: Figures on resamples.
        units: Number of resampled people (rows, if each is a person).
        least, most: Smallest and largest possible figure.

    >>> bounds(0.0, torch.linspace(-1, 1, 1001), 1)
    (None, None)
    >>> [round(end, 3) for end in bounds(0.0, torch.linspace(-1, 1, 1001), 5)]
    [-1.505, 1.505]
    """
    if units < 2:
        return None, None
    wider = float(scipy.special.stdtrit(units - 1, 0.975)) / 1.959964 * math.sqrt(units / (units - 1))
    low, high = torch.nanquantile(drawn.to(torch.float64), torch.tensor(ENDS, dtype=torch.float64)).tolist()
    ends = value - wider * (value - low), value + wider * (high - value)
    return max(least, min(value, ends[0])), min(most, max(value, ends[1]))


def units_of(subjects: torch.Tensor | None, n: int) -> int:
    """Number of people in n rows; n without subjects."""
    return n if subjects is None else len(torch.unique(subjects))


def half_samples(subjects: torch.Tensor | None, n: int, samples: int, *, seed: int) -> list[torch.Tensor]:
    """Raw rows (int64, ascending) of `samples` random halves of the people."""
    codes, people = _person_codes(subjects, n)
    random = generator(seed)
    halves = [torch.randperm(people, generator=random)[: max(1, people // 2)] for _ in range(samples)]
    return [torch.isin(codes, half).nonzero().flatten() for half in halves]


def _person_codes(subjects: torch.Tensor | None, n: int) -> tuple[torch.Tensor, int]:
    """Person number (n,) of each row, and the number of people."""
    codes = torch.arange(n) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    return codes, int(codes.max()) + 1


def name_of(resamples: torch.Tensor) -> str:
    """Hash of resamples (b, n): 16 hex digits, unique to them."""
    content = resamples.to(torch.int64).contiguous().numpy().tobytes()
    return hashlib.sha256(repr(tuple(resamples.shape)).encode() + content).hexdigest()[:16]
