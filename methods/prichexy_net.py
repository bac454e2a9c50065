"""PriCheXy-Net deforms images against a verifier; Privacy-Net paints new ones.

Sources: Packhäuser et al., "Deep learning-based anonymization of chest radiographs: a utility-preserving measure for
patient privacy" (MICCAI 2023), and the authors' code; Kim et al., Privacy-Net (2021), as Packhäuser et al. rebuilt it
for radiographs. Networks, losses and differences are in `bench.nets.anonymiser`.

Both publish an image for every image. There is no key and no guarantee: they are meant to stop a verifier that holds
another image of the person (`--eve other-study`), and an attacker who holds the very image finds it. The paper's
figure is the AUC of a verifier that was trained again on the new images: 81.8 % on raw images, 57.7 % at mu = .01, with
images of 256 pixels.

Further differences from the papers:
- `mu` is in halves of a side as in the paper: at .01 an image of 256 pixels moves by up to 1.3 pixels, one of 64 pixels
  by a third of a pixel.
- Pairs are of all public people with several images; the paper has 10,000 fixed pairs.
- Privacy-Net's networks encode for segmentation; here, as in the PriCheXy-Net paper, a classifier takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.nets import anonymiser
from bench.nets.training import seeded
from bench.randomness import Secret
from bench.seeds import derive
from bench.types import Dataset, Key, Method, NotApplicable, Parameter, Release, Scheme, State, paired
from bench.validation import at_least, positive_and_finite

LEAST_PEOPLE = 5
NETWORK = "network."


@dataclass(frozen=True)
class PrivacyNet(Method):
    """Images painted anew by a network that was trained against a verifier.

    Args:
        verify: Weight of the verifier's loss.
        classify: Weight of the classifier's loss.
        width: Channels of the U-Net's first level.
        opponent: Channels of the first stage of verifier and classifier, at least 8.
        first_steps: Steps of verifier and classifier on raw images.
        steps: Steps of the generator.
        batch: Pairs a step.
        learning_rate: Peak of Adam's rate.
    """

    name: ClassVar[str] = "privacy-net"
    raw_like: ClassVar[bool] = True
    source: ClassVar[str] = "Kim et al. 2021 (Privacy-Net), as in Packhäuser et al. 2023 (PriCheXy-Net)"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"width": 8, "opponent": 8, "first_steps": 3, "steps": 3, "batch": 8},
        "first-look": {"width": 8, "first_steps": 300, "steps": 300, "batch": 16},
        "quick": {"first_steps": 1_000, "steps": 1_000},
        "standard": {"first_steps": 10_000, "steps": 10_000},
        "paper": {
            "width": 32, "opponent": 64, "first_steps": 39_000, "steps": 39_000, "batch": 64, "learning_rate": 1e-4,
        },
    }  # fmt: skip
    sides: ClassVar[Mapping[str, int]] = {"paper": 256}

    verify: float = 1.0
    classify: float = 1.0
    width: int = 16
    opponent: int = 16
    first_steps: int = 1_000
    steps: int = 1_000
    batch: int = 32
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        positive_and_finite(learning_rate=self.learning_rate, verify=self.verify)
        at_least(0, classify=self.classify)
        at_least(1, width=self.width, first_steps=self.first_steps, steps=self.steps)
        at_least(8, opponent=self.opponent)
        at_least(2, batch=self.batch)

    def fit(self, public: Dataset, seed: int) -> AnonymiserScheme:
        """A generator trained on public people.

        Raises NotApplicable for tables, and for fewer than 5 people with several images.
        """
        samples = public.samples
        if samples.ndim != 4:
            raise NotApplicable(f"{self.name} changes images: {public.name} is a table")
        people = torch.unique(public.subjects, return_inverse=True)[1] if public.subjects is not None else None
        several = 0 if people is None else int((torch.bincount(people) > 1).sum())
        if people is None or several < LEAST_PEOPLE:
            raise NotApplicable(
                f"{self.name} learns from pairs of images of one person: it needs {LEAST_PEOPLE} public people with "
                f"several images, {public.name} has {several}: choose another --public"
            )
        c, h, w = samples.shape[1:]
        network = self._network((c, h, w), derive(seed, "generator")).to(samples.device)
        labels = public.labels if self.classify else None
        lessons = anonymiser.Lessons(
            samples, labels if labels is not None and labels.shape[1] else None, people, public.exclusive
        )
        course = anonymiser.AnonymiserCourse(
            self.first_steps, self.steps, self.batch, self.learning_rate, self.verify, self.classify
        )
        verified = anonymiser.train_anonymiser(network, lessons, course, self.opponent, derive(seed, "training"))
        moved = anonymiser.mean_displacement(network, samples)
        known = torch.tensor([moved, *verified, several], dtype=torch.float64)
        weights = {f"{NETWORK}{name}": part.contiguous() for name, part in network.state_dict().items()}
        return self.load(weights | {"shape": torch.tensor((c, h, w)), "known": known})

    def load(self, state: State) -> AnonymiserScheme:
        """The scheme that `AnonymiserScheme.state` described."""
        c, h, w = (int(side) for side in state["shape"])
        network = self._network((c, h, w), 0).to(state[f"{NETWORK}unet.last.weight"].device)
        weights = {name.removeprefix(NETWORK): part for name, part in state.items() if name.startswith(NETWORK)}
        network.load_state_dict(weights)
        return AnonymiserScheme(dict(state), network.eval().requires_grad_(False), (c, h, w))

    @property
    def largest_displacement(self) -> float | None:
        """In halves of a side; None if images are painted."""
        return None

    def _network(self, shape: tuple[int, int, int], seed: int) -> anonymiser.Anonymiser:
        with seeded(seed):
            return anonymiser.Anonymiser(shape, self.largest_displacement, self.width)


@dataclass(frozen=True)
class PriCheXyNet(PrivacyNet):
    """Images deformed by a flow field that was trained against a verifier.

    Args:
        mu: Largest displacement in halves of a side (a side is 2 long).
        verify: Weight of the verifier's loss.
        classify: Weight of the classifier's loss.
        width: Channels of the U-Net's first level.
        opponent: Channels of the first stage of verifier and classifier, at least 8.
        first_steps: Steps of verifier and classifier on raw images.
        steps: Steps of the generator.
        batch: Pairs a step.
        learning_rate: Peak of Adam's rate.
    """

    name: ClassVar[str] = "prichexy-net"
    source: ClassVar[str] = "Packhäuser et al. 2023 (PriCheXy-Net), and the authors' code"

    mu: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_and_finite(mu=self.mu)

    @property
    def largest_displacement(self) -> float:
        """`mu`."""
        return self.mu


@dataclass(frozen=True, eq=False)
class AnonymiserScheme(Scheme):
    """A generator, which is public.

    Args:
        learned: What `state` gives: `network.*` the weights, `shape` (c, h, w) int64, `known` (4,) float64: mean
            displacement in pixels, AUC of the verifier on raw and on new images, and public people with several images.
        network: In evaluation mode.
        shape: (c, h, w) of its images.
    """

    learned: State
    network: anonymiser.Anonymiser
    shape: tuple[int, int, int]

    def state(self) -> State:
        """Weights and notes."""
        return self.learned

    def notes(self) -> Mapping[str, int | float | str]:
        """Displacement, and AUC of the verifier that it was trained against."""
        moved, raw, new, several = self.learned["known"].tolist()
        displaced = {} if self.network.mu is None else {"mean displacement, pixels": moved}
        return {
            **displaced,
            "AUC of its verifier, raw images": raw,
            "AUC of its verifier trained on, new images": new,
            "public people with several images": int(several),
        }

    def sample_key(self, secret: Secret) -> AnonymiserKey:
        """The key, the same for every secret."""
        return AnonymiserKey(self)

    def load_key(self, state: State) -> AnonymiserKey:
        """The key, which has no state."""
        return AnonymiserKey(self)


@dataclass(frozen=True, eq=False)
class AnonymiserKey(Key):
    """A key without a secret."""

    scheme: AnonymiserScheme

    def release(self, private: Dataset) -> Release:
        """New images, labels as they are."""
        return paired(self.query(private.samples), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """New images (n, c, h, w). Raises ValueError for other shapes."""
        if tuple(samples.shape[1:]) != self.scheme.shape:
            raise ValueError(f"this scheme changes images of shape {self.scheme.shape}, got {tuple(samples.shape[1:])}")
        return anonymiser.anonymised(self.scheme.network, samples)

    def state(self) -> State:
        """Empty: nothing is secret."""
        return {}
