"""Whom an attack found, person by person and key by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, eq=False)
class PersonRisk:
    """Whether an attack found each of P people in the releases of K keys.

    Args:
        found: (K, P) bool.
        luck: (K, P) float64 in [0, 1]: the chance of that if the attack said the same, and rows were dealt to people at
            random. An attack that names one person for every row finds that person always, and has learned nothing.
        chance: (P,) float64: the same chance for random scores.
        asked: (K, P) bool: under which keys a person could be found; each under one key at least. None stands for all.
        groups: By attribute and group, (P,) bool: who belongs to it. Sex, age, view and site as far as the data say,
            findings, and the number of images.
        wrong: Where `luck` is no probability but was counted: (P,) int64 how often the same was said of each person
            wrongly, and (P,) of how many times. None where it is known.
    """

    found: torch.Tensor
    luck: torch.Tensor
    chance: torch.Tensor
    groups: Mapping[str, Mapping[str, torch.Tensor]] = field(default_factory=dict)
    asked: torch.Tensor | None = None
    wrong: tuple[torch.Tensor, torch.Tensor] | None = None

    @property
    def trials(self) -> torch.Tensor:
        """(K, P) bool: under which keys each person could be found."""
        return torch.ones_like(self.found) if self.asked is None else self.asked

    def __post_init__(self) -> None:
        shape = self.found.shape
        if self.found.ndim != 2 or self.luck.shape != shape or self.chance.shape != shape[1:] or not self.found.numel():
            raise ValueError(
                f"expected found and luck (keys, people) and chance (people), at least one of each, got "
                f"{tuple(shape)}, {tuple(self.luck.shape)} and {tuple(self.chance.shape)}"
            )
        if bool((self.found & ~self.trials).any()) or not bool(self.trials.any(dim=0).all()):
            raise ValueError("somebody was found who could not be, or could be found under no key")
