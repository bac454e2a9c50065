"""Eve, the attacker, releases some candidates under her own key."""

from __future__ import annotations

import torch

from bench.eve.some_released import some_released
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, View


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
    if release.links is None or not len(release.links):
        raise NotApplicable(f"{attack} learns from links: no raw row stands in a row of this release")
    links = release.links if release.primary is None else release.links[release.primary]
    labels = None if release.labels is None else release.labels[links[:, 1]]
    return taken.take(links[:, 0]), Release(release.samples[links[:, 1]], labels, None)
