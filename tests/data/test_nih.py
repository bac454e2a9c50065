import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.nih import FINDINGS, NIH
from bench.data.verification import check_current

HEADER = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position"
ROWS = (
    ("00000001_000.png", "Cardiomegaly|Emphysema", "1", "RGB"),
    ("00000001_001.png", "No Finding", "1", "RGBA"),
    ("00000002_000.png", "Hernia", "2", "L"),
)


def write_table(top: Path, rows: tuple[tuple[str, ...], ...] = ROWS, name: str = "Data_Entry_2017.csv") -> None:
    lines = [f"{image},{findings},0,{patient},57,M,PA" for image, findings, patient, *_ in rows]
    (top / name).write_text("\n".join([HEADER, *lines]) + "\n")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "nih"
    (top / "images_001/images").mkdir(parents=True)
    for row, (image, _, _, mode) in enumerate(ROWS):
        grey = Image.fromarray(np.random.default_rng(row).integers(0, 256, (16, 16), dtype=np.uint8))
        grey.convert(mode).save(top / "images_001/images" / image)
    write_table(top)
    (top / "train_val_list.txt").write_text("00000001_000.png\n00000001_001.png\n")
    (top / "test_list.txt").write_text("00000002_000.png\n")
    return top


def test_findings_become_columns_and_no_finding_is_zero_everywhere(top: Path) -> None:
    scan = NIH().scan([top.parent], 64)
    named = [{name for name, mark in zip(FINDINGS, row, strict=True) if mark} for row in scan.labels]
    assert named == [{"Cardiomegaly", "Emphysema"}, set(), {"Hernia"}]
    assert not np.isnan(scan.labels).any()
    assert scan.subjects == ["1", "1", "2"]
    assert scan.version == "Data_Entry_2017"
    assert len(FINDINGS) == 14


def test_grey_rgb_and_rgba_files_are_all_prepared_as_grey(top: Path, tmp_path: Path) -> None:
    prepared = prepare(NIH(), roots=[top], cache=tmp_path / "cache", size=16)
    for row in range(3):
        expected = np.random.default_rng(row).integers(0, 256, (16, 16), dtype=np.uint8)
        np.testing.assert_array_equal(prepared.samples[row, 0], expected)


def test_files_that_changed_since_they_were_decoded_are_not_called_whole(top: Path, tmp_path: Path) -> None:
    scan = NIH().scan([top], 16)
    prepared = prepare(NIH(), roots=[top], cache=tmp_path / "cache", size=16)
    check_current(scan, prepared)
    assert scan.paths is not None
    with pytest.raises(DataError, match=r"nih: 4 rows are here, 3 were prepared\. Delete "):
        check_current(replace(scan, labels=scan.labels[[0, 1, 2, 2]], paths=[*scan.paths, scan.paths[2]]), prepared)
    scan.paths[1].write_bytes(scan.paths[1].read_bytes()[:200])
    again = prepare(NIH(), roots=[top], cache=tmp_path / "cache", size=16)  # too many images for a look at each
    with pytest.raises(DataError, match=r"nih: 1 of 3 files may have changed since they were prepared\. Delete "):
        check_current(scan, again)


def test_flat_image_folder_and_the_2020_table_are_read_too(top: Path) -> None:
    (top / "images_001/images").rename(top / "images")
    (top / "Data_Entry_2017.csv").rename(top / "Data_Entry_2017_v2020.csv")
    scan = NIH().scan([top], 64)
    assert len(scan.labels) == 3
    assert scan.version == "Data_Entry_2017_v2020"


def test_images_that_are_not_here_are_counted_in_a_note(top: Path) -> None:
    (top / "images_001/images/00000001_001.png").unlink()
    scan = NIH().scan([top], 64)
    assert len(scan.labels) == len(scan.paths or ()) == 2
    assert scan.subjects == ["1", "2"]
    assert "1 of 3 listed images are not on this machine" in scan.notes


def test_patient_on_both_sides_of_the_official_split_is_refused(top: Path) -> None:
    write_table(
        top, (*ROWS, ("00077123_000.png", "Hernia", "77123", "L"), ("00077123_001.png", "Hernia", "077123", "L"))
    )
    (top / "train_val_list.txt").write_text("00000001_000.png\n00077123_000.png\n")
    (top / "test_list.txt").write_text("00000002_000.png\n00077123_001.png\n")
    with pytest.raises(DataError, match="share no patient, found 1 in both, first the one of line 5 of") as caught:
        NIH().scan([top], 64)
    assert "77123" not in str(caught.value)


def test_absent_lists_are_noted(top: Path) -> None:
    (top / "test_list.txt").unlink()
    assert "not found and not checked" in NIH().scan([top], 64).notes[0]


def other_names(top: Path) -> None:
    for name in ("train_val_list.txt", "test_list.txt"):
        (top / name).write_text("\n".join(f"images/{line}" for line in (top / name).read_text().splitlines()))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda top: [path.unlink() for path in (top / "images_001/images").iterdir()],
         r"none of the 3 images listed in .* was found.*nihcc\.app\.box\.com"),
        (lambda top: (top / "test_list.txt").write_text("<!DOCTYPE html><html></html>"),
         r"test_list\.txt: expected a list, found an HTML page"),
        (lambda top: write_table(top, (*ROWS[:2], ("00000002_000.png", "Hernia|Fracture", "2"))),
         r"line 4: expected findings among .* got 'Hernia\|Fracture'"),
        (lambda top: write_table(top, (*ROWS, ROWS[0])), "line 5: an image listed a second time"),
        (lambda top: (top / "Data_Entry_2017.csv").write_text("image,label\na.png,Mass\n"),
         "Image Index, Finding Labels, Patient ID not found among image, label"),
        (lambda top: write_table(top, (*ROWS[:2], ("00000002_000.png", "Hernia", "1", "L"))),
         "found 1 of 3 beside another Patient ID"),
        (other_names, r"to name images such as 00000001_000\.png, found none"),
    ],
)  # fmt: skip
def test_another_table_list_or_image_is_refused_with_the_reason(
    top: Path, change: Callable[[Path], object], reason: str
) -> None:
    change(top)
    with pytest.raises(DataError, match=reason):
        NIH().scan([top], 64)


def test_five_percent_sample_is_recognised_as_another_version(tmp_path: Path) -> None:
    (tmp_path / "sample_labels.csv").touch()
    with pytest.raises(DataError, match="5 % sample, which is another version"):
        NIH().scan([tmp_path], 64)


def test_stamp_follows_new_images_and_changed_tables(top: Path) -> None:
    stamps = {NIH().stamp([top])}
    (top / "images_001/images/00000003_000.png").touch()
    stamps.add(NIH().stamp([top]))
    write_table(top, ROWS[:2])
    stamps.add(NIH().stamp([top]))
    assert len(stamps) == 3


@pytest.mark.real_data
@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="BENCH_DATA names no real images")
def test_real_nih_images_are_grouped_by_patient(tmp_path: Path) -> None:
    roots = [Path(part) for part in os.environ["BENCH_DATA"].split(os.pathsep)]
    prepared = prepare(NIH(), roots=roots, cache=tmp_path / "cache")
    assert prepared.subjects is not None
    for subject in np.unique(prepared.subjects):
        assert len(np.unique(prepared.groups[prepared.subjects == subject])) == 1


def test_sex_age_and_view_of_either_edition_are_read(top: Path) -> None:
    assert {name: set(words) for name, words in NIH().scan([top], 16).attributes.items()} == {
        "sex": {"M"}, "age": {"57"}, "view": {"PA"},
    }  # fmt: skip
    table = top / "Data_Entry_2017.csv"
    table.write_text(table.read_text().replace("Patient Gender", "Patient Sex"))
    assert "sex" in NIH().scan([top], 16).attributes


def test_patients_of_both_lists_are_compared_as_people(top: Path) -> None:
    blank = tuple((image, findings, "", mode) for image, findings, _, mode in ROWS)
    write_table(top, blank)
    assert NIH().scan([top], 64).parts == ["train", "train", "test"]  # no patient is on two sides
    write_table(top, (*ROWS[:2], ("00000001_002.png", "Hernia", "01", "L")))
    (top / "test_list.txt").write_text("00000001_002.png\n")
    with pytest.raises(DataError, match="to share no patient, found 1 in both"):
        NIH().scan([top], 64)
