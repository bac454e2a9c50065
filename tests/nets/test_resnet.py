import pytest
import torch

from bench.nets.convolutional_networks import resnet18


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
