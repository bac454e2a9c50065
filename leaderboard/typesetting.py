"""Tables for papers in Markdown, LaTeX, Typst and tidy CSV.

Figures, intervals and the choice of the strongest attack are those of the board (`leaderboard.entries`); text of others
is escaped for each format.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Literal

from bench.plugins.spec import text
from bench.workbench.choice import NO_PUBLIC
from leaderboard.board import Row, telling
from leaderboard.entries import WORDS, Column, Entry, short
from leaderboard.escapes import cell, markdown, tex, typst
from leaderboard.names import choices, choices_apart, parameters_text

Form = Literal["markdown", "latex", "csv", "typst"]
MARKS: Mapping[str, str] = {
    "†": "the controls of the attack did not run or do not hold: the figure supports no claim of privacy",
    "‡": "not told from chance",
    "[ ]": "not rated",
}
NOTE = (
    "In brackets behind each figure its 95 % interval. Each attack figure is of the strongest certified attack. Arrows "
    "point to what is better for the data owner."
)
TIDY = (
    "row", "method", "parameters", "dataset", "preset", "seed", "metric", "value", "low", "high", "chance",
    "chance low", "chance high", "p", "against chance", "attack", "certified", "better", "unit", "n", "keys", "status",
    "reason",
)  # fmt: skip
"""The columns of the tidy table, a line a row and metric."""
_SIDES: Mapping[str | None, str] = {"inside": "not told from chance", "better": "better for the owner",
                                    "worse": "worse for the owner", None: ""}  # fmt: skip


@dataclass(frozen=True)
class Sheet:
    """One table: rows of one data set, preset and seed.

    Args:
        title: The data set with its size, in words.
        rows: In the order of the table.
        columns: In the order of the table.
    """

    title: str
    rows: Sequence[Row]
    columns: Sequence[Column]


@dataclass(frozen=True)
class Place:
    """A place of a table.

    Args:
        figure: The figure in print, or a dash.
        interval: Its 95 % interval in brackets; empty without one.
        mark: Signs behind it: of `MARKS`, or the letter of a footnote.
    """

    figure: str
    interval: str = ""
    mark: str = ""


@dataclass(frozen=True)
class _Typeset:
    """A sheet as text that is not escaped yet."""

    heads: Sequence[str]
    lines: Sequence[tuple[str, Sequence[Place]]]
    notes: Sequence[tuple[str, str]]


def typeset(sheets: Sequence[Sheet], form: Form) -> str:
    """The tables in one format, one after the other."""
    if form == "csv":
        return _tidy(sheets)
    make = {"markdown": _markdown, "latex": _latex, "typst": _typst}[form]
    return "\n".join(make(sheet, _laid_out(sheet)) for sheet in sheets)


def _laid_out(sheet: Sheet) -> _Typeset:
    """Places with their marks, and the footnotes that they need."""
    letters: dict[str, str] = {}
    used: set[str] = set()

    def footnote(reason: str) -> str:
        return letters.setdefault(reason, _letter(len(letters)))

    def place(entry: Entry | None) -> Place:
        if entry is None or entry.score is None:
            status = "not-run" if entry is None else entry.status
            reason = "" if entry is None else entry.reason
            return Place("–", mark=footnote(f"{WORDS[status]}: {reason}".removesuffix(": ")))
        signs = [sign for sign, on in (("†", not entry.certified), ("‡", entry.against_null == "inside")) if on]
        figure = entry.text
        if entry.unrated:
            used.add("[ ]")
            figure = f"[{figure}]"
            signs.append(footnote(f"not rated: {entry.unrated}"))
        ends = "" if entry.score.low is None else f" ({entry.interval.replace(' – ', '–')})"
        if not ends:
            signs.append(footnote(entry.score.note.partition(";")[0] or "no 95 % interval is known"))
        used.update(signs)
        return Place(figure, ends, ",".join(signs))

    lines = [
        (row_label(row, sheet.rows), [place(row.entries.get(column.name)) for column in sheet.columns])
        for row in sheet.rows
    ]
    notes = [(sign, meaning) for sign, meaning in MARKS.items() if sign in used]
    notes += [(letter, reason) for reason, letter in letters.items()]
    return _Typeset([f"{column.title} {column.arrow}".strip() for column in sheet.columns], lines, notes)


def _letter(number: int) -> str:
    """The footnote's sign: a to z, then aa, ab and so on.

    >>> _letter(0), _letter(25), _letter(26)
    ('a', 'z', 'aa')
    """
    more, last = divmod(number, len(ascii_lowercase))
    return (_letter(more - 1) if more else "") + ascii_lowercase[last]


def title(row: Row, name: str = "") -> str:
    """The data, preset and seed of a table's rows.

    Args:
        row: Any of them.
        name: The data set's; empty for the row's own.
    """
    data = row.data
    if data is None:
        return f"{row.dataset}: its data could not be opened"
    public = "no public rows" if data.public == NO_PUBLIC else f"public set {data.public}"
    return f"{name or row.dataset} ({data.counts} images; {public}), preset {row.preset}, seed {row.seed}"


def row_label(row: Row, rows: Sequence[Row]) -> str:
    """A row's method with the parameters by which its rows differ.

    Of a method with one row, those unlike its preset's, as everywhere (`leaderboard.names.label`). Rows of the same
    parameters say by which choice they differ, such as the number of keys or the attacker.
    """
    twins = [other for other in rows if other.method == row.method]
    if len(twins) < 2:
        return row.label
    apart = telling(row, twins)
    text = parameters_text(apart, empty=False)
    label = f"{row.method}[{text}]" if text else row.method if apart else row.label
    return label + _apart(row, [twin for twin in twins if twin.parameters == row.parameters])


def _apart(row: Row, same: Sequence[Row]) -> str:
    """The choices by which a row differs from others of its parameters."""
    return choices_apart(choices(row.records), [choices(other.records) for other in same])


def _markdown(sheet: Sheet, table: _Typeset) -> str:
    lines = [
        f"**{markdown(sheet.title)}**", "",
        "| " + " | ".join(["Method", *map(markdown, table.heads)]) + " |",
        "|" + "---|" + "---:|" * len(table.heads),
    ]  # fmt: skip
    for name, places in table.lines:
        texts = [markdown(one.figure + one.interval) + _raised(one.mark, "<sup>", "</sup>", markdown) for one in places]
        lines.append("| " + " | ".join([markdown(name), *texts]) + " |")
    notes = [markdown(NOTE), *(f"{markdown(sign)} {markdown(meaning)}" for sign, meaning in table.notes)]
    return "\n".join([*lines, "", "  \n".join(notes), ""])


def _raised(mark: str, start: str, end: str, escape: Callable[[str], str]) -> str:
    return f"{start}{escape(mark)}{end}" if mark else ""


def _latex(sheet: Sheet, table: _Typeset) -> str:
    lines = []
    for name, places in table.lines:
        texts = []
        for one in places:
            ends = f"{{\\scriptsize{{}}{tex(one.interval.strip())}}}" if one.interval else ""
            mark = f"\\textsuperscript{{{tex(one.mark)}}}" if one.mark else ""
            texts.append(f"{tex(one.figure)}{mark} {ends}".strip())
        lines.append(" & ".join([f"{{{tex(name)}}}", *texts]) + r" \\")
    notes = [tex(NOTE), *(f"\\textsuperscript{{{tex(sign)}}} {tex(meaning)}" for sign, meaning in table.notes)]
    return latex_frame(sheet.title, "l", [*map(tex, table.heads)], lines, notes)


def latex_frame(caption: str, first: str, heads: Sequence[str], lines: Sequence[str], notes: Iterable[str]) -> str:
    """A LaTeX table around its lines, with notes below it.

    Args:
        caption: As plain text.
        first: The kind of the column of methods, as `tabular` takes it; the others are flush right.
        heads: Titles of the other columns, as LaTeX.
        lines: Lines of the table, as LaTeX.
        notes: Notes, as LaTeX.
    """
    return "\n".join([
        r"% Needs \usepackage{booktabs} and \usepackage[T1]{fontenc}, \usepackage{textcomp}.",
        r"\begin{table}", r"\centering", f"\\caption{{{tex(caption)}}}",
        r"\footnotesize\setlength{\tabcolsep}{2pt}",
        f"\\begin{{tabular}}{{{first}{'r' * len(heads)}}}", r"\toprule",
        " & ".join(["Method", *heads]) + r" \\", r"\midrule", *lines, r"\bottomrule", r"\end{tabular}",
        *(f"\\par\\raggedright{{\\scriptsize {text}\\par}}" for text in notes), r"\end{table}", "",
    ])  # fmt: skip


def _typst(sheet: Sheet, table: _Typeset) -> str:
    columns = len(table.heads) + 1
    lines = [
        "#figure(", f"  caption: [{typst(sheet.title)}],", "  kind: table,", "  [",
        "    #set text(size: 8pt)", "    #table(", f"      columns: {columns}, stroke: none,",
        f"      align: (left,{' right,' * len(table.heads)}),", "      table.hline(),",
        "      table.header(" + ", ".join(f"[{typst(head)}]" for head in ("Method", *table.heads)) + "),",
        "      table.hline(stroke: 0.5pt),",
    ]  # fmt: skip
    for name, places in table.lines:
        texts = []
        for one in places:
            mark = f"#super[{typst(one.mark)}]" if one.mark else ""
            ends = f" #text(size: 6pt)[{typst(one.interval.strip())}]" if one.interval else ""
            texts.append(f"[{typst(one.figure)}{mark}{ends}]")
        lines.append("      " + ", ".join([f"[{typst(name)}]", *texts]) + ",")
    notes = [typst(NOTE), *(f"#super[{typst(sign)}] {typst(meaning)}" for sign, meaning in table.notes)]
    lines += ["      table.hline(),", "    )", "    #set align(left)", "    #set text(size: 6pt)"]
    return "\n".join([*lines, *(f"    {note} \\" for note in notes), "  ],", ")", ""])


def _tidy(sheets: Sequence[Sheet]) -> str:
    """One line a row and metric, under the names of `TIDY`."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(TIDY)
    for sheet in sheets:
        for row in sheet.rows:
            label = row.label + _apart(row, [other for other in sheet.rows if other.label == row.label])
            for column in sheet.columns:
                writer.writerow(map(cell, _line(label, row, column, row.entries.get(column.name))))
    return stream.getvalue()


def _line(label: str, row: Row, column: Column, entry: Entry | None) -> Sequence[str | int | float | None]:
    own = ",".join(f"{name}={text(value)}" for name, value in sorted(row.parameters.items()))  # type: ignore[arg-type]
    head = (label, row.method, own, row.dataset, row.preset, row.seed, column.name)
    score = None if entry is None else entry.score
    if entry is None or score is None:
        status = "not-run" if entry is None else entry.status
        reason = "" if entry is None else entry.reason
        return (*head, *[None] * 7, "", "", "", column.better, column.unit, None, row.keys, status, reason)
    record = next(record for record in row.records if record.evaluator == entry.by)
    return (
        *head, score.value, score.low, score.high, score.null, score.null_low, score.null_high, score.p,
        _SIDES[entry.against_null], short(entry.by) if entry.attacked else "",
        ("yes" if entry.certified else "no") if entry.attacked else "", column.better, column.unit, score.n,
        record.keys, entry.status, entry.unrated,
    )  # fmt: skip
