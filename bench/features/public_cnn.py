"""Public CNN: features of a small network trained on public labels.

Source: this project's own stand-in for a foundation model if no weights are available: the ResNet-18 of
`bench.nets.convolutional_networks` (He et al. 2016), trained on the public set's findings alone; the vectors are its
pooled last stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.contract.extractor import Embedding, Extractor, check_images, check_shape
from bench.nets import classifier
from bench.nets.convolutional_networks import LEAST_WIDTH, resnet18
from bench.nets.training import seeded
from bench.progress import report
from bench.rows.grouping import labelled
from bench.seeds import derive
from bench.types import Dataset, NotApplicable, Parameter, State
from bench.validation import at_least, positive


@dataclass(frozen=True)
class PublicCNN(Extractor):
    """Pooled activations of a network trained on the labels of public images.

    Args:
        width: Channels of the first stage; a vector has 8 width dimensions.
        epochs, batch, learning_rate, weight_decay: Of the training.
    """

    name: ClassVar[str] = "public-cnn"
    source: ClassVar[str] = "this project; the network: He et al. 2016 (ResNet-18)"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"width": 8, "epochs": 1},
        "first-look": {"width": 16, "epochs": 12},
        "standard": {"width": 64, "epochs": 20},
        "paper": {"width": 64, "epochs": 50},
    }

    width: int = 32
    epochs: int = 10
    batch: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.05

    def __post_init__(self) -> None:
        at_least(LEAST_WIDTH, width=self.width)
        at_least(1, epochs=self.epochs)
        at_least(2, batch=self.batch)
        positive(learning_rate=self.learning_rate)
        at_least(0, weight_decay=self.weight_decay)

    def fit(self, public: Dataset, seed: int) -> PooledStage:
        """A trained network; NotApplicable for tables and labels of one class."""
        shape = check_images(public, self.name)
        labels = public.labels
        if labels is None or not bool(((labels == 1).any(dim=0) & (labels == 0).any(dim=0)).any()):
            raise NotApplicable(
                f"{self.name} learns from public labels, and no finding of {public.name} is present in some images "
                "and absent in others: choose another --public, or eigenspace, pixels or timm:MODEL"
            )
        with seeded(derive(seed, "network"), public.samples.device):
            network = torch.nn.Sequential(
                classifier.Standardise(public.samples), resnet18(shape, labels.shape[1], width=self.width)
            )
            network.to(public.samples.device)
            precision = classifier.fast_precision(public.samples.device)
            course = classifier.Course(self.epochs, None, self.batch, self.learning_rate, self.weight_decay, precision)
            rows = len(labelled(labels))
            order = derive(seed, "order")
            for done in classifier.train(
                network, public.samples, labels, course, exclusive=public.exclusive, seed=order
            ):
                report("fit", done, course.total(rows))
        weights = {name: part for name, part in network.state_dict().items() if not name.startswith("1.fc.")}
        return self.load(weights | {"shape": torch.tensor(shape), "labelled": torch.tensor(rows)})

    def load(self, state: State) -> PooledStage:
        """See `Extractor.load`."""
        c, h, w = state["shape"].tolist()
        weights = {name: part for name, part in state.items() if name not in ("shape", "labelled")}
        width = len(state["1.layer1.0.conv1.weight"])
        with seeded(0):
            stages = resnet18((c, h, w), 1, width=width, features=True)
        network = torch.nn.Sequential(classifier.Standardise(torch.zeros(1, c, h, w)), stages).to(
            state["0.mean"].device
        )
        network.load_state_dict(weights)
        return PooledStage(dict(state), network.eval().requires_grad_(False), (c, h, w))


@dataclass(frozen=True, eq=False)
class PooledStage(Embedding):
    """A trained network without its last layer; `learned` is its state."""

    learned: State
    network: torch.nn.Module
    shape: tuple[int, int, int]

    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, d), in float32."""
        check_shape(samples, self.shape, "public-cnn")
        vectors: torch.Tensor = self.network(samples)
        return vectors

    def state(self) -> State:
        """The weights."""
        return self.learned

    def notes(self) -> Mapping[str, int | float | str]:
        """The number of training images."""
        return {"public images with a label": int(self.learned["labelled"])}
