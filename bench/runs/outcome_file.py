"""The outcome of a job as signed JSON, never unpickled."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from bench.results import signed_json
from bench.results.atomic_file import write_atomically
from bench.results.reason import Code, Phase
from bench.results.record_parts import Part
from bench.results.records import Status
from bench.results.signed_json import AlteredError
from bench.runs.engine import Outcome


class _Stored(Part):
    """An outcome as JSON; fields as in `bench.runs.engine.Outcome`."""

    status: Status
    value: JsonValue
    code: Code | None
    reason: str | None
    phase: Phase | None
    seconds: float
    cpu_seconds: float
    peaks: dict[Phase, int]


def write_outcome(path: Path, kind: str, answer: type[object], outcome: Outcome) -> None:
    """Write an outcome in one step.

    Args:
        path: The file.
        kind: Names the job, and enters the digest.
        answer: The type of its value.
        outcome: The outcome to write.
    """
    value = None
    if outcome.value is not None:
        value = TypeAdapter(answer).dump_python(outcome.value, mode="json", warnings="error")
    stored = _Stored(**{**vars(outcome), "value": value, "peaks": dict(outcome.peaks)})
    proved = signed_json.attest(stored.model_dump(mode="json"), kind)
    write_atomically(path, signed_json.written(proved), mode=0o600, sweep=False)


def read_outcome(path: Path, kind: str, answer: type[object]) -> Outcome | None:
    """The outcome in a file; None if it is missing or invalid."""
    try:
        stored = _Stored.model_validate(signed_json.read(path.read_bytes(), kind))
        value = None if stored.status != "ok" else TypeAdapter(answer).validate_python(stored.value)
    except (AlteredError, ValidationError, OSError):  # not there, half visible, or of another version
        return None
    return Outcome(**{**vars(stored), "value": value})
