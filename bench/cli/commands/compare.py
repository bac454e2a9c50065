"""`bench compare`: two methods by figure, or all by rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated

from rich.table import Table

from bench.api import boards, running
from bench.api.boards import Comparison
from bench.cli.parameters import RESULTS, ResultsFolder, completer, switch
from bench.cli.terminal import to_stdout
from bench.statistics.confidence_intervals import UNLIKELY
from leaderboard.comparison import Compared, Ranked
from leaderboard.entries import interval, number, short
from leaderboard.one_scale import Bar, Scale

WIDTH = 10
GAINS = (
    "What an attacker gains over the best guess without the release: 0 is that guess, 1 is certainty. Twice the area "
    "under the ROC curve less 1; of likeness what is gained beyond the mean image."
)
RANKED = (
    "{} pairs of methods on the same people, key by key, corrected by Holm: all rank intervals hold together with 95 % "
    "confidence. That each method's strongest attack was chosen on the same data is not corrected for."
)
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
) -> int:  # fmt: skip
    """Print a table a data set; 1 if nothing could be compared."""
    comparisons, scales = boards.compare_and_scale(running.open_place(results).results, method, metric, attack)
    for comparison in comparisons:
        for ranks in comparison.ranks:
            to_stdout().print(_ranks(comparison, ranks))
            _print_left_out(ranks.left_out.items())
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


def _ranks(one: Comparison, ranks: Ranked) -> Table:
    table = Table(
        title=f"{ranks.column.title} {ranks.column.arrow}: {_title(one)}", title_justify="left",
        caption=RANKED.format(len(ranks.pairs)), caption_justify="left",
    )  # fmt: skip
    for name in ("method", "figure", "rank", "no difference shown from"):
        table.add_column(name, justify="right" if name in ("figure", "rank") else "left", overflow="fold")
    for label, value in ranks.values.items():
        low, high = ranks.ranks[label]
        alike = [b if a == label else a for (a, b), p in ranks.pairs.items() if label in (a, b) and p >= UNLIKELY]
        rank = str(low) if low == high else f"{low} – {high}, not told apart"
        table.add_row(label, number(value, ranks.column.digits), rank, ", ".join(alike))
    return table
