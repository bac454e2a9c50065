"""Evaluators: one measurement of a cell, with its own record."""

from __future__ import annotations

import json
import re
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import JsonValue

from bench.contract.method import Role
from bench.contract.plugin import Plugin
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
    """A PNG for a method's page, and its caption."""

    caption: str
    png: bytes


class Evaluator(Plugin, Generic[W]):
    """A measurement of a cell: `measure` gives evidence of one kind.

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
        """Its measurement of a cell. Raises NotApplicable if it makes no sense."""

    def pictures(self, bench: W, found: Measurement) -> Mapping[str, Picture]:
        """Pictures by name (a-z and hyphens), of shareable data only.

        Default: none.
        """
        return {}

    @classmethod
    def samples(cls) -> Iterator[object]:
        """Small pieces of its evidence, for `bench check` of metrics.

        Default: none.
        """
        yield from ()


def check_measurement(evaluator: Evaluator[W], found: object) -> Measurement:
    """The evaluator's measurement. Raises ContractError if no record could hold it."""
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
    """The pictures. Raises ContractError for bad names, no PNG, or too many."""
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


MOST_BYTES = 4 * 2**20
MOST_SIDE = 20_000
_START = b"\x89PNG\r\n\x1a\n"
_PARTS = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"pHYs", b"sRGB", b"gAMA", b"cHRM", b"tEXt", b"sBIT"})


def check_png(content: bytes) -> None:
    """Raise ValueError unless the bytes are one plain, bounded PNG."""
    if not content.startswith(_START):
        raise ValueError(f"must be a PNG, got {content[:8]!r}")
    if len(content) > MOST_BYTES:
        raise ValueError(f"must take at most {MOST_BYTES} bytes, got {len(content)}")
    at, kinds = len(_START), []
    while at < len(content):
        length, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(content) or zlib.crc32(content[at + 4 : end - 4]) != int.from_bytes(content[end - 4 : end], "big"):
            raise ValueError("must be a whole PNG: a part of it is cut off or damaged")
        if kind not in _PARTS:
            raise ValueError(f"must be a plain PNG, got a part {kind!r}")
        if kind == b"IHDR":
            width, height = (int.from_bytes(content[at + 8 + 4 * k : at + 12 + 4 * k], "big") for k in (0, 1))
            if not (length == 13 and 0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE):
                raise ValueError(f"must have sides of 1 to {MOST_SIDE} pixels, got {width} x {height}")
        kinds.append(kind)
        at = end
        if kind == b"IEND":
            break
    whole = kinds[:1] == [b"IHDR"] and kinds.count(b"IHDR") == 1 and kinds[-1:] == [b"IEND"] and b"IDAT" in kinds
    if not whole or at != len(content):
        raise ValueError("must be a whole PNG, from its header to its end, and nothing after it")
