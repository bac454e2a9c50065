"""Names as parts of paths: readable, and never the same for two names."""

from __future__ import annotations

import hashlib
import re


def slug(text: str) -> str:
    """Lower-case letters, digits, dots and hyphens; what is lost is replaced by a short hash, so slugs stay apart.

    >>> slug("dp-simple[scale=20]"), slug("identity")
    ('dp-simple-scale-20-', 'identity')
    """
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower())
    if re.sub(r"[\[\]=,:@]", "-", text) == plain and len(plain) <= 80:
        return plain
    return f"{plain[:60]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
