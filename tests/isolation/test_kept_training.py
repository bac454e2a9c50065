"""A fit in a process of its own is kept by the judge, who believes nothing of what was written there."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
import torch
from made.cells import opened

from bench import checkpoint
from bench.checkpoint import save_checkpoints
from bench.isolation import DiedError, RemoteMethod, tenant
from bench.isolation.room_folder import KeptTraining
from bench.plugins.configured import configure
from bench.progress import forward_progress
from bench.results.store import of_store
from bench.sandbox import why_not
from bench.types import Dataset
from bench.wire.tensor_file import TensorsError, pack_tensors, unpack_tensors

pytestmark = pytest.mark.isolated
METHOD = """
import os, time
from dataclasses import dataclass
from typing import ClassVar
import torch
from bench.checkpoint import checkpoint_folder, steps
from bench.types import Dataset, Key, Method, Release, Scheme

@dataclass(frozen=True)
class Slow(Method):
    name: ClassVar[str] = "slow"
    source: ClassVar[str] = "a test"

    def fit(self, public, seed):
        file = checkpoint_folder() / "training-0.safetensors"
        total, done = torch.zeros(1, dtype=torch.int64), []
        for step in steps(8, total, every=0.0):
            total += step
            done.append(step)
            if done == [0, 1, 2, 3, 4, 5]:
                while os.path.lexists(file):  # until the judge has taken it
                    time.sleep(0.01)
                os._exit(3)
        return Learned(total)

    def load(self, state): return Learned(state["total"])

@dataclass(frozen=True)
class Learned(Scheme):
    total: torch.Tensor
    def state(self): return {"total": self.total}
    def sample_key(self, secret): raise NotImplementedError
    def load_key(self, state): raise NotImplementedError
"""
ROWS = Dataset("rows", torch.zeros(2, 1, 4, 4), None, None, (), exclusive=False, shareable=True)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.isolation.room.LOOK_SECONDS", 0.05)


def method(folder: Path) -> RemoteMethod:
    """A method that trains for eight steps; its process ends after the sixth, if it began with the first."""
    (folder / "slow.py").write_text(METHOD)
    chosen = configure("methods", f"{folder / 'slow.py'}:Slow", "smoke")
    room = tenant(chosen, device="cpu", sandbox=why_not() is None, folder=folder / "rooms")
    return RemoteMethod(chosen.plugin, room)


@pytest.mark.usefixtures("quick_rooms")
def test_a_fit_whose_process_died_goes_on_in_another(tmp_path: Path) -> None:
    said: list[tuple[str, int, int]] = []
    with closing(method(tmp_path)) as slow, save_checkpoints(tmp_path / "kept"):
        with pytest.raises(DiedError):
            slow.fit(ROWS, 0)
        with save_checkpoints(tmp_path / "kept"), forward_progress(lambda *each: said.append(each)):
            assert slow.fit(ROWS, 0).state()["total"].item() == sum(range(8))
    assert ("training goes on, step", 5, 8) in said


@pytest.mark.parametrize("kind", ["link", "junk", "pipe", "folder"])
def test_what_is_no_file_of_tensors_is_not_taken(tmp_path: Path, kind: str) -> None:
    (tmp_path / "room").mkdir()
    file = tmp_path / "room" / "training-0.safetensors"
    secret = tmp_path / "secret"
    pack_tensors({"a": torch.zeros(1)}, secret)
    made = {
        "link": lambda: file.symlink_to(secret),
        "junk": lambda: file.write_bytes(b"junk"),
        "pipe": lambda: os.mkfifo(file),
        "folder": lambda: file.mkdir(),
    }
    made[kind]()
    with pytest.raises(TensorsError):
        KeptTraining(tmp_path / "kept").take(tmp_path / "room")
    assert not list((tmp_path / "kept").glob("*"))


def test_what_is_being_written_stays_and_what_is_done_is_handed_over(tmp_path: Path) -> None:
    room, into, kept = tmp_path / "room", tmp_path / "in", tmp_path / "kept"
    room.mkdir()
    into.mkdir()
    for name in ("training-0.safetensors", "training-0.safetensors.new-1-ab", "other"):
        pack_tensors({"a": torch.ones(1)}, room / name)
    KeptTraining(kept).take(room)
    assert sorted(each.name for each in room.iterdir()) == ["other", "training-0.safetensors.new-1-ab"]
    KeptTraining(kept).hand_over(into)
    assert unpack_tensors(into / "training-0.safetensors", 1000)["a"].item() == 1


def test_the_harness_keeps_a_fit_until_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed goes on with its training; what was kept goes with the end of it, or by `bench clean`."""
    bench = opened(tmp_path, "syfer[patch_size=4]")
    keep, kept = checkpoint._keep, []
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)

    def until(file: Path, done: int, parts: tuple[checkpoint.Part, ...], seconds: float) -> None:
        keep(file, done, parts, seconds)
        kept.append(done)
        if done == 5 and len(kept) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "_keep", until)
    with pytest.raises(KeyboardInterrupt):
        bench.scheme()
    left = list(bench.store.root.glob("schemes/*.training"))
    assert [each.path for each in of_store(bench.store.root)] == left != []
    state = bench.scheme().state()
    assert kept == [1, 2, 3, 4, 5, 6, 7, 8]
    assert not list(bench.store.root.glob("schemes/*.training"))
    whole = opened(tmp_path / "whole", "syfer[patch_size=4]").scheme().state()
    assert all(torch.equal(state[name], whole[name]) for name in whole)
