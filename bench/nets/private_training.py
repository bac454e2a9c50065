"""Private training (DP-SGD): clipped gradients, Gaussian noise, Poisson sampling.

Source: Abadi et al. 2016, Algorithm 1, through Opacus; the noise calibrated by its PRV accountant (Gopi et al. 2021),
for neighbours that differ by one row more or less. Momentum, and a rate that rises over a tenth of the steps and falls
to zero as a cosine, look at no row; nor does Adam, which sees noisy sums alone. The last weights are taken.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import get_args

import torch

from bench.contract.method import PrivateStep
from bench.nets.network_choices import Optimiser
from bench.nets.training import set_rate
from bench.progress import report
from bench.randomness import Secret
from bench.validation import at_least, between, one_of, positive_and_finite, within

MOST_DELTA = 1e-5
EPSILONS = (0.01, 500.0)
"""Below, the accountant's grid takes gigabytes; above, its exponentials overflow and the search never ends."""
TOLERANCE = 0.01  # of epsilon: how far below the target the calibration may stay
SHARE = 0.25
MOMENTUM = 0.9
MOST_RATE = 2.0
ADAM_RATE = 5e-4  # Table 1 of the CADP paper
EVIDENCE_AT_RATE_ONE = 24_000  # epsilon times rows
ROWS = 256  # gradients of so many rows are held at once


def delta_for(delta: float | None, rows: int) -> float:
    """Delta for so many rows: 1 / (10 n) if None.

    It is then 1e-5 at most. Raises ValueError for 1 / n or more, which would allow to publish a row.
    """
    if delta is None:
        return min(MOST_DELTA, 0.1 / rows)
    if delta * rows >= 1:
        raise ValueError(f"delta must be below 1 / n, {1 / rows:.2g} for {rows} rows, got {delta}")
    return delta


@dataclass(frozen=True)
class PrivateCourse:
    """Training of a classifier with differential privacy.

    Args:
        epsilon, delta: The budget, epsilon within `EPSILONS`. None takes for delta 1 / (10 n) of n rows, `MOST_DELTA`
            at most.
        epochs: Expected passes over the rows.
        batch: Expected rows a step; None takes a `SHARE` of them.
        learning_rate: Peak rate; None takes the root of epsilon n / 24,000, 2 at most; of Adam `ADAM_RATE`.
        clip_norm: Largest L2 norm of a row's gradient.
        optimiser: "sgd", with momentum and a rate that rises and falls; or "adam", at one rate.
    """

    epsilon: float
    delta: float | None
    epochs: int
    batch: int | None
    learning_rate: float | None
    clip_norm: float
    optimiser: Optimiser = "sgd"

    def __post_init__(self) -> None:
        within(*EPSILONS, epsilon=self.epsilon)
        positive_and_finite(learning_rate=self.learning_rate, clip_norm=self.clip_norm)
        between(0, 1, delta=self.delta)
        at_least(1, epochs=self.epochs, batch=self.batch)
        one_of(get_args(Optimiser), optimiser=self.optimiser)

    def peak(self, rows: int) -> float:
        """Peak rate for that many rows, a rule from public data."""
        if self.learning_rate is not None:
            return self.learning_rate
        if self.optimiser == "adam":
            return ADAM_RATE
        return min(MOST_RATE, math.sqrt(self.epsilon * rows / EVIDENCE_AT_RATE_ONE))

    def rate(self, step: int, steps: int, peak: float) -> float:
        """The rate of a step, counted from 0."""
        if self.optimiser == "adam":
            return peak
        return peak * min((step + 1) / max(1, steps // 10), 0.5 * (1 + math.cos(math.pi * step / steps)))

    def sampling(self, rows: int) -> tuple[float, float, int]:
        """Delta, sampling rate and steps; ValueError for delta >= 1 / n."""
        delta = delta_for(self.delta, rows)
        share = SHARE if self.batch is None else min(1.0, self.batch / rows)
        return delta, share, max(1, round(self.epochs / share))

    def sampled(self) -> tuple[float, int] | tuple[None, None]:
        """Sampling rate and steps; None if they depend on the rows."""
        return (None, None) if self.batch is not None else self.sampling(1)[1:]


@dataclass(frozen=True, eq=False)
class Watch:
    """Probes, as standardised rows and labels, and the receiver of every step."""

    rows: torch.Tensor
    labels: torch.Tensor
    see: Callable[[PrivateStep], None]


def train_privately(
    network: torch.nn.Module,
    rows: torch.Tensor,
    labels: torch.Tensor,
    course: PrivateCourse,
    *,
    exclusive: bool,
    secret: Secret,
    watch: Watch | None = None,
    canaries: torch.Tensor | None = None,
) -> float:
    """Train in place on standardised rows and labels; return the epsilon spent.

    `watch` sees every step, and changes nothing of the training. `canaries` (c, d) are the gradients of c further rows,
    the same at every step: those rows are sampled, clipped and summed as others are.
    Raises ValueError where delta is no smaller than 1 / n: that would allow to publish a row.
    """
    from opacus.grad_sample import GradSampleModule  # takes seconds to import: only where a network is really trained

    from bench.nets.private_optimiser import PrivateOptimiser

    n = len(rows) + (0 if canaries is None else len(canaries))
    delta, share, steps = course.sampling(n)
    peak = course.peak(n)
    multiplier = calibrate(course.epsilon, delta, share=share, steps=steps)
    twin = None if watch is None else deepcopy(network).eval()  # no dropout
    private = GradSampleModule(network, loss_reduction="sum")
    optimiser = PrivateOptimiser(
        torch.optim.SGD(network.parameters(), lr=peak, momentum=MOMENTUM)
        if course.optimiser == "sgd"
        else torch.optim.Adam(network.parameters(), lr=peak),
        noise_multiplier=multiplier, max_grad_norm=course.clip_norm, expected_batch_size=max(1, round(share * n)),
        stream=secret.stream("noise"),
    )  # fmt: skip
    sampler = secret.stream("batches")
    network.train()
    for step in range(steps):
        set_rate(optimiser, course.rate(step, steps, peak))
        gradients = None if watch is None or twin is None else _gradients(twin, network, watch, exclusive=exclusive)
        drawn = (sampler.uniform(n) < share).nonzero()[:, 0].to(rows.device)
        parts = torch.split(drawn, ROWS)
        for number, part in enumerate(parts):
            own = part[part < len(rows)]
            with warnings.catch_warnings():
                # Opacus hooks every layer; the first one's input needs no gradient, which torch remarks upon.
                warnings.filterwarnings("ignore", message="Full backward hook is firing")
                row_losses(private(rows[own]), labels[own], exclusive=exclusive).sum().backward()  # type: ignore[no-untyped-call]
            if canaries is not None:
                _add(optimiser.params, canaries[part[part >= len(rows)] - len(rows)])
            optimiser.signal_skip_step(number + 1 < len(parts))
            optimiser.step()
            if watch is not None and gradients is not None and number + 1 == len(parts):
                total = torch.cat([weight.grad.detach().flatten() for weight in optimiser.params])
                watch.see(PrivateStep(total * optimiser.expected_batch_size, gradients, course.clip_norm))
            optimiser.zero_grad()
        report("dp-sgd, step", step + 1, steps)
    optimiser.check()
    private.remove_hooks()
    spent = account(multiplier, delta, share=share, steps=steps, error=TOLERANCE * course.epsilon)
    assert spent <= course.epsilon, f"spent {spent} of {course.epsilon}"
    return spent


def _add(weights: Sequence[torch.nn.Parameter], gradients: torch.Tensor) -> None:
    """Put unclipped gradients (c, d) behind those of the batch."""
    parts = torch.split(gradients, [weight.numel() for weight in weights], dim=1)
    for weight, part in zip(weights, parts, strict=True):
        more = part.view(len(part), *weight.shape).to(weight)
        weight.grad_sample = torch.cat((weight.grad_sample, more))  # type: ignore[attr-defined]


def _gradients(twin: torch.nn.Module, network: torch.nn.Module, watch: Watch, *, exclusive: bool) -> torch.Tensor:
    """(k, d) gradients of probes at the network's weights; `twin` lacks hooks."""
    weights = {name: weight.detach() for name, weight in network.named_parameters() if weight.requires_grad}
    if not len(watch.rows):
        return watch.rows.new_zeros(0, sum(weight.numel() for weight in weights.values()))

    def loss(weights: dict[str, torch.Tensor], row: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        logits = torch.func.functional_call(twin, weights, (row[None],))
        return row_losses(logits, label[None], exclusive=exclusive).sum()

    of_rows = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0), randomness="different")
    found = of_rows(weights, watch.rows, watch.labels)
    return torch.cat([found[name].flatten(1) for name in weights], dim=1).detach()


@cache  # of numbers alone; a search takes a second
def calibrate(epsilon: float, delta: float, *, share: float, steps: int) -> float:
    """Smallest noise multiplier, nearly, that keeps the budget of `steps` Poisson samples."""
    from opacus.accountants.utils import get_noise_multiplier

    error = TOLERANCE * epsilon
    with _quiet_accountant():
        multiplier: float = get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=share, steps=steps, accountant="prv",
            epsilon_tolerance=error, eps_error=error,
        )  # fmt: skip
    return multiplier


@cache
def account(multiplier: float, delta: float, *, share: float, steps: int, error: float) -> float:
    """Upper bound, within `error`, on the epsilon spent by `steps` Poisson samples."""
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(multiplier, share, steps)]
    with _quiet_accountant():
        return float(accountant.get_epsilon(delta, eps_error=error))


def accounts(course: PrivateCourse, rows: int) -> Mapping[str, float]:
    """Epsilon spent on that many rows, by each installed accountant.

    Opacus' (privacy random variables: Gopi et al. 2021) calibrates the noise; dp-accounting's (privacy loss
    distributions: Koskela et al. 2020) shares no code with it.
    """
    delta, share, steps = course.sampling(rows)
    multiplier = calibrate(course.epsilon, delta, share=share, steps=steps)
    epsilons = {"Opacus, PRV": account(multiplier, delta, share=share, steps=steps, error=TOLERANCE * course.epsilon)}
    if find_spec("dp_accounting") is not None:
        from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
        from dp_accounting.pld import PLDAccountant

        second = PLDAccountant()
        second.compose(PoissonSampledDpEvent(share, GaussianDpEvent(multiplier)), steps)
        epsilons["dp-accounting, PLD"] = float(second.get_epsilon(delta))
    return epsilons


@contextmanager
def _quiet_accountant() -> Iterator[None]:
    """Silence the accountant's warnings on grid size and log 0."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Optimal order is the (largest|smallest) alpha")
        warnings.filterwarnings("ignore", message="divide by zero encountered in log")
        yield


def row_losses(logits: torch.Tensor, labels: torch.Tensor, *, exclusive: bool) -> torch.Tensor:
    """Each row's own loss (n,); 0 without a known label.

    Args:
        logits, labels: (n, k); labels in [0, 1], NaN unknown.
        exclusive: Cross-entropy over classes; otherwise the mean over known findings of binary cross-entropy.
    """
    if exclusive:
        known = ~labels.isnan().any(dim=1)
        return -(labels.nan_to_num() * torch.nn.functional.log_softmax(logits, dim=1)).sum(dim=1) * known
    known = ~labels.isnan()
    losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels.nan_to_num(), reduction="none")
    return (losses * known).sum(dim=1) / known.sum(dim=1).clamp_min(1)
