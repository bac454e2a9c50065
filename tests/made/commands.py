"""Commands read and not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.cli import command_line
from bench.cli.parameters import Files
from bench.runs.request import Request


def request(words: Sequence[str]) -> Request:
    """What the words of a command ask for."""
    _, bound, _ = command_line().parse_args(words, exit_on_error=False, print_error=False)
    fixed: dict[str, Any] = {} if words[0] in ("run", "audit") else {"attacks": "none"}
    files: Files = bound.arguments.get("files", Files())
    return files.request(bound.arguments.get("chosen"), words[0], **fixed)
