"""Models of timm as extractors; the CVAE paper uses `timm:vit_base_patch14_dinov2.lvd142m`.

Source: Wightman 2019, PyTorch Image Models; Oquab et al. 2023 (DINOv2), as in Di Salvo et al. 2024.

Differences from the usual evaluation of such models:
- The whole image is resized to the model's side, where timm resizes to a little more and cuts the centre out. With
  `--features`, image files are prepared at that side; what is smaller (images of a fixed size, releases) is enlarged.
- Images stay float32 between resizing and normalising, neither rounded to 8 bits nor clipped to [0, 1]. Interpolation
other than bilinear and bicubic is replaced by bicubic; all of it is antialiased. - A grey image becomes three equal
channels.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import torch

from bench.contract.extractor import Embedding, Extractor, check_images
from bench.features.weights import Loaded, load_checked, read_checkpoint, weights_file
from bench.nets.training import seeded
from bench.types import Dataset, NotApplicable, State
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
        path = weights_file(self.model, self.weights)
        status = path.stat()
        return _sha256(path, status.st_size, status.st_mtime_ns)

    def fit(self, public: Dataset, seed: int) -> PretrainedFeatures:
        """The model with its weights; nothing is learned. Raises NotApplicable for tables."""
        check_images(public, self.name)
        return self.load({})

    def load(self, state: State) -> PretrainedFeatures:
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
        return PretrainedFeatures(
            network=network.eval().requires_grad_(False),
            channels=channels,
            side=(self.size, self.size) if self.size else (height, across),
            mode=data["interpolation"] if data["interpolation"] in ("bilinear", "bicubic") else "bicubic",
            mean=torch.tensor(data["mean"]).view(-1, 1, 1),
            std=torch.tensor(data["std"]).view(-1, 1, 1),
            loaded=loaded,
            batch=self.batch,
        )


@lru_cache(maxsize=4)
def _sha256(path: Path, size: int, changed: int) -> str:
    """SHA-256 of a file, cached, since some hold gigabytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, eq=False)
class PretrainedFeatures(Embedding):
    """A timm model without its classifier, and how its input is prepared."""

    network: torch.nn.Module
    channels: int
    side: tuple[int, int]
    mode: str
    mean: torch.Tensor
    std: torch.Tensor
    loaded: Loaded
    batch: int

    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """Images (n, c, h, w) of any side to (n, d)."""
        if samples.ndim != 4 or samples.shape[1] not in (1, self.channels):
            raise NotApplicable(
                f"timm models read images of 1 or {self.channels} channels, and these rows have shape "
                f"{tuple(samples.shape[1:])}"
            )
        device = samples.device
        self.network.to(device)
        images = samples
        if tuple(images.shape[2:]) != self.side:
            images = torch.nn.functional.interpolate(
                images, size=self.side, mode=self.mode, antialias=True, align_corners=False
            )
        normal = (images.expand(-1, self.channels, -1, -1) - self.mean.to(device)) / self.std.to(device)
        vectors: torch.Tensor = self.network(normal)
        return vectors.flatten(1)

    def state(self) -> State:
        """Empty: weights are read again from their file."""
        return {}

    def notes(self) -> Mapping[str, int | float | str]:
        """The input side, and changes to the weights."""
        notes: dict[str, int | float | str] = {"input side": self.side[0]}
        if self.loaded.converted:
            notes["weights"] = "converted by timm to its names, or to another grid of positions"
        if self.loaded.zero:
            notes["weights that are zero throughout"] = self.loaded.zero
        return notes
