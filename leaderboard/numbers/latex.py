r"""Tables for papers: one a data set, preset and seed, in LaTeX with booktabs, to be \input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leaderboard.board import Row
from leaderboard.columns import Column
from leaderboard.entries import Entry
from leaderboard.numbers.escapes import tex
from leaderboard.numbers.shown import Shown
from leaderboard.sections import Section
from leaderboard.slugs import slug

HEAD = "% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}, \\usepackage{textcomp}.\n"


def latex_tables(shown: Shown) -> Iterator[tuple[str, str]]:
    """Each table's address, relative to the board, and its text."""
    for part in shown.parts:
        for preset, seed in sorted({(row.preset, row.seed) for row in part.rows}):
            some = [row for row in part.rows if (row.preset, row.seed) == (preset, seed)]
            name = f"latex/{part.slug}-{slug(preset)}-{slug(str(seed))}.tex"
            yield name, latex_table(some, _columns(some, shown.columns), _caption(part, preset, seed, shown))


def latex_table(some: Sequence[Row], columns: Sequence[Column], caption: str) -> str:
    """One table; what is not rated stands in brackets, and below it why."""
    arrow = {"higher": r"$\uparrow$", "lower": r"$\downarrow$"}
    places = "l" + "r" * len(columns)
    lines = [
        HEAD + r"\begin{table}", r"\centering", f"\\caption{{{caption}}}", f"\\begin{{tabular}}{{{places}}}",
        r"\toprule", " & ".join(["Method", *(f"{tex(each.title)} {arrow[each.better]}" for each in columns)]) + r" \\",
        r"\midrule",
    ]  # fmt: skip
    for row in some:
        # In braces, for a row that begins with a bracket or an asterisk would be taken for an option of the one above.
        lines.append(" & ".join([f"{{{tex(_name(row))}}}", *(_place(row.entries[c.name]) for c in columns)]) + r" \\")
    said = dict.fromkeys(f"{_name(row)}: {text}" for row in some for text in (row.unrated, row.caveat) if text)
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        *(f"\\par{{\\footnotesize {tex(text)}}}" for text in said),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _name(row: Row) -> str:
    """The method as it was asked for, without what stood at its default."""
    return row.records[0].method.written


def _place(entry: Entry) -> str:
    if entry.score is None:
        return "{}" if entry.status == "not-run" else f"{{\\footnotesize {tex(entry.text)}}}"
    text = tex(entry.text) if entry.score.low is None else f"{tex(entry.text)} ({tex(entry.interval)})"
    return f"{{[}}{text}{{]}}" if entry.unrated else text


def _columns(some: Sequence[Row], columns: Sequence[Column]) -> list[Column]:
    """The first metric of each group that has a figure: a page is narrower than the board, which has them all."""
    first: dict[str, Column] = {}
    for column in columns:
        if any(row.entries[column.name].score is not None for row in some):
            first.setdefault(column.group, column)
    return list(first.values())


def _caption(part: Section, preset: str, seed: int, shown: Shown) -> str:
    text = f"{part.title}, preset {preset}, seed {seed}; 95 % intervals in brackets"
    return tex(f"{text}. Veil Bench, protocol {shown.protocol}, snapshot {shown.snapshot[:12]}.")
