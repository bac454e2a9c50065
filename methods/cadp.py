"""CADP: Laplace noise on normed latents of a conditional invertible network.

Every latent is brought to the same L1 norm first. Source: Tölle et al., Content-aware differential privacy with
conditional invertible neural networks (2022), Algorithm 1 and appendix A, and the authors' code. The network is in
`bench.nets.cinn`. What the paper gets wrong, and what the variants make of it, stands in `methods.cadp_mechanism`.

Differences from the paper:
- The flow is trained on public rows only (nine tenths of the people; the others judge it), the paper's on private rows.
- The paper has GIN couplings on MNIST (Glow couplings in its code) and on tables: here they are Glow by default:
  GIN keeps the volume, and with it latents narrower than the noise (a deviation of 0.6 on diabetes).
- Exclusive classes are one-hot; any other finding has two numbers, yes and no. Zeros stand for what is unknown, and
  are seen in training: a tenth of the rows goes without condition, and a tenth of findings that are not exclusive.
- The rate falls along a cosine (the code: to a tenth after epochs 50 and 100, of 1,440 on MNIST and 480 on other
  images; ours are at most 150, `most_epochs`, and 5,000 in the preset `paper`). The code's input noise is .1 on images,
  the paper's .15.
- The preset `paper` is Table 1's column for chest X-rays and OCT; that for MNIST has coupling=gin, flat_blocks=2,
  flat_width=392, train_batch=512, batch=512 and learning_rate=5e-4, that for diabetes coupling=gin, train_batch=442,
  batch=442 and learning_rate=1e-4 (the code's notebook: flat_width=128 and steps=5000).
- Rows that share a norm in the official code are a batch of its loader, which leaves the last rows out if they fill
  none; here those are a smaller batch.
- The rate rises over the first steps, and gradients are clipped (see `bench.nets.normalising_flow`).
- Normed latents are rounded to a grid of a 2^30th of the noise's scale, towards zero, and the noise is the
  discrete Laplace distribution on it, so that the bound holds for the bits that the flow decodes.
- The code down-samples by IRevNet in all configurations, as the preset `paper` does; elsewhere it is Haar's wavelet.
- The preset is not CelebA's: for CelebA the code has clamp=1.2, splits=1+0.5+0.5+0.25, blocks=6, flat_blocks=12 and
  train_batch=16, batch=16. What leaves a level is a latent of its own there, clipped by its own norm, as in
  `official-code`; the other variants bring the whole latent to the norm, as Algorithm 1 says. The code's notebook of
  faces takes min(epsilon / 4, 4) for the norm (`sensitivity`), batches of one, and decodes under attributes that it
  draws at random, all but a few; here labels are released, and decoded under, as they are.
- The code's notebook of diabetes decodes every row under a sex that it draws at random; the paper's is the row's own.
  If columns are the condition, `official-code` draws them, each of their values as likely. There the flow has the
  column of the sex among its numbers too, and what it decodes is released; here the column holds what was drawn. The
  notebook divides columns by their greatest value, and has s = 0.1 where the paper says 1.
- Released numbers are not clamped to [0, 1]: that would be post-processing and hide the latent from Eve, the attacker.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, get_args

import torch

from bench.nets import cinn, normalising_flow
from bench.nets.network_choices import Coupling, Downsampling
from bench.nets.training import seeded
from bench.owner.grid_noise import GridNoise
from bench.owner.secret_key import SecretKey, SecretScheme
from bench.randomness import Grid
from bench.rows.grouping import hold_out
from bench.seeds import derive, generator
from bench.types import Dataset, Method, Parameter, PrivacyClaim, Release, State, by_blocks, paired
from bench.validation import at_least, one_of, positive_and_finite
from methods.cadp_mechanism import Conditions, NormedLatent, Variant, claim, conditions_of

NUMBERS = frozenset({"sizes", "findings", "values", "judged"})  # what a state holds beside the flow's weights
LARGEST_SENSITIVITY = 4.0
HELD_OUT = 0.1
UNKNOWN = 0.1
WARM_UP = 100
WEIGHT_DECAY = 1e-8
IMAGE_CLAMP, TABLE_CLAMP = 1.5, 2.0
FINE, MOST_BITS = 30, 52
IMAGE_NOISE, TABLE_NOISE = 0.15, 0.02


@dataclass(frozen=True)
class CADP(Method):
    """Samples of a conditional flow near the row's latent, under Laplace noise.

    Args:
        epsilon: What the paper claims for one row.
        variant: "paper", "corrected" or "official-code" as above.
        sensitivity: The L1 norm s; None stands for min(epsilon / 2, 4).
        batch: Rows that share a norm in the official code.
        condition: "labels", or columns of a table, counted from 0 and joined by +: they are released as they are.
        coupling, downsampling, levels, blocks, width, flat_blocks, flat_width: Of the flow; see `bench.nets.cinn`.
        splits: Of images, the share of its channels that goes on from each level, as in "1+0.5"; None: all go on.
        input_noise: While training, in standard deviations; None: 0.15 for images, 0.02 for tables.
        clamp: A coupling scales by at most exp(clamp); None: 1.5 for images, 2 for tables; 1.2 in the code for CelebA.
        steps, train_batch, learning_rate: Of training.
        most_epochs: Training ends at the latest when every row was seen so often: a small table is otherwise learned by
            heart, and noise then lands far outside it.
    """

    name: ClassVar[str] = "cadp"
    source: ClassVar[str] = "Tölle et al. 2022 (CADP), Algorithm 1, and the authors' code"
    claims: ClassVar[str] = "epsilon-differential privacy per image or record, given its labels"
    uses_labels: ClassVar[bool] = True
    unlearned: ClassVar[frozenset[str]] = frozenset({"epsilon", "variant", "sensitivity", "batch"})
    sides: ClassVar[Mapping[str, int]] = {"paper": 128}
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"blocks": 1, "width": 8, "flat_blocks": 1, "flat_width": 16, "steps": 6, "train_batch": 16},
        "first-look": {"blocks": 2, "width": 16, "flat_blocks": 4, "flat_width": 128, "steps": 300},
        "quick": {"blocks": 2, "width": 16, "flat_blocks": 8, "flat_width": 256, "steps": 1500},
        "standard": {"steps": 20_000, "train_batch": 128},
        "paper": {
            "steps": 50_000,
            "most_epochs": 5000,
            "learning_rate": 3e-4,
            "flat_width": 1024,
            "downsampling": "i-revnet",
            "batch": 64,
        },
    }

    epsilon: float = 1.0
    variant: Variant = "corrected"
    sensitivity: float | None = None
    batch: int = 512
    condition: str = "labels"
    coupling: Coupling = "glow"
    downsampling: Downsampling = "haar"
    levels: int | None = None
    splits: str | None = None
    blocks: int = 4
    width: int = 128
    flat_blocks: int = 4
    flat_width: int = 392
    input_noise: float | None = None
    clamp: float | None = None
    steps: int = 1500
    train_batch: int = 64
    learning_rate: float = 1e-3
    most_epochs: int = 150

    def __post_init__(self) -> None:
        one_of(get_args(Variant), variant=self.variant)
        one_of(get_args(Coupling), coupling=self.coupling)
        one_of(get_args(Downsampling), downsampling=self.downsampling)
        positive_and_finite(epsilon=self.epsilon, sensitivity=self.sensitivity, learning_rate=self.learning_rate)
        at_least(1, levels=self.levels, blocks=self.blocks, width=self.width)
        at_least(1, flat_blocks=self.flat_blocks, flat_width=self.flat_width)
        at_least(1, batch=self.batch, steps=self.steps, train_batch=self.train_batch, most_epochs=self.most_epochs)
        at_least(0, input_noise=self.input_noise)
        positive_and_finite(clamp=self.clamp)
        if not all(0 < share <= 1 for share in self._shares):
            raise ValueError(f'splits must be shares in (0, 1] as in "1+0.5", got {self.splits!r}')
        if self.levels is not None and len(self._shares) not in (0, self.levels):
            raise ValueError(f"splits must be a share for each of {self.levels} levels, got {self.splits!r}")
        if self.condition != "labels" and not all(part.isdecimal() for part in self.condition.split("+")):
            raise ValueError(f'condition must be "labels" or columns as in "1" or "1+3", got {self.condition!r}')

    def fit(self, public: Dataset, seed: int) -> CADPScheme:
        """Train the flow. Raises NotApplicable for unfit sides or columns."""
        conditions = conditions_of(public, self.condition)
        rows, device = conditions.rows(public.samples), public.samples.device
        training, held = hold_out(public, HELD_OUT, derive(seed, "held out"))
        with seeded(derive(seed, "flow")):
            flow = self._flow(tuple(rows.shape[1:]), conditions)
        flow.to(device).standardise_by(rows[training])
        known = conditions.read(public.samples, public.labels, public.findings)
        conditions_known = None if known is None else known[training]
        if conditions_known is not None and not conditions.exclusive and not len(conditions.values):
            chance = torch.rand(
                conditions_known.shape, generator=generator(derive(seed, "unknown"), device), device=device
            )
            conditions_known = conditions_known * (chance >= UNKNOWN)
        steps = min(self.steps, math.ceil(self.most_epochs * len(training) / min(self.train_batch, len(training))))
        course = normalising_flow.FlowCourse(
            steps=steps,
            batch=self.train_batch,
            learning_rate=self.learning_rate,
            warm_up=min(WARM_UP, steps // 10),
            weight_decay=WEIGHT_DECAY,
            noise=0.0,  # the flow adds its own, in standard deviations
            condition_dropout=0.0 if len(conditions.values) else UNKNOWN,
        )
        judge = (rows[held], None if known is None else known[held])
        fit = normalising_flow.train_flow(
            flow, rows[training], conditions_known, course, held_out=judge, seed=derive(seed, "train")
        )
        bits = math.nan if fit.bits_per_dim is None else fit.bits_per_dim
        numbers = {
            "sizes": torch.tensor((conditions.exclusive, *rows.shape[1:]), device=device),
            "findings": torch.tensor(list(json.dumps(conditions.findings).encode()), dtype=torch.uint8, device=device),
            "values": conditions.values,
            "judged": torch.tensor((len(training), len(held), fit.nats_per_dim, bits, steps), device=device),
        }
        return self.load({**flow.state_dict(), **numbers})

    def load(self, state: State) -> CADPScheme:
        """The scheme of `CADPScheme.state`, with this method's norm and noise."""
        exclusive, *shape = (int(number) for number in state["sizes"])
        findings = tuple(json.loads(bytes(state["findings"].tolist())))
        conditions = Conditions(findings, bool(exclusive), state["values"])
        with seeded(0):
            flow = self._flow(tuple(shape), conditions).to(state["sizes"].device)
        flow.load_state_dict({name: tensor for name, tensor in state.items() if name not in NUMBERS})
        norm = min(self.epsilon / 2, LARGEST_SENSITIVITY) if self.sensitivity is None else self.sensitivity
        mechanism = NormedLatent(
            flow.eval().requires_grad_(False),
            conditions,
            norm=norm,
            gridded=_finely(norm / self.epsilon * (2 if self.variant == "corrected" else 1), norm),
            rowwise=self.variant != "official-code",
            batch=self.batch,
            drawn=self.variant == "official-code" and bool(len(conditions.values)),
        )
        return CADPScheme(dict(state), mechanism, self.variant, self.epsilon)

    @property
    def _shares(self) -> tuple[float, ...]:
        """Of `splits`; NaN, which is no share, for what is no number."""
        return () if self.splits is None else tuple(map(_number, self.splits.split("+")))

    def _flow(self, shape: tuple[int, ...], conditions: Conditions) -> cinn.CINN:
        image = len(shape) == 3
        noise = IMAGE_NOISE if image else TABLE_NOISE
        sizes = cinn.CINNSizes(
            coupling=self.coupling,
            downsampling=self.downsampling,
            levels=self.levels,
            splits=self._shares,
            blocks=self.blocks,
            width=self.width,
            flat_blocks=self.flat_blocks,
            flat_width=self.flat_width,
            clamp=(IMAGE_CLAMP if image else TABLE_CLAMP) if self.clamp is None else self.clamp,
            noise=noise if self.input_noise is None else self.input_noise,
        )
        return cinn.CINN(shape, conditions.width, sizes)


def _number(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return math.nan


def _finely(scale: float, norm: float) -> GridNoise:
    """Noise of that scale; its grid holds elements up to `norm`.

    Nothing is published as it stands on this grid, so that float32 need not hold it.
    """
    held = math.ceil(math.log2(norm)) + 1
    step = max(math.floor(math.log2(scale)) - FINE, held - MOST_BITS)
    return GridNoise(Grid(2.0**step, bits=min(MOST_BITS, max(FINE + 8, held - step))), scale)


@dataclass(frozen=True, eq=False)
class CADPKey(SecretKey):
    """A secret; with rows and condition it chooses a release's stream."""

    scheme: CADPScheme

    def release(self, private: Dataset) -> Release:
        """Rows with noise, which equal rows repeat; labels as they are."""
        noise = self.scheme.noise
        condition = noise.conditions.read(private.samples, private.labels, private.findings)
        secret = self.secret.derive("release").bound_to(private.samples)
        if condition is not None:
            secret = secret.derive("condition").bound_to(condition)
        shown, stream = private, secret.stream()
        if noise.drawn:
            drawn = noise.conditions.drawn(private.samples, secret.stream("columns").uniform)
            shown = replace(private, samples=drawn)

        def obfuscate(index: torch.Tensor) -> torch.Tensor:
            blurred = noise.gridded.add(noise.locate(private.take(index)), stream)
            return noise.rebuild(blurred, shown.take(index))

        every = torch.arange(len(private), device=private.samples.device)
        rows = by_blocks(every, obfuscate, noise.together(stream), like=private.samples, draws=True)
        return paired(rows, private.labels)


@dataclass(frozen=True, eq=False)
class CADPScheme(SecretScheme):
    """A trained flow, as its state, and its noise."""

    key = CADPKey
    purpose = "cadp"

    learned: State
    noise: NormedLatent
    variant: Variant
    epsilon: float

    def state(self) -> State:
        """The flow's weights, sizes, conditions, and likelihood of held-out rows."""
        return self.learned

    def claim(self) -> PrivacyClaim:
        """The paper's epsilon, and the bound that follows from norm and noise."""
        return claim(self.noise, self.variant, self.epsilon)

    def mechanism(self) -> NormedLatent:
        """Latents of norm s with Laplace noise."""
        return self.noise

    def notes(self) -> Mapping[str, int | float | str]:
        """Norm, noise, the flow's fit to held-out public rows, its training."""
        training, held, nats, bits, steps = self.learned["judged"].tolist()
        fit = ("nats per dimension", nats) if math.isnan(bits) else ("bits per dimension", bits)
        return {
            "sensitivity s": self.noise.norm,
            "noise scale b": self.noise.noise_scale,
            "training steps": int(steps),
            "public rows trained on": int(training),
            "held-out public rows": int(held),
            fit[0]: round(fit[1], 4),
        }
