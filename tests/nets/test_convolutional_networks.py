"""The CADP paper's classifier has the depths of its Table 1, and no norm across rows where rows must stay apart."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bench.nets.convolutional_networks import resnet18, strided_cnn, usual_depth


@pytest.mark.parametrize(("shape", "first_block_side"), [((1, 64, 64), 16), ((3, 28, 28), 14), ((1, 8, 8), 8)])
def test_small_images_are_not_shrunk_away(shape, first_block_side):
    network = resnet18(shape, 3, width=8).eval()
    sides = []
    network.layer1.register_forward_hook(lambda module, inputs, output: sides.append(output.shape[-1]))
    assert network(torch.rand(2, *shape)).shape == (2, 3)
    assert sides == [first_block_side]


def test_full_width_is_the_published_resnet_18():
    # 11.69 M parameters with 1,000 classes and colour (He et al. 2016; torchvision counts 11,689,512).
    assert sum(weight.numel() for weight in resnet18((3, 224, 224), 1000).parameters()) == 11_689_512


def test_features_are_eight_widths_wide():
    assert resnet18((1, 32, 32), 1, width=8, features=True).eval()(torch.rand(2, 1, 32, 32)).shape == (2, 64)


@pytest.mark.parametrize(("side", "depth", "widths"), [(28, 2, [8, 16]), (128, 5, [8, 16, 32, 64, 128]), (8, 1, [8])])
def test_the_depth_is_that_of_table_1(side: int, depth: int, widths: list[int]) -> None:
    network = strided_cnn((1, side, side), 3)
    convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    assert usual_depth(side, side) == depth
    assert [layer.out_channels for layer in convolutions] == widths
    assert {layer.stride for layer in convolutions} == {(2, 2)}
    assert sum(isinstance(layer, nn.Dropout2d) for layer in network.modules()) == depth
    assert [layer.out_features for layer in network.modules() if isinstance(layer, nn.Linear)] == [100, 3]
    assert network(torch.zeros(2, 1, side, side)).shape == (2, 3)


def test_with_groups_no_row_sees_another() -> None:
    torch.manual_seed(0)
    network = strided_cnn((1, 16, 16), 2, norm="group", dropout=0.0).train()
    rows = torch.rand(4, 1, 16, 16)
    assert torch.allclose(network(rows)[:1], network(rows[:1]), atol=1e-6)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())
    norms = [layer for layer in network.modules() if isinstance(layer, nn.GroupNorm)]
    assert [(norm.num_groups, norm.num_channels, norm.affine) for norm in norms] == [(1, 8, True), (1, 16, True)]
