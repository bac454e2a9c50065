from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torchvision import datasets

from bench.contract.source import DataError, Source
from bench.data.prepare import prepare, verify
from bench.data.sets.stl10 import STL10
from bench.data.sets.torchvision_sets import DTD, FGVCAircraft, OxfordPets


def photograph(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng([*path.name.encode()]).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def write_list(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def dtd(root: Path) -> None:
    for part, number in (("train", 1), ("val", 2), ("test", 3)):
        named = [f"{texture}/{texture}_{number:04d}.jpg" for texture in ("banded", "dotted", "woven")]
        write_list(root / f"dtd/dtd/labels/{part}1.txt", named)
        for name in named:
            photograph(root / "dtd/dtd/images" / name)


def pets(root: Path) -> None:
    breeds = ("Abyssinian", "american_bulldog", "Bengal")  # listed alphabetically but for their case, as the official
    for part, numbers in (("trainval", (1, 2)), ("test", (3,))):
        rows = [(f"{breed}_{number}", place) for place, breed in enumerate(breeds, start=1) for number in numbers]
        write_list(root / f"oxford-iiit-pet/annotations/{part}.txt", [f"{name} {place} 1 1" for name, place in rows])
        for name, _ in rows:
            photograph(root / f"oxford-iiit-pet/images/{name}.jpg")


def aircraft(root: Path) -> None:
    data = root / "fgvc-aircraft-2013b/data"
    variants = ["737-200", "An-12", "Cessna 172"]
    write_list(data / "variants.txt", variants)
    for start, part in ((0, "train"), (3, "val"), (6, "test")):
        rows = [f"{start + place:07d} {variant}" for place, variant in enumerate(variants)]
        write_list(data / f"images_variant_{part}.txt", rows)
        for row in rows:
            photograph(data / f"images/{row.partition(' ')[0]}.jpg")
    write_list(data / "images_variant_trainval.txt", [])


def stl10(root: Path) -> None:
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for part, n in (("train", 12), ("test", 10)):
        random.integers(0, 256, (n, 3, 96, 96), dtype=np.uint8).tofile(folder / f"{part}_X.bin")
        (np.arange(n) % 10 + 1).astype(np.uint8).tofile(folder / f"{part}_y.bin")
    write_list(folder / "class_names.txt", [f"class {number}" for number in range(10)])


SETS = ((STL10, stl10), (DTD, dtd), (OxfordPets, pets), (FGVCAircraft, aircraft))


@pytest.mark.parametrize(("source", "write"), SETS[1:])
def test_all_parts_are_joined_as_colour_rows_of_exclusive_classes(source, write, tmp_path: Path) -> None:
    write(tmp_path / "raw")
    prepared = prepare(source(), roots=[tmp_path / "raw"], cache=tmp_path / "cache")
    verify(prepared)
    assert prepared.samples.shape == (9, 3, 64, 64)
    assert prepared.exclusive
    assert prepared.labels.sum(axis=0).tolist() == [3, 3, 3]
    assert prepared.subjects is None
    assert any(note.startswith("9 rows, the official set has ") for note in prepared.notes)


@pytest.mark.parametrize(
    ("source", "write", "theirs"),
    [
        (DTD, dtd, lambda root, part: datasets.DTD(root, split=part)),
        (FGVCAircraft, aircraft, lambda root, part: datasets.FGVCAircraft(root, split=part)),
        (OxfordPets, pets, lambda root, part: datasets.OxfordIIITPet(root, split=part)),
    ],
)
def test_torchvision_reads_the_same_images_and_classes(source, write, theirs, tmp_path: Path) -> None:
    write(tmp_path)
    scan = source().scan([tmp_path], 64)
    parts = ("trainval", "test") if source is OxfordPets else ("train", "val", "test")
    read = [item for part in parts for item in theirs(str(tmp_path), part)]
    assert scan.labels.argmax(axis=1).tolist() == [label for _, label in read]
    assert scan.paths is not None
    for path, (image, _) in zip(scan.paths, read, strict=True):
        np.testing.assert_array_equal(np.asarray(Image.open(path)), np.asarray(image))


def test_torchvision_reads_the_same_stl10(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stl10(tmp_path)
    monkeypatch.setattr(datasets.STL10, "_check_integrity", lambda self: True)  # ours are not the official files
    prepared = prepare(STL10(), roots=[tmp_path], cache=tmp_path / "cache")
    read = [item for part in ("train", "test") for item in datasets.STL10(str(tmp_path), split=part)]
    assert prepared.labels.argmax(axis=1).tolist() == [int(label) for _, label in read]
    assert prepared.samples.shape == (22, 3, 96, 96)
    for ours, (image, _) in zip(prepared.samples, read, strict=True):
        np.testing.assert_array_equal(ours.transpose(1, 2, 0), np.asarray(image))
    assert prepared.notes[0] == "12 train rows, the official set has 5000"
    assert prepared.findings[9] == "class 9"


@pytest.mark.parametrize(
    ("write", "source", "file", "message"),
    [
        (dtd, DTD, "dtd/dtd/images/woven/woven_0003.jpg", r"1 of 9 listed images .* first woven/woven_0003\.jpg"),
        (pets, OxfordPets, "oxford-iiit-pet/images/Bengal_3.jpg", r"first Bengal_3\.jpg"),
        (aircraft, FGVCAircraft, "fgvc-aircraft-2013b/data/images/0000004.jpg", r"first 0000004\.jpg"),
        (dtd, DTD, "dtd/dtd/labels/val1.txt", r"expected .*val1\.txt, found none"),
        (pets, OxfordPets, "oxford-iiit-pet/annotations/test.txt", r"expected .*test\.txt, found none"),
        (stl10, STL10, "stl10_binary/test_y.bin", r"expected .*test_y\.bin, found none"),
        (stl10, STL10, "stl10_binary/class_names.txt", r"expected .*class_names\.txt, found none"),
    ],
)
def test_partial_trees_are_refused_with_what_is_missing(write, source, file, message, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(DataError, match=f"{message}.*--download"):
        source().scan([tmp_path], 64)


@pytest.mark.parametrize(
    ("write", "source", "file", "content", "message"),
    [
        (aircraft, FGVCAircraft, "fgvc-aircraft-2013b/data/images_variant_val.txt", "0000003 Concorde\n",
         r"1 of unknown classes \(Concorde\), 3 known classes"),
        (dtd, DTD, "dtd/dtd/labels/val1.txt", "banded/banded_0001.jpg\n", "found 1 listed again"),
        (pets, OxfordPets, "oxford-iiit-pet/annotations/test.txt", "Bengal_3 three 1 1\n",
         "line 1: expected a name such as Abyssinian_100 and three numbers, got 'Bengal_3 three 1 1'"),
        (stl10, STL10, "stl10_binary/class_names.txt", "one\ntwo\n", "expected 10 names, found 2"),
        (stl10, STL10, "stl10_binary/test_y.bin", "\x0b" * 10, "10 classes up to 11"),
        (stl10, STL10, "stl10_binary/train_X.bin", "x" * 5000, "found 5000 bytes and 12 classes"),
        (stl10, STL10, "stl10_binary/train_X.bin", "<html></html>", "found an HTML page"),
        (dtd, DTD, "dtd/dtd/labels/val1.txt", "<!DOCTYPE html><html></html>", "found an HTML page"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_with_the_reason(write, source, file, content, message, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(DataError, match=message):
        source().scan([tmp_path], 64)


@pytest.mark.parametrize("source", [source for source, _ in SETS])
def test_absent_data_say_how_to_get_them(source: type[Source], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"bench data prepare {source.name} --download"):
        source().scan([tmp_path], 64)


@pytest.mark.parametrize(("source", "write"), SETS)
def test_stamp_follows_changed_files(source, write, tmp_path: Path) -> None:
    write(tmp_path)
    before = source().stamp([tmp_path])
    found = source().scan([tmp_path], 64).paths
    changed = found[0] if found else tmp_path / "stl10_binary/train_X.bin"
    changed.write_bytes(b"other")
    assert source().stamp([tmp_path]) != before


@pytest.mark.parametrize(
    ("source", "theirs"),
    [(STL10, "STL10"), (DTD, "DTD"), (OxfordPets, "OxfordIIITPet"), (FGVCAircraft, "FGVCAircraft")],
)
def test_download_is_torchvision_s_and_its_failure_says_so(source, theirs, tmp_path, monkeypatch) -> None:
    asked = []

    def fail(*given: object, **options: object) -> None:
        asked.append((given, options))
        raise RuntimeError("no network")

    monkeypatch.setattr(datasets, theirs, fail)
    with pytest.raises(DataError, match=rf"{source.name}: the download failed \(no network\)"):
        source().download(tmp_path)
    assert asked == [((str(tmp_path),), {"download": True})]
