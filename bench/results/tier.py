"""How far a record was checked by somebody else than its author: four tiers, each of which holds what those below do.

The proof of a tier is a verdict (`bench.results.verdict`), which the verifying machine writes and signs. Nothing that a
record says of itself raises its tier.
"""

from __future__ import annotations

from enum import IntEnum


class Tier(IntEnum):
    """The tiers in order: a higher one is a greater number.

    >>> Tier.SELF_REPORTED < Tier.REPLAYED < Tier.RE_RUN < Tier.SEALED, Tier.RE_RUN.word, Tier.of_word("sealed").word
    (True, 're-run', 'sealed')
    """

    SELF_REPORTED = 0
    REPLAYED = 1
    RE_RUN = 2
    SEALED = 3

    @property
    def word(self) -> str:
        """As records, pages and the command line write it."""
        return self.name.lower().replace("_", "-")

    @property
    def meaning(self) -> str:
        """What was checked, in a sentence."""
        return _MEANINGS[self]

    @classmethod
    def of_word(cls, word: str) -> Tier:
        """The tier that is written so. Raises ValueError for any other word."""
        for tier in cls:
            if tier.word == word:
                return tier
        raise ValueError(f"a tier must be {', '.join(each.word for each in cls)}, got {word!r}")


_MEANINGS = {
    Tier.SELF_REPORTED: "The author's word: nobody else has checked more than that the file is whole.",
    Tier.REPLAYED: "The figures were computed again from stored evidence, whose order follows from the run's secret.",
    Tier.RE_RUN: "Besides, a measurement that the verifier drew at random was made again and gave the same figures.",
    Tier.SEALED: "The verifier ran it under keys that the author never held, with methods and attacks kept apart.",
}
