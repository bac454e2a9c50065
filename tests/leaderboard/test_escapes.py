"""A name that somebody chose runs nowhere."""

from __future__ import annotations

import re
import sys
import unicodedata
from xml.etree import ElementTree

import pytest
from made.results_folders import FORMULAS, NAMES, TEX, XML

from leaderboard.escapes import cell, page, tex, xml

STARTS = "=+-@|\uff1d\uff0b\uff0d\uff20"


@pytest.mark.parametrize("name", FORMULAS)
def test_no_cell_is_a_formula_wherever_a_spreadsheet_ends_it(name: str) -> None:
    shown = cell(name)
    assert isinstance(shown, str)
    for part in re.split(r"[;\t\r\n]", shown):
        seen = [letter for letter in part if unicodedata.category(letter)[0] not in "ZC"]
        assert not seen or seen[0] not in STARTS, part
    assert shown.replace("'", "") == name.replace("'", "")  # nothing is lost


@pytest.mark.parametrize("name", ["identity", "dp-simple[scale=20]", "a; -1", "1e-5", "o/p", "a = b", "95 % - 5"])
def test_what_is_no_formula_stays_as_it_is(name: str) -> None:
    assert cell(name) == name


@pytest.mark.parametrize("number", [-1.5, 0, -3, None, float("inf")])
def test_numbers_stay_numbers(number: float | None) -> None:
    assert cell(number) is number


KNOWN = re.compile(
    r"\\text(backslash|braceleft|braceright|asciicircum|asciitilde|less|greater|bar|quotedbl|quotesingle|asciigrave|"
    r"periodcentered)\{\}|\\ldots\{\}|\\[$&#_%]|\$(\\(times|infty|geq|leq|varepsilon|delta|sigma|lambda|beta|uparrow|"
    r"downarrow)|-|\^\{[-0-9]+\})\$|\{[\[\]*-]\}"
)


@pytest.mark.parametrize("name", NAMES)
def test_tex_meets_only_commands_that_set_a_letter(name: str) -> None:
    left = KNOWN.sub("", tex(name))
    assert not set(left) & set("\\{}$&#_%^~[]*")
    assert "\n" not in left
    assert tex(name).count("{") == tex(name).count("}")  # BibTeX counts braces, escaped ones too


@pytest.mark.parametrize("name", TEX)
def test_tex_gets_letters_that_it_has(name: str) -> None:
    assert all(letter.isascii() or "À" <= letter <= "ž" for letter in tex(name))


@pytest.mark.parametrize("name", [*NAMES, *XML])
def test_xml_gives_the_name_back_and_nothing_beside(name: str) -> None:
    found = ElementTree.fromstring(f'<a b="{xml(name)}">{xml(name)}</a>')
    assert len(found) == 0
    assert list(found.attrib) == ["b"]
    assert found.text == found.attrib["b"] or not name.strip()


def test_a_page_shows_every_printable_letter_as_it_is_and_no_other_control_than_a_line_break() -> None:
    letters = [letter for letter in map(chr, range(sys.maxunicode + 1)) if letter.isprintable()]
    text = "\n".join(letters)
    assert page(text) == page(f"{text}\t").removesuffix("\t") == text  # the tab is not printable: the slow way
    assert page("a\nb\x00\u202e\ud800") == "a\nb\ufffd\ufffd"
