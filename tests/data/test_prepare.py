import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from PIL import Image

from bench.contract.source import DataError, Scan, Source
from bench.data import prepare as prepare_module
from bench.data.prepare import prepare, verify
from bench.data.prepared import connect
from bench.data.raw_files import stamp_folder
from bench.plugins.code_digest import definitions


@dataclass(frozen=True)
class Pictures(Source):
    """All *.png of the first root; the person is the part of the name before "-"."""

    invert: bool = False

    name: ClassVar[str] = "pictures"
    title: ClassVar[str] = "Pictures"
    source: ClassVar[str] = "this test"
    public: ClassVar[str] = "pictures"
    origin: ClassVar[str] = "pictures"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "none"
    obtain: ClassVar[str] = "Draw some."
    default_size: ClassVar[int | None] = 8

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        paths = sorted(roots[0].glob("*.png"))
        labels = np.array([[row % 2] for row in range(len(paths))], dtype=np.float32).reshape(-1, 1)
        subjects = [path.stem.partition("-")[0] for path in paths]
        return Scan(labels, subjects, ("odd",), exclusive=False, paths=paths, version="1", notes=("a note",))

    def stamp(self, roots: Sequence[Path]) -> str:
        return stamp_folder(roots[0], sizes=True)


@dataclass(frozen=True)
class Secret(Pictures):
    name: ClassVar[str] = "secret"
    shareable: ClassVar[bool] = False


@dataclass(frozen=True)
class Table(Pictures):
    name: ClassVar[str] = "table"
    default_size: ClassVar[int | None] = None

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        samples = np.arange(12, dtype=np.float32).reshape(6, 2)
        return Scan(np.zeros((6, 1), np.float32), None, ("odd",), exclusive=False, samples=samples)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    random = np.random.default_rng(0)
    for person in range(5):
        for study in range(3):
            Image.fromarray(random.integers(0, 256, (8, 8), dtype=np.uint8)).save(folder / f"{person}-{study}.png")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def corrupt(root: Path, *names: str) -> None:
    for name in names:
        (root / name).write_bytes((root / name).read_bytes()[:60])


def test_prepared_rows_are_the_files_pixels_labels_and_people(root: Path, cache: Path) -> None:
    prepared = prepare(Pictures(), roots=[root], cache=cache)
    with Image.open(root / "1-2.png") as image:
        np.testing.assert_array_equal(prepared.samples[5, 0], np.asarray(image))
    assert prepared.samples.shape == (15, 1, 8, 8)
    assert isinstance(prepared.samples, np.memmap)
    assert prepared.labels[:, 0].tolist() == [row % 2 for row in range(15)]
    assert prepared.subjects is not None
    assert prepared.subjects.tolist() == [row // 3 for row in range(15)]
    assert (prepared.name, prepared.size, prepared.skipped, prepared.notes) == ("pictures", 8, 0, ("a note",))


def test_a_cache_that_cannot_be_made_is_named_with_what_to_do(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        DataError, match=r"cannot write .*file is not a folder; choose another place with XDG_CACHE_HOME"
    ):
        prepare(Pictures(), roots=[root], cache=tmp_path / "file" / "data")


def test_dataset_holds_just_the_rows_asked_for_in_their_order(root: Path, cache: Path) -> None:
    prepared = prepare(Pictures(), roots=[root], cache=cache)
    dataset = prepared.dataset(np.array([7, 2]))
    assert dataset.samples.dtype == torch.float32
    np.testing.assert_array_equal(dataset.samples.numpy(), prepared.samples[[7, 2]].astype(np.float32) / 255)
    assert dataset.subjects is not None
    assert dataset.subjects.tolist() == [2, 0]


def test_second_run_opens_the_same_data_without_reading_an_image(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(Pictures(), roots=[root], cache=cache)
    monkeypatch.setattr(Pictures, "scan", lambda *_: pytest.fail("scanned again"))
    second = prepare(Pictures(), roots=[root], cache=cache)
    assert second.fingerprint == first.fingerprint
    np.testing.assert_array_equal(second.samples, first.samples)


def test_processes_write_the_same_data_as_one(root: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    for copy in range(130):
        (root / f"x{copy}-0.png").write_bytes((root / "0-0.png").read_bytes())
    alone = prepare(Pictures(), roots=[root], cache=tmp_path / "alone")
    together = prepare(
        Pictures(),
        roots=[root],
        cache=tmp_path / "two",
        workers=2,
        report=lambda done, total: seen.append((done, total)),
    )
    assert together.fingerprint == alone.fingerprint
    np.testing.assert_array_equal(together.samples, alone.samples)
    assert seen[-1] == (145, 145)
    assert len(seen) == 2


def test_changed_files_size_and_parameters_each_give_another_preparation(root: Path, cache: Path) -> None:
    folders = {prepare(Pictures(), roots=[root], cache=cache).folder}
    folders.add(prepare(Pictures(), roots=[root], cache=cache, size=4).folder)
    folders.add(prepare(Pictures(invert=True), roots=[root], cache=cache).folder)
    Image.new("L", (8, 8), 7).save(root / "0-0.png")
    changed = prepare(Pictures(), roots=[root], cache=cache)
    folders.add(changed.folder)
    assert len(folders) == 4
    assert (changed.samples[0] == 7).all()


def test_fingerprint_ignores_where_the_files_lie_and_follows_their_content(root: Path, tmp_path: Path) -> None:
    first = prepare(Pictures(), roots=[root], cache=tmp_path / "c1")
    moved = root.rename(tmp_path / "elsewhere")
    second = prepare(Pictures(), roots=[moved], cache=tmp_path / "c2")
    Image.new("L", (8, 8), 7).save(moved / "0-0.png")
    third = prepare(Pictures(), roots=[moved], cache=tmp_path / "c2")
    assert first.fingerprint == second.fingerprint != third.fingerprint


def test_interrupted_preparation_leaves_nothing_and_the_next_one_succeeds(root: Path, cache: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(Pictures(), roots=[root], cache=cache, report=interrupt)
    assert [path.name for path in cache.iterdir()] == ["CACHEDIR.TAG"]
    assert len(prepare(Pictures(), roots=[root], cache=cache)) == 15


def test_leavings_of_a_killed_preparation_are_swept_and_those_of_a_living_one_kept(root: Path, cache: Path) -> None:
    folder = prepare(Pictures(), roots=[root], cache=cache).folder
    host = os.uname().nodename
    dead, alive = (cache / f".building-{folder.name}-{host}-{pid}-x" for pid in (2**22 + 1, os.getpid()))
    for left in (dead, alive):
        left.mkdir()
    (folder / "meta.json").unlink()
    with pytest.warns(UserWarning, match="damaged"):
        prepare(Pictures(), roots=[root], cache=cache)
    assert not dead.exists()
    assert alive.exists()


@pytest.mark.parametrize("damage", ["meta.json", "samples.npy", "labels.npy", "marks.npy", "files.npy"])
def test_damaged_preparation_is_made_again_with_a_warning(root: Path, cache: Path, damage: str) -> None:
    first = prepare(Pictures(), roots=[root], cache=cache)
    (first.folder / damage).write_bytes(b"")
    with pytest.warns(UserWarning, match="damaged"):
        again = prepare(Pictures(), roots=[root], cache=cache)
    assert again.fingerprint == first.fingerprint


def test_corrupt_images_are_all_listed_and_nothing_is_prepared(root: Path, cache: Path) -> None:
    corrupt(root, "0-1.png", "3-2.png")
    with pytest.raises(DataError, match="2 of 15 images cannot be decoded") as caught:
        prepare(Pictures(), roots=[root], cache=cache)
    assert "0-1.png: " in str(caught.value)
    assert "3-2.png: " in str(caught.value)
    assert "--skip-corrupt" in str(caught.value)
    assert {path.suffix for path in cache.iterdir()} == {".txt", ".TAG"}


def test_message_shows_twenty_corrupt_images_and_counts_the_rest(root: Path, cache: Path) -> None:
    for copy in range(30):
        (root / f"z{copy}-0.png").write_bytes(b"<html>no</html>")
    with pytest.raises(DataError, match="30 of 45") as caught:
        prepare(Pictures(), roots=[root], cache=cache)
    assert str(caught.value).count("an HTML page") == 20
    assert "and 10 more" in str(caught.value)
    assert len(next(cache.glob("*-corrupt.txt")).read_text().splitlines()) == 30


def test_skipped_corrupt_images_are_counted_and_their_rows_are_gone(root: Path, cache: Path) -> None:
    whole = prepare(Pictures(), roots=[root], cache=cache)
    corrupt(root, "0-1.png", "3-2.png")
    prepared = prepare(Pictures(), roots=[root], cache=cache, skip_corrupt=True)
    kept = [row for row in range(15) if row not in (1, 11)]
    assert prepared.skipped == 2
    np.testing.assert_array_equal(prepared.samples, whole.samples[kept])
    np.testing.assert_array_equal(prepared.labels, whole.labels[kept])
    np.testing.assert_array_equal(prepared.digests, whole.digests[kept])
    verify(prepared)


def test_cached_data_with_skipped_images_are_refused_without_permission(root: Path, cache: Path) -> None:
    corrupt(root, "0-1.png")
    prepare(Pictures(), roots=[root], cache=cache, skip_corrupt=True)
    with pytest.raises(DataError, match="prepared without 1 corrupt images"):
        prepare(Pictures(), roots=[root], cache=cache)


def test_set_of_only_corrupt_images_is_refused_even_with_permission(root: Path, cache: Path) -> None:
    corrupt(root, *(path.name for path in root.iterdir()))
    with pytest.raises(DataError, match="15 of 15"):
        prepare(Pictures(), roots=[root], cache=cache, skip_corrupt=True)


def test_confidential_data_lie_in_a_closed_folder_and_stay_out_of_messages(root: Path, cache: Path) -> None:
    assert prepare(Secret(), roots=[root], cache=cache).folder.stat().st_mode & 0o777 == 0o700
    corrupt(root, "0-1.png")
    with pytest.raises(DataError, match="1 of 15 images") as caught:
        prepare(Secret(), roots=[root], cache=cache)
    assert "0-1" not in str(caught.value)
    listing = next(cache.glob("*-corrupt.txt"))
    assert "0-1.png" in listing.read_text()
    assert listing.stat().st_mode & 0o777 == 0o600


def test_identical_images_join_the_groups_of_their_people(root: Path, cache: Path) -> None:
    (root / "4-0.png").write_bytes((root / "0-0.png").read_bytes())
    prepared = prepare(Pictures(), roots=[root], cache=cache)
    assert prepared.groups.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [0] * 3
    assert len(set(prepared.subjects if prepared.subjects is not None else ())) == 5


def test_groups_join_through_chains_of_people_and_contents() -> None:
    digests = np.zeros((5, 16), dtype=np.uint8)
    digests[:, 0] = [1, 2, 2, 3, 4]
    assert connect(np.array([7, 7, 8, 8, 9]), digests).tolist() == [0, 0, 0, 0, 1]
    assert connect(None, digests).tolist() == [0, 1, 1, 2, 3]


def test_rows_of_unknown_people_are_people_of_their_own(root: Path, cache: Path) -> None:
    for study in range(3):
        (root / f"4-{study}.png").rename(root / f"-{study}.png")
    prepared = prepare(Pictures(), roots=[root], cache=cache)
    assert prepared.subjects is not None
    assert len(set(prepared.subjects)) == 4 + 3


@pytest.mark.parametrize("subjects", [[1, 2, 3, 4, 5, 6], [float("nan")] * 6, [None] * 6])
def test_people_who_are_no_text_are_a_fault_of_the_plug_in(
    subjects: list[object], root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = Scan(np.zeros((6, 1), np.float32), subjects, ("x",), False, samples=np.zeros((6, 2), np.float32))
    monkeypatch.setattr(Table, "scan", lambda *_: scan)
    with pytest.raises(ValueError, match="subjects must be text"):
        prepare(Table(), roots=[root], cache=cache)


def test_tables_keep_their_floats(cache: Path, root: Path) -> None:
    prepared = prepare(Table(), roots=[root], cache=cache)
    assert prepared.size is None
    assert prepared.subjects is None
    np.testing.assert_array_equal(
        prepared.dataset(np.array([5, 0])).samples.numpy(), np.array([[10, 11], [0, 1]], dtype=np.float32)
    )


def test_marks_of_people_are_for_their_owner_alone(root: Path, cache: Path) -> None:
    """Identifiers may be guessed from them, and the pixels of this set are for everybody."""
    prepared = prepare(Pictures(), roots=[root], cache=cache)
    assert (prepared.folder / "marks.npy").stat().st_mode & 0o777 == 0o600


def test_verify_names_the_changed_row(root: Path, cache: Path) -> None:
    prepared = prepare(Pictures(), roots=[root], cache=cache)
    verify(prepared)
    pixels = np.load(prepared.folder / "samples.npy", mmap_mode="r+")
    pixels[9, 0, 0, 0] ^= 1
    pixels.flush()
    with pytest.raises(DataError, match="1 rows changed, first row 9"):
        verify(prepare(Pictures(), roots=[root], cache=cache))


@pytest.mark.parametrize("array", ["labels", "subjects", "groups"])
def test_verify_notices_changed_labels_people_and_groups(root: Path, cache: Path, array: str) -> None:
    prepared = prepare(Pictures(), roots=[root], cache=cache)
    values = np.load(prepared.folder / f"{array}.npy")
    values[0] = 1 - values[0]
    np.save(prepared.folder / f"{array}.npy", values)
    with pytest.raises(DataError, match="labels, people or meta changed"):
        verify(prepare(Pictures(), roots=[root], cache=cache))


def test_verify_notices_that_confidential_data_were_declared_shareable(root: Path, cache: Path) -> None:
    prepared = prepare(Secret(), roots=[root], cache=cache)
    meta = json.loads((prepared.folder / "meta.json").read_text())
    (prepared.folder / "meta.json").write_text(json.dumps({**meta, "shareable": True}))
    with pytest.raises(DataError, match="meta changed"):
        verify(prepare(Secret(), roots=[root], cache=cache))


def test_empty_set_says_where_to_get_data(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no row was found\. Draw some"):
        prepare(Pictures(), roots=[tmp_path / "empty"], cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("scan", "message"),
    [
        (Scan(np.zeros((2, 1), np.float32), ["a"], ("x",), False, samples=np.zeros((2, 3), np.float32)), "got rows"),
        (Scan(np.zeros((2, 1), np.float32), None, ("x",), False), "one of them"),
        (Scan(np.zeros((2, 2), np.float32), None, ("x",), False, samples=np.zeros((2, 3), np.float32)), "1 columns"),
        (
            Scan(np.full((2, 1), 2, np.float32), None, ("x",), False, samples=np.zeros((2, 3), np.float32)),
            "0, 1 or NaN",
        ),
        (Scan(np.zeros((2, 1), np.float32), None, ("x",), True, samples=np.zeros((2, 3), np.float32)), "exactly one 1"),
        (Scan(np.zeros((2, 1), np.float32), None, ("x",), False, samples=np.zeros((2, 3), np.float64)), "float32, got"),
        (Scan(np.zeros((1, 1), np.float32), None, ("x",), False, paths=[Path("a")]), "need a size"),
    ],
)
def test_contradictory_scans_are_refused(
    scan: Scan, message: str, root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Table, "scan", lambda *_: scan)
    with pytest.raises(ValueError, match=message):
        prepare(Table(), roots=[root], cache=cache)


@pytest.mark.parametrize(("size", "workers"), [(0, 0), (8193, 0), (8, -1)])
def test_senseless_sizes_and_worker_counts_are_refused(root: Path, cache: Path, size: int, workers: int) -> None:
    with pytest.raises(ValueError, match=r"must be (at least|in \[1)"):
        prepare(Pictures(), roots=[root], cache=cache, size=size, workers=workers)


def test_a_source_that_cannot_download_says_how_to_get_its_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be downloaded by this program\. Draw some"):
        Pictures().download(tmp_path)


@dataclass(frozen=True)
class Listed(Pictures):
    """Looks at the names of its files alone, as the large sets do."""

    name: ClassVar[str] = "listed"

    def stamp(self, roots: Sequence[Path]) -> str:
        return stamp_folder(roots[0])


def test_mended_images_are_no_longer_left_out(root: Path, cache: Path) -> None:
    sound = (root / "0-1.png").read_bytes()
    corrupt(root, "0-1.png", "0-2.png")
    left = prepare(Listed(), roots=[root], cache=cache, skip_corrupt=True)
    assert prepare(Listed(), roots=[root], cache=cache, skip_corrupt=True).folder == left.folder
    (root / "0-1.png").write_bytes(sound)
    assert prepare(Listed(), roots=[root], cache=cache, skip_corrupt=True).skipped == 1
    (root / "0-2.png").write_bytes(sound)
    assert len(prepare(Listed(), roots=[root], cache=cache)) == 15


def test_images_are_decoded_again_by_code_that_decodes_otherwise(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(Pictures(), roots=[root], cache=cache)
    behind_it = {name.partition(":")[0].rpartition(".")[2] for name in definitions(prepare)}
    assert {"dicom", "picture", "raw_files", "sample_array", "subjects"} <= behind_it
    monkeypatch.setattr(prepare_module, "code_digest", lambda root: "another")
    assert prepare(Pictures(), roots=[root], cache=cache).folder != first.folder


@dataclass(frozen=True)
class Aged(Pictures):
    """An age is no number and no image is valid: the first error shows the order of checks."""

    name: ClassVar[str] = "aged"

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        found = super().scan(roots, size)
        return replace(found, attributes={"age": ["31", "thirty", *["40"] * (len(found.labels) - 2)]})


def test_words_are_read_before_images_are_decoded(root: Path, cache: Path) -> None:
    corrupt(root, *(path.name for path in root.iterdir()))
    with pytest.raises(DataError, match=r"aged: the attribute age of row 2: expected an age .* found something else"):
        prepare(Aged(), roots=[root], cache=cache)
