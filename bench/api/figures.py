"""Tables and charts of a results folder, for papers.

Figures are those of the board: its rows, its intervals, its choice of the strongest certified attack.
"""

from __future__ import annotations

__figures__ = False

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Literal

from bench.api.boards import is_meant
from bench.api.running import records_of
from bench.plugins.spec import UsageError, did_you_mean, parse
from bench.results.records import Record, RecordError, ScoreRecord
from bench.results.results import Results

if TYPE_CHECKING:  # each function imports what it needs
    from bench.evidence import PairEvidence
    from bench.pictures.charts import Form as ChartForm
    from bench.pictures.charts import Line, Point, Risk, Scale, Span, Width
    from leaderboard.board import Row
    from leaderboard.entries import Column, Entry
    from leaderboard.typesetting import Form

Chart = Literal["trade-off", "ladder", "curve", "person-risk", "matrix"]
Curve = Literal["learning", "roc"]
LOGARITHMIC = frozenset({"guesswork", "patient-guesswork", "median-rank", "throughput"})
"""Metrics that charts draw on a logarithmic axis."""
RISKS = ("person-risk", "member-risk")
POINT = re.compile(r"1 false in ([1-9][0-9]*)")
CHOICES = 10  # lines of an error
USED = 8  # columns of a table that still fit a page


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The chosen rows of a table or chart; all by default.

    Args:
        rows: Methods as the command line takes them; without parameters all rows of a method.
        dataset: As the command line takes it, or as the board writes it, in full if several have one name.
        preset: Of the run.
        seed: Of the run.
    """

    rows: Sequence[str] = ()
    dataset: str | None = None
    preset: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Part:
    """The chosen rows of one data set, preset and seed, in order."""

    title: str
    rows: Sequence[Row]

    @property
    def name(self) -> str:
        """The data set, preset and seed alone, for charts."""
        first = self.rows[0]
        return f"{first.dataset}, preset {first.preset}, seed {first.seed}"


def parts(results: Results, selection: Selection) -> list[Part]:
    """The chosen rows, as the board states them.

    Raises:
        UsageError: No record, or none of a name.
    """
    from leaderboard.board import rows as board_rows
    from leaderboard.sections import sections
    from leaderboard.typesetting import title

    records = list(records_of(results))
    if not records:
        raise UsageError(f"no records in {results.root}: run something first, or name the folder with --results")
    chosen = _chosen(records, selection)
    # The controls and the reach of attacks come from all records, as on the board.
    rows = board_rows(chosen, pool=records)
    if not rows:
        raise UsageError("all of these records are of runs with --limit, which the board does not show: run without it")
    found: list[Part] = []
    for section in sections(rows):
        groups: dict[tuple[str, int], list[Row]] = {}
        for row in section.rows:
            groups.setdefault((row.preset, row.seed), []).append(row)
        found += [Part(title(group[0], section.name), _ordered(group, selection.rows)) for group in groups.values()]
    return found


def _chosen(records: Sequence[Record], selection: Selection) -> list[Record]:
    """The records of a selection; UsageError names what none of them has."""
    chosen = list(records)
    asked_data = selection.dataset
    if asked_data is not None and not any(asked_data in _datasets(record) for record in records):
        in_full = _sections(records)
        chosen = [record for record in chosen if in_full.get(record.cell) == asked_data]
        if not chosen:
            known = sorted({*in_full.values(), *(name for record in records for name in _datasets(record))})
            raise UsageError(f"no record is of the data set {asked_data!r}; {did_you_mean(asked_data, known)}")
        asked_data = None
    kinds: tuple[tuple[str, str | None, Callable[[Record], tuple[str, ...]]], ...] = (
        ("data set", asked_data, _datasets),
        ("preset", selection.preset, lambda record: (record.preset,)),
        ("seed", None if selection.seed is None else str(selection.seed), lambda record: (str(record.seed),)),
    )
    for what, asked, of in kinds:
        if asked is None:
            continue
        known = sorted({name for record in chosen for name in of(record)})
        chosen = [record for record in chosen if asked in of(record)]
        if not chosen:
            raise UsageError(f"no record is of the {what} {asked!r}; {did_you_mean(asked, known)}")
    fitting = [record for record in chosen if not selection.rows or any(_is(record, name) for name in selection.rows)]
    for name in selection.rows:
        if not any(_is(record, name) for record in fitting):
            from leaderboard.names import label

            labels = sorted({label(record) for record in chosen})
            raise UsageError(f"no record is of {name!r}; {did_you_mean(name, labels)}")
    return fitting


def _sections(records: Sequence[Record]) -> Mapping[str, str]:
    """Each cell's data set as the board writes it."""
    from leaderboard.board import rows as board_rows
    from leaderboard.sections import names

    return names(board_rows(records))


def _datasets(record: Record) -> tuple[str, ...]:
    """The names of a record's data: the choice's and the board's."""
    asked = str(record.choice.get("dataset"))
    return (asked,) if record.dataset is None else (asked, record.dataset.name)


def _is(record: Record, name: str) -> bool:
    return is_meant(record.method.name, record.method.parameters, parse(name))


def _ordered(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Rows in the order of the names that choose them."""
    specs = [parse(name) for name in names]

    def place(row: Row) -> int:
        return next((number for number, spec in enumerate(specs) if is_meant(row.method, row.parameters, spec)), 0)

    return sorted(rows, key=place)


def table(results: Results, selection: Selection, metrics: Sequence[str], form: Form) -> tuple[str, list[str]]:
    """A table a data set, preset and seed, of the board's figures.

    Args:
        results: The folder.
        selection: Its rows.
        metrics: In the order of the columns; none for those that the rows have.
        form: The format.

    Returns:
        The text, and hints to its author.

    Raises:
        UsageError: No record, or none of a name.
    """
    from leaderboard.board import used
    from leaderboard.typesetting import Sheet, typeset

    found = parts(results, selection)
    sheets, hints = [], list[str]()
    known = sorted({name for part in found for row in part.rows for name in row.entries})
    for part in found:
        columns = {entry.column.name: entry.column for entry in part.rows[0].entries.values()}
        chosen = [_column(columns, name, known) for name in metrics] or used(list(columns.values()), part.rows)
        sheets.append(Sheet(part.title, part.rows, chosen))
    widest = max(len(sheet.columns) for sheet in sheets)
    if form != "csv" and widest > USED:
        hints.append(f"{widest} metrics are too wide for a page: choose some with --metrics")
    return typeset(sheets, form), hints


def _column(columns: Mapping[str, Column], name: str, known: Sequence[str]) -> Column:
    if name not in columns:
        raise UsageError(f"no record has a figure called {name!r}; {did_you_mean(name, known)}")
    return columns[name]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A chart's options.

    Args:
        x, y: Metrics of the axes of a trade-off.
        metric: The figure of a matrix.
        attacks: Only these; without a choice all.
        of: The curve: of learning, or the ROC curve of pairs.
        width: Of a column or a page.
        form: Of the file.
    """

    x: str = "reid-auc"
    y: str = "utility-auc"
    metric: str = "reid-auc"
    attacks: Sequence[str] = ()
    of: Curve | None = None
    width: Width = "column"
    form: ChartForm = "pdf"


def plot(kind: Chart, results: Results, selection: Selection, drawing: Drawing) -> bytes:
    """The file of a chart.

    Raises:
        UsageError: The folder lacks what the chart is of, or several data sets, presets or seeds could be drawn.
    """
    if kind == "ladder":
        return _ladder(results, selection, drawing)
    part = _one_part(results, selection)
    draw = {"trade-off": _trade_off, "curve": _curves, "matrix": _matrix, "person-risk": _person_risk}[kind]
    return draw(part, results, drawing)


def _one_part(results: Results, selection: Selection) -> Part:
    found = parts(results, selection)
    if len(found) > 1:
        raise UsageError("\n  ".join(["a chart is of one data set, preset and seed: choose one of",
                                       *_choices(found, _sections(list(records_of(results))))]))  # fmt: skip
    return found[0]


def _choices(found: Sequence[Part], in_full: Mapping[str, str]) -> list[str]:
    """The options that tell parts from each other, at most `CHOICES` lines."""
    firsts = [part.rows[0] for part in found]
    options = [("--dataset", [in_full[row.cell] for row in firsts]), ("--preset", [row.preset for row in firsts]),
               ("--seed", [str(row.seed) for row in firsts])]  # fmt: skip
    differing = [(option, values) for option, values in options if len(set(values)) > 1]
    lines = [shlex.join([word for option, values in differing for word in (option, values[number])])
             for number in range(len(found))]  # fmt: skip
    more = len(lines) - CHOICES
    return lines if more <= 0 else [*lines[:CHOICES], f"… and {more} more"]


def _span(score: ScoreRecord) -> Span:
    from bench.pictures.charts import Span

    return Span(score.value, score.low, score.high)


def _scale(column: Column, scores: Iterable[ScoreRecord], note: str = "") -> Scale:
    """An axis of a metric, with the widest interval of chance."""
    from bench.pictures.charts import Scale

    lows, highs = zip(*((score.null_low, score.null_high) for score in scores), strict=True)
    known = [end for end in lows if end is not None], [end for end in highs if end is not None]
    chance = (min(known[0]), max(known[1])) if all(known) else None
    better = {"higher": "higher is better", "lower": "lower is better"}[column.better]
    hint = f" ({note}{better} for the owner)" if column.arrow else ""
    return Scale(f"{column.title}{hint}", column.name in LOGARITHMIC, chance)


def _trade_off(part: Part, results: Results, drawing: Drawing) -> bytes:
    from bench.pictures import charts
    from leaderboard.typesetting import row_label

    points: list[Point] = []
    scores: list[tuple[ScoreRecord, ScoreRecord]] = []
    entries: list[tuple[Entry, Entry]] = []
    unrated: list[str] = []
    for row in part.rows:
        x, y = (_entry(row, name, part) for name in (drawing.x, drawing.y))
        if x.score is None or y.score is None:
            continue
        if x.unrated or y.unrated:
            unrated.append(f"{row.label}: {x.unrated or y.unrated}")
            continue
        doubtful = not (x.certified and y.certified)
        points.append(charts.Point(row_label(row, part.rows), row.method, _span(x.score), _span(y.score), doubtful))
        scores.append((x.score, y.score))
        entries.append((x, y))
    if not points:
        _refuse_unrated(unrated)
        raise UsageError(
            f"no row has both {drawing.x} and {drawing.y}: measure both, as in `bench run --method dauntless --metric "
            f"{drawing.x} --metric {drawing.y} --attack relational --controls`, or choose others by --x and --y"
        )
    notes = ["95 % intervals", "grey: 95 % interval of chance", *["hollow: attack not certified"] * any(
        point.hollow for point in points)]  # fmt: skip
    title = f"{part.name}; {'; '.join(notes)}"
    across, up = (
        _scale(pair[axis].column, [two[axis] for two in scores], "strongest attack; " * pair[axis].attacked)
        for axis, pair in ((0, entries[0]), (1, entries[0]))
    )
    return charts.trade_off(points, across, up, title, width=drawing.width, form=drawing.form)


def _refuse_unrated(reasons: Sequence[str]) -> None:
    """Raise UsageError if rows have the figures, and none is rated."""
    if reasons:
        raise UsageError(
            f"the figures of these rows are not rated, and charts leave such rows out: {'; '.join(reasons)}: "
            "`bench run --evaluator honesty` with the same options runs the check of promises"
        )


def _entry(row: Row, name: str, part: Part) -> Entry:
    known = sorted({metric for one in part.rows for metric in one.entries})
    if name not in known:
        raise UsageError(f"no record has a figure called {name!r}; {did_you_mean(name, known)}")
    return row.entries[name]


def _attack_records(part: Part, drawing: Drawing) -> list[tuple[Row, Record]]:
    """Records of the attacks that are drawn. Raises UsageError for unknown names."""
    from leaderboard.entries import short

    found = [(row, record) for row in part.rows for record in row.records if record.attack is not None]
    known = sorted({name for _, record in found for name in _names(record)})
    for name in drawing.attacks:
        if name not in known:
            raise UsageError(f"no record is of an attack called {name!r}; {did_you_mean(name, known)}")
    if not found:
        raise UsageError("no attack was run on these rows: repeat `bench run` without --attack none")
    chosen = [one for one in found if not drawing.attacks or set(_names(one[1])) & set(drawing.attacks)]
    return sorted(chosen, key=lambda one: short(one[1].evaluator))


def _names(record: Record) -> tuple[str, ...]:
    from leaderboard.entries import short

    return (short(record.evaluator), record.attack.name if record.attack else "")


def _matrix(part: Part, results: Results, drawing: Drawing) -> bytes:
    from bench.pictures import charts
    from leaderboard.entries import entry, interval, number, short
    from leaderboard.typesetting import row_label

    records = _attack_records(part, drawing)
    _entry(part.rows[0], drawing.metric, part)
    column = part.rows[0].entries[drawing.metric].column
    asked = [(row, record) for row, record in records if drawing.metric in record.metrics]
    names = list(dict.fromkeys(short(record.evaluator) for _, record in asked))
    if not any(drawing.metric in record.scores for _, record in asked):
        raise UsageError(f"no attack gave {drawing.metric} on these rows: choose another by --metric, or run "
                         f"`bench run --metric {drawing.metric}`")  # fmt: skip
    by_place = {(row.cell, short(record.evaluator)): record for row, record in asked}
    values, texts, below = list[list[float | None]](), list[list[str]](), list[list[str]]()
    for row in part.rows:
        line = [by_place.get((row.cell, name)) for name in names]
        entries = [
            None if record is None else replace(entry([record], column, _certified(row)), unrated=row.unrated)
            for record in line
        ]
        values.append([None if one is None or one.score is None else one.score.value for one in entries])
        texts.append([_short_text(one, number) for one in entries])
        below.append(
            [
                "" if one is None or one.score is None or one.score.low is None
                else _brief(interval(one.score.low, one.score.high, _digits(column)))
                for one in entries
            ]
        )  # fmt: skip
    nulls = [record.scores[drawing.metric].null for _, record in asked if drawing.metric in record.scores]
    known = [null for null in nulls if null is not None]
    figures = [value for line in values for value in line if value is not None]
    chance = median(known) if known else (min(figures) if column.better == "lower" else max(figures))
    perfect = _perfect(column, figures)
    title = f"{part.name}; † not certified, {'[ ] not rated, ' * any(row.unrated for row in part.rows)}– not run, "
    title += "n/a not applicable"
    scale = charts.Scale(f"{column.title} (pale: as by chance, dark: all found)", column.name in LOGARITHMIC)
    table = charts.Grid([row_label(row, part.rows) for row in part.rows], names, values, texts, below, scale,
                        (chance, perfect if perfect != chance else chance + 1))  # fmt: skip
    return charts.grid(table, title, width=drawing.width, form=drawing.form)


def _certified(row: Row) -> frozenset[str]:
    """The attacks of a row whose controls hold."""
    return row.panel.certified | row.membership.certified


def _digits(column: Column) -> int | None:
    return None if column.digits is None else min(column.digits, 2)


def _brief(ends: str) -> str:
    """An interval for a small place, without zeros before a point.

    >>> _brief("0.48 – 1.00")
    '.48–1.00'
    """
    return re.sub(r"(?<![0-9,])0(?=[.])", "", ends.replace(" – ", "–"))


def _short_text(one: Entry | None, number: Callable[[float, int | None], str]) -> str:
    """A figure with two decimals, and the signs that it needs."""
    if one is None:
        return "–"
    if one.score is None:
        return {"not-applicable": "n/a", "not-run": "–"}.get(one.status, one.status.replace("-", " "))
    figure = number(one.score.value, _digits(one.column))
    return (f"[{figure}]" if one.unrated else figure) + ("" if one.certified else "†")


def _perfect(column: Column, figures: Sequence[float]) -> float:
    """The figure of an attack that finds everything."""
    if column.unit in ("AUC", "share") and column.better == "lower":
        return 1.0
    if column.unit in ("guesses", "rank"):
        return 1.0
    return max(figures) if column.better == "lower" else min(figures)


def _ladder(results: Results, selection: Selection, drawing: Drawing) -> bytes:
    """Guesswork of attacks on the ladder, measured here or shipped."""
    from bench.api.boards import reach as known_steps
    from bench.pictures import charts
    from leaderboard import reach
    from leaderboard.entries import interval, number

    if selection.rows:
        raise UsageError("the ladder has its own rows: leave --rows out")
    _, known = known_steps(results, selection.preset or "first-look")
    datasets = sorted({step.dataset for step in known})
    if selection.dataset is None and len(datasets) > 1:
        raise UsageError(f"a chart is of one data set: choose with --dataset among {', '.join(datasets)}")
    dataset = selection.dataset or datasets[0]
    steps = [step for step in known if step.dataset == dataset]
    if not steps:
        raise UsageError(f"no attack was measured on the ladder of {dataset!r}; {did_you_mean(dataset, datasets)}; "
                         f"`bench run --suite ladder --dataset {dataset}` does it")  # fmt: skip
    newest = {(step.attack.name, str(step.attack.parameters)): step for step in reversed(steps)}
    names = sorted({step.attack.name for step in newest.values()})
    for name in drawing.attacks:
        if name not in names:
            raise UsageError(f"no attack called {name!r} was measured on the ladder; {did_you_mean(name, names)}")
    one_each = sorted(newest.values(), key=lambda step: (step.attack.name, step.attack.written))
    chosen = [step for step in one_each if not drawing.attacks or step.attack.name in drawing.attacks]
    columns = [reach.reach(step.attack, step.preset, dataset, known) for step in chosen]
    signs = {"broken": " ✕", "leaks": " ◐"}
    words = {"not measured": "–", "not applicable": "n/a", "failed": "failed"}
    values, texts, below = list[list[float | None]](), list[list[str]](), list[list[str]]()
    for place in range(len(reach.rungs())):
        line = [column[place] for column in columns]
        values.append([rung.attained for rung in line])
        texts.append(
            [
                words.get(rung.state, "") if rung.attained is None
                else number(rung.attained, 0 if rung.attained >= 10 else 1) + signs.get(rung.state, "")
                for rung in line
            ]
        )  # fmt: skip
        scores = [None if rung.step is None else rung.step.scores.get("guesswork") for rung in line]
        below.append(
            ["" if s is None or s.low is None else interval(s.low, s.high, 0).replace(" – ", "–") for s in scores]
        )
    twins = [step.attack.name for step in chosen]
    labels = [
        step.attack.written if twins.count(step.attack.name) > 1 else step.attack.name for step in chosen
    ]  # fmt: skip
    nulls = [score.null for step in steps if (score := step.scores.get("guesswork")) and score.null is not None]
    first = chosen[0]
    title = (
        f"{dataset}, preset {first.preset}: {first.images} images, {first.keys} keys; ✕ broken, ◐ leaks, – not measured"
        ", n/a not applicable"
    )
    scale = charts.Scale("guesses until the first match (pale: as by chance, dark: at once)", log=True)
    table = charts.Grid(reach.rungs(), labels, values, texts, below, scale, (median(nulls) if nulls else 100.0, 1.0))
    return charts.grid(table, title, width=drawing.width, form=drawing.form)


def _curves(part: Part, results: Results, drawing: Drawing) -> bytes:
    """Learning curves of attacks, or ROC curves of their scores."""
    from bench.pictures import charts

    records = _attack_records(part, drawing)
    learning = _learning(part, records)
    if drawing.of == "learning" or (drawing.of is None and learning):
        if not learning:
            raise UsageError(
                "no record of these rows holds a learning curve: attacks that train nothing have none, nor have older "
                "records; run one that learns, as in `bench run --method dauntless --attack contrastive`, "
                "or draw the ROC curve by --of roc"
            )
        panels = [(charts.Scale(figure), lines) for figure, lines in learning.items()]
        title = f"{part.name}; held-out figure by steps of training; dashed: ended by its budget, not converged"
        return charts.curves(panels, charts.Scale("steps"), title, width=drawing.width, form=drawing.form)
    lines = _roc(part, records)
    if not lines:
        raise UsageError(
            "no record of these rows holds a curve: a ROC curve is kept by the metric advantage, as in `bench run "
            "--method dauntless --attack relational --metric advantage --metric reid-auc --metric tpr-at-low-fpr`"
        )
    title = f"{part.name}; mean over keys; bars: 95 % intervals at one in 1,000 and in 10,000"
    chance = charts.Line(charts.CHANCE, [(1e-6, 1e-6), (0.5, 0.5)], broken=True)
    x, y = (charts.Scale(f"{what} positive rate", log=True) for what in ("false", "true"))
    return charts.curves([(y, [*lines, chance])], x, title, width=drawing.width, form=drawing.form)


def _curve_label(row: Row, record: Record, rows: Sequence[Row], records: Sequence[tuple[Row, Record]]) -> str:
    """The row, the attack, or both: what the curves differ in."""
    from leaderboard.entries import short
    from leaderboard.typesetting import row_label

    names = [row_label(row, rows)] * (len({one.cell for one, _ in records}) > 1)
    names += [short(record.evaluator)] * (len({one.evaluator for _, one in records}) > 1 or not names)
    return ": ".join(names)


def _learning(part: Part, records: Sequence[tuple[Row, Record]]) -> dict[str, list[Line]]:
    """The curves by their figure, which is that of a panel."""
    from bench.pictures.charts import Line
    from bench.types import curves_of

    panels: dict[str, list[Line]] = {}
    having = [(row, record, curves) for row, record in records if (curves := curves_of(record.details))]
    of = [(row, record) for row, record, _ in having]
    for row, record, curves in having:
        label = _curve_label(row, record, part.rows, of)
        for curve in curves:
            line = Line(label, curve.points, broken=not curve.converged)
            panels.setdefault(curve.figure, []).append(line)
    return panels


def _roc(part: Part, records: Sequence[tuple[Row, Record]]) -> list[Line]:
    from bench.pictures.charts import Line
    from leaderboard.entries import interval, number

    having = [(row, record) for row, record in records if "advantage" in record.scores]
    lines = []
    for row, record in having:
        parts_of = record.scores["advantage"].parts
        points = sorted((1 / int(found[1]), part_score.value) for name, part_score in parts_of.items()
                        if (found := POINT.fullmatch(name)))  # fmt: skip
        drawn = [(x, y) for x, y in points if y > 0]
        if not drawn:
            continue
        label = _curve_label(row, record, part.rows, having)
        if (auc := record.scores.get("reid-auc")) is not None:
            ends = interval(auc.low, auc.high, 2).replace(" – ", "–")
            label += f": AUC {number(auc.value, 2)} ({ends})"
        spans = []
        if (low := record.scores.get("tpr-at-low-fpr")) is not None:
            spans = [(1e-3, low), *((1e-4, part_score) for name, part_score in low.parts.items() if name == LOWER)]
        lines.append(Line(label, drawn, [(x, _above(one, drawn)) for x, one in spans]))
    return lines


LOWER = "one in 10000"
"""The part of tpr-at-low-fpr at the lower rate."""


def _above(score: ScoreRecord, points: Sequence[tuple[float, float]]) -> Span:
    """The interval, cut at the least rate that a logarithmic axis shows."""
    from bench.pictures.charts import Span

    least = min(y for _, y in points)
    return Span(score.value, None if score.low is None else max(score.low, least / 2), score.high)


def _person_risk(part: Part, results: Results, drawing: Drawing) -> bytes:
    from bench.pictures import charts
    from leaderboard.entries import entry, short
    from leaderboard.typesetting import row_label

    chosen: list[Risk] = []
    unrated: list[str] = []
    reasons: dict[str, None] = {}
    records = _attack_records(part, drawing)
    for row in part.rows:
        for name in RISKS:
            one = row.entries.get(name)
            mine = {record.evaluator: record for other, record in records if other.cell == row.cell}
            if one is not None and drawing.attacks:
                one = replace(entry([*mine.values()], one.column, _certified(row)), unrated=one.unrated)
            if one is None or one.score is None:
                reasons |= {} if one is None or not one.gaps else {one.gaps[0].reason: None}
                continue
            if one.unrated:
                unrated.append(f"{row.label}: {one.unrated}")
                continue
            record = mine.get(one.by)
            if record is None:
                continue
            score = record.scores[name]
            typical, rare = (score.parts.get(which) for which in ("median person", "person at 95 %"))
            chance = None if score.null_low is None or score.null_high is None else (score.null_low, score.null_high)
            label = f"{row_label(row, part.rows)}\n{short(record.evaluator)}"
            chosen.append(
                charts.Risk(
                    label + ("" if one.certified else " †"), typical.value if typical else None,
                    rare.value if rare else None, _span(score), chance, _shares(record, results),
                )
            )  # fmt: skip
    if not chosen:
        _refuse_unrated(unrated)
        raise UsageError(
            f"no row has a person's risk ({'; '.join(reasons) or 'it was not measured'}): run, for example, `bench run "
            "--method dauntless --attack relational --metric person-risk --preset first-look --keys 10`"
        )
    title = f"{part.name}; each row's strongest attack{' of those chosen' * bool(drawing.attacks)}; "
    title += "bounds hold for all people at once"
    title += "; † not certified" * any("†" in risk.label for risk in chosen)
    return charts.person_risk(chosen, title, width=drawing.width, form=drawing.form)


def _shares(record: Record, results: Results) -> Sequence[tuple[float, float]]:
    """Each rate of people with its share; none without evidence."""
    from bench.exchange.evidence_check import evidence_of
    from bench.results.evidence_file import EvidenceError

    try:
        content = results.evidence(record)
        found: Mapping[str, object] = {} if content is None else evidence_of(record, content)
    except (RecordError, EvidenceError, OSError, UsageError):
        return ()
    people = [evidence.people for evidence in found.values() if _pairs(evidence)]  # type: ignore[attr-defined]
    if len(people) != 1 or people[0] is None:  # several: the figure is the worst of them
        return ()
    rates = (people[0].found.sum(dim=0) / people[0].trials.sum(dim=0)).clamp(0, 1)
    counts = Counter(round(rate, 2) for rate in rates.tolist())
    return [(rate, count / len(rates)) for rate, count in sorted(counts.items())]


def _pairs(evidence: PairEvidence | object) -> bool:
    from bench.evidence import PairEvidence

    return isinstance(evidence, PairEvidence)
