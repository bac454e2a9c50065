"""The harness end to end, on the digits of scikit-learn at the smallest preset, through the command line."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from filelock import FileLock
from made.cells import choice
from made.forked import Forked
from PIL import Image

from bench.cli import main
from bench.plugins.configured import configure
from bench.plugins.spec import parse
from bench.results.records import Record
from bench.results.results import Results
from bench.runs.engine import Future, Job
from bench.runs.job_process import JobProcess
from bench.runs.local_engine import LocalEngine
from bench.runs.run import _Graph
from bench.workbench.cell import Planned

PLUGINS = '''
import os, time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
import torch
from methods.identity import Identity
from attacks.chance import Chance

@dataclass(frozen=True)
class Raises(Identity):
    """A method that fails."""
    name: ClassVar[str] = "raises"
    def fit(self, public, seed):
        raise RuntimeError("no luck with /secret/place/a.png")

@dataclass(frozen=True)
class Writes(Identity):
    """A method that writes into its input."""
    name: ClassVar[str] = "writes"
    def fit(self, public, seed):
        public.samples.zero_()
        return super().fit(public, seed)

@dataclass(frozen=True)
class Hangs(Chance):
    """An attack that says so and ends in a quarter of an hour, unless it is let go."""
    name: ClassVar[str] = "hangs"
    def fit(self, view, seed):
        Path(__file__).with_name("hanging").touch()
        end = time.monotonic() + 1000
        while time.monotonic() < end and not Path(__file__).with_name("let-go").exists():
            time.sleep(0.1)
        return super().fit(view, seed)

@dataclass(frozen=True)
class Dies(Chance):
    """An attack whose process is killed."""
    name: ClassVar[str] = "dies"
    def fit(self, view, seed):
        os.kill(os.getpid(), 9)

@dataclass(frozen=True)
class Grows(Chance):
    """An attack that eats memory."""
    name: ClassVar[str] = "grows"
    def fit(self, view, seed):
        held = []
        while True:
            held.append(torch.ones(25_000_000))

@dataclass(frozen=True)
class Poisons(Chance):
    """An attack that writes into what it is given."""
    name: ClassVar[str] = "poisons"
    def fit(self, view, seed):
        view.candidates.samples.zero_()
        return super().fit(view, seed)

@dataclass(frozen=True)
class Peeks(Chance):
    """An attack that looks for what it must not see."""
    name: ClassVar[str] = "peeks"
    def fit(self, view, seed):
        assert view.candidates.subjects is None and view.candidates.labels is None
        return super().fit(view, seed)
'''
CLAIMING = '''
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
import torch
from bench.types import KeylessKey, Method, PrivacyClaim, Scheme, paired
from methods.identity import Identity

@dataclass(frozen=True)
class Claims(Method):
    """Learns once, whatever it claims; every fit leaves a mark in a file."""
    name: ClassVar[str] = "claims"
    source: ClassVar[str] = "a test"
    unlearned: ClassVar[frozenset[str]] = frozenset({"epsilon"})
    epsilon: float = 1.0
    size: int = 1
    def fit(self, public, seed):
        with Path(MARKS).open("a") as file:
            file.write(f"{self.epsilon} {self.size};")
        return self.load({"learned": torch.tensor(self.size)})
    def load(self, state):
        return ClaimsScheme(self.epsilon, state)

@dataclass(frozen=True, eq=False)
class ClaimsScheme(Scheme):
    epsilon: float
    learned: dict
    def sample_key(self, secret):
        return KeylessKey(Identity())
    def load_key(self, state):
        return KeylessKey(Identity())
    def state(self):
        return self.learned
    def claim(self):
        return PrivacyClaim("image", self.epsilon, 0.0, "none", "a test", derived=2 * self.epsilon)
    def notes(self):
        return {"size": int(self.learned["learned"]), "bits": float("nan")}
'''
DIGITS = ["--dataset", "digits", "--preset", "smoke", "--no-site"]
WHOLE = [*DIGITS, "--jobs", "1"]
SMALL = ["--limit", "60", *WHOLE]


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    path = tmp_path / "plugins" / "mine.py"
    path.parent.mkdir()
    path.write_text(PLUGINS)
    return path


def test_methods_that_differ_in_what_is_not_learned_share_one_fit(tmp_path: Path) -> None:
    path = tmp_path / "claiming.py"
    path.write_text(CLAIMING.replace("MARKS", repr(str(tmp_path / "fits"))))  # by `__file__` it would count as its data
    chosen = [f"{path}:Claims[{given}]" for given in ("epsilon=1", "epsilon=3", "epsilon=3,size=2")]
    asked = [word for each in chosen for word in ("--method", each)]
    assert bench(tmp_path / "r", *asked, "--attack", "none", "--metric", "max-dispersion") == 0
    assert sorted((tmp_path / "fits").read_text().strip(";").split(";")) == ["1.0 1", "1.0 2"]
    found = [record for _, record in Results(tmp_path / "r").records() if isinstance(record, Record)]
    told = sorted((record.claim.epsilon, record.claim.derived, record.scheme["size"]) for record in found)  # type: ignore[union-attr]
    assert told == [(1, 2, 1), (3, 6, 1), (3, 6, 2)]
    assert {record.scheme["bits"] for record in found} == {"nan"}  # records hold no such number, and none was lost


def bench(results: Path, *arguments: str) -> int:
    return main(["run", *SMALL, "--results", str(results), *arguments])


def records(results: Path) -> dict[tuple[str, str], Record]:
    found = {}
    for path, record in Results(results).records():
        assert isinstance(record, Record), path
        found[record.method.name, record.evaluator] = record
    return found


def test_identity_is_fully_reidentified_and_noise_is_not(tmp_path: Path) -> None:
    arguments = ["--method", "identity", "--method", "noise", "--attack", "chance", "--attack", "nearest-neighbour"]
    metrics = ["--metric", "guesswork", "--metric", "reid-auc", "--metric", "top-1", "--metric", "patient-guesswork"]
    assert main(["run", *DIGITS, "--results", str(tmp_path), *arguments, *metrics, "--jobs", "2"]) == 0
    found = records(tmp_path)
    identity = found["identity", "reidentification-nearest-neighbour"]
    assert identity.scores["guesswork"].value == 1.0
    assert identity.scores["reid-auc"].value > 0.99
    assert identity.scores["top-1"].value > 0.99
    # Digits know no people: the patient figure says so instead of being absent, zero or NaN.
    assert "need subjects" in identity.not_applicable["patient-guesswork"]
    noise = found["noise", "reidentification-nearest-neighbour"].scores
    auc, guesses = noise["reid-auc"], noise["guesswork"]
    assert auc.null_low is not None
    assert guesses.null is not None
    # 3.3 standard deviations: one seed in a thousand. The null interval is 1.96 of them wide to each side.
    assert abs(auc.value - 0.5) < 3.3 / 1.96 * (0.5 - auc.null_low)
    # The mean of two nearly exponential keys is below .022 of its expectation once in a thousand.
    assert guesses.value > 0.022 * guesses.null


def test_a_second_run_computes_nothing_changes_nothing_and_starts_no_worker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--method", "identity", "--attack", "chance", "--metric", "reid-auc"]
    assert bench(tmp_path, *arguments) == 0
    before = {path: path.read_bytes() for path in tmp_path.glob("cells/**/*.json")}
    started: list[str] = []
    submit = LocalEngine.submit

    def noted(self: LocalEngine, jobs: Sequence[Job], after: Sequence[Future] = ()) -> list[Future]:
        started.extend(job.name for job in jobs)
        return submit(self, jobs, after)

    monkeypatch.setattr(LocalEngine, "submit", noted)
    assert bench(tmp_path, *arguments) == 0
    assert "0 computed, 1 already there, 0 failed" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in tmp_path.glob("cells/**/*.json")} == before
    assert started == []
    with monkeypatch.context() as cleaned:
        cleaned.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
        assert bench(tmp_path, *arguments) == 0  # a worker opens what has to be prepared again
    assert started == ["data digits seed 0"]
    (tmp_path / "cells").rename(tmp_path / "lost")
    assert bench(tmp_path, *arguments) == 0
    assert [name.split()[-1] for name in started[1:]] == ["0", "fit", "reidentification-chance"]
    assert main(["status", "--results", str(tmp_path)]) == 0
    assert "1 done" in capsys.readouterr().out


def test_figures_are_the_same_where_one_worker_does_all_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--method", "dp-simple[scale=1]", "--attack", "nearest-neighbour", "--metric", "guesswork"]
    arguments += ["--metric", "max-dispersion", "--metric", "throughput"]
    begun: list[str] = []
    begin = JobProcess.begin
    monkeypatch.setattr(JobProcess, "begin", lambda self: (begun.append(self.job.name.split()[-1]), begin(self)))
    found = {}
    for folder in ("apart", "kept"):
        begun.clear()
        with monkeypatch.context() as patch:
            if folder == "apart":
                patch.setattr("bench.runs.run._Graph._keeps", lambda *parts: False)
            assert bench(tmp_path / folder, *arguments) == 0
        assert len(begun) == 5 or folder == "kept"
        found[folder] = {
            name: (record.key, record.scores)
            for name, record in records(tmp_path / folder).items()
            if name[1] != "throughput"
        }
    assert begun == ["0", "throughput"]
    assert found["apart"] == found["kept"]
    assert len(found["kept"]) == 2


@pytest.mark.parametrize(
    ("method", "isolation", "metrics", "keeps"),
    [
        ("identity", "sandbox", ["guesswork"], True),
        ("identity", "none", ["guesswork"], True),
        ("theirs", "sandbox", ["guesswork"], True),
        ("theirs", "none", ["guesswork"], False),
        ("identity", "sandbox", ["throughput"], False),
        ("identity", "sandbox", ["theirs.py:Theirs"], False),
    ],
)
def test_a_worker_is_kept_where_all_of_its_code_is_this_projects(
    method: str, isolation: str, metrics: list[str], keeps: bool
) -> None:
    evaluator = "throughput" if metrics == ["throughput"] else "reidentification"
    attack = None if evaluator == "throughput" else configure("attacks", "chance", "smoke")
    graph: Any = SimpleNamespace(spec=SimpleNamespace(isolation=isolation))
    chosen: Any = configure("methods", method, "smoke") if method == "identity" else SimpleNamespace(ours=False)
    assert _Graph._keeps(graph, choice("digits"), chosen, Planned(evaluator, attack, (*metrics,))) is keeps


@pytest.mark.parametrize(("isolation", "keeps"), [("sandbox", True), ("none", False)])
def test_a_worker_is_not_kept_after_an_attack_that_holds_one_of_other_authors(isolation: str, keeps: bool) -> None:
    graph: Any = SimpleNamespace(spec=SimpleNamespace(isolation=isolation))
    attack = configure("attacks", "surrogate", "smoke")
    attack = replace(attack, spec=parse("surrogate[base=theirs.py:Theirs]"))
    planned: Any = SimpleNamespace(
        attack=attack, written="reidentification", metrics=("guesswork",), evaluator=SimpleNamespace(alone=False)
    )
    assert _Graph._keeps(graph, choice("digits"), configure("methods", "identity", "smoke"), planned) is keeps


def test_an_outcome_is_taken_over_only_for_equal_inputs_isolation_and_earlier_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.runs.run.record_inputs", lambda cell, data, planned, commitment: {"planned": planned})

    def key(planned: str = "a", isolation: str = "none", digest: str | None = None, keeps: bool = True) -> str:
        engine, spec = SimpleNamespace(keeps_outcomes=keeps), SimpleNamespace(isolation=isolation)
        graph: Any = SimpleNamespace(engine=engine, spec=spec, _commitments={None: ""})
        record = None if digest is None else SimpleNamespace(digest=digest)
        standing: Any = SimpleNamespace(planned=planned, record=record)
        none: Any = None
        return _Graph._key(graph, none, none, standing)

    keys = [key(), key("b"), key(isolation="sandbox"), key(digest="x"), key(digest="y")]
    assert len(set(keys)) == 5
    assert key() == keys[0]
    assert key(keeps=False) == ""


def test_failures_are_recorded_and_touch_nothing_else(
    tmp_path: Path, plugins: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # When the attack has hung for some seconds, the run's clock says that an hour has passed: however slow the machine,
    # no other job of this run is stopped, and none waits. (What the attack said before it hung is heard by then.)
    hanging = plugins.with_name("hanging")

    def hours() -> int:
        return int(hanging.exists() and time.time() - hanging.stat().st_mtime > 5)

    clock = SimpleNamespace(sleep=time.sleep, perf_counter=lambda: time.perf_counter() + 3600 * hours())
    for module in ("local_engine", "job_process"):  # jobs begin by the same clock
        monkeypatch.setattr(f"bench.runs.{module}.time", clock)
    attacks = [
        argument
        for name in ("Hangs", "Dies", "Grows", "Peeks", "Poisons")
        for argument in ("--attack", f"{plugins}:{name}")
    ]
    arguments = ["--method", "identity", "--method", f"{plugins}:Raises", "--method", f"{plugins}:Writes"]
    code = bench(
        tmp_path,
        *arguments,
        *attacks,
        "--attack",
        "chance",
        "--metric",
        "reid-auc",
        "--timeout",
        "1800",
        "--memory",
        "2",
    )
    assert code == 1
    found = {(method, evaluator.split("-")[-2] if ".py" in evaluator else evaluator): record
             for (method, evaluator), record in records(tmp_path).items()}  # fmt: skip
    by_attack = {record.attack.name: record for (method, _), record in records(tmp_path).items()
                 if method == "identity" and record.attack}  # fmt: skip
    assert by_attack["chance"].status == "ok"
    assert by_attack["peeks"].status == "ok"
    assert by_attack["hangs"].status == "timed-out"
    assert by_attack["hangs"].phase == "attack"
    assert "neither computed nor said" in str(by_attack["hangs"].reason)
    assert by_attack["dies"].status == "failed"
    assert "SIGKILL" in str(by_attack["dies"].reason)
    assert by_attack["grows"].status == "failed"
    assert "the limit is 2 GiB" in str(by_attack["grows"].reason)
    assert "poisons wrote into the data" in str(by_attack["poisons"].reason)
    raised = found["raises", "reidentification-chance"]
    assert raised.phase == "fit"
    # Paths have no place in a record.
    assert raised.reason == "RuntimeError: no luck with <path>"
    assert "wrote into the data" in str(found["writes", "reidentification-chance"].reason)
    assert "failed: " in capsys.readouterr().err


def test_only_failures_run_again(tmp_path: Path, plugins: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--method", "identity", "--attack", "chance", "--attack", f"{plugins}:Dies", "--metric", "reid-auc"]
    assert bench(tmp_path, *arguments) == 1
    capsys.readouterr()
    assert bench(tmp_path, *arguments) == 1
    assert "1 computed, 1 already there, 1 failed" in capsys.readouterr().out
    assert bench(tmp_path, *arguments, "--overwrite", "never") == 1
    assert "0 computed, 2 already there, 1 failed" in capsys.readouterr().out


def test_a_limited_run_is_marked_and_status_says_what_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench(tmp_path, "--method", "identity", "--attack", "chance", "--metric", "reid-auc") == 0
    monkeypatch.setattr("bench.workbench.inputs.PROTOCOL", 5)
    assert main(["status", "--results", str(tmp_path)]) == 1
    assert "protocol (4 -> 5)" in " ".join(capsys.readouterr().out.split())
    record = records(tmp_path)["identity", "reidentification-chance"]
    assert record.limit == 60
    assert record.dataset is not None
    assert record.dataset.rows["private"] <= 60


def test_a_dry_run_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--method", "identity", "--attack", "chance", "--metric", "reid-auc", "--dry-run") == 0
    assert "1 to run, 0 to keep; nothing was run" in capsys.readouterr().out
    assert not list(tmp_path.glob("cells/**/*.json"))


ABSENT = {
    "no root": ([], "no data root is set"),
    "unknown root": (["--data-root", "nowhere"], "no such folder"),
    "half a tree": (["--data-root", "half"], "split"),
}


@pytest.mark.parametrize("case", ABSENT)
def test_missing_data_say_once_what_to_do_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    half = tmp_path / "half" / "mimic-cxr-jpg" / "2.0.0"
    half.mkdir(parents=True)
    for name in ("chexpert", "metadata"):
        (half / f"mimic-cxr-2.0.0-{name}.csv").write_text("subject_id,study_id\n")
    more, expected = ABSENT[case]
    asked = ["run", "--dataset", "mimic", "--preset", "smoke", "--method", "identity", "--method", "noise", *more]
    asked += ["--seed", "0", "--seed", "1", "--attack", "chance", "--jobs", "1", "--results", "r"]
    assert main(asked) == 2
    said = capsys.readouterr()
    assert said.err.count("physionet.org/content") == 1
    assert expected in said.err
    assert said.err.count("not run: mimic") == 1
    assert said.out == ""
    assert not (tmp_path / "r").exists()


def test_other_data_of_the_same_run_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--method", "identity", "--attack", "chance", "--metric", "reid-auc", "--dataset", "mimic"]
    assert bench(tmp_path, *arguments, "--dataset", "digits") == 2  # as ls and grep do
    said = capsys.readouterr()
    assert "1 computed, 0 already there, 0 failed" in said.out
    assert said.err.splitlines()[-1].startswith("not run: mimic")
    assert set(records(tmp_path)) == {("identity", "reidentification-chance")}
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["digits"]


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", STOPS)
def test_a_run_that_is_stopped_shows_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, 3, number)  # data, fit, and the first of two attacks
    asked = ["--method", "identity", "--attack", "chance", "--attack", "nearest-neighbour", "--metric", "reid-auc"]
    assert main(["run", *WHOLE[:-3], "--jobs", "1", "--results", str(tmp_path), *asked]) == 128 + number
    assert set(records(tmp_path)) == {("identity", "reidentification-chance")}
    assert (tmp_path / "site" / "index.html").exists()
    said = capsys.readouterr()
    assert "ReID AUC" in said.out
    assert "1 of 2 are left" in said.err


def test_a_second_stop_is_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, 1, signal.SIGINT)
    close = LocalEngine.close

    def stopped(workers: LocalEngine) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            close(workers)  # for the sake of other tests

    monkeypatch.setattr(LocalEngine, "close", stopped)
    assert bench(tmp_path, "--method", "identity", "--attack", "chance", "--metric", "reid-auc") == 130
    assert "finished results are kept" in capsys.readouterr().err


def stop_after(monkeypatch: pytest.MonkeyPatch, jobs: int, number: signal.Signals) -> None:
    """The signal comes to a run that waits for the next job, after so many."""
    wait, done = LocalEngine.next, []

    def stopped(workers: LocalEngine) -> object:
        if len(done) == jobs:
            os.kill(os.getpid(), number)
        done.append(wait(workers))
        return done[-1]

    monkeypatch.setattr(LocalEngine, "next", stopped)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no method given"),
        (["--dataset", "minst"], "did you mean 'mnist'"),
        (["--metric", "guess"], "did you mean 'guesswork'"),
        (["--method", "mine.py"], "name one, as FILE.py:CLASS"),
        (["--method", "identity", "--dry-run", "--results", __file__], "expected a folder, found a file"),
        (["--method", "identity", "--dataset", "minst"], "did you mean 'mnist'"),
        (["--method", "identity", "--attack", "contrastiv"], "did you mean 'contrastive'"),
        (["--method", "identity", "--metric", "guess"], "did you mean 'guesswork'"),
        (["--method", "dp-simple[scael=1]"], "did you mean 'scale'"),
    ],
)
def test_wrong_usage_exits_with_two_and_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    folder = [] if "--results" in arguments else ["--results", str(tmp_path)]
    assert main(["run", *folder, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_config_file_gives_options_and_the_command_line_wins(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        "methods: [{dp-simple: {scale: 3}}]\ndatasets: [digits]\nattacks: [chance]\nmetrics: [reid-auc]\n"
        "preset: quick\nseeds: [4]\n"
    )
    code = main(["run", "--config", str(config), "--preset", "smoke", "--results", str(tmp_path / "r"), "--no-site"])
    assert code == 0
    record = records(tmp_path / "r")["dp-simple", "reidentification-chance"]
    assert (record.preset, record.seed, record.method.parameters["scale"]) == ("smoke", 4, 3.0)


@dataclass(frozen=True)
class Killed:
    """A run of two attacks that was killed in the second.

    Args:
        arguments: What it was asked.
        results: Its folder.
        let_go: A file in whose presence the second attack ends.
        workers: The processes that it had started.
    """

    arguments: list[str]
    results: Path
    let_go: Path
    workers: list[psutil.Process]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    folder = tmp_path_factory.mktemp("killed")
    file, results, hanging = folder / "mine.py", folder / "results", folder / "hanging"
    file.write_text(PLUGINS)
    arguments = [*SMALL, "--results", str(results), "--method", "identity", "--metric", "reid-auc"]
    arguments += ["--attack", "chance", "--attack", f"{file}:Hangs"]
    home = {name: str(folder / name) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    run = Forked([sys.executable, "-m", "bench", "run", *arguments], env={**os.environ, **home})
    while not hanging.exists():  # every job has a time limit of its own: a run that never gets there ends
        assert run.poll() is None, "the run ended before it was killed"
        time.sleep(0.05)
    workers = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGKILL)
    run.wait()
    return Killed(arguments, results, folder / "let-go", workers)


def test_a_killed_run_leaves_no_process_behind(killed: Killed) -> None:
    assert killed.workers
    assert not psutil.wait_procs(killed.workers, timeout=120)[1]


def test_a_killed_run_is_taken_up_where_it_was(killed: Killed, capsys: pytest.CaptureFixture[str]) -> None:
    kept = records(killed.results)
    assert set(kept) == {("identity", "reidentification-chance")}
    killed.let_go.touch()
    assert main(["run", *killed.arguments]) == 0
    assert "1 computed, 1 already there, 0 failed" in capsys.readouterr().out
    again = records(killed.results)
    assert len(again) == 2
    assert all(again[name].created == record.created for name, record in kept.items())


def test_a_cell_of_another_command_is_named_once_and_taken_up_when_it_is_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*SMALL, "--results", str(tmp_path / "r"), "--method", "identity", "--metric", "reid-auc", "--attack"]
    assert main(["run", *asked, "chance"]) == 0
    (record,) = records(tmp_path / "r").values()
    lock = FileLock(Results(tmp_path / "r").cell_lock(record.cell), thread_local=False)
    lock.acquire()
    capsys.readouterr()
    assert main(["status", "--results", str(tmp_path / "r")]) == 0
    assert "A command works on 1 of 1 cells now" in capsys.readouterr().out
    looked = Results.cell_lock
    tries = list[str]()

    def counted(self: Results, cell: str) -> Path:
        tries.append(cell)
        if len(tries) == 3:
            lock.release()
        return looked(self, cell)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Results, "cell_lock", counted)
        assert main(["run", *asked, "nearest-neighbour"]) == 0
    assert len(tries) >= 3
    assert capsys.readouterr().err.count("another command works on digits | identity") == 1
    assert len(records(tmp_path / "r")) == 2
    assert main(["status", "--results", str(tmp_path / "r")]) == 0
    assert "A command works" not in capsys.readouterr().out


def test_a_folder_whose_plans_may_not_be_read_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "artefacts").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # chmod does not stop an administrator
    assert main(["status", "--results", str(tmp_path)]) == 2
    assert f"{tmp_path / 'artefacts'}: no permission to read it" in capsys.readouterr().err


def test_a_record_holds_no_path_of_this_machine(tmp_path: Path) -> None:
    assert bench(tmp_path, "--method", "identity", "--attack", "chance", "--metric", "reid-auc") == 0
    for path in tmp_path.glob("cells/**/*.json"):
        text = path.read_text()
        assert str(Path.cwd()) not in text
        assert str(tmp_path) not in text
        json.loads(text)


def test_lost_data_keep_the_results_that_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = tmp_path / "images"
    for kind in ("a", "b"):
        (images / kind).mkdir(parents=True)
        for number in range(40):
            grey = np.random.default_rng(number + 100 * (kind == "b")).integers(0, 255, (16, 16), dtype=np.uint8)
            Image.fromarray(grey).save(images / kind / f"{number}.png")
    arguments = ["run", "--dataset", f"folder:{images}", "--size", "16", "--preset", "smoke", "--method", "identity"]
    arguments += ["--attack", "chance", "--metric", "reid-auc", "--results", str(tmp_path / "r"), "--no-site"]
    assert main(arguments) == 0
    before = records(tmp_path / "r")
    images.rename(tmp_path / "elsewhere")
    assert main(arguments) == 2
    assert records(tmp_path / "r") == before
    # The folder's name is the user's own business.
    assert "images" not in "".join(str(path.relative_to(tmp_path)) for path in (tmp_path / "r").glob("cells/*/*"))


def test_fewer_metrics_keep_a_record_and_more_extend_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--method", "identity", "--attack", "chance"]
    assert bench(tmp_path, *arguments, "--metric", "reid-auc", "--metric", "top-1") == 0
    assert bench(tmp_path, *arguments, "--metric", "reid-auc") == 0
    assert "0 computed" in capsys.readouterr().out.rsplit("Records", 1)[1]
    assert bench(tmp_path, *arguments, "--metric", "guesswork") == 0
    assert set(records(tmp_path)["identity", "reidentification-chance"].scores) == {"reid-auc", "top-1", "guesswork"}


def test_one_way_of_writing_a_method_is_one_cell(tmp_path: Path) -> None:
    for text in ("dp-simple", "dp-simple[scale=10]", "dp-simple[clip=true,scale=10.0]"):
        assert bench(tmp_path, "--method", text, "--attack", "chance", "--metric", "reid-auc") == 0
    assert len(list(tmp_path.glob("cells/*/*"))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "jobs: two",
        "jobs: 0",
        "seeds: 3",
        "device: gpu",
        "overwrite: sometimes",
        "metrics: []",
        "skip_corrupt: maybe",
        "memory: lots",
        "methods: [{dp-simple: [1]}]",
        "surprise: 1",
    ],
)
def test_a_config_value_that_makes_no_sense_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(("" if line.startswith("methods") else "methods: [identity]\n") + line + "\n")
    assert main(["run", "--config", str(config), "--results", str(tmp_path / "r")]) == 2
    assert line.partition(":")[0] in capsys.readouterr().err


def test_what_cannot_be_measured_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--method", "identity", "--attack", "none", "--metric", "guesswork") == 2
    assert "need an attack" in capsys.readouterr().err
    assert bench(tmp_path, "--method", "contrastive") == 2
    assert "unknown method" in capsys.readouterr().err
