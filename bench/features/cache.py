"""Vectors on disk, row by row: what was read once is not read again, whatever was wanted then.

A folder holds the vectors of one fitted extractor over one prepared data set: `vectors.npy` (n, d) float32 and
`done.npy` (n,) bool, both memory-mapped. Only rows that are wanted are filled in; a row counts once its batch is on
disk, so that a kill loses a batch at most. Nobody but the owner can enter the folder above
(`bench.results.store.Store`).
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock

from bench.results.build_folder import tag_cache

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
