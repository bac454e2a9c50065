"""MATLAB files: what SciPy writes is read as SciPy reads it, and what is damaged is an error and nothing worse."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from made.official_trees import noise
from scipy.io import loadmat, savemat

from bench.data import matlab_file
from bench.data.matlab_file import read_matlab

NUMBERS = noise(1, 16, 6)
FORMS = {"plain": {}, "deflated": {"do_compression": True}, "level 4": {"format": "4"}}


def written(path: Path, form: str, kind: str = "u1") -> Path:
    """The numbers among arrays of other kinds."""
    others = {"first": np.array([[0.5, 2.0]]), "said": "text", "imaginary": np.ones((2, 2)) * 1j}
    cells = {} if form == "level 4" else {"cells": np.array([1, "two"], dtype=object), "on": {"a": 1.0}}
    savemat(path, {**others, **cells, "faces": NUMBERS.astype(kind)}, **FORMS[form])
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["u1", "i2", "f8"])
def test_numbers_are_read_as_scipy_reads_them(tmp_path: Path, form: str, kind: str) -> None:
    path = written(tmp_path / "a.mat", form, kind)
    found, expected = read_matlab(path, "faces"), loadmat(path)["faces"]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    for other in ("imaginary", "nothing"):
        with pytest.raises(ValueError, match=f"without an array of numbers called '{other}'"):
            read_matlab(path, other)


@pytest.mark.parametrize("form", FORMS)
def test_whatever_is_damaged_is_read_or_a_value_error(tmp_path: Path, form: str) -> None:
    path = written(tmp_path / "a.mat", form)
    whole, chance = path.read_bytes(), random.Random(1)
    refused = 0
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(3):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice([len(content), chance.randrange(len(content))])])
        try:
            read_matlab(path, "faces")
        except ValueError:
            refused += 1
    assert refused > 100


def test_no_more_is_inflated_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    savemat(tmp_path / "a.mat", {"faces": np.zeros((1000, 1000), np.uint8)}, do_compression=True)
    monkeypatch.setattr(matlab_file, "MOST_BYTES", 10_000)
    with pytest.raises(ValueError, match="a deflated array of more than 10000 bytes"):
        read_matlab(tmp_path / "a.mat", "faces")
    monkeypatch.setattr(matlab_file, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="at most 100 bytes, found"):
        read_matlab(tmp_path / "a.mat", "faces")
