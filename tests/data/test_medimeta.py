import shutil
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
import yaml
from PIL import Image

from bench.contract.source import DataError
from bench.data.csv_tables import read_table
from bench.data.prepare import prepare, verify
from bench.data.sets.medimeta import MedIMeta

N = 6
SKIN = {
    "Diagnosis": ("MULTICLASS_CLASSIFICATION", ("blue nevus", "melanoma", "lentigo"), [0, 1, 2, 0, 1, 2]),
    "Diagnosis grouped": ("MULTICLASS_CLASSIFICATION", ("nevus", "melanoma"), [0, 1, 0, 0, 1, 0]),
    "Blue Whitish Veil": ("BINARY_CLASSIFICATION", ("absent", "present"), [0, 0, 1, 1, 0, 0]),
    "findings": ("MULTILABEL_CLASSIFICATION", ("streaks", "dots"), [[0, 1], [1, 1], [0, 0], [1, 0], [0, 0], [0, 1]]),
    "score": ("REGRESSION", {"type": "integer", "interval": [0, 10]}, [1, 2, 3, 4, 5, 6]),
}
ORGANS = {"organ label": ("MULTICLASS_CLASSIFICATION", ("heart", "left lung", "liver"), [0, 1, 2, 0, 1, 2])}


def write(
    root: Path, part: str, tasks: Mapping[str, tuple[str, object, list]], *, channels: int, columns: Mapping[str, list]
) -> Path:
    """A set of six images as MedIMeta's writer lays it out."""
    top = root / part
    for folder in ("images", "task_labels", "splits", "original_splits"):
        (top / folder).mkdir(parents=True)
    described = []
    for name, (target, labels, marks) in tasks.items():
        np.save(top / "task_labels" / f"{name}.npy", marks)
        numbered = dict(enumerate(labels)) if isinstance(labels, tuple) else labels
        described.append({"task_name": name, "task_target": target, "labels": numbered})
    info = {"id": part, "name": part, "tasks": described, "input_size": [channels, 224, 224], "total_num_samples": N,
            "license": "Creative Commons (CC BY-SA 4.0)"}  # fmt: skip
    (top / "info.yaml").write_text(yaml.safe_dump(info, sort_keys=False))
    cells = {"filepath": [f"images/{row:06d}.tiff" for row in range(N)], "split": ["train"] * N, **columns}
    lines = [",".join(cells), *(",".join(str(cells[name][row]) for name in cells) for row in range(N))]
    (top / "annotations.csv").write_text("\n".join(lines) + "\n")
    for row in range(N):
        shape = (224, 224, 3) if channels == 3 else (224, 224)
        pixels = np.random.default_rng(row).integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(pixels).save(top / f"images/{row:06d}.tiff", compression=None)
    return top


@pytest.fixture
def skin(tmp_path: Path) -> Path:
    files = [f"release_v0/images/{row}.jpg" for row in range(N)]
    return write(tmp_path / "MedIMeta", "skinl_derm", SKIN, channels=3, columns={"original_filepath": files})


@pytest.fixture
def organs(tmp_path: Path) -> Path:
    volumes = [f"LITS Challenge/volume-{number}.nii" for number in (0, 0, 0, 1, 1, 1)]
    return write(tmp_path / "MedIMeta", "organs_axial", ORGANS, channels=1, columns={"original_filepath": volumes})


def test_default_task_of_skin_lesions_gives_colour_rows_of_exclusive_classes(skin: Path, tmp_path: Path) -> None:
    prepared = prepare(MedIMeta(), roots=[tmp_path], cache=tmp_path / "cache")
    verify(prepared)
    assert prepared.samples.shape == (N, 3, 64, 64)
    assert prepared.findings == ("nevus", "melanoma")
    assert prepared.exclusive
    assert prepared.labels.argmax(axis=1).tolist() == [0, 1, 0, 0, 1, 0]
    assert prepared.subjects is None
    assert prepared.name == "medimeta:skinl_derm[task=Diagnosis grouped]"
    assert prepared.origin == "derm7pt"


def test_rows_at_full_size_are_the_official_pixels_in_official_order(skin: Path, tmp_path: Path) -> None:
    prepared = prepare(MedIMeta(), roots=[skin.parent], cache=tmp_path / "cache", size=224)
    for row in range(N):
        pixels = np.asarray(Image.open(skin / f"images/{row:06d}.tiff")).transpose(2, 0, 1)
        np.testing.assert_array_equal(prepared.samples[row], pixels)


def test_names_without_leading_zeros_are_in_the_order_of_their_numbers(skin: Path) -> None:
    table, names = skin / "annotations.csv", [f"{number}.tiff" for number in range(8, 8 + N)]
    for row, name in enumerate(names):
        (skin / f"images/{row:06d}.tiff").rename(skin / "images" / name)
        table.write_text(table.read_text().replace(f"images/{row:06d}.tiff", f"images/{name}"))
    paths = MedIMeta().scan([skin.parent], None).paths
    assert paths is not None
    assert [path.name for path in paths] == names


@pytest.mark.parametrize("stored", [False, True])
def test_a_table_that_was_sorted_anew_is_refused_because_labels_go_by_place(skin: Path, stored: bool) -> None:
    if stored:
        shutil.rmtree(skin / "images")
        (skin / "images.hdf5").touch()
    header, *rows = (skin / "annotations.csv").read_text().splitlines()
    (skin / "annotations.csv").write_text("\n".join((header, rows[1], rows[0], *rows[2:])))
    with pytest.raises(DataError, match="line 3: out of order: labels belong to images by place"):
        MedIMeta().scan([skin.parent], 64)


def test_organs_of_one_volume_are_one_person_s(organs: Path, tmp_path: Path) -> None:
    prepared = prepare(MedIMeta("organs_axial"), roots=[tmp_path], cache=tmp_path / "cache")
    assert prepared.samples.shape[1:] == (1, 64, 64)
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0, 0, 0, 1, 1, 1]
    assert prepared.origin == "lits"
    assert "images cut from one original file count as one person's" in prepared.notes


def test_patients_are_read_where_there_is_a_column_of_them(tmp_path: Path) -> None:
    columns = {"original_filepath": ["a.png"] * N, "patient_id": [7, 7, 8, 8, "", ""]}
    write(tmp_path, "organs_axial", ORGANS, channels=1, columns=columns)
    assert MedIMeta("organs_axial").scan([tmp_path], 64).subjects == ["7", "7", "8", "8", "", ""]


def test_task_of_two_classes_is_one_finding_and_a_multi_label_task_several(skin: Path, tmp_path: Path) -> None:
    veil = MedIMeta(task="Blue Whitish Veil").scan([tmp_path], 64)
    assert (veil.findings, veil.exclusive) == (("Blue Whitish Veil: present",), False)
    assert veil.labels[:, 0].tolist() == [0, 0, 1, 1, 0, 0]
    several = MedIMeta(task="findings").scan([tmp_path], 64)
    assert (several.findings, several.exclusive) == (("streaks", "dots"), False)
    assert several.labels.tolist() == SKIN["findings"][2]


def test_two_classes_may_be_stored_as_true_and_false(skin: Path, tmp_path: Path) -> None:
    found = MedIMeta().scan([tmp_path], None).labels
    np.save(skin / "task_labels/Diagnosis grouped.npy", found[:, 1] == 1)
    assert np.array_equal(MedIMeta().scan([tmp_path], None).labels, found)


def test_labels_agree_with_the_annotations_that_the_set_s_own_writer_adds(tmp_path: Path) -> None:
    columns = {"tasks/organ label": ORGANS["organ label"][2]}
    top = write(tmp_path, "organs_axial", ORGANS, channels=1, columns=columns)
    written = read_table(top / "annotations.csv", ("tasks/organ label",))["tasks/organ label"].astype(int)
    scan = MedIMeta("organs_axial").scan([tmp_path], 64)
    assert scan.labels.argmax(axis=1).tolist() == written.tolist()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("Diagnoses", r"no task 'Diagnoses'; write medimeta:skinl_derm\[task=NAME\] with one of Diagnosis, "),
        ("score", "the task 'score' of skinl_derm is REGRESSION"),
    ],
)
def test_unknown_and_unsuitable_tasks_are_refused(skin: Path, task: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        MedIMeta(task=task).scan([skin.parent], 64)


@pytest.mark.parametrize("part", ["../skinl_derm", "", "Skin Lesions"])
def test_part_that_is_no_name_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match="part must be the name of a set such as skinl_derm"):
        MedIMeta(part)


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        (np.array([0, 1, 11, 0, 1, 0]), r"whole numbers from 0 to 1, found int64 of shape \(6,\) from 0 to 11"),
        (np.array([0, 1, -1, 0, 1, 0]), "whole numbers from 0 to 1, found int64"),
        (np.array([0.0, 1, 0, 0, 1, 0]), "found float64"),
        (np.array([[0, 1, 0, 0, 1, 0]]), r"found int64 of shape \(1, 6\)"),
        (np.array([0, 1, 0]), r"expected 6 rows, .* found 6 in annotations\.csv and 3 labels"),
        (np.array([{}], dtype=object), "are not loaded"),
    ],
)
def test_wrong_labels_are_refused_with_the_reason(skin: Path, marks: np.ndarray, message: str) -> None:
    np.save(skin / "task_labels/Diagnosis grouped.npy", marks)
    with pytest.raises(DataError, match=message):
        MedIMeta().scan([skin.parent], 64)


def test_partial_trees_are_refused_with_what_is_missing(skin: Path) -> None:
    (skin / "images/000003.tiff").unlink()
    with pytest.raises(DataError, match=r"1 of 6 images were not found in .*, first 000003\.tiff"):
        MedIMeta().scan([skin.parent], 64)
    (skin / "task_labels/Diagnosis grouped.npy").unlink()
    with pytest.raises(DataError, match=r"expected .*Diagnosis grouped\.npy, found none"):
        MedIMeta().scan([skin.parent], 64)
    (skin / "annotations.csv").unlink()
    with pytest.raises(DataError, match=r"annotations\.csv not found"):
        MedIMeta().scan([skin.parent], 64)


@pytest.mark.parametrize("file", ["info.yaml", "annotations.csv", "task_labels/Diagnosis grouped.npy"])
def test_web_page_in_place_of_a_file_is_refused(skin: Path, file: str) -> None:
    (skin / file).write_bytes(b"<!DOCTYPE html><html></html>")
    with pytest.raises(DataError, match="found an HTML page"):
        MedIMeta().scan([skin.parent], 64)


@pytest.mark.parametrize(
    "text", ["- a\n- b\n", "id: [", "id: organs_axial\ninput_size: [3]\ntasks: []\ntotal_num_samples: 6\n", "id: 1\n"]
)
def test_description_of_another_kind_or_set_is_refused(skin: Path, text: str) -> None:
    (skin / "info.yaml").write_text(text)
    with pytest.raises(DataError, match="not the description of a MedIMeta set"):
        MedIMeta().scan([skin.parent], 64)


@pytest.mark.parametrize("count", [-1, 0, "12", True])
def test_a_number_of_rows_that_is_none_is_named(skin: Path, count: object) -> None:
    info = yaml.safe_load((skin / "info.yaml").read_text())
    (skin / "info.yaml").write_text(yaml.safe_dump({**info, "total_num_samples": count}))
    with pytest.raises(DataError, match=f"total_num_samples must be a whole number of at least 1, got {count!r}"):
        MedIMeta().scan([skin.parent], 64)


@pytest.mark.parametrize(
    ("label", "read"), [("no", "False"), ("yes", "True"), ("null", "None"), ("1.10", "1.1"), ("2020-01-01", "datetime")]
)
def test_a_label_that_yaml_reads_as_no_text_is_refused(skin: Path, label: str, read: str) -> None:
    text = (skin / "info.yaml").read_text()
    (skin / "info.yaml").write_text(text.replace("0: nevus", f"0: {label}"))
    with pytest.raises(DataError, match=f"a label that YAML reads as {read}.*put it in quotes"):
        MedIMeta().scan([skin.parent], 64)
    (skin / "info.yaml").write_text(text.replace("0: nevus", f"0: '{label}'"))
    assert MedIMeta().scan([skin.parent], 64).findings == (label, "melanoma")


def test_description_runs_no_code(skin: Path) -> None:
    (skin / "info.yaml").write_text("id: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(DataError, match="not the description of a MedIMeta set"):
        MedIMeta().scan([skin.parent], 64)


def test_absent_set_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)expected organs_axial/info\.yaml in one of.*zenodo\.org/records/7884735"):
        MedIMeta("organs_axial").scan([tmp_path], 64)


def test_stamp_follows_changed_labels(skin: Path) -> None:
    before = MedIMeta().stamp([skin.parent])
    np.save(skin / "task_labels/Diagnosis grouped.npy", np.zeros(N + 1, dtype=np.int64))
    assert MedIMeta().stamp([skin.parent]) != before


@pytest.mark.parametrize("channels", [1, 3])
def test_images_in_hdf5_give_the_rows_that_files_give(tmp_path: Path, channels: int) -> None:
    part, tasks = ("organs_axial", ORGANS) if channels == 1 else ("skinl_derm", SKIN)
    top = write(tmp_path / "MedIMeta", part, tasks, channels=channels, columns={})
    for name, rows in {"train": range(4), "test": range(4, N)}.items():
        (top / "splits" / f"{name}.txt").write_text("".join(f"images/{row:06d}.tiff\n" for row in rows))
    files = prepare(MedIMeta(part), roots=[tmp_path], cache=tmp_path / "files")
    with h5py.File(top / "images.hdf5", "w") as file:
        file["images"] = np.stack([np.asarray(Image.open(path)) for path in sorted((top / "images").iterdir())])
    shutil.rmtree(top / "images")
    stored = prepare(MedIMeta(part), roots=[tmp_path], cache=tmp_path / "stored")
    np.testing.assert_array_equal(stored.samples, files.samples)
    assert stored.parts is not None
    assert stored.parts.tolist() == [0, 0, 0, 0, 2, 2]
    assert stored.fingerprint == files.fingerprint
    larger = prepare(MedIMeta(part), roots=[tmp_path], cache=tmp_path / "larger", size=225).notes
    assert set(larger) - set(stored.notes) == {"6 of 6 images: enlarged to 225 pixels a side from fewer"}


def test_lists_of_parts_that_name_other_images_are_refused(skin: Path) -> None:
    (skin / "splits/train.txt").write_text("images/000000.tiff\nimages/1.tiff\n")
    (skin / "splits/test.txt").write_text("images/000000.tiff\n")
    with pytest.raises(DataError, match="1 images are in several lists and 1 are others"):
        MedIMeta().scan([skin.parent], 64)


def test_an_hdf5_file_of_something_else_is_refused(skin: Path) -> None:
    shutil.rmtree(skin / "images")
    (skin / "images.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(DataError, match="truncated or not an HDF5 file"):
        MedIMeta().scan([skin.parent], 64)
    (skin / "images.hdf5").unlink()
    with h5py.File(skin / "images.hdf5", "w") as file:
        file["images"] = np.zeros((N - 1, 8, 8, 3), np.uint8)
    with pytest.raises(DataError, match=r"expected uint8 images of 6 rows under the name images, found uint8 of \(5"):
        MedIMeta().scan([skin.parent], 64)
