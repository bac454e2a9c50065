import json
import os
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from made.data_files import dicom
from PIL import Image

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.folder import Folder
from bench.runs.release_terms import of_notes


def draw(path: Path, shade: int, blue: int | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (shade, shade if blue is None else 0, shade if blue is None else blue)).save(path)


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    for number, name in enumerate(("cat/a.png", "cat/deep/b.JPG", "dog/c.png")):
        draw(tmp_path / "own" / name, 40 * number)
    (tmp_path / "own/cat/notes.txt").write_text("no image")
    return tmp_path / "own"


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    for number in range(4):
        draw(tmp_path / f"listed/i/{number}.png", 40 * number)
    rows = ("i/0.png,ann,1,0", "i/1.png,bob,0,", "i/2.png,ann,-1,1.0", "i/3.png,,0,0")
    (tmp_path / "listed/labels.csv").write_text("\n".join(("path,subject,Edema,Mass", *rows)) + "\n")
    return tmp_path / "listed"


def test_class_folders_give_exclusive_classes_without_people(classes: Path) -> None:
    scan = Folder(str(classes)).scan([], 8)
    assert scan.findings == ("cat", "dog")
    assert scan.labels.tolist() == [[1, 0], [1, 0], [0, 1]]
    assert scan.exclusive
    assert scan.subjects is None


def test_folder_is_looked_up_under_the_data_roots(classes: Path) -> None:
    assert len(Folder("own").scan([classes.parent], 8).labels) == 3


@pytest.mark.parametrize("path", ["", "labels.csv"])
def test_table_gives_findings_people_and_unknowns(listed: Path, path: str) -> None:
    scan = Folder(str(listed / path)).scan([], 8)
    unknown = np.nan
    np.testing.assert_array_equal(scan.labels, np.array([[1, 0], [0, unknown], [unknown, 1], [0, 0]], np.float32))
    assert scan.findings == ("Edema", "Mass")
    assert scan.subjects == ["ann", "bob", "ann", ""]
    assert not scan.exclusive
    assert prepare(Folder(str(listed / path)), roots=[], cache=listed / "c", size=8).notes == (
        "the person is unknown for 1 of 4 rows",
    )


def test_lines_without_a_word_are_passed_over_as_spreadsheets_leave_them(listed: Path) -> None:
    table = listed / "labels.csv"
    table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes().replace(b"\n", b"\r\n") + b",,,\r\n, ,,\r\n")
    assert len(Folder(str(listed)).scan([], 8).labels) == 4


def test_no_cell_is_repeated_where_a_table_holds_something_else(listed: Path) -> None:
    for header in ("path,name", "path,Edema,split", "path,Edema,age"):
        (listed / "labels.csv").write_text(f"{header}\n" + f"i/0.png{',1' * (header.count(',') - 1)},Zebedee\n")
        with pytest.raises(DataError, match="something else") as caught:
            prepare(Folder(str(listed)), roots=[], cache=listed / "c")
        assert "ebedee" not in str(caught.value)


def test_images_that_a_table_does_not_list_are_counted_also_where_they_come_later(listed: Path, tmp_path: Path) -> None:
    os.symlink(listed / "i/0.png", listed / "again.png")  # noqa: PTH211 - listed under its other name
    (listed / "i/notes.txt").write_text("no image")
    before = prepare(Folder(str(listed)), roots=[], cache=tmp_path / "c")
    assert not any("does not list" in note for note in before.notes)
    for name in ("new.png", "i/deep/new.JPG"):
        draw(listed / name, 9)
    after = prepare(Folder(str(listed / "labels.csv")), roots=[], cache=tmp_path / "c")
    again = prepare(Folder(str(listed)), roots=[], cache=tmp_path / "c")
    for prepared in (after, again):
        assert "2 images below the table's folder that it does not list are left out" in prepared.notes
        assert len(prepared.samples) == 4
    os.symlink(tmp_path / "nowhere", listed / "lost.png")  # noqa: PTH211
    (said,) = (note for note in Folder(str(listed)).scan([], 8).notes if "does not list" in note)
    assert said.startswith("images that the table does not list are not counted: 1 names in the folder are links")


def test_grey_is_the_default_and_colour_a_parameter(classes: Path, tmp_path: Path) -> None:
    draw(classes / "dog/c.png", 80, blue=175)
    grey = prepare(Folder(str(classes)), roots=[], cache=tmp_path / "c")
    assert grey.samples.shape == (3, 1, 64, 64)
    assert "1 of 3 images looked at show colours and become grey: [channels=3] keeps them" in grey.notes
    colour = prepare(Folder(str(classes), channels=3), roots=[], cache=tmp_path / "c", size=8)
    assert colour.samples[2, :, 0, 0].tolist() == [80, 0, 175]
    assert not any("colours" in note for note in colour.notes)


def test_own_images_are_confidential_unless_said_otherwise(listed: Path, tmp_path: Path) -> None:
    closed = prepare(Folder(str(listed)), roots=[], cache=tmp_path / "c")
    shared = prepare(Folder(str(listed), share=True), roots=[], cache=tmp_path / "c")
    assert (closed.shareable, shared.shareable) == (False, True)
    for text in (closed.name, closed.origin, closed.version, *closed.notes):
        assert str(listed) not in text


def test_two_folders_are_two_origins(classes: Path, listed: Path) -> None:
    origins = [Folder(str(path)).scan([], 8).origin for path in (classes, listed, classes)]
    assert origins[0] == origins[2] != origins[1]


def test_all_bad_rows_are_named_by_line(listed: Path) -> None:
    rows = ("i/0.png,ann,yes,0", "i/9.png,bob,0,0", "i/2.png,ann,2,1", "i/2.png,ann,1,1")
    (listed / "labels.csv").write_text("\n".join(("path,subject,Edema,Mass", *rows)) + "\n")
    with pytest.raises(DataError, match="4 bad rows") as caught:
        Folder(str(listed)).scan([], 8)
    for line in (
        "line 2: Edema is something else than 1, 0, blank or -1",
        "line 3: the image was not found",
        "line 4: Edema is something else",
        "line 5: the image is listed a second time",
    ):
        assert line in str(caught.value)


def test_bad_rows_beyond_twenty_are_counted(listed: Path) -> None:
    rows = [f"i/{100 + row}.png,ann,0,0" for row in range(30)]
    (listed / "labels.csv").write_text("\n".join(("path,subject,Edema,Mass", *rows)) + "\n")
    with pytest.raises(DataError, match=r"30 bad rows \(the first 20\)") as caught:
        Folder(str(listed)).scan([], 8)
    assert str(caught.value).count("not found") == 20


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("file,Edema\na.png,1\n", "path not found among file, Edema"),
        ("path,subject\ni/0.png,ann\n", "at least one column of labels"),
        ("path,Edema\n", "found 0 rows"),
        ("path,Edema\ni/0.png\n", "line 2 has 1 cells, expected 2"),
        ("<!DOCTYPE html>", "found an HTML page"),
    ],
)
def test_tables_of_another_form_are_refused(listed: Path, text: str, reason: str) -> None:
    (listed / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=reason):
        Folder(str(listed)).scan([], 8)


def test_single_and_empty_class_folders_are_refused(classes: Path) -> None:
    (classes / "cow").mkdir()
    with pytest.raises(DataError, match="at least two class sub-folders with images, found no image in cow"):
        Folder(str(classes)).scan([], 8)
    with pytest.raises(DataError, match=r"found 1 sub-folders and no labels\.csv"):
        Folder(str(classes / "cat")).scan([], 8)


@pytest.mark.parametrize("name", ["Labels.csv", "labels.CSV", "labels.csv.gz", "labels.xlsx"])
def test_a_table_meant_for_the_images_is_never_passed_over_for_class_folders(classes: Path, name: str) -> None:
    (classes / name).write_text("path,subject,class")
    with pytest.raises(DataError, match=r"found 1 files called labels .*save it as labels\.csv"):
        Folder(str(classes)).scan([], 8)
    (classes / name).rename(classes / "metadata.csv")
    (said,) = (note for note in Folder(str(classes)).scan([], 8).notes if "tables" in note)
    assert said == "1 tables beside the class folders are not read: folder:PATH/TABLE.csv would"


def test_images_of_any_ending_that_can_be_read_count_and_dicom_without_one(classes: Path) -> None:
    for name in ("cat/x.gif", "cat/x.jp2", "dog/x.jfif"):
        draw(classes / "x.png", 9)
        with Image.open(classes / "x.png") as image:
            image.save(classes / name, {"jfif": "JPEG"}.get(name[-4:]))
    dicom(classes / "dog/IM000001", np.zeros((8, 8), np.uint16))
    dicom(classes / "dog/DICOMDIR", np.zeros((8, 8), np.uint16))
    (classes / "x.png").unlink()
    scan = Folder(str(classes)).scan([], 8)
    assert [path.name for path in scan.paths or ()] == [
        "a.png",
        "b.JPG",
        "x.gif",
        "x.jp2",
        "IM000001",
        "c.png",
        "x.jfif",
    ]
    assert "2 files that are no images of a class are left out" in scan.notes


def test_absent_folder_names_the_places_looked_at(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"(?s){tmp_path}/gone.*found none.*one sub-folder of images per class"):
        Folder("gone").scan([tmp_path], 8)


@pytest.mark.parametrize(("path", "channels"), [("", 1), ("x", 2)])
def test_senseless_parameters_are_refused(path: str, channels: int) -> None:
    with pytest.raises(ValueError, match="must"):
        Folder(path, channels=channels)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("path,Subject,Edema\ni/0.png,1,1\n", "expected the column subject, found 'Subject'"),
        ("Path,Edema\ni/0.png,1\n", "expected the column path, found 'Path'"),
        ("path,Edema,Edema\ni/0.png,1,0\n", "each column once"),
        ("path,Edema,edema\ni/0.png,1,0\n", "two findings or classes are called 'edema'"),
        ("path,Edema,\ni/0.png,1,0\n", "column 3 has no name"),
        (",path,Edema\n0,i/0.png,1\n", "column 1 has no name"),
        ("path,Edema,Sex\ni/0.png,1,M\n", "expected the column sex, found 'Sex'"),
        ("path,Edema,sex,attribute:sex\ni/0.png,1,M,F\n", "each attribute once, found sex, attribute:sex"),
        ("path,Edema,attribute:\ni/0.png,1,1\n", "an attribute must be called"),
        ("path,class\ni/0.png,a\n", "expected at least two classes, found 1"),
        ("path,Edema\ni/0.png,true\n", "line 2: Edema is something else than 1, 0"),
        ("path,Edema\ni/0.png,\uff11\n", "Edema is something else than 1, 0"),
        ("path,Edema\ni/0.png,nan\n", "Edema is something else"),
        ("path,Edema\ni/0.png,1,\n", "line 2 has 3 cells, expected 2"),
        ('path,Edema\n"i/0.png,1\ni/1.png,0\n', "not a readable CSV table"),
        ('path,Edema\n"i/0.png"x,1\n', "not a readable CSV table"),
        ("path,Edema\ni/0.png,1\ni/1\0.png,0\n", "line 3 holds the control character"),
        ("path,Edema\ni/0.png,1\n./i/0.png,0\n", "the image is listed a second time"),
        ("path,Edema\ni,1\n", "the image was not found"),
        ("path,Edema\n,1\n", "line 2: path is blank"),
        ("path,Edema\ni\\9.png,1\n", "not found: write / between folders"),
        ("path,Edema,Patient ID\ni/0.png,1,1\n", "the column Patient ID seems to name people. Call it subject"),
        ("path,Edema,subject_id\ni/0.png,1,1\n", "the column subject_id seems to name people"),
        ("path,Edema,pid\ni/0.png,1,1\n", "the column pid seems to name people"),
        ("path,Edema,MRN\ni/0.png,1,1\n", "the column MRN seems to name people"),
        ("path,Edema\nI/0.PNG,1\n", "not found, but one whose name differs in capitals"),
        ("path,class\ni/0.png,none\n", "a word for nothing, such as none or unknown: name the class"),
        ("path,Edema\ngone/../i/0.png,1\n", "line 2: the image was not found"),
        (f"path,Edema\n{'i' * 5000},1\n", "the image was not found"),
    ],
)
def test_cells_that_could_be_read_as_something_else_are_refused(listed: Path, text: str, reason: str) -> None:
    (listed / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=reason):
        prepare(Folder(str(listed)), roots=[], cache=listed / "c")


@pytest.mark.parametrize("name", ["i\\0.png", ".\\i\\0.png"])
def test_folders_may_be_parted_as_windows_does(listed: Path, name: str) -> None:
    (listed / "labels.csv").write_text(f"path,Edema\n{name},1\ni/1.png,0\n")
    scan = Folder(str(listed)).scan([], 8)
    assert scan.paths == [listed / "i/0.png", listed / "i/1.png"]
    assert any(note.startswith("1 images are listed with \\ between folders") for note in scan.notes)


@pytest.mark.parametrize("forms", [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents_may_be_coded_in_another_way_than_in_the_table(listed: Path, forms: tuple[str, str]) -> None:
    on_disk, written = (unicodedata.normalize(form, "Müller é.png") for form in forms)
    (listed / "i/0.png").rename(listed / "i" / on_disk)
    (listed / "labels.csv").write_text(f"path,Edema\ni/{written},1\ni/1.png,0\n", encoding="utf-8")
    assert Folder(str(listed)).scan([], 8).paths == [listed / "i" / on_disk, listed / "i/1.png"]


def test_columns_of_nothing_are_passed_over_and_those_with_cells_need_a_name(listed: Path) -> None:
    (listed / "labels.csv").write_text("path;Edema;;\ni/0.png;1;;\ni/1.png;0; ;\n")
    assert Folder(str(listed)).scan([], 8).findings == ("Edema",)
    (listed / "labels.csv").write_text("path;Edema;;\ni/0.png;1;;x\ni/1.png;0; ;\n")
    with pytest.raises(DataError, match="column 3 has no name"):
        Folder(str(listed)).scan([], 8)
    (listed / "labels.csv").write_text("path;;Edema;;\ni/0.png;a;1;;x\ni/1.png;b;0; ;\n")
    with pytest.raises(DataError, match="columns 2, 5 have no name"):
        Folder(str(listed)).scan([], 8)


def test_a_name_without_its_ending_is_answered_by_the_remedy(listed: Path) -> None:
    (listed / "labels.csv").write_text("path,Edema\ni/0,1\ni/1.png,0\n")
    with pytest.raises(DataError, match="line 2: the image was not found, but one of that name with an ending"):
        Folder(str(listed)).scan([], 8)


def test_what_files_say_of_the_patient_s_identity_is_noted_and_asked_about(tmp_path: Path) -> None:
    for number, removed in enumerate(("YES", "NO", "NO", "")):
        more = {"PatientIdentityRemoved": removed} if removed else {}
        dicom(tmp_path / f"{'ab'[number % 2]}/{number}.dcm", np.full((8, 8), 99, dtype=np.uint16), **more)
    notes = Folder(str(tmp_path)).scan([], 8).notes
    assert "1 of 4 images do not say that the patient's identity was removed from the file" in notes
    assert "1 of 4 images say that the patient's identity was removed, and not how" in notes
    (asked,) = of_notes(notes)
    assert asked.text == "images say of themselves that the patient's identity was not removed"
    assert asked.detail.startswith("2 of 4 images")


def test_archives_are_counted_and_not_opened(classes: Path) -> None:
    (classes / "cat/more.ZIP").write_bytes(b"PK")
    (classes / "old.tar.gz").write_bytes(b"PK")
    notes = Folder(str(classes)).scan([], 8).notes
    assert any(note.startswith("2 archives") for note in notes)
    assert "1 files that are no images of a class are left out" in notes
    for path in classes.rglob("*.png"):
        path.unlink()
    with pytest.raises(DataError, match="2 archives"):
        Folder(str(classes)).scan([], 8)


def test_two_tables_and_folders_of_another_class_are_said(classes: Path) -> None:
    (classes / "labels.csv").write_text("path,class\ncat/a.png,dog\ndog/c.png,dog\ncat/deep/b.JPG,cat\n")
    (classes / "metadata.csv").write_text("file_name,label\ncat/a.png,cat\n")
    notes = Folder(str(classes)).scan([], 8).notes
    assert "1 images lie in a folder that is called like another class than the table's, which is taken" in notes
    assert any(note.startswith("metadata.csv beside labels.csv is not read") for note in notes)


def test_findings_may_have_decimal_commas(listed: Path) -> None:
    (listed / "labels.csv").write_text("path;Edema;age\ni/0.png;1,0;63,5\ni/1.png;0,0;\n")
    assert Folder(str(listed)).scan([], 8).labels.tolist() == [[1], [0]]


def test_a_table_in_another_encoding_is_refused_and_a_byte_order_mark_passed_over(listed: Path) -> None:
    text = "path,\u0152dema\ni/0.png,1\n"
    for encoding in ("utf-8-sig", "utf-16"):
        (listed / "labels.csv").write_bytes(text.encode(encoding))
        assert Folder(str(listed)).scan([], 8).findings == ("\u0152dema",)
    (listed / "labels.csv").write_bytes(text.encode("cp1252"))
    with pytest.raises(DataError, match=r"neither UTF-8 nor UTF-16.*save it as 'CSV UTF-8'"):
        Folder(str(listed)).scan([], 8)


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
def test_what_is_called_labels_and_is_no_file_is_refused(classes: Path, kind: str) -> None:
    table = classes / "labels.csv"
    {"folder": table.mkdir, "pipe": lambda: os.mkfifo(table), "loop": lambda: table.symlink_to(table)}[kind]()
    with pytest.raises(DataError, match=r"a folder|a pipe|symbolic links"):
        Folder(str(classes)).scan([], 8)


def test_one_person_in_several_spellings_stays_on_one_side(tmp_path: Path) -> None:
    subjects = ("1", "1.0", "01", "1e0", "2", "nan", "NaN")
    for row in range(len(subjects)):
        draw(tmp_path / f"{row}.png", 30 * row)
    rows = [f"{row}.png,{subject},{row % 2}" for row, subject in enumerate(subjects)]
    (tmp_path / "labels.csv").write_text("\n".join(["path,subject,Mass", *rows]))
    found = prepare(Folder(str(tmp_path)), roots=[], cache=tmp_path / "c", size=8)
    assert found.groups.tolist() == [0, 0, 0, 0, 1, 2, 3]
    assert found.notes == (
        "the person is unknown for 2 of 7 rows",
        "1 people are written in several ways (blanks, case, or a number as 1, 01 and 1.0) and count as one each",
    )


def test_links_and_left_out_files_are_counted_and_circles_refused(classes: Path, tmp_path: Path) -> None:
    draw(tmp_path / "away/d.png", 9)
    (classes / "dog/away").symlink_to(tmp_path / "away")
    found = prepare(Folder(str(classes)), roots=[], cache=tmp_path / "c", size=8)
    assert len(found) == 4
    assert found.notes[1:] == (
        "1 files that are no images of a class are left out",
        "1 of 4 images are reached through links, and 1 lie outside the set's folder",
    )
    (classes / "dog/up").symlink_to(classes)
    with pytest.raises(DataError, match=r"folder: 1 names .* in circles"):
        prepare(Folder(str(classes)), roots=[], cache=tmp_path / "c")


def test_twelve_bit_images_are_refused_with_a_remedy_that_works(tmp_path: Path) -> None:
    for row in range(4):
        path = tmp_path / f"set/{'ab'[row % 2]}/{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.arange(4096, dtype=np.uint16).reshape(64, 64) // (row + 1)).save(path)
    folder = str(tmp_path / "set")
    with pytest.raises(DataError, match=r"(?s)4 of 4 images cannot be decoded:\n  4: .*folder:PATH\[bits=12\]"):
        prepare(Folder(folder), roots=[], cache=tmp_path / "c")
    found = prepare(Folder(folder, bits=12), roots=[], cache=tmp_path / "c")
    assert len(np.unique(found.samples[0])) == 256
    assert "4 of 4 images: grey values of 12 bits become 8 bits: 0 is black, 4095 white" in found.notes
    doubtful = prepare(Folder(folder, bits=16), roots=[], cache=tmp_path / "c")
    assert "no value needs more than 12 of the 16 bits that were stated" in doubtful.notes
    with pytest.raises(ValueError, match=r"bits must be in \[8, 16\]"):
        Folder(folder, bits=17)


def test_large_images_are_refused_and_the_limit_can_be_raised(classes: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)3 of 3 .*3: more than 63 pixels: .* raise --max-pixels"):
        prepare(Folder(str(classes)), roots=[], cache=tmp_path / "c", max_pixels=63)
    assert len(prepare(Folder(str(classes)), roots=[], cache=tmp_path / "c", max_pixels=64)) == 3


@pytest.mark.parametrize("kind", ["classes", "listed"])
def test_replaced_image_is_noticed(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder: Path = request.getfixturevalue(kind)
    first = prepare(Folder(str(folder)), roots=[], cache=tmp_path / "c")
    draw(sorted(folder.rglob("*.png"))[0], 200)
    assert prepare(Folder(str(folder)), roots=[], cache=tmp_path / "c").fingerprint != first.fingerprint


def test_truncated_image_is_refused_without_its_name(classes: Path, tmp_path: Path) -> None:
    path = classes / "dog/c.png"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match="1 of 3 images cannot be decoded") as caught:
        prepare(Folder(str(classes)), roots=[], cache=tmp_path / "c")
    assert "dog" not in str(caught.value)


def test_columns_of_words_are_groups_and_no_findings(listed: Path) -> None:
    table = listed / "labels.csv"
    header, *rows = table.read_text().splitlines()
    words = ("F,a", "M,b", "F,a", ",b")
    table.write_text(
        "\n".join([f"{header},sex,attribute:scanner", *map(",".join, zip(rows, words, strict=True))]) + "\n"
    )
    scan = Folder(str(listed)).scan([], 8)
    assert scan.findings == ("Edema", "Mass")
    assert dict(scan.attributes) == {"sex": ["F", "M", "F", ""], "scanner": ["a", "b", "a", "b"]}


def rewrite(listed: Path, header: str, *rows: str) -> Folder:
    (listed / "labels.csv").write_text("\n".join((header, *rows)) + "\n")
    return Folder(str(listed))


def test_a_column_of_classes_gives_exclusive_classes_people_and_parts(listed: Path) -> None:
    source = rewrite(
        listed, "path,subject,class,split", "i/0.png,1,path,train", "i/1.png,01,Mass ,valid", "i/2.png,1.0,mass,TEST",
        "i/3.png,nan,none given,",
    )  # fmt: skip
    prepared = prepare(source, roots=[], cache=listed / "c")
    assert prepared.exclusive
    assert prepared.findings == ("Mass", "none given", "path")
    assert prepared.labels.argmax(axis=1).tolist() == [2, 0, 0, 1]
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0, 0, 0, 1]
    assert prepared.parts is not None
    assert prepared.parts.tolist() == [0, 1, 2, -1]
    assert "the column split is read by --splits official alone" in prepared.notes


def test_a_number_written_in_several_ways_is_one_class_and_one_site(listed: Path) -> None:
    rows = ("i/0.png,2,1", "i/1.png,1.0,01", "i/2.png,1,1.0", "i/3.png,01,2")
    prepared = prepare(rewrite(listed, "path,class,site", *rows), roots=[], cache=listed / "c")
    assert prepared.findings == ("1.0", "2")
    assert prepared.labels.argmax(axis=1).tolist() == [1, 0, 0, 0]
    assert prepared.attributes is not None
    assert prepared.attributes.named() == {"site": ["1", "2"]}


def test_classes_that_are_no_whole_numbers_stay_apart_and_people_do_not(listed: Path) -> None:
    rows = ("i/0.png,1.1,1.1", "i/1.png,1.10,1.10", "i/2.png,1.2 ,2", "i/3.png,1.2,3")
    prepared = prepare(rewrite(listed, "path,class,subject", *rows), roots=[], cache=listed / "c")
    assert prepared.findings == ("1.1", "1.10", "1.2")
    assert prepared.labels.argmax(axis=1).tolist() == [0, 1, 2, 2]
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0, 0, 1, 2]


def test_a_column_of_words_is_told_what_to_be_called(listed: Path) -> None:
    for cells, hint in ((("melanoma", "1"), True), (("2", "1"), False), (("2", "x"), False)):
        source = rewrite(listed, "path,diagnosis", *(f"i/{row}.png,{cell}" for row, cell in enumerate(cells)))
        with pytest.raises(DataError, match="diagnosis is something else than 1, 0, blank or -1") as caught:
            source.scan([], 8)
        assert ("call it class if it names classes, or attribute:diagnosis" in str(caught.value)) == hint
        assert "melanoma" not in str(caught.value)


def test_words_for_nothing_in_a_column_of_findings_are_to_be_blanks(listed: Path) -> None:
    """R writes NA where nothing is known."""
    with pytest.raises(DataError, match="0, blank or -1: leave cells blank if nothing is known"):
        rewrite(listed, "path,Edema", "i/0.png,1", "i/1.png,NA").scan([], 8)


def test_one_hot_columns_are_classes_where_that_is_said_and_true(listed: Path) -> None:
    rows = ("i/0.png,1,0", "i/1.png,0,1", "i/2.png,1,0")
    assert not rewrite(listed, "path,a,b", *rows).scan([], 8).exclusive
    assert Folder(str(listed), exclusive=True).scan([], 8).exclusive
    for wrong in ("1,1", "0,0", "1,"):
        rewrite(listed, "path,a,b", *rows, f"i/3.png,{wrong}")
        with pytest.raises(DataError, match="line 5: expected exactly one of the classes to be 1"):
            Folder(str(listed), exclusive=True).scan([], 8)


@pytest.mark.parametrize(
    ("header", "row", "reason"),
    [
        ("path,class,Edema", "i/0.png,a,1", "there can be no other labels; found Edema"),
        ("path,class", "i/0.png,n/a", "line 2: class is blank"),
        ("path,class,age", "i/0.png,a,1.2.1950", "line 2: age: expected an age as a number of years"),
        ("path,class,split", "i/0.png,a,training", "line 2: split is something else than train, val, test or blank"),
    ],
)
def test_classes_and_parts_that_say_nothing_are_errors(listed: Path, header: str, row: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        rewrite(listed, header, row).scan([], 8)


def test_dicom_files_of_a_class_folder_are_read(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b")):
        dicom(tmp_path / "own" / name / "x.dcm", np.full((8, 8), 2048 * number, np.uint16))
    prepared = prepare(Folder(str(tmp_path / "own")), roots=[], cache=tmp_path / "c")
    assert [int(row.max()) for row in prepared.samples] == [0, 128]


@pytest.mark.parametrize(
    ("folders", "found"),
    [
        (("train", "Valid", "test"), "Valid, test, train"),
        (("Training", "Testing"), "Testing, Training"),
        (("train", "test", "metadata"), "test, train"),
        (("dev", "evaluation", "cat", "dog"), "dev, evaluation"),
        (("train",), "train"),
    ],
)
def test_parts_of_a_split_are_no_classes(tmp_path: Path, folders: tuple[str, ...], found: str) -> None:
    for part in folders:
        for number, kind in enumerate(("cat", "dog")):
            draw(tmp_path / part / kind / "0.png", number)
    with pytest.raises(DataError, match=f"found {found}, which are parts of a split: name one of them"):
        prepare(Folder(str(tmp_path)), roots=[], cache=tmp_path / "cache")


def test_a_dicom_file_that_may_not_be_read_is_refused_and_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("a/IM1", "a/IM2", "b/IM1")):
        dicom(tmp_path / "own" / name, np.full((8, 8), number, np.uint16))
    whole = Path.open

    def closed(path: Path, *told: str, **more: str) -> object:
        if path.name == "IM2":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path, *told, **more)

    monkeypatch.setattr(Path, "open", closed)
    with pytest.raises(DataError, match=r"(?s)1 of 3 images cannot be decoded:\n  1: no permission to read it"):
        prepare(Folder(str(tmp_path / "own")), roots=[], cache=tmp_path / "c")


def test_a_single_class_may_be_called_as_a_part_is(classes: Path) -> None:
    (classes / "cat").rename(classes / "test")
    assert Folder(str(classes)).scan([], 8).findings == ("dog", "test")


@pytest.mark.parametrize(
    ("folders", "images", "people"), [(11, 1, True), (33, 5, True), (10, 1, False), (11, 5, False)]
)
def test_a_folder_a_person_is_not_taken_for_a_class(tmp_path: Path, folders: int, images: int, people: bool) -> None:
    for number in range(folders):
        (tmp_path / f"Mueller {number}").mkdir()
        for image in range(images):
            Image.new("L", (4, 4), image).save(tmp_path / f"Mueller {number}" / f"{image}.png")
    assert len(Folder(str(tmp_path), exclusive=True).scan((), None).findings) == folders
    if people:
        with pytest.raises(
            DataError, match=f"{folders} sub-folders with {folders * images} images look like"
        ) as caught:
            Folder(str(tmp_path)).scan((), None)
        assert "Mueller" not in str(caught.value)
    else:
        assert len(Folder(str(tmp_path)).scan((), None).findings) == folders


@pytest.mark.parametrize(
    ("names", "people"),
    [
        ([f"Patient_{number}" for number in range(6)], True),
        (["subject01", "subject02", "controls"], True),
        (["person-3", "case7", "Pat 12"], True),
        (["subject01", "mass", "controls"], False),
        (["patient", "control"], False),
        (["pattern1", "pattern2"], False),
    ],
)
def test_folders_called_after_people_are_not_taken_for_classes(tmp_path: Path, names: list[str], people: bool) -> None:
    for number, name in enumerate(names):
        draw(tmp_path / name / "0.png", number)
    assert len(Folder(str(tmp_path), exclusive=True).scan((), None).findings) == len(names)
    if people:
        with pytest.raises(DataError, match=f"{len(names)} sub-folders with {len(names)} images look like people"):
            Folder(str(tmp_path)).scan((), None)
    else:
        assert len(Folder(str(tmp_path)).scan((), None).findings) == len(names)


def test_a_class_whose_name_is_no_text_is_refused_with_the_name_of_the_set(classes: Path, tmp_path: Path) -> None:
    (classes / os.fsdecode(b"\xff")).mkdir()
    draw(classes / os.fsdecode(b"\xff") / "0.png", 9)
    with pytest.raises(DataError, match="folder: the name of a finding or class: expected readable text"):
        prepare(Folder(str(classes)), roots=[], cache=tmp_path / "cache")


def test_a_folder_whose_name_is_no_utf_8_is_read(tmp_path: Path) -> None:
    top = Path(os.fsdecode(os.fsencode(tmp_path) + b"/K\xfcche"))
    for kind in ("a", "b"):
        (top / kind).mkdir(parents=True)
        Image.new("L", (8, 8)).save(top / kind / "1.png")
    assert Folder(str(top)).scan([], 8).findings == ("a", "b")


def test_images_under_names_that_systems_make_are_no_class_and_are_counted(classes: Path, tmp_path: Path) -> None:
    for name in (
        "#recycle/x.png",
        "$RECYCLE.BIN/S-1/y.png",
        "cat/@eaDir/a.png/z.jpg",
        "dog/._c.png",
        "dog/c_thumb.jpg",
    ):
        draw(classes / name, 99)
    found = prepare(Folder(str(classes)), roots=[], cache=tmp_path / "c", size=8)
    assert found.findings == ("cat", "dog")
    assert len(found) == 3
    said = "images in recycle bins, thumbnails, hidden files and other names that systems make are left out"
    assert f"5 {said}" in found.notes
    draw(classes / "#recycle/deep/w.png", 9)  # no folder that is read has changed
    assert f"6 {said}" in prepare(Folder(str(classes)), roots=[], cache=tmp_path / "c", size=8).notes


def test_a_table_lists_no_deleted_image(listed: Path) -> None:
    draw(listed / "#recycle/gone.png", 99)
    draw(listed / ".mine/kept.png", 98)
    with pytest.raises(DataError, match="line 3: the image has a name that systems make, as in a recycle bin"):
        rewrite(listed, "path,Edema", "i/0.png,1", "#recycle/gone.png,1").scan([], 8)
    scan = rewrite(listed, "path,Edema", "i/0.png,1", ".mine/kept.png,1").scan([], 8)
    assert any(note.startswith("1 images in recycle bins") for note in scan.notes)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_hugging_face_image_folder_is_read_as_the_same_table(listed: Path, ending: str) -> None:
    own = Folder(str(listed)).scan([], 8)
    lines = (listed / "labels.csv").read_text().replace("path,", "file_name,").splitlines()
    (listed / "labels.csv").unlink()
    names, *rows = [line.split(",") for line in lines]
    objects = [{name: cell or None for name, cell in zip(names, row, strict=True)} for row in rows]
    text = "\n".join(lines if ending == "csv" else map(json.dumps, objects))
    (listed / f"metadata.{ending}").write_text(f"{text}\n")
    scan = Folder(str(listed)).scan([], 8)
    np.testing.assert_array_equal(scan.labels, own.labels)
    assert (scan.findings, scan.subjects, scan.paths) == (own.findings, own.subjects, own.paths)


def test_a_list_of_monai_is_read_as_the_same_table(listed: Path) -> None:
    own = Folder(str(listed)).scan([], 8)
    names, *rows = [line.split(",") for line in (listed / "labels.csv").read_text().splitlines()]
    (listed / "labels.csv").unlink()
    known = ("path", "subject", "split", "class", "sex", "age", "view", "site")
    findings = [name for name in names if name not in known]
    told: dict[str, object] = {"labels": {str(k): name for k, name in enumerate(findings)}}
    parts: dict[str, list[object]] = {"training": [], "validation": [], "test": []}
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        marks = [None if cells[name] in ("", "-1") else int(float(cells[name])) for name in findings]
        rest = {name: cell for name, cell in cells.items() if name in known and name not in ("path", "split")}
        parts["training"].append({"image": cells["path"], "label": marks, "fold": 0, **rest})
    (listed / "datalist.json").write_text(json.dumps({**told, **parts}))
    scan = Folder(str(listed)).scan([], 8)
    assert (scan.findings, scan.subjects, scan.paths) == (own.findings, own.subjects, own.paths)
    np.testing.assert_array_equal(scan.labels, own.labels)


def test_classes_of_a_list_of_monai_have_names_and_parts(listed: Path) -> None:
    (listed / "labels.csv").unlink()
    rows = [{"image": f"./i/{number}.png", "label": number % 2} for number in range(4)]
    told = {"labels": {"0": "well", "1": "ill"}, "training": rows[:3], "validation": rows[3:], "test": []}
    (listed / "dataset.json").write_text(json.dumps(told))
    scan = Folder(str(listed)).scan([], 8)
    assert (scan.findings, scan.exclusive) == (("ill", "well"), True)
    assert [scan.findings[k] for k in scan.labels.argmax(axis=1)] == ["well", "ill", "well", "ill"]
    assert scan.parts is not None
    assert list(scan.parts) == ["train", "train", "train", "val"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"label": 1}, "expected objects with image, a file"),
        ({"image": "i/0.png", "label": [0.5]}, "holds 1, 0 or null"),
        ({"image": "i/0.png", "label": {"mask": "x"}}, "expected objects with image, a file"),
    ],
)
def test_an_entry_of_monai_that_is_no_row_is_refused(listed: Path, entry: dict[str, object], words: str) -> None:
    (listed / "labels.csv").unlink()
    (listed / "datalist.json").write_text(json.dumps({"training": [entry]}))
    with pytest.raises(DataError, match=words):
        Folder(str(listed)).scan([], 8)


def test_labels_of_an_image_folder_are_classes_whatever_their_kind(listed: Path) -> None:
    (listed / "labels.csv").unlink()
    rows = [{"file_name": f"i/{number}.png", "label": number % 2 == 1, "age": 40 + number} for number in range(4)]
    (listed / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scan = Folder(str(listed)).scan([], 8)
    assert (scan.findings, scan.exclusive) == (("0", "1"), True)
    assert scan.labels.argmax(axis=1).tolist() == [0, 1, 0, 1]
    assert scan.attributes == {"age": ["40", "41", "42", "43"]}


@pytest.mark.parametrize("line", ["{", "[]", '{"label": 1}', '{"file_name": "i/0.png", "objects": {"bbox": []}}'])
def test_a_line_of_metadata_that_is_no_row_is_named(listed: Path, line: str) -> None:
    (listed / "labels.csv").unlink()
    (listed / "metadata.jsonl").write_text(f'{{"file_name": "i/0.png", "label": 1}}\n{line}\n')
    with pytest.raises(DataError, match="line 2: expected a JSON object of texts and numbers with file_name"):
        Folder(str(listed)).scan([], 8)


def test_another_table_called_metadata_stays_unread_beside_class_folders(classes: Path) -> None:
    (classes / "metadata.csv").write_text("study,site\n1,a\n")
    assert Folder(str(classes)).scan([], 8).findings == ("cat", "dog")


def test_what_dicom_files_say_of_themselves_is_counted_and_no_report_is_a_corrupt_image(tmp_path: Path) -> None:
    values = np.arange(64, dtype=np.uint16).reshape(8, 8) * 64
    for row in range(4):
        dicom(tmp_path / f"set/{'ab'[row % 2]}/{row}.dcm", values + row, BurnedInAnnotation="NO")
    dicom(tmp_path / "set/a/5.dcm", values + 5, BurnedInAnnotation="YES", PatientIdentityRemoved="YES")
    dicom(tmp_path / "set/b/6.dcm", values + 6)
    dicom(tmp_path / "set/b/SR", values, SOPClassUID="1.2.840.10008.5.1.4.1.1.88.33")
    found = prepare(Folder(str(tmp_path / "set")), roots=[], cache=tmp_path / "c")
    assert len(found) == 6
    for note in (
        "1 of 7 files are DICOM objects without an image, such as reports, and are left out",
        "1 of 7 images are scanned films or captured screens that do not say whether they show text",
        "5 of 7 images do not say that the patient's identity was removed from the file",
    ):
        assert note in found.notes
    assert any("1 of 7 images say that text is part of their pixels, which has to be settled" in n for n in found.notes)
    clean = prepare(Folder(str(tmp_path / "set"), burned_in="leave-out"), roots=[], cache=tmp_path / "c")
    assert len(clean) == 5
    kept = prepare(Folder(str(tmp_path / "set"), burned_in="keep"), roots=[], cache=tmp_path / "c")
    assert len(kept) == 6
    assert not any("settled" in note for each in (clean, kept) for note in each.notes)
    with pytest.raises(ValueError, match="burned_in must be"):
        Folder("x", burned_in="no")  # type: ignore[arg-type]


def test_a_class_of_reports_alone_is_refused(tmp_path: Path) -> None:
    values = np.zeros((8, 8), np.uint16)
    for name, kind in (("a/0", "1.1"), ("b/0", "1.1"), ("c/0", "88.11")):
        dicom(tmp_path / f"{name}.dcm", values, SOPClassUID=f"1.2.840.10008.5.1.4.1.1.{kind}")
    with pytest.raises(DataError, match="1 classes have no image left: 1 of 3 files are DICOM objects without an"):
        Folder(str(tmp_path)).scan([], 8)
