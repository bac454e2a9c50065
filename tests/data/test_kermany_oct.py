from pathlib import Path

import numpy as np
import pytest
from made.official_trees import picture

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.kermany_oct import KermanyOCT

FILES = ["train/CNV/CNV-1016042-1", "train/CNV/CNV-1016042-2", "train/DME/DME-15307-1", "train/DRUSEN/DRUSEN-53018-1",
         "train/NORMAL/NORMAL-12494-1", "test/CNV/CNV-53018-1", "test/DME/DME-9-1", "test/DRUSEN/DRUSEN-8-1",
         "test/NORMAL/NORMAL-7-1"]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number, name in enumerate(FILES):
        picture(tmp_path / "root" / "OCT2017" / f"{name}.jpeg", number)
    return tmp_path / "root"


def test_four_exclusive_classes_and_people_by_number_whatever_the_disease(root: Path, tmp_path: Path) -> None:
    prepared = prepare(KermanyOCT(), roots=[root], cache=tmp_path / "cache")
    assert prepared.exclusive
    assert prepared.labels.argmax(axis=1).tolist() == [0, 0, 1, 2, 3, 0, 1, 2, 3]
    assert prepared.groups[0] == prepared.groups[1]
    assert prepared.groups[3] == prepared.groups[5]  # 53018 has drusen in train and CNV in test
    assert len(np.unique(prepared.groups)) == 7
    assert prepared.parts is not None
    assert prepared.parts.tolist() == [0] * 5 + [2] * 4


def test_a_file_with_another_name_is_refused(root: Path) -> None:
    picture(root / "OCT2017/train/CNV/DME-1-1.jpeg", 9)
    with pytest.raises(DataError, match=r"official names such as CNV-1016042-1\.jpeg"):
        KermanyOCT().scan([root], 64)


def test_a_missing_class_is_named(root: Path) -> None:
    (root / "OCT2017/test/DME").rename(root / "gone")
    with pytest.raises(DataError, match=r"test/DME not found\. Get OCT2017\.tar\.gz"):
        KermanyOCT().scan([root], 64)


def test_the_folder_may_end_with_a_blank_as_in_the_archive_of_kaggle(root: Path) -> None:
    (root / "OCT2017").rename(root / "OCT2017 ")
    assert len(KermanyOCT().scan([root], 64).labels) == len(FILES)
