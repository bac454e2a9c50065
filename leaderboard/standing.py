"""The verdict on a row in two words, with a sign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leaderboard.board import Row
from leaderboard.panel import Word

SIGNS: Mapping[Word, str] = {
    "not broken": "○",
    "members not told": "○",
    "dented": "◐",
    "members told": "◐",
    "broken": "✕",
    "not certified": "?",
    "not rated": "–",
    "does not apply": "·",
    "no attack": "·",
}
"""Every verdict with its sign, from the best for a data owner to those that say nothing."""
MEANINGS: Mapping[Word, str] = {
    "not broken": "no certified attack did better than chance; a stronger attack still may",
    "members not told": "no certified membership attack did better than chance",
    "dented": "an attack did better than chance, but did not surely find people in few guesses",
    "members told": "an attack tells members from others better than chance",
    "broken": "an attack finds people in fewer than 5 guesses and in a twentieth of the guesses of chance (both by the "
    "upper end of the 95 % interval)",
    "not certified": "no attack passed its controls, or the controls of an attack that found people were not run",
    "not rated": "the method broke a promise, the check did not run, it refused a request, or keys are too few",
    "does not apply": "the release has nothing that these attacks could match to people",
    "no attack": "no attack ran",
}
_GRAVEST: tuple[Word, ...] = (
    "not rated", "broken", "members told", "dented", "not certified", "not broken", "members not told",
    "does not apply",
)  # fmt: skip


@dataclass(frozen=True)
class Standing:
    """A verdict.

    Args:
        word: In two words.
        sentence: In full, of every panel that has attacks.
    """

    word: Word
    sentence: str

    @property
    def sign(self) -> str:
        """A mark beside the word: never colour alone."""
        return SIGNS[self.word]

    @property
    def place(self) -> int:
        """Its place among verdicts: 0 is best for the data owner."""
        return list(SIGNS).index(self.word)


def standing(row: Row) -> Standing:
    """The gravest word of both panels, and what each of them says."""
    tried = [panel for panel in (row.panel, row.membership) if panel.members]
    words = {panel.word for panel in tried}
    word: Word = next((each for each in _GRAVEST if each in words), "no attack")
    told = [panel.verdict for panel in tried] or ["no attack ran"]
    if any(member.theirs for panel in tried for member in panel.members):
        told.append("certified by controls that its author alone measured")
    return Standing(word, "; ".join(told))
