"""Foreign text made fit for records and terminals: bounded, printable, without paths."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Annotated

from pydantic import BeforeValidator, JsonValue

MOST = 2000
MOST_NAME = 200
MOST_VALUES = 20_000
MOST_TEXT = 500_000

_CODES = re.compile(r"\x1b\[[0-?]{0,40}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|\x1b.?")
_WHITE = str.maketrans(dict.fromkeys("\t\r\x0b\x0c\x85\u2028\u2029", " "))
_DRIVE = re.compile(r"(?<![\w<])[A-Za-z]:\\[^\s:'\"]*+")
_QUOTED = re.compile(r"(['\"])(?=[^'\"/\\]*+[/\\])[^'\"]*+\1")
_OPEN_QUOTE = re.compile(r"['\"][^'\"]*+\Z")
_WORD = re.compile(r"[^\s:'\"]++")
_ROOT = re.compile(r"(?<![\w<])/.")


def plain(text: str, most: int = MOST) -> str:
    r"""At most `most` characters of `text` without control characters and escape codes.

    >>> plain("done\x1b[31m \ud800\x07", 40)
    'done ??'
    >>> plain("abcdefgh", 4)
    'abc…'
    """
    cut = text[: most + 1]
    cut = _CODES.sub("", cut).translate(_WHITE)
    # Of the kinds "C" are what moves the cursor, what turns the direction of reading, and what is no character at all.
    clean = "".join(mark if mark == "\n" or unicodedata.category(mark)[0] != "C" else "?" for mark in cut)
    return clean if len(text) <= most else f"{clean[: most - 1]}…"


def shown(path: object) -> str:
    r"""A path of this machine for a terminal, in full.

    Characters that do not print, or turn the direction of reading, are escaped.

    >>> shown("results/\u202ecod.exe \x1b[31m/a b")
    'results/\\u202ecod.exe \\x1b[31m/a b'
    """
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in str(path))


def line(text: str, most: int = MOST) -> str:
    """The first line of it that says anything, made plain."""
    return next((each for each in plain(text, most).splitlines() if each.strip()), "")


def scrub(text: str, most: int = MOST) -> str:
    """`text` made plain and without paths, in time bounded by `most`.

    >>> scrub("cannot read '/home/me/My Images/x.png': truncated, see files/p10/p10000032/y.jpg")
    'cannot read <path>: truncated, see <path>'
    """
    result = plain(text, most)
    result = _QUOTED.sub("<path>", result)
    if len(text) > most:
        result = _OPEN_QUOTE.sub(lambda rest: "<path>…" if re.search(r"[/\\]", rest[0]) else rest[0], result)
    return _WORD.sub(lambda word: _without_path(word[0]), _DRIVE.sub("<path>", result))[:most]


def _without_path(word: str) -> str:
    if word.count("/") > 1:
        return "<path>"
    match = _ROOT.search(word)
    return word if match is None else f"{word[: match.start()]}<path>"


def plain_json(value: JsonValue) -> JsonValue:
    """The same with every text in it, names too, made plain.

    Raises:
        ValueError: It holds more than `MOST_VALUES` values, or more than `MOST_TEXT` characters in all.
    """
    values, marks = 0, 0

    def said(text: str, most: int) -> str:
        nonlocal marks
        short = plain(text, most)
        marks += len(short)
        return short

    def made(value: JsonValue) -> JsonValue:
        nonlocal values
        values += 1
        if values > MOST_VALUES or marks > MOST_TEXT:
            raise ValueError(f"notes and details must hold at most {MOST_VALUES} values and {MOST_TEXT} characters")
        if isinstance(value, str):
            return said(value, MOST)
        if isinstance(value, dict):
            return {said(name, MOST_NAME): made(inner) for name, inner in value.items()}
        return [made(inner) for inner in value] if isinstance(value, list) else value

    return made(value)


def said(error: BaseException) -> str:
    """An exception's text, made plain; foreign classes may fail to give one."""
    try:
        return plain(str(error))
    except Exception:
        return "it cannot say why"


def named(error: BaseException) -> str:
    """The same after the name of its class."""
    return plain(f"{plain(type(error).__name__, MOST_NAME)}: {said(error)}")


def _plain_text(value: object) -> object:
    return plain(value) if isinstance(value, str) else value


def _plain_name(value: object) -> object:
    return plain(value, MOST_NAME) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_plain_text)]
"""A sentence or more, made plain on validation."""
Name = Annotated[str, BeforeValidator(_plain_name)]
"""A name, made plain on validation."""


def slug(text: str) -> str:
    """Lower-case text for paths: letters, digits, dots and hyphens.

    A short hash replaces what is lost, so that slugs of different texts differ.

    >>> slug("dp-simple[scale=20]"), slug("identity")
    ('dp-simple-scale-20-', 'identity')
    """
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower())
    if re.sub(r"[\[\]=,:@]", "-", text) == plain and len(plain) <= 80:
        return plain
    return f"{plain[:60]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
