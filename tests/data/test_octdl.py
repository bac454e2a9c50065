from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.contract.source import DataError
from bench.data.prepare import prepare, verify
from bench.data.sets.octdl import OCTDL

HEADER = "file_name,disease,subcategory,condition,patient_id,eye,sex,year,image_width,image_height\n"
ROWS = (
    ("amd_1047099_1", "AMD", 1), ("amd_1047099_2", "AMD", 1), ("dme_1", "DME", 2), ("erm_1", "ERM", 3),
    ("no_1", "NO", 4), ("no_2", "NO", ""), ("rao_1", "RAO", 5), ("rvo_1", "RVO", 1), ("vid_1", "VID", 6),
)  # fmt: skip


def table(rows: tuple[tuple[str, str, object], ...] = ROWS) -> str:
    return HEADER + "".join(f"{name},{disease},,,{person},OD,M,1960,30,20\n" for name, disease, person in rows)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number, (name, disease, _) in enumerate(ROWS):
        (tmp_path / "OCTDL" / disease).mkdir(parents=True, exist_ok=True)
        grey = np.random.default_rng(number).integers(0, 256, (20, 30, 1), dtype=np.uint8)
        Image.fromarray(grey.repeat(3, axis=2)).save(tmp_path / "OCTDL" / disease / f"{name}.jpg")
    (tmp_path / "OCTDL_labels.csv").write_text(table())
    return tmp_path


def test_folders_and_table_give_grey_rows_of_exclusive_classes(root: Path, tmp_path: Path) -> None:
    prepared = prepare(OCTDL(), roots=[root], cache=tmp_path / "cache")
    verify(prepared)
    assert prepared.samples.shape == (9, 1, 64, 64)
    assert prepared.exclusive
    assert prepared.findings[3] == "normal"
    assert prepared.labels.argmax(axis=1).tolist() == [0, 0, 1, 2, 3, 3, 4, 5, 6]


def test_one_patient_of_two_diseases_is_one_person_and_unknown_ones_are_themselves(root: Path, tmp_path: Path) -> None:
    prepared = prepare(OCTDL(), roots=[root], cache=tmp_path / "cache")
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0, 0, 1, 2, 3, 4, 5, 0, 6]


def test_table_inside_the_folder_gives_the_same_rows(root: Path, tmp_path: Path) -> None:
    beside = prepare(OCTDL(), roots=[root], cache=tmp_path / "cache")
    (root / "OCTDL_labels.csv").rename(root / "OCTDL/OCTDL_labels.csv")
    assert prepare(OCTDL(), roots=[root], cache=tmp_path / "cache").fingerprint == beside.fingerprint
    assert prepare(OCTDL(), roots=[root / "OCTDL"], cache=tmp_path / "cache").fingerprint == beside.fingerprint


def test_counts_other_than_the_official_ones_and_unlisted_images_are_notes(root: Path) -> None:
    (root / "OCTDL_labels.csv").write_text(table(ROWS[1:]))
    notes = OCTDL().scan([root], 64).told
    assert notes == (
        "8 rows, the official set has 2064",
        "1 images that the table does not list are left out",
    )


def test_table_without_images_says_what_to_unpack(tmp_path: Path) -> None:
    (tmp_path / "OCTDL_labels.csv").write_text(table())
    with pytest.raises(DataError, match=r"expected the folder OCTDL with AMD, .*OCTDL\.zip"):
        OCTDL().scan([tmp_path], 64)


@pytest.mark.parametrize(
    ("gone", "reason"),
    [
        ("OCTDL/NO/no_2.jpg", r"1 of 9 images listed .* first NO/no_2\.jpg.*data\.mendeley\.com"),
        ("OCTDL/VID", r"one folder a disease in .*, VID not found"),
        ("OCTDL_labels.csv", r"(?s)expected OCTDL_labels\.csv in one of.*sncdhf53xc/4"),
    ],
)
def test_missing_files_are_named_with_their_source(root: Path, tmp_path: Path, gone: str, reason: str) -> None:
    (root / gone).rename(root / "gone")
    with pytest.raises(DataError, match=reason):
        OCTDL().scan([root], 64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table(((*ROWS[0][:1], "CNV", 1), *ROWS[1:])), r"line 2: expected a disease among AMD, .*\(1 such lines"),
        (table((*ROWS, ROWS[0])), "line 11: an image listed a second time"),
        ("file_name,disease\na,AMD\n", "patient_id not found among file_name, disease"),
        ("<html><body>Sign in</body></html>", "found an HTML page"),
    ],
)
def test_wrong_tables_are_refused_with_the_reason(root: Path, text: str, message: str) -> None:
    (root / "OCTDL_labels.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        OCTDL().scan([root], 64)


def test_stamp_follows_replaced_files(root: Path) -> None:
    before = OCTDL().stamp([root])
    (root / "OCTDL/NO/no_1.jpg").write_bytes(b"other")
    assert OCTDL().stamp([root]) != before
