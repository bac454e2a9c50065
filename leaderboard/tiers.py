"""How far others than its author have vouched for a record, from a bare word up to keys that the author never held."""

from __future__ import annotations

from enum import IntEnum

from bench.results.records import Record


class Tier(IntEnum):
    """In ascending order of trust.

    Self-reported: its author ran it, and nobody else. Replayed: the stored evidence was judged anew, to the same
    figures. Re-run: an evaluator was run again elsewhere. Sealed: the keys were never in the author's hands.
    """

    SELF_REPORTED = 0
    REPLAYED = 1
    RE_RUN = 2
    SEALED = 3

    @property
    def word(self) -> str:
        """As pages and the terminal print it.

        >>> Tier.SELF_REPORTED.word, Tier.RE_RUN.word
        ('self-reported', 're-run')
        """
        return self.name.lower().replace("_", "-")


def tier_of(record: Record) -> Tier:
    """The tier of a record; where nothing vouches for it, the least."""
    return Tier.SELF_REPORTED
