"""When a record says that it was made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

LATER = timedelta(days=1)  # of a clock that is wrong


def is_none(created: str) -> bool:
    """Whether it is no time of the past: later than now, without a zone, or no time at all.

    >>> is_none("2026-01-02T03:04:05+00:00"), is_none("2999-01-01T00:00:00+00:00"), is_none("tomorrow")
    (False, True, True)
    """
    try:
        made = datetime.fromisoformat(created)
    except ValueError:
        return True
    return made.tzinfo is None or made > datetime.now(UTC) + LATER
