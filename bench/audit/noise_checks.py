"""Checks of a mechanism's noise against its stated distribution.

Fresh standard Laplace numbers are expected. Thresholds hold for any number of independent draws, at a level at which a
sound method fails one check in a million. Noise clipped by a fence is replaced by draws of its tail: for a correct
mechanism, all numbers are then independent standard Laplace numbers again, and too many or too few clipped numbers
show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import scipy
import torch

from bench.contract.mechanism import Mechanism
from bench.contract.seal import ContractError
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, Scheme, paired

LEVEL = 1e-6
ELEMENTS = 512
"""Most elements of a row compared with each other; more are sampled."""
NEAR = 1e-3


def draw_noise(scheme: Scheme, private: Dataset, other: Dataset, *, seed: int = 0) -> Mapping[str, torch.Tensor]:
    """Noise (p, q) float64 of each call, in units of the scale.

    Calls: `private` under two keys, `other` (different rows) under the first, and a query of `private`; q elements
    vary. Raises NotApplicable if the scheme states no noise, or noise that releases do not show.
    """
    mechanism = scheme.mechanism()
    if mechanism is None:
        raise NotApplicable("it states no noise")
    if not mechanism.exact:
        raise NotApplicable("its noise cannot be read off a release, only estimated")
    if not bool((mechanism.scale > 0).any()):
        raise NotApplicable("it states noise of scale 0 everywhere")
    first, second = (scheme.sample_key(Secret.of_seed(seed, "key", number)) for number in (1, 2))
    release, query = first.release(private), first.query(private.samples)
    noise = {
        "release": _added(mechanism, private, release, 1),
        "release under another key": _added(mechanism, private, second.release(private), 2),
        "release of other rows": _added(mechanism, other, first.release(other), 3),
    }
    # A query that returns raw rows adds no noise.
    if query.shape == release.samples.shape and not torch.equal(query, private.samples):
        noise["query"] = _added(mechanism, private, paired(query, private.labels), 4)
    return noise


def _added(mechanism: Mechanism, data: Dataset, release: Release, seed: int) -> torch.Tensor:
    """Noise (p, q) of varying elements, with fresh tails where clipped."""
    if release.links is None:
        raise NotApplicable("it releases rows without a raw original")
    observed = mechanism.observe(replace(release, links=None, primary=None))[release.links[:, 1]]
    located = mechanism.locate(data)[release.links[:, 0]]
    noise, varies = mechanism.noise(located, observed), mechanism.scale > 0
    if mechanism.fence is not None:
        low, high = ((bound - located) / mechanism.scale for bound in mechanism.fence)
        # A Laplace number beyond a bound exceeds it by an exponential number.
        tail = torch.empty_like(noise).exponential_(generator=generator(derive(seed, "tails"), noise.device))
        up = observed - mechanism.fence[0] > mechanism.fence[1] - observed
        noise = torch.where(mechanism.stopped(observed), torch.where(up, high + tail, low - tail), noise)
    return noise[:, varies]


def check_density(noise: Mapping[str, torch.Tensor]) -> None:
    """Raise ContractError if the noise is not standard Laplace.

    All of it: Kolmogorov's distance exceeds t with a probability of at most 2 exp(-2 n t^2) (Massart). One element:
    the sum of n sizes is a gamma number of shape n.
    """
    rows = torch.cat(list(noise.values()))
    _require(bool(rows.isfinite().all()), "noise that was added must be finite")
    numbers = rows.flatten().sort().values
    count = len(numbers)
    tail = 0.5 * torch.exp(-numbers.abs())
    steps = torch.arange(count + 1, dtype=torch.float64, device=rows.device) / count
    expected = torch.where(numbers < 0, tail, 1 - tail)
    distance = float(torch.maximum((expected - steps[:-1]).abs(), (expected - steps[1:]).abs()).amax())
    limit = math.sqrt(math.log(2 / LEVEL) / (2 * count))
    size = float(numbers.abs().mean())
    _require(
        distance <= limit,
        f"the noise does not follow the stated density: Kolmogorov's distance of {count} numbers from Laplace is "
        f"{distance:.4f}, at most {limit:.4f} in all but one case in a million; they are {size:.3f} times as large on "
        "average as the stated scale says",
    )
    sums = rows.abs().sum(dim=0).cpu().numpy()
    least, most = (
        scipy.stats.gamma.ppf(LEVEL / 2 / len(sums), len(rows)),
        scipy.stats.gamma.isf(LEVEL / 2 / len(sums), len(rows)),
    )
    wrong = ((sums < least) | (sums > most)).nonzero()[0]
    worst = int(abs(sums / len(rows) - 1).argmax())
    _require(
        not len(wrong),
        f"{len(wrong)} elements do not have their stated scale: noise of element {worst} is "
        f"{sums[worst] / len(rows):.3f} times as large on average as it says",
    )


def check_reuse(noise: Mapping[str, torch.Tensor]) -> None:
    """Raise ContractError if noise repeats between calls, rows or elements.

    Signs are fair coins, and so is a size above its median. The share of d coins that agree differs from a half by
    more than t with a probability of at most 2 exp(-2 d t^2) (Hoeffding). Sizes of two draws come within `NEAR` of
    each other with a probability of at most NEAR.
    """
    rows = torch.cat(list(noise.values()))
    calls = torch.stack([part.flatten() for part in noise.values()])
    elements = torch.randperm(rows.shape[1], generator=generator(derive(0, "elements")))[:ELEMENTS].to(rows.device)
    call_names = ", ".join(noise)
    for kind, numbers in (("calls", calls), ("rows", rows), ("elements", rows[:, elements].T)):
        count = numbers.shape[1]
        level = LEVEL / (9 * max(math.comb(len(numbers), 2), 1))
        limit = math.sqrt(2 * math.log(2 / level) / count)
        for part, coins in (("signs", numbers > 0), ("sizes", numbers.abs() > math.log(2))):
            sides = coins.double() * 2 - 1
            worst = float((sides @ sides.T).fill_diagonal_(0).abs().amax()) / count
            _require(
                worst <= limit,
                f"noise is used again: the {part} of two {kind} correlate by {worst:.3f}, at most {limit:.3f} if they "
                f"are independent ({call_names})",
            )
        most, sizes = int(scipy.stats.binom.isf(level, count, NEAR)), numbers.abs()
        matches = (int(((sizes[i] - sizes[:i]).abs() < NEAR).sum(dim=1).amax()) for i in range(1, len(sizes)))
        repeats = max(matches, default=0)  # a single element has no other
        _require(
            repeats <= most,
            f"noise is used again: {repeats} of {count} numbers are the same in two {kind}, at most {most} if they are "
            f"independent ({call_names})",
        )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ContractError(message)
