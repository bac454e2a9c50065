"""Private Evolution: a simulator's rows, selected by noisy votes of private ones.

Source: Lin et al., Differentially Private Synthetic Data via Foundation Model APIs 1: Images (ICLR 2024, arXiv
2305.15560), algorithms 1 and 2; with a simulator's images in place of a foundation model: Lin, Baltrusaitis, Wang and
Yekhanin, Differentially Private Synthetic Data via APIs 3: Using Simulators Instead of Foundation Models (Sim-PE, 2025,
arXiv 2502.05505), and the authors' code, in which a random row is one of a given set, and a variation of a row one of
its nearest rows in that set. Nothing is trained. The set is the public rows: those of a simulator with
`--public synth-nih`, which `synth-cxr` names itself.

A population of c candidates starts as random rows of the pool. In each of T rounds, every private row votes for its
nearest candidate, the numbers of votes get Gaussian noise and lose a threshold H, what is negative becomes 0, parents
are drawn by what is left, and each is varied. All but the votes is post-processing. If a row is replaced, two numbers
of votes change by 1: T rounds of sensitivity root 2 are one Gaussian mechanism of root (2 T) (see
`bench.owner.gaussian_sum`). Released rows are rows of the pool, to the bit, and have no raw row behind them: of a
`--public` set of real people, people outside the claim are published.

Differences:
- The authors run class by class. Here a row of the pool keeps its own labels, as the simulator gives them, and a vote
  is for the least squared distance, in units of its mean among public rows, plus `label_weight` times the share of
  findings that disagree. So labels that may come together need no class each.
- Distances are of pixels (of columns in standard deviations), not of a network's features. There is no look-ahead,
  which votes for the mean of a candidate's variations.
- The number of candidates is by default n / (2 sigma) for n rows and noise sigma, so that votes exceed the noise; the
  authors have as many as they release, from tens of thousands of private rows.
- A variation in round t is one of the 2^(T - t) N / c nearest rows of a pool of N: neighbourhoods halve, and the last
  are as many rows as a candidate stands for. The authors set 1000, 1000, 500, 200, 100, 50 and 20 for 1.2 million rows.
- Neighbours differ in one row that is replaced; the authors count one row more or less, for which the noise may be root
  2 times smaller.
- Votes and noise are whole steps of a public grid, so that the bound holds for the bits published.
- The number of rows is taken to be public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.nets.private_training import MOST_DELTA, delta_for
from bench.owner.gaussian_sum import EPSILONS, GaussianSum, accounts, calibrated
from bench.owner.secret_key import SecretKey, SecretScheme, bound
from bench.progress import report
from bench.seeds import derive, generator
from bench.types import Dataset, Method, NotApplicable, Parameter, PrivacyClaim, PrivateStep, Release, State
from bench.validation import at_least, between, within

SENSITIVITY = math.sqrt(2)  # of one round's votes, if a row is replaced
FEWEST = 8  # candidates
LARGEST = 1e9
ROWS = 512


@dataclass(frozen=True)
class PrivateEvolution(Method):
    """Public rows, selected by private votes with differential privacy.

    Args:
        epsilon, delta: The budget. None takes for delta 1 / (10 n) of n rows, 1e-5 at most.
        rounds: Votes T of every private row.
        candidates: Rows that are voted on in a round. None takes n / (2 sigma), 8 at least and n at most, for noise of
            deviation sigma; never more than the pool has.
        threshold: Votes H that are taken off every noisy number of votes, in deviations of the noise.
        label_weight: Of a disagreement in all findings, beside the mean squared distance of public rows.
        pool: Public rows at most, chosen at random.
    """

    name: ClassVar[str] = "private-evolution"
    source: ClassVar[str] = "Lin et al. 2024 (Private Evolution), 2025 (Sim-PE), and the authors' code"
    claims: ClassVar[str] = "(epsilon, delta)-differential privacy per row, of the votes and all that follows from them"
    needs_labels: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"paper": {"pool": 1_000_000, "rounds": 7}}
    unlearned: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "rounds", "candidates", "threshold", "label_weight"}
    )

    epsilon: float = 1.0
    delta: float | None = None
    rounds: int = 4
    candidates: int | None = None
    threshold: float = 1.0
    label_weight: float = 1.0
    pool: int = 20_000

    def __post_init__(self) -> None:
        within(*EPSILONS, epsilon=self.epsilon)
        between(0, 1, delta=self.delta)
        at_least(1, rounds=self.rounds)
        at_least(2, candidates=self.candidates, pool=self.pool)
        within(0, LARGEST, threshold=self.threshold, label_weight=self.label_weight)

    def fit(self, public: Dataset, seed: int) -> PrivateEvolutionScheme:
        """The pool.

        Raises NotApplicable for public rows that are all the same, or fewer than 2.
        """
        chosen = torch.randperm(len(public), generator=generator(derive(seed, "pool")))[: self.pool].sort().values
        rows = public.take(chosen.to(public.samples.device))
        samples = rows.samples[:]
        variance = samples.flatten(1).var(dim=0).double() if len(samples) > 1 else torch.zeros(samples[0].numel())
        scale = variance.sqrt() if samples.ndim == 2 else torch.ones_like(variance)
        scale = torch.where(scale > 0, scale, 1.0)
        spread = 2 * float((variance / scale.square()).sum())
        if not spread > 0:
            raise NotApplicable(
                f"private-evolution draws from the public rows, and those of {public.name} are all the same, or fewer "
                "than 2: choose another --public"
            )
        state = {"samples": samples, "scale": (scale * math.sqrt(spread)).float()}
        names = "\n".join(public.findings).encode()
        state |= {"findings": torch.tensor([*names], dtype=torch.uint8), "exclusive": torch.tensor(public.exclusive)}
        if rows.labels is not None and public.findings:
            state["labels"] = rows.labels
        return self.load(state)

    def load(self, state: State) -> PrivateEvolutionScheme:
        """The scheme that `PrivateEvolutionScheme.state` described.

        Raises ValueError for one of an earlier version, which does not name its findings.
        """
        if missing := [name for name in ("samples", "scale", "findings", "exclusive") if name not in state]:
            raise ValueError(f"the scheme lacks {', '.join(missing)}: it is of an earlier version; fit it again")
        return PrivateEvolutionScheme(self, dict(state))


@dataclass(frozen=True, eq=False)
class PrivateEvolutionKey(SecretKey):
    """A secret: the source of noise and of all draws."""

    scheme: PrivateEvolutionScheme

    def release(self, private: Dataset) -> Release:
        """As many rows (n, ...) of the pool as private ones, unlinked.

        They have the labels of the pool.

        Raises:
            NotApplicable: The pool has no labels of the private findings.
            ValueError: Rows of another shape, numbers that are not finite, or a delta that n rows do not allow.
        """
        rows = self._evolved(private, lambda votes, population: None)
        labels = self.scheme.labels(private)
        return Release(self.scheme.learned["samples"][rows], None if labels is None else labels[rows], None)

    def private_steps(self, private: Dataset, probes: Dataset, see: Callable[[PrivateStep], None]) -> None:
        """Each round's noisy votes, beside the votes of `probes`."""

        def shown(votes: torch.Tensor, population: torch.Tensor) -> None:
            own = torch.nn.functional.one_hot(self.scheme.nearest(probes, population), len(population))
            see(PrivateStep(votes.float(), own.float(), 1.0))

        self._evolved(private, shown)

    def _evolved(self, private: Dataset, see: Callable[[torch.Tensor, torch.Tensor], None]) -> torch.Tensor:
        """Rows (n,) int64 of the pool.

        `see` gets every round's votes (c,) and candidates (c,).
        """
        scheme, method, n = self.scheme, self.scheme.method, len(private)
        noise, size = scheme.noise(n), len(scheme.learned["samples"])
        count = scheme.candidates(n)
        secret = bound(self.secret.derive("votes"), private)
        draws, device = secret.stream("draws"), private.samples.device
        population = draws.permutation(size)[:count].to(device)
        for done in range(1, method.rounds + 1):
            own = torch.bincount(scheme.nearest(private, population), minlength=count)
            votes = noise.noisy(own * noise.steps(torch.ones(1, device=device)), secret.stream("noise", done))
            see(votes, population)
            wanted = n if done == method.rounds else count
            parents = population[_drawn(votes - method.threshold * noise.sigma, draws.uniform(wanted).to(device))]
            reach = min(size, max(1, round(size / count * 2 ** (method.rounds - done))))
            population = scheme.varied(parents, reach, draws.uniform(wanted).to(device))
            report("private-evolution, round", done, method.rounds)
        return population


@dataclass(frozen=True, eq=False)
class PrivateEvolutionScheme(SecretScheme):
    """A pool of public rows.

    `learned`: its `samples`; `labels` (if there are any), the names of their `findings` as UTF-8, a line each, and
    whether they are `exclusive`; and the `scale` (d,) by which columns or pixels are divided, so that the mean squared
    distance of its rows is 1.
    """

    key = PrivateEvolutionKey
    purpose = "private-evolution"

    method: PrivateEvolution
    learned: State

    def state(self) -> State:
        """The pool, all of it public."""
        return self.learned

    def notes(self) -> Mapping[str, int | float | str]:
        """The noise of a round, in votes.

        At a delta of 1e-5, if none is given.
        """
        mu = calibrated(self.method.epsilon, MOST_DELTA if self.method.delta is None else self.method.delta)
        return {"noise of a round, in votes": round(SENSITIVITY * math.sqrt(self.method.rounds) / mu, 4)}

    def claim(self) -> PrivacyClaim:
        """The budget, which the noise of all rounds is calibrated to exactly."""
        method = self.method
        own = "1 / (10 n) for n rows, 1e-5 at most" if method.delta is None else "as given"
        return PrivacyClaim(
            unit="image" if self.learned["samples"].ndim == 4 else "record",
            epsilon=method.epsilon,
            delta=MOST_DELTA if method.delta is None else method.delta,
            assumptions=(
                "Neighbours differ in one row, samples and labels; their number is public, and so is the pool; one "
                "release a key; which labels are withheld beforehand (balancing) is outside the claim; it holds for "
                "the noisy votes of all rounds, and so for the released rows, and for the bits published: votes and "
                "noise are whole steps of a public grid."
            ),
            basis=(
                "Lin et al. 2024, algorithm 2: Gaussian mechanism on numbers of votes, of sensitivity root 2 if a row "
                f"is replaced, in {method.rounds} rounds, calibrated exactly (Balle and Wang 2018, theorem 8); delta "
                f"is {own}"
            ),
            family="Gaussian",
            sampling_rate=1.0,
            steps=method.rounds,
        )

    def accounts(self, rows: int) -> Mapping[str, float]:
        """The budget spent on rows: exactly, and by dp-accounting (if installed)."""
        delta = delta_for(self.method.delta, rows)
        mu = calibrated(self.method.epsilon, delta) / math.sqrt(self.method.rounds)
        return accounts(mu, delta, releases=self.method.rounds)

    def noise(self, rows: int) -> GaussianSum:
        """The noise of a round for so many rows; ValueError as `delta_for`."""
        mu = calibrated(self.method.epsilon, delta_for(self.method.delta, rows))
        return GaussianSum(SENSITIVITY * math.sqrt(self.method.rounds) / mu)

    def candidates(self, rows: int) -> int:
        """Candidates of a round."""
        usual = min(rows, round(rows / (2 * self.noise(rows).sigma)))
        return min(len(self.learned["samples"]), self.method.candidates or max(FEWEST, usual))

    def labels(self, data: Dataset) -> torch.Tensor | None:
        """The pool's labels (N, k) of the findings of `data`.

        None if either has none. Raises NotApplicable if the pool is of other findings.
        """
        labels = self.learned.get("labels")
        if labels is None or data.labels is None or not data.findings:
            return None
        known = bytes(self.learned["findings"].tolist()).decode().split("\n")
        places = {name.casefold(): place for place, name in enumerate(known)}
        wanted = [places.get(name.casefold(), -1) for name in data.findings]
        exclusive = bool(self.learned["exclusive"])
        if -1 in wanted or exclusive != data.exclusive or (exclusive and len(wanted) < len(known)):
            raise NotApplicable(
                f"private-evolution releases public rows with their own labels, and those are of {', '.join(known)}; "
                f"{data.name} has {', '.join(data.findings)}: name a data set with these findings by --public"
            )
        return labels[:, wanted]

    def nearest(self, data: Dataset, population: torch.Tensor) -> torch.Tensor:
        """The candidate (n,) int64 that each row votes for.

        `population` (c,) are rows of the pool. Of equally near ones the first is taken. Raises ValueError for rows of
        another shape, and for rows that are not finite, and NotApplicable as `labels` does.
        """
        pool = self.learned["samples"]
        if data.samples.shape[1:] != pool.shape[1:]:
            raise ValueError(f"the pool has rows of shape {tuple(pool.shape[1:])}, got {tuple(data.samples.shape[1:])}")
        labels = self.labels(data)
        theirs, found = self._scaled(pool[population]), []
        for rows in torch.split(torch.arange(len(data), device=pool.device), ROWS):
            part = data.take(rows)
            bad = int((~part.samples.isfinite()).flatten(1).any(dim=1).sum())
            if bad:
                raise ValueError(f"rows must be finite: {bad} of {len(part)} rows of {data.name} are not")
            apart = torch.cdist(self._scaled(part.samples), theirs).square()
            if labels is not None and part.labels is not None:
                apart = apart + self.method.label_weight * self._disagreement(part.labels, labels[population])
            found.append(apart.argmin(dim=1))
        return torch.cat(found)

    def varied(self, parents: torch.Tensor, reach: int, at: torch.Tensor) -> torch.Tensor:
        """A row (m,) among the `reach` nearest of each parent.

        All are of the pool. Which of them, `at` (m,) in (0, 1) says.
        """
        pool, out = self._scaled(self.learned["samples"]), parents.clone()
        distinct, place = torch.unique(parents, return_inverse=True)
        for numbers in torch.split(torch.arange(len(distinct), device=parents.device), ROWS):
            apart = torch.cdist(pool[distinct[numbers]], pool)
            apart[torch.arange(len(numbers)), distinct[numbers]] = -1.0  # itself first, whatever rounding says
            near = apart.topk(reach, dim=1, largest=False).indices
            own = ((place >= numbers[0]) & (place <= numbers[-1])).nonzero()[:, 0]
            out[own] = near[place[own] - numbers[0], (at[own] * reach).long().clamp_max(reach - 1)]
        return out

    def _disagreement(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Share (n, c) of findings that only one row has.

        Unknown ones agree.
        """
        yes, no = ([(side == value).float() for side in (first, second)] for value in (1, 0))
        most = (
            2 if bool(self.learned["exclusive"]) else first.shape[1]
        )  # numbers in which two rows' labels can disagree
        return (yes[0] @ no[1].T + no[0] @ yes[1].T) / most

    def _scaled(self, samples: torch.Tensor) -> torch.Tensor:
        return samples.flatten(1) / self.learned["scale"]


def _drawn(weights: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Places (m,) drawn by weights (c,), negative ones as 0.

    `at` (m,) in (0, 1) decides. If none is positive, all are as likely: no candidate has more votes than noise.
    """
    left = weights.clamp_min(0)
    steps = (left if bool((left > 0).any()) else torch.ones_like(left)).cumsum(dim=0)
    return torch.searchsorted(steps, at.to(steps) * steps[-1], right=True).clamp_max(len(steps) - 1)
