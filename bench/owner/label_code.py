"""Labels under a secret permutation of their identities.

A finding's yes and no may be swapped; exclusive classes change places. Source: Yala et al., Syfer (2022), section 4.2:
"Alice chooses the label encoding by randomly sampling a permutation of the label identities". Data must be
class-balanced (footnote 2): otherwise counting the codes reveals the classes. A finding has two identities, so its
permutation is a flip or nothing; findings are coded independently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from bench.randomness import Secret
from bench.types import Dataset, NotApplicable

Unbalanced = Literal["error", "withhold"]


@dataclass(frozen=True)
class LabelCode:
    """One permutation of label identities.

    Args:
        secret: Decides which permutation.
        exclusive: Exclusive classes are permuted; other findings are flipped, each by itself.
        unbalanced: If classes are not equally frequent: "error" refuses, "withhold" makes random surplus labels NaN.
    """

    secret: Secret
    exclusive: bool
    unbalanced: Unbalanced

    def encode(self, data: Dataset) -> torch.Tensor | None:
        """The labels of `data` (n, k) in code; None for None.

        They are 0, 1 or NaN as before.

        Raises:
            NotApplicable: Labels that are not 0, 1 or NaN; another kind of labels than `exclusive` says; classes that
                occur, but not equally often, if that is an error.
        """
        labels = data.labels
        if labels is None:
            return None
        if data.exclusive != self.exclusive:
            kinds = "exclusive classes", "findings that may come together"
            expected, got = kinds if self.exclusive else kinds[::-1]
            raise NotApplicable(
                f"this label code was made for {expected}, as the public data have them; {data.name} has {got}: choose "
                f"public data of its kind, or release raw labels"
            )
        if not bool(((labels == 0) | (labels == 1) | labels.isnan()).all()):
            raise NotApplicable(
                f"a label code permutes classes: expected labels 0, 1 or NaN, got mixed ones in {data.name}"
            )
        labels = self._balanced(labels, data.findings)
        if self.exclusive:
            return labels[:, self._places(labels.shape[1]).to(labels.device)]
        return torch.where(self._flips(labels.shape[1]).to(labels.device), 1 - labels, labels)

    def decode(self, scores: torch.Tensor) -> torch.Tensor:
        """Predictions (n, k) in [0, 1] of real labels, from coded ones."""
        if self.exclusive:
            return scores[:, self._places(scores.shape[1]).argsort().to(scores.device)]
        return torch.where(self._flips(scores.shape[1]).to(scores.device), 1 - scores, scores)

    def _places(self, classes: int) -> torch.Tensor:
        """(k,) int64: the class in each column of the coded labels."""
        return self.secret.stream("classes", classes).permutation(classes)

    def _flips(self, findings: int) -> torch.Tensor:
        """(k,) bool: the findings whose yes and no are swapped."""
        return self.secret.stream("flips").integers(2, findings) == 1

    def _balanced(self, labels: torch.Tensor, findings: tuple[str, ...]) -> torch.Tensor:
        """Labels (n, k) with equally frequent classes; the surplus is NaN."""
        if self.exclusive:
            classes = {name: labels[:, k] == 1 for k, name in enumerate(findings)}
            surplus = self._surplus("the classes", classes)
            return torch.where(surplus[:, None], torch.nan, labels)
        for k, name in enumerate(findings):
            surplus = self._surplus(f"finding {name!r}", {"yes": labels[:, k] == 1, "no": labels[:, k] == 0})
            labels = labels.index_put((surplus.nonzero()[:, 0], torch.tensor(k)), labels.new_tensor(torch.nan))
        return labels

    def _surplus(self, what: str, classes: dict[str, torch.Tensor]) -> torch.Tensor:
        """(n,) bool: the surplus rows; without them classes are equally frequent."""
        rows = {name: member.nonzero()[:, 0] for name, member in classes.items()}
        counts = {name: len(members) for name, members in rows.items() if len(members)}
        fewest = min(counts.values(), default=0)
        if self.unbalanced == "error" and any(count != fewest for count in counts.values()):
            raise NotApplicable(
                f"a label permutation hides the classes only if they are equally frequent: expected as many rows of "
                f"each, got {', '.join(f'{count} {name}' for name, count in counts.items())} for {what}; balance the "
                f"data, or set unbalanced=withhold to release the surplus labels as unknown, or labels=raw"
            )
        surplus = torch.zeros_like(next(iter(classes.values())))
        for name, members in rows.items():
            order = self.secret.stream("surplus", what, name).permutation(len(members))
            surplus[members[order[fewest:].to(members.device)]] = True
        return surplus
