"""What is pushed comes back the same, whatever happens on the way."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from made.moody_folder import KilledError, calm, crew, dying, failing, moody
from made.results_folders import CARRIED, SECRET, files, folder, keep, one

from bench.results.results import Results
from bench.transfer.pull import pull
from bench.transfer.push import push
from bench.transfer.tally import Tally
from bench.transfer.target import Target, TransferError, named


def sent(results: Results, target: Target, *, restricted: bool = False, check: bool = False, jobs: int = 4) -> Tally:
    return push(results, target, crew(target, jobs), named=restricted, check=check, step=lambda *_: None)


def fetched(results: Results, target: Target, jobs: int = 4) -> Tally:
    return pull(results, target, crew(target, jobs), prefer=None, step=lambda *_: None)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return folder(tmp_path_factory.mktemp("pushed"))


@pytest.mark.parametrize("url", ["{}/target", "file://{}/target", "memory://{}/target"])
def test_what_is_pushed_comes_back_the_same(url: str, results: Results, tmp_path: Path) -> None:
    target = Target.open(url.format(tmp_path))
    first = sent(results, target)
    assert (first.of("moved"), first.of("refused"), first.of("stays")) == (9, 0, 0)
    back = fetched(Results(tmp_path / "back"), target)
    assert (back.of("moved"), back.of("refused")) == (9, 0)
    assert files(tmp_path / "back", *CARRIED) == files(results.root, *CARRIED)
    assert not list(Results(tmp_path / "back").problems())


def test_what_is_there_is_not_sent_or_fetched_again(results: Results, tmp_path: Path) -> None:
    target = Target.open(str(tmp_path / "target"))
    sent(results, target)
    again = sent(results, target)
    assert (again.of("there"), again.of("moved"), again.size) == (9, 0, 0)
    fetched(Results(tmp_path / "back"), target)
    assert fetched(Results(tmp_path / "back"), target).of("there") == 9


def test_secret_logs_and_plans_never_leave(results: Results, tmp_path: Path) -> None:
    target = Target.open(str(tmp_path / "target"))
    sent(results, target, restricted=True)
    everything = b"".join(files(tmp_path / "target", ".").values())
    assert SECRET.content not in everything
    assert SECRET.content.hex().encode() not in everything
    assert b"patient" not in everything
    assert b"evaluators: []" not in everything
    assert {path.name for path in (tmp_path / "target").iterdir()} == {"records", "artefacts", "blobs", "unfinished"}


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_network_that_fails_at_random_costs_time_and_nothing_else(
    seed: int, objects: bool, results: Results, tmp_path: Path
) -> None:
    for attempt in range(20):
        target = moody(tmp_path / "target", failing(0.15, seed * 100 + attempt), objects=objects)
        try:
            if not sent(results, target).of("refused"):
                break
        except TransferError:
            continue
    else:
        pytest.fail("twenty pushes did not get through")
    back = Results(tmp_path / "back")
    for attempt in range(20):
        target = moody(tmp_path / "target", failing(0.15, seed * 100 + attempt + 50), objects=objects)
        fetched(back, target)
        assert not list(back.problems())  # nothing that came in halves is ever in place
        if files(back.root, *CARRIED) == files(results.root, *CARRIED):
            return
    pytest.fail("twenty pulls did not get through")


@pytest.mark.parametrize("after", range(0, 24, 3))
def test_a_push_that_is_killed_looks_unfinished_and_goes_on(after: int, results: Results, tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        sent(results, moody(tmp_path / "target", dying(after), tidy=False), jobs=1)
    half = Results(tmp_path / "half")
    if after:
        fetched(half, moody(tmp_path / "target", calm))  # what is there already is whole
        assert not list(half.problems())
    left = tmp_path / "target/unfinished"
    left.mkdir(exist_ok=True)
    for path in [*(tmp_path / "target").rglob("*.json")]:  # others died over what has arrived since
        (left / f"{hashlib.sha256(path.read_bytes()).hexdigest()}-{'0' * 16}").touch()
    if after:
        assert not fetched(half, moody(tmp_path / "target", calm)).of("refused")  # what is unfinished is nobody's
    assert not sent(results, moody(tmp_path / "target", calm)).of("refused")
    assert not list(left.iterdir())
    assert not fetched(half, moody(tmp_path / "target", calm)).of("refused")
    assert files(half.root, *CARRIED) == files(results.root, *CARRIED)


def test_what_a_killed_push_left_goes_with_the_next(results: Results, tmp_path: Path) -> None:
    def cut(kind: str, content: bytes) -> bytes:
        return content[:3] if kind == "write" else content

    tally = sent(results, moody(tmp_path / "target", cut, tidy=False))
    assert tally.of("refused") == 9
    assert list((tmp_path / "target/unfinished").iterdir())
    assert "other bytes" in " ".join(tally.why("refused")) or "another size" in " ".join(tally.why("refused"))
    assert not sent(results, moody(tmp_path / "target", calm)).of("refused")
    assert not list((tmp_path / "target/unfinished").iterdir())


def test_a_place_that_says_it_wrote_and_did_not_is_found_out(results: Results, tmp_path: Path) -> None:
    def lying(kind: str, content: bytes) -> bytes:
        return bytes(len(content)) if kind == "write" else content

    tally = sent(results, moody(tmp_path / "target", lying, objects=True))
    assert tally.of("moved") == 0
    assert tally.of("refused") == 9


def test_bytes_that_rot_at_the_target_are_sent_again_or_refused(results: Results, tmp_path: Path) -> None:
    target = Target.open(str(tmp_path / "target"))
    sent(results, target)
    record = next((tmp_path / "target/records").rglob("*.json"))
    scheme = next((results.root / "artefacts/schemes").rglob("data.safetensors")).read_bytes()
    blob = next(path for path in (tmp_path / "target/blobs").rglob("*/*") if path.read_bytes() == scheme)
    for path in (record, blob):
        path.write_bytes(path.read_bytes()[:-1] + b"!")
    back = Results(tmp_path / "back")
    assert fetched(back, target).of("refused") == 2
    assert not list(back.problems())
    assert sent(results, target).of("moved") == 1  # of a record every byte is read, of what it names the size
    assert sent(results, target, check=True).of("moved") == 1
    assert fetched(back, target).of("refused") == 0
    assert files(back.root, *CARRIED) == files(results.root, *CARRIED)


def test_a_place_that_is_gone_is_given_up(results: Results, tmp_path: Path) -> None:
    def gone(kind: str, content: bytes) -> bytes:
        raise OSError("no route to host")

    many = Results(tmp_path / "many")
    keep(many, *(one(f"m{number}") for number in range(30)))
    with pytest.raises(TransferError, match=r"10 transfers in a row failed.*no route to host"):
        sent(many, moody(tmp_path / "target", gone))


def test_messages_name_no_password() -> None:
    assert named("s3://me:secret@host/folder/") == "s3://host/folder"
    assert named("sftp://me@host/folder") == named("sftp://host/folder")
