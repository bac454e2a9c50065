"""Models of timm as extractors; the CVAE paper uses `timm:vit_base_patch14_dinov2.lvd142m`.

Source: Wightman 2019, PyTorch Image Models; Oquab et al. 2023 (DINOv2), as in Di Salvo et al. 2024.

Differences from the usual evaluation of such models:
- The whole image is resized to the model's side, where timm resizes to a little more and cuts the centre out. With
  `--features`, image files are prepared at that side; what is smaller (images of a fixed size, releases) is enlarged.
- Interpolation other than bilinear and bicubic is replaced by bicubic. For the rest of the input see
  `bench.backbones.image_network`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from bench.backbones.image_network import ImageNetwork
from bench.backbones.weights import Loaded, file_sha256, load_checked, read_checkpoint, weights_file
from bench.contract.extractor import Extractor, check_images
from bench.nets.training import seeded
from bench.types import Dataset, State
from bench.validation import at_least


@dataclass(frozen=True)
class Timm(Extractor):
    """The output of a pretrained timm model before its classifier.

    Args:
        model: Its name in timm, with the tag of its weights behind a dot.
        weights: File with them (safetensors, or a state dict); None for those of the hub, or of its cache.
        size: Side in pixels that images are resized to; None for the one the model was trained at. Position embeddings
            follow.
        batch: Images at a time.
    """

    name: ClassVar[str] = "timm"
    source: ClassVar[str] = "Wightman 2019 (PyTorch Image Models), doi:10.5281/zenodo.4414861"
    requires: ClassVar[str] = "the model's weights: --weights FILE, or the Hugging Face hub or its cache"
    needs_public: ClassVar[bool] = False
    confidential: ClassVar[frozenset[str]] = frozenset({"weights"})
    packages: ClassVar[tuple[str, ...]] = ("timm",)  # it sets sides, means and poolings, and converts weights

    model: str
    weights: str | None = None
    size: int | None = None
    batch: int = 16

    def __post_init__(self) -> None:
        at_least(1, size=self.size, batch=self.batch)
        import timm  # takes seconds to import: only if a model is named

        known = {*timm.list_models(), *timm.list_pretrained()}
        if self.model not in known:
            near = difflib.get_close_matches(self.model, known, n=3)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise ValueError(f"timm has no model {self.model!r}; {hint}timm.list_pretrained() names all {len(known)}")

    @property
    def side(self) -> int | None:
        """`size`, or the side that the model was trained at."""
        import timm

        config = timm.models.get_pretrained_cfg(self.model)
        return self.size or (None if config is None else int(config.input_size[1]))

    def stamp(self) -> str:
        """SHA-256 of the weights."""
        return file_sha256(weights_file(self.model, self.weights))

    def fit(self, public: Dataset, seed: int) -> ImageNetwork:
        """The model with its weights; nothing is learned. Raises NotApplicable for tables."""
        check_images(public, self.name)
        return self.load({})

    def load(self, state: State) -> ImageNetwork:
        """The model with weights from their file; DataError as `Extractor.stamp`."""
        import timm
        from timm.data.config import resolve_model_data_config

        config = timm.models.get_pretrained_cfg(self.model)
        fixed: dict[str, Any] = {}
        if self.size is not None and config is not None and config.fixed_input_size:
            fixed = {"img_size": self.size}
        with seeded(0):  # every number drawn here is replaced
            network: torch.nn.Module = timm.create_model(self.model, pretrained=False, num_classes=0, **fixed)
        data = resolve_model_data_config(network)  # type: ignore[no-untyped-call]
        path = weights_file(self.model, self.weights)
        heads = () if config is None else config.classifier or ()
        loaded = load_checked(
            network, read_checkpoint(path), heads=(heads,) if isinstance(heads, str) else tuple(heads), what=path.name
        )
        channels, height, across = data["input_size"]
        mode: Literal["bilinear", "bicubic"] = "bilinear" if data["interpolation"] == "bilinear" else "bicubic"
        return ImageNetwork(
            "timm", network.eval().requires_grad_(False), channels,
            (self.size, self.size) if self.size else (height, across), tuple(data["mean"]), tuple(data["std"]),
            self.batch, mode, _told(loaded),
        )  # fmt: skip


def _told(loaded: Loaded) -> dict[str, int | float | str]:
    """Notes on changes to the weights."""
    notes: dict[str, int | float | str] = {}
    if loaded.converted:
        notes["weights"] = "converted by timm to its names, or to another grid of positions"
    if loaded.zero:
        notes["weights that are zero throughout"] = loaded.zero
    return notes
