"""DICOM Secondary Capture files of released images."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pydicom
import pytest

from bench.data.secondary_capture import read_secondary_capture, text_of, write_secondary_capture

SHAPES = [(8, 8), (7, 9), (6, 5, 3)]


def written(folder: Path, shape: tuple[int, ...], number: int = 3) -> tuple[Path, np.ndarray]:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    path = folder / f"{number}.dcm"
    write_secondary_capture(path, pixels, number=number, made_by="veil-bench")
    return path, pixels


@pytest.mark.parametrize("shape", SHAPES)
def test_pixels_come_back_to_the_bit(shape: tuple[int, ...], tmp_path: Path) -> None:
    path, pixels = written(tmp_path, shape)
    assert np.array_equal(read_secondary_capture(path), pixels)


def test_two_files_share_no_uid_but_those_of_the_format(tmp_path: Path) -> None:
    uids = []
    for number in (1, 2):
        file = pydicom.dcmread(written(tmp_path, (8, 8), number)[0])
        uids.append({file.SOPInstanceUID, file.StudyInstanceUID, file.SeriesInstanceUID})
    assert len(uids[0]) == len(uids[1]) == 3
    assert uids[0].isdisjoint(uids[1])


def test_clean_pixels_are_not_claimed_and_no_date_is_given(tmp_path: Path) -> None:
    file = pydicom.dcmread(written(tmp_path, (8, 8))[0])
    assert file.PatientIdentityRemoved == "YES"
    assert [code.CodeValue for code in file.DeidentificationMethodCodeSequence] == ["113100"]
    assert "BurnedInAnnotation" not in file
    assert not any(element.value for element in file.iterall() if element.VR in ("DA", "TM", "DT"))


def test_text_holds_every_readable_word_and_no_uid(tmp_path: Path) -> None:
    path, _ = written(tmp_path, (8, 8))
    text = text_of(path)
    assert "released-000003" in text
    assert str(pydicom.dcmread(path).SOPInstanceUID) not in text


@pytest.mark.parametrize("shape", SHAPES)
def test_a_validator_of_the_standard_finds_no_error(shape: tuple[int, ...], tmp_path: Path) -> None:
    validator = shutil.which("dciodvfy")
    if validator is None:
        pytest.skip("dciodvfy is not installed (Debian: dicom3tools)")
    path, _ = written(tmp_path, shape)
    said = subprocess.run([validator, "-new", str(path)], capture_output=True, text=True, check=False)
    assert "Error" not in said.stdout + said.stderr
    assert said.returncode == 0
