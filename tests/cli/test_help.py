"""Help pages beside golden files, which `BENCH_RENEW_GOLDEN=1 pytest tests/cli/test_help.py` writes anew."""

from __future__ import annotations

import io
import os
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from bench.cli import GROUPS, VERBS, command_line

GOLDEN = Path(__file__).with_name("help")
PAGES = ["", *GROUPS, *VERBS]


def page(verb: str) -> str:
    """The help of a verb, 100 columns wide and without colours."""
    text = io.StringIO()
    app = command_line(Console(file=text, width=100, color_system=None, force_terminal=False, legacy_windows=False))
    app.help_print(verb.split())
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip() + "\n"


@pytest.mark.parametrize("verb", PAGES, ids=lambda verb: verb or "bench")
def test_the_help_of(verb: str) -> None:
    path = GOLDEN / f"{verb.replace(' ', '-') or 'bench'}.txt"
    if os.environ.get("BENCH_RENEW_GOLDEN"):
        path.write_text(page(verb), encoding="utf-8")
    assert page(verb) == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_of_a_verb_that_went() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {verb.replace(" ", "-") or "bench" for verb in PAGES}


@pytest.mark.parametrize("verb", VERBS)
def test_a_help_page_shows_two_examples_that_the_verb_takes(verb: str) -> None:
    app = command_line()
    for example in VERBS[verb].examples:
        assert example in page(verb)
        words = shlex.split(example)
        assert words[: 1 + len(verb.split())] == ["bench", *verb.split()]
        app.parse_args(words[1:], exit_on_error=False, print_error=False)


def test_every_option_says_what_it_does() -> None:
    silent = []
    for verb in VERBS:
        app = command_line()
        for word in verb.split():
            app = app[word]
        silent += [
            f"{verb}: {one.name}" for one in app.assemble_argument_collection() if one.show and not one.parameter.help
        ]
    assert silent == []
