"""The templates of the pages and their functions; all text is escaped."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.filters import do_dictsort
from markupsafe import Markup, escape
from pydantic import JsonValue

from bench.results.records import ScoreRecord
from bench.results.verdict import Tier
from bench.types import LEARNING
from leaderboard.board import FORMAL, apart, epsilon_text, missing
from leaderboard.bounds import shown_curves
from leaderboard.claims import METRIC
from leaderboard.downloads import badges, row_bibtex
from leaderboard.entries import WORDS, Column, against_null, interval, number, reason, said, short
from leaderboard.escapes import page
from leaderboard.names import parameters_text
from leaderboard.panel import MEANINGS, SIGNS, attack_key
from leaderboard.plots import attack_dots, dot_plot, families, learning_plot
from leaderboard.row_schema import BoardRow, Figure, choices, shown
from leaderboard.tables import flat


@cache
def environment() -> Environment:
    """The templates; made once, for compiling them takes longer than most pages."""
    env = Environment(
        loader=PackageLoader("leaderboard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False, finalize=_harmless,
    )  # fmt: skip
    env.filters |= {
        "flat": flat,
        "number": number,
        "json": _json,
        "pairs": parameters_text,
        "short": short,
        "soft": soft,
    }
    env.tests["attack_made"] = lambda record: attack_key(record) is not None
    env.globals |= {
        "words": WORDS, "number": number, "interval": interval, "against_null": against_null, "reason": reason,
        "epsilon_text": epsilon_text, "formal": FORMAL, "audited": METRIC, "apart": apart, "missing": missing,
        "shared_chance": _shared_chance, "chance_text": chance_text, "ordered": ordered, "badges": badges,
        "signs": SIGNS, "meanings": MEANINGS, "fields": shown, "choices": choices, "hidden_columns": hidden_columns,
        "tier_told": tier_told,
        "value_text": value_text, "inf": math.inf, "tiers": [tier.word for tier in Tier],
        "shown_curves": shown_curves, "learning_plot": learning_plot, "without_curves": _without_curves,
        "attack_dots": attack_dots, "families": families, "dot_plot": dot_plot, "row_bibtex": row_bibtex,
        "attack_key": attack_key, "figure_line": figure_line, "pairs_list": pairs_list,
    }  # fmt: skip
    return env


def _without_curves(details: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The listed details of a record; its learning curves are drawn."""
    return {name: value for name, value in details.items() if name != LEARNING}


def drawn(template: str, **variables: object) -> Callable[[], str]:
    """A function that renders a template."""
    return lambda: environment().get_template(template).render(**variables)


def hidden_columns(rows: Sequence[BoardRow], told: bool = False) -> list[str]:
    """Columns hidden by default: unusual ones, and a common preset or tier.

    Args:
        rows: Of the table.
        told: Whether a sentence beside it tells a tier that all rows of the page have.
    """
    runs, tiers = {(row.preset, row.seed) for row in rows}, {row.tier for row in rows}
    common = ["preset"] * (len(runs) == 1) + ["tier"] * (told and len(tiers) == 1)
    return [*common, *(name for name, mark in shown("board") if not mark.usual)]


def tier_told(lines: Sequence[BoardRow], references: Sequence[BoardRow], pages: Sequence[str]) -> bool:
    """True if a sentence can tell the tier of all rows.

    It stands below the lines, and speaks for a board in one page.
    """
    return bool(lines) and len(pages) < 2 and len({row.tier for row in (*lines, *references)}) == 1


def value_text(value: object) -> str:
    """A row's value in print.

    >>> value_text(None), value_text(0.25), value_text(float("inf"))
    ('none', '0.25', '∞')
    """
    if value is None or value == "":
        return "none"
    return epsilon_text(value) if isinstance(value, float) else str(value)


def chance_text(figure: Figure | ScoreRecord | None, column: Column) -> str:
    """The figure of chance, with its interval; empty if unknown.

    A figure that is the same for every guess has an interval without chance in it, which is left out.
    """
    if figure is None or figure.null is None:
        return ""
    text, low, high = number(figure.null, column.digits), figure.null_low, figure.null_high
    if low is None or high is None or not low <= figure.null <= high:
        return text
    return f"{text} ({interval(low, high, column.digits)})"


def _shared_chance(rows: Sequence[BoardRow], column: Column) -> str:
    """The figure of chance if all rows of a table share it."""
    figures = [row.figures[column.name] for row in rows if column.name in row.figures]
    texts = {chance_text(figure, column) for figure in figures if figure.value is not None}
    return texts.pop() if len(texts) == 1 else ""


def ordered(rows: Sequence[BoardRow], column: Column | None) -> list[BoardRow]:
    """Rows by one metric, best first, unrated and missing ones last."""

    def place(row: BoardRow) -> tuple[int, float]:
        figure = row.figures.get(column.name) if column else None
        if figure is None or figure.value is None:
            return 2, 0.0
        return bool(figure.unrated), -figure.value if column and column.better == "higher" else figure.value

    return sorted(rows, key=place)


NONE, NONE_KNOWN = '<span class="quiet">none</span>', '<span class="quiet">none known</span>'
AT_CHANCE = ' <span class="mark chance">at chance</span>'


def figure_line(what: str, score: ScoreRecord, column: Column) -> Markup:
    """The line of a figure in a record's table.

    Rows have hundreds of them: a macro took three times as long.
    """
    digits, null, further, arrow = column.digits, NONE_KNOWN, NONE, column.arrow
    if score.prediction_low is not None and score.prediction_high is not None:
        further = interval(score.prediction_low, score.prediction_high, digits)
    if score.null is not None:
        null = chance_text(score, column) + AT_CHANCE * (against_null(score) == "inside")
    note = "; ".join(filter(None, (score.unit, said(column.name, score.note))))
    return Markup(
        f'<tr><th scope="row">{_escaped(what)}</th><td class="value">{number(score.value, digits)}</td>'
        f"<td>{interval(score.low, score.high, digits)}</td><td>{further}</td><td>{null}</td><td>{score.n:,}</td>"
        f'<td>{arrow} {score.better if arrow else ""}</td><td class="note">{_escaped(note)}</td></tr>\n'
    )


def pairs_list(mapping: Mapping[str, JsonValue]) -> Markup:
    """Names with their values, sorted; values that are no texts as JSON."""
    lines = (
        f"<div><dt>{_escaped(name)}</dt><dd>{_escaped(value if isinstance(value, str) else _json(value))}</dd></div>"
        for name, value in do_dictsort(mapping)
    )
    return Markup(f'<dl class="pairs">{"".join(lines)}</dl>')


@lru_cache(maxsize=1 << 14, typed=True)  # the same names and words stand in nearly all records
def _escaped(text: str) -> str:
    return str(escape(page(text)))


def soft(text: str) -> Markup:
    """Text that may break after commas only.

    >>> str(soft("patch_size=4,width=16"))
    'patch_size=4,<wbr/>width=16'
    """
    return Markup("<wbr/>").join(re.split(r"(?<=,)", text))


def _harmless(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = page(value)
    return Markup(text) if isinstance(value, Markup) and text is not value else text


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
