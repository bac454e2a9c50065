"""Releases of the keyed encoders beside the bare `torch.nn.functional.linear` products of the same matrices.

What an encoder takes on top of its baseline goes into its other steps: standardising, cutting and folding patches,
activations and norms, shuffles and signs, hashing the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from made.datasets import unlabelled
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor
from torch.nn.functional import linear

from bench.nets.patches import cut
from bench.randomness import Secret
from bench.types import Dataset, Key, Method
from methods.dauntless import Dauntless
from methods.instahide import InstaHide
from methods.neuracrypt import NeuraCrypt
from methods.random_layers import RandomLayers

N, SIDE, PATCH = 500, 64, 16
METHODS: dict[str, Method] = {
    "dauntless": Dauntless(),
    "random-layers, depth 3": RandomLayers(depth=3),
    "neuracrypt, depth 7, batch statistics": NeuraCrypt(),
    "neuracrypt, depth 7, fixed statistics": NeuraCrypt(statistics="fixed"),
    "instahide, k = 3": InstaHide(k=3),
}
CASES = [pytest.param(name, marks=pytest.mark.benchmark(group=f"{name}, {N} images of {SIDE}")) for name in METHODS]


@pytest.fixture(scope="module")
def images() -> Dataset:
    source = torch.Generator().manual_seed(0)
    return unlabelled(torch.rand(N, 1, SIDE, SIDE, generator=source))


def drawn(name: str, images: Dataset) -> Key:
    return METHODS[name].fit(images, 0).sample_key(Secret.of_seed(1))


def factors(name: str, images: Dataset) -> list[tuple[Tensor, Sequence[Tensor]]]:
    """Rows (b, q), and the matrices (out, q) that are applied to them one after another."""
    state, patches = drawn(name, images).state(), cut(images.samples, PATCH).transpose(0, 1).contiguous()
    if name.startswith("dauntless"):
        return [(rows, [weights.T]) for rows, weights in zip(patches, state["weights"], strict=True)]
    if name.startswith("random-layers"):
        by_place = state["weights"][:, :, :-1].transpose(0, 1)
        return [(rows, list(maps.transpose(1, 2))) for rows, maps in zip(patches, by_place, strict=True)]
    if name.startswith("neuracrypt"):
        maps = [state["first"], *state["hidden"], state["last"]]
        return [(patches.flatten(0, 1), [weights[:-1].T for weights in maps])]
    # The mixture of k rows as a dense matrix (n, n) of the right number of entries a row.
    links = drawn(name, images).release(images).links
    assert links is not None
    mixture = torch.zeros(N, N).index_put_((links[:, 1], links[:, 0]), torch.tensor(1 / 3))
    return [(images.samples.flatten(1).T.contiguous(), [mixture])]


def products(work: list[tuple[Tensor, Sequence[Tensor]]]) -> list[Tensor]:
    done = []
    for rows, maps in work:
        for weights in maps:
            rows = linear(rows, weights)
        done.append(rows)
    return done


@pytest.mark.parametrize("name", CASES)
def test_baseline_bare_products(benchmark: BenchmarkFixture, images: Dataset, name: str) -> None:
    done = benchmark(products, factors(name, images))
    assert sum(part.numel() for part in done) == images.samples.numel()


@pytest.mark.parametrize("name", CASES)
def test_release(benchmark: BenchmarkFixture, images: Dataset, name: str) -> None:
    key = drawn(name, images)
    released = benchmark(key.release, images).samples
    assert released.shape == images.samples.shape
    assert torch.equal(released, drawn(name, images).release(images).samples)
