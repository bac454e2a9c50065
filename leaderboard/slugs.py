"""Names as file names: lower case, a-z, 0-9 and hyphens only, and never the same for two names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LENGTH = 48
_HASHED = re.compile("(^|-)[0-9a-f]{8}$")


def slug(name: str) -> str:
    """A safe file stem for any text; names that lose something, or look as if they had, carry a hash of the whole.

    >>> slug("dp-image"), slug("../../etc/passwd")
    ('dp-image', 'etc-passwd-3754d6cb')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LENGTH].strip("-")
    return plain if plain and plain == name and not _HASHED.search(plain) else f"{plain}-{digest(name)}".strip("-")


def slugs(names: Iterable[str]) -> dict[str, str]:
    """A slug for every name, unique among them."""
    given: dict[str, str] = {}
    for name in sorted(set(names)):
        stem = slug(name)
        while stem in given.values():
            stem = f"{stem}-{digest(name)}"
        given[name] = stem
    return given


def digest(text: str, length: int = 8) -> str:
    """So many hexadecimal digits that depend on all of `text`."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
