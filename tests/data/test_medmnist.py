from pathlib import Path

import numpy as np
import pytest

from bench.cli import main
from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.medmnist import MedMNIST


def write(
    path: Path, *, shape: tuple[int, ...] = (28, 28), classes: int = 2, columns: int = 1, **changed: object
) -> None:
    random = np.random.default_rng(0)
    arrays: dict[str, object] = {}
    for part, n in (("train", 6), ("val", 3), ("test", 3)):
        arrays[f"{part}_images"] = random.integers(0, 256, (n, *shape), dtype=np.uint8)
        arrays[f"{part}_labels"] = (np.arange(n * columns).reshape(n, columns) % classes).astype(np.uint8)
    arrays |= changed
    np.savez(path, **{name: values for name, values in arrays.items() if values is not None})  # type: ignore[arg-type]


def test_two_classes_become_one_finding(tmp_path: Path) -> None:
    write(tmp_path / "pneumoniamnist.npz")
    prepared = prepare(MedMNIST("pneumoniamnist"), roots=[tmp_path], cache=tmp_path / "cache")
    assert prepared.findings == ("pneumonia",)
    assert not prepared.exclusive
    assert prepared.labels[:, 0].tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0]
    assert prepared.samples.shape == (12, 1, 28, 28)
    assert prepared.name == "medmnist:pneumoniamnist@28"


def test_several_classes_become_exclusive_colour_rows(tmp_path: Path) -> None:
    write(tmp_path / "bloodmnist.npz", shape=(28, 28, 3), classes=8)
    scan = MedMNIST("bloodmnist").scan([tmp_path], None)
    assert scan.exclusive
    assert scan.labels.shape == (12, 8)
    assert scan.samples is not None
    with np.load(tmp_path / "bloodmnist.npz") as file:
        np.testing.assert_array_equal(scan.samples[0, 2], file["train_images"][0, :, :, 2])


def test_several_labels_become_findings(tmp_path: Path) -> None:
    write(tmp_path / "chestmnist.npz", columns=14)
    scan = MedMNIST("chestmnist").scan([tmp_path], None)
    assert len(scan.findings) == 14
    assert not scan.exclusive
    assert scan.origin == "nih-cxr"


def test_images_of_the_kermany_collection_say_so(tmp_path: Path) -> None:
    write(tmp_path / "pneumoniamnist.npz")
    assert MedMNIST("pneumoniamnist").scan([tmp_path], None).origin == "kermany-cxr"


def test_larger_size_reads_its_own_file_and_keeps_its_pixels(tmp_path: Path) -> None:
    (tmp_path / "medmnist").mkdir()
    write(tmp_path / "medmnist/pneumoniamnist_64.npz", shape=(64, 64))
    prepared = prepare(MedMNIST("pneumoniamnist@64"), roots=[tmp_path], cache=tmp_path / "cache")
    assert prepared.size == 64
    assert prepared.name == "medmnist:pneumoniamnist@64"


def test_breast_ultrasound_at_224_pixels_is_one_finding(tmp_path: Path) -> None:
    write(tmp_path / "breastmnist_224.npz", shape=(224, 224))
    prepared = prepare(MedMNIST("breastmnist@224"), roots=[tmp_path], cache=tmp_path / "cache")
    assert prepared.findings == ("normal, benign",)  # the official class 1; class 0 is malignant
    assert prepared.samples.shape == (12, 1, 224, 224)


def test_unofficial_checksum_and_counts_are_notes(tmp_path: Path) -> None:
    write(tmp_path / "pneumoniamnist.npz")
    notes = MedMNIST("pneumoniamnist").scan([tmp_path], None).told
    assert "as MD5 of the file, the official set has 28209eda62fecd6e6a2d98b1501bb15f" in notes[0]
    assert notes[1:4] == (
        "6 train rows, the official set has 4708", "3 val rows, the official set has 524",
        "3 test rows, the official set has 624",
    )  # fmt: skip
    assert main(["data", "verify", "medmnist:pneumoniamnist", "--data-root", str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("flag", "message"),
    [("pneumonia", "got 'pneumonia'"), ("organmnist3d", "2-D sets"), ("breastmnist@32", "28, 64, 128, 224, got '32'")],
)
def test_unknown_sets_volumes_and_sizes_are_refused(flag: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MedMNIST(flag)


def test_file_of_another_size_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "pneumoniamnist_64.npz")
    with pytest.raises(DataError, match=r"expected uint8 images of \(64, 64\) .* found uint8 of \(28, 28\)"):
        MedMNIST("pneumoniamnist@64").scan([tmp_path], None)


def test_labels_out_of_range_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "pneumoniamnist.npz", classes=3)
    with pytest.raises(DataError, match="labels of 1 columns of whole numbers from 0 to 1, found uint8"):
        MedMNIST("pneumoniamnist").scan([tmp_path], None)


def test_absent_part_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "pneumoniamnist.npz", val_labels=None)
    with pytest.raises(DataError, match=r"expected train, val and test images and labels.*val_labels"):
        MedMNIST("pneumoniamnist").scan([tmp_path], None)


def test_web_page_and_truncated_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pneumoniamnist.npz"
    write(path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DataError, match=r"truncated or not a MedMNIST \.npz file"):
        MedMNIST("pneumoniamnist").scan([tmp_path], None)
    path.write_bytes(b"<html>Too many requests</html>")
    with pytest.raises(DataError, match="found an HTML page"):
        MedMNIST("pneumoniamnist").scan([tmp_path], None)


def test_pickled_arrays_are_refused_unread(tmp_path: Path) -> None:
    write(tmp_path / "pneumoniamnist.npz", val_labels=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="are not loaded"):
        MedMNIST("pneumoniamnist").scan([tmp_path], None)


def test_absent_file_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)expected breastmnist_128\.npz.*--download.*zenodo"):
        MedMNIST("breastmnist@128").scan([tmp_path], None)


def test_failed_download_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import medmnist

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no network")

    monkeypatch.setattr(medmnist, "PneumoniaMNIST", fail)
    with pytest.raises(DataError, match=r"pneumoniamnist@28: the download failed \(no network\)"):
        MedMNIST("pneumoniamnist").download(tmp_path)


def test_nearly_identical_images_are_one_person(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    images = random.integers(0, 256, (6, 28, 28), dtype=np.uint8)
    again = np.clip(images[:3].astype(int) + random.integers(-3, 4, (3, 28, 28)), 0, 255).astype(np.uint8)
    write(tmp_path / "pneumoniamnist.npz", train_images=images, val_images=again)
    prepared = prepare(MedMNIST("pneumoniamnist"), roots=[tmp_path], cache=tmp_path / "cache")
    assert prepared.subjects is not None
    assert prepared.subjects[:3].tolist() == prepared.subjects[6:9].tolist()
    assert len(set(prepared.subjects.tolist())) == 9
    assert any("6 images that are nearly identical to others count as 3 people" in note for note in prepared.notes)


def test_a_list_beside_the_file_names_the_people(tmp_path: Path) -> None:
    write(tmp_path / "pneumoniamnist.npz")
    listed = tmp_path / "pneumoniamnist.subjects.txt"
    source = MedMNIST("pneumoniamnist")
    before = source.stamp([tmp_path])
    listed.write_text("".join(f"p{row // 4}\n" for row in range(12)))
    assert source.stamp([tmp_path]) != before
    assert source.scan([tmp_path], None).subjects == [f"p{row // 4}" for row in range(12)]
    listed.write_text("p0\np1\n")
    with pytest.raises(DataError, match=r"expected 12 lines, one for each image .* found 2"):
        source.scan([tmp_path], None)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"train_images": np.zeros((6, 28, 28, 3), np.uint8)}, r"uint8 of \(28, 28\) and uint8 of \(28, 28, 3\)"),
        ({"val_images": np.zeros((3, 28, 28))}, r"float64 of \(28, 28\) and uint8"),
        ({"train_labels": np.zeros(6, np.uint8)}, r"as many columns in each part, found the shapes \(6,\), \(3, 1\)"),
        ({"test_labels": np.zeros((3, 2), np.uint8)}, r"as many columns in each part, .* \(3, 2\)"),
    ],
)
def test_parts_of_different_forms_are_refused(tmp_path: Path, changed: dict[str, object], reason: str) -> None:
    write(tmp_path / "pneumoniamnist.npz", **changed)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=reason):
        MedMNIST("pneumoniamnist").scan([tmp_path], None)
