"""A release together with what else its generator gives."""

from __future__ import annotations

import torch

from bench.seeds import derive
from bench.types import Release


def drawn(sealed: Release, draws: int, seed: int) -> Release:
    """The release with `draws` times as many rows from its generator added, if it has a generator."""
    if sealed.generator is None or not draws:
        return sealed
    more = sealed.generator.sample(draws * len(sealed), derive(seed, "draws"))
    labels = None
    if sealed.labels is not None and more.labels is not None:
        labels = torch.cat((sealed.labels, more.labels))
    return Release(torch.cat((sealed.samples, more.samples)), labels, None)
