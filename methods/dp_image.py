"""DP-Image: Laplace noise on an autoencoder's code; the decoded image is released.

Source: Liu et al., DP-Image (2021), as in Yala et al., Syfer (2022), section 5 and appendix D (scales 1, 2, 5). The
network and what the paper leaves open about it are in `bench.nets.autoencoder`.

Differences from the paper:
- The unit of the noise scale b is unstated; here it is the code as it is. Batch normalisation, the encoder's last step,
  gives every element a standard deviation near one on the public images, which is what makes 1, 2 and 5 meaningful;
  the fitted one is in the notes. The optional clip and its sensitivity are in the same unit.
- The code is unbounded, so that no finite epsilon holds for the paper's mechanism, and none is claimed. With `clip`,
  every element is first clipped to its public mean plus or minus `clip` public standard deviations: two codes differ by
  at most 2 clip sum(std) in L1, and epsilon is that over b. No image may reach two opposite corners of these bounds,
  so the true loss may be smaller.
- Codes are rounded to a grid of a 65,536th of the noise's scale or less, and the noise is the discrete Laplace
  distribution on it, so that a bound holds for the bits that the decoder gets.
- Labels are released as they are, outside the claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from bench.nets import autoencoder, classifier
from bench.nets.training import seeded
from bench.owner.grid_noise import NOTHING_LEFT, GridNoise
from bench.owner.secret_key import NoiseScheme
from bench.randomness import Stream
from bench.rows.grouping import hold_out
from bench.seeds import derive
from bench.types import CAVEAT, Dataset, Mechanism, Method, NotApplicable, Parameter, PrivacyClaim, Release, State
from bench.validation import at_least, positive_and_finite

DEFAULT_SCALE = 1.0
USUAL = 8.0  # public deviations from the mean that codes without a clip hardly leave; the grid reaches 64 times as far
HELD_OUT = 0.1


@dataclass(frozen=True)
class DPImage(Method):
    """Noise in an autoencoder's code, by scale or by epsilon.

    At most one of the two is given; with neither, the scale is 1.

    Args:
        scale: The noise's scale b in units of the code (about public standard deviations).
        clip: Bound of every element of the code in public standard deviations about its public mean; None for no bound.
        epsilon: Bound for one whole image, which needs a clip: b = 2 clip sum(std) / epsilon.
        width: Numbers a code.
        steps, batch, learning_rate: Of the autoencoder's training.
    """

    name: ClassVar[str] = "dp-image"
    raw_like: ClassVar[bool] = True
    source: ClassVar[str] = "Liu et al. 2021 (DP-Image), as in Yala et al. 2022 (Syfer), section 5 and appendix D"
    claims: ClassVar[str] = "none without a clip; with one, epsilon-differential privacy per image: 2 clip sum(std) / b"
    unlearned: ClassVar[frozenset[str]] = frozenset({"scale", "clip", "epsilon"})
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"width": 32, "steps": 20, "batch": 16},
        "first-look": {"steps": 600},
        "quick": {"steps": 2_000},
        "standard": {"steps": 20_000, "batch": 64},
        "paper": {"steps": 100_000, "batch": 128},
    }

    scale: float | None = None
    clip: float | None = None
    epsilon: float | None = None
    width: int = 256
    steps: int = 2_000
    batch: int = 32
    learning_rate: float = 1e-2

    def __post_init__(self) -> None:
        if self.scale is not None and self.epsilon is not None:
            raise ValueError(f"give scale or epsilon, not both: got scale {self.scale} and epsilon {self.epsilon}")
        positive_and_finite(scale=self.scale, clip=self.clip, epsilon=self.epsilon)
        if self.epsilon is not None and self.clip is None:
            raise ValueError("epsilon bounds nothing without a clip: give a clip too, or a scale in its place")
        at_least(1, width=self.width, steps=self.steps)
        at_least(2, batch=self.batch)
        positive_and_finite(learning_rate=self.learning_rate)
        if self.scale is None and self.epsilon is None:
            object.__setattr__(self, "scale", DEFAULT_SCALE)

    def fit(self, public: Dataset, seed: int) -> DPImageScheme:
        """An autoencoder of the public images, judged on held-out people.

        Raises NotApplicable for tables, if too few images are left to train or to judge on, and if all of them are
        the same.
        """
        samples = public.samples
        if samples.ndim != 4:
            raise NotApplicable(f"dp-image codes images: {public.name} is a table")
        learned, held = hold_out(public, HELD_OUT, derive(seed, "held out"))
        if len(learned) < 2:
            raise NotApplicable(f"dp-image needs 2 public images beside the held-out people's, got {len(learned)}")
        c, h, w = samples.shape[1:]
        with seeded(derive(seed, "autoencoder"), samples.device):
            network = autoencoder.Autoencoder((c, h, w), self.width)
        network.to(samples.device)
        autoencoder.train_autoencoder(network, samples[learned], self._course(samples.device), derive(seed, "training"))
        std, mean = torch.std_mean(autoencoder.encoded(network, samples[learned]), dim=0, correction=0)
        if not bool((std > 0).any()):
            raise NotApplicable(f"dp-image needs codes that vary: the images of {public.name} are all the same")
        judged = torch.tensor([autoencoder.unexplained(network, samples[held]), len(held)], dtype=torch.float64)
        weights = {f"network.{name}": tensor.contiguous() for name, tensor in network.state_dict().items()}
        known = {"shape": torch.tensor((c, h, w)), "code mean": mean, "code std": std, "held out": judged}
        return self.load(weights | {name: part.to(samples.device) for name, part in known.items()})

    def load(self, state: State) -> DPImageScheme:
        """The scheme that `DPImageScheme.state` described, with this method's noise."""
        c, h, w = (int(side) for side in state["shape"])
        with seeded(0):
            network = autoencoder.Autoencoder((c, h, w), len(state["code std"])).to(state["shape"].device)
        weights = {name: part for name, part in state.items() if name.startswith("network.")}
        network.load_state_dict({name.removeprefix("network."): part for name, part in weights.items()})
        mean, reach = state["code mean"], None if self.clip is None else self.clip * state["code std"]
        if self.epsilon is not None and reach is not None:
            noise = GridNoise.keeping(self.epsilon, mean - reach, mean + reach)
        else:
            assert self.scale is not None
            usual = mean.abs() + (USUAL * state["code std"] if reach is None else reach)
            noise = GridNoise.of(self.scale, float(usual.max()))
        coded = NoisyCode(network.eval().requires_grad_(False), (c, h, w), mean, reach, noise)
        return DPImageScheme(dict(state), coded, None if reach is None else noise.span(mean - reach, mean + reach))

    def _course(self, device: torch.device) -> autoencoder.ReconstructionCourse:
        return autoencoder.ReconstructionCourse(
            self.steps, self.batch, self.learning_rate, classifier.fast_precision(device)
        )


@dataclass(frozen=True, eq=False)
class DPImageScheme(NoiseScheme):
    """An autoencoder, and the noise.

    Args:
        learned: What `state` gives: `network.*` the weights, `shape` (c, h, w) int64; float64: `code mean`, `code std`
            (d,) of public training images, and `held out`: share of variance unexplained and rows.
        noise: Of the code.
        steps: The most that two codes can differ by in L1, in steps of the noise's grid; None without a clip.
    """

    purpose = "dp-image"

    learned: State
    noise: NoisyCode
    steps: int | None

    @property
    def sensitivity(self) -> float:
        """`steps` in units of the code; infinity without a clip."""
        return math.inf if self.steps is None else self.steps * self.noise.gridded.grid.step

    def state(self) -> State:
        """Weights, and what is known of the codes of public images."""
        return self.learned

    def mechanism(self) -> NoisyCode:
        """Laplace noise on the code."""
        return self.noise

    def notes(self) -> Mapping[str, int | float | str]:
        """The noise, the code's spread, and the code's loss of detail."""
        std, (missed, rows) = self.learned["code std"], self.learned["held out"].tolist()
        numbers = {
            "noise scale": self.noise.noise_scale,
            "code deviation, mean": float(std.mean()),
            "code deviation, least": float(std.min()),
            "code deviation, greatest": float(std.max()),
            "held-out variance unexplained": missed,
            "held-out rows": int(rows),
            "L1 sensitivity": self.sensitivity,
        }
        caveat = {CAVEAT: NOTHING_LEFT} if self.steps == 0 else {}
        return {**caveat, **{name: number for name, number in numbers.items() if math.isfinite(number)}}

    def blur(self, samples: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Decoded noisy codes (n, c, h, w). Raises ValueError for other shapes."""
        noisy = self.noise.gridded.add(self.noise.encode(samples), stream)
        return autoencoder.decoded(self.noise.network, noisy.to(self.noise.mean), like=samples)

    def claim(self) -> PrivacyClaim:
        """epsilon = L1 sensitivity / scale for one image; infinity without clip."""
        scale = self.noise.noise_scale
        if self.steps is None:
            epsilon = math.inf
            assumptions = "The code is not clipped, so that no bound on the difference of two codes is known."
            basis = "The paper states a scale and no epsilon; none follows for an unbounded code."
        else:
            epsilon = self.noise.gridded.epsilon(self.steps)
            assumptions = (
                "Any two images count as neighbours, the autoencoder has seen public images only, each image is "
                "released once, and labels are outside the claim; it holds for the bits published: codes and noise are "
                "whole steps of a public grid."
            )
            basis = (
                f"Discrete Laplace mechanism: L1 sensitivity of the clipped code 2 * clip * sum(std), "
                f"rounded to the grid, {self.sensitivity:.6g}, scale {scale:.6g}; decoding is post-processing."
            )
        return PrivacyClaim("image", epsilon, 0.0, assumptions, basis)


@dataclass(frozen=True, eq=False)
class NoisyCode(Mechanism):
    """Laplace noise on a code; the released image shows it inexactly.

    An attacker can only encode the released image again.

    Args:
        network: In evaluation mode.
        shape: (c, h, w) of the images that it codes.
        mean: (d,) float64, the public mean of the code.
        reach: (d,) float64, how far the clip lets a code lie from the mean; None without a clip.
        gridded: The noise of every element.
    """

    exact = False

    network: autoencoder.Autoencoder
    shape: tuple[int, int, int]
    mean: torch.Tensor
    reach: torch.Tensor | None
    gridded: GridNoise

    @property
    def noise_scale(self) -> float:
        """Laplace scale b of every element."""
        return self.gridded.scale

    @property
    def scale(self) -> torch.Tensor:
        """(d,) float64: the same for every element."""
        return torch.full_like(self.mean, self.noise_scale)

    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """Codes (n, d) float64, clipped if asked. Raises ValueError for other shapes."""
        if tuple(samples.shape[1:]) != self.shape:
            raise ValueError(f"this scheme encodes images of shape {self.shape}, got {tuple(samples.shape[1:])}")
        codes = autoencoder.encoded(self.network, samples)
        return codes if self.reach is None else codes.clamp(self.mean - self.reach, self.mean + self.reach)

    def locate(self, data: Dataset) -> torch.Tensor:
        """(n, d) float64: codes on the grid, within the clip if any."""
        return self.gridded.on_grid(self.encode(data.samples))

    def observe(self, release: Release) -> torch.Tensor:
        """(m, d) float64: unclipped codes of released images, near the noisy ones."""
        return autoencoder.encoded(self.network, release.samples)

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """The outermost row of `like` in code space, and its furthest row.

        The first is furthest from the mean. The worst case, two images at opposite corners of the clip, is not known to
        exist.
        """
        codes = self.locate(like)
        first = torch.cdist(codes, codes.mean(dim=0, keepdim=True), p=1).argmax(dim=0)
        second = torch.cdist(codes, codes[first], p=1).argmax(dim=0)
        one = like.take(first)
        return ((one, replace(one, samples=like.samples[second])),)
