"""The verifier on raw images of 224 pixels, by backbone, in folds by patient.

    python tests/campaigns/verifier_at_224.py DATA_ROOT [--backbone NAME ...] [--limit IMAGES] [--folder CACHE]

Features of each image and of two augmented copies are read once, on a GPU where there is one, and kept in CACHE. Heads
are learned on the people of all folds but one, and score that one: each person with several images gives one to Eve, at
random, and the others are released as they are. Printed for each backbone: AUC over pairs of people, and how often the
first choice is right, before and after learning, with 95 % intervals over people (bootstrap of people, all folds).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from bench.backbones.packages import LAST, PACKAGES
from bench.data.sets.nih import NIH
from bench.eve.readings import augmented
from bench.eve.verifier import FOLDS, Axes, Course, Pairs, Parts, folds_of, principal_axes, train_heads
from bench.eve.verifier_lessons import VIEWS
from bench.nets.linear_heads import Heads, mean_heads
from bench.seeds import derive, generator

BOTH = "both"
PARTS = 5
DRAWS = 500
Grid = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Figure = tuple[float, float, float]
COURSE = Course(steps=600, least=60, rows=256, learning_rate=1e-3)


def images_of(paths: list[Path], size: int) -> torch.Tensor:
    """Grey images (n, 1, size, size) in [0, 1]."""
    arrays = [
        np.asarray(Image.open(path).convert("L").resize((size, size), Image.Resampling.BILINEAR)) for path in paths
    ]
    return torch.from_numpy(np.stack(arrays)).float()[:, None] / 255


def features(images: torch.Tensor, backbone: str, size: int) -> Parts:
    """Features of images in parts."""
    if backbone == "pixels":
        return (torch.nn.functional.adaptive_avg_pool2d(images, 32).flatten(1),)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = PACKAGES[backbone].network(side=size, batch=32, maps=True)
    found = torch.cat([network.read(part.to(device)).cpu() for part in images.split(256)])
    return found[:, :LAST], found[:, LAST:]


def views_of(images: torch.Tensor, backbone: str, size: int, folder: Path | None) -> list[Parts]:
    """Features of the images and of their augmented copies, from the folder or fresh; of both networks, joined."""
    views: list[Parts] = []
    if backbone == BOTH:
        each = [views_of(images, name, size, folder) for name in PACKAGES]
        return [tuple(part for parts in of_view for part in parts) for of_view in zip(*each, strict=True)]
    for view in range(VIEWS):
        kept = None if folder is None else folder / f"{backbone}-{size}-{len(images)}-{view}.pt"
        if kept is not None and kept.is_file():
            views.append(tuple(torch.load(kept, weights_only=True)))
            continue
        rows = images if not view else augmented(images, derive(0, "view", view))
        views.append(features(rows, backbone, size))
        if kept is not None:
            torch.save(list(views[-1]), kept)
    return views


def learned(views: list[Parts], people: torch.Tensor, inside: torch.Tensor) -> tuple[Axes, Heads]:
    """Axes of all images, and heads learned on those `inside` (n,) bool."""
    axes = principal_axes([views[0]])
    raw = [axes(view)[inside] for view in views]
    own = torch.unique(people[inside], return_inverse=True)[1]
    plain = [Pairs(raw[0], each, torch.arange(len(own))) for each in raw]
    start = [Heads(raw[0].shape[1], tied=True)] * FOLDS
    run = train_heads(
        start, plain, plain[:1], own, folds=folds_of(own, 0), own=False, course=COURSE, seed=0, part="raw"
    )
    return axes, mean_heads(run.heads)


def scores_of(rows: torch.Tensor, heads: Heads | None, held: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Cosines of held and released images, each side centred by itself."""
    a, b = rows[held] - rows[held].mean(dim=0), rows[others] - rows[others].mean(dim=0)
    heads = heads or Heads(rows.shape[1], tied=True)
    with torch.no_grad():
        a, b = heads(a, b)
    return a @ b.T


def judged(
    grids: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], draws: int
) -> list[tuple[float, float, float]]:
    """AUC and top-1, each with its interval over people: grids of scores, and people of both sides."""

    def figures(weights: list[torch.Tensor]) -> tuple[float, float]:
        areas, right, pairs, rows = 0.0, 0.0, 0.0, 0.0
        for (scores, held, others), of_held in zip(grids, weights, strict=True):
            same = held[:, None] == others[None]
            of_other = (same.float() * of_held[:, None]).sum(dim=0)
            weight = of_held[:, None] * of_other[None]
            order = scores.flatten().argsort()
            true, wrong = (same * of_held[:, None]).flatten()[order], (~same * weight).flatten()[order]
            areas += float((true * (wrong.cumsum(0) - wrong / 2)).sum() / wrong.sum())
            pairs += float(true.sum())
            hits = same.gather(0, scores.argmax(dim=0)[None])[0]
            right, rows = right + float((hits * of_other).sum()), rows + float(of_other.sum())
        return areas / pairs, right / rows

    random = generator(1)
    found = figures([torch.ones(len(held)) for _, held, _ in grids])
    drawn = torch.tensor([
        figures([torch.bincount(torch.randint(len(held), (len(held),), generator=random), minlength=len(held)).float()
                 for _, held, _ in grids]) for _ in range(draws)
    ])  # fmt: skip
    low, high = drawn.quantile(torch.tensor([0.025, 0.975]), dim=0)
    return [(found[place], float(low[place]), float(high[place])) for place in range(2)]


def measure(
    images: torch.Tensor, people: torch.Tensor, backbone: str, size: int, folder: Path | None
) -> dict[str, list[Figure]]:
    """Figures before and after learning; a fold is scored by heads that never saw its people."""
    views = views_of(images, backbone, size, folder)
    count = int(people.max()) + 1
    fold = torch.randperm(count, generator=generator(0)) % PARTS
    several = torch.bincount(people) > 1
    grids: dict[str, list[Grid]] = {"untrained": [], "trained": []}
    for number in range(PARTS):
        axes, heads = learned(views, people, fold[people] != number)
        rows = (several[people] & (fold[people] == number)).nonzero()[:, 0]
        rows = rows[torch.randperm(len(rows), generator=generator(number))]
        first = torch.tensor([int((people[rows] == people[row]).nonzero()[0, 0]) for row in rows])
        chosen = first == torch.arange(len(rows))
        held, others = rows[chosen], rows[~chosen]
        coordinates = axes(views[0])
        for name, of_name in (("untrained", None), ("trained", heads)):
            grids[name].append((scores_of(coordinates, of_name, held, others), people[held], people[others]))
    return {name: judged(each, DRAWS) for name, each in grids.items()}


def main(words: list[str] | None = None) -> None:
    """Measure each backbone and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--backbone", nargs="+", default=["pixels", *PACKAGES, BOTH])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args(words)
    scan = NIH().scan([chosen.root], None)
    names = sorted(set(scan.subjects))
    people = torch.tensor([names.index(name) for name in scan.subjects])
    order = people.argsort(stable=True)[: chosen.limit]
    people = torch.unique(people[order], return_inverse=True)[1]
    images = images_of([scan.paths[row] for row in order.tolist()], chosen.size)
    for backbone in chosen.backbone:
        for name, figures in measure(images, people, backbone, chosen.size, chosen.folder).items():
            told = ", ".join(f"{what} {value:.3f} ({low:.3f} to {high:.3f})"
                             for what, (value, low, high) in zip(("AUC", "top-1"), figures, strict=True))  # fmt: skip
            print(f"{backbone}, {name}: {told}", flush=True)


if __name__ == "__main__":
    main()
