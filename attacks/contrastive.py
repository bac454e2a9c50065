"""Contrastive: two towers learn from simulated keys to match rows.

Source: Yala et al., Syfer (2022), section 4.1: an instance encoder and a set encoder for the raw rows, another pair for
the released rows, cosine similarity, softmax over a batch; every step a fresh key; trained on the candidates themselves
and scored under keys never seen.

Differences from the paper:
- The towers and their loss: see `bench.nets.contrastive_towers`. By default they are told the relations of a row
  (sorted inner products with the other rows of its set), which the paper's attacker would have to find in attention;
  relations=false is the paper's attacker.
- When scoring, a set is the whole release, and not a batch of 128; above `SET_ROWS` rows, random parts of equal size.
- Training ends when the loss on held-out keys is near zero or at a plateau: see `bench.eve.contrast`.
- `contrastive` uses no labels; `contrastive-labels` does. The loss is not divided by the number of keys: a step has a
  single key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, get_args

import torch

from bench.eve.contrast import Course, Example, Outcome, train
from bench.eve.outliers import tamed
from bench.eve.own_releases import some_released, true_links
from bench.nets import contrastive_towers
from bench.nets.network_choices import Encoder
from bench.nets.training import seeded
from bench.pairs.score_matrices import CosineScores
from bench.seeds import derive, drawn, generator
from bench.types import Attack, Attacker, LearningCurve, NotApplicable, Parameter, Release, View, rows_at
from bench.validation import at_least, one_of, positive

SET_ROWS = 8192
HELD_OUT = 4

Draw: TypeAlias = "Callable[[torch.Generator], torch.Tensor]"


@dataclass(frozen=True)
class Contrastive(Attack):
    """Two towers trained by contrast on simulated releases.

    Args:
        encoder: Instance encoder: "sau"; for images also "vit" or "resnet18".
        steps: Training steps, one fresh key each, if `epochs` is None.
        epochs: Passes over the candidates; None: `steps` counts.
        batch: Candidates a step; more if the method does not release so few (`bench.eve.own_releases`).
        width: Width of SAU, ViT and embeddings; a ResNet's first stage has a quarter of it (256: a ResNet-18).
        depth: Depth of the instance SAU or ViT.
        learning_rate: Adam's rate after a warm-up; it falls to zero along a cosine.
        enough: Training ends when the mean loss on held-out keys is below this.
        relations: Tell the towers how each row stands to the others of its set: see `bench.nets.contrastive_towers`.
        least: Steps before training may end at a plateau of the loss on held-out keys (see `bench.eve.plateau`). A
            method that trains for more than `least` steps gives both numbers their lower bounds (`Course.against`).
    """

    name: ClassVar[str] = "contrastive"
    source: ClassVar[str] = "Yala et al. 2022 (Syfer), section 4.1"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme; no key, no labels"
    needs_public: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    trainings: ClassVar[int] = 2
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"steps": 60, "width": 64, "depth": 2},
        "first-look": {"steps": 2400, "width": 64, "depth": 2, "batch": 64},
        "quick": {"steps": 5000},
        "standard": {"steps": 20_000, "width": 256, "least": 2000},
        "paper": {"epochs": 500, "width": 256, "least": 5000},
    }

    encoder: Encoder = "sau"
    steps: int = 1500
    epochs: int | None = None
    batch: int = 128
    width: int = 128
    depth: int = 3
    learning_rate: float = 2e-3
    enough: float = 0.01
    least: int = 600
    relations: bool = True

    def __post_init__(self) -> None:
        one_of(get_args(Encoder), encoder=self.encoder)
        at_least(1, steps=self.steps, epochs=self.epochs, width=self.width, depth=self.depth, least=self.least)
        at_least(2, batch=self.batch)
        positive(learning_rate=self.learning_rate)

    def fit(self, view: View, seed: int) -> ContrastiveAttacker:
        """Train the towers. Raises NotApplicable without links, or for vit/resnet18 on tables."""
        n = len(view.candidates)
        batch = min(self.batch, n)
        if batch < 2:
            raise NotApplicable(f"the contrastive attack compares rows: needs at least 2 candidates, got {n}")
        return fit_towers(self, view, seed, lambda order: drawn(n, order, batch))


@dataclass(frozen=True, eq=False)
class ContrastiveAttacker(Attacker):
    """The trained towers, the candidates' embeddings, and the outcome of the training.

    Args:
        towers: The towers, in evaluation mode.
        raw: (n, width) float32 embeddings of the candidates.
        labelled: Whether the towers read labels.
        outcome: The outcome of the training.
        seed: Draws the parts in which a large release is read.
    """

    towers: contrastive_towers.Towers
    raw: torch.Tensor
    labelled: bool
    outcome: Outcome
    seed: int

    def score(self, sealed: Release) -> CosineScores:
        """Cosines between the embeddings of the candidates and of the released rows.

        Raises NotApplicable if the towers read labels and the release has none, ValueError if some are unknown.
        """
        labels = known_labels(sealed.labels, "the release") if self.labelled else None
        return CosineScores(
            self.raw, embed(self.towers.released, tamed(sealed.samples), labels, derive(self.seed, "released"))
        )

    def learning(self) -> tuple[LearningCurve, ...]:
        """The curve of the training."""
        return (self.outcome.learning(),)

    def notes(self) -> Mapping[str, int | float | str]:
        """Steps, losses and the end of the training."""
        return {**self.outcome.notes(), "training precision": self.outcome.precision}


def embed(tower: torch.nn.Module, rows: torch.Tensor, labels: torch.Tensor | None, seed: int) -> torch.Tensor:
    """Embeddings (n, width) float32 of one set, or of random parts."""
    # At random, so that the order of the rows tells nothing.
    order = torch.randperm(len(rows), generator=generator(derive(seed, "parts"))).to(rows.device)
    inputs = (rows,) if labels is None else (rows, labels)
    with torch.no_grad():
        parts = order.tensor_split(math.ceil(len(rows) / SET_ROWS))
        embeddings = [tower(*(rows_at(tensor, part) for tensor in inputs)) for part in parts]
    return torch.cat(embeddings)[order.argsort()]


def fit_towers(attack: Contrastive, view: View, seed: int, draw: Draw) -> ContrastiveAttacker:
    """Train the towers of `attack`; they read labels if the attack does.

    Args:
        attack: Its parameters.
        view: Candidates. Labels (n, k) that the attack reads are free of NaN; others are there for methods to release.
        seed: Decides all random numbers.
        draw: Gives the rows of a batch (int64), by a generator on the device of the candidates.
    """
    candidates, device = view.candidates, view.candidates.samples.device
    labels = candidates.labels if attack.uses_labels else None
    order = generator(derive(seed, "batches"), device)

    def example(name: str, number: int) -> Example:
        rows, release = some_released(view.scheme, candidates, draw(order), seed, name, number)
        links = true_links(release, "the contrastive attack learns from links", main=False)
        released = tamed(release.samples)
        if labels is None or rows.labels is None:
            return Example(rows.samples, released, links)
        if number == 0:  # under the keys of later steps alike, and every look makes the host wait for the device
            known_labels(release.labels, "the release")
        assert release.labels is not None
        return Example(rows.samples, released, links, rows.labels, release.labels.float())

    with seeded(derive(seed, "towers"), device):
        held_out = [example("held-out-key", number) for number in range(HELD_OUT)]
        batch = len(held_out[0].raw)
        towers = contrastive_towers.Towers(
            _tower(attack, held_out[0].raw, held_out[0].raw_labels),
            _tower(attack, held_out[0].released, held_out[0].released_labels),
        ).to(device)
        steps = attack.steps if attack.epochs is None else attack.epochs * math.ceil(len(candidates) / batch)
        course = Course(steps, attack.learning_rate, attack.enough, attack.least).against(view.trained)
        outcome = train(towers, lambda step: example("attack-key", step), held_out, course)
    raw = embed(towers.raw, candidates.samples, labels, derive(seed, "raw"))
    return ContrastiveAttacker(towers, raw, labels is not None, outcome, seed)


def known_labels(labels: torch.Tensor | None, whose: str) -> torch.Tensor:
    """The labels (n, k), float32, as they are.

    Raises:
        NotApplicable: If there are none.
        ValueError: If any is NaN.
    """
    if labels is None:
        raise NotApplicable(f"this attack reads raw and released labels: {whose} has none")
    unknown = int(labels.isnan().any(dim=1).sum())
    if unknown:
        raise ValueError(
            f"this attack needs every label: {unknown} of {len(labels)} rows of {whose} have unknown ones (NaN); "
            "leave those rows out"
        )
    return labels.float()


def _tower(attack: Contrastive, rows: torch.Tensor, labels: torch.Tensor | None) -> contrastive_towers.Tower:
    columns = 0 if labels is None else labels.shape[1]
    return contrastive_towers.Tower(
        attack.encoder,
        tuple(rows.shape[1:]),
        width=attack.width,
        depth=attack.depth,
        labels=columns,
        relations=attack.relations,
    )


@dataclass(frozen=True)
class ContrastiveLabels(Contrastive):
    """Two towers, trained by contrast on simulated releases with their labels.

    Source: Syfer's "instance-level encoder acting on images and their labels"; its Table 3 scores it against labels
    that are released raw and labels that the key encodes. The embedding of a row's label is added to the embedding of
    its image. Batches hold equally many rows of every class (every distinct row of labels is a class), which schemes
    that permute classes ask for, and which keeps the frequency of a released label from telling its meaning.

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
    count = max(1, min(batch // len(kinds), *map(len, members)))

    def draw(order: torch.Generator) -> torch.Tensor:
        picked = [rows[drawn(len(rows), order, count)] for rows in members]
        together = torch.cat(picked)
        return together[drawn(len(together), order)]

    return draw
