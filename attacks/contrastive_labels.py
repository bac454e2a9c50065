"""Contrastive, with labels: the two towers also read raw and released labels.

Source: Yala et al., Syfer (2022), section 4.1: an "instance-level encoder acting on images and their labels"; Table 3
scores it against labels that are released raw and labels that the key encodes.

Differences from the paper: those of `contrastive`; the embedding of a row's label is added to the embedding of its
image. Batches hold equally many rows of every class (every distinct row of labels is a class), which schemes that
permute classes ask for, and which keeps the frequency of a released label from telling what it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from attacks.contrastive import Contrastive, ContrastiveAttacker, Draw, fit_towers, known_labels
from bench.seeds import drawn
from bench.types import NotApplicable, View


@dataclass(frozen=True)
class ContrastiveLabels(Contrastive):
    """Two towers, trained by contrast on simulated releases with their labels.

    Args: those of `Contrastive`; `batch` is rounded down to equally many rows of each class.
    """

    name: ClassVar[str] = "contrastive-labels"
    source: ClassVar[str] = "Yala et al. 2022 (Syfer), section 4.1 and Table 3"
    knowledge: ClassVar[str] = "the raw rows and the release, both with labels, and the scheme; no key"
    uses_labels: ClassVar[bool] = True

    def fit(self, view: View, seed: int) -> ContrastiveAttacker:
        """Train the towers on class-balanced batches.

        Raises:
            NotApplicable: As `Contrastive.fit`; if raw or released rows have no labels, or all raw rows the same.
            ValueError: For unknown labels (NaN).
        """
        labels = known_labels(view.candidates.labels, "the candidates")
        candidates = replace(view.candidates, labels=labels)
        return fit_towers(self, replace(view, candidates=candidates), seed, balanced_draw(labels, self.batch))


def balanced_draw(labels: torch.Tensor, batch: int) -> Draw:
    """A draw of at most `batch` rows, equally many of each class.

    Args:
        labels: (n, k) without NaN; rows with the same labels are of one class.
        batch: Upper bound on the rows drawn, if it is at least the number of classes.

    Raises:
        NotApplicable: With fewer than two classes.
    """
    kinds, classes = torch.unique(labels, dim=0, return_inverse=True)
    if len(kinds) < 2:
        raise NotApplicable(f"labels tell nothing: expected at least 2 classes among the candidates, got {len(kinds)}")
    members = [(classes == number).nonzero()[:, 0] for number in range(len(kinds))]
    each = max(1, min(batch // len(kinds), *map(len, members)))

    def draw(order: torch.Generator) -> torch.Tensor:
        picked = [rows[drawn(len(rows), order, each)] for rows in members]
        together = torch.cat(picked)
        return together[drawn(len(together), order)]

    return draw
