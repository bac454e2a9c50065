"""Content keys: a hash of everything that something depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic import JsonValue

Inputs = Mapping[str, JsonValue]


def content_key(inputs: Inputs) -> str:
    """32 hex digits for a set of inputs, independent of their order.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
