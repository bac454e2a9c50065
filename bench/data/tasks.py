"""What is taken of a table with findings: columns, joined by "+", and rows by view."""

from __future__ import annotations

from collections.abc import Mapping

VIEWS: Mapping[str, tuple[str, ...]] = {"frontal": ("AP", "PA"), "AP": ("AP",), "PA": ("PA",)}
"""The frontal views by the word that chooses them."""


def tasks_of(text: str, noun: str = "findings") -> tuple[str, ...]:
    """The columns that a text names.

    >>> tasks_of("Edema+Pleural Effusion")
    ('Edema', 'Pleural Effusion')

    Raises:
        ValueError: It names none, or one twice; the message calls them by `noun`.
    """
    found = tuple(text.split("+"))
    if not text or len(set(found)) != len(found):
        raise ValueError(f"tasks must be different {noun} joined by '+', got {text!r}")
    return found
