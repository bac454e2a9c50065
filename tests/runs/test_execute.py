"""Workers: whatever a job does, and whatever it writes into the pipe, comes to one outcome, and no process is left."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from bench.contract.seal import ContractError
from bench.contract.source import DataError
from bench.isolation import RefusedError
from bench.plugins import code_digest
from bench.progress import report, stage
from bench.runs import local_engine, worker
from bench.runs.engine import Job, Outcome
from bench.runs.local_engine import LocalEngine
from bench.runs.tasks import MESSAGE_CAP
from bench.types import NotApplicable
from bench.wire.message import send

MEMORY = 8 * 2**30
SECRET = "p10000032"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="daemons are found by Linux alone")


def answer(argument: object) -> object:
    stage("think")
    report("think", 1, 2)
    return argument


def refuse(argument: object) -> object:
    raise NotApplicable("makes no sense")


def be_refused(argument: object) -> object:
    raise RefusedError("too few rows")


def find_ready(argument: object) -> object:
    return {"hashed": code_digest._digest_of.cache_info().currsize, "numba": "numba.np.npyimpl" in sys.modules}


def nap(argument: object) -> object:
    time.sleep(float(str(argument)))
    return time.time()


@dataclass
class Ran:
    """What became of jobs, by name, and what was said of stages."""

    found: dict[str, Outcome] = field(default_factory=dict)
    said: list[tuple[str, str, int, int]] = field(default_factory=list)


def run(*jobs: Job, at_a_time: int = 2, memory: int = MEMORY) -> Ran:
    ran = Ran()
    with closing(LocalEngine(jobs=at_a_time, memory=memory, notify=lambda *told: ran.said.append(told))) as pool:
        pool.submit(jobs)
        while (future := pool.next()) is not None:
            assert future.job.name not in ran.found, "a second outcome"
            assert future.outcome is not None
            ran.found[future.job.name] = future.outcome
    return ran


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    def made(work: Callable[[object], object], argument: object = None, answer: type = dict, **more: object) -> Job:
        name = str(more.pop("name", work.__name__))
        first = Job(name, work, argument, answer, 3600, tmp_path / "logs" / f"{name}.log")
        return replace(first, **more)  # type: ignore[arg-type]

    return made


def test_workers_find_the_harness_hashed_and_numbas_tables_read(job: Callable[..., Job]) -> None:
    assert run(job(find_ready)).found["find_ready"].value == {"hashed": 3, "numba": True}


def test_values_progress_and_reasons_come_back(job: Callable[..., Job]) -> None:
    ran = run(job(answer, {"x": 1}), job(refuse), job(be_refused))
    assert (ran.found["answer"].status, ran.found["answer"].value) == ("ok", {"x": 1})
    refused = ran.found["refuse"]
    assert (refused.status, refused.code, refused.reason) == ("not-applicable", "not-applicable", "makes no sense")
    refused = ran.found["be_refused"]
    assert (refused.status, refused.code, refused.reason) == ("not-applicable", "refused", "too few rows")
    assert ("answer", "think", 1, 2) in ran.said


def test_a_job_alone_starts_when_the_others_are_done(job: Callable[..., Job]) -> None:
    jobs = [job(nap, 0, float, name="alone", alone=True), *(job(nap, 0.5, float, name=name) for name in "ab")]
    found = run(*jobs).found
    assert float(str(found["alone"].value)) >= max(float(str(found[name].value)) for name in "ab")


@pytest.mark.parametrize(("at_a_time", "started"), [(1, ["x"]), (2, ["a", "x"]), (4, ["a", "b", "x", "y"])])
def test_half_of_the_workers_measure_what_there_is_to_measure(
    job: Callable[..., Job], at_a_time: int, started: list[str]
) -> None:
    with closing(LocalEngine(jobs=at_a_time, memory=MEMORY, notify=lambda *told: None)) as pool:
        pool.submit([job(nap, 1000, float, name=name, prepares=name in "abc") for name in "abcxy"])
        pool._release()
        pool._fill()
        assert sorted(running.job.name for running in pool._running) == started


def test_leaving_the_block_ends_what_runs(job: Callable[..., Job]) -> None:
    with closing(LocalEngine(jobs=1, memory=MEMORY, notify=lambda *told: None)) as pool:
        pool.submit([job(nap, 1000, name="long"), job(nap, 1000, name="never")])
        pool._release()
        pool._fill()
        (running,) = pool._running
        assert running.process.is_alive()
    assert running.process.exitcode == -signal.SIGKILL  # and not 0, as after its thousand seconds


def who(argument: object) -> object:
    sys.stdout.reconfigure(line_buffering=False, write_through=False)  # type: ignore[union-attr]
    print(f"log of {argument}")
    return os.getpid()


def refuse_by(argument: object) -> object:
    raise NotApplicable(str(os.getpid()))


def break_down(argument: object) -> object:
    raise ValueError(str(os.getpid()))


def leave_a_child(argument: object) -> object:
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return os.getpid()


def burn(argument: object) -> object:
    until = time.process_time() + float(str(argument))
    while time.process_time() < until:
        pass
    return os.getpid()


def test_a_worker_that_is_kept_does_the_next_job_in_that_jobs_log(job: Callable[..., Job], tmp_path: Path) -> None:
    kept = [job(who, name, int, name=name, keeps=True) for name in "abc"]
    ran = run(*kept, job(who, "d", int, name="d"), at_a_time=1)
    pids = {name: outcome.value for name, outcome in ran.found.items()}
    assert pids["a"] == pids["b"] == pids["c"] != pids["d"]
    for name in "abcd":
        assert (tmp_path / "logs" / f"{name}.log").read_text().splitlines()[:-1] == [f"log of {name}"]
    assert not any(psutil.pid_exists(int(str(pid))) for pid in pids.values())


def test_what_a_job_of_a_kept_worker_takes_is_its_own(job: Callable[..., Job]) -> None:
    found = run(job(burn, 2, int, keeps=True), job(who, "b", int, keeps=True), at_a_time=1).found
    assert found["burn"].value == found["who"].value
    assert found["burn"].cpu_seconds > 1.4  # as it was seen last, half a second before the answer at most
    assert found["who"].cpu_seconds < 1


@pytest.mark.parametrize(("first", "kept"), [(refuse_by, True), (break_down, False), (leave_a_child, False)])
def test_a_worker_goes_on_only_after_a_job_that_went_well_and_left_nothing(
    job: Callable[..., Job], first: Callable[[object], object], kept: bool
) -> None:
    found = run(job(first, None, int, keeps=True), job(who, "b", int, keeps=True), at_a_time=1).found
    before = found[first.__name__]
    number = int(str(before.value or str(before.reason).split()[-1]))
    assert (found["who"].value == number) is kept


def worker_of(pool: LocalEngine, asked: Job) -> int:
    """Do a job that answers with its process."""
    pool.submit([asked])
    future = pool.next()
    assert future is not None
    assert future.outcome is not None
    return int(str(future.outcome.value))


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_a_kept_worker_leaves_if_its_place_is_needed_or_a_job_wants_the_machine_alone(
    job: Callable[..., Job], at_a_time: int
) -> None:
    with closing(LocalEngine(jobs=at_a_time, memory=MEMORY, notify=lambda *told: None)) as pool:
        kept = worker_of(pool, job(who, "a", int, keeps=True))
        worker_of(pool, job(who, "b", int))
        assert psutil.pid_exists(kept) is (at_a_time == 2)
        worker_of(pool, job(who, "c", int, alone=True))
        assert not psutil.pid_exists(kept)


@pytest.mark.parametrize("noticed", [True, False])
def test_a_kept_worker_that_died_or_is_in_the_way_is_replaced(job: Callable[..., Job], noticed: bool) -> None:
    with closing(LocalEngine(jobs=1, memory=MEMORY, notify=lambda *told: None)) as pool:
        done = partial(worker_of, pool)
        first = done(job(who, "a", int, keeps=True))
        worker, above = psutil.Process(first), psutil.Process(first).parent()
        assert above is not None
        if not noticed:
            above.suspend()  # as while it waits for a core
        worker.kill()
        with suppress(psutil.NoSuchProcess):  # it may go between two looks
            while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.01)
        if noticed:
            above.wait()
        second = done(job(who, "b", int, keeps=True, timeout=30.0))
        assert first != second
        assert psutil.pid_exists(second)
        done(job(who, "c", int, alone=True))
        assert not psutil.pid_exists(second)


def pipe() -> int:
    """The descriptor over which this worker answers: a plug-in finds it as easily."""
    outer = sys._getframe(1)
    while "answers" not in outer.f_locals:
        assert outer.f_back is not None
        outer = outer.f_back
    return int(outer.f_locals["answers"].fileno())


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def half(argument: object) -> object:
    os.write(pipe(), framed(b'{"kind":"answer"}')[:9])
    time.sleep(1000)
    return {}


def half_and_gone(argument: object) -> object:
    os.write(pipe(), framed(b'{"kind":"answer"}')[:9])
    os._exit(0)


def gigabyte(argument: object) -> object:
    os.write(pipe(), (1 << 30).to_bytes(4, "big"))
    time.sleep(1000)
    return {}


def garbage(argument: object) -> object:
    os.write(pipe(), b"\x80\x05garbage" * 100)
    time.sleep(1000)
    return {}


def flood(argument: object) -> object:
    while True:
        os.write(pipe(), framed(b'{"kind":"progress","stage":"x","done":1,"total":2}') * 100)


def stages(argument: object) -> object:
    for number in range(20_000):
        stage(f"step {number}")
        report("count", number, 20_000)
    return {}


def other_kind(argument: object) -> object:
    send(pipe(), {"kind": "surprise"}, MESSAGE_CAP)
    time.sleep(1000)
    return {}


def wrong_value(argument: object) -> object:
    send(pipe(), {"kind": "answer", "status": "ok", "value": [1]}, MESSAGE_CAP)
    time.sleep(1000)
    return {}


def twice(argument: object) -> object:
    for number in (1, 2):
        message = {
            "kind": "answer",
            "status": "ok",
            "value": {"x": number},
            "code": None,
            "reason": None,
            "phase": None,
        }
        send(pipe(), message, MESSAGE_CAP)  # type: ignore[arg-type]
    return {"x": 3}


def goes_on(argument: object) -> object:
    threading.Thread(target=time.sleep, args=(1000,)).start()  # which Python waits for at the end
    return {"x": 1}


def never_ends(argument: object) -> object:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)
    return {}


def burns_in_a_child(argument: object) -> object:
    if os.fork() == 0:
        while True:
            pass
    time.sleep(1000)
    return {}


def unsendable(argument: object) -> object:
    return {"x": "y" * (MESSAGE_CAP + 1)}


def another_type(argument: object) -> object:
    return object()


def ends(argument: object) -> object:
    os._exit(int(str(argument)))


def exits(argument: object) -> object:
    raise SystemExit(0)


def faults(argument: object) -> object:
    ctypes.string_at(0)
    return {}


def kills_its_parent(argument: object) -> object:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)
    return {}


def stops_its_parent(argument: object) -> object:
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(1000)
    return {}


def no_text(argument: object) -> object:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    raise MuteError


def long_text(argument: object) -> object:
    raise ValueError("/a" * 25_000_000)


def odd_text(argument: object) -> object:
    raise type("\x1b[31mRed", (ValueError,), {})("\x1b[2J\ud800\x07" * 10)


MODES = {
    half: ("timed-out", "stopped after"),
    half_and_gone: ("died", "exit code 0"),
    gigabyte: ("protocol", "at most"),
    garbage: ("protocol", "at most"),
    flood: ("protocol", "more often"),
    other_kind: ("protocol", "no answer"),
    wrong_value: ("protocol", "no answer"),
    never_ends: ("timed-out", "stopped after 8 s in which it neither computed"),
    burns_in_a_child: ("timed-out", "stopped after"),
    unsendable: ("contract", "cannot be sent"),
    another_type: ("contract", ""),
    exits: ("error", "SystemExit"),
    faults: ("died", "SIGSEGV"),
    kills_its_parent: ("died", "SIGKILL"),
    stops_its_parent: ("timed-out", "stopped after"),
    no_text: ("error", "cannot say why"),
    long_text: ("error", "ValueError"),
    odd_text: ("error", "Red"),
}


def test_every_way_to_break_a_job_is_one_bounded_outcome(job: Callable[..., Job]) -> None:
    late = {"timed-out": 8.0}  # a busy machine takes seconds to start a process
    jobs = [job(work, timeout=late.get(code, 3600)) for work, (code, _) in MODES.items()]
    found = run(*jobs, job(answer, {"x": 1}), at_a_time=4).found
    assert len(found) == len(MODES) + 1
    assert found["answer"].value == {"x": 1}
    for work, (code, text) in MODES.items():
        outcome = found[work.__name__]
        assert (outcome.code, outcome.value) == (code, None), work
        assert text in str(outcome.reason), work
        assert str(outcome.reason).isprintable(), work
        assert len(str(outcome.reason)) <= 2000, work
    assert found["burns_in_a_child"].cpu_seconds > 1
    assert left() == []


def left() -> list[psutil.Process]:
    """What of this process's jobs still runs below its fork server, which stays."""
    servers = [child for child in psutil.Process().children() if "forkserver" in " ".join(child.cmdline())]
    found = [process for server in servers for process in server.children(recursive=True)]
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


def test_a_job_that_says_too_much_is_heard_in_part(job: Callable[..., Job]) -> None:
    ran = run(job(stages))
    assert ran.found["stages"].status == "ok"
    assert 0 < len(ran.said) < 20_000


def test_what_is_answered_first_counts(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.runs.local_engine._LINGER_SECONDS", 0.5)
    found = run(job(twice), job(goes_on)).found
    assert (found["twice"].status, found["twice"].value) == ("ok", {"x": 1})
    assert (found["goes_on"].status, found["goes_on"].value) == ("ok", {"x": 1})
    assert left() == []


def daemonises(argument: object) -> object:
    """Leaves three processes behind: a child, a daemon, and a daemon that holds the pipe and ignores signals."""
    folder = Path(str(argument))
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    for name in ("one", "two"):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                (folder / name).write_text(str(os.getpid()))
                time.sleep(1000)
            os._exit(0)
    while not all((folder / name).exists() and (folder / name).read_text() for name in ("one", "two")):
        time.sleep(0.01)
    if (folder / "dies").exists():
        os._exit(7)
    return {}


@LINUX
@pytest.mark.parametrize("dies", [False, True])
def test_daemons_end_with_their_job(job: Callable[..., Job], tmp_path: Path, dies: bool) -> None:
    if dies:
        (tmp_path / "dies").touch()
    (outcome,) = run(job(daemonises, str(tmp_path))).found.values()
    assert (outcome.status, outcome.code) == (("failed", "died") if dies else ("ok", None))
    for name in ("one", "two"):
        pid = int((tmp_path / name).read_text())
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert left() == []


def eats_in_a_child(argument: object) -> object:
    if os.fork() == 0:
        held = []
        while True:
            held.append(b"\1" * 10_000_000)
    time.sleep(1000)
    return {}


def test_a_limit_below_a_tenth_of_a_gib_is_said(job: Callable[..., Job]) -> None:
    (outcome,) = run(job(eats_in_a_child), memory=2**20).found.values()
    assert outcome.code == "out-of-memory"
    assert str(outcome.reason).endswith("GiB of memory: the limit is 0.000977 GiB")


@LINUX
def test_what_a_child_holds_counts(job: Callable[..., Job]) -> None:
    (outcome,) = run(job(eats_in_a_child), memory=2 * 2**30).found.values()
    assert (outcome.code, outcome.status) == ("out-of-memory", "failed")
    assert left() == []


def test_memory_is_walked_over_where_it_may_be_more_than_was_noted_and_now_and_then(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[int] = []
    held, walked = iter([50, 40, 60, 30, 70, 20, 10]), list[int]()
    monkeypatch.setattr(local_engine, "at_most", lambda tree: bounds.pop(0))
    monkeypatch.setattr(local_engine, "memory", lambda tree: walked.append(next(held)) or walked[-1])
    monkeypatch.setattr(local_engine, "_WALK_SECONDS", 3600.0)
    with closing(LocalEngine(jobs=1, memory=MEMORY, notify=lambda *told: None)) as pool:
        pool.submit([job(nap, 1000)])
        pool._release()
        pool._fill()
        (running,) = pool._running
        running.walked = time.perf_counter()

        def walks(*told: int) -> bool:
            """Whether it is walked over, where the bound is so before, and so after a walk."""
            bounds[:], before = told, len(walked)
            pool._measure(running, [], 1.0)
            return len(walked) > before

        assert walks(100, 100)
        assert not walks(90)
        assert not walks(104)  # hardly more
        assert walks(106, 60)  # what was there for a moment
        assert walks(106, 106)  # is looked for again
        assert not walks(106)
        running.walked -= 3601
        assert walks(80, 80)
        running.phase = "score"
        assert walks(10, 10)
        assert walks(MEMORY + 1, MEMORY + 1)  # above the limit, whatever was noted
        assert walks(MEMORY + 1, MEMORY + 1)
    assert running.peaks == {"start": 60, "score": 70}
    assert running.outcome is None


def hides_its_name(argument: object) -> object:
    ctypes.CDLL(None).prctl(15, b"\xff\n:")
    time.sleep(2)
    return {}


@LINUX
def test_a_job_whose_name_is_no_text_is_measured(job: Callable[..., Job]) -> None:
    outcome = run(job(hides_its_name)).found["hides_its_name"]
    assert (outcome.status, outcome.value) == ("ok", {})


def prints(argument: object) -> object:
    chunk = b"x" * 2**20
    for _ in range(1024):
        os.write(1, chunk)
    print("the last line", file=sys.stderr)
    return {}


def test_a_gigabyte_of_print_is_cut_and_said(job: Callable[..., Job]) -> None:
    asked = job(prints)
    assert run(asked).found["prints"].status == "ok"
    log = asked.log.read_bytes()
    *_, cut, digest = log.splitlines()
    assert worker.LOG_BYTES < len(log) < worker.LOG_BYTES + 100 + len(digest) + 1
    assert cut.endswith(b"bytes]")
    assert digest.startswith(b"# sha256 of all above: ")
    assert asked.log.stat().st_mode & 0o777 == 0o600
    assert asked.log.parent.stat().st_mode & 0o777 == 0o700


def secret_stage(argument: object) -> object:
    stage("attack")
    stage(f"looking at {SECRET}")
    report(f"looking at {SECRET}", 1, 2)
    print(SECRET)
    raise type(SECRET, (ValueError,), {})(SECRET)


def secret_reason(argument: object) -> object:
    raise NotApplicable(SECRET)


def secret_contract(argument: object) -> object:
    raise ContractError(SECRET)


def data_error(argument: object) -> object:
    raise DataError("put the images there")


def test_of_data_that_may_not_be_shared_only_codes_are_said(job: Callable[..., Job]) -> None:
    jobs = [job(work, restricted=True) for work in (secret_stage, secret_reason, secret_contract, data_error)]
    ran = run(*jobs, job(data_error, name="heard", restricted=True, heard=(DataError,)))
    assert SECRET not in repr(ran)
    assert {name: outcome.code for name, outcome in ran.found.items()} == {
        "secret_stage": "error", "secret_reason": "not-applicable", "secret_contract": "contract",
        "data_error": "data", "heard": "data",
    }  # fmt: skip
    assert ran.found["secret_stage"].phase == "attack"
    assert ran.found["heard"].reason == "put the images there"
    assert "put" not in str(ran.found["data_error"].reason)
    for each in jobs[:3]:
        assert SECRET in each.log.read_text(), "the owner's log says it all"
