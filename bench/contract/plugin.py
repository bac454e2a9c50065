"""Plug-ins in general: their common fields, errors and privacy claims."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch

from bench.validation import one_of, positive, within

Parameter = int | float | str | bool | None
State: TypeAlias = "Mapping[str, torch.Tensor]"


class NotApplicable(Exception):  # noqa: N818  (an outcome, not an error)
    """A senseless pairing, such as guesswork without links; with the reason."""


class Plugin(ABC):
    """The base of all plug-ins: frozen dataclasses with parameters as fields.

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
        """If it needs public rows. Default: yes."""
        return True


MOST_UNITS = 2**31 - 1
MOST_STEPS = 100_000


@dataclass(frozen=True)
class PrivacyClaim:
    """A differential-privacy claim as data, to compare with derived and measured figures.

    Args:
        unit: What one neighbouring change alters.
        epsilon: The bound that the method's authors (paper or code) state; infinity where no finite bound holds.
        delta: The claimed failure probability, in [0, 1].
        assumptions: What must be true for the claim to hold, in one sentence.
        basis: Where the claim comes from (paper and equation, or derivation), and how the derived bound follows.
        derived: The bound that follows from the mechanism as it runs here, with the same delta; infinity where none
            does. None stands for the claimed one.
        neighbours: How neighbours differ: in what one unit holds ("replaced"), or by one unit more or less ("added").
        units: In how many units they differ at most, 1 to `MOST_UNITS`.
        family: "Gaussian" if the mechanism is a composition of Gaussian noise, which audits then bound more tightly;
            "any" says nothing of its trade-off function.
        sampling_rate, steps: Of a private training: every row is in each of its steps, `MOST_STEPS` at most, with this
            probability in [1e-6, 1], and the noise alone decides epsilon. None, the default, says nothing of either.
    """

    unit: Literal["image", "pixel", "record"]
    epsilon: float
    delta: float
    assumptions: str
    basis: str
    derived: float | None = None
    neighbours: Literal["replaced", "added"] = "replaced"
    units: int = 1
    family: Literal["any", "Gaussian"] = "any"
    sampling_rate: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        one_of(("any", "Gaussian"), family=self.family)
        if self.family == "Gaussian" and not 0 < self.delta < 1:
            raise ValueError(f"delta of a Gaussian mechanism must be between 0 and 1, got {self.delta}")
        if (self.sampling_rate is None) != (self.steps is None):
            raise ValueError(f"sampling_rate and steps belong together, got {self.sampling_rate} and {self.steps}")
        if self.sampling_rate is not None and (
            isinstance(self.sampling_rate, bool) or not isinstance(self.sampling_rate, int | float)
        ):
            raise TypeError(f"sampling_rate must be a number in [1e-6, 1], got {self.sampling_rate!r:.80}")
        if self.steps is not None and (isinstance(self.steps, bool) or not isinstance(self.steps, int)):
            raise TypeError(f"steps must be a whole number, got {self.steps!r:.80}")
        within(1e-6, 1, sampling_rate=self.sampling_rate)
        within(1, MOST_STEPS, steps=self.steps)
        if self.steps is not None and self.family != "Gaussian":
            raise ValueError(f"steps of a private training need family Gaussian, got {self.family}")
        positive(epsilon=self.epsilon, derived=self.derived)
        within(0, 1, delta=self.delta)
        one_of(("replaced", "added"), neighbours=self.neighbours)
        if not isinstance(self.units, int) or isinstance(self.units, bool):
            raise TypeError(f"units must be a whole number, got {self.units!r}")
        within(1, MOST_UNITS, units=self.units)
