"""A feature space: an extractor fitted for a choice of data, the rows seen through it, and what a record says of it."""

from __future__ import annotations

import hashlib
import math
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import cast

import numpy as np
import torch
from filelock import FileLock
from pydantic import JsonValue

from bench.contract.extractor import Embedding, Extractor, batches
from bench.contract.source import DataError
from bench.data.prepared import Prepared
from bench.data.splits import Splits
from bench.plugins.chosen import Chosen
from bench.plugins.slug import slug
from bench.plugins.source_hash import plugin_hash
from bench.plugins.spec import parse, told_parameters
from bench.progress import stage
from bench.results.build_folder import tag_cache
from bench.results.content_key import content_key
from bench.results.records import FeatureRecord
from bench.results.store import Artefact, Store
from bench.types import Dataset, NotApplicable, State

VECTORS = {"vectors.npy", "done.npy"}
Read = Callable[
    [torch.Tensor], Iterator[torch.Tensor]
]  # images (n, c, h, w) to their vectors (b, d), batch by batch in order


class DamagedVectorsWarning(UserWarning):
    """Stored vectors do not have the form they should; they are made again."""


@dataclass(frozen=True)
class VectorCache:
    """The vectors of the `n` rows of a prepared data set in `folder`, as far as they were wanted."""

    folder: Path
    n: int

    def vectors(
        self, rows: np.ndarray, images: Callable[[np.ndarray], torch.Tensor], read: Read, *, block: int
    ) -> torch.Tensor:
        """The vectors (m, d) float32 of some rows, on the CPU.

        Args:
            rows: (m,) int64, their numbers in the prepared data set.
            images: Gives those (b, c, h, w) of such numbers.
            read: Gives what is missing.
            block: So many images are held at a time.
        """
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
        """What is stored; None where nothing is, or nothing that can be used."""
        if not (self.folder / "done.npy").exists():
            return None
        try:
            vectors, filled = (
                np.lib.format.open_memmap(self.folder / f"{name}.npy", mode="r+") for name in ("vectors", "done")
            )
        except (OSError, ValueError, EOFError) as error:
            reason = str(error)
        else:
            found = [f"{array.dtype} {array.shape}" for array in (vectors, filled)]
            expected = [f"float32 {(self.n, *vectors.shape[1:])}", f"bool {(self.n,)}"]
            if found == expected and vectors.ndim == 2:
                return vectors, filled
            reason = f"expected {expected}, got {found}"
        warnings.warn(f"vectors {self.folder.name} are damaged ({reason}) and are made again", DamagedVectorsWarning,
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


HELD = 2**28  # bytes of images that are held at a time: some extractors read 518 pixels a side
SCHEMA = 1  # of what is kept of a fitted extractor


@dataclass(frozen=True, eq=False)
class Space:
    """A fitted extractor.

    Args:
        shown: As names of data sets show it, without what is confidential.
        extractor: What was fitted.
        state, notes: What it learned, and says of itself.
        dimensions: Of its vectors.
        inputs: All that its vectors depend on beside the images.
        origin: Where the plug-in comes from.
        device: Where rows are read.
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
        """The extractor laid out on the device, once: the weights of some take seconds to read and check."""
        return self.extractor.load({name: tensor.to(self.device) for name, tensor in self.state.items()})

    def read(self, samples: torch.Tensor) -> Iterator[torch.Tensor]:
        """Images (n, c, h, w), on any device, as vectors (b, d) float32, batch by batch.

        Raises:
            NotApplicable: Rows of another shape than it reads.
            DataError: Vectors that are not finite.
        """
        return batches(self.embedding, samples, who=self.shown, device=self.device)

    def record(self, seen: list[torch.Tensor] | None = None) -> FeatureRecord:
        """What a record says of it.

        `seen` are the vectors of all splits, which its fingerprint is taken over; None where images stay as they are:
        then it is taken over what their vectors depend on.
        """
        return FeatureRecord(
            name=self.extractor.name, parameters=cast(dict[str, JsonValue], self.inputs["parameters"]),
            source=self.extractor.source, code=str(self.inputs["code"]), origin=self.origin,
            stamp=str(self.inputs["stamp"]), dimensions=self.dimensions,
            fingerprint=content_key(self.inputs) if seen is None else digest(seen), notes=dict(self.notes),
        )  # fmt: skip


def open_space(
    chosen: Chosen[Extractor], public: Dataset, *, rows: Mapping[str, JsonValue], seed: int, cache: Path
) -> Space:
    """The extractor fitted on the public images, from the cache or fresh.

    Args:
        chosen: The extractor.
        public: The public images, on the device that rows are read on.
        rows: What says which rows these are.
        seed: For what it learns.
        cache: Folder of prepared data.

    Raises:
        DataError: The extractor cannot read such rows, or its weights cannot be had; the text says why.
    """
    extractor = chosen.plugin
    device = public.samples.device
    stage(f"features {extractor.name}")
    own: dict[str, JsonValue] = {
        "schema": SCHEMA,
        "extractor": extractor.name,
        "parameters": dict(told_parameters(extractor)),
        "code": plugin_hash(extractor),
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
    found = store.ensure("extractors", wanted, fit)
    inputs = {**own, "state": digest([found.tensors[name] for name in sorted(found.tensors)])}
    shown = parse(chosen.placeless).shown
    return Space(
        shown=shown, extractor=extractor, state=found.tensors,
        notes=cast(Mapping[str, JsonValue], found.notes["notes"]), dimensions=cast(int, found.notes["dimensions"]),
        inputs=inputs, origin=chosen.origin, device=device,
    )  # fmt: skip


def read_splits(
    space: Space, splits: Splits, *, private: Prepared, public: Prepared, cache: Path
) -> tuple[Splits, FeatureRecord]:
    """The splits with vectors in place of images, on the CPU as they were.

    Args:
        space: The fitted extractor.
        splits: Of images.
        private, public: The prepared data that the rows come from.
        cache: Folder of prepared data.

    Raises:
        DataError: The extractor gives numbers that are not finite.
    """
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
