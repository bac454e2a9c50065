"""Text from outside: whatever it is, what is shown is short, printable, and made in a moment."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import JsonValue

from bench.wire.text import MOST, line, plain, plain_json, scrub

ANY = some.text(some.characters(), max_size=300)  # halves of surrogate pairs, too


@given(ANY)
def test_only_printable_text_is_left(text: str) -> None:
    for made in (plain(text), scrub(text), plain(text * 100)):
        assert len(made) <= MOST
        made.encode()
        assert not [mark for mark in made if mark != "\n" and unicodedata.category(mark)[0] == "C"]
        assert plain(made) == made


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2J\x1b[1;31mb\x1b[0m", "ab"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
        ("a\x1bcb", "ab"),
        ("a\rb\tc\u2028d", "a b c d"),
        ("evil\u202egnp.exe", "evil?gnp.exe"),
        ("\x9b31mred", "?31mred"),
        ("\ud800", "?"),
        ("two\nlines", "two\nlines"),
        ("[bold]markup[/]", "[bold]markup[/]"),
    ],
)
def test_codes_for_terminals_are_taken_out(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_line_is_the_first_that_says_anything() -> None:
    assert line("\n  \nfirst\nsecond") == "first"
    assert line("") == ""


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("cannot read '/a/b c.png': 3/4 done", "cannot read <path>: 3/4 done"),
        ("no luck with /secret/place/a.png", "no luck with <path>"),
        (r"at C:\Users\me\x.png: no", "at <path>: no"),
        (r"at 'C:\Users\me\my x.png': no", "at <path>: no"),
        ("it can't open '/a/My Images/b'", "it can't open <path>"),
        ("(in /a) and =/b/c", "(in <path> and <path>"),
        ("files/p10/p10000032/y.jpg", "<path>"),
        ("3/4 of and/or", "3/4 of and/or"),
        ("/" * 30, "<path>"),
    ],
)
def test_paths_are_taken_out_and_the_sentence_stays(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed


def test_a_path_at_which_the_text_was_cut_is_taken_out_whole() -> None:
    text = "x" * (MOST - 30) + " '/a/My Images/John Smith 19" + "x" * 100 + "'"
    assert "Smith" not in scrub(text)


@pytest.mark.parametrize("part", ["'", "/", "a/", "'/", '"a/', "a", "\\", " /a", "<", "\x1b[", "\x1b]", ":/", "'a"])
def test_a_text_of_fifty_megabytes_costs_no_more_than_a_short_one(part: str) -> None:
    long, steps = part * (50_000_000 // len(part)), 0
    for _ in range(20):  # each over 10^15 steps were they quadratic
        steps += len(scrub(long))
    assert steps <= 20 * MOST


def test_of_json_names_and_values_are_made_plain() -> None:
    found: JsonValue = {"a\x1b[0m": ["\ud800", 1, None, {"b\x07": "c" * 5000}]}
    assert plain_json(found) == {"a": ["?", 1, None, {"b?": "c" * (MOST - 1) + "…"}]}


def test_a_heap_of_json_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        plain_json([0] * 30_000)
