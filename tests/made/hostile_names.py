"""Names that attack whatever reads them: a spreadsheet, TeX, BibTeX, XML, SVG, a terminal, an eye."""

from __future__ import annotations

FORMULAS = (
    "=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "|cmd", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "\u200b=1",
    "\ufeff=1", "\uff1d1+1", "\uff20SUM(1)", "\x00=1", "a;=1+1", "a\t=1+1", 'a"\n=1+1', "a;\n @SUM(1)", '";=1+1;"',
)  # fmt: skip
TEX = (
    r"\input{/etc/passwd}", r"\write18{id}", r"^^5cinput{x}", "} \\end{tabular} \\input{x} {", "$x$ & y \\\\ % z",
    "a_b#c~d", "[2cm]", "*", "{", "}", "{{{", "a\n\n\\par b", "\\", "%", "\\\\[1cm]", "`'\"", "π ≠ 中 \U0001f600",
    "\u202egnp",
)  # fmt: skip
XML = (
    "<script>alert(1)</script>", "\"><image href='x'/>", "]]>", "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "&x;", "&#0;", "\x00\x01\x0b\x1f", "\ufffe\uffff", "' onload='alert(1)", "<!--", "</text><script/>",
    "javascript:alert(1)", "\u2028",
)  # fmt: skip
NAMES = (*FORMULAS, *TEX, *XML)
