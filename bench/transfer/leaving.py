"""What may leave this machine: what is known to be of data that may be shared, and names no path.

What nothing here says may be shared stays, as what may not be shared does. Its owner can name a target for it; releases
of it, pictures, evidence and words never leave.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.results.disclosure_check import PATHS, PATIENT, identifying_text, restricted
from bench.results.records import DatasetRecord, Record

RESTRICTED = "its data may not be shared, or nothing here says that they may: name the target with --restricted-to"
NEVER = "a release of data that may not be shared, or of which nothing here says that they may: it never leaves"
Data = tuple[object, object]


@dataclass(frozen=True)
class Border:
    """What may go, and what is known so far of which data may be shared.

    Args:
        named: Whether the owner named the target for data that may not be shared.
        shared: By the fingerprints of the private and the public set, whether they may.
    """

    named: bool
    shared: dict[Data, bool] = field(default_factory=dict)

    def learn(self, data: DatasetRecord, *, may: bool | None = None) -> None:
        """Note what is said of data; a single no counts more than any yes."""
        may = data.shareable if may is None else may
        key = (data.fingerprint, data.public_fingerprint)
        self.shared[key] = self.shared.get(key, True) and may

    def holds(self, record: Record) -> str:
        """Why a record stays; empty where it may leave."""
        never = list(restricted(record))
        if record.dataset is not None:
            self.learn(record.dataset, may=record.dataset.shareable and not never)
        if told := [*never, *identifying_text(record)]:
            return told[0]
        if record.dataset is None or not record.dataset.shareable:
            return "" if self.named else RESTRICTED
        return ""

    def holds_artefact(self, kind: str, inputs: dict[str, object], text: str) -> str:
        """Why an artefact stays; empty where it may leave.

        Args:
            kind: Its kind.
            inputs: What it was made from.
            text: Its manifest and the header of its tensors.
        """
        if told := spoken(text):
            return told
        if self.shared.get((inputs.get("data"), inputs.get("public data")), False):
            return ""
        if kind == "releases":
            return NEVER
        return "" if self.named else RESTRICTED


def spoken(text: str) -> str:
    """What a text holds that no other machine should see, in words; empty where it holds nothing of the kind."""
    found: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
        (PATHS, lambda path: f"it holds a path, a file's name or an address: {path.strip()!r:.60}"),
        (PATIENT, lambda patient: f"it holds what looks like a patient's number, {patient[:2]}…"),
    )
    return next((say(match[0]) for pattern, say in found if (match := pattern.search(text))), "")
