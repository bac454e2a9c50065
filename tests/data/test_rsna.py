import json
from pathlib import Path

import numpy as np
import pytest
from made.data_files import dicom, noise, table

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.rsna import RSNA

NAMES = [f"0004cfab-14fd-4e49-80ba-63a80b6bddd{number}" for number in range(4)]
BOXES = ("patientId", "x", "y", "width", "height", "Target")
KINDS = ("Normal", "No Lung Opacity / Not Normal", "Lung Opacity", "Lung Opacity")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root" / "rsna-pneumonia-detection-challenge"
    boxes = [(name, "", "", "", "", int(kind == "Lung Opacity")) for name, kind in zip(NAMES, KINDS, strict=True)]
    boxes.append((NAMES[3], 5, 5, 9, 9, 1))  # a second opacity of one image
    table(top / "stage_2_train_labels.csv", BOXES, boxes)
    classes = [*zip(NAMES, KINDS, strict=True), (NAMES[3], KINDS[3])]
    table(top / "stage_2_detailed_class_info.csv", ("patientId", "class"), classes)
    for number, name in enumerate(NAMES):
        dicom(top / "stage_2_train_images" / f"{name}.dcm", noise(number, 64, 64), bits=8)
    return top


def pairs(top: Path) -> None:
    listed = [
        {"subset_img_id": name, "img_id": f"0000000{number // 2 + 1}_000.png"} for number, name in enumerate(NAMES)
    ]
    (top / "pneumonia-challenge-dataset-mappings_2018.json").write_text(json.dumps(listed))


def test_an_image_is_one_row_however_many_opacities_are_marked(top: Path, tmp_path: Path) -> None:
    prepared = prepare(RSNA(), roots=[top.parent], cache=tmp_path / "cache")
    assert prepared.labels[:, 0].tolist() == [0, 0, 1, 1]
    assert prepared.findings == ("Lung Opacity",)
    np.testing.assert_array_equal(prepared.samples[2, 0], noise(2, 64, 64))
    assert "4 listed images, the official set has 26684" in prepared.notes
    assert "2 of them Lung Opacity, the official set has 6012" in prepared.notes
    assert any("people are not known" in note for note in prepared.notes)
    assert prepared.subjects is None


def test_the_list_of_pairs_tells_who_is_who(top: Path) -> None:
    pairs(top)
    assert RSNA().scan([top.parent], 64).subjects == ["00000001", "00000001", "00000002", "00000002"]


def test_three_classes_are_exclusive(top: Path) -> None:
    scan = RSNA(task="classes").scan([top], 64)
    assert scan.exclusive
    assert scan.labels.argmax(axis=1).tolist() == [0, 1, 2, 2]


def test_tables_that_disagree_are_refused(top: Path) -> None:
    classes = [(name, "Normal") for name in NAMES]
    table(top / "stage_2_detailed_class_info.csv", ("patientId", "class"), classes)
    with pytest.raises(DataError, match="2 are of another class"):
        RSNA().scan([top], 64)


@pytest.mark.parametrize("gone", ["stage_2_detailed_class_info.csv", "stage_2_train_images"])
def test_what_is_missing_is_named_with_what_to_do(top: Path, gone: str) -> None:
    (top / gone).rename(top / "elsewhere")
    with pytest.raises(DataError, match=f"expected {gone} in .*Accept the rules at https"):
        RSNA().scan([top], 64)


def test_images_that_are_not_here_are_counted(top: Path) -> None:
    (top / "stage_2_train_images" / f"{NAMES[1]}.dcm").unlink()
    scan = RSNA().scan([top], 64)
    assert len(scan.labels) == 3
    assert "1 of 4 listed images are not on this machine" in scan.notes


def test_a_row_of_another_table_is_named_by_its_line(top: Path) -> None:
    table(top / "stage_2_train_labels.csv", BOXES, [(NAMES[0], "", "", "", "", 7)])
    with pytest.raises(DataError, match=r"line 2: expected Target among 0, 1 \(1 such lines"):
        RSNA().scan([top], 64)
    table(top / "stage_2_train_labels.csv", BOXES, [("../x", "", "", "", "", 0)])
    with pytest.raises(DataError, match=r"line 2: expected a patientId of 8 to 64 .* \(1 such lines\)") as caught:
        RSNA().scan([top], 64)
    assert "../x" not in str(caught.value)


@pytest.mark.parametrize("text", ["{}", "[]", "[" * 100_000, "twice"])
def test_pairs_that_tell_nothing_or_two_things_are_refused(top: Path, text: str) -> None:
    pairs(top)
    path = top / "pneumonia-challenge-dataset-mappings_2018.json"
    listed = json.loads(path.read_text())
    path.write_text(json.dumps([*listed, {**listed[0], "img_id": "00000009_000.png"}]) if text == "twice" else text)
    with pytest.raises(DataError, match=r"expected (one NIH image for each of 4 images|pairs of)"):
        RSNA().scan([top], 64)
