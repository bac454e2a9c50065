"""Float holes: noise in floating point tells its raw row by the last bits, noise on a grid does not."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from made.attack_games import play
from made.datasets import unlabelled
from made.toy_methods import laplace
from torch import Tensor

from attacks.float_holes import FloatHoles, by_product, by_sum
from bench.randomness import Secret
from bench.types import Dataset, Key, Mechanism, NotApplicable, Release, Scheme, State, View, paired
from methods.dp_image import DPImage
from methods.dp_simple import DPSimple
from methods.identity import Identity
from methods.mosaic import Mosaic
from methods.noise import Noise

WIDTH, SCALE = 256, 20.0


def rows(n: int = 40, seed: int = 0) -> Dataset:
    """Grey images of 8 bits, 16 x 16 pixels."""
    drawn = torch.randint(256, (n, 1, 16, 16), generator=torch.Generator().manual_seed(seed))
    return unlabelled(drawn / 255)


class Stated(Mechanism):
    """Noise of scale SCALE on the row as it is."""

    @property
    def scale(self) -> Tensor:
        return torch.full((WIDTH,), SCALE, dtype=torch.float64)

    def locate(self, data: Dataset) -> Tensor:
        return data.samples.flatten(1).double()

    def observe(self, release: Release) -> Tensor:
        return release.samples.flatten(1).double()


@dataclass(frozen=True)
class FloatNoise(Scheme, Key):
    """Adds Laplace noise in floating point, by one operation or two."""

    fused: bool
    secret: Secret = field(default_factory=lambda: Secret(bytes(32)))

    def sample_key(self, secret: Secret) -> Key:
        return FloatNoise(self.fused, secret)

    def load_key(self, state: State) -> Key:
        return FloatNoise(self.fused, Secret.load(state["secret"]))

    def state(self) -> State:
        return {"secret": self.secret.tensor()}

    def mechanism(self) -> Mechanism:
        return Stated()

    def release(self, private: Dataset) -> Release:
        noise = laplace(private.samples.shape, self.secret.stream())
        if self.fused:
            return paired((private.samples.double() + SCALE * noise.double()).float(), None)
        return paired(private.samples + SCALE * noise, None)


@pytest.mark.parametrize("fused", [True, False])
def test_every_row_under_float_noise_has_one_possible_raw_row(fused: bool) -> None:
    game = play(FloatHoles(elements=WIDTH), FloatNoise(fused), rows())
    assert game.top_1 == 1
    assert bool(((game.table == 0).sum(dim=0) == 1).all())


@pytest.mark.parametrize(
    "method",
    [DPSimple(scale=20.0), DPSimple(epsilon=1.0), DPSimple(epsilon=0.001), Mosaic(cell=2, epsilon=1.0),
     Mosaic(cell=4, epsilon=1.0, neighbour_pixels=16)],
)  # fmt: skip
def test_noise_on_a_grid_has_no_holes(method: DPSimple | Mosaic) -> None:
    assert not bool(play(FloatHoles(elements=WIDTH), method, rows()).table.any())


def test_identity_is_found_and_noise_is_not() -> None:
    assert play(FloatHoles(), Identity(), rows()).top_1 == 1
    assert not bool(play(FloatHoles(), Noise(), rows()).table.unique().numel() > 1)


def test_codes_that_are_decoded_show_no_bits() -> None:
    method = DPImage(width=16, steps=2, batch=8)
    with pytest.raises(NotApplicable, match="not what is released"):
        play(FloatHoles(), method, rows())


def test_a_pair_has_the_same_score_in_every_block() -> None:
    scores = play(FloatHoles(), FloatNoise(True), rows()).scores
    assert torch.equal(scores.block(slice(3, 9), slice(20, 31)), scores.block(slice(None), slice(None))[3:9, 20:31])


def test_what_noise_made_counts_as_reachable() -> None:
    located = torch.rand(10_000, generator=torch.Generator().manual_seed(1)).double()
    noise, scale = laplace((10_000,), Secret(bytes(32)).stream()), torch.full((10_000,), SCALE).double()
    assert bool(by_sum(located, (located.float() + noise).double()).all())
    assert bool(by_product(located, (located.float() + SCALE * noise).double(), scale=scale).all())
    assert bool(by_product(located, (located + SCALE * noise.double()).float().double(), scale=scale).all())


def test_an_element_is_tested_at_least() -> None:
    with pytest.raises(ValueError, match="elements must be at least 1"):
        FloatHoles(elements=0)
    view = View(rows(2), FloatNoise(True), rows(2), rows(2))
    with pytest.raises(NotApplicable, match="released rows have 128 numbers"):
        FloatHoles().fit(view, 0).score(Release(torch.zeros(3, 128), None, None))
