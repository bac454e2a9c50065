"""An evaluator: one thing that is measured on a cell, with a record of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import JsonValue

from bench.contract.method import Role
from bench.contract.plugin import Plugin
from bench.contract.preset import Preset

W = TypeVar("W", contravariant=True)  # the laid-out cell: `bench.workbench.workbench.Workbench`


@dataclass(frozen=True, eq=False)
class Measurement:
    """Evidence for the metrics, with what the record says beside it.

    Args:
        evidence: By part of the data that is judged on its own (a finding); one with the empty name where there is
            only one. Of several, the weakest figure counts.
        details, seconds, threat_model: As in `bench.results.records.Record`.
        shown: What `Evaluator.pictures` needs beyond the evidence; never stored.
    """

    evidence: Mapping[str, object]
    details: Mapping[str, JsonValue]
    seconds: Mapping[str, float]
    threat_model: Mapping[str, str]
    shown: object = None


@dataclass(frozen=True)
class Picture:
    """A PNG that stands beside a record and on the method's page, and what it shows in a sentence."""

    caption: str
    png: bytes


class Evaluator(Plugin, Generic[W]):
    """What is measured on a cell: a frozen dataclass whose `measure` gives evidence of one kind.

    `evidence` is that kind: every metric that takes it is computed from the measurement. Its own `pictures`
    and `bench.pictures`, which draws them, are no part of a record's key.
    `scores` says that it runs once for every attack that scores pairs, or membership: such an evaluator has one field,
    `attack`. `controls` are the reference methods that its attacks are held against: what an attack must find, and
    where it must find nothing. `alone` asks for a machine on which nothing else runs.
    """

    evidence: ClassVar[type]
    scores: ClassVar[Literal["pairs", "membership"] | None] = None
    controls: ClassVar[tuple[Role, Role] | None] = None
    alone: ClassVar[bool] = False

    def keys(self, preset: Preset) -> int:
        """Under how many keys it looks at releases. Default: one."""
        return 1

    @abstractmethod
    def measure(self, bench: W) -> Measurement:
        """What it finds on a cell. Raises NotApplicable where it makes no sense there."""

    def pictures(self, bench: W, found: Measurement) -> Mapping[str, Picture]:
        """Pictures by name (a-z and hyphens), drawn only of data that may be shared. Default: none."""
        return {}

    @classmethod
    def samples(cls) -> Iterator[object]:
        """Small pieces of its evidence, on which `bench check` tries metrics that take it. Default: none."""
        yield from ()
