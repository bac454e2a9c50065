"""Pictures with titles: raw images beside their released forms, and a table's columns before and after."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import seaborn
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.pictures.strips import visible
from bench.statistics.correlations import correlations

DOTS = 150
LETTER = 0.075  # inches a letter of a title takes
ABREAST = 5
GREY = "#b8bec4"


@dataclass(frozen=True, eq=False)
class Strip:
    """A column of images.

    Args:
        title: What stands above it; lines are kept.
        images: (b, c, h, w), in any units.
        present: (b,) bool: False where there is no image, whatever `images` holds there.
    """

    title: str
    images: torch.Tensor
    present: torch.Tensor


@dataclass(frozen=True, eq=False)
class Rows:
    """A table (m, d) under a title."""

    title: str
    samples: torch.Tensor


def image_sheet(strips: Sequence[Strip], names: Sequence[str], heading: str) -> bytes:
    """A PNG with a column a strip and a row an image.

    Args:
        strips: The raw images first; as many images in each.
        names: One a row.
        heading: Above it all; "" for none.
    """
    raw = strips[0].images
    width = max(1.3, min(2.5, raw.shape[3] / 80), *(_letters(strip.title) for strip in strips))
    height = width * raw.shape[2] / raw.shape[3]
    left, top = 0.2 + max(map(_letters, names)), 0.15 + 0.15 * max(strip.title.count("\n") + 1 for strip in strips)
    top += 0.25 * bool(heading)
    size = (left + len(strips) * width + 0.05, top + len(names) * height + 0.05)
    figure = Figure(figsize=size, dpi=DOTS)
    figure.suptitle(heading, fontsize=8, y=1 - 0.06 / size[1], va="top")
    for column, strip in enumerate(strips):
        shown = visible(strip.images[strip.present]).permute(0, 2, 3, 1).cpu().numpy()
        place = iter(shown)
        for row, name in enumerate(names):
            corner = (left + column * width) / size[0], 1 - (top + (row + 1) * height) / size[1]
            axes = figure.add_axes((*corner, 0.96 * width / size[0], 0.96 * height / size[1]))
            axes.set_xticks([])
            axes.set_yticks([])
            if bool(strip.present[row]):
                axes.imshow(next(place), cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
            else:
                axes.text(0.5, 0.5, "not released", ha="center", va="center", fontsize=7)
            axes.spines[:].set_visible(False)
            if row == 0:
                axes.set_title(strip.title, fontsize=8, pad=3)
            if column == 0:
                axes.set_ylabel(name, fontsize=8, rotation=0, ha="right", va="center")
    return png(figure)


def findings_of(labels: Sequence[float], findings: Sequence[str]) -> list[str]:
    """What a row's labels say: its findings; "no finding" only where that is known of all; nothing where it is not.

    >>> findings_of([1, 0], ["a", "b"]), findings_of([0, 0], ["a", "b"]), findings_of([0, float("nan")], ["a", "b"])
    (['a'], ['no finding'], [])
    """
    found = [name for name, label in zip(findings, labels, strict=True) if label > 0.5]
    return found or (["no finding"] if labels and all(label == label for label in labels) else [])


def _letters(text: str) -> float:
    """Inches that the longest line takes."""
    return LETTER * max(map(len, text.splitlines()), default=0)


def table_sheet(original: Rows, releases: Sequence[Rows], columns: Sequence[str], heading: str) -> bytes:
    """A PNG with a histogram a column, original and released, above the correlation matrices of each.

    Args:
        original, releases: Tables of the same columns.
        columns: Their names.
        heading: Above it all; "" for none.
    """
    down = math.ceil(len(columns) / ABREAST)
    across = math.ceil((1 + len(releases)) / ABREAST)
    style: dict[Any, Any] = seaborn.axes_style("ticks")
    with matplotlib.rc_context(style | {"font.size": 7, "axes.titlesize": 8}):
        figure = Figure(figsize=(2 * ABREAST, 1.6 * down + 2.4 * across + 0.5), dpi=DOTS, layout="constrained")
        figure.suptitle(heading, fontsize=8)
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=(1.6 * down + 0.5, 2.4 * across))[:, 0]
        panels = upper.subplots(down, ABREAST, squeeze=False).flatten()
        palette = seaborn.color_palette("colorblind", len(releases))
        for number, axes in enumerate(panels):
            if number < len(columns):
                _histogram(axes, original, releases, number, palette)
                axes.set_title(columns[number])
            else:
                axes.set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        upper.legend(handles, labels, loc="outside upper center", ncols=ABREAST, frameon=False)
        for axes, rows in zip(
            lower.subplots(across, ABREAST, squeeze=False).flatten(),
            [original, *releases, *[None] * (across * ABREAST)],
            strict=False,
        ):
            if rows is None:
                axes.set_visible(False)
                continue
            image = axes.imshow(correlations(rows.samples.cpu()).numpy(), cmap="RdBu_r", vmin=-1, vmax=1)
            axes.set_title(rows.title, fontsize=7)
            axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=5)
            axes.set_yticks(range(len(columns)), columns, fontsize=5)
        lower.colorbar(image, ax=lower.axes, shrink=0.6, label="correlation")
        return png(figure)


def _histogram(axes: Axes, original: Rows, releases: Sequence[Rows], column: int, palette: Sequence[Any]) -> None:
    values = [rows.samples[:, column].double().cpu().numpy() for rows in (original, *releases)]
    low, high = np.quantile(np.concatenate(values), (0.005, 0.995))  # noise may have long tails
    ends = float(min(low, values[0].min())), float(max(high, values[0].max()))
    edges = np.histogram_bin_edges(values[0], bins=math.ceil(2 * len(values[0]) ** (1 / 3)), range=ends)  # Rice's rule
    axes.hist(values[0], bins=edges.tolist(), density=True, histtype="stepfilled", color=GREY, label=original.title)
    for rows, found, colour in zip(releases, values[1:], palette, strict=True):
        axes.hist(found, bins=edges.tolist(), density=True, histtype="step", color=colour, label=rows.title)
    axes.set_yticks([])
    seaborn.despine(ax=axes, left=True)


def png(figure: Figure) -> bytes:
    """The figure as a PNG; the same figure has the same bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None}, bbox_inches="tight")
    return stream.getvalue()
