"""Training of an obfuscator against an attacker, with a decoder.

Source: Yala et al., Syfer (2022), Algorithm 1. Each step encodes a batch of public images under a fresh key and under
the decoder's key, which stays the same. Even steps change the obfuscator, which minimises lambda_rec L_rec -
lambda_reid L_reid; odd steps change the attacker, which minimises L_reid, and the decoder, which minimises L_rec.

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

from bench.checkpoint import steps
from bench.nets.classifier import Precision
from bench.nets.contrastive_towers import Tower, Towers
from bench.nets.cuda_graphs import Replay, adam, set_rate
from bench.nets.decoder import Decoder
from bench.nets.initialisation import seeded
from bench.nets.obfuscator import Draw, Obfuscator
from bench.nets.patches import cut
from bench.progress import report
from bench.seeds import derive, drawn, generator

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


def train_obfuscator(obfuscator: Obfuscator, images: Tensor, opponents: Opponents, seed: int) -> Losses:
    """Train `obfuscator` in place; return the final losses.

    Args:
        obfuscator: On the device of the images.
        images: (n, c, h, w) float32, public; at least 2.
        opponents: Sizes and weights.
        seed: Same seed, same bits on a CPU.

    Raises:
        FloatingPointError: A loss is no longer finite.
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
    return Losses(*means.tolist())


def agreement(first: Tensor, second: Tensor) -> Tensor:
    """Agreement of relations between rows across keys.

    1 if unchanged, near 0 if none survives.

    The mean over locations, and over whole rows, of the squared correlation between the Gram matrices of two encodings
    of the same rows, without the diagonals: what `relational` matches by.

    Args:
        first, second: (n, t, d) float32 tokens of the same n rows, n at least 3.
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
