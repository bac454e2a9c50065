"""Printing: results on standard output, messages on standard error.

>>> "ReID AUC ↓ 0.5 – 1 é".encode("ascii", SPELLED)
b'ReID AUC v 0.5 - 1 ?'
"""

from __future__ import annotations

import codecs
import json
import math
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

SPELLED = "spelled"
"""An error handler of `str.encode`: a letter that looks alike or a question mark, one for one, so that columns hold."""
_LIKE = dict(zip("↑↓≥≤–…·ε²×±", "^v><-..e2x~", strict=True))


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LIKE.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


codecs.register_error(SPELLED, _spell)


def let_go() -> None:
    """Drop later standard output, without a complaint at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def to_stdout() -> Console:
    """A console for results, on standard output."""
    from rich.console import Console

    class Results(Console):
        """A console whose reader may close the pipe, as `head` does."""

        def on_broken_pipe(self) -> None:
            """See `Console`, which would end the process with code 1."""
            self.quiet = True
            let_go()

    width = None if sys.stdout.isatty() else 160
    return Results(highlight=False, markup=False, width=width)  # brackets are those of specs


def print_json(**content: JsonValue) -> None:
    """Print a command's result as one JSON object, with its keys sorted.

    Numbers that are not finite become null, for JSON has none of them.
    """
    print(json.dumps(_finite(content), sort_keys=True, indent=2, ensure_ascii=False))


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_stderr(lines: Iterable[str], most: int) -> None:
    """Print at most so many lines, made plain, to standard error."""
    from bench.wire.text import plain

    texts = list(lines)
    for text in texts[:most]:
        print(plain(text), file=sys.stderr)
    if len(texts) > most:
        print(f"... and {len(texts) - most} more", file=sys.stderr)
