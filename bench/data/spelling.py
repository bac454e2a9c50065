"""When two spellings are one word: the same rule for people, findings and columns."""

from __future__ import annotations

import unicodedata

from bench.contract.source import DataError

_SPREADSHEET = {
    "#n/a", "#name?", "#null!", "#num!", "#ref!", "#value!", "#div/0!", "#nv", "#bezug!", "#wert!", "#zahl!",
    "#valeur!", "#nom?", "#nombre!", "#valor!",
}  # fmt: skip
NOTHING = (
    frozenset({"", "nan", "none", "null", "nil", "na", "n/a", "<na>", "nat", "unknown", "missing", "-", "--", "?", "."})
    | _SPREADSHEET
)
"""Words that tables write where they know nothing."""


def spelling(text: str) -> str:
    """The word behind a spelling: without case, width of letters, invisible marks, or blanks around and in a row.

    Raises:
        DataError: If it holds control characters or half of a character; the text does not repeat it.

    >>> spelling(" Ａnn  Lee ")
    'ann lee'
    """
    shown = "".join(letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf")
    word = " ".join(shown.split()).casefold()
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in word):
        raise DataError("expected readable text, found control characters or bytes that are no UTF-8")
    return word
