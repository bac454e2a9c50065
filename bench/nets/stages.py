"""Stages of a network in turn, with means of their maps."""

from __future__ import annotations

from collections.abc import Sequence

import torch

PLACES = 7
"""Areas of the middle stage on each side."""


class Stages(torch.nn.Module):
    """Stages in turn: means of the last maps, and of middle areas.

    Args:
        stages: Each reads the maps of the one before it.
        middle: Number of the stage whose areas count too; None for none.
    """

    def __init__(self, stages: Sequence[torch.nn.Module], middle: int | None) -> None:
        super().__init__()
        self.stages, self.middle = torch.nn.ModuleList(stages), middle

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images to means (n, d), those of middle areas behind them."""
        found, areas = images, []
        for number, stage in enumerate(self.stages):
            found = stage(found)
            if number == self.middle:
                areas = [torch.nn.functional.adaptive_avg_pool2d(found, PLACES).flatten(1)]
        return torch.cat((found.mean(dim=(2, 3)), *areas), dim=1)
