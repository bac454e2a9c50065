"""An evaluator: one thing that is measured on a cell, with a record of its own."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import JsonValue

from bench.contract.method import Role
from bench.contract.plugin import Plugin
from bench.contract.png import check_png
from bench.contract.preset import Preset
from bench.contract.seal import ContractError

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""What evaluators and pictures may be called: a part of a file's name."""
MOST_PICTURES = 32
MOST_NAME = 100
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
    controls: ClassVar[tuple[Role, ...] | None] = None
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


def check_measurement(evaluator: Evaluator[W], found: object) -> Measurement:
    """The measurement of an evaluator. Raises ContractError where it is none, or where a record could not hold it."""
    if not isinstance(found, Measurement):
        raise ContractError(f"{evaluator.name} must give a Measurement, got {type(found).__name__}")
    wrong = [type(part).__name__ for part in found.evidence.values() if not isinstance(part, evaluator.evidence)]
    if wrong or not found.evidence:
        raise ContractError(
            f"{evaluator.name} must give evidence of the type {evaluator.evidence.__name__}, "
            f"got {wrong[0] if wrong else 'none'}"
        )
    for what in ("details", "seconds", "threat_model"):
        try:
            json.dumps(dict(getattr(found, what)))
        except (TypeError, ValueError) as error:
            raise ContractError(f"{evaluator.name} must give {what} that are plain JSON: {error}") from error
    return found


def check_pictures(pictures: Mapping[str, Picture]) -> Mapping[str, Picture]:
    """The pictures. Raises ContractError for a name that is no part of a file's name, for no PNG, or for too many."""
    if len(pictures) > MOST_PICTURES:
        raise ContractError(f"at most {MOST_PICTURES} pictures may stand beside a record, got {len(pictures)}")
    for name, picture in pictures.items():
        if NAME.fullmatch(name) is None or len(name) > MOST_NAME:
            raise ContractError(
                f"the name of a picture must be of a-z, 0-9 and single hyphens, got {name[:MOST_NAME]!r}"
            )
        try:
            check_png(picture.png)
        except ValueError as error:
            raise ContractError(f"picture {name} {error}") from None
    return pictures
