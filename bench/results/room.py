"""Room on the disk for tensors, and what stands for those that find none: the hash of the file that they would be."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from bench.contract.seal import ContractError
from bench.progress import AGAIN, report
from bench.wire.tensor_file import checksum_of, stored_as


@dataclass(frozen=True)
class Unstored:
    """Tensors that found no room.

    Args:
        sha256: As `checksum_of` gives it.
        size: As `size_of` gives it.
    """

    sha256: str
    size: int

    def check(self, tensors: Mapping[str, Tensor]) -> None:
        """Say that they were made again. Raises ContractError where they came out as others."""
        report(AGAIN, 1, 1)
        if (came := checksum_of(tensors)) != self.sha256:
            raise ContractError(
                "what finds no room on the disk is made again for each job, and must come out the same to the bit: its "
                f"checksum was {self.sha256[:12]}..., and is now {came[:12]}... (with another number of threads, or on "
                "another processor, sums are rounded in other ways); make room on the disk to have it kept"
            )


def has_room(folder: Path, size: int, copies: int | None) -> bool:
    """Whether so many copies of so many bytes take at most half of what is free on the disk of a folder.

    Of no number of copies there is always said to be room.
    """
    return copies is None or copies * size <= shutil.disk_usage(folder).free // 2


def size_of(tensors: Mapping[str, Tensor]) -> int:
    """The bytes of tensors as they are stored."""
    return sum(kind.itemsize * math.prod(shape) for kind, shape in map(stored_as, tensors.values()))
