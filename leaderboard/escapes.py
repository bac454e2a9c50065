"""Escaping of third-party text for spreadsheets, TeX, Typst, Markdown, XML and HTML."""

from __future__ import annotations

import html
import re
import unicodedata

Value = str | int | float | None

_FORMULA = frozenset(
    "=+-@|\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
)
_INNER = re.compile(r"([;\t\r\n]\s*)([=+@|\uff1d\uff0b\uff20]|-(?!\d))")
"""A formula behind what some spreadsheets take for the end of a cell."""
_TEX = {
    "\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", "*": "{*}", "-": "{-}",
    "−": "$-$", "–": "--", "—": "---", "×": r"$\times$", "∞": r"$\infty$", "≥": r"$\geq$", "≤": r"$\leq$",
    "ε": r"$\varepsilon$", "δ": r"$\delta$", "σ": r"$\sigma$", "λ": r"$\lambda$", "β": r"$\beta$", "²": r"$^{2}$",
    "·": r"\textperiodcentered{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "…": r"\ldots{}", "“": "``", "”": "''",
    "‘": "`", "’": "'", "†": r"$\dagger$", "‡": r"$\ddagger$",
}  # fmt: skip
_RAISED = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
_MARKDOWN = re.compile(r"[\\`*_{}\[\]#|~!$]")
_TYPST = re.compile(r"[\\#$*_\[\]<>@`~=+\-/\"'{}&|^]|\.(?=\s)")
_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TURNS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def cell(value: Value) -> Value:
    """The value for a spreadsheet: formulas get an apostrophe, numbers stay.

    >>> cell("=1+1"), cell("identity"), cell(-1.5), cell("a;=1+1"), cell("\\u200b=1")
    ("'=1+1", 'identity', -1.5, "a;'=1+1", "'\\u200b=1")
    """
    if not isinstance(value, str):
        return value
    first = next((letter for letter in value if unicodedata.category(letter)[0] not in "ZC"), "")
    inner = _INNER.sub(r"\1'\2", value)
    return f"'{inner}" if first in _FORMULA and first else inner


def tex(text: str) -> str:
    r"""The text for TeX, with no command of its own.

    >>> tex("50 % of a_b"), tex(r"\input{x}"), tex("1.2 × 10⁻⁶")
    ('50 \\% of a\\_b', '\\textbackslash{}input\\textbraceleft{}x\\textbraceright{}', '1.2 $\\times$ 10$^{-6}$')
    """
    raised = re.sub(f"[{''.join(_RAISED)}]+", lambda found: f"\0{found.group()}\0", _line(text))
    parts = raised.split("\0")
    return "".join(
        "$^{" + "".join(_RAISED[letter] for letter in part) + "}$" if number % 2 else "".join(map(_tex, part))
        for number, part in enumerate(parts)
    )


def _tex(letter: str) -> str:
    if letter in _TEX:
        return _TEX[letter]
    if letter.isascii() or "\N{LATIN CAPITAL LETTER A WITH GRAVE}" <= letter <= "\N{LATIN SMALL LETTER Z WITH CARON}":
        return letter
    return f"{{[}}U+{ord(letter):04X}{{]}}"


def markdown(text: str) -> str:
    r"""The text for Markdown, in a table too, on one line.

    >>> markdown("a|b [c](d)"), markdown("<b>*x*</b>")
    ('a\\|b \\[c\\](d)', '&lt;b&gt;\\*x\\*&lt;/b&gt;')
    """
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(_XML.sub("\N{REPLACEMENT CHARACTER}", _line(text)), quote=False))


def typst(text: str) -> str:
    r"""The text for Typst's markup, on one line.

    >>> typst("dp-simple[scale=1]"), typst("#eval(1)")
    ('dp\\-simple\\[scale\\=1\\]', '\\#eval(1)')
    """
    return _TYPST.sub(r"\\\g<0>", _XML.sub("\N{REPLACEMENT CHARACTER}", _line(text)))


def xml(text: str) -> str:
    """The text for XML, on one line, without illegal characters.

    >>> xml('<a b="c">'), xml("a" + chr(0) + "b")
    ('&lt;a b=&quot;c&quot;&gt;', 'a\N{REPLACEMENT CHARACTER}b')
    """
    return html.escape(_XML.sub("\N{REPLACEMENT CHARACTER}", _line(text)))


def page(text: str) -> str:
    """The text for HTML, without direction marks and illegal characters.

    >>> page("\\u202e0.5" + chr(1))
    '0.5\N{REPLACEMENT CHARACTER}'
    """
    if str.replace(text, "\n", "").isprintable():  # nearly always, and told ten times as fast
        return text
    return _XML.sub("\N{REPLACEMENT CHARACTER}", _TURNS.sub("", text))


def _line(text: str) -> str:
    """On one line, read in one direction."""
    return " ".join(_TURNS.sub("", text).replace("\0", "\N{REPLACEMENT CHARACTER}").split())
