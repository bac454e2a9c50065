"""A results folder shared by machines: right without working locks, for any clocks."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest
import torch
from made.board_records import record
from made.results_folders import gone_name

from bench.disk import process_id
from bench.results.records import Record, evidence_record, picture_record
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.results.store import Artefact, Store, problem

INPUTS = {"method": "x", "seed": 1}
CONTENT = torch.arange(50_000.0)


@pytest.fixture(params=["exclude no one", "are not there"], autouse=True)
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What becomes of locks on the file system of this test."""

    def flock(*_: object) -> None:
        if request.param == "are not there":
            raise OSError(38, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)


@pytest.fixture
def mounts(tmp_path: Path) -> list[Path]:
    """Two paths to one folder, as on two machines."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "mount").symlink_to(tmp_path / "disk", target_is_directory=True)
    return [tmp_path / "disk", tmp_path / "mount"]


def artefact() -> Artefact:
    return Artefact({"a": CONTENT}, {"seconds": 1.0})


def made_by_many(mounts: list[Path], makers: int) -> list[Artefact]:
    together = Barrier(makers)

    def make(number: int) -> Artefact:
        def slowly() -> Artefact:
            with contextlib.suppress(BrokenBarrierError):  # with working locks, no other comes
                together.wait(10)
            return artefact()

        return Store(mounts[number % 2] / "s").ensure("schemes", INPUTS, slowly)

    with ThreadPoolExecutor(makers) as pool:
        return list(pool.map(make, range(makers)))


def test_makers_that_nothing_excludes_all_get_the_same_and_leave_one(mounts: list[Path]) -> None:
    found = made_by_many(mounts, 6)
    assert all(torch.equal(each.tensors["a"], CONTENT) for each in found)
    kind = mounts[0] / "s/schemes"
    assert problem(kind / content_key(INPUTS)) is None
    assert {path.name for path in kind.iterdir()} <= {
        "CACHEDIR.TAG",
        content_key(INPUTS),
        f"{content_key(INPUTS)}.lock",
    }


def test_what_a_maker_elsewhere_is_at_stays_for_a_day(mounts: list[Path]) -> None:
    kind = mounts[0] / "s/schemes"
    other = kind / f".new-{content_key(INPUTS)}-{'0' * 12}-17-{'0a' * 8}"
    other.mkdir(parents=True)
    Store(mounts[1] / "s").ensure("schemes", INPUTS, artefact)
    assert other.is_dir()
    Store(mounts[1] / "s").drop("schemes", INPUTS)
    assert other.is_dir()
    os.utime(other, (1.0, time.time() - process_id.LEFT_SECONDS - 1))
    Store(mounts[1] / "s").ensure("schemes", INPUTS, artefact)
    assert not other.exists()


def test_a_corrupt_artefact_that_another_maker_has_mended_stays(
    mounts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.results import store

    here, there = (Store(mount / "s") for mount in mounts)
    here.ensure("schemes", INPUTS, artefact)
    folder = mounts[0] / "s/schemes" / content_key(INPUTS)
    (folder / "manifest.json").write_text("{")
    true = store._remove_corrupt

    def late(found: Path) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("bench.results.store._remove_corrupt", true)
            there.ensure("schemes", INPUTS, artefact)  # meanwhile
        inode.append(folder.stat().st_ino)
        true(found)

    inode: list[int] = []
    monkeypatch.setattr("bench.results.store._remove_corrupt", late)
    with pytest.warns(store.CorruptArtefactWarning):
        found = here.ensure("schemes", INPUTS, artefact)
    assert torch.equal(found.tensors["a"], CONTENT)
    assert folder.stat().st_ino == inode[0]
    assert [path.name for path in folder.parent.glob(".new-*")] == []


def _make_for_ever(root: Path) -> None:
    store = Store(root)
    for number in range(10_000):
        store.ensure("schemes", {"number": number % 5}, artefact)
        store.drop("schemes", {"number": (number + 2) % 5})


def test_makers_that_are_killed_at_random_leave_nothing_that_is_wrong(mounts: list[Path]) -> None:
    chance = random.Random(0)
    context = multiprocessing.get_context("fork")
    root = mounts[0] / "s"
    for number in range(8):
        pair = [context.Process(target=_make_for_ever, args=(mounts[at] / "s",)) for at in (0, 1)]
        for each in pair:
            each.start()
        time.sleep(chance.uniform(0.02, 0.2))
        for each in pair:
            assert each.pid is not None
            os.kill(each.pid, signal.SIGKILL)
            each.join()
        if (root / "schemes").is_dir():
            named = [path for path in (root / "schemes").iterdir() if len(path.name) == 32]
            assert [problem(path) for path in named] == [None] * len(named), number
    store = Store(root)
    for number in range(5):
        assert torch.equal(store.ensure("schemes", {"number": number}, artefact).tensors["a"], CONTENT)
        store.drop("schemes", {"number": number})
    assert {path.suffix for path in (root / "schemes").iterdir()} <= {".lock", ".TAG"}


def kept(evidence: bytes, **more: object) -> Record:
    shown = {"plane": picture_record(b"png of " + evidence, "")}
    told = {"kind": "sets", "cell": "digits/one", "pictures": shown, "evidence": evidence_record(evidence), **more}
    return record("identity", "sets", **told)  # type: ignore[arg-type]


def whole(results: Results) -> bool:
    found = results.record("digits/one", "sets")
    return results.evidence(found) is not None and all(results.picture(found, name) for name in found.pictures)


def test_two_runs_on_one_folder_never_mix_or_lose_a_record(mounts: list[Path]) -> None:
    for _ in range(20):
        together = Barrier(4)

        def keep(number: int, together: Barrier = together) -> Record:
            evidence = b"bits %d" % (number % 3)
            together.wait(30)
            return Results(mounts[number % 2]).keep(
                kept(evidence), {"plane": b"png of " + evidence}, evidence=evidence, before=None
            )

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(keep, range(4)))
        results = Results(mounts[0])
        assert whole(results)
        assert {each.digest for each in found} == {results.record("digits/one", "sets").digest}  # one, and all know it
        folder = mounts[0] / "cells/digits/one"
        assert len(list(folder.iterdir())) == 3  # the record, its picture, its evidence
        for path in folder.iterdir():
            path.unlink()


def test_a_failure_does_not_take_the_place_of_what_another_run_has_found_meanwhile(mounts: list[Path]) -> None:
    here, there = (Results(mount) for mount in mounts)
    lost = {"status": "failed", "code": "died", "phase": "attack", "reason": "the worker process died"}
    failed = record("identity", "sets", kind="sets", cell="digits/one", **lost)  # type: ignore[arg-type]
    good = here.keep(kept(b"bits"), {"plane": b"png of bits"}, evidence=b"bits", before=None)
    assert there.keep(failed, {}, before=None) == good
    assert whole(there)
    assert there.keep(failed, {}, before=good.digest).status == "failed"  # it was asked to run again
    assert here.keep(kept(b"bits"), {"plane": b"png of bits"}, evidence=b"bits", before=None).status == "ok"


def test_nobody_waits_for_a_lock_behind_which_nobody_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(*_: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr("fcntl.flock", held)  # by a machine that is lost
    monkeypatch.setattr("bench.results.build_folder.PATIENCE_SECONDS", 0.01)
    assert torch.equal(Store(tmp_path / "s").ensure("schemes", INPUTS, artefact).tensors["a"], CONTENT)


def test_runs_that_start_at_once_on_two_mounts_have_one_secret(mounts: list[Path]) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: Results(mounts[number % 2]).keep_secret(), range(32)))
    assert len({secret.root.content for secret in found}) == 1


def test_who_is_gone_is_told_from_who_is_there_and_who_is_elsewhere() -> None:
    assert process_id.is_gone(gone_name())
    assert not process_id.is_gone(process_id.own_name())
    assert not process_id.is_gone(gone_name().replace(process_id.machine(), "0" * 12))
