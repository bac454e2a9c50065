from pathlib import Path

import numpy as np
import pytest
from made.data_files import table
from PIL import Image

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.padchest import PadChest

NAME = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv"
COLUMNS = ("", "ImageID", "ImageDir", "StudyDate_DICOM", "PatientID", "PatientBirth", "PatientSex_DICOM", "Projection",
           "PhotometricInterpretation_DICOM", "BitsStored_DICOM", "Labels")  # fmt: skip
ROWS = [
    (0, "a.png", 0, 20140915, "p1", 1930.0, "F", "PA", "MONOCHROME2", 12, "['pneumonia', 'cardiomegaly']"),
    (1, "b.png", 0, 20140916, "p1", 1930.0, "F", "L", "MONOCHROME2", 12, "['pneumonia']"),
    (2, "c.png", 3, 20150102, "p2", 1990.0, "M", "AP_horizontal", "MONOCHROME1", "10.0", "['normal']"),
    (3, "d.png", 3, 20150102, "p3", "", "None", "PA", "MONOCHROME2", 15, "['exclude']"),
    (4, "e.png", 3, 20150102, "p4", 2000.0, "M", "PA", "MONOCHROME2", 15, ""),
]
RAMP = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
TASKS = "pneumonia+cardiomegaly"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root" / "PadChest"
    table(top / NAME, COLUMNS, ROWS)
    for folder, name, values in ((0, "a.png", RAMP), (3, "c.png", RAMP // 4)):
        (top / str(folder)).mkdir(exist_ok=True)
        Image.fromarray(values).save(top / str(folder) / name)
    return top


def test_every_file_is_scaled_by_the_bits_that_the_table_gives_it(top: Path, tmp_path: Path) -> None:
    prepared = prepare(PadChest(TASKS), roots=[top.parent], cache=tmp_path / "cache")
    assert prepared.labels.tolist() == [[1, 1], [0, 0]]
    np.testing.assert_array_equal(prepared.samples[0, 0], RAMP >> 4)  # 12 bits
    np.testing.assert_array_equal(prepared.samples[1, 0], (RAMP // 4) >> 2)  # 10 bits
    assert "1 of 2 images: grey values of 12 bits become 8 bits: 0 is black, 4095 white" in prepared.notes
    assert "1 images are MONOCHROME1 in the table and taken as they are stored" in prepared.notes
    assert "2 left out: labelled exclude, or not at all" in prepared.notes
    assert prepared.attributes is not None
    assert prepared.attributes.named() == {
        "view": ["AP_horizontal", "PA"], "sex": ["female", "male"], "age": ["18-39", "80 and over"],
    }  # fmt: skip


def test_values_beyond_the_bits_of_the_table_are_refused_unless_the_user_says_how_many_count(
    top: Path, tmp_path: Path
) -> None:
    Image.fromarray(RAMP * 16).save(top / "0" / "a.png")
    with pytest.raises(DataError, match="1 of 2 images cannot be decoded"):
        prepare(PadChest(TASKS), roots=[top], cache=tmp_path / "cache")
    assert prepare(PadChest(TASKS, bits=16), roots=[top], cache=tmp_path / "cache").samples[0].max() == 255


def test_images_may_lie_in_one_folder(top: Path) -> None:
    for name in ("0/a.png", "3/c.png"):
        (top / name).rename(top / name[2:])
        (top / name[0]).rmdir()
    assert len(PadChest(TASKS).scan([top], 64).labels) == 2


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [(1, "../a.png", "line 2: an ImageID"), (9, "99", "line 2: an BitsStored"), (10, "[pneu", "expected a list")],
)
def test_bad_lines_are_named(top: Path, column: int, value: str, reason: str) -> None:
    rows = [list(row) for row in ROWS]
    rows[0][column] = value
    table(top / NAME, COLUMNS, rows)
    with pytest.raises(DataError, match=reason):
        PadChest(TASKS).scan([top], 64)


def test_a_task_that_nobody_has_is_an_error(top: Path) -> None:
    with pytest.raises(DataError, match="labelled pneumonai: check `tasks`"):
        PadChest("pneumonai").scan([top], 64)


@pytest.mark.parametrize(
    "cell", ["5", "'pneumonia'", "{'pneumonia': 1}", "[None]", "b'x'", "['pneumonia', 5]", "['a' 'b']"]
)
def test_labels_that_are_no_list_of_words_are_refused_by_line(top: Path, cell: str) -> None:
    rows = [list(row) for row in ROWS]
    rows[2][-1] = cell
    table(top / NAME, COLUMNS, rows)
    with pytest.raises(DataError, match="line 4: expected a list of labels"):
        PadChest(TASKS).scan([top], 64)


def test_blank_labels_say_nothing_and_odd_digits_are_no_year(top: Path) -> None:
    rows = [list(row) for row in ROWS]
    rows[0][3], rows[2][-1] = "²²²²0915", "['']"
    table(top / NAME, COLUMNS, rows)
    scan = PadChest(TASKS).scan([top], 64)
    assert len(scan.labels) == 1
    assert scan.attributes["age"] == [""]


def labelled(top: Path, *cells: str) -> list[list[object]]:
    rows = [list(row) for row in ROWS]
    for row, cell in zip((rows[0], rows[2]), cells, strict=True):
        row[-1] = cell
    table(top / NAME, COLUMNS, rows)
    return rows


def test_a_kind_of_a_finding_counts_as_the_finding(top: Path) -> None:
    labelled(top, "['laminar atelectasis', ' hydropneumothorax']", "['COPD signs']")
    scan = PadChest("atelectasis+pleural effusion+pneumothorax+COPD signs").scan([top], 64)
    np.testing.assert_array_equal(scan.labels, [[1, 1, 1, 0], [0, 0, 0, 1]])


def test_a_report_of_changes_alone_denies_nothing(top: Path) -> None:
    labelled(top, "['atypical pneumonia', 'unchanged']", "['unchanged']")
    scan = PadChest("pneumonia").scan([top], 64)
    assert scan.labels.tolist() == [[1]]
    assert "1 left out: labelled unchanged, and none of the tasks is named" in scan.notes
    assert "0 images are MONOCHROME1 in the table and taken as they are stored" in scan.notes
    labelled(top, "['pneumonia', 'unchanged']", "['cardiomegaly']")
    np.testing.assert_array_equal(PadChest(TASKS).scan([top], 64).labels, [[1, np.nan], [0, 1]])
