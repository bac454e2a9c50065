"""How a terminal shows letters that it does not have.

>>> "ReID AUC ↓ 0.5 – 1 é".encode("ascii", SPELLED)
b'ReID AUC v 0.5 - 1 ?'
"""

from __future__ import annotations

import codecs

SPELLED = "spelled"
"""A handler of `str.encode`: by a letter that is like it, or by a question mark; one for one, so that columns hold."""
_LIKE = dict(zip("↑↓≥≤–…·ε²×±", "^v><-..e2x~", strict=True))


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LIKE.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


codecs.register_error(SPELLED, _spell)
