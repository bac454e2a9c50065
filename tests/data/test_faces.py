import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
from made.data_files import noise, picture
from scipy.io import savemat

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.faces import LFW, Olivetti


def test_folders_of_lfw_are_people(tmp_path: Path) -> None:
    for number, name in enumerate(("Ann_Lee/Ann_Lee_0001", "Ann_Lee/Ann_Lee_0002", "Bo/Bo_0001")):
        picture(tmp_path / "scikit_learn_data/lfw_home/lfw_funneled" / f"{name}.jpg", number, 25, 25, 3)
    prepared = prepare(LFW(), roots=[tmp_path], cache=tmp_path / "cache")
    assert prepared.samples.shape == (3, 3, 64, 64)
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0, 0, 1]
    assert prepared.findings == ()
    assert "2 people, the official set has 5749" in prepared.notes


def test_a_replaced_face_is_seen(tmp_path: Path) -> None:
    for number in range(2):
        picture(tmp_path / f"lfw/Bo/Bo_000{number}.jpg", number, 9, 9, 3)
    before = prepare(LFW(), roots=[tmp_path], cache=tmp_path / "cache")
    picture(tmp_path / "lfw/Bo/Bo_0001.jpg", 7, 9, 9, 3)
    picture(tmp_path / "lfw/Bo/Bo_0002.jpg", 8, 9, 9, 3)
    after = prepare(LFW(), roots=[tmp_path], cache=tmp_path / "cache")
    assert len(after) == 3
    assert (after.digests[1] != before.digests[1]).any()


def test_a_face_in_another_folder_is_refused(tmp_path: Path) -> None:
    picture(tmp_path / "lfw/Bo/Ann_0001.jpg", 1, 9, 9, 3)
    with pytest.raises(DataError, match="1 have another name than their folder"):
        LFW().scan([tmp_path], 64)


@pytest.mark.parametrize("inner", ["lfw", "lfw_funneled"])
def test_lfw_may_lie_in_a_folder_of_its_own_name(tmp_path: Path, inner: str) -> None:
    picture(tmp_path / "lfw" / inner / "Bo/Bo_0001.jpg", 1, 9, 9, 3)
    assert LFW().scan([tmp_path], 64).subjects == ["Bo"]


@pytest.mark.parametrize("kind", ["mat", "npy"])
def test_olivetti_has_ten_images_a_person_upright(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    faces = noise(1, 20, 64, 64)
    if kind == "mat":  # a column an image, each column by column, as the official file has them
        path = tmp_path / "olivettifaces.mat"
        savemat(path, {"faces": faces.transpose(0, 2, 1).reshape(20, -1).T})
        monkeypatch.setattr("bench.data.sets.faces._SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    else:
        np.save(tmp_path / "olivetti_faces.npy", faces)
    prepared = prepare(Olivetti(), roots=[tmp_path], cache=tmp_path / "cache")
    np.testing.assert_array_equal(prepared.samples[:, 0], faces)
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [0] * 10 + [1] * 10


def test_the_pickle_that_scikit_learn_keeps_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "olivetti_py3.pkz").write_bytes(pickle.dumps(noise(1, 10, 64, 64)))
    with pytest.raises(DataError, match="bench data prepare olivetti --download"):
        Olivetti().scan([tmp_path], None)


def test_another_array_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "olivetti_faces.npy", noise(1, 15, 64, 64))
    with pytest.raises(DataError, match="expected ten uint8 images"):
        Olivetti().scan([tmp_path], None)
    (tmp_path / "olivetti_faces.npy").write_bytes(b"<html>")
    with pytest.raises(DataError, match="expected the Olivetti faces"):
        Olivetti().scan([tmp_path], None)


def test_files_of_another_ending_are_counted(tmp_path: Path) -> None:
    for number, name in enumerate(("Ann/Ann_0001.jpg", "Ann/Ann_0002.JPG", "Bo/Bo_0001.png")):
        picture(tmp_path / "lfw" / name, number, 9, 9, 3)
    assert LFW().scan([tmp_path], 64).notes == ("2 files that are not NAME/*.jpg are left out",)


@pytest.mark.parametrize("length", [None, 1, 20_000])
def test_a_matlab_file_with_another_checksum_is_not_opened(tmp_path: Path, length: int | None) -> None:
    path = tmp_path / "olivettifaces.mat"
    savemat(path, {"faces": noise(1, 4096, 20)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError, match=r"expected the Olivetti faces.*another checksum"):
        Olivetti().scan([tmp_path], None)
