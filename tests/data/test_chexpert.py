import os
from pathlib import Path

import numpy as np
import pytest
from made.data_files import picture, table

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.chexpert import CheXpert

COLUMNS = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", "Edema", "Fracture")
FOLDER = "CheXpert-v1.0-small"
TRAIN = [
    ("train/patient00001/study1/view1_frontal.jpg", "Female", 68, "Frontal", "AP", "1.0", ""),
    ("train/patient00001/study1/view2_lateral.jpg", "Female", 68, "Lateral", "", "1.0", ""),
    ("train/patient00001/study2/view1_frontal.jpg", "Female", 69, "Frontal", "PA", "0.0", ""),
    ("train/patient00002/study1/view1_frontal.jpg", "Male", 90, "Frontal", "AP", "-1.0", "1.0"),
    ("train/patient00003/study1/view1_frontal.jpg", "Male", 5, "Frontal", "AP", "-1.0", ""),
]
VALID = [("valid/patient64541/study1/view1_frontal.jpg", "Male", 73, "Frontal", "AP", "1.0", "0.0")]
TASKS = "Edema+Fracture"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "root" / FOLDER
    for name, rows in (("train.csv", TRAIN), ("valid.csv", VALID)):
        table(top / name, COLUMNS, [(f"{FOLDER}/{row[0]}", *row[1:]) for row in rows])
    for number, row in enumerate((*TRAIN, *VALID)):
        picture(top / row[0], number)
    return top


def test_frontal_images_with_some_known_label_are_kept_with_people_parts_and_groups(top: Path, tmp_path: Path) -> None:
    prepared = prepare(CheXpert(TASKS), roots=[top.parent], cache=tmp_path / "cache")
    np.testing.assert_array_equal(prepared.labels, [[1, np.nan], [0, np.nan], [np.nan, 1], [1, 0]])
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0, 0, 1, 2]
    assert prepared.parts is not None
    assert prepared.parts.tolist() == [0, 0, 0, 1]
    assert prepared.attributes is not None
    assert prepared.attributes.named()["sex"] == ["female", "male"]
    assert "1 of 6 images left out: not AP/PA" in prepared.notes
    assert "5 rows in train.csv, the official set has 223414" in prepared.notes
    assert not prepared.shareable


def test_images_of_a_folder_that_may_not_be_read_are_refused_and_not_called_missing(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, locked = os.listdir, top / "train/patient00001/study2"
    stated = Path.stat

    def closed(path: Path) -> list[str]:
        if path == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    def hidden(path: Path, **more: bool) -> os.stat_result:
        if path.parent == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return stated(path, **more)

    monkeypatch.setattr(os, "listdir", closed)
    monkeypatch.setattr(Path, "stat", hidden)
    scan = CheXpert(TASKS).scan([top], 64)
    assert len(scan.labels) == 4
    assert not any("not on this machine" in note for note in scan.notes)
    with pytest.raises(DataError, match=r"(?s)1 of 4 images cannot be decoded:\n  1: no permission to read it"):
        prepare(CheXpert(TASKS), roots=[top.parent], cache=tmp_path / "cache")


def test_one_view_may_be_chosen(top: Path) -> None:
    assert len(CheXpert(TASKS, views="PA").scan([top], 64).labels) == 1


def test_messages_name_lines_and_no_person(top: Path) -> None:
    table(top / "valid.csv", COLUMNS, [("somewhere/else.jpg", *VALID[0][1:])])
    with pytest.raises(DataError, match=r"valid.csv: line 2: expected a path such as train/patient00001") as caught:
        CheXpert(TASKS).scan([top], 64)
    assert "else.jpg" not in str(caught.value)


def test_paths_do_not_lead_out_of_the_folder(top: Path) -> None:
    table(top / "valid.csv", COLUMNS, [("valid/patient1/study1/../../../../etc/passwd", *VALID[0][1:])])
    with pytest.raises(DataError, match="line 2"):
        CheXpert(TASKS).scan([top], 64)


def test_an_image_in_two_tables_is_refused(top: Path) -> None:
    table(top / "valid.csv", COLUMNS, [(f"{FOLDER}/{row[0]}", *row[1:]) for row in (*VALID, TRAIN[0])])
    with pytest.raises(DataError, match=r"1 images are in several of train\.csv, valid\.csv"):
        CheXpert(TASKS).scan([top], 64)


def test_what_is_missing_says_how_to_get_access(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="accept the research use agreement"):
        CheXpert().scan([tmp_path], 64)


def test_an_image_is_known_again_below_another_name_of_the_folder(top: Path) -> None:
    again = (f"CheXpert-v1.0/{TRAIN[0][0]}", *TRAIN[0][1:])
    table(top / "train.csv", COLUMNS, [*((f"{FOLDER}/{row[0]}", *row[1:]) for row in TRAIN), again])
    with pytest.raises(DataError, match="line 7: an image listed a second time"):
        CheXpert(TASKS).scan([top], 64)


def test_the_test_images_are_frontal_by_their_names_where_no_column_tells_the_view(top: Path) -> None:
    names = [f"test/patient64741/study1/view{view}.jpg" for view in ("1_frontal", "2_lateral")]
    table(top / "test.csv", ("Path", "Edema", "Fracture"), [(f"{FOLDER}/{name}", "1.0", "0.0") for name in names])
    for name in names:
        picture(top / name, 7)
    scan = CheXpert(TASKS).scan([top], 64)
    assert scan.paths is not None
    assert [path.name for path, part in zip(scan.paths, scan.parts or (), strict=True) if part == "test"] == [
        "view1_frontal.jpg"
    ]
    assert scan.attributes["view"][-1] == ""
    assert "2 of 8 images left out: not AP/PA" in scan.notes
    assert len(CheXpert(TASKS, views="PA").scan([top], 64).labels) == 1


@pytest.mark.parametrize("root", ["", "chexpertchestxrays-u20210408/CheXpert-v1.0 batch 1 (validate & csv)"])
def test_patients_are_found_in_the_batches_of_the_download(top: Path, tmp_path: Path, root: str) -> None:
    batches = tmp_path / "new/chexpertchestxrays-u20210408"
    first, second, third = (
        batches / f"CheXpert-v1.0 batch {part}" for part in ("1 (validate & csv)", "2 (train 1)", "3 (train 2)")
    )
    first.mkdir(parents=True)
    for name in ("train.csv", "valid.csv", "valid"):
        (top / name).rename(first / name)
    second.mkdir()
    (top / "train/patient00001").rename(second / "patient00001")
    before = CheXpert(TASKS).stamp([tmp_path / "new" / root])
    few = CheXpert(TASKS).scan([tmp_path / "new" / root], 8)
    assert few.notes[0] == "1 of 4 listed images are not on this machine"
    third.mkdir()
    (top / "train/patient00002").rename(third / "patient00002")
    whole = CheXpert(TASKS).scan([tmp_path / "new" / root], 8)
    assert len(whole.labels) == 4
    assert all(path.is_file() for path in whole.paths or ())
    assert CheXpert(TASKS).stamp([tmp_path / "new" / root]) != before
