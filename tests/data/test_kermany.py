import os
from pathlib import Path

import numpy as np
import pytest
from made.data_files import picture
from PIL import Image

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.kermany import KermanyCXR, subject
from bench.data.sets.kermany_oct import KermanyOCT

FILES = {
    "train/NORMAL": ("IM-0115-0001", "IM-0115-0002-0001", "NORMAL2-IM-0381-0001"),
    "train/PNEUMONIA": ("person309_virus_632", "person309_virus_633", "person309_bacteria_900", "person1_virus_6_1"),
    "test/NORMAL": ("IM-0001-0001",),
    "test/PNEUMONIA": ("person309_virus_700",),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number, (folder, stems) in enumerate(FILES.items()):
        (tmp_path / "chest_xray" / folder).mkdir(parents=True)
        for stem in stems:
            pixels = np.random.default_rng([number, *stem.encode()]).integers(0, 256, (20, 30), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "chest_xray" / folder / f"{stem}.jpeg")
    return tmp_path


@pytest.mark.parametrize(
    ("stem", "person"),
    [
        ("MASS-1008087-0001", None),
        ("person309_virus_632", "person309_virus"),
        ("person309_bacteria_632", "person309_bacteria"),
        ("person1_virus_6_1", "person1_virus"),
        ("IM-0001-0001", "IM-0001"),
        ("IM-0115-0001-0002", "IM-0115"),
        ("NORMAL2-IM-0381-0001", "NORMAL2-IM-0381"),
        ("NORMAL2-IM-0381-0001-0002", "NORMAL2-IM-0381"),
        ("BACTERIA-1008087-0001", "BACTERIA-1008087"),
        ("person309", None),
        ("scan", None),
    ],
)
def test_people_are_read_from_official_names_only(stem: str, person: str | None) -> None:
    kinds = [subject(kind, stem) for kind in ("NORMAL", "PNEUMONIA")]
    assert kinds == ([person, None] if "IM" in stem else [None, person])


def test_folders_give_labels_and_names_give_people_across_train_and_test(root: Path) -> None:
    scan = KermanyCXR().scan([root], 64)
    assert scan.paths is not None
    assert scan.subjects is not None
    people = dict(zip([path.stem for path in scan.paths], scan.subjects, strict=True))
    labels = dict(zip([path.stem for path in scan.paths], scan.labels[:, 0].tolist(), strict=True))
    assert len(people) == 9
    assert people["person309_virus_632"] == people["person309_virus_700"] != people["person309_bacteria_900"]
    assert {stem for stem, label in labels.items() if label} == {stem for stem in people if stem.startswith("person")}
    assert scan.findings == ("Pneumonia",)


def test_tree_is_prepared_at_64_pixels_with_one_group_a_person(root: Path, tmp_path: Path) -> None:
    prepared = prepare(KermanyCXR(), roots=[root], cache=tmp_path / "cache")
    assert prepared.samples.shape == (9, 1, 64, 64)
    assert len(np.unique(prepared.groups)) == 6


def test_validation_folder_is_read_where_there_is_one(root: Path) -> None:
    (root / "chest_xray/val/NORMAL").mkdir(parents=True)
    Image.new("L", (4, 4)).save(root / "chest_xray/val/NORMAL/IM-0009-0001.jpeg")
    assert len(KermanyCXR().scan([root], 64).labels) == 10


def test_hidden_files_are_passed_over(root: Path) -> None:
    (root / "chest_xray/train/NORMAL/._IM-0115-0001.jpeg").write_bytes(b"")
    assert len(KermanyCXR().scan([root], 64).labels) == 9


@pytest.mark.parametrize("name", ["holiday", "person309_virus_632"])
def test_a_file_with_a_name_of_no_or_another_class_is_refused_by_name(root: Path, name: str) -> None:
    (root / f"chest_xray/train/NORMAL/{name}.jpeg").write_bytes(b"")
    with pytest.raises(DataError, match=rf"train/NORMAL, found {name}\.jpeg \(1 such files\)"):
        KermanyCXR().scan([root], 64)


def test_missing_and_empty_class_folders_are_named(root: Path) -> None:
    only = root / "chest_xray/test/PNEUMONIA/person309_virus_700.jpeg"
    only.unlink()
    with pytest.raises(DataError, match=r"expected \*\.jpeg files in .*test/PNEUMONIA, found none"):
        KermanyCXR().scan([root], 64)
    only.parent.rmdir()
    with pytest.raises(DataError, match=r"test/PNEUMONIA not found.*data\.mendeley\.com"):
        KermanyCXR().scan([root], 64)


def test_absent_data_say_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)expected train/NORMAL in one of.*data\.mendeley\.com"):
        KermanyCXR().scan([tmp_path], 64)


def test_stamp_follows_replaced_files(root: Path) -> None:
    before = KermanyCXR().stamp([root])
    (root / "chest_xray/test/NORMAL/IM-0001-0001.jpeg").write_bytes(b"other")
    assert KermanyCXR().stamp([root]) != before


@pytest.mark.real_data
@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="BENCH_DATA names no real images")
def test_real_kermany_images_have_4082_people_and_identical_pairs(tmp_path: Path) -> None:
    roots = [Path(part) for part in os.environ["BENCH_DATA"].split(os.pathsep)]
    prepared = prepare(KermanyCXR(), roots=roots, cache=tmp_path / "cache")
    assert prepared.subjects is not None
    assert len(np.unique(prepared.subjects)) == 4082
    assert len({row.tobytes() for row in prepared.digests}) < len(prepared) == 5840


OCT_FILES = [
    "train/CNV/CNV-1016042-1", "train/CNV/CNV-1016042-2", "train/DME/DME-15307-1", "train/DRUSEN/DRUSEN-53018-1",
    "train/NORMAL/NORMAL-12494-1", "test/CNV/CNV-53018-1", "test/DME/DME-9-1", "test/DRUSEN/DRUSEN-8-1",
    "test/NORMAL/NORMAL-7-1",
]  # fmt: skip


@pytest.fixture
def oct_root(tmp_path: Path) -> Path:
    for number, name in enumerate(OCT_FILES):
        picture(tmp_path / "root" / "OCT2017" / f"{name}.jpeg", number)
    return tmp_path / "root"


def test_four_exclusive_classes_and_people_by_number_whatever_the_disease(oct_root: Path, tmp_path: Path) -> None:
    prepared = prepare(KermanyOCT(), roots=[oct_root], cache=tmp_path / "cache")
    assert prepared.exclusive
    assert prepared.labels.argmax(axis=1).tolist() == [0, 0, 1, 2, 3, 0, 1, 2, 3]
    assert prepared.groups[0] == prepared.groups[1]
    assert prepared.groups[3] == prepared.groups[5]  # 53018 has drusen in train and CNV in test
    assert len(np.unique(prepared.groups)) == 7
    assert prepared.parts is not None
    assert prepared.parts.tolist() == [0] * 5 + [2] * 4


def test_a_file_with_another_name_is_refused(oct_root: Path) -> None:
    picture(oct_root / "OCT2017/train/CNV/DME-1-1.jpeg", 9)
    with pytest.raises(DataError, match=r"official names such as CNV-1016042-1\.jpeg"):
        KermanyOCT().scan([oct_root], 64)


def test_a_missing_class_is_named(oct_root: Path) -> None:
    (oct_root / "OCT2017/test/DME").rename(oct_root / "gone")
    with pytest.raises(DataError, match=r"test/DME not found\. Get OCT2017\.tar\.gz"):
        KermanyOCT().scan([oct_root], 64)


def test_the_folder_may_end_with_a_blank_as_in_the_archive_of_kaggle(oct_root: Path) -> None:
    (oct_root / "OCT2017").rename(oct_root / "OCT2017 ")
    assert len(KermanyOCT().scan([oct_root], 64).labels) == len(OCT_FILES)
