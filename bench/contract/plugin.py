"""What every plug-in carries, and the words that all of them use."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import ClassVar, TypeAlias

import torch

Parameter = int | float | str | bool | None
State: TypeAlias = "Mapping[str, torch.Tensor]"


class NotApplicable(Exception):  # noqa: N818  (an outcome, not an error)
    """Raised when a pairing makes no sense (say, guesswork for a release without links); the text is the reason."""


class Plugin(ABC):
    """What every method and attack carries. Plug-ins are frozen dataclasses; their fields are their parameters.

    `presets` maps a preset's name to parameters that size the plug-in for it; the command line wins over them.
    `requires` says what must be installed, downloaded or at hand.
    `needs_public` (of methods, attacks and extractors) says that it cannot do without public rows. Where it is False,
    `fit` may be given a public set of no rows, which still tells their shape, findings and kind.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {}
    requires: ClassVar[str] = "nothing beyond this project"

    @property
    def needs_public(self) -> bool:
        """Whether it cannot do without public rows. Default: it cannot, for a plug-in that says nothing."""
        return True
