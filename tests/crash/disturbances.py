"""What may happen to a run: functions of a trial, and of seeded numbers that choose the moment and the victim."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
from trial import FOLDERS, MOST_SECONDS, Trial, until

HERE = Path(__file__).parent
MOST_FILES = 90  # a few more than a run shows: some moments come when all is done
MOST_DELAY = 0.4
DAY = 24 * 3600.0

Disturbance = Callable[[Trial, random.Random], None]


def _moment(trial: Trial, run: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Wait for a moment: so many files after the start, and a little more."""
    for _ in until(trial, run, chance.randrange(1, MOST_FILES)):
        pass
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.wait(chance.uniform(0, MOST_DELAY))


def _server(run: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The fork server, above all workers; empty before it is there."""
    with contextlib.suppress(psutil.Error):
        children = psutil.Process(run.pid).children()
        return [child for child in children if any("forkserver" in word for word in child.cmdline())]
    return []


def kill_main(trial: Trial, chance: random.Random) -> None:
    """kill -9 of the run itself."""
    run = trial.start()
    _moment(trial, run, chance)
    run.kill()
    run.wait()


def kill_server(trial: Trial, chance: random.Random) -> None:
    """kill -9 of the fork server; the run goes on, or ends."""
    run = trial.start()
    _moment(trial, run, chance)
    for server in _server(run):
        server.kill()
    run.wait(MOST_SECONDS)


def kill_worker(trial: Trial, chance: random.Random) -> None:
    """kill -9 of a process below the fork server: a supervisor, a worker, or what a worker started."""
    run = trial.start()
    _moment(trial, run, chance)
    while run.poll() is None:
        below = [each for server in _server(run) for each in server.children(recursive=True)]
        if below:
            with contextlib.suppress(psutil.Error):
                chance.choice(below).kill()
            break
        time.sleep(0.01)
    run.wait(MOST_SECONDS)


def told(*, signal: signal.Signals, group: bool) -> Disturbance:
    """A signal to the run alone (`kill`), or to its process group (a terminal)."""

    def disturb(trial: Trial, chance: random.Random) -> None:
        run = trial.start()
        _moment(trial, run, chance)
        if run.poll() is None:
            os.killpg(run.pid, signal) if group else run.send_signal(signal)
        run.wait(MOST_SECONDS)

    return disturb


def two_runs(trial: Trial, chance: random.Random) -> None:
    """A second run on the same folder, started while the first one works; one of them may be killed."""
    first = trial.start()
    _moment(trial, first, chance)
    second = trial.start()
    if chance.random() < 0.5:
        _moment(trial, second, chance)
        chance.choice([first, second]).kill()
    for run in (first, second):
        run.wait(MOST_SECONDS)


def full_disk(trial: Trial, chance: random.Random) -> None:
    """Results on a file system that is soon full; there is room again for the next run."""
    with small_disk(trial, "results", chance.randrange(16, 400)):
        trial.start().wait(MOST_SECONDS)


@contextmanager
def small_disk(trial: Trial, name: str, kilobytes: int | None = None) -> Iterator[None]:
    """A folder of the trial on a file system that takes so much more; afterwards there is room again.

    Args:
        trial: With results, cache and tmp, the first time all empty.
        name: Of one of these.
        kilobytes: A page is the least; None for not even another empty file.
    """
    trial.make()
    where = trial.folder / name
    if not where.is_mount():
        _mount(where, "-t", "tmpfs", "-o", "size=256m,mode=0755", "tmpfs")
    room = os.statvfs(where)
    held = (room.f_blocks - room.f_bfree) * room.f_frsize // 1024
    limit = f"nr_inodes={room.f_files - room.f_ffree}" if kilobytes is None else f"size={max(held + kilobytes, 4)}k"
    _mount(where, "-o", f"remount,{limit}")
    try:
        yield
    finally:
        _mount(where, "-o", "remount,size=256m,nr_inodes=100k")


def _mount(where: Path, *how: str) -> None:
    subprocess.run(["mount", *how, str(where)], check=True)


def unmount(trial: Trial) -> None:
    """Take the file systems of `small_disk` away, if there are any."""
    for name in FOLDERS:
        if (trial.folder / name).is_mount():
            subprocess.run(["umount", str(trial.folder / name)], check=True)


def can_mount() -> bool:
    """Whether a file system can be mounted here."""
    return sys.platform == "linux" and os.geteuid() == 0 and _mounts()


def _mounts() -> bool:
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


def small_files(trial: Trial, chance: random.Random) -> None:
    """RLIMIT_FSIZE: no file may grow beyond a few kilobytes."""
    most = chance.randrange(1, 60_000)
    trial.start(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))).wait(MOST_SECONDS)


def clock_back(trial: Trial, chance: random.Random) -> None:
    """Python's wall clock goes back by a day in all processes; all files come from the future."""
    run = trial.start(path=str(HERE / "clock"))
    _moment(trial, run, chance)
    (trial.folder / "clock-back").touch()
    run.wait(MOST_SECONDS)
    later = time.time() + DAY
    for name in trial.files():
        os.utime(trial.folder / name, (later, later))


def moved_folder(trial: Trial, chance: random.Random) -> None:
    """The results folder is gone for a while, as if a mount is cut off, and comes back as it was."""
    run = trial.start()
    _moment(trial, run, chance)
    away = trial.folder / "away"
    if trial.results.exists():
        trial.results.rename(away)
        time.sleep(chance.uniform(0.2, 3))
        if trial.results.exists():  # what was written below the empty mount point is hidden when the mount comes back
            trial.results.rename(trial.folder / "beneath")
        away.rename(trial.results)
    run.wait(MOST_SECONDS)


def full_elsewhere(name: str, *kilobytes: int | None) -> Disturbance:
    """A disk that is soon full under the cache or temporary files; there is room again for the next run."""

    def disturb(trial: Trial, chance: random.Random) -> None:
        with small_disk(trial, name, chance.choice(kilobytes)):
            trial.start().wait(MOST_SECONDS)

    return disturb


DISTURBANCES: Mapping[str, Disturbance] = {
    "kill -9 of the run": kill_main,
    "kill -9 of the fork server": kill_server,
    "kill -9 of a worker": kill_worker,
    "TERM": told(signal=signal.SIGTERM, group=False),
    "INT": told(signal=signal.SIGINT, group=True),
    "HUP": told(signal=signal.SIGHUP, group=True),
    "two runs": two_runs,
    "full disk": full_disk,
    "RLIMIT_FSIZE": small_files,
    "clock back": clock_back,
    "full cache disk": full_elsewhere("cache", None, 0, 4, 64, 128),
    "full temporary disk": full_elsewhere("tmp", None, 0),
    "folder cut off": moved_folder,
}
MOUNTED = frozenset({"full disk", "full cache disk", "full temporary disk"})
"""Those that mount a small file system."""
