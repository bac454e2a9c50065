"""Rows to static pages: the same records give the same bytes, with no network, no server and no clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.contract.metric import GROUPS
from bench.results.records import Record, json_schema
from leaderboard.board import Row, epsilon_text, missing, ordered, parameters_text, telling
from leaderboard.claims import METRIC
from leaderboard.columns import Column, columns
from leaderboard.downloads import flat, results_csv, results_json
from leaderboard.entries import WORDS, against_null, interval, number, reason, short
from leaderboard.intake import Intake
from leaderboard.reach import Rung
from leaderboard.repeat import command
from leaderboard.sections import Section, sections
from leaderboard.slugs import digest, slug, slugs

FIRST_ORDER = "reid-auc"
MAIN = frozenset({"utility-auc", "guesswork", "reid-auc", "top-1"})  # shown even where no row has a figure
BY_ATTACK = ("reid-auc", "guesswork")  # told of every attack on every row
FORMAL = "Formal privacy"  # the group in which claims stand beside what was shown of them
SILENT = frozenset({"not-run", "not-applicable"})  # the reasons stand below the table


def render(taken: Intake) -> dict[str, str | bytes]:
    """Every file of the site by its relative name: text, or the bytes of a picture."""
    board = taken.rows
    parts = sections(board)
    shown = columns(taken.records)
    stems = slugs(row.method for row in board)
    env = _environment()
    figures, drawn = _pictures(parts, sorted(stems))
    files: dict[str, str | bytes] = {**drawn}
    pictured = {where: f"figures/{slug(where[2])}-{digest('/'.join(where))}.png" for where in taken.pictures}
    files |= {pictured[place]: picture for place, picture in taken.pictures.items()}
    common = {
        "columns": shown,
        "named": {column.name: column for column in shown},
        "stems": stems,
        "anchors": {row.cell: row.id for row in board},
        "first": FIRST_ORDER,
        "created": sorted(record.created for record in taken.records),
    }  # fmt: skip
    files["index.html"] = env.get_template("index.html").render(
        **common,
        root="",
        sections=parts,
        figures=figures,
        taken=taken,
        board=board,
        attacks=_attacks(board),
        by_attack=[column for name in BY_ATTACK for column in shown if column.name == name],
        reaches=_reaches(board),
    )
    for method, stem in stems.items():
        mine = [row for row in board if row.method == method]
        files[f"methods/{stem}.html"] = env.get_template("method.html").render(
            **common, root="../", method=method, rows=mine, sections=sections(mine), pictured=pictured
        )
    static = resources.files("leaderboard") / "static"
    for name in ("board.css", "board.js"):
        files[f"static/{name}"] = (static / name).read_text(encoding="utf-8")
    files["results.csv"] = results_csv(record for row in board for record in row.records)
    files["results.json"] = results_json(record for row in board for record in row.records)
    files["record.schema.json"] = json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"
    return files


def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("leaderboard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    env.filters |= {
        "flat": flat,
        "ordered": ordered,
        "number": number,
        "json": _json,
        "pairs": parameters_text,
        "short": short,
    }
    env.globals |= {"words": WORDS, "number": number, "interval": interval, "against_null": against_null}
    env.globals |= {"reason": reason, "command": command}
    env.globals |= {"epsilon_text": epsilon_text, "telling": telling}
    env.globals |= {"formal": FORMAL, "audited": METRIC, "apart": apart}
    env.globals |= {"used": used, "shared_null": _shared_null, "missing": missing}
    return env


def used(shown: Sequence[Column], some: Sequence[Row]) -> list[Column]:
    """The columns for a table: the main ones always, others where any row has a figure, or should have one."""
    return [c for c in shown if c.name in MAIN or any(row.entries[c.name].status not in SILENT for row in some)]


def apart(shown: Sequence[Column]) -> tuple[list[Column], list[Column], list[Column]]:
    """The columns before formal claims, beside them, and after them."""
    before = GROUPS[: GROUPS.index(FORMAL)]
    beside = [column for column in shown if column.group == FORMAL]
    left = [column for column in shown if column.group in before]
    return left, beside, [column for column in shown if column.group not in (*before, FORMAL)]


def _shared_null(some: Sequence[Row], metric: str) -> str:
    """What chance gives, where it is the same for every row of a table with a figure; else empty."""
    nulls = {row.entries[metric].null for row in some if row.entries[metric].score}
    return nulls.pop() if len(nulls) == 1 else ""


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _attacks(board: Sequence[Row]) -> list[tuple[str, Record]]:
    """Every attack that ran, with one record that describes it."""
    found: dict[str, Record] = {}
    for row in board:
        for record in row.records:
            if record.attack:
                found.setdefault(record.evaluator, record)
    return sorted(found.items())


def _reaches(board: Sequence[Row]) -> list[tuple[str, str, tuple[Rung, ...]]]:
    """The attacks whose reach was measured: name, preset, and how they fared on each rung."""
    found: dict[tuple[str, str], tuple[Rung, ...]] = {}
    for row in board:
        for member in row.panel.members:
            if any(rung.step for rung in member.rungs):
                found.setdefault((short(member.evaluator), row.preset), member.rungs)
    return [(name, preset, rungs) for (name, preset), rungs in sorted(found.items())]


def _pictures(
    parts: Sequence[Section], methods: Sequence[str]
) -> tuple[dict[str, list[tuple[str, str]]], dict[str, str]]:
    """The pictures of each section by file stem, with each in words, and their files."""
    # What draws them takes a second to import: only where pages are made, which not every command does.
    from leaderboard.budget import budget_plot
    from leaderboard.figures import PLANES, Version, alternative, plane

    figures: dict[str, list[tuple[str, str]]] = {part.slug: [] for part in parts}
    files: dict[str, str] = {}
    for part in parts:
        draws: dict[str, tuple[Callable[[Version], str | None], Callable[[], str]]] = {
            what.across: (partial(plane, part.rows, what, methods), partial(alternative, part.rows, what))
            for what in PLANES
        }
        draws["budget"] = partial(budget_plot, part.rows, methods), lambda: "Utility against the derived privacy budget"
        for name, (draw, caption) in draws.items():
            light, dark = draw("light"), draw("dark")
            if light and dark:
                stem = f"figures/{part.slug}-{name}"
                figures[part.slug].append((stem, caption()))
                files |= {f"{stem}-light.svg": light, f"{stem}-dark.svg": dark}
    return figures, files
