"""DP-SGD: the owner publishes a privately trained classifier, and no rows.

Source: Abadi et al., Deep Learning with Differential Privacy (2016), Algorithm 1, through Opacus: gradients clipped row
by row, Gaussian noise on their sum, batches by Poisson sampling, the noise calibrated by Opacus' accountant (PRV: Gopi
et al. 2021) for the rows at hand. The baseline of the CADP paper (Tölle et al. 2022), figure 4.

Differences:
- Abadi et al. train two layers on 60 principal components found privately; the CADP paper its own convolutional
  classifier. Here it is by default the network of `bench.nets.convolutional_networks`; of a table, a linear model.
- The CADP paper's baseline is `network=strided,optimiser=adam,clip_norm=10`, with `batch=512,epochs=40` for MNIST and,
  at 128 pixels, `batch=64,epochs=80` for OCT and `batch=64,epochs=200` for chest X-rays (the epochs are the code's; the
  paper has none): its own classifier, with the code's norm over all channels for batch norm, under Adam at 5e-4. Its
  weight decay of 1e-8 is left out. Its delta of 1 / n has to be given as a number just below that: one of 1 / n or more
  would allow to publish a row, and is refused.
- `network=scattering` is the stronger baseline of Tramèr and Boneh (2021): a linear model of `bench.nets.scattering`
  coefficients, normalised row by row by groups of channels (their data-independent variant), so that nothing of the
  features has to be paid for. Theirs has a clip of 0.1 and rates that were searched for; here
  they are those of the other networks.
- Momentum, and a rate that rises and falls again: see `bench.nets.private_training`.
- Rows are standardised by the public rows. The last network is taken: nothing is chosen on private or control rows.
- A row's loss is the mean over its own known labels. Rows without any are left out; how many rows are left is taken to
  be public, as Poisson sampling and every noise calibration take it. Which labels are withheld is decided before: if
  they are balanced, as in this benchmark, that depends on the labels of other rows, and is outside the guarantee.
- `pretrain` learns the features on the public rows first, as the paper does for CIFAR-10, and goes on from there.
- Batches and noise come from the key's secret through a cipher, so that only the owner can repeat a run.
- Clipped gradients are rounded to a grid and the noise is the discrete Gaussian distribution on it: see
  `bench.nets.private_optimiser`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch

from bench.nets import classifier, private_training
from bench.nets.convolutional_networks import check_private_width, private_cnn, strided_cnn
from bench.nets.network_choices import Optimiser
from bench.nets.scattering import SMALLEST, scattered
from bench.nets.training import seeded, start
from bench.owner.secret_key import SecretKey, SecretScheme
from bench.rows.grouping import labelled
from bench.seeds import derive
from bench.types import Classifier, Dataset, Method, NotApplicable, Parameter, PrivacyClaim, PrivateStep, Release, State
from bench.validation import at_least, one_of

Network = Literal["tanh", "strided", "scattering"]


@dataclass(frozen=True)
class DPSGD(Method):
    """Bob's classifier, privately trained on raw private rows; nothing else is published.

    Args:
        epsilon, delta: The budget. None takes for delta 1 / (10 n) of n training rows, 1e-5 at most.
        epochs: Expected passes over the private rows.
        batch: Expected rows a step; None takes a quarter of them.
        learning_rate: Peak rate; None takes the root of epsilon n / 24,000 for n training rows, 2 at most.
        clip_norm: Largest L2 norm of a row's gradient.
        network: Of images: "tanh", one convolution; "strided", the CADP paper's classifier; "scattering", a linear
            model of scattering coefficients, which need 8 pixels a side.
        optimiser: "sgd", with momentum; or "adam", whose rate is constant, and 5e-4 if `learning_rate` is None.
        width: Channels of the tanh network's convolution.
        pretrain: Passes over the public rows before, in which the features are learned without noise.
    """

    name: ClassVar[str] = "dp-sgd"
    source: ClassVar[str] = "Abadi et al. 2016, Algorithm 1, through Opacus; the baseline of the CADP paper, figure 4"
    claims: ClassVar[str] = "(epsilon, delta)-differential privacy per image, of the published classifier"
    needs_labels: ClassVar[bool] = True
    unlearned: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "delta", "epochs", "batch", "learning_rate", "clip_norm", "optimiser"}
    )
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"epochs": 4}}

    epsilon: float = 1.0
    delta: float | None = None
    epochs: int = 20
    batch: int | None = None
    learning_rate: float | None = None
    clip_norm: float = 1.0
    network: Network = "tanh"
    optimiser: Optimiser = "sgd"
    width: int = 16
    pretrain: int = 0

    def __post_init__(self) -> None:
        self.course()
        one_of(get_args(Network), network=self.network)
        if self.pretrain and self.network == "scattering":
            raise ValueError("pretrain learns features, and those of network=scattering are fixed: set pretrain=0")
        at_least(0, pretrain=self.pretrain)
        check_private_width(self.width)

    def course(self) -> private_training.PrivateCourse:
        """The settings of the classifier's training."""
        return private_training.PrivateCourse(
            self.epsilon, self.delta, self.epochs, self.batch, self.learning_rate, self.clip_norm, self.optimiser
        )

    def classifier(self, shape: tuple[int, ...], outputs: int) -> torch.nn.Sequential:
        """Features of rows (see `read`), then a linear layer from zero."""
        if len(shape) > 1 and self.network == "strided":
            network = strided_cnn(shape, outputs, norm="group")
            for part in network[1].parameters():
                torch.nn.init.zeros_(part)
            return network
        return private_cnn(shape, outputs, width=self.width)

    def read(self, samples: torch.Tensor, learned: State) -> torch.Tensor:
        """The classifier's input: standardised rows (n, ...), or scattering coefficients (n, d)."""
        rows = _standardised(samples, learned)
        return rows if rows.ndim == 2 or self.network != "scattering" else scattered(rows)

    def fit(self, public: Dataset, seed: int) -> DPSGDScheme:
        """Statistics of the public rows; features too, if `pretrain` says so.

        Raises NotApplicable if there is nothing to pre-train (a table's model has no features), and for images that
        are too small for the network.
        """
        if self.network == "scattering" and public.samples.ndim == 4 and min(public.samples.shape[2:]) < SMALLEST:
            raise NotApplicable(f"network=scattering needs images of {SMALLEST} pixels a side: choose --size, or tanh")
        axes = (0, 2, 3) if public.samples.ndim == 4 else (0,)
        std, mean = torch.std_mean(public.samples.double(), dim=axes, correction=0, keepdim=True)
        learned = {"mean": mean[0], "std": torch.where(std > 0, std, 1)[0]}
        return self.load({**learned, **(self._features(public, learned, seed) if self.pretrain else {})})

    def load(self, state: State) -> DPSGDScheme:
        """The scheme that `DPSGDScheme.state` described."""
        return DPSGDScheme(self, dict(state))

    def _features(self, public: Dataset, learned: State, seed: int) -> dict[str, torch.Tensor]:
        if public.samples.ndim != 4:
            raise NotApplicable(f"pretrain learns the features of images: {public.name} is a table; set pretrain=0")
        if public.labels is None or not len(labelled(public.labels)):
            raise NotApplicable(f"pretrain needs public labels, and {public.name} has none: set pretrain=0")
        rows = _standardised(public.samples, learned)
        with seeded(derive(seed, "pretrain"), rows.device):
            network = self.classifier(tuple(rows.shape[1:]), len(public.findings)).to(rows.device)
            course = classifier.Course(self.pretrain, None, 64, 3e-3, 0.05, "float32")
            for _ in classifier.train(network, rows, public.labels, course, exclusive=public.exclusive, seed=seed):
                pass
        return {f"features.{name}": tensor.detach() for name, tensor in network[0].state_dict().items()}


@dataclass(frozen=True, eq=False)
class DPSGDKey(SecretKey):
    """A secret: the source of start, batches and noise."""

    scheme: DPSGDScheme

    def release(self, private: Dataset) -> Release:
        """Raises NotApplicable: no row leaves the owner."""
        raise NotApplicable("nothing is released: dp-sgd publishes a classifier trained on the private rows")

    def classifier(self, private: Dataset) -> Classifier:
        """The privately trained classifier: raw rows (n, ...) to scores (n, k).

        The scores are logits or log probabilities.

        Raises:
            NotApplicable: No private row has a label.
            ValueError: Rows with other channels or columns than the public rows, or a delta that n rows do not allow.
        """
        network = self._trained(private)
        method, learned = self.scheme.method, self.scheme.learned

        def classify(samples: torch.Tensor) -> torch.Tensor:
            logits = classifier.outputs(network, method.read(samples, learned), "float32").double()
            return logits.log_softmax(dim=1) if private.exclusive else logits  # probabilities would round to 0 or 1

        return classify

    def private_steps(self, private: Dataset, probes: Dataset, see: Callable[[PrivateStep], None]) -> None:
        """The training of `classifier`, its noise calibrated for all sums together."""
        if probes.labels is None:
            raise ValueError(f"probes must have labels as private rows do, got none in {probes.name}")
        rows = self.scheme.method.read(probes.samples, self.scheme.learned)
        self._trained(private, private_training.Watch(rows, probes.labels, see))

    def canary_steps(self, like: Dataset, gradients: torch.Tensor, see: Callable[[PrivateStep], None]) -> None:
        """The training of `classifier` on rows of these gradients alone."""
        none = like.take(torch.zeros(0, dtype=torch.int64, device=like.samples.device))
        if none.labels is None:
            raise NotApplicable(f"dp-sgd trains a classifier: {like.name} has no labels")
        rows = self.scheme.method.read(none.samples, self.scheme.learned)
        self._trained(none, private_training.Watch(rows, none.labels, see), gradients)

    def _trained(
        self, private: Dataset, watch: private_training.Watch | None = None, canaries: torch.Tensor | None = None
    ) -> torch.nn.Sequential:
        labels = private.labels
        if labels is None or (not len(labelled(labels)) and canaries is None):
            raise NotApplicable(f"dp-sgd trains a classifier: {private.name} has no labels")
        known = labelled(labels)
        method, learned = self.scheme.method, self.scheme.learned
        rows, labels = method.read(private.samples[known], learned), labels[known]
        network = self._network(rows, labels.shape[1])
        with seeded(int(self.secret.stream("dropout").integers(1 << 32)), rows.device):  # which nothing rests on
            private_training.train_privately(
                network, rows, labels, method.course(), exclusive=private.exclusive,
                secret=self.secret.derive("training"), watch=watch, canaries=canaries,
            )  # fmt: skip
        return network

    def _network(self, rows: torch.Tensor, findings: int) -> torch.nn.Sequential:
        with seeded(0, rows.device):
            network = self.scheme.method.classifier(tuple(rows.shape[1:]), findings).to(rows.device)
        start(network[0], self.secret.stream("network"))  # the last layer starts at zero
        features = {
            name.removeprefix("features."): tensor
            for name, tensor in self.scheme.learned.items()
            if name.startswith("features.")
        }
        if features:
            network[0].load_state_dict(features)
        return network


@dataclass(frozen=True, eq=False)
class DPSGDScheme(SecretScheme):
    """`learned`: public `mean`, `std` (float64, of broadcast shape), any `features.*`."""

    key = DPSGDKey
    purpose = "dp-sgd"

    method: DPSGD
    learned: State

    def state(self) -> State:
        """The statistics and features of the public rows."""
        return self.learned

    def claim(self) -> PrivacyClaim:
        """The budget; the training's noise is calibrated to it."""
        method = self.method
        rate, steps = method.course().sampled()
        own = (
            f"1 / (10 n) for n training rows, {private_training.MOST_DELTA:g} at most"
            if method.delta is None
            else "as given"
        )
        return PrivacyClaim(
            unit="image" if self.learned["mean"].ndim == 3 else "record",
            epsilon=method.epsilon,
            delta=private_training.MOST_DELTA if method.delta is None else method.delta,
            assumptions=(
                "Neighbours differ by one row more or less; the classifier is published once a key; the number of rows "
                "is public; which labels are withheld beforehand (balancing) is outside the claim; it holds for the "
                "bits published: gradients and noise are whole steps of a public grid; it holds for the noisy sums of "
                "all steps as for the classifier."
            ),
            basis=(
                "Abadi et al. 2016, Algorithm 1: Poisson-sampled Gaussian mechanism, its noise calibrated to epsilon "
                f"at training by Opacus' PRV accountant (Gopi et al. 2021); delta is {own}"
            ),
            neighbours="added",
            family="Gaussian",
            sampling_rate=rate,
            steps=steps,
        )

    def accounts(self, rows: int) -> Mapping[str, float]:
        """The budget spent on rows, by Opacus and dp-accounting (if installed)."""
        return private_training.accounts(self.method.course(), rows)


def _standardised(samples: torch.Tensor, learned: State) -> torch.Tensor:
    return (samples - learned["mean"].to(samples)) / learned["std"].to(samples)
