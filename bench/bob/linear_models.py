"""Linear models: the L2 path of logistic regression, and the linear probe.

Path: strengths run from strong to weak, and each model starts from the one before. Rows are brought to coordinates in
which a diagonal matrix bounds the curvature of the loss (Böhning and Lindsay 1988: at most a quarter of the rows' own
second moments), so L-BFGS needs few steps. With fewer rows than columns these are the principal components, from inner
products of rows. If both are many, columns are kept and the diagonal is that of their variances.

Probe: one layer on vectors, with early stopping. Source: CVAE paper, section 4.2 (Adam, rate .001, early stopping),
with what its code adds: batches of 128, at most 100 epochs, patience 5, the rate cut on a plateau (which stopping
mostly forestalls), the weights of the best epoch. Differences: weights start at zero, as the problem is convex; few
rows may take more than 100 epochs, up to `STEPS` gradient steps (300 steps on 298 labelled chest X-rays are far from
convergence: AUC .87 instead of .91); findings that may come together are learned by binary cross-entropy, without
unknown labels; an epoch on a generator is as long as one on its stored draw (theirs is ten times as long); the
validation loss is that of predictions decoded to the real classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.nets.classifier import Standardise, label_loss, outputs
from bench.progress import report
from bench.rows.grouping import labelled
from bench.seeds import drawn, generator

STRENGTHS = (100.0, 10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
"""Half the penalty of a squared weight, in mean square row norms; losses are summed over rows."""
PATH_STEPS = 50
"""L-BFGS steps per model in principal components; raw columns take `SLOWER` times as many."""
SLOWER = 4
FEW = 3000
"""Largest min(rows, columns) for principal components."""
SMALL = 1 << 20
"""Most numbers solved on the host, where small steps are faster than on an accelerator."""
LEAST = 1e-7
"""Smaller principal components, relative to the largest, are rounding errors."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """One model of a path: logits are rows @ weights + bias."""

    strength: float
    weights: torch.Tensor
    bias: torch.Tensor


def logistic_path(
    rows: torch.Tensor, labels: torch.Tensor, *, exclusive: bool, strengths: tuple[float, ...] = STRENGTHS
) -> list[LinearModel]:
    """A model for each strength, best from strong to weak.

    Labels (m, k) in [0, 1] may be soft, NaN is unknown. Exclusive classes have a softmax, others are separate
    findings. Raises ValueError if no row has a known label.
    """
    known = ~labels.isnan()
    rows_used = (known.all(dim=1) if exclusive else known.any(dim=1)).nonzero()[:, 0]
    if not len(rows_used):
        raise ValueError("a linear model needs labels: every label of every row is NaN")
    mean = rows[rows_used].mean(dim=0)
    centred = rows[rows_used] - mean
    scale = float(centred.square().mean().sqrt().clamp_min(1e-30))
    centred /= scale
    basis = _basis(centred)
    device = basis.coordinates.device
    loss = _Loss(labels[rows_used].to(device, basis.dtype), exclusive)
    penalties = [strength * rows.shape[1] for strength in strengths]
    models = []
    weights = torch.zeros(basis.coordinates.shape[1], labels.shape[1], dtype=basis.dtype, device=device)
    bias = torch.zeros(labels.shape[1], dtype=basis.dtype, device=device)
    for strength, penalty in zip(strengths, penalties, strict=True):
        weights, bias = _solved(basis, loss, penalty, weights, bias)
        unscaled = basis.back(weights.to(rows.device)).float() / scale
        models.append(LinearModel(strength, unscaled, bias.to(rows.device).float() - mean @ unscaled))
    return models


@dataclass(frozen=True, eq=False)
class _Basis:
    """Coordinates (m, r) of rows, and the way back to columns."""

    coordinates: torch.Tensor
    squares: torch.Tensor
    back: Callable[[torch.Tensor], torch.Tensor]
    steps: int = PATH_STEPS

    @property
    def dtype(self) -> torch.dtype:
        """Of the coordinates: float64 for principal components."""
        return self.coordinates.dtype


def _basis(rows: torch.Tensor) -> _Basis:
    m, d = rows.shape
    if min(m, d) > FEW:
        return _Basis(rows, rows.square().sum(dim=0), lambda weights: weights, SLOWER * PATH_STEPS)
    squares, parts = torch.linalg.eigh(((rows @ rows.T) if m <= d else (rows.T @ rows)).double())
    real = squares > LEAST * squares[-1].clamp_min(1e-30)
    squares, parts = squares[real], parts[:, real]
    sizes = squares.sqrt()
    coordinates = rows.double() @ parts if m > d else parts * sizes
    device = torch.device("cpu") if coordinates.numel() <= SMALL else rows.device

    def back(weights: torch.Tensor) -> torch.Tensor:
        columns: torch.Tensor = parts @ weights if m > d else rows.T @ ((parts / sizes) @ weights).float()
        return columns

    return _Basis(coordinates.to(device), squares.to(device), back)


class _Loss:
    """Summed loss and gradient (m, k) of logits; unknown labels count 0."""

    def __init__(self, labels: torch.Tensor, exclusive: bool) -> None:
        self.exclusive, self.known, self.labels = exclusive, ~labels.isnan(), labels.nan_to_num()

    def __call__(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.exclusive:
            logs = torch.nn.functional.log_softmax(logits, dim=1)
            return -(self.labels * logs).sum(), logs.exp() - self.labels
        losses = torch.nn.functional.softplus(logits) - self.labels * logits
        return (losses * self.known).sum(), (logits.sigmoid() - self.labels) * self.known


def _solved(
    basis: _Basis, loss: _Loss, penalty: float, weights: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    rows = basis.coordinates
    widths = (basis.squares / 4 + penalty).rsqrt()[:, None]
    width = 2 / math.sqrt(len(rows))
    free, offset = (weights / widths).requires_grad_(), (bias / width).requires_grad_()
    optimiser = torch.optim.LBFGS(
        [free, offset], max_iter=basis.steps, tolerance_grad=1e-3, tolerance_change=1e-6, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        with torch.no_grad():
            own = widths * free
            value, slope = loss(rows @ own + width * offset)
            free.grad = widths * (rows.T @ slope + penalty * own)
            offset.grad = width * slope.sum(dim=0)
            return value + penalty / 2 * own.square().sum()

    with torch.enable_grad():
        optimiser.step(closure)  # type: ignore[no-untyped-call]
    return (widths * free).detach(), (width * offset).detach()


EPOCHS = 100
STEPS = 1500
BATCH = 128
LEARNING_RATE = 1e-3
LEAST_RATE = 1e-5
PATIENCE = 5
LEAST_LOG = -100.0
"""Lower clamp of log probabilities, as in torch's binary cross-entropy."""

Rows = tuple[torch.Tensor, torch.Tensor]
"""Vectors (m, d) and their labels (m, k) in [0, 1], which may be soft; NaN is unknown."""
Decode = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class LinearProbe:
    """A trained probe; epoch `best` gave the weights and the `loss`."""

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

    Stored rows' means and deviations standardise all rows; `dev` rows, as they reach the probe, stop the training
    and choose the epoch. `fresh` gives an epoch's rows (from 1) in place of the stored ones; `decode` takes
    predictions to the real classes. Raises ValueError if either side has no known label, or the loss is never a
    number.
    """
    for kind, (_, labels) in (("released", stored), ("validation", dev)):
        if not len(labelled(labels)):
            raise ValueError(f"a probe needs {kind} rows with a label: every label of {len(labels)} rows is NaN")
    layer = torch.nn.utils.skip_init(torch.nn.Linear, stored[0].shape[1], stored[1].shape[1], device=stored[0].device)  # type: ignore[no-untyped-call]
    for weight in layer.parameters():
        torch.nn.init.zeros_(weight)
    network = torch.nn.Sequential(Standardise(stored[0]), layer)
    rows, order = labelled(stored[1]), generator(seed, stored[1].device)
    optimiser = torch.optim.Adam(layer.parameters(), lr=LEARNING_RATE)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, patience=PATIENCE, min_lr=LEAST_RATE)
    loss_of, epochs = label_loss(exclusive), max(EPOCHS, STEPS // math.ceil(len(rows) / BATCH))
    best, lowest = 0, torch.inf
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
        if loss < lowest:
            best, lowest = epoch, loss
            weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        elif epoch - best >= PATIENCE:
            break
    if not weights:
        raise ValueError(
            f"expected a number as validation loss, got {loss}: queried rows or predictions are not finite"
        )
    network.load_state_dict(weights)
    return LinearProbe(network, exclusive, epoch, best, lowest)


def _probabilities(network: torch.nn.Module, vectors: torch.Tensor, *, exclusive: bool) -> torch.Tensor:
    logits = outputs(network, vectors, "float32").double()
    return logits.softmax(dim=1) if exclusive else logits.sigmoid()


def _loss(probabilities: torch.Tensor, labels: torch.Tensor, *, exclusive: bool, decode: Decode | None) -> float:
    """Cross-entropy of probabilities (n, k), the mean over rows or known labels."""
    if decode is not None:
        probabilities = decode(probabilities)
    known = ~labels.isnan()
    yes, no = (part.log().clamp_min(LEAST_LOG) for part in (probabilities, 1 - probabilities))
    truth = labels.nan_to_num().to(yes)
    if exclusive:
        known = known.all(dim=1)
        return float(-((truth * yes).sum(dim=1) * known).sum() / known.sum())
    return float(-((truth * yes + (1 - truth) * no) * known).sum() / known.sum())
