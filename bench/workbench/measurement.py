"""What an evaluator hands back before any metric has seen it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, eq=False)
class Measurement:
    """Evidence for the metrics, with what the record says beside it.

    Args:
        evidence: By task; one with the empty name where there is only one. Of several, the weakest figure counts.
        details, seconds, threat_model: As in `bench.results.records.Record`.
        picture: A PNG to stand beside the record; only of data that may be shared.
    """

    evidence: Mapping[str, object]
    details: Mapping[str, JsonValue]
    seconds: Mapping[str, float]
    threat_model: Mapping[str, str]
    picture: bytes | None = None
