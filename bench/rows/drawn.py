"""A release together with what else its generator gives."""

from __future__ import annotations

import torch

from bench.seeds import derive
from bench.types import Release


def drawn(sealed: Release, draws: int, seed: int) -> Release:
    """The release and `draws` times as many rows from its generator, as one; the release alone where it has none."""
    if sealed.generator is None or not draws:
        return sealed
    more = sealed.generator.sample(draws * len(sealed), derive(seed, "draws"))
    labels = None
    if sealed.labels is not None and more.labels is not None:
        labels = torch.cat((sealed.labels, more.labels))
    return Release(torch.cat((sealed.samples, more.samples)), labels, None)
