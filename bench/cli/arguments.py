"""Arguments that several verbs share, and what they may be."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.runs.needs import Needs

MOST_PORT = 65535


def results_folder(parser: argparse._ActionsContainer) -> None:
    """Where the records lie."""
    parser.add_argument("--results", type=Path, metavar="DIR", help="folder of the records (default: results)")


def trusted(parser: argparse._ActionsContainer) -> None:
    """Whose records are read."""
    told = "read only records signed by this key (repeatable; default: unsigned ones too)"
    parser.add_argument("--trusted", type=Path, action="append", metavar="FILE.pub", help=told)


def count(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def port(text: str) -> int:
    """A port that a server may listen on; 0 takes any that is free."""
    if not text.isdecimal() or int(text) > MOST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port of 0 (any that is free) to {MOST_PORT}, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def resource_class(text: str) -> Needs:
    """What jobs need of a machine, in a word."""
    try:
        return Needs.named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def share(text: str) -> float:
    """A number between 0 and 1."""
    value = seconds(text)
    if not value < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}")
    return value
