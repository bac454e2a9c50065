"""The published decoder of a conditional variational autoencoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bench.nets import cvae
from bench.owner.label_mix import LabelMix
from bench.owner.published import check_names, check_tensors
from bench.randomness import Secret, Stream
from bench.types import Generator, Release, State

ROWS = 8192
WEIGHTS = ("0.weight", "0.bias", "2.weight", "2.bias")
OTHERS = ("minimum", "extent", "deviation", "centres", "centre classes", "classes", "proportions")


@dataclass(frozen=True, eq=False)
class Decoder(Generator):
    """Latents from N(centre, deviation^2 I), decoded by class, stretched to the extents.

    Args:
        network: Latents and one-hot classes (m, latent + c) to rows (m, d) in (0, 1), without gradients.
        mix: The c classes and their proportions.
        minimum, extent: (d,) of the columns of the rows that it learned from. If the extent is 0, rows have the
            minimum exactly.
        deviation: Of latents about their centre.
        centres: (q, latent) float32; rows of a class take its centres in turn, in random order.
        centre_classes: (q,) int64, the class of each centre.
    """

    network: torch.nn.Sequential
    mix: LabelMix
    minimum: torch.Tensor
    extent: torch.Tensor
    deviation: float
    centres: torch.Tensor
    centre_classes: torch.Tensor

    @classmethod
    def load(cls, state: State, *, hidden: int, latent: int) -> Decoder:
        """The decoder that `state` described, if its layers have those widths.

        Raises:
            ValueError: Names, shapes, kinds or numbers that no decoder of those widths has; the text says which.
        """
        check_names(state, {*OTHERS, *(f"decoder.{name}" for name in WEIGHTS)})
        mix = LabelMix.load(state)
        c, d, q = len(mix.classes), state["minimum"].numel(), state["centre classes"].numel()
        shapes = zip(WEIGHTS, ((hidden, latent + c), (hidden,), (d, hidden), (d,)), strict=True)
        check_tensors(state, {f"decoder.{name}": shape for name, shape in shapes})
        check_tensors(state, {"minimum": (d,), "extent": (d,), "centres": (q, latent)})
        check_tensors(state, {"deviation": ()}, dtype=torch.float64)
        check_tensors(state, {"centre classes": (q,)}, dtype=torch.int64)
        if torch.unique(state["centre classes"]).tolist() != list(range(c)):
            raise ValueError(f"centre classes must be the numbers 0 to {c - 1}, each at least once")
        for name in ("extent", "deviation"):
            if bool((state[name] < 0).any()):
                raise ValueError(f"{name} must be at least 0, got {float(state[name].min())}")
        with torch.device("meta"):
            network = cvae.decoder(d, c, hidden=hidden, latent=latent)
        network.load_state_dict({name: state[f"decoder.{name}"] for name in WEIGHTS}, assign=True)
        return cls(
            network.requires_grad_(False), mix, state["minimum"], state["extent"], float(state["deviation"]),
            state["centres"], state["centre classes"],
        )  # fmt: skip

    def state(self) -> State:
        """All of it, as tensors."""
        return {
            **{f"decoder.{name}": weight for name, weight in self.network.state_dict().items()},
            **self.mix.state(),
            "minimum": self.minimum,
            "extent": self.extent,
            "deviation": torch.tensor(self.deviation, dtype=torch.float64, device=self.minimum.device),
            "centres": self.centres,
            "centre classes": self.centre_classes,
        }

    def sample(self, count: int, seed: int) -> Release:
        """Rows (count, d), classes by proportion. Raises ValueError for count below 1."""
        return self.draw(count, Secret.of_seed(seed))

    def draw(self, count: int, secret: Secret) -> Release:
        """As `sample`, with rows that only the secret's holder can foretell."""
        return self.rows(self.mix.draw(count, secret.stream("classes")), secret)

    def rows(self, number: torch.Tensor, secret: Secret) -> Release:
        """Fresh rows (m, d) of classes (m,) int64 on the decoder's device."""
        device, latent, c = self.minimum.device, self.centres.shape[1], len(self.mix.classes)
        noise = secret.stream("latents").normal(len(number), latent).to(device, torch.float32)
        latents = self.centres[self._turns(number, secret.stream("centres"))] + self.deviation * noise
        parts = zip(torch.split(latents, ROWS), torch.split(number, ROWS), strict=True)
        rows = torch.cat(
            [self.network(torch.cat((part, torch.nn.functional.one_hot(of, c)), dim=1)) for part, of in parts]
        )
        return Release(self.minimum + self.extent * rows, self.mix.labels(number), None)

    def _turns(self, number: torch.Tensor, stream: Stream) -> torch.Tensor:
        """The centre (m,) of each row, in random turns within its class."""
        chosen = torch.empty_like(number)
        for label in torch.unique(number):
            own, rows = ((of == label).nonzero()[:, 0] for of in (self.centre_classes, number))
            shuffled = own[stream.permutation(len(own)).to(own.device)]
            chosen[rows] = shuffled[torch.arange(len(rows), device=rows.device) % len(own)]
        return chosen
