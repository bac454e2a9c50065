r"""Tables for papers: a LaTeX table a data set, preset and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leaderboard.board import Row, epsilon_text
from leaderboard.edition import Edition
from leaderboard.entries import Column, Entry
from leaderboard.escapes import tex
from leaderboard.lines import PERSON, PRIVACY, UTILITY, Section
from leaderboard.names import slug

HEAD = "% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}, \\usepackage{textcomp}.\n"


def latex_tables(edition: Edition) -> Iterator[tuple[str, str]]:
    """Each table's address, relative to the board, and its text."""
    for part in edition.parts:
        for preset, seed in sorted({(row.preset, row.seed) for row in part.rows}):
            some = [row for row in part.rows if (row.preset, row.seed) == (preset, seed)]
            name = f"latex/{part.slug}-{slug(preset)}-{slug(str(seed))}.tex"
            yield name, latex_table(some, _columns(some, edition.columns), _caption(part, preset, seed, edition))


def latex_table(some: Sequence[Row], columns: Sequence[Column], caption: str) -> str:
    """One table, as wide as a column of text of 345 points.

    Figures of attacks whose controls do not hold carry a dagger, those that are not rated stand in brackets, and below
    stands why. Rows to which nothing applies are named below.
    """
    arrow = {"higher": r"$\uparrow$", "lower": r"$\downarrow$"}
    heads = [
        "Method",
        *(f"{tex(each.title)} {arrow[each.better]}" for each in columns),
        r"Derived $\varepsilon$ $\downarrow$",
    ]
    lines = [
        HEAD + r"\begin{table}", r"\centering", f"\\caption{{{caption}}}", r"\footnotesize\setlength{\tabcolsep}{2pt}",
        f"\\begin{{tabular}}{{p{{.25\\linewidth}}{'r' * (len(columns) + 1)}}}", r"\toprule",
        " & ".join(heads) + r" \\", r"\midrule",
    ]  # fmt: skip
    shown = [row for row in some if any(entry.score is not None for entry in row.entries.values())]
    for row in shown:
        bound = _bound(row)
        lines.append(
            " & ".join([_breaking(_name(row)), *(_place(row.entries[c.name]) for c in columns), bound]) + r" \\"
        )
    said = dict.fromkeys(f"{_name(row)}: {text}" for row in shown for text in (row.unrated, row.caveat) if text)
    if any(_doubtful(row.entries[column.name]) for row in shown for column in columns):
        said["† the controls of the attack did not run or do not hold: the figure supports no claim of privacy"] = None
    if idle := [_name(row) for row in some if row not in shown]:
        said[f"Without a figure: {', '.join(idle)}"] = None
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        *(f"\\par\\raggedright{{\\scriptsize {_breaking(text)}\\par}}" for text in said),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _name(row: Row) -> str:
    """The method as asked for, without parameters at their defaults."""
    return row.records[0].method.written


def _breaking(text: str) -> str:
    """The text in braces, with line breaks after commas and before brackets.

    In braces, for a row that begins with a bracket or an asterisk would be taken for an option of the one above.
    """
    return "{" + tex(text).replace(",", r",\allowbreak{}").replace("{[}", r"\allowbreak{}{[}") + "}"


def _bound(row: Row) -> str:
    if row.claim is None:
        return "none"
    of = "" if row.claim.per == "image" else f" {{\\scriptsize per {tex(row.claim.per)}}}"
    return f"{tex(epsilon_text(row.claim.derived))}{of}"


def _doubtful(entry: Entry) -> bool:
    return entry.score is not None and entry.attacked and not entry.certified


def _place(entry: Entry) -> str:
    if entry.score is None:
        return "{}" if entry.status == "not-run" else f"{{\\scriptsize {tex(entry.text)}}}"
    text = tex(entry.text) + (r"$^\dagger$" if _doubtful(entry) else "")
    if entry.score.low is not None:
        text += f" {{\\scriptsize ({tex(entry.interval.replace(' ', ''))})}}"
    return f"{{[}}{text}{{]}}" if entry.unrated else text


def _columns(some: Sequence[Row], columns: Sequence[Column]) -> list[Column]:
    """The board's main figures that any of these rows has."""
    found = [column for column in columns if any(row.entries[column.name].score is not None for row in some)]
    by_name = {column.name: column for column in found}
    useful = next((by_name[name] for name in UTILITY if name in by_name), None)
    told = [column for column in (useful, *(by_name.get(name) for name in (*PRIVACY, *PERSON))) if column is not None]
    return told or found[:3]


def _caption(part: Section, preset: str, seed: int, edition: Edition) -> str:
    text = f"{part.title}, preset {preset}, seed {seed}; 95 % intervals in parentheses"
    return tex(f"{text}. Veil Bench, protocol {edition.protocol}, snapshot {edition.snapshot[:12]}.")
