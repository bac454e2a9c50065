import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.mimic import MIMIC

Rows = tuple[tuple[str, ...], ...]
METADATA: Rows = (
    ("dicom_id", "subject_id", "study_id", "PerformedProcedureStepDescription", "ViewPosition"),
    ("aa", "10000032", "50414267", "CHEST (PA AND LAT)", "PA"),
    ("ab", "10000032", "50414267", "CHEST (PA AND LAT)", "LATERAL"),
    ("ba", "10000032", "53189527", "CHEST (PORTABLE AP)", "AP"),
    ("ca", "11000011", "50771383", "CHEST (PORTABLE AP)", "AP"),
    ("da", "11000022", "50000001", "CHEST (PORTABLE AP)", "AP"),
)
CHEXPERT: Rows = (
    ("subject_id", "study_id", "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "No Finding"),
    ("10000032", "50414267", "", "0.0", "1.0", "-1.0", ""),
    ("10000032", "53189527", "1.0", "", "", "0.0", ""),
    ("11000011", "50771383", "", "-1.0", "", "", "1.0"),
    ("11000022", "50000001", "1.0", "1.0", "1.0", "1.0", ""),
)
SPLIT: Rows = (
    ("dicom_id", "study_id", "subject_id", "split"),
    ("aa", "50414267", "10000032", "train"),
    ("ba", "53189527", "10000032", "train"),
    ("ca", "50771383", "11000011", "test"),
    ("da", "50000001", "11000022", "validate"),
)


def write_table(path: Path, rows: Rows) -> None:
    text = "".join(",".join(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "mimic-cxr-jpg/2.0.0"
    for row, (dicom, subject, study, *_) in enumerate(METADATA[1:]):
        folder = top / f"files/p{subject[:2]}/p{subject}/s{study}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(row).integers(0, 256, (30, 20), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{dicom}.jpg")
    for name, rows in (("chexpert", CHEXPERT), ("metadata", METADATA), ("split", SPLIT)):
        write_table(top / f"mimic-cxr-2.0.0-{name}.csv.gz", rows)
    return top


def stems(top: Path, source: MIMIC) -> list[str]:
    return [path.stem for path in source.scan([top], 64).paths or ()]


def test_only_explicit_marks_are_labels(top: Path) -> None:
    scan = MIMIC().scan([top.parent.parent], 64)
    unknown = np.nan
    expected = [[unknown, 1, 0, unknown], [0, unknown, unknown, 1], [1, 1, 1, 1]]
    np.testing.assert_array_equal(scan.labels, np.array(expected, dtype=np.float32))
    assert scan.findings == ("Edema", "Consolidation", "Cardiomegaly", "Atelectasis")
    assert scan.subjects == ["10000032", "10000032", "11000022"]


def test_only_frontal_views_with_a_known_task_are_read(top: Path) -> None:
    assert stems(top, MIMIC()) == ["aa", "ba", "da"]
    assert stems(top, MIMIC(views="PA")) == ["aa"]
    assert stems(top, MIMIC(views="AP")) == ["ba", "da"]
    assert stems(top, MIMIC(tasks="Edema")) == ["ba", "da"]


def test_rows_left_out_are_counted(top: Path) -> None:
    notes = MIMIC().scan([top], 64).notes
    assert notes[0] == "1 of 5 images left out: not AP/PA"
    assert notes[1] == "1 left out: none of the tasks is labelled 0 or 1"


def test_images_under_an_agreement_are_prepared_as_not_shareable(top: Path, tmp_path: Path) -> None:
    prepared = prepare(MIMIC(), roots=[top], cache=tmp_path / "cache")
    assert not prepared.shareable
    assert prepared.folder.stat().st_mode & 0o777 == 0o700
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0, 0, 1]
    assert prepared.version == "2.0.0"
    record = " ".join((prepared.name, prepared.version, prepared.origin, *prepared.notes))
    assert not re.search(r"1000|5041|/", record.replace("AP/PA", ""))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_version_2_1_0_and_plain_tables_are_read_too(top: Path, ending: str) -> None:
    for name, rows in (("chexpert", CHEXPERT), ("metadata", METADATA), ("split", SPLIT)):
        (top / f"mimic-cxr-2.0.0-{name}.csv.gz").unlink()
        write_table(top / f"mimic-cxr-2.1.0-{name}{ending}", rows)
    scan = MIMIC().scan([top], 64)
    assert len(scan.labels) == 3
    assert scan.version == "2.1.0"


def test_version_2_1_0_is_known_by_its_test_labels_where_tables_keep_the_old_names(top: Path) -> None:
    write_table(top / "mimic-cxr-2.1.0-test-set-labeled.csv", CHEXPERT)
    assert MIMIC().scan([top], 64).version == "2.1.0"


def test_absent_data_ask_for_credentialed_access_and_nothing_takes_their_place(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        MIMIC().scan([tmp_path], 64)
    for part in (
        "credentialed access",
        "physionet.org",
        "CITI",
        "data use agreement",
        "mimic-cxr-2.0.0-chexpert.csv.gz",
    ):
        assert part in str(caught.value)
    with pytest.raises(DataError, match="cannot be downloaded by this program"):
        MIMIC().download(tmp_path)


def test_other_versions_and_the_dicom_distribution_are_named(tmp_path: Path) -> None:
    (tmp_path / "cxr-record-list.csv.gz").touch()
    with pytest.raises(DataError, match="Found MIMIC-CXR with DICOM files"):
        MIMIC().scan([tmp_path], 64)
    (tmp_path / "mimic-cxr-9.0.0-chexpert.csv.gz").touch()
    with pytest.raises(DataError, match=r"this version is not known here \(known: 2\.1\.0, 2\.0\.0\)"):
        MIMIC().scan([tmp_path], 64)


@pytest.mark.parametrize("table", ["metadata", "split"])
def test_missing_table_is_named(top: Path, table: str) -> None:
    (top / f"mimic-cxr-2.0.0-{table}.csv.gz").unlink()
    with pytest.raises(DataError, match=rf"expected mimic-cxr-2\.0\.0-{table}\.csv\.gz .*credentialed"):
        MIMIC().scan([top], 64)


def test_tables_without_images_are_refused_with_the_layout(top: Path) -> None:
    for path in top.rglob("*.jpg"):
        path.unlink()
    with pytest.raises(DataError, match=r"files/pXX/pXXXXXXXX/sXXXXXXXX/\*\.jpg in .*found none of the 3 AP/PA views"):
        MIMIC().scan([top], 64)


def test_images_that_are_not_here_are_counted_in_a_note(top: Path) -> None:
    next(top.rglob("ba.jpg")).unlink()
    scan = MIMIC().scan([top], 64)
    assert len(scan.labels) == 2
    assert scan.notes[0] == "1 of 3 listed images are not on this machine"


def test_patient_on_two_sides_is_refused_by_line_not_by_number(top: Path) -> None:
    write_table(top / "mimic-cxr-2.0.0-split.csv.gz", (*SPLIT[:2], (*SPLIT[2][:3], "test"), *SPLIT[3:]))
    with pytest.raises(DataError, match="found 1 on several, first at line 2") as caught:
        MIMIC().scan([top], 64)
    assert "10000032" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "rows", "reason"),
    [
        ("chexpert", (*CHEXPERT[:2], ("10000032", "53189527", "1.0", "", "", "0.5", "")), "line 3, column Edema"),
        ("chexpert", (*CHEXPERT, CHEXPERT[1]), "line 6: a study_id listed a second time"),
        ("metadata", (*METADATA, METADATA[1]), "line 7: a dicom_id listed a second time"),
        (
            "metadata",
            (*METADATA, ("x", "../../etc", "50000001", "", "AP")),
            "line 7: expected a subject_id of 8 digits",
        ),
        ("chexpert", (("subject_id", "study_id"),), "Edema, Consolidation, Cardiomegaly, Atelectasis not found"),
    ],
)
def test_bad_rows_are_refused_by_their_line(top: Path, table: str, rows: Rows, reason: str) -> None:
    write_table(top / f"mimic-cxr-2.0.0-{table}.csv.gz", rows)
    with pytest.raises(DataError, match=reason):
        MIMIC().scan([top], 64)


def test_login_page_saved_as_a_table_is_refused(top: Path) -> None:
    (top / "mimic-cxr-2.0.0-chexpert.csv.gz").write_bytes(b"<!DOCTYPE html><html>PhysioNet login</html>")
    with pytest.raises(DataError, match=r"expected a CSV table, found an HTML page.*credentialed"):
        MIMIC().scan([top], 64)


@pytest.mark.parametrize(("tasks", "views"), [("", "frontal"), ("Edema+Edema", "frontal"), ("Edema", "LATERAL")])
def test_senseless_parameters_are_refused(tasks: str, views: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        MIMIC(tasks=tasks, views=views)  # type: ignore[arg-type]


def test_views_and_where_the_table_of_patients_lies_beside_sex_and_age(top: Path) -> None:
    scan = MIMIC().scan([top], 64)
    assert dict(scan.attributes) == {"view": ["PA", "AP", "AP"]}
    before = MIMIC().stamp([top])
    rows: Rows = (("subject_id", "gender", "anchor_age"), ("10000032", "F", "52"), ("9", "M", "30"))
    write_table(top / "patients.csv.gz", rows)
    scan = MIMIC().scan([top], 64)
    assert dict(scan.attributes) == {"view": ["PA", "AP", "AP"], "sex": ["F", "F", ""]}
    assert MIMIC().stamp([top]) != before
    write_table(top / "patients.csv.gz", (*rows, ("10000032", "M", "52")))
    with pytest.raises(DataError, match=r"patients\.csv\.gz: line 4: a subject_id listed a second .* MIMIC-IV needs"):
        MIMIC().scan([top], 64)


def test_age_is_that_at_the_image_and_unknown_without_its_date(top: Path) -> None:
    dated = (*METADATA[0], "StudyDate")
    years = ("21600615", "21450101", "")
    metadata = (dated, *((*row, years[number % 3]) for number, row in enumerate(METADATA[1:])))
    write_table(top / "mimic-cxr-2.0.0-metadata.csv.gz", metadata)
    people = sorted({row[1] for row in METADATA[1:]})
    rows: Rows = (("subject_id", "gender", "anchor_age", "anchor_year"), *((who, "F", "55", "2150") for who in people))
    write_table(top / "patients.csv.gz", rows)
    ages = dict(MIMIC().scan([top], 64).attributes)["age"]
    assert set(ages) <= {"65", "50", ""}
    assert {"65", "50"} & set(ages)


def changed(rows: Rows, row: int, column: int, value: str) -> Rows:
    cells = list(rows[row])
    cells[column] = value
    return (*rows[:row], tuple(cells), *rows[row + 1 :])


@pytest.mark.parametrize(
    ("name", "rows", "reason"),
    [
        ("split", changed(SPLIT, 1, 3, "Train"), "line 2: expected a split among train, validate, test"),
        ("split", (*SPLIT, SPLIT[1]), "line 6: a dicom_id listed a second time"),
        ("metadata", changed(METADATA, 1, 0, "../../x"), "line 2: expected a dicom_id of digits"),
        ("metadata", changed(METADATA, 2, 1, "11000011"), "line 3: expected the subject_id that mimic-cxr"),
        ("chexpert", changed(CHEXPERT, 1, 0, "11000011"), "line 2: expected the subject_id that mimic-cxr"),
    ],
)
def test_tables_that_contradict_themselves_or_each_other_are_refused_by_line(
    top: Path, name: str, rows: Rows, reason: str
) -> None:
    write_table(top / f"mimic-cxr-2.0.0-{name}.csv.gz", rows)
    with pytest.raises(DataError, match=reason):
        MIMIC().scan([top], 64)
