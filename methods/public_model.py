"""Public model: a published classifier of public rows alone.

A reference row. What it reaches needs no private data, so that only the utility beyond it is a release's own. Other
authors' methods could also answer Bob's queries from public data that they carry.

Source: this benchmark. A ResNet-18 (He et al. 2016) of few channels and a linear model, trained together by the sum of
their logits (Cheng et al. 2016, Wide & Deep Learning): few rows suffice for the one, many for the other. Of a table,
the linear model alone.

Differences: papers' baselines of this kind ("train on NIH, test on MIMIC") choose network and epochs on held-out rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.nets import classifier, wide_and_deep
from bench.nets.convolutional_networks import LEAST_WIDTH
from bench.nets.training import seeded
from bench.owner.secret_key import SecretKey, SecretScheme
from bench.progress import report
from bench.rows.grouping import labelled
from bench.seeds import derive
from bench.types import Classifier, Dataset, Method, NotApplicable, Parameter, Release, Role, State
from bench.validation import at_least, positive

LINEAR = 10  # times the rate, without a network that a high one would upset


@dataclass(frozen=True)
class PublicModel(Method):
    """Bob's classifier, trained on public rows; nothing private is used.

    Args:
        width: Channels of the network's first stage.
        epochs: Passes over the public rows.
        batch: Rows a step.
        learning_rate: Peak rate of AdamW; ten times that for a table.
        weight_decay: Of AdamW.
    """

    name: ClassVar[str] = "public-model"
    source: ClassVar[str] = "Veil Bench: the utility of public data alone"
    role: ClassVar[Role | None] = "sees public rows only"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"width": 8},
        "first-look": {"width": 16, "epochs": 12},
        "paper": {"width": 64, "epochs": 50},
    }

    width: int = 32
    epochs: int = 20
    batch: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.05

    def __post_init__(self) -> None:
        at_least(LEAST_WIDTH, width=self.width)
        at_least(1, epochs=self.epochs)
        at_least(2, batch=self.batch)
        positive(learning_rate=self.learning_rate)
        at_least(0, weight_decay=self.weight_decay)

    def network(self, like: torch.Tensor, outputs: int) -> torch.nn.Sequential:
        """Rows (n, ...), standardised by those of `like`, to logits (n, outputs)."""
        network = wide_and_deep.WideAndDeep(like.shape[1:], outputs, self.width)
        return torch.nn.Sequential(classifier.Standardise(like), network)

    def fit(self, public: Dataset, seed: int) -> PublicModelScheme:
        """A trained network; NotApplicable without public labels of two kinds."""
        labels = public.labels
        if labels is None or not bool(((labels == 1).any(dim=0) & (labels == 0).any(dim=0)).any()):
            raise NotApplicable(
                f"public-model learns from public labels, and no finding of {public.name} is present in some rows and "
                "absent in others: choose another --public"
            )
        shape, rows = public.samples.shape[1:], len(labelled(labels))
        with seeded(derive(seed, "network"), public.samples.device):
            network = self.network(public.samples, labels.shape[1]).to(public.samples.device)
            precision = classifier.fast_precision(public.samples.device)
            rate = self.learning_rate * (1 if len(shape) == 3 else LINEAR)
            course = classifier.Course(self.epochs, None, self.batch, rate, self.weight_decay, precision)
            for done in classifier.train(
                network, public.samples, labels, course, exclusive=public.exclusive, seed=derive(seed, "order")
            ):
                report("fit", done, course.total(rows))
        state = {name: tensor.detach() for name, tensor in network.state_dict().items()}
        return self.load({**state, "shape": torch.tensor(shape), "outputs": torch.tensor(labels.shape[1])})

    def load(self, state: State) -> PublicModelScheme:
        """The scheme that `PublicModelScheme.state` described."""
        return PublicModelScheme(self, dict(state))


@dataclass(frozen=True, eq=False)
class PublicModelKey(SecretKey):
    """A secret that nothing depends on."""

    scheme: PublicModelScheme

    def release(self, private: Dataset) -> Release:
        """Raises NotApplicable: no row leaves the owner."""
        raise NotApplicable("nothing is released: public-model publishes a classifier of public rows")

    def classifier(self, private: Dataset) -> Classifier:
        """Raw rows (n, ...) to scores (n, k): logits or log probabilities.

        Raises NotApplicable if the public rows have other findings than the private ones.
        """
        learned = self.scheme.learned
        outputs = int(learned["outputs"])
        if len(private.findings) != outputs:
            raise NotApplicable(
                f"public-model knows {outputs} findings of its public rows, and {private.name} has "
                f"{len(private.findings)}"
            )
        with seeded(0):
            network = self.scheme.method.network(torch.zeros(1, *learned["shape"].tolist()), outputs)
        weights = {name: tensor for name, tensor in learned.items() if name not in ("shape", "outputs")}
        network.load_state_dict(weights)
        network.to(private.samples.device).eval().requires_grad_(False)

        def classify(samples: torch.Tensor) -> torch.Tensor:
            logits = classifier.outputs(network, samples, "float32").double()
            return logits.log_softmax(dim=1) if private.exclusive else logits

        return classify


@dataclass(frozen=True, eq=False)
class PublicModelScheme(SecretScheme):
    """`learned`: the network's state, a row's `shape`, the number of `outputs`."""

    key = PublicModelKey
    purpose = "public-model"

    method: PublicModel
    learned: State

    def state(self) -> State:
        """The trained network."""
        return self.learned
