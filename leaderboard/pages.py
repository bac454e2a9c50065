"""All pages of the site: the same records give the same bytes."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from html.parser import HTMLParser
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import TypeVar, cast

from pydantic import JsonValue

from bench.plugins import registry
from bench.types import Metric
from leaderboard.answer import HIDDEN, KEPT, View, tried
from leaderboard.api import head_data, script
from leaderboard.board import Row, missing, used
from leaderboard.bounds import APPLYING, CORE, MEMBER_CORE, profile
from leaderboard.downloads import files, links
from leaderboard.edition import Edition, Sheet
from leaderboard.environment import drawn, hidden_columns
from leaderboard.one_scale import scales
from leaderboard.plots import PHONE, PLANES, WIDE, budget_plot, points, scatter
from leaderboard.reproduction import VERDICTS, Reproduction, shipped
from leaderboard.row_schema import BoardRow, field_data
from leaderboard.sections import Section, base_name
from leaderboard.speed import speed_tables
from leaderboard.summary import attack_record, matrix
from leaderboard.tables import can_write_parquet

STATIC = (
    "board.css", "table.js", "plot.js", "choose.js", "compare.js", "rows.js", "fold.js",
    "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css", "uplot/LICENSE",
)  # fmt: skip
MOST_LINES = 600
"""Rows on one line each that a page holds: 0.8 MB of them."""
MOST_FRONT = 300
"""Rows on each page of a board in several: half a megabyte, as a script too."""
MOST_WIDE = 60
"""Rows with all of their figures that a page holds."""
MOST_REASONS = 400
MOST_OUTCOMES = 1000
MOST_PARTS = 150
"""Parts of one record's figures that its page lists; the downloads hold all."""
SHARD = 1200
"""Rows in one file of figures: about half a megabyte."""
FEW = 60
"""Rows of the gravest outcome that stand open on the page of an attack."""
FIRST_ORDER = "reid-auc"
BY_ATTACK = ("reid-auc", "guesswork")  # shown of every attack on every row
T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    """A file of the site: name, hash of inputs, and content."""

    name: str
    inputs: str
    make: Callable[[], str | bytes]


def inputs(*values: object) -> str:
    """A hash of a page's inputs, and of the code and templates."""
    text = json.dumps([_package(), *values], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def plain(name: str, content: str | bytes) -> Page:
    """A file that is its own input."""
    text = content if isinstance(content, bytes) else content.encode()
    return Page(name, hashlib.sha256(text).hexdigest(), lambda: content)


@cache
def _package() -> str:
    """A hash of this package: its code, templates and styles."""
    return _digest(_sources(resources.files("leaderboard")))


@cache
def code() -> str:
    """A hash of the packages that process records before they are shown."""
    return _digest(
        (path.relative_to(folder).as_posix(), path.read_bytes())
        for package in ("bench", "methods", "attacks", "metrics")
        for folder in map(Path, importlib.import_module(package).__path__)
        for path in folder.rglob("*")
        if path.suffix in (".py", ".yaml")
    )


def _digest(contents: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(contents):
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _sources(folder: resources.abc.Traversable) -> Iterable[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name in ("templates", "static"):
            yield from ((f"{entry.name}/{name}", content) for name, content in _sources(entry))
        elif entry.is_file() and entry.name.endswith((".py", ".html", ".css", ".js", ".json", ".yaml")):
            yield entry.name, entry.read_bytes()


def render(edition: Edition) -> dict[str, Page]:
    """Every file of the site by its relative name, not yet drawn."""
    views = (front, further, tools, datasets, methods, attacks, cells, reproduction, _static, _downloads)
    return {page.name: page for view in views for page in view(edition)}


def _static(edition: Edition) -> Iterator[Page]:
    static = resources.files("leaderboard") / "static"
    for name in STATIC:
        yield plain(f"static/{name}", (static / name).read_bytes())


def _downloads(edition: Edition) -> Iterator[Page]:
    shared = inputs("downloads", edition.prints, edition.described)
    for one in files(edition):
        yield Page(one.name, shared if one.row is None else inputs("downloads", edition.prints[one.row.id]), one.make)


def common(edition: Edition, root: str) -> dict[str, object]:
    """The variables of a page; `root` leads to the site's root."""
    return {
        "columns": edition.columns, "named": edition.named, "stems": edition.methods, "origin": edition.origin,
        "attack_stems": {key: stem for key, (stem, _) in edition.attacks.items()},
        "several": len(edition.parts) > 1, "timed": edition.timed, "root": root,
    }  # fmt: skip


def split(some: Sequence[T], most: int) -> Iterator[tuple[int, Sequence[T]]]:
    """The sequence in parts of at most `most`, numbered from 1."""
    for number, start in enumerate(range(0, max(1, len(some)), most), 1):
        yield number, some[start : start + most]


def numbered(stem: str, number: int) -> str:
    """The file of a part: the first has the plain name.

    >>> numbered("data/digits", 1), numbered("data/digits", 2)
    ('data/digits.html', 'data/digits-2.html')
    """
    return f"{stem}.html" if number == 1 else f"{stem}-{number}.html"


def front(edition: Edition) -> Iterator[Page]:
    """The front page, and the first page of every row."""
    key = inputs("front", edition.prints, edition.described, edition.taken.limited, list(edition.taken.broken),
                 edition.origin, can_write_parquet())  # fmt: skip
    yield Page("index.html", inputs("index", key, edition.earlier), partial(_front, edition))
    pages = front_parts(edition)
    idle = [row for row in edition.lines if not row.reference and not row.applies]
    references = [row for row in edition.lines if row.reference]
    few = len(edition.lines) <= MOST_LINES
    gaps = missing([edition.row_of(row) for row in edition.lines])
    yield Page(
        "board.html", key,
        drawn(
            "board.html", **common(edition, ""), taken=edition.taken, downloads=links(edition), lines=pages[0][1],
            pages=[name for name, _ in pages], further=further_scripts(edition), few=few, idle=idle if few else [],
            references=references if few else [], count=len(edition.lines),
            matrix=matrix(edition.lines), picture=picture(edition), reasons=gaps[:MOST_REASONS],
            more_reasons=max(0, len(gaps) - MOST_REASONS), shards=[page.name for page in shards(edition)],
        ),
    )  # fmt: skip


FEWEST_METHODS = 3
"""Methods from which on a table of an unusual Eve has a tab on the front page."""


def _usual_eve(edition: Edition, view: View) -> bool:
    """True if Eve holds the released images, and no more."""
    return all(profile(edition.row_of(row).records[0]).everyone for row in view.rows)


def _methods(view: View) -> int:
    """The number of ranked methods that were attacked."""
    return len({row.plugin for row in tried(view.rows)})


def _front(edition: Edition) -> str:
    """The answers for X-ray sets, or for all if none was attacked."""
    attacked = [view for view in edition.views if view.subject != "other data" and view.answer.attacked]
    full = [view for view in attacked if _usual_eve(edition, view) or _methods(view) >= FEWEST_METHODS]
    shown = full or attacked or list(edition.views)
    pictures = {
        view.section: [svg for canvas in (WIDE, PHONE)
                       if (svg := scatter(view.rows, view.plane, edition.named, "", canvas))]
        for view in shown
    }  # fmt: skip
    parts = {part.slug: part for part in edition.parts}
    return drawn(
        "index.html",
        **common(edition, ""),
        parts={
            view.section: parts[view.section].of([edition.row_of(row) for row in view.rows if not row.reference])
            for view in shown
        },
        taken=edition.taken,
        superseded=edition.superseded,
        earlier=edition.earlier,
        views=shown,
        elsewhere=len(parts.keys() - {view.section for view in shown}),
        pictures=pictures,
        count=len(edition.lines),
        kept=KEPT,
        hidden=HIDDEN,
    )()


def picture(edition: Edition) -> dict[str, object] | None:
    """The first picture: the data set and size with the most points."""
    groups: dict[tuple[str, str, int], list[BoardRow]] = {}
    for row in edition.lines:
        groups.setdefault((row.data, row.preset, row.seed), []).append(row)

    def count(key: tuple[str, str, int]) -> int:
        return next((number for plane in PLANES if (number := len(points(groups[key], plane)))), 0)

    for data, preset, seed in sorted(groups, key=count, reverse=True):  # of as many, in the order of the board
        rows = groups[data, preset, seed]
        svg = next((svg for plane in PLANES if (svg := scatter(rows, plane, edition.named, ""))), None)
        if svg is not None:
            shown = f"{rows[0].section}|{preset}|{seed}"  # the script's key of it
            return {"svg": svg, "data": data, "preset": preset, "seed": seed, "shown": shown, "rows": rows}
    return None


def front_parts(edition: Edition) -> list[tuple[str, Sequence[BoardRow]]]:
    """The pages of every row, with their rows."""
    shown = [row for row in edition.lines if not row.reference and row.applies]
    most = MOST_LINES if len(edition.lines) <= MOST_LINES else MOST_FRONT
    return [(numbered("board", number), some) for number, some in split(shown, most)]


def further_scripts(edition: Edition) -> list[str]:
    """The scripts that hold the rows of the further pages."""
    return [f"rows/lines-{number}.js" for number in range(2, len(front_parts(edition)) + 1)]


def further(edition: Edition) -> Iterator[Page]:
    """The board's further pages and their scripts, if one is not enough."""
    parts = front_parts(edition)
    names = [name for name, _ in parts]
    for number, (name, some) in enumerate(parts[1:], 2):
        key = inputs("board", edition.described, edition.origin, names, [edition.prints[row.id] for row in some])
        variables = common(edition, "") | {
            "lines": some, "one": len(edition.parts) < 2, "pages": names, "at": number, "hidden": hidden_columns(some),
        }  # fmt: skip
        yield Page(name, key, drawn("further.html", **variables))
        yield Page(f"rows/lines-{number}.js", key, partial(_lines_script, variables))


def _lines_script(variables: dict[str, object]) -> str:
    tree = Tree()
    tree.feed(drawn("rows.html", **variables)())
    return script("veil.more", tree.top)


class Tree(HTMLParser):
    """HTML elements as plain data: name, attributes, children.

    Attributes:
        top: The outermost elements, without text that only indents them.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top: list[JsonValue] = []
        self._open = [self.top]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """An element begins; tables have none that never end."""
        node: list[JsonValue] = [tag, {name: True if value is None else value for name, value in attributes}]
        self._open[-1].append(node)
        self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        """It ends."""
        self._open.pop()

    def handle_data(self, text: str) -> None:
        """Text in it."""
        if "\n" not in text or text.strip():
            self._open[-1].append(text)


def datasets(edition: Edition) -> Iterator[Page]:
    """The list of data sets, and the pages of each."""
    described = [[part.slug, part.title, part.data.model_dump(mode="json") if part.data else None, len(part.rows)]
                 for part in edition.parts]  # fmt: skip
    yield Page(
        "data/index.html", inputs("data sets", edition.described, described, edition.origin),
        drawn("datasets.html", **common(edition, "../"), parts=edition.parts),
    )  # fmt: skip
    by_section: dict[str, list[BoardRow]] = {}
    for row in edition.lines:
        by_section.setdefault(row.section, []).append(row)
    for part in edition.parts:
        yield from _dataset(edition, part, by_section[part.slug])
        yield from _wide(edition, part, by_section[part.slug])


def _dataset(edition: Edition, part: Section, rows: Sequence[BoardRow]) -> Iterator[Page]:
    parts = list(split(rows, MOST_LINES))
    names = [numbered(part.slug, number) for number, _ in parts]
    whole = inputs("data set", edition.described, part.title, part.splits, [edition.prints[row.id] for row in rows])
    for number, some in parts:
        variables = common(edition, "../") | {
            "part": part, "pages": names, "at": number,
            "view": next(view for view in edition.views if view.section == part.slug),
            "lines": [row for row in some if not row.reference and row.applies],
            "idle": [row for row in some if not row.reference and not row.applies],
            "references": [row for row in some if row.reference],
            "reasons": missing(edition.row_of(row) for row in some), "more_reasons": 0, "powerless": _powerless(some),
        }  # fmt: skip
        pictured = rows if number == 1 else ()
        make = partial(_draw, edition, variables, pictured)
        yield Page(f"data/{names[number - 1]}", inputs(whole, number), make)


def _powerless(rows: Sequence[BoardRow]) -> list[tuple[str, str]]:
    """Presets with the reasons why they have no utility column."""
    found = {(row.preset, figure.reason) for row in rows for figure in row.figures.values()
             if figure.status == "no-power"}  # fmt: skip
    return sorted(found)


def _draw(edition: Edition, variables: Mapping[str, object], rows: Sequence[BoardRow]) -> str:
    """The page of a data set with its pictures, drawn on demand."""
    pictures = list(_pictures(edition, rows))
    return drawn("dataset.html", **variables, pictures=pictures, budget=budget_plot(rows, edition.named))()


def _pictures(edition: Edition, rows: Sequence[BoardRow]) -> Iterator[tuple[str, object]]:
    """Every picture of a data set, one a preset and seed."""
    for preset, seed in sorted({(row.preset, row.seed) for row in rows}):
        some = [row for row in rows if (row.preset, row.seed) == (preset, seed)]
        for plane in PLANES:
            svg = scatter(some, plane, edition.named, "../")
            if svg is not None:
                yield f"preset {preset}, seed {seed}", svg


def _wide(edition: Edition, part: Section, rows: Sequence[BoardRow]) -> Iterator[Page]:
    """All figures of every row, and every attack on every row."""
    ordered = sorted(rows, key=lambda row: (bool(row.reference), row.preset, row.method, row.id))
    by_attack = [edition.named[name] for name in BY_ATTACK if name in edition.named]
    for what, template in (("figures", "figures.html"), ("attacks", "by_attack.html")):
        parts = list(split(ordered, MOST_WIDE))
        names = [numbered(f"{part.slug}-{what}", number) for number, _ in parts]
        for number, some in parts:
            analysed = [edition.row_of(row) for row in some]
            yield Page(
                f"data/{names[number - 1]}",
                inputs(what, edition.described, names, part.title, [edition.prints[row.id] for row in some]),
                drawn(
                    template, **common(edition, "../"), part=part, rows=some, analysed=analysed, pages=names,
                    at=number, shown=used(edition.columns, analysed), first=FIRST_ORDER, by_attack=by_attack,
                ),
            )  # fmt: skip


def methods(edition: Edition) -> Iterator[Page]:
    """The pages of every method."""
    by_method: dict[str, list[BoardRow]] = {}
    for row in edition.lines:
        by_method.setdefault(row.plugin, []).append(row)
    for method, rows in by_method.items():
        parts = list(split(rows, MOST_LINES))
        names = [numbered(edition.methods[method], number) for number, _ in parts]
        whole = [edition.row_of(row) for row in rows]
        sources = sorted({record.method.source for row in whole for record in row.records})
        scale = scales(whole)
        for number, some in parts:
            yield Page(
                f"methods/{names[number - 1]}",
                inputs("method", edition.described, len(parts), [edition.prints[row.id] for row in rows]),
                drawn(
                    "method.html", **common(edition, "../"), method=method, sources=sources, lines=some, at=number,
                    pages=names, role=rows[0].reference, kinds=sorted({row.kind for row in rows} - {"unknown"}),
                    scales=scale if number == 1 else [],
                ),
            )  # fmt: skip


def attacks(edition: Edition) -> Iterator[Page]:
    """The list of attacks, and a page each."""
    records = [(stem, attack_record(*key, attempts)) for key, (stem, attempts) in edition.attacks.items()]
    yield Page(
        "attacks/index.html", inputs("attacks", edition.described, edition.prints),
        drawn("attacks.html", **common(edition, "../"), attacks=records),
    )  # fmt: skip
    for stem, record in records:
        outcomes = [[edition.prints[one.row.id], one.record.evaluator] for one in record.outcomes]
        yield Page(
            f"attacks/{stem}.html", inputs("attack", edition.described, outcomes),
            drawn(
                "attack.html", **common(edition, "../"), attack=record, few=FEW,
                outcomes=[(state, list(some)) for state, some in
                          groupby(record.outcomes[:MOST_OUTCOMES], lambda one: one.state)],
                more=max(0, len(record.outcomes) - MOST_OUTCOMES),
            ),
        )  # fmt: skip


def cells(edition: Edition) -> Iterator[Page]:
    """The page, data and pictures of every row."""
    usual = {_release(edition, one): one for one in edition.lines if profile(edition.row_of(one).records[0]).everyone}
    for data in edition.lines:
        row = edition.row_of(data)
        pictured = _sheets(edition, data, usual)
        key = inputs(
            "cell", edition.described, edition.prints[data.id], [vars(sheet) for sheet in pictured], edition.origin
        )
        variables = common(edition, "../") | {
            "data": data, "row": row, "pictured": pictured, "most": MOST_PARTS,
            "title": _title(row, data),
        }  # fmt: skip
        yield Page(f"cells/{data.id}.html", key, drawn("cell.html", **variables))
        yield Page(f"rows/{data.id}.js", inputs("row", key), partial(_row_script, data))
    for place, content in edition.taken.pictures.items():
        yield plain(edition.pictured[place], content)


LONGEST_TITLE = 60


def _title(row: Row, data: BoardRow) -> str:
    """A row's label, or its method with what tells it from others."""
    told = [text for text in data.variant.split(", ") if not text.endswith(" keys")]
    return row.label if len(row.label) < LONGEST_TITLE or not told else f"{row.method} ({', '.join(told)})"


def _release(edition: Edition, data: BoardRow) -> tuple[object, ...]:
    """A key that rows of one method, data set and size share."""
    row = edition.row_of(data)
    return row.label, base_name(row), data.preset, data.seed, row.data and tuple(row.data.shape)


def _sheets(edition: Edition, data: BoardRow, usual: Mapping[tuple[object, ...], BoardRow]) -> list[Sheet]:
    """A row's pictures.

    A row without any, as of an Eve with other images, shows the release of the same method to an Eve who holds the
    released ones (`usual`).
    """
    found = edition.sheets[data.id]
    other = usual.get(_release(edition, data))
    if found or other is None or other.id == data.id:
        return found
    return [replace(sheet, of=other.id) for sheet in edition.sheets[other.id] if sheet.name == "release"]


def _row_script(row: BoardRow) -> str:
    figures = row.model_dump(mode="json", include={"figures"}, exclude_defaults=True)
    return script("veil.row", row.model_dump(mode="json") | figures)


def tools(edition: Edition) -> Iterator[Page]:
    """The pages `choose`, `compare`, `throughput` and `reading`, and the files of figures."""
    scripts = list(shards(edition))
    yield from scripts
    yield Page("rows/schema.js", inputs("schema", edition.described), partial(_schema_script, edition))
    variables = common(edition, "") | {"shards": [page.name for page in scripts]}
    yield Page(
        "compare.html",
        inputs("compare", edition.described, len(scripts), edition.origin),
        drawn("compare.html", **variables),
    )
    variables |= {"views": edition.views, "wishes": list(map(_wish, edition.views))}
    yield Page(
        "choose.html",
        inputs("choose", edition.described, edition.prints, edition.origin),
        drawn("choose.html", **variables),
    )
    yield Page(
        "throughput.html", inputs("throughput", edition.described, edition.origin, list(edition.prints.values())),
        lambda: drawn("throughput.html", **common(edition, ""), tables=speed_tables(edition))(),
    )  # fmt: skip
    yield Page(
        "reading.html", inputs("reading", edition.described, edition.origin),
        drawn("reading.html", **common(edition, ""), core=CORE, member_core=MEMBER_CORE, applying=APPLYING),
    )  # fmt: skip


def _wish(view: View) -> dict[str, JsonValue]:
    """The wish that the page `choose` opens with, for one data set."""
    least = view.answer.least
    return {
        "set": view.section, "utility": "" if least is None else f"{least:.3f}", "figure": view.leak,
        "risk": f"{HIDDEN}",
    }  # fmt: skip


def shards(edition: Edition) -> Iterator[Page]:
    """A few figures of every row, as scripts for local pages."""
    for number, some in split(edition.lines, SHARD):
        key = inputs("rows", edition.described, [edition.prints[row.id] for row in some])
        yield Page(f"rows/all-{number}.js", key, partial(_rows_script, some))


def _rows_script(rows: Sequence[BoardRow]) -> str:
    return script("veil.add", [head_data(row, figures=True) for row in rows])


def _schema_script(edition: Edition) -> str:
    """Fields and metrics of all rows, for the scripts of every page."""
    fields: list[JsonValue] = [field.model_dump(mode="json") for field in field_data()]
    columns: list[JsonValue] = [column.model_dump(mode="json") for column in edition.columns]
    return script("veil.schema", {"fields": fields, "columns": columns})


def reproduction(edition: Edition) -> Iterator[Page]:
    """The page `reproduction`, which is the same for every board."""
    ledger = shipped()
    digits = _digits(ledger)
    yield Page(
        "reproduction.html",
        inputs("reproduction", edition.described, ledger.model_dump(mode="json"), digits, edition.origin),
        drawn("reproduction.html", **common(edition, ""), ledger=ledger, verdicts=VERDICTS, digits=digits),
    )  # fmt: skip


def _digits(ledger: Reproduction) -> dict[str, int | None]:
    """The decimals of every metric that a ledger quotes."""
    quoted = {one.score for _, _, row in ledger.rows() for one in row.ours if one.record is not None}
    metrics = sorted(quoted.intersection(registry.own("metrics")))
    return {name: cast("type[Metric[object]]", registry.load("metrics", name)).column.digits for name in metrics}
