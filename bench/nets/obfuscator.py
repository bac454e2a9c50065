"""Syfer's obfuscator: learned layers between random layers, and its training.

A random layer is a random linear map for each place in an image, then SELU, then LayerNorm.

Source: Yala et al., Syfer (2022), section 5: "linear layers, followed by a SeLU nonlinearity and layer normalization.
All random linear layers weights were sampled from a unit Gaussian, and we used separate random networks per patch". The
maps have biases (also standard normal), as the stated count says: six layers of 16 maps from 256 to 256 numbers are the
6.3 M random parameters. LayerNorm has no weights of its own, so an image's encoding does not depend on its batch.

The network. Source: Yala et al., Syfer (2022), sections 4.2 and 5: blocks of learned layers (Simple Attention Units)
and a random layer. The stated counts, 6.6 M learned and 6.3 M random parameters, agree with five blocks of five SAU
layers each, positions learned once a block, and six random layers: one after each block and one more, which stands at
the end here, so that the first learned layers see the image itself and all they give passes at least two random layers.

Differences from the paper: images are standardised first (it does not say); patches that do not have `width` numbers
enter through one more learned linear map; the tokens are folded into a grey image, a square a token, so that networks
for images can read it.

Training, against an attacker and with a decoder. Source: Yala et al., Syfer (2022), Algorithm 1. Each step encodes a
batch of public images under a fresh key and under the decoder's key, which stays the same. Even steps change the
obfuscator, which minimises lambda_rec L_rec - lambda_reid L_reid; odd steps change the attacker, which minimises
L_reid, and the decoder, which minimises L_rec.

Differences from the paper:
- L_rec is in units of the public images' variance about their mean image: 1 is what the mean image reaches.
- L_reid is that of `bench.nets.contrastive_towers`: a learned scale, and softmax over raw and over encoded rows.
- With `relations` the attacker is told how each row stands to the others of its set (`bench.nets.contrastive_towers`).
- With `lambda_match` the obfuscator also minimises what relational matching lives on (`agreement`).
- The learning rate rises over the first steps and falls along a cosine to a twentieth; gradients are clipped to
  length one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, selu

from bench.checkpoint import steps
from bench.nets.classifier import Precision, Standardise
from bench.nets.contrastive_towers import Tower, Towers
from bench.nets.decoder import Decoder
from bench.nets.network_choices import check_sizes
from bench.nets.patches import cut, fold, patch_grid
from bench.nets.training import Replay, adam, seeded, set_rate
from bench.nets.transformers import SAULayer
from bench.progress import report
from bench.seeds import derive, drawn, generator
from bench.validation import at_least

Draw = Callable[..., Tensor]  # takes a shape, one number an argument; gives standard normal numbers, any kind of float


def draw_layer(draw: Draw, *, locations: int, inputs: int, width: int) -> Tensor:
    """Standard normal float32 weights (locations, inputs + 1, width), by `draw`.

    The last row is a bias. Raises ValueError for a size below 1.
    """
    at_least(1, locations=locations, inputs=inputs, width=width)
    return draw(locations, inputs + 1, width).float()


def draw_layers(draw: Draw, *, locations: int, inputs: int, width: int, layers: int) -> list[Tensor]:
    """Weights of `layers` layers; only the first reads `inputs` numbers."""
    at_least(1, layers=layers)
    return [
        draw_layer(draw, locations=locations, inputs=width if number else inputs, width=width)
        for number in range(layers)
    ]


def random_layer(tokens: Tensor, weights: Tensor) -> Tensor:
    """Tokens (b, t, inputs) through LayerNorm(SELU(x W + b)), by location.

    Every token (b, t, width) has mean 0 and variance 1 and depends on the same token alone. Raises ValueError for
    tokens that do not fit the weights.
    """
    locations, rows, width = weights.shape
    if tokens.ndim != 3 or tokens.shape[1:] != (locations, rows - 1):
        raise ValueError(f"these weights read tokens (b, {locations}, {rows - 1}), got shape {tuple(tokens.shape)}")
    mapped = torch.baddbmm(weights[:, -1:], tokens.transpose(0, 1), weights[:, :-1])
    return layer_norm(selu(mapped.transpose(0, 1)), (width,))


def random_layers(tokens: Tensor, layers: Sequence[Tensor]) -> Tensor:
    """Tokens (b, t, inputs) through one layer after another, as in `random_layer`."""
    for weights in layers:
        tokens = random_layer(tokens, weights)
    return tokens


HEADS = 4


class Obfuscator(nn.Module):
    """Images and the random layers of a key to encoded images.

    Args:
        shape: Of an image, (c, h, w).
        patch_size: Side of a square patch in pixels; it must divide both sides.
        width: Numbers a token: an even square (64, 144, 256, ...), for a token becomes a square of the encoded image.
        blocks: Learned stacks; a random layer follows each, and a second one the last.
        depth: SAU layers a stack.

    Raises:
        ValueError: Sizes that do not fit.
    """

    def __init__(self, shape: tuple[int, int, int], *, patch_size: int, width: int, blocks: int, depth: int) -> None:
        super().__init__()
        check_sizes(width=width, blocks=blocks, depth=depth)
        down, across = patch_grid(shape[1], shape[2], patch_size)
        self.patch_size, self.width, self.depth, self.side = patch_size, width, depth, math.isqrt(width)
        self.locations, numbers = down * across, shape[0] * patch_size**2
        self.encoded = (1, down * self.side, across * self.side)
        self.standardise = Standardise(torch.zeros(1, shape[0], 1, 1))
        self.enter = nn.Identity() if numbers == width else nn.Linear(numbers, width)
        self.stacks = nn.ModuleList(
            nn.Sequential(*(SAULayer(width, HEADS, self.locations if first else 0, True) for first in order))
            for order in [[True] + [False] * (depth - 1)] * blocks
        )

    def standardise_by(self, images: Tensor) -> None:
        """Standardise images by the mean and deviation of (n, c, h, w)."""
        self.standardise = Standardise(images)

    def draw(self, draw: Draw) -> list[Tensor]:
        """A key's `blocks` + 1 random layers, as in `draw_layers`."""
        layers = len(self.stacks) + 1
        return draw_layers(draw, locations=self.locations, inputs=self.width, width=self.width, layers=layers)

    def forward(self, images: Tensor, layers: Sequence[Tensor]) -> Tensor:
        """Encoded images (n, 1, h', w'): tokens of mean 0, variance 1."""
        tokens = self.enter(cut(self.standardise(images), self.patch_size))
        for stack, weights in zip(self.stacks, layers[:-1], strict=True):
            tokens = random_layer(stack(tokens), weights)
        return fold(random_layer(tokens, layers[-1]), self.encoded, self.side)


WARM_UP = 100
LAST_RATE = 0.05
LONGEST_GRADIENT = 1.0
DECODER_DEPTH = 3
SMALLEST_VARIANCE = 1e-12

Encode = Callable[[Tensor, Sequence[Tensor]], Tensor]


@dataclass(frozen=True)
class Opponents:
    """Training of an obfuscator.

    Args:
        steps: Training steps, half of them the obfuscator's.
        batch: Images a step, at least 2.
        lambda_reid, lambda_rec: Weights of the attacker's and of the decoder's loss.
        lambda_match: Weight of `agreement` between encodings under two keys; the paper's is 0.
        learning_rate: Peak rate of Adam, for all networks.
        width, depth: Of the attacker's towers; the decoder has the same width.
        relations: Whether the towers are told how a row stands to the others of its batch.
        precision: Arithmetic of the networks; losses and weights stay float32.
        compiled: Compile the obfuscator with torch.compile.
    """

    steps: int
    batch: int
    lambda_reid: float
    lambda_rec: float
    lambda_match: float
    learning_rate: float
    width: int
    depth: int
    relations: bool
    precision: Precision
    compiled: bool


@dataclass(frozen=True)
class Losses:
    """Mean last losses: attacker's `reid` (log(batch) at chance) and decoder's `rec`."""

    reid: float
    rec: float


def train_obfuscator(
    obfuscator: Obfuscator, images: Tensor, opponents: Opponents, seed: int,
    after: Callable[[int], None] = lambda done: None,
) -> Losses:  # fmt: skip
    """Train `obfuscator` in place on public images; return the final losses.

    Same seed, same bits on a CPU. `after` is called with the number of steps done, after each. Raises
    FloatingPointError if a loss is no longer finite.
    """
    device, batch = images.device, min(opponents.batch, len(images))
    c, h, w = images.shape[1:]
    with seeded(derive(seed, "opponents"), device):
        towers = Towers(*(_tower(opponents, shape) for shape in ((c, h, w), obfuscator.encoded))).to(device)
        decoder = Decoder(
            obfuscator.encoded, (c, h, w), patch_size=obfuscator.patch_size, width=opponents.width, depth=DECODER_DEPTH
        ).to(device)
    decoder.start_at(images)
    inverse = _Autocast(decoder, opponents.precision)
    estimators = nn.ModuleList((towers, decoder))
    encode = _encoder(obfuscator, opponents, device)
    movers = [adam(network.parameters(), opponents.learning_rate, device) for network in (obfuscator, estimators)]
    decoder_key = obfuscator.draw(_normal(derive(seed, "decoder-key"), device))
    order, links = generator(derive(seed, "rows"), device), torch.arange(batch, device=device)[:, None].expand(-1, 2)
    unit = images.var(dim=0, correction=0).mean().clamp_min(SMALLEST_VARIANCE)
    check = max(1, opponents.steps // 50)
    sums, means = torch.zeros(2, device=device), torch.zeros(2, device=device)

    def play(hiding: bool, raw: Tensor, *key: Tensor) -> Tensor:
        """A step of the obfuscator, or of its opponents: both losses, (2,)."""
        estimators.requires_grad_(not hiding)
        with torch.set_grad_enabled(hiding):
            fresh, fixed = encode(raw, key), encode(raw, decoder_key)
        reid, rec = towers.loss(raw, fresh, links), (inverse(fixed) - raw).square().mean() / unit
        loss = opponents.lambda_rec * rec - opponents.lambda_reid * reid if hiding else reid + rec
        if hiding and opponents.lambda_match:
            loss = loss + opponents.lambda_match * agreement(*(cut(rows, obfuscator.side) for rows in (fresh, fixed)))
        _step(movers[not hiding], (obfuscator,) if hiding else (towers, decoder), loss)
        return torch.stack((reid.detach(), rec.detach()))

    plays = [Replay(partial(play, hiding)) for hiding in (True, False)]
    for step in steps(opponents.steps, obfuscator, estimators, *movers, order, sums, means):
        raw = images[drawn(len(images), order, batch)]
        key = obfuscator.draw(_normal(derive(seed, "key", step), device))
        set_rate(movers[step % 2], opponents.learning_rate * _share(step, opponents.steps))
        sums += plays[step % 2](raw, *key)
        if (step + 1) % check == 0 or step + 1 == opponents.steps:
            means.copy_(sums / ((step % check) + 1))
            _judge(Losses(*means.tolist()), batch, step + 1, opponents.steps)
            sums.zero_()
        after(step + 1)
    return Losses(*means.tolist())


def agreement(first: Tensor, second: Tensor) -> Tensor:
    """Agreement of relations between rows across keys, from 1 to 0.

    The mean over locations, and over whole rows, of the squared correlation between the Gram matrices of two
    encodings (n, t, d), n at least 3, without the diagonals: what `relational` matches by.
    """
    apart = 1 - torch.eye(len(first), device=first.device)  # a boolean index would make a GPU wait
    sides = []
    for tokens in (first, second):
        centred = (tokens - tokens.mean(dim=0)).transpose(0, 1)
        gram = centred @ centred.transpose(1, 2)
        rows = torch.cat((gram, gram.sum(dim=0, keepdim=True))) * apart
        rows = (rows - rows.sum(dim=(1, 2), keepdim=True) / apart.sum()) * apart
        sides.append(rows / rows.norm(dim=(1, 2), keepdim=True).clamp_min(SMALLEST_VARIANCE))
    agreeing: Tensor = (sides[0] * sides[1]).sum(dim=(1, 2)).square().mean()
    return agreeing


def _normal(seed: int, device: torch.device) -> Draw:
    """Draw on the device: nothing in training is secret."""
    return partial(torch.randn, generator=generator(seed, device), device=device)


class _Autocast(nn.Module):
    """A network in the given arithmetic; its output is float32."""

    def __init__(self, network: nn.Module, precision: Precision) -> None:
        super().__init__()
        self.network, self.precision = network, precision

    def forward(self, rows: Tensor) -> Tensor:
        with torch.autocast(rows.device.type, dtype=torch.bfloat16, enabled=self.precision == "bfloat16"):
            out: Tensor = self.network(rows)
        return out.float()


def _tower(opponents: Opponents, shape: tuple[int, int, int]) -> nn.Module:
    width, depth, relations = opponents.width, opponents.depth, opponents.relations
    return _Autocast(Tower("sau", shape, width=width, depth=depth, relations=relations), opponents.precision)


def _encoder(obfuscator: Obfuscator, opponents: Opponents, device: torch.device) -> Encode:
    network = torch.compile(obfuscator) if opponents.compiled else obfuscator

    def encode(images: Tensor, layers: Sequence[Tensor]) -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=opponents.precision == "bfloat16"):
            out: Tensor = network(images, layers)
        return out.float()

    return encode


def _share(step: int, steps: int) -> float:
    """The share of the peak learning rate at a step."""
    rise = min(1.0, (step + 1) / min(WARM_UP, max(1, steps // 10)))
    return rise * (LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * step / steps)))


def _step(mover: torch.optim.Adam, networks: Sequence[nn.Module], loss: Tensor) -> None:
    mover.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    for network in networks:
        nn.utils.clip_grad_norm_(network.parameters(), LONGEST_GRADIENT)
    mover.step()


def _judge(losses: Losses, batch: int, step: int, total: int) -> None:
    if not (math.isfinite(losses.reid) and math.isfinite(losses.rec)):
        raise FloatingPointError(
            f"training diverged by step {step}: losses must be finite, got {losses}; lower learning_rate or lambda_reid"
        )
    chance = math.log(batch)
    report(f"obfuscator, L_reid {losses.reid:.2f} of {chance:.2f} at chance, L_rec {losses.rec:.3f}, step", step, total)
