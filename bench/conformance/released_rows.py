"""Checks of what a method releases: links, labels, order and queries."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch

from bench.conformance.cause import blaming
from bench.conformance.fitted import Fits, Setting
from bench.conformance.outcome import Skip, require
from bench.contract.seal import seal
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Release


def links_follow_rows(fits: Fits) -> None:
    """Links name pairs of rows once, stay with their rows when those are shuffled, and name the row that changed."""
    setting = fits()
    release = fits.release(setting)
    if release.links is None:
        raise Skip("it releases rows without a raw original")
    with blaming(type(fits.key(setting)).release):
        _links_hold(setting, release, release.links)


def _links_hold(setting: Setting, release: Release, stated: torch.Tensor) -> None:
    require(len(torch.unique(stated, dim=0)) == len(stated), "links repeat a pair")
    sealed = seal(release, Secret.of_seed(5))
    links = cast(torch.Tensor, sealed.links)
    raw = release.samples[stated[:, 1]]
    require(torch.equal(sealed.release.samples[links[:, 1]], raw), "links no longer fit after shuffling")
    _links_name_the_row_that_changed(setting)
    if release.labels is not None and release.labels.shape == cast(torch.Tensor, setting.private.labels).shape:
        require(bool(release.labels.isfinite().all()), "labels that were known became unknown")


def _links_name_the_row_that_changed(setting: Setting) -> None:
    """Change one raw row: where a single released row follows, it must be linked to it. (Fresh noise moves all.)"""
    row, key = 7, setting.scheme.sample_key(Secret.of_seed(1))
    samples = setting.private.samples.clone()
    samples[row] = 1 - samples[row]
    before, after = (key.release(data) for data in (setting.private, replace(setting.private, samples=samples)))
    links = cast(torch.Tensor, before.links)
    if after.samples.shape != before.samples.shape:
        return
    moved = (after.samples != before.samples).flatten(1).any(dim=1).nonzero().flatten()
    linked = links[links[:, 0] == row, 1]
    require(
        len(moved) != 1 or bool(torch.isin(moved, linked).all()), f"row {row} changed, and a row not linked to it moved"
    )


def labels_stay_out_of_samples(fits: Fits) -> None:
    """Released samples stay the same with other labels, unless the method declares that they depend on them."""
    setting = fits()
    if setting.method.uses_labels or setting.method.needs_labels:
        raise Skip("it declares that samples depend on labels")
    key = setting.scheme.sample_key(Secret.of_seed(1))
    flipped = replace(setting.private, labels=1 - cast(torch.Tensor, setting.private.labels))
    with blaming(type(key).release):
        same = torch.equal(key.release(setting.private).samples, key.release(flipped).samples)
        said = "released samples change with the labels, but the method declares neither uses_labels nor needs_labels"
        require(same, said)


def rows_do_not_see_their_place(fits: Fits) -> None:
    """Equal rows are released alike, wherever they stand."""
    setting = fits()
    same = replace(setting.private, samples=setting.private.samples[:1].expand_as(setting.private.samples).clone())
    release = setting.scheme.sample_key(Secret.of_seed(1)).release(same)
    first, last = (release.samples[index].flatten() for index in (0, -1))
    if torch.equal(first, last):
        return
    # Fresh noise on equal rows: then the place must not show in the level. Means of d independent numbers.
    spread = release.samples.flatten(1).std(dim=1).amax() / first.numel() ** 0.5
    drift = torch.corrcoef(
        torch.stack(
            (torch.arange(len(release), dtype=torch.float64), release.samples.flatten(1).mean(dim=1).cpu().double())
        )
    )[0, 1]
    # |r| sqrt(n) is about normal where level and place are unrelated: 4.5 deviations are 7 in a million.
    with blaming(type(fits.key(setting)).release):
        unrelated = bool(drift.abs() * len(release) ** 0.5 < 4.5) or not bool(spread > 0)
        require(unrelated, "row level drifts with the place")


def queries_look_like_releases(fits: Fits) -> None:
    """New rows come out in the shape of released ones, and scores keep theirs."""
    setting = fits()
    key = setting.scheme.sample_key(Secret.of_seed(1))
    shape = (5, *key.release(setting.private).samples.shape[1:])
    with blaming(type(key).query):
        query = key.query(setting.private.samples[:5])
        said = f"query must give rows like the release, {shape}, got {tuple(query.shape)}"
        require(tuple(query.shape) == shape, said)
        require(bool(query.isfinite().all()), "query gave numbers that are not finite")
        require(not query.requires_grad, "rows from query carry gradients: detach them")
    scores = torch.rand(5, 2, generator=generator(0)).to(fits.device)
    with blaming(type(key).decode):
        require(key.decode(scores).shape == scores.shape, "decode must keep the shape of the scores")
