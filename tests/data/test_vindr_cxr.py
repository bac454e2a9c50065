import re
from pathlib import Path

import numpy as np
import pytest
from made.data_files import dicom, noise, table

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.vindr_cxr import VinDrCXR

IDS = [f"{number:032x}" for number in range(4)]
TASKS = "Cardiomegaly+Lung tumor"
VOTES = [(IDS[0], "R1", 1, 0), (IDS[0], "R2", 1, 1), (IDS[0], "R3", 0, 0), (IDS[1], "R1", 0, 0), (IDS[1], "R8", 0, 1),
         (IDS[1], "R9", 0, 1)]  # fmt: skip


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root" / "vindr-cxr" / "1.0.0"
    votes = ("image_id", "rad_id", "Cardiomegaly", "Lung tumor")
    table(top / "annotations/image_labels_train.csv", votes, VOTES)
    table(top / "annotations/image_labels_test.csv", ("image_id", "Cardiomegaly", "Lung tumor"), [(IDS[2], 0, 1)])
    for number, name in enumerate(IDS[:3]):
        part = "test" if number == 2 else "train"
        dicom(top / part / f"{name}.dicom", noise(number, 64, 64, most=4095))
    return top


def test_two_of_three_radiologists_decide(top: Path, tmp_path: Path) -> None:
    prepared = prepare(VinDrCXR(TASKS), roots=[top.parents[1]], cache=tmp_path / "cache")
    assert prepared.labels.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert prepared.parts is not None
    assert prepared.parts.tolist() == [0, 0, 2]
    assert prepared.subjects is None
    assert "3 of 3 images: DICOM: no window, so all 12 bits are shown" in prepared.notes
    assert len(np.unique(prepared.samples)) > 200


def test_unknown_columns_and_identifiers_are_refused_by_line(top: Path) -> None:
    with pytest.raises(DataError, match="expected the columns"):
        VinDrCXR("Cardiomegalie").scan([top], 64)
    table(top / "annotations/image_labels_test.csv", ("image_id", "Cardiomegaly", "Lung tumor"), [("../x", 0, 1)])
    with pytest.raises(DataError, match="line 2: expected an image_id of 32 hexadecimal digits"):
        VinDrCXR(TASKS).scan([top], 64)


@pytest.mark.parametrize(
    ("votes", "reason"),
    [
        (VOTES[:-1], "line 5: expected 3 radiologists an image, found 2 (1 such images)"),
        (VOTES[2:4], "line 2: expected 3 radiologists an image, found 1 (2 such images)"),
        ([*VOTES, (IDS[0], "R4", 1, 1)], "line 2: expected 3 radiologists an image, found 4 (1 such images)"),
    ],
)
def test_a_training_image_that_others_than_three_radiologists_read_is_refused(
    top: Path, votes: list[tuple[str, str, int, int]], reason: str
) -> None:
    table(top / "annotations/image_labels_train.csv", ("image_id", "rad_id", "Cardiomegaly", "Lung tumor"), votes)
    with pytest.raises(DataError, match=re.escape(f"image_labels_train.csv: {reason}. Download the table again")):
        VinDrCXR(TASKS).scan([top], 64)


def test_an_image_in_both_parts_is_refused(top: Path) -> None:
    table(top / "annotations/image_labels_test.csv", ("image_id", "Cardiomegaly", "Lung tumor"), [(IDS[0], 0, 1)])
    with pytest.raises(DataError, match="1 images are in the tables of both parts"):
        VinDrCXR(TASKS).scan([top], 64)
