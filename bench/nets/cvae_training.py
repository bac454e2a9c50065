"""How a conditional variational autoencoder is trained: by reconstruction and divergence, until held-out rows say stop.

Source: Di Salvo et al. (2024), section 4.1, and the authors' code (Adam, batches of 512, early stopping with patience
15 on rows that are not trained on, the best epoch kept).

Differences:
- The loss is the mean over a batch's rows of what the authors sum, which Adam does not mind, and with which a last,
  smaller batch counts no less. Batches are of equal size.
- The noise in the latents of the judged rows is drawn once, so that epochs are compared on the same draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from bench.nets.cvae import ConditionalVAE, Formula, deviation, divergence
from bench.progress import report
from bench.randomness import Secret
from bench.validation import at_least, one_of, positive_and_finite


@dataclass(frozen=True)
class CVAECourse:
    """How a conditional variational autoencoder is trained.

    Args:
        formula: Of the divergence.
        beta: Its weight beside the squared error; 0 is a plain autoencoder with noise in its latents.
        epochs: Passes over the rows at most.
        batch: Rows a step at most.
        learning_rate: Of Adam.
        patience: Epochs without a lower loss of the judged rows after which training ends, and the best epoch is taken;
            None trains through all epochs and takes the last.
    """

    formula: Formula
    beta: float
    epochs: int
    batch: int
    learning_rate: float
    patience: int | None

    def __post_init__(self) -> None:
        one_of(get_args(Formula), formula=self.formula)
        at_least(1, epochs=self.epochs, batch=self.batch, patience=self.patience)
        if not (self.beta >= 0 and math.isfinite(self.beta)):
            raise ValueError(f"beta must be at least 0 and finite, got {self.beta}")
        positive_and_finite(learning_rate=self.learning_rate)


@dataclass(frozen=True)
class CVAEFit:
    """How training went: epochs done, the epoch whose weights were taken (from 1), and its loss on the judged rows."""

    epochs: int
    taken: int
    loss: float


def train_cvae(
    network: ConditionalVAE, rows: Tensor, condition: Tensor, course: CVAECourse, *, judged: tuple[Tensor, Tensor],
    secret: Secret,
) -> CVAEFit:  # fmt: skip
    """Train `network` in place on rows (n, d) in [0, 1] of its device, and leave it without gradients.

    Args:
        network: On the device of the rows.
        rows: (n, d) float32, n at least 1.
        condition: (n, c) float32.
        course: Steps and rates.
        judged: Rows and condition by whose loss training is stopped.
        secret: Decides batches and noise. Same secret, same bits on a CPU.

    Raises:
        FloatingPointError: The loss is no longer finite.
    """
    n, device = len(rows), rows.device
    order, noise = secret.stream("rows"), secret.stream("noise")
    judging = noise.normal(len(judged[0]), network.latent).to(device, torch.float32)
    optimiser = torch.optim.Adam(network.parameters(), lr=course.learning_rate, fused=True)
    lowest, taken, best = math.inf, 0, {}
    every = max(1, course.epochs // 20)
    for epoch in range(1, course.epochs + 1):
        for batch in order.permutation(n).to(device).tensor_split(math.ceil(n / course.batch)):
            drawn = noise.normal(len(batch), network.latent).to(device, torch.float32)
            loss = _loss(network, rows[batch], condition[batch], drawn, course)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        with torch.no_grad():
            value = float(_loss(network, *judged, judging, course))
        if not math.isfinite(value):
            raise FloatingPointError(
                f"training diverged in epoch {epoch}: the loss must be finite, got {value}; lower learning_rate"
            )
        if course.patience is None or value < lowest:
            lowest, taken = value, epoch
            if course.patience is not None:
                best = {name: weight.detach().clone() for name, weight in network.state_dict().items()}
        elif epoch - taken >= course.patience:
            break
        if epoch % every == 0:
            report(f"cvae, loss {value:.4g}, epoch", epoch, course.epochs)
    report(f"cvae, loss {lowest:.4g}, epoch", epoch, epoch)
    if best:
        network.load_state_dict(best)
    network.requires_grad_(False)
    return CVAEFit(epoch, taken, lowest)


def _loss(network: ConditionalVAE, rows: Tensor, condition: Tensor, noise: Tensor, course: CVAECourse) -> Tensor:
    """Mean over the rows of the squared error, summed over columns, and beta times the divergence."""
    mean, spread = network.encode(rows, condition)
    back = network.decode(mean + deviation(spread, course.formula) * noise, condition)
    loss = (back - rows).square().sum(dim=1)
    if course.beta:
        loss = loss + course.beta * divergence(mean, spread, course.formula)
    return loss.mean()
