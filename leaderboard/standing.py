"""What may be said of a row in two words, with a sign, over both panels of attacks."""

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
    "not broken": "no attack whose controls hold did better than chance; that is all it says",
    "members not told": "no attack on membership whose controls hold did better than chance",
    "dented": "an attack did better than chance, and more is not sure",
    "members told": "an attack tells members from others better than chance",
    "broken": "an attack surely finds people in fewer than 5 guesses, and a twentieth of what chance takes (the 95 % "
    "interval ends below both), and not by chance",
    "not certified": "no attack with a figure has controls that ran and hold, or an attack whose controls did not run "
    "found people: its figures support no claim",
    "not rated": "the method broke its word, or nobody looked into it, or keys are too few to break anything",
    "does not apply": "nothing is released that these attacks could match to people",
    "no attack": "nobody attacked it",
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
        """Where it stands among verdicts: 0 is best for a data owner."""
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
