"""`bench table` and `bench plot`: tables and charts of records, for papers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from bench.api import figures, running
from bench.api.figures import Chart, Curve, Drawing, Selection
from bench.cli.parameters import RESULTS, WHERE, ResultsFolder, completer, read, switch
from bench.cli.terminal import waiting
from bench.disk.atomic_file import write_atomically
from bench.plugins.spec import UsageError
from bench.wire.text import shown

if TYPE_CHECKING:
    from bench.pictures.charts import Form as ChartForm

ENDINGS = (".pdf", ".svg", ".png")
Rows = Annotated[
    tuple[str, ...],
    switch("rows, as 'dp-simple[scale=20]'; a name alone takes all rows of a method (default: all rows)",
           name=("--rows", "--row"), metavar="SPEC...", consume_multiple=True, completer=completer("methods")),
]  # fmt: skip
DataSet = Annotated[
    str | None, switch("only this data set (default: all)", metavar="NAME", completer=completer("datasets"))
]
PresetName = Annotated[str | None, switch("only rows of this preset (default: all)", metavar="NAME")]
Seed = Annotated[int | None, read(int, "only rows of this seed (default: all)", metavar="N")]
Out = Annotated[
    Path | None, switch("a file; one that is there is replaced (default: standard output)", metavar="FILE", group=WHERE)
]


def table(
    *,
    rows: Rows = (),
    metrics: Annotated[
        tuple[str, ...],
        switch("metrics, in the order of the columns (default: those that the rows have)",
               name=("--metrics", "--metric"), metavar="NAME...", consume_multiple=True,
               completer=completer("metrics")),
    ] = (),
    dataset: DataSet = None,
    preset: PresetName = None,
    seed: Seed = None,
    form: Annotated[
        Literal["markdown", "latex", "csv", "typst"],
        switch("for LaTeX with the package booktabs, for Typst, or as tidy CSV", name="--format", show_default=True),
    ] = "markdown",
    results: ResultsFolder = RESULTS,
    out: Out = None,
) -> int:  # fmt: skip
    """Print or write a table a data set, preset and seed."""
    selection = Selection(rows=rows, dataset=dataset, preset=preset, seed=seed)
    with waiting("read the records"):
        text, hints = figures.table(running.open_place(results).results, selection, metrics, form)
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text.encode(), mode=0o644)
        print(shown(out))
    for hint in hints:
        print(hint, file=sys.stderr)
    return 0


def plot(
    kind: Annotated[
        Chart,
        switch("trade-off (two figures), ladder (the reach of attacks), curve (learning or ROC), person-risk, or "
               "matrix (methods by attacks)"),
    ],
    /,
    *,
    rows: Rows = (),
    dataset: DataSet = None,
    preset: PresetName = None,
    seed: Seed = None,
    x: Annotated[
        str, switch("metric along a trade-off", metavar="NAME", show_default=True, completer=completer("metrics"))
    ] = "reid-auc",
    y: Annotated[
        str, switch("metric up a trade-off", metavar="NAME", show_default=True, completer=completer("metrics"))
    ] = "utility-auc",
    metric: Annotated[
        str, switch("figure of a matrix", metavar="NAME", show_default=True, completer=completer("metrics"))
    ] = "reid-auc",
    attack: Annotated[
        tuple[str, ...],
        switch("only this attack (repeatable; default: all)", metavar="NAME", completer=completer("attacks")),
    ] = (),
    of: Annotated[
        Curve | None, switch("the curve of learning, or the ROC curve (default: the first that the records hold)")
    ] = None,
    width: Annotated[
        Literal["column", "page"], switch("as wide as a column (85 mm) or a page (178 mm)", show_default=True)
    ] = "column",
    results: ResultsFolder = RESULTS,
    out: Annotated[Path, switch("a .pdf, .svg or .png; one that is there is replaced", metavar="FILE", group=WHERE)],
) -> int:  # fmt: skip
    """Write a chart of records."""
    if out.suffix not in ENDINGS:
        raise UsageError(f"--out must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, got {out.name!r}")
    drawing = Drawing(
        x=x, y=y, metric=metric, attacks=attack, of=of, width=width, form=cast("ChartForm", out.suffix[1:])
    )
    selection = Selection(rows=rows, dataset=dataset, preset=preset, seed=seed)
    with waiting("read the records"):
        drawn = figures.plot(kind, running.open_place(results).results, selection, drawing)
    write_atomically(out, drawn, mode=0o644)
    print(shown(out))
    return 0
