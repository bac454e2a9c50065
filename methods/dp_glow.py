"""DP-GLOW: Laplace noise on the latent of a publicly trained Glow.

Source: Shibata et al., Local differential privacy image generation using flow-based deep generative models (2022),
the DP-GLOW paper, section 4, and Kingma and Dhariwal (2018) for the network, which is in
`bench.nets.glow`. An image is encoded; every latent element is clipped to centre +- alpha / 2 of its public range
(Eqs. 5, 7, 8), gets Laplace noise of scale range * H * W / epsilon (Eqs. 2-4), is clipped again (Eq. 6) and decoded.

What the paper's proof (Eqs. 10-24) leaves out or gets wrong:
- Eq. 23 bounds |z - z'| by the range of the training latents, which an image outside the training set may exceed. It is
  the first clip, absent from the proof, that bounds it, for any image whatever, and to alpha of the range: the bound is
  alpha * epsilon, not epsilon. Variant `paper` adds the paper's noise and derives alpha * epsilon; `corrected` adds
  alpha times as much, which is what epsilon asks for.
- The second clip gives the release atoms, so that the densities of Eqs. 10-19 do not exist. They are not needed: the
  second clip and the decoder are post-processing. (Eq. 15's zero is right because the latent of a release depends on
  the release alone, not because z "is fixed".)
- "Epsilon per pixel" is epsilon / (H * W), a unit, not protection of a pixel: one pixel moves every latent element, so
  that even images that differ in one pixel have the bound of the whole image: at 10 a pixel, 2.6 million at 512x512.

Differences from the paper:
- Clipped latents are rounded to a grid (4,096 steps on either side of the centre, more if there is little noise)
  that ends where the clip does, and the noise is the discrete Laplace distribution on it, so that the bound holds for
  the bits that the flow decodes.
- H * W is the number of latent elements, c * h * w: for grey images the same. In colour, a "pixel" of
  `epsilon_per_pixel` is one channel of a pixel.
- An element with the same latent in all training images is set to it; the paper divides zero by zero.
- Released numbers are not clamped to [0, 1] or rounded to 8 bits. It would be post-processing and cost the claim
  nothing, but Eve, the attacker, could no longer read the noisy latent off exactly: figures would then praise the
  clamp.
- The network is smaller except in the preset `paper`; `bench.nets.normalising_flow` names how training differs (Adam, a
  cosine, clipped gradients). A tenth of the public people is held out to judge it; ranges are those of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import torch

from bench.nets import classifier, glow, normalising_flow
from bench.nets.training import seeded
from bench.owner.grid_noise import above
from bench.owner.secret_key import NoiseScheme
from bench.randomness import Grid, Stream, no_nan
from bench.rows.grouping import hold_out
from bench.seeds import derive, generator
from bench.types import Dataset, Mechanism, Method, NotApplicable, Parameter, PrivacyClaim, Release, State, by_blocks
from bench.validation import at_least, one_of, positive_and_finite

Variant = Literal["paper", "corrected", "clip-only", "no-clip"]
NUMBERS = frozenset({"low", "high", "sizes", "held-out"})  # what a state holds beside the flow's weights
DEFAULT_PER_PIXEL = 100.0
HELD_OUT = 0.1
WARM_UP = 100
ROWS = 256  # whose latents are held at once if only their range is wanted

FINEST_OF_CLIP, FINEST_OF_NOISE = 2.0**-12, 2.0**-16
MOST_OF_NOISE, FINEST = 40, -50  # logarithms of the noise's scale in steps at most, and of the least step
OUTSIDE = 1.02  # a witness's code in units of the clip, so that rounding leaves it on the clip's corner


@dataclass(frozen=True)
class DPGlow(Method):
    """Clipped Glow latents with Laplace noise; epsilon for images or pixels.

    The default is 100 a pixel.

    Args:
        epsilon: Bound for one whole image.
        epsilon_per_pixel: The same over the number of latent elements; at most one of the two.
        alpha: Share of an element's public range that the clip leaves.
        variant: "paper" and "corrected" as above; "clip-only" clips and adds nothing; "no-clip" encodes and decodes.
        levels: Squeezes; None takes as many as leave sides of at least 4 pixels.
        depth: Steps a level.
        width: Channels inside a coupling's network.
        steps, batch, learning_rate: Of training.
    """

    name: ClassVar[str] = "dp-glow"
    raw_like: ClassVar[bool] = True
    source: ClassVar[str] = "Shibata et al. 2022 (DP-GLOW), section 4; Kingma and Dhariwal 2018 (Glow)"
    claims: ClassVar[str] = "epsilon-local differential privacy per image (alpha * epsilon as it runs)"
    unlearned: ClassVar[frozenset[str]] = frozenset({"epsilon", "epsilon_per_pixel", "alpha", "variant"})
    sides: ClassVar[Mapping[str, int]] = {"paper": 512}
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"depth": 1, "width": 8, "steps": 8, "batch": 16},
        "first-look": {"depth": 4, "width": 32, "steps": 500},
        "quick": {"depth": 8, "width": 64, "steps": 1500},
        "standard": {"depth": 16, "width": 128, "steps": 20_000, "batch": 64},
        "paper": {"levels": 7, "depth": 32, "width": 512, "steps": 2_500_000, "batch": 4},
    }

    epsilon: float | None = None
    epsilon_per_pixel: float | None = None
    alpha: float = 0.4
    variant: Variant = "paper"
    levels: int | None = None
    depth: int = 8
    width: int = 64
    steps: int = 1500
    batch: int = 32
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        one_of(get_args(Variant), variant=self.variant)
        positive_and_finite(epsilon=self.epsilon, epsilon_per_pixel=self.epsilon_per_pixel)
        positive_and_finite(alpha=self.alpha, learning_rate=self.learning_rate)
        at_least(1, levels=self.levels, depth=self.depth, width=self.width, steps=self.steps, batch=self.batch)
        noisy = self.variant in ("paper", "corrected")
        if self.epsilon is not None and self.epsilon_per_pixel is not None:
            raise ValueError(
                f"give epsilon or epsilon_per_pixel, not both: got {self.epsilon} and {self.epsilon_per_pixel}"
            )
        for what, number in (("epsilon", self.epsilon), ("epsilon_per_pixel", self.epsilon_per_pixel)):
            if number is not None and not noisy:
                raise ValueError(f"variant {self.variant} adds no noise: leave {what} out, got {number}")
        if noisy and self.epsilon is None and self.epsilon_per_pixel is None:
            object.__setattr__(self, "epsilon_per_pixel", DEFAULT_PER_PIXEL)

    def fit(self, public: Dataset, seed: int) -> DPGlowScheme:
        """Train the flow and take the ranges of its latents.

        Raises NotApplicable for tables, sides it cannot halve and images that are all the same; FlowDiverged where
        training fails.
        """
        samples = public.samples
        if samples.ndim != 4:
            raise NotApplicable(f"dp-glow reads images: {public.name} is a table")
        c, h, w = samples.shape[1:]
        levels, device, most = self.levels or glow.usual_levels(h, w), samples.device, glow.most_levels(h, w)
        if levels > most:
            raise NotApplicable(
                f"dp-glow halves the sides of an image {levels} times, and {h}x{w} allow it {most} times: "
                f"lower levels, or choose --size so that {2**levels} divides the sides"
            )
        training, held = hold_out(public, HELD_OUT, derive(seed, "held out"))
        with seeded(derive(seed, "flow")):
            flow = glow.Glow(
                (c, h, w),
                levels=levels,
                depth=self.depth,
                width=self.width,
                precision=classifier.fast_precision(device),
            )
        course = normalising_flow.FlowCourse(
            self.steps, self.batch, self.learning_rate, warm_up=min(WARM_UP, self.steps // 10)
        )
        fit = normalising_flow.train_flow(
            flow.to(device), samples[training], None, course, held_out=(samples[held], None), seed=derive(seed, "train")
        )
        ranges = [
            torch.aminmax(normalising_flow.encoded(flow, rows), dim=0) for rows in torch.split(samples[training], ROWS)
        ]
        low = torch.stack([part.min for part in ranges]).amin(dim=0)
        high = torch.stack([part.max for part in ranges]).amax(dim=0)
        if not bool((high > low).any()):
            raise NotApplicable(
                f"dp-glow takes the ranges of public latents: the {len(training)} images of {public.name} that it "
                "trains on are all the same"
            )
        numbers = {
            "low": low,
            "high": high,
            "sizes": torch.tensor((c, h, w, levels, self.depth, self.width), device=device),
            "held-out": torch.tensor((fit.rows, fit.nats_per_dim, fit.bits_per_dim), device=device),
        }
        return self.load({**flow.state_dict(), **numbers})

    def load(self, state: State) -> DPGlowScheme:
        """The scheme of `DPGlowScheme.state`, with this method's clip and noise."""
        c, h, w, levels, depth, width = (int(number) for number in state["sizes"])
        with seeded(0):
            flow = glow.Glow((c, h, w), levels=levels, depth=depth, width=width).to(state["sizes"].device)
        flow.load_state_dict({name: tensor for name, tensor in state.items() if name not in NUMBERS})
        low, high = state["low"].double(), state["high"].double()
        epsilon = self.epsilon if self.epsilon_per_pixel is None else self.epsilon_per_pixel * len(low)
        noise = ClippedLatent(
            flow.eval().requires_grad_(False),
            centre=(low + high) / 2,
            half=self.alpha * (high - low) / 2,
            relative=0.0
            if epsilon is None
            else 2 * (1 if self.variant == "corrected" else 1 / self.alpha) * len(low) / epsilon,
        )
        return DPGlowScheme(dict(state), noise, self.variant, epsilon)


@dataclass(frozen=True, eq=False)
class DPGlowScheme(NoiseScheme):
    """A trained flow, its noise; the paper's `epsilon`, None without noise."""

    purpose = "dp-glow"

    learned: State
    noise: ClippedLatent
    variant: Variant
    epsilon: float | None

    def state(self) -> State:
        """The flow's weights, sizes, latent ranges, and likelihood of held-out images."""
        return self.learned

    def blur(self, samples: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Images (n, c, h, w) of noisy latents. Raises ValueError by shape."""
        noise, flow = self.noise, self.noise.flow
        if tuple(samples.shape[1:]) != flow.shape:
            raise ValueError(f"this flow is for images of shape {flow.shape}, got {tuple(samples.shape[1:])}")

        def obfuscate(rows: torch.Tensor) -> torch.Tensor:
            code = normalising_flow.encoded(flow, rows).double()
            if self.epsilon is not None:
                code = noise.noisy(code, stream)
            elif self.variant != "no-clip":
                code = noise.clip(code)
            return normalising_flow.decoded(flow, code.float())

        together = math.lcm(normalising_flow.rows_at_once(samples), stream.rows_apart(len(noise.half)))
        return by_blocks(samples, obfuscate, together, draws=True)

    def claim(self) -> PrivacyClaim:
        """The paper's epsilon, with the derived bound; infinity without noise."""
        if self.epsilon is None:
            clipped = "Latents are clipped" if self.variant == "clip-only" else "Latents are not clipped"
            return PrivacyClaim("image", math.inf, 0.0, f"{clipped} and no noise is added.", "no noise, no bound")
        return PrivacyClaim(
            unit="image",
            epsilon=self.epsilon,
            delta=0.0,
            assumptions=(
                "Any two images count as neighbours, each is released once, the flow and the ranges come from public "
                "images only, and labels are outside the claim; it holds for the bits published: latents and noise are "
                "whole steps of a public grid."
            ),
            basis=(
                "DP-GLOW paper, Eqs. 2-8 and 24"
                + (", noise scaled by alpha" if self.variant == "corrected" else "")
                + "; derived: discrete Laplace mechanism, the first clip bounds each element to alpha of its range"
            ),
            derived=self.noise.bound,
        )

    def mechanism(self) -> Mechanism | None:
        """Clipped latents with Laplace noise; None if no noise is added."""
        return None if self.epsilon is None else self.noise

    def notes(self) -> Mapping[str, int | float | str]:
        """The flow's fit to held-out public images, and the noise."""
        rows, nats, bits = self.learned["held-out"].tolist()
        d = len(self.noise.half)
        notes: dict[str, int | float | str] = {
            "held-out images": int(rows),
            "bits per dimension": round(bits, 4),
            "negative log-likelihood, nats per image": round(nats * d, 1),
        }
        if self.epsilon is not None:
            notes["epsilon per pixel"] = self.epsilon / d
            notes["noise scale, median over the latent"] = round(float(self.noise.scale.median()), 6)
            notes["noise scale over the clip's width"] = round(
                float(self.noise.scale.sum() / self.noise.half.sum() / 2), 6
            )
        return notes


@dataclass(frozen=True, eq=False)
class ClippedLatent(Mechanism):
    """Laplace noise on clipped latents.

    The grid counts in halves of the clip's width, element by element, so that the clip's ends are points of it.

    Args:
        flow: In evaluation mode.
        centre, half: (d,) float64; the clip, and the fence, is centre +- half.
        relative: The noise's scale in units of `half`, the same for every element; 0 for no noise.
    """

    flow: glow.Glow
    centre: torch.Tensor
    half: torch.Tensor
    relative: float

    @property
    def grid(self) -> Grid:
        """The grid of the noise, in units of `half`.

        Its step is a 4,096th of `half`, or a 65,536th of the noise's scale if that is finer. Coarser for noise of more
        than 2^28 times the clip, which has 2^40 steps at most; and no finer than float64 is.
        """
        wanted = math.floor(math.log2(min(FINEST_OF_CLIP, self.relative * FINEST_OF_NOISE)))
        return Grid(2.0 ** min(0, max(wanted, math.ceil(math.log2(self.relative)) - MOST_OF_NOISE, FINEST)))

    @property
    def scale(self) -> torch.Tensor:
        """(d,) float64: 0 if all training images share the element."""
        return self.half * self.relative

    @property
    def fence(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(d,) float64 each: the clip."""
        return self.centre - self.half, self.centre + self.half

    def locate(self, data: Dataset) -> torch.Tensor:
        """(n, d) float64: clipped latents, on the grid."""
        return self._values(self.places(normalising_flow.encoded(self.flow, data.samples).double()))

    def observe(self, release: Release) -> torch.Tensor:
        """(m, d) float64: the released images' latents, kept within the fence."""
        return self.clip(normalising_flow.encoded(self.flow, release.samples).double())

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """The ends of three diagonals of the clip.

        One runs from all low to all high, two have random signs. They are what the flow decodes there: rows of real
        numbers, not all in [0, 1].
        """
        signs = torch.randn(2, len(self.half), generator=generator(0)).sign().to(self.half)
        diagonals = OUTSIDE * self.half * torch.cat((torch.ones_like(signs[:1]), signs))
        ends = [normalising_flow.decoded(self.flow, (self.centre + side * diagonals).float()) for side in (-1, 1)]
        first = like.take(torch.zeros(1, dtype=torch.int64, device=like.samples.device))
        low, high = ([replace(first, samples=row[None]) for row in end] for end in ends)
        return list(zip(low, high, strict=True))

    def places(self, code: torch.Tensor) -> torch.Tensor:
        """int64 (n, d): steps of clipped latents. Raises ValueError for NaN."""
        ends = 1 / self.grid.step
        width = torch.where(self.half > 0, self.half, 1.0)
        return ((self.clip(no_nan(code)) - self.centre) / width * ends).round().clamp(-ends, ends).long()

    def noisy(self, code: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Latents (n, d) float64, clipped before and after noise on the grid."""
        places, ends = self.places(code), round(1 / self.grid.step)
        noise = self.grid.laplace(stream, self.relative, tuple(places.shape)).to(places.device)
        return self._values((places + noise).clamp(-ends, ends))

    @property
    def bound(self) -> float:
        """Epsilon of one image: all elements move by the clip's width."""
        steps = int((self.half > 0).sum()) * 2 * round(1 / self.grid.step)
        return above(steps / self.grid.steps(self.relative))

    def _values(self, places: torch.Tensor) -> torch.Tensor:
        return self.centre + self.half * (places.double() * self.grid.step)

    def clip(self, code: torch.Tensor) -> torch.Tensor:
        """Latents (n, d) within the fence."""
        return torch.clamp(code, *self.fence)
