"""Needle: a few raw numbers name everybody, wherever and however they stand; without any, all pairs tie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from made.attack_games import play
from made.datasets import unlabelled
from made.toy_methods import toy_seed

from attacks.nearest_neighbour import NearestNeighbour
from attacks.needle import Needle
from bench.seeds import derive, generator
from bench.types import Dataset, Key, NotApplicable, Release, Scheme, View, paired
from methods.dp_simple import DPSimple
from methods.identity import Identity
from methods.known_leak import KnownLeak
from methods.noise import Noise

SMALL = Needle(keys=2)
N = 120


def images(n: int = N, side: int = 16, seed: int = 0) -> Dataset:
    """Smooth images of 8-bit grey levels."""
    source = generator(seed)
    coarse = torch.randn(n, 1, 4, 4, generator=source)
    smooth = 0.5 + 0.15 * torch.nn.functional.interpolate(coarse, size=(side, side), mode="bilinear")
    grain = 0.05 * torch.randn(n, 1, side, side, generator=source)
    return unlabelled(((smooth + grain).clamp(0, 1) * 255).round() / 255)


def features(n: int = N) -> Dataset:
    """Vectors without ties."""
    return unlabelled(torch.randn(n, 64, generator=generator(0)))


Hides = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


@dataclass(frozen=True)
class Hidden(Scheme, Key):
    """Releases what `hides` makes of the rows by random numbers of its own for each key."""

    hides: Hides
    seed: int = 0

    def sample_key(self, secret):
        return replace(self, seed=toy_seed(secret))

    def load_key(self, state):
        return self

    def state(self):
        return {}

    def release(self, private):
        rows = private.samples
        return paired(self.hides(rows.flatten(1), generator(self.seed)).reshape(rows.shape), None)


def normal(rows, source):
    return torch.randn(rows.shape, generator=source)


def at_secret_places(rows, source, count=4):
    noise, places = normal(rows, source), torch.randperm(rows.shape[1], generator=source)[:count]
    noise[:, places] = rows[:, places]
    return noise


def moved(rows, source, count=6):
    """Raw columns at other places."""
    noise = normal(rows, source)
    here, there = (torch.randperm(rows.shape[1], generator=source)[:count] for _ in range(2))
    noise[:, there] = rows[:, here]
    return noise


def rescaled(rows, source, count=6):
    """Moved, each by a scale and a sign of its own."""
    noise = normal(rows, source)
    here, there = (torch.randperm(rows.shape[1], generator=source)[:count] for _ in range(2))
    noise[:, there] = rows[:, here] * torch.randn(count, generator=source) + torch.randn(count, generator=source)
    return noise


def shuffled_columns(rows, source):
    return rows[:, torch.randperm(rows.shape[1], generator=source)]


def border(rows, source):
    """The first line stays."""
    noise = normal(rows, source)
    noise[:, :16] = rows[:, :16]
    return noise


def holes_of_rows(rows, source, count=6):
    """Other places in every row."""
    noise = normal(rows, source)
    places = torch.rand(rows.shape, generator=source).argsort(dim=1)[:, :count]
    return noise.scatter(1, places, rows.gather(1, places))


def near_grey(rows, source):
    return torch.where((rows - 0.5).abs() < 0.02, rows, normal(rows, source))


def low_byte(rows, source):
    """The grey level in the last byte of the mantissa of noise."""
    bits = normal(rows, source).view(torch.int32)
    return ((bits & ~255) | (rows * 255).round().int()).view(torch.float32)


def low_bits_of_bytes(rows, source):
    """Bytes of noise whose low four bits are the grey level's."""
    high = 16 * torch.randint(16, rows.shape, generator=source)
    return (high + (rows * 255).round().remainder(16)) / 255


def renamed(rows, source, count=9):
    """Noise of bytes; raw grey levels under secret names at secret places."""
    levels, noise = (rows * 255).round().long(), torch.randint(256, rows.shape, generator=source)
    places, names = torch.randperm(rows.shape[1], generator=source)[:count], torch.randperm(256, generator=source)
    noise[:, places] = names[levels[:, places]]
    return noise.float() / 255


def masked_low_bits(rows, source):
    """Low four bits of the grey levels, changed by one mask of the key."""
    mask = int(torch.randint(1, 16, (1,), generator=source))
    high = 16 * torch.randint(16, rows.shape, generator=source)
    return (high + ((rows * 255).round().long().remainder(16) ^ mask)) / 255


def blurred_by_noise(rows, source, count=8):
    """Raw columns elsewhere, with a little noise."""
    noise = normal(rows, source)
    here, there = (torch.randperm(rows.shape[1], generator=source)[:count] for _ in range(2))
    noise[:, there] = rows[:, here] + 0.002 * torch.randn(len(rows), count, generator=source)
    return noise


def coarse(rows, source, count=12):
    """Raw columns in steps of a 40th."""
    noise, places = normal(rows, source), torch.randperm(rows.shape[1], generator=source)[:count]
    noise[:, places] = (rows[:, places] * 40).round() / 40
    return noise


@pytest.mark.parametrize(
    "hides",
    [
        at_secret_places,
        moved,
        rescaled,
        shuffled_columns,
        border,
        holes_of_rows,
        near_grey,
        low_byte,
        low_bits_of_bytes,
        renamed,
        masked_low_bits,
        blurred_by_noise,
        coarse,
    ],
)
def test_nearly_everybody_is_named_by_what_is_left_of_images(hides):
    game = play(SMALL, Hidden(hides), images())
    assert game.top_1 > 0.9, game.attacker.notes()


@pytest.mark.parametrize("hides", [at_secret_places, moved, rescaled, shuffled_columns, holes_of_rows])
def test_nearly_everybody_is_named_by_what_is_left_of_features(hides):
    game = play(SMALL, Hidden(hides), features())
    assert game.top_1 > 0.9, game.attacker.notes()


@pytest.mark.parametrize("places", ["public", "secret"])
def test_four_pixels_of_a_known_leak_name_everybody_and_distances_find_nobody(places):
    leak = KnownLeak(keeps="pixels", places=places)
    assert play(SMALL, leak, images()).top_1 > 0.9
    # One of 120 right by chance: Poisson(1), above 9 less than once in a million.
    assert play(NearestNeighbour(), leak, images()).matched <= 9


@pytest.mark.parametrize(
    "of", [Noise(), KnownLeak(keeps="nothing"), KnownLeak(keeps="length"), DPSimple(scale=1.0), Hidden(normal)]
)
def test_without_raw_numbers_all_pairs_tie(of):
    game = play(SMALL, of, images())
    assert not game.attacker.looks
    assert game.attacker.notes()["looks"].startswith("none")
    assert (game.table == game.table[0, 0]).all()


def test_identity_is_fully_reidentified():
    assert play(SMALL, Identity(), images()).top_1 == 1


class Fewer(Hidden):
    """Leaves out a fifth of the rows and adds noise in their place."""

    def release(self, private):
        hidden = at_secret_places(private.samples.flatten(1), generator(self.seed), 12)
        kept = torch.randperm(len(hidden), generator=generator(derive(self.seed, "kept")))[: len(hidden) * 4 // 5]
        samples = torch.cat((hidden[kept], torch.randn(len(hidden) // 5, hidden.shape[1])))
        links = torch.stack((kept, torch.arange(len(kept))), dim=1)
        return Release(samples.reshape(-1, *private.samples.shape[1:]), None, links)


def test_rows_may_be_missing_and_others_added():
    private, scheme = images(), Fewer(normal)
    attacker = SMALL.fit(View(private, scheme, private, private), 0)
    release = scheme.release(private)
    table = attacker.score(replace(release, links=None)).block(slice(None), slice(None))
    right = table.argmax(dim=0)[release.links[:, 1]] == release.links[:, 0]
    assert right.double().mean() > 0.9


def test_the_same_seed_gives_the_same_scores():
    games = [play(SMALL, Hidden(moved), images()) for _ in range(2)]
    assert torch.equal(games[0].table, games[1].table)


def test_releases_without_links_are_not_applicable():
    class Unlinked(Hidden):
        def release(self, private):
            return Release(private.samples, None, None)

    with pytest.raises(NotApplicable, match="needle learns from links"):
        SMALL.fit(View(images(), Unlinked(normal), images(), images()), 0)
