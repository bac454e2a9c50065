"""Linear heads that bring raw and released features into one space."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import normalize


class Heads(torch.nn.Module):
    """Linear heads for raw and released rows; the same one if `tied`."""

    def __init__(self, d: int, *, tied: bool) -> None:
        super().__init__()
        self.raw = torch.nn.Parameter(torch.eye(d))
        self.released = self.raw if tied else torch.nn.Parameter(torch.eye(d))

    def forward(self, raw: torch.Tensor, released: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Unit embeddings of both sides."""
        return normalize(raw @ self.raw.T, dim=1), normalize(released @ self.released.T, dim=1)

    def apart(self) -> Heads:
        """The same heads, no longer tied."""
        heads = Heads(len(self.raw), tied=False).to(self.raw.device)
        with torch.no_grad():
            heads.raw.copy_(self.raw)
            heads.released.copy_(self.released)
        return heads


def mean_heads(heads: Sequence[Heads]) -> Heads:
    """The heads with the mean of the parameters of all."""
    mean = heads[0].apart()
    with torch.no_grad():
        mean.raw.copy_(torch.stack([each.raw for each in heads]).mean(dim=0))
        mean.released.copy_(torch.stack([each.released for each in heads]).mean(dim=0))
    return mean
