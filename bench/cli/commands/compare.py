"""`bench compare`: two methods by figure, or all by rank."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated

from pydantic import JsonValue
from rich.measure import Measurement
from rich.table import Table

from bench.api import boards, running
from bench.api.boards import Comparison
from bench.api.frames import comparison_lines
from bench.cli.parameters import RESULTS, Format, ResultsFolder, completer, switch
from bench.cli.terminal import print_json, to_stdout, waiting
from leaderboard.comparison import Compared, Ranked
from leaderboard.entries import interval, number, short
from leaderboard.one_scale import Bar, Scale

WIDTH = 10
GAINS = (
    "What an attacker gains over the best guess without the release: 0 is that guess, 1 is certainty. Twice the area "
    "under the ROC curve less 1; of likeness what is gained beyond the mean image."
)
RANKED = (
    "Below each figure its difference to the first of the column, on the same people, key by key, with its 95 % "
    "interval (× of guesses: their ratio), and p, corrected for all pairs of methods (Holm). All rank intervals of a "
    "column hold together with 95 % confidence. That each method's strongest attack was chosen on the same data is not "
    "corrected for."
)
NAME = 40  # letters of a method's column
PAIRED = (
    "First {}, second {}, on the same people, key by key. A difference is the first figure minus the second; of "
    "guesses and ranks it is the ratio of geometric means over keys. Intervals of 95 %; p is not corrected for the "
    "number of lines."
)


def compare(
    *method: Annotated[str, switch("two methods, as 'dp-simple[scale=20]' (default: all, with their ranks)")],
    metric: Annotated[
        tuple[str, ...], switch("a metric (repeatable; default: all)", metavar="NAME", completer=completer("metrics"))
    ] = (),
    attack: Annotated[
        str | None,
        switch("only figures of this attack (default: all attacks on both methods)", metavar="NAME",
               completer=completer("attacks")),
    ] = None,
    results: ResultsFolder = RESULTS,
    form: Format = "text",
) -> int:  # fmt: skip
    """Print a table a data set; 1 if nothing could be compared."""
    with waiting("read the records"):
        comparisons, scales = boards.compare_and_scale(running.open_place(results).results, method, metric, attack)
    if form == "json":
        print_json(
            comparisons=[line for one in comparisons for line in comparison_lines(one)],
            gains=[line for scale in scales for line in _gain_lines(scale)],
        )
        return int(all(comparison.empty for comparison in comparisons))
    for comparison in comparisons:
        if comparison.ranks:
            _print_ranks(comparison)
        if comparison.first is not None:
            _print_pair(comparison)
    _print_scales(scales)
    if all(comparison.empty for comparison in comparisons):
        print("nothing could be compared: no two of these have a figure in common on the same data, preset and seed")
        return 1
    return 0


def _print_scales(scales: Sequence[Scale]) -> None:
    """The methods side by side, a table for each data set."""
    ordered = sorted(scales, key=_where)
    for (dataset, preset, seed), group in groupby(ordered, key=_where):
        table = Table(
            title=f"Gains over a guess: {dataset}, preset {preset}, seed {seed}", title_justify="left", caption=GAINS,
            caption_justify="left",
        )  # fmt: skip
        both = list(group)
        table.add_column("threat")
        for scale in both:
            table.add_column(scale.method, overflow="fold")
        for bars in zip(*(scale.bars for scale in both), strict=True):
            table.add_row(bars[0].threat, *map(_gain, bars))
        to_stdout().print(table)


def _gain_lines(scale: Scale) -> Iterable[dict[str, JsonValue]]:
    for bar in scale.bars:
        yield {
            "dataset": scale.dataset, "preset": scale.preset, "seed": scale.seed, "row": scale.method,
            "threat": bar.threat, "value": bar.value, "low": bar.low, "high": bar.high, "by": bar.by,
            "reason": bar.reason,
        }  # fmt: skip


def _where(scale: Scale) -> tuple[str, str, int]:
    return scale.dataset, scale.preset, scale.seed


def _gain(bar: Bar) -> str:
    if bar.value is None:
        return bar.reason
    drawn = "█" * round(WIDTH * min(1.0, max(0.0, bar.value)))
    doubt = f"; {bar.reason}" if bar.reason else ""
    return f"{drawn:{WIDTH}} {number(bar.value, 2)} ({interval(bar.low, bar.high, 2)}, {short(bar.by)}{doubt})"


def _title(one: Comparison) -> str:
    return f"{one.dataset}, preset {one.preset}, seed {one.seed}"


def _print_pair(one: Comparison) -> None:
    assert one.first is not None
    assert one.second is not None
    caption = PAIRED.format(one.first.label, one.second.label)
    table = Table(title=_title(one), title_justify="left", caption=caption, caption_justify="left")
    for name in ("figure", "attack", "first", "second", "difference", "95 % interval", "p"):
        table.add_column(name, justify="left" if name in ("figure", "attack") else "right", overflow="fold")
    for figure in one.figures:
        if figure.paired is not None:
            table.add_row(*_line(figure))
    if table.row_count:
        to_stdout().print(table)
    if lone := dict.fromkeys(figure.column.title for figure in one.figures if figure.keys == 1):
        print(f"one key only, so their intervals leave out how keys and trainings vary: {', '.join(lone)}")
    _print_left_out(
        (f"{figure.column.title} ({short(figure.by[0])})", figure.reason) for figure in one.figures if figure.reason
    )


def _line(figure: Compared) -> tuple[str, ...]:
    assert figure.paired is not None
    paired, digits = figure.paired, figure.column.digits
    ratio, shown = ("× ", None) if paired.ratio else ("", digits)
    return (
        f"{figure.column.title} {figure.column.arrow}", short(figure.by[0]), number(figure.a, digits),
        number(figure.b, digits), ratio + number(paired.value, shown), ratio + interval(paired.low, paired.high, shown),
        f"{paired.p:.2g}",
    )  # fmt: skip


def _print_left_out(reasons: Iterable[tuple[str, str]]) -> None:
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons:
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        print(f"not compared: {', '.join(dict.fromkeys(names))}: {reason}")


def _print_ranks(one: Comparison) -> None:
    """All methods by all figures, in one table."""
    labels = list(dict.fromkeys(label for ranks in one.ranks for label in ranks.values))
    wide, console = sys.maxsize, to_stdout()
    parts: list[list[Ranked]] = [[]]
    for ranks in one.ranks:
        more = _ranks(one, labels, [*parts[-1], ranks])
        if parts[-1] and Measurement.get(console, console.options.update(max_width=wide), more).maximum > console.width:
            parts.append([])
        parts[-1].append(ranks)
    for part in parts:
        console.print(_ranks(one, labels, part))
    console.print(RANKED, style="table.caption")
    _print_left_out(
        (f"{label} by {ranks.column.title}", reason) for ranks in one.ranks for label, reason in ranks.left_out.items()
    )


def _ranks(one: Comparison, labels: Sequence[str], some: Sequence[Ranked]) -> Table:
    table = Table(title=_title(one), title_justify="left", show_lines=True)
    table.add_column("method", overflow="fold", max_width=NAME)
    for ranks in some:
        table.add_column(f"{ranks.column.title} {ranks.column.arrow}".strip(), justify="right", no_wrap=True)
    for label in labels:
        table.add_row(label, *(_rank(label, ranks) for ranks in some))
    return table


def _rank(label: str, ranks: Ranked) -> str:
    """Figure, rank, and the difference to the first, with p."""
    if label not in ranks.values:
        return "not compared"
    low, high = ranks.ranks[label]
    rank = f"rank {low}" if low == high else f"rank {low} – {high}"
    lines = [f"{number(ranks.values[label], ranks.column.digits)}, {rank}"]
    best = next(iter(ranks.values))
    if label != best:
        value, least, most = ranks.sizes[best, label]
        p = ranks.pairs[best, label]
        if ranks.ratio:
            texts = f"× {number(1 / value, None)}", interval(1 / most, 1 / least, None)
        else:
            digits = ranks.column.digits
            texts = number(-value, digits), interval(-most, -least, digits)
        lines += [f"{texts[0]} ({texts[1]})", f"p {p:.2g}"]
    return "\n".join(lines)
