"""InstaHide by its authors' own code.

Their function `mixup_data` draws partners, weights and signs, and mixes.

Source: Huang, Song, Li and Arora, InstaHide (2020), and https://github.com/Hazelsuko07/InstaHide, `train_inside.py`.

The adapter standardises rows, hands them over with their numbers in place of classes, which come back as the partners
of each released row, and mixes the labels by the weights that come back.

Differences from the authors' training:
- A release happens once; their training mixes the whole set anew in each epoch.
- Rows are standardised by the public set's mean and deviation, not by constants of CIFAR-10.
- Their generators have a whole state of secret numbers in place of a seed.
- Their partners are independent permutations, so that a row can be mixed with itself: `methods/instahide.py` mends
  that, and here it stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from bench.owner.global_generators import drawn_from
from bench.owner.secret_key import SecretKey, SecretScheme
from bench.types import Dataset, Method, NotApplicable, Release, State, authors_module
from bench.validation import at_least

REPOSITORY = {
    "url": "https://github.com/Hazelsuko07/InstaHide",
    "commit": "adc1b45f24b6f5017020686e23e64560b904fa2c",
    "licence": "MIT",
    "patches": [
        {
            "file": "utils.py",
            "line": 48,
            "before": "_, term_width = os.popen('stty size', 'r').read().split()",
            "after": "term_width = 80",
            "why": "there is no terminal to measure",
        },
    ],
}


@dataclass(frozen=True)
class OfficialInstaHide(Method):
    """InstaHide, run by the authors' own code.

    Args:
        k: Private rows in each released row, their `klam`.
        largest: The largest weight that a constituent may have, their `upper`.
    """

    name: ClassVar[str] = "official-instahide"
    source: ClassVar[str] = "Huang et al. 2020 (InstaHide), run by the authors' code"
    requires: ClassVar[str] = "a checkout of https://github.com/Hazelsuko07/InstaHide"
    encodes_labels: ClassVar[bool] = True

    k: int = 3
    largest: float = 0.65

    def __post_init__(self) -> None:
        at_least(2, k=self.k)
        if not 1 / self.k < self.largest <= 1:
            raise ValueError(f"largest must be above 1/k and at most 1, got {self.largest}: weights would never fit")
        _authors(self)

    def fit(self, public: Dataset, seed: int) -> OfficialScheme:
        """Mean and deviation of public rows. Raises NotApplicable for tables."""
        if public.samples.ndim != 4:
            raise NotApplicable(f"{self.name} mixes images, as the authors' code does: {public.name} is a table")
        std, mean = torch.std_mean(public.samples.double(), dim=(0, 2, 3), correction=0)
        return self.load({"mean": mean, "std": torch.where(std > 0, std, 1)})

    def load(self, state: State) -> OfficialScheme:
        """The scheme that `OfficialScheme.state` described."""
        return OfficialScheme(self, dict(state))


@dataclass(frozen=True, eq=False)
class OfficialKey(SecretKey):
    """A secret, from which the authors' code draws."""

    scheme: OfficialScheme

    def release(self, private: Dataset) -> Release:
        """Row i mixed with others by the authors' code; soft labels."""
        n, k = len(private), self.scheme.method.k
        if n < 2:
            raise NotApplicable(f"{self.scheme.method.name} mixes rows: expected 2 at least, got {n}")
        rows = self.query(private.samples)
        numbers = torch.arange(n, device=rows.device)
        with drawn_from(self.secret.derive("release").bound_to(private.samples)):
            mixed, partners, weights = _authors(self.scheme.method).mixup_data(rows, numbers, use_cuda=False)
        chosen = torch.stack(partners, dim=1)
        links = torch.stack((chosen.flatten(), numbers.repeat_interleave(k)), dim=1)
        labels = private.labels
        if labels is not None:
            known = (~labels.isnan()).float()
            weight, total = ((each[chosen] * weights[..., None]).sum(dim=1) for each in (known, labels.nan_to_num()))
            labels = torch.where(weight > 0, total / weight, float("nan"))
        links, first = torch.unique(links, dim=0, return_inverse=True)  # a row that is mixed with itself has one link
        primary = torch.zeros(len(links), dtype=torch.bool, device=rows.device)
        primary[first[::k]] = True
        return Release(mixed, labels, links, primary)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Standardised images, unmixed, as the authors' code evaluates."""
        mean, std = (self.scheme.learned[part].to(samples).reshape(-1, 1, 1) for part in ("mean", "std"))
        return (samples[:] - mean) / std


@dataclass(frozen=True, eq=False)
class OfficialScheme(SecretScheme):
    """`learned`: the public `mean` and `std` (c,) float64."""

    key = OfficialKey
    purpose = "official-instahide"

    method: OfficialInstaHide
    learned: State

    def state(self) -> State:
        """The public mean and deviation."""
        return self.learned


def _authors(method: OfficialInstaHide) -> Any:
    """The authors' script, with this method's options."""
    module = authors_module(__file__, "train_inside")
    module.args.klam, module.args.upper = method.k, method.largest
    module.device = torch.device("cpu")
    return module
