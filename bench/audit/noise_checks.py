"""What a mechanism adds, held against what it says: standard Laplace numbers, every one drawn afresh.

Thresholds come from what holds for any number of independent draws, at a level at which a sound method fails one check
in a million. Noise that a fence hides is replaced by draws of its tail: if the mechanism is what it says, all numbers
together are then independent standard Laplace numbers again, and what the fence stopped too often or too seldom shows.
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
"""Elements of a row that are compared with each other: a random choice where a row has more."""
NEAR = 1e-3


def draw_noise(scheme: Scheme, private: Dataset, other: Dataset, *, seed: int = 0) -> Mapping[str, torch.Tensor]:
    """(p, q) float64 each, in units of the scale: what was added to `private` under two keys, to `other` under the
    first, and in a query; the q elements are those that vary.

    Args:
        scheme: Any. Raises NotApplicable where it states no noise, or noise that cannot be read off its releases.
        private, other: Different rows of one kind.
        seed: Of the two keys.
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
    found = {
        "release": _added(mechanism, private, release, 1),
        "release under another key": _added(mechanism, private, second.release(private), 2),
        "release of other rows": _added(mechanism, other, first.release(other), 3),
    }
    # Where a query is the rows as they are, Bob's model is not asked in the release's form.
    if query.shape == release.samples.shape and not torch.equal(query, private.samples):
        found["query"] = _added(mechanism, private, paired(query, private.labels), 4)
    return found


def _added(mechanism: Mechanism, data: Dataset, release: Release, seed: int) -> torch.Tensor:
    """Noise (p, q) of the elements that vary, with fresh tails where the fence hides it."""
    if release.links is None:
        raise NotApplicable("it releases rows without a raw original")
    observed = mechanism.observe(replace(release, links=None, primary=None))[release.links[:, 1]]
    located = mechanism.locate(data)[release.links[:, 0]]
    found, varies = mechanism.noise(located, observed), mechanism.scale > 0
    if mechanism.fence is not None:
        low, high = ((bound - located) / mechanism.scale for bound in mechanism.fence)
        # A Laplace number that is known to lie beyond a bound lies an exponential number beyond it.
        tail = torch.empty_like(found).exponential_(generator=generator(derive(seed, "tails"), found.device))
        up = observed - mechanism.fence[0] > mechanism.fence[1] - observed
        found = torch.where(mechanism.stopped(observed), torch.where(up, high + tail, low - tail), found)
    return found[:, varies]


def check_density(noise: Mapping[str, torch.Tensor]) -> None:
    """Raise ContractError where the noise is not standard Laplace: all of it, or that of a single element.

    The whole: Kolmogorov's distance, which exceeds t with a probability of at most 2 exp(-2 n t^2) (Dvoretzky, Kiefer,
    Wolfowitz; Massart's constant). An element: the sum of n sizes is a gamma number of shape n.
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
        f"what is added does not follow the stated density: Kolmogorov's distance of {count} numbers from Laplace is "
        f"{distance:.4f}, at most {limit:.4f} in all but one case in a million; they are {size:.3f} times as large on "
        "average as the stated scale says",
    )
    sums = rows.abs().sum(dim=0).cpu().numpy()
    least, most = (
        scipy.stats.gamma.ppf(LEVEL / 2 / len(sums), len(rows)),
        scipy.stats.gamma.isf(LEVEL / 2 / len(sums), len(rows)),
    )
    bad = ((sums < least) | (sums > most)).nonzero()[0]
    worst = int(abs(sums / len(rows) - 1).argmax())
    _require(
        not len(bad),
        f"{len(bad)} elements do not have their stated scale: noise of element {worst} is "
        f"{sums[worst] / len(rows):.3f} times as large on average as it says",
    )


def check_reuse(noise: Mapping[str, torch.Tensor]) -> None:
    """Raise ContractError where noise repeats: between calls, between rows of any calls, or between elements.

    Signs, and whether a size is above its median, are fair coins. Of two independent rows of d coins, the share that
    agrees leaves a half by more than t with a probability of at most 2 exp(-2 d t^2) (Hoeffding), however few they are.
    Repeats of a part of a row show in the numbers themselves: the sizes of two draws come within `NEAR` of each other
    with a probability of at most NEAR.
    """
    rows = torch.cat(list(noise.values()))
    calls = torch.stack([part.flatten() for part in noise.values()])
    chosen = torch.randperm(rows.shape[1], generator=generator(derive(0, "elements")))[:ELEMENTS].to(rows.device)
    named = ", ".join(noise)
    for what, numbers in (("calls", calls), ("rows", rows), ("elements", rows[:, chosen].T)):
        count = numbers.shape[1]
        level = LEVEL / (9 * max(math.comb(len(numbers), 2), 1))
        limit = math.sqrt(2 * math.log(2 / level) / count)
        for part, coins in (("signs", numbers > 0), ("sizes", numbers.abs() > math.log(2))):
            sides = coins.double() * 2 - 1
            worst = float((sides @ sides.T).fill_diagonal_(0).abs().amax()) / count
            _require(
                worst <= limit,
                f"noise is used again: the {part} of two {what} correlate by {worst:.3f}, at most {limit:.3f} if they "
                f"are independent ({named})",
            )
        most, sizes = int(scipy.stats.binom.isf(level, count, NEAR)), numbers.abs()
        found = (int(((sizes[i] - sizes[:i]).abs() < NEAR).sum(dim=1).amax()) for i in range(1, len(sizes)))
        repeats = max(found, default=0)  # a single element has no other
        _require(
            repeats <= most,
            f"noise is used again: {repeats} of {count} numbers are the same in two {what}, at most {most} if they are "
            f"independent ({named})",
        )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ContractError(message)
