"""MATLAB files: what SciPy writes is read, and what is damaged is an error and nothing worse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made.official_trees import noise
from scipy.io import savemat

from bench.data import array_files
from bench.data.array_files import read_matlab

NUMBERS = noise(1, 16, 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    savemat(tmp_path / "a.mat", {"faces": NUMBERS, "said": "text", "cells": np.array([1, "two"], dtype=object)})
    return tmp_path / "a.mat"


def test_numbers_are_read_and_nothing_else(path: Path) -> None:
    np.testing.assert_array_equal(read_matlab(path, "faces"), NUMBERS)
    for other in ("cells", "nothing"):
        with pytest.raises(ValueError, match=f"no array of numbers called '{other}'"):
            read_matlab(path, other)


def test_a_file_that_ends_its_reader_is_an_error(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[184] = 161  # the type of its numbers: SciPy looks it up beyond the end of its table
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"ended with -\d+"):
        read_matlab(path, "faces")


def test_no_more_is_read_than_the_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="at most 100 bytes, found"):
        read_matlab(path, "faces")


def test_a_file_that_is_never_read_to_its_end_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "_SECONDS", 0.0)
    with pytest.raises(ValueError, match="did not end in"):
        read_matlab(path, "faces")
