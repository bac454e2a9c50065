"""Glow beside a FrEIA flow of the same shape: levels, steps, channels and subnets are the same, and so is the split.

FrEIA's AllInOneBlock holds a fixed random 1x1 convolution and a tanh-bounded scale, and FrEIA walks a graph of nodes;
ours learns the convolution and inverts it anew for every decode. Both run in float32 without gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor, nn

from bench.nets.glow import Glow
from bench.nets.training import seeded

N, SIDE, LEVELS, DEPTH, WIDTH = 128, 32, 3, 4, 64
Works = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]
GROUP = f"{N} images of {SIDE}, {LEVELS} levels of {DEPTH} steps, width {WIDTH}"


def subnet(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, WIDTH, 3, padding=1), nn.ReLU(),
        nn.Conv2d(WIDTH, WIDTH, 1), nn.ReLU(),
        nn.Conv2d(WIDTH, outputs, 3, padding=1),
    )  # fmt: skip


def freia() -> Works:
    pytest.importorskip("FrEIA")
    from FrEIA.framework import GraphINN, InputNode, Node, OutputNode
    from FrEIA.modules import AllInOneBlock, Flatten, IRevNetDownsampling, Split

    nodes = [InputNode(1, SIDE, SIDE)]
    leaves = []

    def leave(end: tuple[Node, int]) -> None:
        flat = Node(end, Flatten, {})
        leaves.extend((flat, OutputNode(flat.out0)))

    for level in range(LEVELS):
        nodes.append(Node(nodes[-1].out0, IRevNetDownsampling, {}))
        for _ in range(DEPTH):
            nodes.append(Node(nodes[-1].out0, AllInOneBlock, {"subnet_constructor": subnet, "permute_soft": True}))
        if level + 1 < LEVELS:
            nodes.append(Node(nodes[-1].out0, Split, {}))
            leave(nodes[-1].out1)
    leave(nodes[-1].out0)
    network = GraphINN(nodes + leaves).eval()
    sizes = [part.shape[1] for part in network(torch.zeros(1, 1, SIDE, SIDE))[0]]

    def decode(latent: Tensor) -> Tensor:
        image: Tensor = network(torch.split(latent, sizes, dim=1), rev=True)[0]
        return image

    return lambda images: torch.cat(network(images)[0], dim=1), decode


def glow() -> Works:
    network = Glow((1, SIDE, SIDE), levels=LEVELS, depth=DEPTH, width=WIDTH).eval()
    return lambda images: network.encode(images)[0], network.decode


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.rand(N, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("flow", [freia, glow])
@pytest.mark.benchmark(group=f"encode {GROUP}")
def test_encode(benchmark: BenchmarkFixture, images: Tensor, flow: Callable[[], Works]) -> None:
    with torch.no_grad(), seeded(0):
        latent = benchmark(flow()[0], images)
    assert latent.shape == (N, SIDE**2)


@pytest.mark.parametrize("flow", [freia, glow])
@pytest.mark.benchmark(group=f"decode {GROUP}")
def test_decode(benchmark: BenchmarkFixture, images: Tensor, flow: Callable[[], Works]) -> None:
    with torch.no_grad(), seeded(0):
        encode, decode = flow()
        back = benchmark(decode, encode(images))
    assert torch.allclose(back, images, atol=1e-4)
