"""All pages of the site: the same records give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from html.parser import HTMLParser
from importlib import resources
from itertools import groupby
from typing import TypeVar

from pydantic import JsonValue

from leaderboard.attack_record import Outcome, attack_record
from leaderboard.board import missing, used
from leaderboard.budget import budget_plot
from leaderboard.downloads import files, links
from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.intake import Intake
from leaderboard.lines import Line, Section
from leaderboard.page import Page, inputs, plain
from leaderboard.reproduction import VERDICTS, shipped
from leaderboard.row_data import DRAWN, brief, dumped, full
from leaderboard.scatter import PLANES, points, scatter
from leaderboard.summary import in_short, matrix
from leaderboard.tables import can_write_parquet

STATIC = (
    "board.css", "table.js", "plot.js", "choose.js", "compare.js", "rows.js", "fold.js",
    "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css", "uplot/LICENSE",
)  # fmt: skip


def render(taken: Intake) -> dict[str, Page]:
    """Every file of the site by its relative name, not yet drawn."""
    edition = Edition.of(taken)
    views = (front, further, tools, datasets, methods, attacks, cells, reproduction, _static, _downloads)
    return {page.name: page for view in views for page in view(edition)}


def _static(edition: Edition) -> Iterator[Page]:
    static = resources.files("leaderboard") / "static"
    for name in STATIC:
        yield plain(f"static/{name}", (static / name).read_bytes())


def _downloads(edition: Edition) -> Iterator[Page]:
    shared = inputs("downloads", edition.prints, edition.described)
    for made in files(edition):
        told = shared if made.row is None else inputs("downloads", edition.prints[made.row.id])
        yield Page(made.name, told, made.make)


MOST_LINES = 600
"""Rows on one line each that a page holds: 0.8 MB of them."""
MOST_WIDE = 60
"""Rows with all of their figures that a page holds."""
T = TypeVar("T")


def common(edition: Edition, root: str) -> dict[str, object]:
    """The variables of a page's frame and tables.

    Args:
        edition: The build.
        root: What leads from the page to the site's root: "" or "../".
    """
    return {**edition.shared, "root": root}


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


MOST_REASONS = 400


def front(edition: Edition) -> Iterator[Page]:
    """The front page."""
    pages = front_parts(edition)
    idle = [line for line in edition.lines if not line.reference and line.idle]
    references = [line for line in edition.lines if line.reference]
    few = len(edition.lines) <= MOST_LINES
    gaps = missing([line.row for line in edition.lines])
    taken = edition.taken
    yield Page(
        "index.html",
        inputs(
            "front",
            edition.prints,
            edition.described,
            taken.limited,
            list(taken.broken),
            edition.dates,
            can_write_parquet(),
        ),
        drawn(
            "index.html",
            **common(edition, ""),
            taken=taken,
            downloads=links(edition),
            lines=pages[0][1],
            pages=[name for name, _ in pages],
            further=further_scripts(edition),
            few=few,
            idle=idle if few else [],
            references=references if few else [],
            count=len(edition.lines),
            short=in_short(edition.lines),
            matrix=matrix(edition.lines),
            picture=picture(edition.lines),
            reasons=gaps[:MOST_REASONS],
            more_reasons=max(0, len(gaps) - MOST_REASONS),
            shards=[page.name for page in shards(edition)],
        ),
    )


def picture(lines: Sequence[Line]) -> dict[str, object] | None:
    """The first picture: the data set and size with the most points."""
    groups: dict[tuple[str, str, int], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.data, line.row.preset, line.row.seed), []).append(line)

    def drawn_rows(key: tuple[str, str, int]) -> int:
        return next((count for plane in PLANES if (count := len(points(groups[key], plane)))), 0)

    for data, preset, seed in sorted(groups, key=drawn_rows, reverse=True):  # of as many, in the order of the board
        svg = next((made for plane in PLANES if (made := scatter(groups[data, preset, seed], plane, ""))), None)
        if svg is not None:
            shown = f"{groups[data, preset, seed][0].section}|{preset}|{seed}"  # by which the script knows it
            return {"svg": svg, "data": data, "preset": preset, "seed": seed, "shown": shown}
    return None


MOST_FRONT = 300
"""Rows on each page of a board in several: half a megabyte, as a script too."""


def front_parts(edition: Edition) -> list[tuple[str, Sequence[Line]]]:
    """The board's pages with their rows, without references and inapplicable rows.

    The first is the front page. Where all rows of a board fit into one page, it is the only one.
    """
    shown = [line for line in edition.lines if not line.reference and not line.idle]
    most = MOST_LINES if len(edition.lines) <= MOST_LINES else MOST_FRONT
    return [("index.html" if number == 1 else numbered("board", number), some) for number, some in split(shown, most)]


def further_scripts(edition: Edition) -> list[str]:
    """The scripts that hold the rows of the further pages."""
    return [f"rows/lines-{number}.js" for number in range(2, len(front_parts(edition)) + 1)]


def further(edition: Edition) -> Iterator[Page]:
    """The board's further pages and their scripts, if one is not enough."""
    parts = front_parts(edition)
    names = [name for name, _ in parts]
    for number, (name, some) in enumerate(parts[1:], 2):
        told = inputs("board", edition.described, edition.dates, names, [edition.prints[line.id] for line in some])
        several = {"lines": some, "one": len(edition.parts) < 2}
        yield Page(name, told, drawn("further.html", **common(edition, ""), **several, pages=names, at=number))
        yield Page(f"rows/lines-{number}.js", told, partial(_lines_script, common(edition, "") | several))


def _lines_script(told: dict[str, object]) -> str:
    tree = Tree()
    tree.feed(drawn("rows.html", **told)())
    return f"veil.more({dumped(tree.top)});\n"


class Tree(HTMLParser):
    """HTML elements as plain data: name, attributes, children.

    Attributes:
        top: The outermost elements; text between elements that only indents them is left out.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top: list[JsonValue] = []
        self._open = [self.top]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """An element begins; tables have none that never end."""
        made: list[JsonValue] = [tag, {name: True if value is None else value for name, value in attributes}]
        self._open[-1].append(made)
        self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        """It ends."""
        self._open.pop()

    def handle_data(self, text: str) -> None:
        """Text in it."""
        if "\n" not in text or text.strip():
            self._open[-1].append(text)


FIRST_ORDER = "reid-auc"
BY_ATTACK = ("reid-auc", "guesswork")  # told of every attack on every row


def datasets(edition: Edition) -> Iterator[Page]:
    """The list of data sets, and the pages of each."""
    described = [[part.slug, part.title, part.data.model_dump(mode="json") if part.data else None, len(part.rows)]
                 for part in edition.parts]  # fmt: skip
    yield Page(
        "data/index.html", inputs("data sets", described, edition.dates),
        drawn("datasets.html", **common(edition, "../"), parts=edition.parts),
    )  # fmt: skip
    by_set: dict[str, list[Line]] = {}
    for line in edition.lines:
        by_set.setdefault(line.section, []).append(line)
    for part in edition.parts:
        lines = by_set[part.slug]
        yield from _dataset(edition, part, lines)
        yield from _wide(edition, part, lines)


def _dataset(edition: Edition, part: Section, lines: Sequence[Line]) -> Iterator[Page]:
    parts = list(split(lines, MOST_LINES))
    shared = common(edition, "../") | {"part": part, "pages": [numbered(f"{part.slug}", number) for number, _ in parts]}
    whole = inputs("data set", edition.described, part.title, part.splits, [edition.prints[line.id] for line in lines])
    for number, some in parts:
        told = dict(shared) | {
            "at": number,
            "lines": [line for line in some if not line.reference and not line.idle],
            "idle": [line for line in some if not line.reference and line.idle],
            "references": [line for line in some if line.reference],
        }
        yield Page(
            f"data/{numbered(part.slug, number)}",
            inputs(whole, number),
            partial(_draw, told, lines if number == 1 else (), some),
        )


def _draw(told: Mapping[str, object], lines: Sequence[Line], some: Sequence[Line]) -> str:
    """The page of a data set with its pictures, drawn on demand."""
    return drawn(
        "dataset.html", **told, pictures=list(_pictures(lines)), budget=budget_plot([line.row for line in lines]),
        reasons=missing(line.row for line in some), more_reasons=0,
    )()  # fmt: skip


def _pictures(lines: Sequence[Line]) -> Iterator[tuple[str, object]]:
    """Every picture of a data set, one a preset and seed."""
    groups: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.row.preset, line.row.seed), []).append(line)
    for (preset, seed), some in sorted(groups.items()):
        for plane in PLANES:
            svg = scatter(some, plane, "../")
            if svg is not None:
                yield f"preset {preset}, seed {seed}", svg


def _wide(edition: Edition, part: Section, lines: Sequence[Line]) -> Iterator[Page]:
    """All figures of every row, and every attack on every row."""
    ordered = sorted(lines, key=lambda line: (bool(line.reference), line.row.preset, line.row.label, line.id))
    by_attack = [column for name in BY_ATTACK for column in edition.columns if column.name == name]
    for what, template in (("figures", "figures.html"), ("attacks", "by_attack.html")):
        parts = list(split(ordered, MOST_WIDE))
        names = [numbered(f"{part.slug}-{what}", number) for number, _ in parts]
        for number, some in parts:
            rows = [line.row for line in some]
            yield Page(
                f"data/{names[number - 1]}",
                inputs(what, edition.described, names, part.title, [edition.prints[line.id] for line in some]),
                drawn(
                    template, **common(edition, "../"), part=part, rows=rows, pages=names, at=number,
                    shown=used(edition.columns, rows), first=FIRST_ORDER, by_attack=by_attack,
                ),
            )  # fmt: skip


def methods(edition: Edition) -> Iterator[Page]:
    """The pages of every method."""
    mine: dict[str, list[Line]] = {}
    for line in edition.lines:
        mine.setdefault(line.row.method, []).append(line)
    for method, lines in mine.items():
        stem = edition.methods[method]
        parts = list(split(lines, MOST_LINES))
        sources = sorted({record.method.source for line in lines for record in line.row.records})
        for number, some in parts:
            yield Page(
                f"methods/{numbered(stem, number)}",
                inputs("method", edition.described, len(parts), [edition.prints[line.id] for line in some]),
                drawn(
                    "method.html", **common(edition, "../"), method=method, sources=sources, lines=some, at=number,
                    pages=[numbered(stem, each) for each, _ in parts], role=lines[0].reference,
                    kinds=sorted({line.kind for line in lines} - {"unknown"}),
                ),
            )  # fmt: skip


MOST_OUTCOMES = 1000
FEW = 60
"""Rows of the gravest outcome that stand open on the page of an attack."""


def attacks(edition: Edition) -> Iterator[Page]:
    """The list of attacks, and a page each."""
    everything = inputs("attacks", edition.described, edition.prints)
    found = [(stem, attack_record(*key, tried)) for key, (stem, tried) in edition.attacks.items()]
    yield Page("attacks/index.html", everything, drawn("attacks.html", **common(edition, "../"), attacks=found))
    for stem, record in found:
        shown = [[edition.prints[one.line.id], one.record.evaluator] for one in record.outcomes]
        yield Page(
            f"attacks/{stem}.html", inputs("attack", edition.described, shown),
            drawn(
                "attack.html", **common(edition, "../"), attack=record, few=FEW,
                outcomes=[(state, list(some)) for state, some in groupby(record.outcomes[:MOST_OUTCOMES], _state)],
                more=max(0, len(record.outcomes) - MOST_OUTCOMES),
            ),
        )  # fmt: skip


def _state(outcome: Outcome) -> str:
    return outcome.state


MOST_PARTS = 150
"""Parts of one record's figures that its page lists; the downloads hold all."""


def cells(edition: Edition) -> Iterator[Page]:
    """The page, data and pictures of every row."""
    for line in edition.lines:
        cell = line.row.cell
        pictured = {where: name for where, name in edition.pictured.items() if where[0] == cell}
        told = inputs("cell", edition.described, edition.prints[line.id], sorted(pictured.values()), edition.dates)
        yield Page(
            f"cells/{line.id}.html", told,
            drawn("cell.html", **common(edition, "../"), line=line, row=line.row, pictured=pictured, most=MOST_PARTS),
        )  # fmt: skip
        tests = {
            edition.ids[other]: {name: asdict(apart) for name, apart in found.items()}
            for other, found in edition.ranking.tests.get(cell, {}).items()
        }  # fmt: skip
        yield Page(f"rows/{line.id}.js", inputs("row", told, tests), partial(_script, line, tests))
    for place, picture in edition.taken.pictures.items():
        yield plain(edition.pictured[place], picture)


def _script(line: Line, tests: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    return f"veil.row({dumped(full(line, tests))});\n"


SHARD = 1200
"""Rows in one file of figures: half a megabyte."""


def tools(edition: Edition) -> Iterator[Page]:
    """The pages `choose`, `compare` and `reading`, and the files of figures."""
    files = list(shards(edition))
    yield from files
    for name in ("choose", "compare"):
        told = common(edition, "") | {"shards": [page.name for page in files]}
        yield Page(f"{name}.html", inputs(name, len(files), edition.dates), drawn(f"{name}.html", **told))
    yield Page(
        "reading.html", inputs("reading", edition.described, edition.dates),
        drawn("reading.html", **common(edition, "")),
    )  # fmt: skip


def shards(edition: Edition) -> Iterator[Page]:
    """A few figures of every row, as scripts for local pages."""
    titles = {part.slug: part.title for part in edition.parts}
    digits = {column.name: column.digits for column in edition.columns if column.name in DRAWN}
    for number, some in split(edition.lines, SHARD):
        told = [edition.prints[line.id] for line in some]
        yield Page(
            f"rows/all-{number}.js", inputs("rows", told, titles, digits), partial(_rows_script, some, titles, digits)
        )


def _rows_script(lines: Sequence[Line], titles: Mapping[str, str], digits: Mapping[str, int | None]) -> str:
    rows, told = dumped([brief(line) for line in lines]), (dumped(dict(each)) for each in (titles, digits))
    return f"veil.add({', '.join([rows, *told])});\n"


def reproduction(edition: Edition) -> Iterator[Page]:
    """The page `reproduction`, which is the same for every board."""
    ledger = shipped()
    yield Page(
        "reproduction.html", inputs("reproduction", ledger.model_dump(mode="json"), edition.described, edition.dates),
        drawn("reproduction.html", **common(edition, ""), ledger=ledger, verdicts=VERDICTS),
    )  # fmt: skip
