from __future__ import annotations

import errno
import os
import re
import stat
from io import BufferedWriter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from made.results_folders import gone_name

from bench.contract.seal import ContractError
from bench.disk.atomic_file import write_atomically
from bench.progress import AGAIN, forward_progress
from bench.results.signed_json import content_key
from bench.results.store import Artefact, CorruptArtefactWarning, Store, problem

INPUTS = {"method": "x", "seed": 1}


def _make(calls: list[int]) -> Artefact:
    calls.append(1)
    return Artefact({"a": torch.arange(6.0).reshape(2, 3).T}, {"seconds": 1.5})


def test_an_artefact_is_made_once(tmp_path: Path) -> None:
    store, calls = Store(tmp_path / "s"), []
    first, second = (store.ensure("schemes", INPUTS, lambda: _make(calls)) for _ in range(2))
    assert len(calls) == 1
    assert torch.equal(first.tensors["a"], second.tensors["a"])
    assert second.notes == {"seconds": 1.5}


def test_other_inputs_are_another_artefact(tmp_path: Path) -> None:
    store, calls = Store(tmp_path / "s"), []
    store.ensure("schemes", INPUTS, lambda: _make(calls))
    store.ensure("schemes", {**INPUTS, "seed": 2}, lambda: _make(calls))
    assert len(calls) == 2


@pytest.mark.parametrize("damage", ["flip", "truncate", "manifest"])
def test_a_corrupted_artefact_is_made_again_with_a_warning(tmp_path: Path, damage: str) -> None:
    store, calls = Store(tmp_path / "s"), []
    store.ensure("schemes", INPUTS, lambda: _make(calls))
    folder = tmp_path / "s" / "schemes" / content_key(INPUTS)
    data = folder / "data.safetensors"
    content = bytearray(data.read_bytes())
    if damage == "flip":
        content[-1] ^= 1
        data.write_bytes(content)
    elif damage == "truncate":
        data.write_bytes(content[: len(content) // 2])
    else:
        (folder / "manifest.json").write_text("{")
    with pytest.warns(CorruptArtefactWarning, match="is corrupt"):
        again = store.ensure("schemes", INPUTS, lambda: _make(calls))
    assert len(calls) == 2
    assert again.tensors["a"].shape == (3, 2)


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")

    def fail() -> Artefact:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.ensure("schemes", INPUTS, fail)
    assert not store.has("schemes", INPUTS)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="which file was synced is read from /proc")
def test_what_is_written_is_on_disk_and_so_are_the_names_that_lead_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr("os.fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    write_atomically(tmp_path / "pages" / "deep" / "index.html", b"x")
    assert [path.name for path in synced if path.name.startswith(".index.html.")]
    assert {tmp_path, tmp_path / "pages", tmp_path / "pages" / "deep"} <= {*synced}
    synced.clear()
    Store(tmp_path / "s").ensure("schemes", INPUTS, lambda: _make([]))
    assert [path.name for path in synced].count("data.safetensors") == 1
    assert [path.name for path in synced].count("manifest.json") == 1
    assert synced[-1] == tmp_path / "s" / "schemes"  # after the folder got its name
    assert {tmp_path, tmp_path / "s"} <= {*synced}


def test_a_umask_narrows_who_may_read(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_only_its_owner_can_enter_the_store(tmp_path: Path) -> None:
    Store(tmp_path / "s").ensure("schemes", INPUTS, lambda: _make([]))
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]


class Killed(BaseException):
    """Stands for kill -9."""


def _die(*_: object, **__: object) -> None:
    raise Killed


def test_a_kill_while_an_artefact_is_removed_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s")
    store.ensure("releases", INPUTS, lambda: _make([]))
    with monkeypatch.context() as patch:
        patch.setattr("bench.results.store.shutil.rmtree", _die)
        patch.setattr("bench.disk.process_id.own_name", gone_name)
        with pytest.raises(Killed):
            store.drop("releases", INPUTS)
    kind = tmp_path / "s/releases"
    assert not (kind / content_key(INPUTS)).exists()  # else its rest would be an altered artefact for ever
    assert list(kind.glob(".new-*"))
    store.drop("releases", INPUTS)
    assert {path.name for path in kind.iterdir()} == {"CACHEDIR.TAG", f"{content_key(INPUTS)}.lock"}


def test_what_a_killed_process_left_goes_when_the_artefact_is_made_again(tmp_path: Path) -> None:
    store, kind = Store(tmp_path / "s"), tmp_path / "s/schemes"
    left = kind / f".new-{content_key(INPUTS)}-{gone_name()}"
    left.mkdir(parents=True)
    (left / "data.safetensors").write_bytes(b"half")
    store.ensure("schemes", INPUTS, lambda: _make([]))
    assert not left.exists()
    assert problem(kind / content_key(INPUTS)) is None


def test_what_finds_no_room_is_made_again_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, calls, said = Store(tmp_path / "s"), [], list[str]()
    monkeypatch.setattr("bench.results.store.shutil.disk_usage", lambda folder: SimpleNamespace(free=100))
    size = 24  # bytes
    assert 2 * size <= 100 // 2 < 3 * size
    for copies, made in ((2, 1), (3, 3)):
        inputs = {**INPUTS, "copies": copies}
        with forward_progress(lambda name, done, total: said.append(name)):
            found = [store.ensure("releases", inputs, lambda: _make(calls), copies=copies) for _ in range(3)]
        assert len(calls) == made
        assert all(torch.equal(each.tensors["a"], found[0].tensors["a"]) for each in found)
        folder = tmp_path / "s" / "releases" / content_key(inputs)
        assert (folder / "data.safetensors").exists() == (copies == 2)
        assert problem(folder) is None
        assert said == [] if copies == 2 else [AGAIN] * 2
        calls.clear()


def test_what_finds_no_room_and_comes_out_as_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.results.store.shutil.disk_usage", lambda folder: SimpleNamespace(free=0))
    store, numbers = Store(tmp_path / "s"), iter(range(2))

    def make() -> Artefact:
        return Artefact({"a": torch.full((2,), next(numbers))}, {})

    store.ensure("releases", INPUTS, make, copies=1)
    with pytest.raises(ContractError, match="must come out the same to the bit"):
        store.ensure("releases", INPUTS, make, copies=1)


def test_what_found_no_room_is_kept_once_there_is_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, numbers, free = Store(tmp_path / "s"), iter(range(9)), [0]
    monkeypatch.setattr("bench.results.store.shutil.disk_usage", lambda folder: SimpleNamespace(free=free[0]))

    def make() -> Artefact:
        return Artefact({"a": torch.full((2,), next(numbers))}, {})

    store.ensure("releases", INPUTS, make, copies=1)
    free[0] = 1000
    kept = store.ensure("releases", INPUTS, make, copies=1)
    free[0] = 0
    assert torch.equal(store.ensure("releases", INPUTS, make, copies=1).tensors["a"], kept.tensors["a"])
    assert next(numbers) == 2


def test_a_disk_that_fills_meanwhile_is_as_one_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(file: BufferedWriter, tensors: object) -> None:
        file.write(b"some")
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    store, calls = Store(tmp_path / "s"), list[int]()
    monkeypatch.setattr("bench.results.store.write_tensors", fill)
    found = store.ensure("releases", INPUTS, lambda: _make(calls), copies=1)
    assert torch.equal(found.tensors["a"], _make([]).tensors["a"])
    assert {each.name for each in (tmp_path / "s/releases" / content_key(INPUTS)).iterdir()} == {"manifest.json"}
    with pytest.raises(OSError, match=re.escape(os.strerror(errno.EDQUOT))):
        store.ensure("schemes", INPUTS, lambda: _make(calls))


def test_what_is_always_stored_is_stored_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.results.store.shutil.disk_usage", lambda folder: SimpleNamespace(free=0))
    store, calls = Store(tmp_path / "s"), list[int]()
    for _ in range(2):
        store.ensure("schemes", INPUTS, lambda: _make(calls))
    assert len(calls) == 1
