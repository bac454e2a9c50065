"""LiRA against a published classifier, by classifiers that Eve trains herself.

Source: Carlini et al. 2022, "Membership inference attacks from first principles", algorithm 1 (online): Eve, the
attacker, trains shadow classifiers on random halves of a pool of rows, fits normal densities to each candidate's logit
confidence where it was learned and where it was not (`bench.eve.densities`), and takes the log ratio of the two at the
confidence of the classifier that was published.

Differences:
- Of several findings, each with a logit, the confidence is the mean over the candidate's known labels. Of exclusive
  classes it is the same mean over all classes, each against the others: of two classes the paper's, up to a factor.
- The classifier is asked for every candidate once, as it is; the paper also asks for shifted and mirrored copies.
- Halves come in pairs that share no candidate, each filled up with control rows to as many rows as the owner has. They
  are of rows, and the game is of people: another image of a person may be on the other side, which only weakens the
  attack.

Its control, a classifier that knows its rows by heart (`by_heart`), has one hidden layer and is trained without noise,
weight decay or early end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias, cast

import torch

from bench.contract.seal import ContractError
from bench.eve.densities import InOut
from bench.nets import classifier
from bench.nets.training import seeded
from bench.progress import report
from bench.randomness import Secret
from bench.rows.row_sets import joined
from bench.seeds import derive, generator
from bench.types import Classifier, Dataset

HIDDEN, PASSES, SIDE = 128, 60, 32

Train: TypeAlias = "Callable[[Secret, Dataset], Classifier]"
"""Trains a classifier on rows with labels; equal secrets give equal classifiers."""


def confidence(scores: torch.Tensor, labels: torch.Tensor, *, exclusive: bool) -> torch.Tensor:
    """Mean log odds (n,) float64 of the known labels, by the scores.

    Args:
        scores: (n, k) logits, or log probabilities of exclusive classes.
        labels: (n, k) 1, 0, NaN; at least one known label a row.
        exclusive: Whether a row is of one class.

    >>> scores, labels = torch.tensor([[2.0, -1.0], [2.0, -1.0]]), torch.tensor([[1.0, 1.0], [torch.nan, 0.0]])
    >>> confidence(scores, labels, exclusive=False).tolist()
    [0.5, 1.0]
    >>> confidence(scores[:1], torch.tensor([[1.0, 0.0]]), exclusive=True).tolist()
    [3.0]
    """
    odds = scores.double()
    if exclusive and odds.shape[1] > 1:
        own = torch.eye(odds.shape[1], dtype=torch.bool, device=odds.device)
        odds = odds - odds[:, None, :].masked_fill(own, -torch.inf).logsumexp(dim=2)
    known = ~labels.isnan()
    signed = torch.where(known, (2 * labels.nan_to_num() - 1) * odds, torch.zeros_like(odds))
    return signed.sum(dim=1) / known.sum(dim=1)


def checked_answers(classify: Classifier, samples: torch.Tensor, findings: int) -> torch.Tensor:
    """The classifier's scores (n, k) for a copy of the samples, finite.

    Raises:
        ContractError: Another type or shape, or numbers that are not finite.
    """
    scores: object = classify(samples.clone())
    expected = (len(samples), findings)
    if not isinstance(scores, torch.Tensor) or tuple(scores.shape) != expected:
        got = f"shape {tuple(scores.shape)}" if isinstance(scores, torch.Tensor) else type(scores).__name__
        raise ContractError(f"a classifier must answer {len(samples)} rows with scores of shape {expected}, got {got}")
    scores = scores.detach()
    if bad := int((~scores.double().isfinite()).any(dim=1).sum()):
        raise ContractError(f"a classifier must answer with finite scores, and those of {bad} rows are not")
    return scores


@dataclass(frozen=True, eq=False)
class ShadowClassifiers:
    """Eve's knowledge of candidates' confidence, in and out of training.

    Args:
        rows: (n, ...), those that classifiers are asked for, with at least one known label each.
        learned: Of their confidence.
    """

    rows: Dataset
    learned: InOut

    @classmethod
    def fit(
        cls,
        train: Train,
        candidates: Dataset,
        asked: torch.Tensor,
        control: Dataset,
        size: int,
        shadows: int,
        seed: int,
    ) -> Self:
        """Train shadow classifiers on halves of the candidates.

        Args:
            train: What the owner does with rows of his own.
            candidates: Rows, some of them the owner's.
            asked: (n,) int64, the candidates with a known label.
            control: Rows known not to be the owner's; they fill halves up.
            size: How many rows the owner has.
            shadows: An even number of classifiers, at least 4.
            seed: Draws the halves and their secrets.

        Raises:
            ValueError: An odd number of classifiers, or fewer than 4.
        """
        rows, asked = candidates.take(asked), asked.cpu()
        device, confidences, inside = candidates.samples.device, list[torch.Tensor](), list[torch.Tensor]()
        for number in range(shadows):
            order = torch.randperm(len(candidates), generator=generator(derive(seed, "half", number // 2)))
            half = order[number % 2 :: 2].sort().values
            spare = torch.randperm(len(control), generator=generator(derive(seed, "control", number)))
            filling = spare.repeat(1 + size // len(control))[: max(0, size - len(half))]
            own = joined(candidates.take(half.to(device)), control.take(filling.to(device)))
            classify = train(Secret.of_seed(seed, "key", number), own)
            confidences.append(_confidence(classify, rows).cpu())
            inside.append(torch.isin(asked, half))
            report("shadow classifiers", len(inside), shadows)
        return cls(rows, InOut.learn(torch.stack(confidences), torch.stack(inside)))

    def scores(self, classify: Classifier) -> torch.Tensor:
        """Log likelihood ratios (n,) float64: higher is likelier a member.

        The classifier is asked once. Raises ContractError as `checked_answers` does.
        """
        return self.learned.ratio(_confidence(classify, self.rows).cpu())


def _confidence(classify: Classifier, rows: Dataset) -> torch.Tensor:
    labels = cast(torch.Tensor, rows.labels)
    return confidence(checked_answers(classify, rows.samples, labels.shape[1]), labels, exclusive=rows.exclusive)


def by_heart(secret: Secret, rows: Dataset) -> Classifier:
    """A classifier that knows its rows by heart: logits (n, k).

    Images are read at 32 pixels a side at most.
    """
    labels, samples = cast(torch.Tensor, rows.labels), rows.samples
    seed = int(secret.stream("by heart").integers(1 << 32))
    smaller: list[torch.nn.Module] = []
    if samples.ndim == 4:
        side = min(SIDE, *samples.shape[2:])
        smaller = [torch.nn.AdaptiveAvgPool2d(side)]
        wide = samples.shape[1] * side**2
    else:
        wide = samples.shape[1]
    with seeded(seed, samples.device):
        network = torch.nn.Sequential(
            classifier.Standardise(samples), *smaller, torch.nn.Flatten(), torch.nn.Linear(wide, HIDDEN),
            torch.nn.ReLU(), torch.nn.Linear(HIDDEN, labels.shape[1]),
        ).to(samples.device)  # fmt: skip
        course = classifier.Course(PASSES, None, 32, 3e-3, 0.0, "float32")
        for _ in classifier.train(network, samples, labels, course, exclusive=rows.exclusive, seed=seed):
            pass
    network.eval().requires_grad_(False)
    return lambda asked: classifier.outputs(network, asked, "float32")
