"""Rooms of other authors' methods that know private rows live while no room of another part does."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from bench.contract.seal import ContractError
from bench.isolation import RemoteAttack, RemoteMethod, tenant
from bench.isolation.room_groups import RoomGroup, WaitError
from bench.plugins.configured import configure
from bench.types import Dataset, View

ENCODING = """
from dataclasses import dataclass
from typing import ClassVar
from bench.types import Key, Method, Release, Scheme, paired

@dataclass(frozen=True)
class Shift(Method):
    name: ClassVar[str] = "shift"
    source: ClassVar[str] = "a test"
    def fit(self, public, seed): return Shifting()
    def load(self, state): return Shifting()

class Shifting(Scheme):
    def sample_key(self, secret): return ShiftKey(secret.number() % 5)
    def load_key(self, state): return ShiftKey(int(state["by"]))

class ShiftKey(Key):
    def __init__(self, by): self.by = by
    def release(self, private): return paired(private.samples + self.by, private.labels)
    def query(self, samples): print("queried", flush=True); return samples + self.by
    def decode(self, scores): return scores.flip(1)
    def state(self): return {}
"""


ASKING = """
from dataclasses import dataclass
from typing import ClassVar
from bench.pairs.score_matrices import CosineScores, apart
from bench.randomness import Secret
from bench.types import Attack, Attacker

@dataclass(frozen=True)
class Asks(Attack):
    name: ClassVar[str] = "asks"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "the scheme"
    def fit(self, view, seed):
        key = view.scheme.sample_key(Secret.of_seed(1, "a test"))
        released = key.release(view.candidates).samples
        assert key.query(view.candidates.samples).allclose(released, atol=0.01)
        return Asking()

class Asking(Attacker):
    def notes(self): return {"still": "here"}
    def score(self, sealed): raise NotImplementedError
"""


@dataclass
class Made:
    """As much of a room as a group knows."""

    open: bool = True

    def close(self) -> None:
        self.open = False


def opened(group: RoomGroup, part: str) -> Made:
    return group.open(part, Made)  # type: ignore[arg-type]


def test_a_room_of_another_part_ends_those_before_it(tmp_path: Path) -> None:
    group = RoomGroup(tmp_path)
    first, second = opened(group, "release"), opened(group, "release")
    assert (first.open, second.open) == (True, True)
    query = opened(group, "query")
    assert (first.open, second.open, query.open) == (False, False, True)
    opened(group, "decode")
    assert not query.open


def test_methods_of_this_project_need_no_turns() -> None:
    group = RoomGroup(None)
    rooms = [opened(group, part) for part in ("release", "query", "decode")]
    assert all(room.open for room in rooms)


@pytest.mark.parametrize("part", ["fit", "query", "decode"])
def test_jobs_of_one_machine_wait_for_each_other_but_for_rooms_of_one_part(tmp_path: Path, part: str) -> None:
    one, same, other = RoomGroup(tmp_path), RoomGroup(tmp_path), RoomGroup(tmp_path)
    first = opened(one, "release")
    opened(same, "release")  # at once
    got: list[Made] = []
    waiting = threading.Thread(target=lambda: got.append(opened(other, part)), daemon=True)
    waiting.start()
    same.leave()
    one.rest()
    assert first.open  # an open room is no reason to let others in
    assert not got
    first.close()
    one.rest()
    waiting.join(60)
    assert len(got) == 1


def waiting(folder: Path, part: str, entered: list[str], leave: threading.Event) -> threading.Thread:
    """A job that waits in the queue by now."""
    before = {*folder.glob("waits-*")}

    def work() -> None:
        group = RoomGroup(folder)
        group.enter(part)  # type: ignore[arg-type]
        entered.append(part)
        leave.wait(60)
        group.leave()

    job = threading.Thread(target=work, daemon=True)
    job.start()
    while {*folder.glob("waits-*")} <= before and job.is_alive():
        leave.wait(0.01)
    return job


def test_a_job_that_comes_later_goes_before_none_of_another_part(tmp_path: Path) -> None:
    """Jobs that release, one after the other, would keep one that encodes queries waiting for ever."""
    first, leave, entered = RoomGroup(tmp_path), threading.Event(), list[str]()
    opened(first, "release")
    jobs = [waiting(tmp_path, part, entered, leave) for part in ("query", "release", "query")]
    assert entered == []  # the second could have gone in beside the first
    first.leave()
    while not entered:
        leave.wait(0.01)
    assert entered == ["query"]  # the third has the first one's part, and stands behind the second
    leave.set()
    for job in jobs:
        job.join(60)
    assert entered == ["query", "release", "query"]
    assert not [*tmp_path.glob("waits-*")]


def test_a_job_waits_no_longer_than_it_may_and_can_be_done_again(tmp_path: Path) -> None:
    first, late = RoomGroup(tmp_path), RoomGroup(tmp_path, seconds=0.2)
    opened(first, "release")
    with pytest.raises(WaitError, match=r"waited 0\.2 s for rooms of other jobs .* run fewer jobs at once"):
        late.enter("query")
    assert not [*tmp_path.glob("waits-*")]
    first.leave()
    late.enter("query")


def test_a_waiting_job_says_so_for_the_clock_that_ends_silent_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("bench.isolation.room_groups.stage", said.append)
    monkeypatch.setattr("bench.isolation.room_groups.SAY_SECONDS", 0.0)
    opened(RoomGroup(tmp_path), "release")
    group = RoomGroup(tmp_path)
    opened(group, "release")
    with pytest.raises(WaitError):
        RoomGroup(tmp_path, seconds=0.5).enter("fit")
    assert len(said) > 1


def test_a_killed_waiting_job_keeps_no_other_waiting(tmp_path: Path) -> None:
    first = RoomGroup(tmp_path)
    opened(first, "release")
    code = "from pathlib import Path\nfrom bench.isolation.room_groups import RoomGroup\n"
    code += f"RoomGroup(Path({str(tmp_path)!r})).enter('query')"
    job = subprocess.Popen([sys.executable, "-c", code])
    while not [*tmp_path.glob("waits-*-query")]:
        assert job.poll() is None
        time.sleep(0.05)
    late = RoomGroup(tmp_path, seconds=60)
    job.kill()
    job.wait()
    late.enter("release")
    assert not [*tmp_path.glob("waits-*")]


def test_a_killed_job_keeps_no_other_waiting(tmp_path: Path) -> None:
    code = "from pathlib import Path\nfrom bench.isolation.room_groups import RoomGroup\nimport time\n"
    code += f"RoomGroup(Path({str(tmp_path)!r})).enter('release'); print('entered', flush=True); time.sleep(600)"
    job = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert job.stdout is not None
    assert job.stdout.readline() == "entered\n"
    job.kill()
    job.wait()
    RoomGroup(tmp_path).enter("query")


def test_the_rooms_of_a_method_take_turns_and_its_output_is_passed_on(
    tmp_path: Path, quick_rooms: None, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shift.py").write_text(ENCODING)
    chosen = configure("methods", f"{tmp_path / 'shift.py'}:Shift", "smoke")
    rows = Dataset("made", torch.rand(20, 1, 4, 4), torch.rand(20, 1).round(), None, ("a",), exclusive=False,
                   shareable=True)  # fmt: skip
    rooms = tenant(chosen, device="cpu", sandbox=False, folder=tmp_path / "folder" / "rooms")
    with closing(RemoteMethod(chosen.plugin, rooms)) as method:
        key = method.load({}).load_key({"by": torch.tensor(3)})
        for _ in range(2):  # rooms that ended are opened again, and know the same key
            assert key.release(rows).samples.equal(rows.samples + 3)
            release = method.room("release")
            assert key.query(rows.samples).equal(rows.samples + 3)
            assert not release.open
            query = method.room("query")
            assert key.decode(torch.eye(2)).equal(torch.eye(2).flip(1))
            assert not query.open
    assert capfd.readouterr().err.count("queried") == 2


def test_labels_of_a_method_that_was_given_none_are_refused_by_the_declaration_that_is_missing(
    tmp_path: Path, quick_rooms: None
) -> None:
    made = ENCODING.replace("private.labels)", "private.samples.flatten(1)[:, :10])")
    (tmp_path / "shift.py").write_text(made)
    chosen = configure("methods", f"{tmp_path / 'shift.py'}:Shift", "smoke")
    rows = Dataset("made", torch.rand(20, 1, 4, 4), None, None, (), exclusive=False, shareable=True)
    rooms = tenant(chosen, device="cpu", sandbox=False, folder=tmp_path / "folder" / "rooms")
    with closing(RemoteMethod(chosen.plugin, rooms)) as method, pytest.raises(ContractError, match="must say so"):
        method.load({}).load_key({"by": torch.tensor(3)}).release(rows)


def test_an_attack_of_another_author_may_ask_a_method_of_another_author_for_queries(
    tmp_path: Path, quick_rooms: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Her room knows private rows, and that of the query would wait until hers has ended."""
    monkeypatch.setattr("bench.isolation.room_groups.stage", lambda text: pytest.fail(text))
    (tmp_path / "shift.py").write_text(ENCODING)
    (tmp_path / "asks.py").write_text(ASKING)
    method, attack = (
        configure(group, f"{tmp_path / name}", "smoke")
        for group, name in (("methods", "shift.py:Shift"), ("attacks", "asks.py:Asks"))
    )
    rooms = [
        tenant(each, device="cpu", sandbox=False, folder=tmp_path / "folder" / "rooms") for each in (method, attack)
    ]
    rows = Dataset("made", torch.rand(20, 1, 4, 4), None, None, (), exclusive=False, shareable=True)
    with closing(RemoteMethod(method.plugin, rooms[0])) as owned, closing(RemoteAttack(attack.plugin, rooms[1])) as eve:
        scheme = owned.load({})
        for _ in range(2):
            scheme.load_key({"by": torch.tensor(3)}).query(rows.samples)  # the owner's rooms are of another part
            assert eve.fit(View(rows, scheme, rows, rows), 0).notes()["still"] == "here"
    RoomGroup(tmp_path / "folder" / "rooms-groups").enter("decode")  # nothing is locked any longer


def test_the_caches_of_the_kernel_are_emptied_between_parts_and_not_within(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied: list[str] = []
    monkeypatch.setattr("bench.isolation.room_groups.empty_caches", lambda: emptied.append("once"))
    for part, count in (("fit", 0), ("release", 1), ("release", 1), ("query", 2), ("decode", 3), ("release", 4)):
        job = RoomGroup(tmp_path, sandbox=True)
        job.enter(part)  # type: ignore[arg-type]
        job.leave()
        assert len(emptied) == count
    RoomGroup(tmp_path).enter("query")
    assert len(emptied) == 4
