"""A trial: one `bench run` that is disturbed, one that follows undisturbed, and what sets the outcome apart from that
of an undisturbed run.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.disk.process_id import machine
from bench.results.disclosure_check import PEAKS
from bench.results.results import Results

MARK = "CRASH_MARK"
FOLDERS = ("results", "cache", "tmp")
GRACE_SECONDS = 60.0  # in which processes must notice that the run is gone
MOST_SECONDS = 600.0
SOCKETS = "tmp/pymp-"  # of Python's multiprocessing: a folder with a dead socket, which kill -9 leaves behind
HIDDEN = ".fuse_hidden"  # what FUSE keeps of a file that was removed while it was open, where its mount is cut off
TASKS = "results/artefacts/logs/tasks"  # what tasks of an engine print
SECRET = bytes(range(0, 256, 8))
APART = ("created", "digest", "git", "hardware", "isolation", "seconds", "versions")  # of the same figures
TIMED = "throughput.json"  # its figures are times, and other in every run


@dataclass(frozen=True)
class Trial:
    """A folder for results, cache and temporary files, and the run that works there.

    Args:
        folder: Of this trial alone.
        asked: Of `bench run`, beside data and preset.
        isolation: As BENCH_ISOLATION takes it.
    """

    folder: Path
    asked: tuple[str, ...]
    isolation: str = "none"

    @property
    def results(self) -> Path:
        """Where the run writes."""
        return self.folder / "results"

    def start(self, *more: str, before: Callable[[], None] | None = None, path: str = "") -> subprocess.Popen[bytes]:
        """Start the run in a session of its own, as a terminal would.

        Args:
            more: Further arguments.
            before: Called in the new process.
            path: A folder that Python looks for modules in first.
        """
        return self._begin([*self.words(), *more], before=before, path=path)

    def words(self) -> list[str]:
        """Of the run, but for the results folder."""
        secret = self.folder / "secret"
        if not secret.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            secret.touch(mode=0o600)
            secret.write_bytes(SECRET)
        words = ["run", *self.asked, "--dataset", "digits", "--preset", "smoke", "--device", "cpu", "--jobs", "2"]
        return [*words, "--no-site", "--secret", str(secret)]

    def make(self) -> None:
        """Make the folders."""
        for name in FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def variables(self) -> dict[str, str]:
        """What processes of the trial find in their environment."""
        return {
            MARK: str(self.folder), "BENCH_ISOLATION": self.isolation, "TMPDIR": str(self.folder / "tmp"),
            "XDG_CACHE_HOME": str(self.folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip

    def _begin(
        self, words: Sequence[str], *, before: Callable[[], None] | None = None, path: str = ""
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        self.make()
        command = [sys.executable, "-m", "bench", *words, "--results", str(self.results)]
        found = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, **self.variables(), "PYTHONPATH": found}

        def prepare() -> None:
            for each in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # a shell may have had them ignored
                signal.signal(each, signal.SIG_DFL)
            if before is not None:
                before()

        with (self.folder / "said").open("ab") as said:
            return subprocess.Popen(
                command, env=environment, stdout=said, stderr=said, start_new_session=True, preexec_fn=prepare
            )

    def whole(self, *more: str) -> None:
        """Run from start to end. Raises RuntimeError, with what the run said, where it fails."""
        if code := self.start(*more).wait(MOST_SECONDS):
            said = (self.folder / "said").read_text(errors="replace")[-4000:]
            raise RuntimeError(f"an undisturbed run ended with {code}: {said}")

    def files(self) -> set[str]:
        """All files and folders of results, cache and temporary files, relative."""
        found = set()
        for name in FOLDERS:
            for folder, folders, names in os.walk(self.folder / name):
                found |= {Path(folder, each).relative_to(self.folder).as_posix() for each in (*folders, *names)}
        return found

    def records(self) -> dict[str, bytes]:
        """The bytes of every record, by its place."""
        cells = self.results / "cells"
        return {path.relative_to(cells).as_posix(): path.read_bytes() for path in sorted(cells.glob("*/*/*.json"))}

    def complete(self) -> dict[str, bytes]:
        """Those that hold figures."""
        return {name: text for name, text in self.records().items() if _complete(text)}

    def artefacts(self) -> dict[str, bytes]:
        """The bytes of every stored artefact's tensors, by its place."""
        store = self.results / "artefacts"
        return {path.relative_to(store).as_posix(): path.read_bytes() for path in store.glob("*/*/data.safetensors")}

    def processes(self) -> list[psutil.Process]:
        """Everything living that the runs started: rooms are known by their arguments, for they get no variables."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _owns(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                mine = process.environ().get(MARK) == str(self.folder)
                return mine or any(word.startswith(f"{self.results}/") for word in process.cmdline())
        return False

    def left(self) -> int:
        """How many processes are still there once a run is over; they are killed."""
        end = time.monotonic() + GRACE_SECONDS
        while (found := self.processes()) and time.monotonic() < end:
            time.sleep(0.05)
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        return len(found)


@dataclass(frozen=True)
class Harm:
    """What sets a disturbed folder apart once it was run to the end.

    Args:
        lost: Records that are missing, or that were there and were made again.
        differ: Records that are not the undisturbed ones, but for times and versions.
        corrupt: Artefacts with other bytes than the undisturbed ones, and files that `bench leaderboard verify` names.
        processes: That were still there after a run.
        files: Files and folders that the undisturbed run did not leave.
        undone: No harm: how many records the disturbance had left to the last run.
    """

    lost: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    corrupt: tuple[str, ...] = ()
    processes: int = 0
    files: tuple[str, ...] = ()
    undone: int = field(default=0, compare=False)

    def __bool__(self) -> bool:
        return self != Harm()


def harm(trial: Trial, disturb: Callable[[Trial], None], undisturbed: Trial) -> Harm:
    """Disturb a run, run again to the end, and compare."""
    disturb(trial)
    processes = trial.left()
    before = trial.complete()
    trial.whole()
    return compared(trial, undisturbed, finished=before, processes=processes + trial.left())


def compared(trial: Trial, undisturbed: Trial, *, finished: Mapping[str, bytes], processes: int) -> Harm:
    """What sets a folder apart in which a run came to its end.

    Args:
        trial: The folder.
        undisturbed: This one ran undisturbed and kept its releases.
        finished: Records that were there before the last run.
        processes: That were left.
    """
    after, expected = trial.records(), undisturbed.records()
    artefacts, altered = undisturbed.artefacts(), [": ".join(found) for found in Results(trial.results).problems()]
    shared = {name for name in expected if name in after}
    dropped = {f"results/artefacts/{Path(name).parent}" for name in artefacts if name.startswith("releases/")}
    usual = {name for name in undisturbed.files() if not any(name.startswith(gone) for gone in dropped)}
    usual |= {"results/artefacts/rooms", f"results/artefacts/rooms/{machine()}", *(f"{gone}.lock" for gone in dropped)}
    return Harm(
        lost=tuple(sorted({*expected} - shared | {name for name in finished if finished[name] != after.get(name)})),
        differ=tuple(name for name in sorted(shared) if content(name, after[name]) != content(name, expected[name])),
        corrupt=(*(name for name, tensors in trial.artefacts().items() if artefacts.get(name) != tensors), *altered),
        processes=processes,
        undone=len(expected.keys() - finished.keys()),
        files=tuple(sorted(name for name in trial.files() - usual if not _stays(name))),
    )


def _stays(name: str) -> bool:
    """Whether a file may be there that an undisturbed run did not make."""
    return HIDDEN in name or name.startswith((SOCKETS, TASKS)) or name == "results/artefacts/tasks"


def content(name: str, text: bytes) -> Mapping[str, object]:
    """What a record says, but for what is another in every run."""
    found = {key: value for key, value in json.loads(text).items() if key not in APART}
    if name.endswith(TIMED):
        del found["scores"], found["details"]
    else:
        found["details"].pop(PEAKS, None)
    return found


def _complete(text: bytes) -> bool:
    return json.loads(text)["status"] == "ok"


def until(trial: Trial, run: subprocess.Popen[bytes], count: int) -> Iterator[None]:
    """Wait until the run has shown so many files, or has ended; yields between looks."""
    seen: set[str] = set()
    while run.poll() is None and len(seen) < count:
        with contextlib.suppress(OSError):  # a folder went while it was read
            seen |= trial.files()
        yield
        time.sleep(0.005)
