"""A linear probe: one layer on vectors, trained until rows of the kind it will meet say stop.

Source: CVAE paper, section 4.2 (Adam, rate .001, early stopping), with what its code adds: batches of 128, at most 100
epochs, patience 5, the rate cut on a plateau (which stopping mostly forestalls), the weights of the best epoch.

Differences: weights start at zero, from where a convex problem needs no luck; 100 epochs of few rows may be more, up to
`STEPS` gradient steps (300 steps on 298 labelled chest X-rays end far from convergence: AUC .87 in place of .91, and
the originals, whose probes have most to learn, lose most); findings that may come together are learned by binary
cross-entropy, unknown labels left out; an epoch on a generator is as long as one on its stored draw (theirs is ten
times as long); the validation loss is that of predictions decoded to the real classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.nets.classifier import Standardise, label_loss, outputs
from bench.progress import report
from bench.rows.label_classes import labelled
from bench.seeds import drawn, generator

EPOCHS = 100
STEPS = 1500
BATCH = 128
LEARNING_RATE = 1e-3
LEAST_RATE = 1e-5
PATIENCE = 5
LEAST_LOG = -100.0
"""What the logarithm of a probability of nothing counts, as in torch's binary cross-entropy."""

Rows = tuple[torch.Tensor, torch.Tensor]
"""Vectors (m, d) and their labels (m, k) in [0, 1], which may be soft; NaN is unknown."""
Decode = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class LinearProbe:
    """A trained probe.

    Args:
        network: Standardisation and one layer.
        exclusive: Whether predictions are a softmax over classes or one sigmoid a finding.
        epochs: Epochs trained, of which `best` (from 1) gave the weights.
        loss: The validation loss of that epoch.
    """

    network: torch.nn.Module
    exclusive: bool
    epochs: int
    best: int
    loss: float

    def predict(self, vectors: torch.Tensor) -> torch.Tensor:
        """Probabilities (n, k), float64, in the labels' own code."""
        return _probabilities(self.network, vectors, exclusive=self.exclusive)


def train_probe(
    stored: Rows,
    dev: Rows,
    *,
    exclusive: bool,
    seed: int,
    fresh: Callable[[int], Rows] | None = None,
    decode: Decode | None = None,
) -> LinearProbe:
    """Train a probe, on the device of the stored rows.

    Args:
        stored: Released rows. Their columns' means and deviations standardise all rows; constant columns are centred.
        dev: Rows as they reach the probe, with real labels; their loss stops the training and chooses the epoch.
        exclusive: Whether each row has exactly one class.
        seed: Orders the stored rows. Same seed, same probe.
        fresh: Gives the rows of an epoch (from 1) in place of the stored ones, in batches as they come.
        decode: Predictions back to the real classes; None leaves them.

    Raises:
        ValueError: No stored row or no dev row has a known label, or the validation loss is never a number.
    """
    for what, (_, labels) in (("released", stored), ("validation", dev)):
        if not len(labelled(labels)):
            raise ValueError(f"a probe needs {what} rows with a label: every label of {len(labels)} rows is NaN")
    layer = torch.nn.utils.skip_init(torch.nn.Linear, stored[0].shape[1], stored[1].shape[1], device=stored[0].device)  # type: ignore[no-untyped-call]
    for weight in layer.parameters():
        torch.nn.init.zeros_(weight)
    network = torch.nn.Sequential(Standardise(stored[0]), layer)
    rows, order = labelled(stored[1]), generator(seed, stored[1].device)
    optimiser = torch.optim.Adam(layer.parameters(), lr=LEARNING_RATE)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, patience=PATIENCE, min_lr=LEAST_RATE)
    loss_of, epochs = label_loss(exclusive), max(EPOCHS, STEPS // math.ceil(len(rows) / BATCH))
    best, least = 0, torch.inf
    weights: dict[str, torch.Tensor] = {}
    for epoch in range(1, epochs + 1):
        network.train()
        if fresh is None:
            shuffled = rows[drawn(len(rows), order)]
            vectors, labels = stored[0][shuffled], stored[1][shuffled]
        else:
            vectors, labels = fresh(epoch)
        for batch, known in zip(torch.split(vectors, BATCH), torch.split(labels, BATCH), strict=True):
            optimiser.zero_grad(set_to_none=True)
            loss_of(network(batch), known).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        loss = _loss(_probabilities(network, dev[0], exclusive=exclusive), dev[1], exclusive=exclusive, decode=decode)
        plateau.step(loss)
        report(f"linear probe, validation loss {loss:.4f}, epoch", epoch, epochs)
        if loss < least:
            best, least = epoch, loss
            weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        elif epoch - best >= PATIENCE:
            break
    if not weights:
        raise ValueError(
            f"expected a number as validation loss, got {loss}: queried rows or predictions are not finite"
        )
    network.load_state_dict(weights)
    return LinearProbe(network, exclusive, epoch, best, least)


def _probabilities(network: torch.nn.Module, vectors: torch.Tensor, *, exclusive: bool) -> torch.Tensor:
    logits = outputs(network, vectors, "float32").double()
    return logits.softmax(dim=1) if exclusive else logits.sigmoid()


def _loss(probabilities: torch.Tensor, labels: torch.Tensor, *, exclusive: bool, decode: Decode | None) -> float:
    """Cross-entropy of probabilities (n, k) against real labels (n, k): a mean over rows, or over known labels."""
    if decode is not None:
        probabilities = decode(probabilities)
    known = ~labels.isnan()
    yes, no = (part.log().clamp_min(LEAST_LOG) for part in (probabilities, 1 - probabilities))
    truth = labels.nan_to_num().to(yes)
    if exclusive:
        known = known.all(dim=1)
        return float(-((truth * yes).sum(dim=1) * known).sum() / known.sum())
    return float(-((truth * yes + (1 - truth) * no) * known).sum() / known.sum())
