"""Cells, method x data x device, and the measurements planned on them."""

from __future__ import annotations

__figures__ = False

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from pydantic import JsonValue

from bench.contract.eve_profile import TwoReleases
from bench.plugins import registry
from bench.plugins.configured import Configured, configure
from bench.plugins.profile_spec import read_profile
from bench.plugins.spec import UsageError
from bench.types import Attack, Evaluator, Method, Recorded
from bench.wire.text import slug
from bench.workbench.choice import Choice


@dataclass(frozen=True)
class Cell:
    """One method on one choice of data and device ("cpu" or "cuda").

    Raises UsageError where the method needs public rows, and the choice has none.
    """

    method: Configured[Method]
    choice: Choice
    device: str

    def __post_init__(self) -> None:
        self.choice.check_public(self.method)
        if self.method.plugin.releases is not None and self.choice.rows_of != self.method:
            raise UsageError(f"{self.method.shown} is scored on the rows that it was made of: name it by --method")

    @property
    def folder(self) -> str:
        """The folder of its records, readable and unique by a hash."""
        short = hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:8]
        name = f"{slug(self.method.shown)}--{self.choice.preset}-seed{self.choice.seed}--{short}"
        # An argument that never enters a record (a path) stays out of the folder's name, which does.
        return f"{slug(self.choice.dataset.placeless.replace(':', '-'))}/{name}"

    def refusal(self, planned: Planned) -> str:
        """Why an evaluator cannot apply, if that is known beforehand.

        Else empty.
        """
        if self.method.plugin.releases is None or planned.attack is None or not planned.attack.plugin.makes_releases:
            return ""
        return Recorded.REFUSAL

    @property
    def earlier(self) -> Cell | None:
        """The cell of another method whose release Eve holds, or None."""
        profile = read_profile(self.choice.eve)
        if not isinstance(profile, TwoReleases) or profile.method is None:
            return None
        return replace(self, method=configure("methods", profile.method, self.choice.preset))

    def identity(self) -> dict[str, JsonValue]:
        """Method, device, and the options of the choice that are no default."""
        recorded = self.method.plugin.releases is not None  # its digest tells it, wherever its folder lies
        method = self.method.placeless if recorded else str(self.method)
        return {"method": method, "device": self.device, **self.choice.identity()}

    def values(self) -> dict[str, Any]:
        """Plain text and numbers: `read` gives an equal cell."""
        return {"method": str(self.method), "device": self.device, **self.choice.values()}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Cell:
        """The cell of `values`. Raises UsageError if it cannot be built."""
        choice = Choice.read(values)
        return cls(configure("methods", str(values["method"]), choice.preset), choice, str(values["device"]))


@dataclass(frozen=True)
class Planned:
    """An evaluator planned for a cell, with its own record.

    Args:
        written: The evaluator, as registered or FILE.py:CLASS.
        attack: What it runs, for evaluators of attacks; None for others.
        metrics: The names of those that are computed from its measurement.
    """

    written: str
    attack: Configured[Attack] | None
    metrics: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The evaluator's own name."""
        return self._class.name

    @property
    def name(self) -> str:
        """Of its record."""
        return self.kind if self.attack is None else f"{self.kind}-{slug(self.attack.shown)}"

    @cached_property
    def evaluator(self) -> Evaluator[Any]:
        """The evaluator, with its attack."""
        cls = cast(Any, self._class)
        return cast("Evaluator[Any]", cls() if self.attack is None else cls(self.attack.plugin))

    def evaluator_with(self, attack: Attack) -> Evaluator[Any]:
        """The evaluator, with a stand-in for its attack."""
        return cast("Evaluator[Any]", cast(Any, self._class)(attack))

    @property
    def _class(self) -> type[Evaluator[Any]]:
        return cast("type[Evaluator[Any]]", registry.load("evaluators", self.written))

    def __reduce__(self) -> tuple[Any, ...]:
        return Planned, (self.written, self.attack, self.metrics)
