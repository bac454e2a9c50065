"""Commands read and not run."""

from __future__ import annotations

from collections.abc import Sequence

from bench.cli import command_line
from bench.runs.request import Request


def request(words: Sequence[str]) -> Request:
    """What the words of a command ask for."""
    _, bound, _ = command_line().parse_args(words, exit_on_error=False, print_error=False)
    given = bound.arguments
    chosen = given.get("chosen")
    options = chosen.values() if chosen else {}
    options |= {} if words[0] in ("run", "audit") else {"attacks": "none"}
    return Request(options, given.get("suite"), given.get("config"), words[0])
