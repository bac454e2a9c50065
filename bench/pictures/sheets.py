"""Figures of releases: images beside released forms, table columns, t-SNE.

The t-SNE figure follows the CVAE paper, section 4.4 and figure 3. Differences: all sets are embedded together, on the
original set's scale, so that places mean the same in every panel; at most `MOST` rows of each are drawn. Copies of a
row, as k-Same releases them, count once and lie on one another.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
import seaborn
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from threadpoolctl import threadpool_limits

from bench.pictures.strips import visible
from bench.seeds import derive, generator
from bench.statistics.bootstrap import correlations
from bench.statistics.nearest_rows import standardise

DOTS = 150
LETTER = 0.075  # inches a letter of a title takes
ABREAST = 5
GREY = "#b8bec4"
MOST = 400
PERPLEXITY = 30.0
LETTERS = 32
"""As many stand above a panel."""
MARKS = "o^sDvPX"
"""One a class, beside its colour."""
OTHERS = "other or unknown"
"""In grey: classes beyond the marks, and rows without a known finding."""


@dataclass(frozen=True, eq=False)
class Strip:
    """A column of images.

    Args:
        title: What stands above it; lines are kept.
        images: (b, c, h, w), in any units.
        present: (b,) bool: False if there is no image, whatever `images` holds there.
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
    """Findings of a row; "no finding" only if all are known.

    >>> findings_of([1, 0], ["a", "b"]), findings_of([0, 0], ["a", "b"]), findings_of([0, float("nan")], ["a", "b"])
    (['a'], ['no finding'], [])
    """
    names = [name for name, label in zip(findings, labels, strict=True) if label > 0.5]
    return names or (["no finding"] if labels and all(label == label for label in labels) else [])


def _letters(text: str) -> float:
    """Inches that the longest line takes."""
    return LETTER * max(map(len, text.splitlines()), default=0)


def table_sheet(original: Rows, releases: Sequence[Rows], columns: Sequence[str], heading: str) -> bytes:
    """A PNG with a histogram a column above the correlation matrices.

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
    for rows, values_of, colour in zip(releases, values[1:], palette, strict=True):
        axes.hist(values_of, bins=edges.tolist(), density=True, histtype="step", color=colour, label=rows.title)
    axes.set_yticks([])
    seaborn.despine(ax=axes, left=True)


def png(figure: Figure) -> bytes:
    """The figure as a PNG; the same figure has the same bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None}, bbox_inches="tight")
    return stream.getvalue()


@dataclass(frozen=True, eq=False)
class Cloud:
    """Vectors (n, d) with labels (n, k), or None, under a title."""

    title: str
    vectors: torch.Tensor
    labels: torch.Tensor | None


def scatter_sheet(
    original: Cloud, releases: Sequence[Cloud], findings: Sequence[str], heading: str, *, seed: int
) -> bytes:
    """A PNG with a panel a set.

    Args:
        original, releases: Sets in one space.
        findings: The k names of the labels.
        heading: Above it all; "" for none.
        seed: For the rows drawn and the embedding.

    Raises:
        NotApplicable: The sets do not live in one space.
    """
    clouds = [_drawn(cloud, derive(seed, "rows")) for cloud in (original, *releases)]
    places = embed([cloud.vectors for cloud in clouds], derive(seed, "t-sne"))
    kinds = [_kinds(cloud, findings) for cloud in clouds]
    counts = Counter(name for kind in kinds for name in kind if name != OTHERS)
    shown = [name for name, _ in counts.most_common(len(MARKS))]
    palette = dict(zip(shown, zip(MARKS, seaborn.color_palette("colorblind"), strict=False), strict=False))
    across = min(len(clouds), ABREAST)
    down = math.ceil(len(clouds) / across)
    style: dict[Any, Any] = seaborn.axes_style("ticks")
    with matplotlib.rc_context(style | {"font.size": 7}):
        figure = Figure(figsize=(2.4 * across, 2.6 * down + 0.4), dpi=DOTS, layout="constrained")
        figure.suptitle(heading, fontsize=8)
        panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).flatten()
        for axes in panels[len(clouds) :]:
            axes.set_visible(False)
        handles: dict[str, Line2D] = {}
        for axes, cloud, place, kind in zip(panels, clouds, places, kinds, strict=False):
            axes.set_title("\n".join(fill(line, LETTERS) for line in cloud.title.splitlines()), fontsize=8)
            axes.set_xticks([])
            axes.set_yticks([])
            for name in [OTHERS, *shown]:  # rare classes above frequent ones
                rows = [row for row, own in enumerate(kind) if (own if own in palette else OTHERS) == name]
                mark, colour = palette.get(name, ("o", GREY))
                drawn = axes.plot(*place[rows].T, mark, color=colour, ms=4, mew=0.3, mec="white", alpha=0.8, label=name)
                if rows:
                    handles.setdefault(name, drawn[0])
        figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=2 * across, frameon=False)
        return png(figure)


def embed(sets: Sequence[torch.Tensor], seed: int) -> list[np.ndarray]:
    """Joint t-SNE (n, 2) of sets (n, d), scaled by the first."""
    from sklearn.manifold import TSNE  # takes seconds to import: only if vectors are drawn

    pooled = torch.cat([standardise(sets[0], vectors)[1] for vectors in sets]).numpy()
    # Copies push one another, and what lies near them, apart: each place is taken once.
    rows, place = np.unique(pooled, axis=0, return_inverse=True)
    start = "pca" if rows.shape[1] > 1 else "random"
    tsne = TSNE(perplexity=min(PERPLEXITY, (len(rows) - 1) / 3), init=start, random_state=seed % 2**32)
    with threadpool_limits(1):  # sums by several threads differ in their last bits, from which t-SNE wanders off
        places = tsne.fit_transform(rows) if len(rows) > 1 else np.zeros((1, 2))
    return np.split(places[place], np.cumsum([len(vectors) for vectors in sets])[:-1])


def _drawn(cloud: Cloud, seed: int) -> Cloud:
    rows = torch.randperm(len(cloud.vectors), generator=generator(seed))[:MOST]
    return Cloud(cloud.title, cloud.vectors.cpu()[rows], None if cloud.labels is None else cloud.labels.cpu()[rows])


def _kinds(cloud: Cloud, findings: Sequence[str]) -> list[str]:
    """Each row's label in words."""
    if cloud.labels is None:
        return [OTHERS] * len(cloud.vectors)
    return [" + ".join(findings_of(row, findings)) or OTHERS for row in cloud.labels.tolist()]
