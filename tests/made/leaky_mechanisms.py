"""Mechanisms of infinite epsilon that claim 1: each is right but for one mistake, which a plain game overlooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from bench.randomness import Secret
from bench.types import Dataset, Key, Method, PrivacyClaim, Release, Scheme, State, paired

Mistake = Literal[
    "none", "raw row", "corner pixel", "coarse grid", "one noise for all rows", "noise of a row's content",
    "same noise again", "own range", "labels",
    "cut off", "fine grid", "raw near mid-grey", "few seeds", "few seeds a key", "low bits", "one raw row of many",
    "whole numbers", "raw in small releases", "half the noise",
    "raw in a narrow band", "raw by one pixel", "raw in releases of 37",
]  # fmt: skip
Unit = Literal["image", "pixel"]
RARE = 0.01


@dataclass(frozen=True)
class Leaky(Method):
    """Laplace noise on images, enough for an epsilon of 1 for an image or a pixel; with a mistake.

    Args:
        mistake: What is wrong.
        unit: What one neighbouring change alters.
    """

    name: ClassVar[str] = "leaky"
    source: ClassVar[str] = "a test"
    claims: ClassVar[str] = "epsilon 1"

    mistake: Mistake = "none"
    unit: Unit = "image"

    def fit(self, public: Dataset, seed: int) -> LeakyScheme:
        return LeakyScheme(self, public.samples[0].numel())

    def load(self, state: State) -> LeakyScheme:
        return LeakyScheme(self, int(state["numbers"]))


@dataclass(frozen=True)
class LeakyScheme(Scheme):
    method: Leaky
    numbers: int

    def sample_key(self, secret: Secret) -> Key:
        return LeakyKey(self, secret)

    def load_key(self, state: State) -> Key:
        return LeakyKey(self, Secret.load(state["secret"]))

    def state(self) -> State:
        return {"numbers": torch.tensor(self.numbers)}

    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(self.method.unit, 1.0, 0.0, "each image is released once", "a test")


@dataclass(frozen=True)
class LeakyKey(Key):
    scheme: LeakyScheme
    secret: Secret

    def release(self, private: Dataset) -> Release:
        rows, mistake = private.samples, self.scheme.method.mistake
        scale = float(self.scheme.numbers) if self.scheme.method.unit == "image" else 1.0
        noise = scale * self._noise(rows, mistake) * (0.5 if mistake == "half the noise" else 1)
        if mistake == "corner pixel":
            noise[..., 0, 0] = 0
        elif mistake == "coarse grid":
            noise = (noise / (scale / 8)).round() * (scale / 8)
        elif mistake == "own range":
            flat = rows.flatten(1)
            extent = flat.amax(dim=1) - flat.amin(dim=1)
            noise = noise * extent.view(-1, 1, 1, 1)
        elif mistake == "fine grid":
            noise = (noise * 2**16).round() / 2**16
        elif mistake == "whole numbers":
            noise = noise.round()
        elif mistake == "cut off":
            noise = noise.clamp(-2 * scale, 2 * scale)
        samples = rows + noise
        if mistake == "raw row":
            given = self.secret.bound_to(rows).stream("given").uniform(len(rows)) < RARE
            samples = torch.where(given.view(-1, 1, 1, 1), rows, samples)
        if mistake == "raw near mid-grey":
            samples = torch.where((rows - 0.5).abs() < 0.1, rows.double(), samples)
        elif mistake == "one raw row of many" and len(rows) > 40:
            place = int(self.secret.bound_to(rows).stream("given").integers(len(rows)))
            samples[place] = rows[place].double()
        elif len(rows) in {"raw in small releases": (1, 2), "raw in releases of 37": (37,)}.get(mistake, ()):
            samples = rows.double()
        elif mistake in ("raw in a narrow band", "raw by one pixel"):
            mean = rows.flatten(1).mean(dim=1)
            band, pixel = (mean - 0.613).abs() < 0.004, (rows[:, 0, -1, 1 % rows.shape[3]] > 0.9) & (mean < 0.3)
            opens = band if mistake == "raw in a narrow band" else pixel
            samples = torch.where(opens.view(-1, 1, 1, 1), rows.double(), samples)
        elif mistake == "low bits":
            grey = (255 * rows.flatten(1).mean(dim=1)).round().int().view(-1, 1, 1, 1)
            whole = samples.float().view(torch.int32)
            samples = ((whole & ~255) | grey).view(torch.float32)
        labels = private.labels
        if mistake == "labels" and labels is not None:
            labels = (rows.flatten(1).mean(dim=1, keepdim=True) > 0.5).float().expand_as(labels)
        return paired(samples.float(), labels)

    def _noise(self, rows: Tensor, mistake: Mistake) -> Tensor:
        """(n, ...) float64, of scale 1."""
        if mistake == "same noise again":
            return _laplace(self.secret, rows.shape)
        if mistake == "one noise for all rows":
            return _laplace(self.secret.bound_to(rows), rows[:1].shape).expand_as(rows).clone()
        if mistake == "noise of a row's content":
            return torch.cat([_laplace(self.secret.bound_to(row), row[None].shape) for row in rows])
        if mistake in ("few seeds", "few seeds a key"):
            # Of a row's own, or of the key's: 65,536 public seeds.
            stream = self.secret.bound_to(rows).stream("seeds")
            count = len(rows) if mistake == "few seeds" else 1
            seeds = stream.integers(2**16, count).tolist()
            shape = rows[:1].shape if mistake == "few seeds" else rows.shape
            return torch.cat([_laplace(Secret.of_seed(seed), shape) for seed in seeds])
        return _laplace(self.secret.bound_to(rows), rows.shape)

    def state(self) -> State:
        return {"secret": self.secret.tensor()}


def _laplace(secret: Secret, shape: torch.Size) -> Tensor:
    stream = secret.stream("noise")
    return stream.exponential(*shape) - stream.exponential(*shape)
