"""Rows and releases that Eve, the attacker, makes herself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from bench.randomness import Secret
from bench.rows.grouping import label_classes
from bench.rows.row_sets import in_columns, joined
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, Scheme, View


def own_rows(view: View) -> Dataset:
    """Control rows, and public rows of the same collection, without subjects.

    Public labels come with the columns of the control rows; if public rows lack those columns, they stay out.
    If the control rows have no labels, public rows come without theirs.
    """
    control, public = replace(view.control, subjects=None), view.public
    kind = (public.name, public.samples.shape[1:], public.exclusive)
    if kind != (control.name, control.samples.shape[1:], control.exclusive):
        return control
    alike = in_columns(public, control)
    return control if alike is None else joined(control, alike)


def some_released(
    scheme: Scheme, candidates: Dataset, chosen: torch.Tensor, seed: int, *names: str | int
) -> tuple[Dataset, Release]:
    """The rows and their release, doubled until the method accepts so few.

    A method that groups rows (k-same, by class) may refuse a part of what it releases as a whole. That is no reason
    why an attack on the whole should not apply.

    Args:
        scheme: The scheme; a key of it is drawn.
        candidates: All rows that there are (n).
        chosen: (m,) int64, distinct, on their device: the rows to begin with. Others follow at random.
        seed, names: They draw the key and the rows that follow.

    Raises:
        NotApplicable: The method does not release all candidates either.
    """
    key = scheme.sample_key(Secret.of_seed(seed, *names))
    while True:
        rows = candidates.take(chosen)
        try:
            return rows, key.release(rows)
        except NotApplicable:
            if len(chosen) == len(candidates):
                raise
        left = torch.ones(len(candidates), dtype=torch.bool, device=chosen.device)
        left[chosen] = False
        others = left.nonzero()[:, 0]
        order = torch.randperm(len(others), generator=generator(derive(seed, *names, "others"))).to(others.device)
        chosen = torch.cat((chosen, others[order[: len(chosen)]]))


def true_links(release: Release, purpose: str, *, main: bool = True) -> torch.Tensor:
    """Links (p, 2) of a release that Eve made.

    Of mixed rows the main ones, unless `main` is False.
    Raises NotApplicable, with the purpose, if no raw row stands in a released row.
    """
    if release.links is None or not len(release.links):
        raise NotApplicable(f"{purpose}: no raw row stands in a row of this release")
    return release.links[release.primary] if main and release.primary is not None else release.links


def own_release(view: View, rows: int, seed: int, attack: str) -> tuple[Dataset, Release]:
    """Raw rows, and beside each the released row made mainly of it.

    Args:
        view: Eve's view.
        rows: Candidates at most, drawn at random; more if the method does not release so few.
        seed: Draws the candidates and the key.
        attack: Its name, for the message.

    Raises:
        NotApplicable: No raw row stands in a row of this release.
    """
    candidates = view.candidates
    chosen = torch.randperm(len(candidates), generator=generator(derive(seed, "rows")))[:rows]
    taken, release = some_released(view.scheme, candidates, chosen.to(candidates.samples.device), seed, "key")
    links = true_links(release, f"{attack} learns from links")
    labels = None if release.labels is None else release.labels[links[:, 1]]
    return taken.take(links[:, 0]), Release(release.samples[links[:, 1]], labels, None)


def own_releases(view: View, rows: int, seed: int, attack: str) -> tuple[Dataset, Release]:
    """Eve's own released rows, and beside each that of another release.

    Both were made of one raw row.

    Args:
        view: Eve's view of two releases.
        rows: Raw rows at most, drawn at random; more if the method does not release so few.
        seed: Draws the rows and both keys.
        attack: Its name, for the message.

    Raises:
        NotApplicable: No raw row stands in a row of both releases.
    """
    mine = own_rows(view)
    chosen = torch.randperm(len(mine), generator=generator(derive(seed, "rows")))[:rows]
    taken, first = some_released(view.earlier, mine, chosen.to(mine.samples.device), seed, "earlier key")
    second = view.scheme.sample_key(Secret.of_seed(seed, "key")).release(taken)
    before, after = (true_links(release, f"{attack} learns from links") for release in (first, second))
    place = torch.full((len(taken),), -1, device=before.device)
    place[before[:, 0]] = before[:, 1]
    after = after[place[after[:, 0]] >= 0]
    if not len(after):
        raise NotApplicable(f"{attack} learns from links: no raw row stands in a row of both releases")
    earlier = replace(taken, samples=first.samples, labels=None, subjects=None)
    return earlier.take(place[after[:, 0]]), Release(second.samples[after[:, 1]], None, None)


def shadow_releases(scheme: Scheme, pool: Dataset, count: int, seed: int) -> Iterator[tuple[torch.Tensor, Release]]:
    """`count` (even) releases under keys of their own, and memberships (n,) bool.

    Halves come in pairs that share no row, so that every row is in exactly half of the releases; classes (rows with the
    same labels, withheld labels included) are halved one by one, so that all halves have the pool's proportions.

    Raises:
        NotApplicable: The scheme cannot release a half (a class of too few rows).
        ValueError: An odd count, or a pool of fewer than two rows.
    """
    if count < 2 or count % 2:
        raise ValueError(f"halves come in pairs: count must be even and at least 2, got {count}")
    if len(pool) < 2:
        raise ValueError(f"a pool needs at least 2 rows to be halved, got {len(pool)}")
    pool = replace(pool, subjects=None)
    classes, _ = label_classes(pool.labels, len(pool))
    for number in range(0, count, 2):
        order = torch.randperm(len(pool), generator=generator(derive(seed, "half", number)))
        dealt = order[classes.cpu()[order].argsort(stable=True)]
        for side in (0, 1):
            rows = dealt[side::2].sort().values
            key = scheme.sample_key(Secret.of_seed(seed, "key", number + side))
            inside = torch.zeros(len(pool), dtype=torch.bool)
            inside[rows] = True
            try:
                release = key.release(pool.take(rows.to(pool.samples.device)))
            except NotApplicable as reason:
                raise NotApplicable(f"half of Eve's {len(pool)} rows cannot be released: {reason}") from reason
            yield inside, release
