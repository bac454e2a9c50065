"""Conditional variational autoencoder of vectors, and its training.

Source: Di Salvo et al., Privacy-preserving datasets by capturing feature distributions with conditional VAEs (2024),
section 4.1, and the authors' code. Encoder: rows and condition to `hidden` numbers, ReLU, then mean and log variance of
`latent` numbers. Decoder: latent and condition to `hidden` numbers, ReLU, then a sigmoid for every column.

Two readings of the encoder's second half l, and of the divergence from the prior:

- "corrected" (Kingma and Welling 2014, appendix B): sigma = exp(l / 2), and
  KL(N(m, sigma^2) || N(0, 1)) = -1/2 sum(1 + l - m^2 - exp(l)), least, 0, at m = 0, sigma = 1.
- "official-code": sigma = exp(l), and sum(sigma^2 + m^2 - l - 1/2). With l = log sigma, its slope 2 sigma - 1 / sigma
  vanishes at sigma = 1 / sqrt(2) = .707. Indeed KL(N(m, sigma^2) || N(0, 1/2)) = sum(sigma^2 + m^2 - log sigma - 1/2)
  - 1/2 log 2 for each latent number: the code trains a sound autoencoder whose prior is N(0, 1/2), so that draws from
  N(0, 1), as in its sampler, have twice the variance that the decoder was trained for.

Training: by reconstruction and divergence, with early stopping on held-out rows.

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

import torch
from torch import Tensor, nn

from bench.nets.network_choices import CVAECourse, Formula
from bench.progress import report
from bench.randomness import Secret


def decoder(d: int, c: int, *, hidden: int, latent: int) -> nn.Sequential:
    """Decoder from latents and conditions (n, latent + c) to (0, 1)."""
    return nn.Sequential(nn.Linear(latent + c, hidden), nn.ReLU(), nn.Linear(hidden, d), nn.Sigmoid())


class ConditionalVAE(nn.Module):
    """Autoencoder of rows (n, d) in [0, 1] with conditions (n, c)."""

    def __init__(self, d: int, c: int, *, hidden: int, latent: int) -> None:
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(d + c, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = decoder(d, c, hidden=hidden, latent=latent)

    def encode(self, rows: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Latent mean of every row, and `deviation`'s input; (n, latent) each."""
        mean, spread = self.encoder(torch.cat((rows, condition), dim=1)).chunk(2, dim=1)
        return mean, spread

    def decode(self, latents: Tensor, condition: Tensor) -> Tensor:
        """Rows (n, d) in (0, 1) of latents (n, latent)."""
        rows: Tensor = self.decoder(torch.cat((latents, condition), dim=1))
        return rows


def deviation(spread: Tensor, formula: Formula) -> Tensor:
    """The standard deviation sigma of every latent number."""
    return (spread / 2).exp() if formula == "corrected" else spread.exp()


def divergence(mean: Tensor, spread: Tensor, formula: Formula) -> Tensor:
    """Divergence (n,) in nats; `official-code`: 1/2 log 2 more a latent."""
    if formula == "corrected":
        return 0.5 * (mean.square() + spread.exp() - spread - 1).sum(dim=1)
    return (mean.square() + (2 * spread).exp() - spread - 0.5).sum(dim=1)


@dataclass(frozen=True)
class CVAEFit:
    """Result of training: epochs, best epoch (from 1), its held-out loss."""

    epochs: int
    taken: int
    loss: float


def train_cvae(
    network: ConditionalVAE, rows: Tensor, condition: Tensor, course: CVAECourse, *, judged: tuple[Tensor, Tensor],
    secret: Secret,
) -> CVAEFit:  # fmt: skip
    """Train `network` in place on rows (n, d) in [0, 1].

    Training stops by the loss of `judged` rows; `secret` decides batches and noise, the same bits on a CPU. Raises
    FloatingPointError if the loss is no longer finite.
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
    """Mean over rows of the summed squared error plus beta times divergence."""
    mean, spread = network.encode(rows, condition)
    back = network.decode(mean + deviation(spread, course.formula) * noise, condition)
    loss = (back - rows).square().sum(dim=1)
    if course.beta:
        loss = loss + course.beta * divergence(mean, spread, course.formula)
    return loss.mean()
