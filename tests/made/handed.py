"""A bundle as it was handed in, and the same as a forger would hand it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bench.exchange import check
from bench.exchange.bundle_tiers import Verified, assign_tiers
from bench.exchange.submit import submit
from bench.results import signed_json
from bench.results.bundle import Bundle
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.results.verdict import Judged
from made import submissions


@dataclass(frozen=True)
class Handed:
    """An author's folder, the bundle made of it, and the prepared data."""

    folder: Path
    results: Results
    bundle: Bundle
    cache: Path


def hand_in(folder: Path) -> Handed:
    """Measure, and pack."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "required", submissions.few)
        results = submissions.handed_in(folder / "results", folder / "cache")
        assert submit(results, folder / "a.bundle.zip", disclose=True)[1] == ()
    return Handed(folder, results, Bundle.open(folder / "a.bundle.zip"), folder / "cache")


Change = Callable[[dict[str, Any]], object]


def forged(handed: Handed, changes: Mapping[str, Change], **files: bytes | None) -> Bundle:
    """The bundle with records changed, as a forger does who knows how digests and keys are made.

    Args:
        handed: What was handed in.
        changes: By the end of a record's name.
        files: Other files, in place of those whose names begin so; None takes them out.
    """
    made: dict[str, bytes] = {}
    for name, content in handed.bundle.files.items():
        told = [change for end, change in changes.items() if name.endswith(end) and name.startswith("cells/")]
        for change in told:
            record = signed_json.parsed(content)
            change(record)
            record["key"] = content_key(record["inputs"])  # type: ignore[arg-type]
            content = signed_json.written(signed_json.attest(record, "record"))
        made[name] = content
    for name, other in files.items():
        made = {each: text for each, text in made.items() if not each.startswith(name)}
        if other is not None:
            made[name] = other
    # No forger leaves evidence behind that no record speaks of any more: its name ends with the start of its hash.
    spoken = b"".join(content for name, content in made.items() if name.endswith(".json"))
    ending = ".safetensors"
    idle = {name for name in handed.bundle.files.keys() & made.keys() if name.endswith(ending)
            and name.removesuffix(ending).rpartition("-")[2].encode() not in spoken}  # fmt: skip
    return packed(handed, {name: content for name, content in made.items() if name not in idle})


def packed(handed: Handed, files: Mapping[str, bytes]) -> Bundle:
    """The bundle with other files, its manifest made anew: what `Bundle.open` would give."""
    return replace(handed.bundle, files=files)


def judged(of: Bundle, **more: Any) -> Verified:
    return assign_tiers(of, **more)


def tiers(found: Verified) -> dict[str, str]:
    """The tiers of the method's own records, by evaluator."""
    assert found.verdict is not None, found.refused
    return {
        f"{evaluator}.json": judged.tier.word
        for cell, row in found.verdict.rows.items()
        if f"/{submissions.METHOD}--" in f"/{cell.partition('/')[2]}"
        for evaluator, judged in row.records.items()
    }


def found_of(found: Verified) -> list[Judged]:
    """What was found of every record."""
    assert found.verdict is not None, found.refused
    return [judged for row in found.verdict.rows.values() for judged in row.records.values()]
