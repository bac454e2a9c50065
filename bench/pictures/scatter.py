"""A t-SNE picture: original and released vectors in one embedding, a panel a set, coloured by class.

Source: CVAE paper, section 4.4 and figure 3.

Differences: all sets are embedded together, on the original set's scale, so that a place means the same in every panel;
at most `MOST` rows of each are drawn. Copies of a row, as k-Same releases them, count once and lie on one another.
"""

from __future__ import annotations

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
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from threadpoolctl import threadpool_limits

from bench.pictures.sheets import ABREAST, DOTS, GREY, findings_of, png
from bench.seeds import derive, generator
from bench.statistics.distances import standardise

MOST = 400
PERPLEXITY = 30.0
LETTERS = 32
"""As many stand above a panel."""
MARKS = "o^sDvPX"
"""One a class, beside its colour."""
OTHERS = "other or unknown"
"""In grey: what has no mark left, and rows of which no finding is known."""


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
    """Places (n, 2) of the rows of each set (n, d) in a joint t-SNE; the first set gives the scale of the columns."""
    from sklearn.manifold import TSNE  # takes seconds to import: only where vectors are drawn

    pooled = torch.cat([standardise(sets[0], each)[1] for each in sets]).numpy()
    # Copies push one another, and what lies near them, apart: each place is taken once.
    rows, place = np.unique(pooled, axis=0, return_inverse=True)
    start = "pca" if rows.shape[1] > 1 else "random"
    tsne = TSNE(perplexity=min(PERPLEXITY, (len(rows) - 1) / 3), init=start, random_state=seed % 2**32)
    with threadpool_limits(1):  # sums by several threads differ in their last bits, from which t-SNE wanders off
        places = tsne.fit_transform(rows) if len(rows) > 1 else np.zeros((1, 2))
    return np.split(places[place], np.cumsum([len(each) for each in sets])[:-1])


def _drawn(cloud: Cloud, seed: int) -> Cloud:
    rows = torch.randperm(len(cloud.vectors), generator=generator(seed))[:MOST]
    return Cloud(cloud.title, cloud.vectors.cpu()[rows], None if cloud.labels is None else cloud.labels.cpu()[rows])


def _kinds(cloud: Cloud, findings: Sequence[str]) -> list[str]:
    """Each row's label in words."""
    if cloud.labels is None:
        return [OTHERS] * len(cloud.vectors)
    return [" + ".join(findings_of(row, findings)) or OTHERS for row in cloud.labels.tolist()]
