"""Groups of rows by attribute: sex, age, view or site."""

from __future__ import annotations

__figures__ = True

from dataclasses import dataclass, replace

import torch

UNKNOWN_GROUP = -1


@dataclass(frozen=True, eq=False)
class Attributes:
    """Groups of rows, for figures by group.

    The judge keeps them: plug-ins do not see them.

    Args:
        names: Of the attributes: a names.
        groups: For each attribute, the names of its groups.
        codes: (n, a) int64: which group of each attribute a row belongs to, -1 if unknown.

    Raises:
        ValueError: Parts that do not fit together.
    """

    names: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    codes: torch.Tensor

    def __post_init__(self) -> None:
        if len(self.groups) != len(self.names) or self.codes.shape[1:] != (len(self.names),):
            raise ValueError(
                f"attributes must have groups and a column of codes each: expected {len(self.names)}, got "
                f"{len(self.groups)} and codes of shape {tuple(self.codes.shape)}"
            )
        most = torch.tensor([len(groups) for groups in self.groups])
        codes = self.codes.cpu()
        if codes.dtype != torch.int64 or bool(((codes < UNKNOWN_GROUP) | (codes >= most)).any()):
            raise ValueError("codes of attributes must be int64, the number of a group or -1")

    def __len__(self) -> int:
        return len(self.codes)

    def named(self) -> dict[str, list[str]]:
        """The names of each attribute's groups."""
        return {name: list(groups) for name, groups in zip(self.names, self.groups, strict=True)}

    def members(self) -> dict[str, dict[str, torch.Tensor]]:
        """The members (n,) bool of each group, by attribute."""
        return {
            name: {group: self.codes[:, column] == number for number, group in enumerate(self.groups[column])}
            for column, name in enumerate(self.names)
        }

    def take(self, rows: torch.Tensor) -> Attributes:
        """Those of the given rows (int64 indices)."""
        return replace(self, codes=self.codes[rows])

    def named_as(self, other: Attributes) -> Attributes:
        """These rows with another set's names and groups; others are unknown."""
        codes = torch.full((len(self), len(other.names)), UNKNOWN_GROUP, dtype=torch.int64)
        for column, (name, groups) in enumerate(zip(other.names, other.groups, strict=True)):
            if name in self.names:
                own = self.names.index(name)
                places = [groups.index(group) if group in groups else UNKNOWN_GROUP for group in self.groups[own]]
                codes[:, column] = torch.tensor([*places, UNKNOWN_GROUP])[self.codes[:, own].cpu()]
        return Attributes(other.names, other.groups, codes)

    def followed_by(self, other: Attributes) -> Attributes:
        """Those of these rows, then of the others.

        Raises:
            ValueError: Other attributes or groups.
        """
        if (other.names, other.groups) != (self.names, self.groups):
            raise ValueError(f"expected the attributes {self.named()}, got {other.named()}")
        return replace(self, codes=torch.cat((self.codes, other.codes)))
