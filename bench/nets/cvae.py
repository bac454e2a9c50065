"""A conditional variational autoencoder of vectors: an encoder to a Gaussian in the latent space, a decoder back.

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
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

Formula = Literal["corrected", "official-code"]


def decoder(d: int, c: int, *, hidden: int, latent: int) -> nn.Sequential:
    """Latents beside conditions (n, latent + c) to rows (n, d) in (0, 1)."""
    return nn.Sequential(nn.Linear(latent + c, hidden), nn.ReLU(), nn.Linear(hidden, d), nn.Sigmoid())


class ConditionalVAE(nn.Module):
    """Rows (n, d) in [0, 1] with conditions (n, c) to latents and back.

    Args:
        d: Columns of a row.
        c: Numbers of a condition.
        hidden: Width of the one hidden layer of encoder and decoder.
        latent: Numbers of a latent.
    """

    def __init__(self, d: int, c: int, *, hidden: int, latent: int) -> None:
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(d + c, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = decoder(d, c, hidden=hidden, latent=latent)

    def encode(self, rows: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """The latent mean of every row, and what `deviation` makes a standard deviation of; (n, latent) each."""
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
    """(n,) nats by which latents stand off the prior (`official-code`: 1/2 log 2 more for each latent number)."""
    if formula == "corrected":
        return 0.5 * (mean.square() + spread.exp() - spread - 1).sum(dim=1)
    return (mean.square() + (2 * spread).exp() - spread - 0.5).sum(dim=1)
