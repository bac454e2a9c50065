"""A likelihood ratio: how abnormal an image is, by a density of normal images and a density of all images.

Source: the DP-GLOW paper, section 5 and equation 25, after Shibata et al.: log p(normal | x) = log p(x | normal) - log
p(x) + a constant, with a Glow trained on normal images (M0) and a Glow trained on normal and abnormal images (M1).

Differences from the paper: the flows are smaller, and M1 is trained for this alone (theirs also carries the noise). The
mixture of M1 is that of the public rows. A flow goes through its images a limited number of times: M0 has fewer of
them, and what it learns by heart only says which images it has seen. Scored images are rounded to 8 bits, as images are
stored, and get the uniform noise that the flows were trained with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.nets.flow import Flow, log_densities
from bench.nets.flow_training import FlowCourse, FlowFit, train_flow
from bench.nets.glow import Glow, usual_levels
from bench.nets.seeded import seeded
from bench.seeds import derive, generator
from bench.types import NotApplicable, State


@dataclass(frozen=True)
class RatioPlan:
    """Size and training of the two flows.

    Args:
        steps: Most training steps of each.
        depth: Flow steps a level.
        width: Channels inside a coupling's network.
        passes: Most times that a flow sees an image.
        batch: Images a training step.
        learning_rate: Peak rate.
    """

    steps: int
    depth: int
    width: int
    passes: int = 100
    batch: int = 32
    learning_rate: float = 1e-3

    def course(self, images: int) -> FlowCourse:
        """How a flow is trained on so many images."""
        steps = min(self.steps, math.ceil(self.passes * images / self.batch))
        return FlowCourse(steps=steps, batch=self.batch, learning_rate=self.learning_rate)


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """Two flows for images of one shape, in evaluation mode: of normal images, and of the mixture."""

    normal: Flow
    mixture: Flow

    def state(self) -> State:
        """Their weights; `load_ratio` gives an equal ratio."""
        flows = {"normal": self.normal, "mixture": self.mixture}
        return {f"{name}.{part}": value for name, flow in flows.items() for part, value in flow.state_dict().items()}

    def abnormality(self, samples: Tensor, seed: int) -> Tensor:
        """log p(x) - log p(x | normal), (n,) float64 in nats, of images (n, c, h, w) in [0, 1]; higher is likelier
        abnormal.

        Raises:
            NotApplicable: Images so far from the public images that a density is not finite.
        """
        noise = torch.rand(samples.shape, generator=generator(seed, samples.device), device=samples.device)
        filled = ((samples * 255).round() + noise - 0.5) / 255
        found = log_densities(self.mixture, filled).double() - log_densities(self.normal, filled).double()
        if not bool(found.isfinite().all()):
            raise NotApplicable("some images lie so far from the public ones that their density is not finite")
        return found


def train_ratio(
    samples: Tensor, normal: Tensor, held_out: Tensor, plan: RatioPlan, seed: int
) -> tuple[LikelihoodRatio, Mapping[str, FlowFit]]:
    """The ratio learned from public images, and how each flow does on held-out images.

    Args:
        samples: (n, c, h, w) float32 in [0, 1], 8 bits deep.
        normal: (n,) bool.
        held_out: (n,) bool: not trained on. There must be normal images on both sides.
        plan: Sizes.
        seed: Same seed, same ratio on a CPU.

    Raises:
        FlowDiverged: Training failed.
        NotApplicable: Sides that cannot be halved.
    """
    flows, fits = {}, {}
    for name, rows in (("normal", normal), ("mixture", torch.ones_like(normal))):
        with seeded(derive(seed, name), samples.device):
            flows[name] = _flow(samples, plan)
        learned, held = samples[rows & ~held_out], samples[rows & held_out]
        fits[name] = train_flow(
            flows[name],
            learned,
            None,
            plan.course(len(learned)),
            held_out=(held, None),
            seed=derive(seed, name, "train"),
        )
    return LikelihoodRatio(**flows), fits


def load_ratio(state: State, like: Tensor, plan: RatioPlan) -> LikelihoodRatio:
    """The ratio that `LikelihoodRatio.state` described, for images of the shape and on the device of `like`."""
    flows = {}
    for name in ("normal", "mixture"):
        flows[name] = _flow(like, plan).eval()
        own = {part.removeprefix(f"{name}."): value for part, value in state.items() if part.startswith(f"{name}.")}
        flows[name].load_state_dict(own)
    return LikelihoodRatio(**flows)


def _flow(images: Tensor, plan: RatioPlan) -> Glow:
    c, h, w = images.shape[1:]
    if h % 2 or w % 2:
        raise NotApplicable(f"a Glow halves both sides: images are {h}x{w}; prepare them at an even size")
    glow = Glow((c, h, w), levels=usual_levels(h, w), depth=plan.depth, width=plan.width)
    return glow.to(images.device)
