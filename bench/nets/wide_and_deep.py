"""A linear model and a network, trained together (Cheng et al. 2016)."""

from __future__ import annotations

import torch

from bench.nets.convolutional_networks import resnet18


class WideAndDeep(torch.nn.Module):
    """Logits of a linear model and, for images, of a ResNet-18."""

    def __init__(self, shape: torch.Size, outputs: int, width: int) -> None:
        super().__init__()
        self.wide = torch.nn.Linear(shape.numel(), outputs)
        torch.nn.init.zeros_(self.wide.weight)
        self.deep = None
        if len(shape) == 3:
            c, h, w = shape
            self.deep = resnet18((c, h, w), outputs, width=width)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows (n, ...) to logits (n, k)."""
        wide: torch.Tensor = self.wide(rows.flatten(1))
        return wide if self.deep is None else wide + self.deep(rows)
