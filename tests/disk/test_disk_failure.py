"""Exceptions for which a disk is to blame, however a library tells of it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from bench.disk.disk_errors import is_disk_failure

FULL = Path("/dev/full")


def wrapped() -> None:
    try:
        FULL.write_bytes(b"x")
    except OSError as error:
        raise RuntimeError("the scheme cannot be kept") from error


def raises(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full, which Linux has")
@pytest.mark.parametrize(
    "work",
    [lambda: FULL.write_bytes(b"x"), lambda: np.zeros(10_000).tofile(FULL), wrapped],
    ids=["file", "numpy", "wrapped"],
)
def test_a_full_disk_is_told(work: Callable[[], None]) -> None:
    with pytest.raises(Exception, match=r"No space|written|kept") as caught:
        work()
    assert is_disk_failure(caught.value)


def test_a_full_disk_is_told_as_safetensors_tells_it() -> None:
    from safetensors import SafetensorError

    assert is_disk_failure(SafetensorError("I/O error: No space left on device (os error 28)"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE])
def test_so_are_quotas_and_disks_out_of_reach(number: int) -> None:
    assert is_disk_failure(OSError(number, "x"))


@pytest.mark.parametrize(
    "error", [FileNotFoundError(errno.ENOENT, "x"), OSError("10 asked"), RuntimeError("(os error 28)"), MemoryError()]
)
def test_other_errors_are_none(error: Exception) -> None:
    assert not is_disk_failure(error)


def test_safetensors_says_what_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"\(os error [0-9]+\)"):
        save_file({"a": torch.zeros(4)}, tmp_path / "no-folder" / "a.safetensors")
