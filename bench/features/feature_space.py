"""Feature spaces: fitted extractors, their vectors on disk, and their record."""

from __future__ import annotations

__figures__ = False

import hashlib
import math
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
import torch
from filelock import FileLock
from pydantic import JsonValue

from bench.contract.extractor import Embedding, Extractor, batches
from bench.contract.source import DataError
from bench.data.prepared import Prepared
from bench.data.splits import Splits
from bench.plugins.code_digest import plugin_digest
from bench.plugins.configured import Configured
from bench.plugins.spec import parse, told_parameters
from bench.progress import stage
from bench.results.build_folder import tag_cache
from bench.results.records import FeatureRecord
from bench.results.signed_json import content_key
from bench.results.store import Artefact, Store
from bench.types import Dataset, NotApplicable, State
from bench.wire.text import slug

VECTORS = {"vectors.npy", "done.npy"}
Read: TypeAlias = "Callable[[torch.Tensor], Iterator[torch.Tensor]]"
"""Images (n, c, h, w) to their vectors (b, d), in ordered batches."""
HELD = 2**28  # bytes of images in memory at a time: some extractors read 518 pixels a side
SCHEMA = 1  # of a stored extractor


class DamagedVectorsWarning(UserWarning):
    """Stored vectors are damaged and are computed again."""


@dataclass(frozen=True)
class VectorCache:
    """Vectors of a prepared data set's `n` rows, filled on demand."""

    folder: Path
    n: int

    def vectors(
        self, rows: np.ndarray, images: Callable[[np.ndarray], torch.Tensor], read: Read, *, block: int
    ) -> torch.Tensor:
        """Vectors (m, d) of some rows; `read` computes missing ones."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        tag_cache(self.folder.parent)
        with FileLock(self.folder.with_suffix(".lock")):
            stored = self._open()
            missing = np.arange(len(rows)) if stored is None else np.flatnonzero(~stored[1][rows])
            if len(missing):
                done = 0
                blocks = (missing[first : first + block] for first in range(0, len(missing), block))
                for batch in (part for places in blocks for part in read(images(rows[places]))):
                    vectors, filled = stored = stored or self._create(batch.shape[1])
                    at = rows[missing[done : done + len(batch)]]
                    vectors[at] = batch.cpu().numpy()
                    vectors.flush()
                    filled[at] = True
                    filled.flush()
                    done += len(batch)
            assert stored is not None
            return torch.from_numpy(np.array(stored[0][rows]))

    def _open(self) -> tuple[np.memmap, np.memmap] | None:
        """The stored vectors and their mask; None if missing or damaged."""
        if not (self.folder / "done.npy").exists():
            return None
        try:
            vectors, filled = (
                np.lib.format.open_memmap(self.folder / f"{name}.npy", mode="r+") for name in ("vectors", "done")
            )
        except (OSError, ValueError, EOFError) as error:
            reason = str(error)
        else:
            shapes = [f"{array.dtype} {array.shape}" for array in (vectors, filled)]
            expected = [f"float32 {(self.n, *vectors.shape[1:])}", f"bool {(self.n,)}"]
            if shapes == expected and vectors.ndim == 2:
                return vectors, filled
            reason = f"expected {expected}, got {shapes}"
        warnings.warn(f"vectors {self.folder.name} are damaged ({reason}) and are computed again",
        DamagedVectorsWarning,
                      stacklevel=3)  # fmt: skip
        shutil.rmtree(self.folder)
        self.folder.mkdir(mode=0o700)
        return None

    def _create(self, d: int) -> tuple[np.memmap, np.memmap]:
        shapes = {"vectors": (np.float32, (self.n, d)), "done": (np.bool_, (self.n,))}
        vectors, filled = (
            np.lib.format.open_memmap(self.folder / f"{name}.npy", mode="w+", dtype=dtype, shape=shape)
            for name, (dtype, shape) in shapes.items()
        )
        return vectors, filled


@dataclass(frozen=True, eq=False)
class Space:
    """A fitted extractor on a device.

    `shown` is its name without confidential parameters, `inputs` are all that its vectors depend on besides the
    images.
    """

    shown: str
    extractor: Extractor
    state: State
    notes: Mapping[str, JsonValue]
    dimensions: int
    inputs: Mapping[str, JsonValue]
    origin: str
    device: torch.device

    @cached_property
    def embedding(self) -> Embedding:
        """The fitted extractor on the device, loaded once."""
        return self.extractor.load({name: tensor.to(self.device) for name, tensor in self.state.items()})

    def read(self, samples: torch.Tensor) -> Iterator[torch.Tensor]:
        """Batches of vectors (b, d); NotApplicable, or DataError if not finite."""
        return batches(self.embedding, samples, who=self.shown, device=self.device)

    def record(self, seen: list[torch.Tensor] | None = None) -> FeatureRecord:
        """Record with a fingerprint of the vectors `seen`, else of inputs."""
        return FeatureRecord(
            name=self.extractor.name, parameters=cast(dict[str, JsonValue], self.inputs["parameters"]),
            source=self.extractor.source, code=str(self.inputs["code"]), origin=self.origin,
            stamp=str(self.inputs["stamp"]), dimensions=self.dimensions,
            fingerprint=content_key(self.inputs) if seen is None else digest(seen), notes=dict(self.notes),
        )  # fmt: skip


def open_space(
    chosen: Configured[Extractor], public: Dataset, *, rows: Mapping[str, JsonValue], seed: int, cache: Path
) -> Space:
    """The extractor fitted on the public images, from the cache or fresh.

    `rows` identifies these images. Raises DataError if the extractor cannot read them, or has no weights.
    """
    extractor = chosen.plugin
    device = public.samples.device
    stage(f"features {extractor.name}")
    own: dict[str, JsonValue] = {
        "schema": SCHEMA,
        "extractor": extractor.name,
        "parameters": dict(told_parameters(extractor)),
        "code": plugin_digest(extractor),
        "stamp": extractor.stamp(),
        "device": device.type,
        "torch": version("torch"),
        **{package: version(package) for package in extractor.packages},
    }

    def fit() -> Artefact:
        try:
            fitted = extractor.fit(public, seed)
            with torch.no_grad():
                dimensions = fitted.embed(public.samples.new_zeros(1, *public.samples.shape[1:])).shape[1]
        except NotApplicable as reason:
            raise DataError(f"{chosen.name} cannot be the space of {public.name}: {reason}") from reason
        return Artefact(fitted.state(), {"dimensions": dimensions, "notes": dict(fitted.notes())})

    store, wanted = Store(cache / "features"), {**own, "public": dict(rows), "seed": seed}
    artefact = store.ensure("extractors", wanted, fit)
    inputs = {**own, "state": digest([artefact.tensors[name] for name in sorted(artefact.tensors)])}
    shown = parse(chosen.placeless).shown
    return Space(
        shown=shown, extractor=extractor, state=artefact.tensors,
        notes=cast(Mapping[str, JsonValue], artefact.notes["notes"]), dimensions=cast(int,
        artefact.notes["dimensions"]), inputs=inputs, origin=chosen.origin, device=device,
    )  # fmt: skip


def read_splits(
    space: Space, splits: Splits, *, private: Prepared, public: Prepared, cache: Path
) -> tuple[Splits, FeatureRecord]:
    """The splits with vectors in place of images; DataError if not finite."""
    stage(f"features {space.extractor.name}")
    sources = {"public": public, "private": private, "control": private, "test": private}
    parts: dict[str, Dataset] = {}
    for name, prepared in sources.items():
        part: Dataset = getattr(splits, name)
        rows, block = splits.rows[name], max(1, HELD // (4 * math.prod(prepared.samples.shape[1:])))
        if not len(rows):  # no public rows
            vectors = torch.zeros(0, space.dimensions)
        elif space.extractor.cached:
            key = content_key({**space.inputs, "data": prepared.fingerprint})
            stored = VectorCache(cache / "features" / "vectors" / f"{slug(space.extractor.name)}-{key}", len(prepared))
            vectors = stored.vectors(rows, partial(_images, prepared), space.read, block=block)
        else:
            pieces = (_images(prepared, rows[first : first + block]) for first in range(0, len(rows), block))
            vectors = torch.cat([batch.cpu() for piece in pieces for batch in space.read(piece)])
        parts[name] = replace(part, name=f"{part.name} as {space.shown}", samples=vectors)
    seen_rows = parts["private"].samples
    constant = int((seen_rows.amax(dim=0) == seen_rows.amin(dim=0)).sum())
    record = space.record([part.samples for part in parts.values()])
    record.notes["dimensions constant among private rows"] = constant
    seen = replace(
        splits, public=parts["public"], private=parts["private"], control=parts["control"], test=parts["test"]
    )
    return seen, record


def _images(prepared: Prepared, rows: np.ndarray) -> torch.Tensor:
    return prepared.dataset(rows).samples


def digest(tensors: list[torch.Tensor]) -> str:
    """64 hex digits over shapes, types and numbers."""
    seen = hashlib.sha256()
    for tensor in tensors:
        array = tensor.detach().cpu().contiguous().numpy()
        seen.update(f"{array.dtype.str}{array.shape}".encode())
        seen.update(array.tobytes())
    return seen.hexdigest()
