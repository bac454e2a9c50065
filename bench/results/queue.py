"""What workers on several machines share of a planned run: plans, leases on jobs, and what became of jobs.

artefacts/queue/plans/PLAN/plan.json     the plan, written once
artefacts/queue/plans/PLAN/done/JOB      what became of a job: written when what it came to is in place
artefacts/queue/leases/JOB.TURN          who is at work on a job of any plan (`bench.results.lease`)
artefacts/queue/workers/NAME             a worker, for as long as it lives
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from bench.results import lease, signed_json
from bench.results.atomic_file import make_folder, write_atomically, write_once
from bench.results.content_key import content_key
from bench.results.heartbeat import file_time, is_left
from bench.results.lease import Holder, Lease, Told
from bench.results.signed_json import AlteredError

KIND = "plan of a run"
ALONE = "alone-"
"""Before the name of a machine: the lease of the one worker that holds it alone."""


@dataclass(frozen=True)
class Ended:
    """What became of a job: "done", "failed" or "not-run", and what others have to know of it."""

    state: str
    told: Mapping[str, JsonValue]


@dataclass(frozen=True)
class Queue:
    """The folder of what workers share, below a results folder's private part."""

    root: Path

    @cached_property
    def leases(self) -> Path:
        """The folder of leases on jobs, made if need be."""
        return _made(self.root / "leases")

    @cached_property
    def workers(self) -> Path:
        """The folder of living workers, made if need be."""
        return _made(self.root / "workers")

    def keep(self, plan: Mapping[str, JsonValue], name: str) -> None:
        """Keep a plan; the one that is there under its name stays."""
        _made(self.root)
        content = signed_json.written(signed_json.attest(plan, KIND))
        write_once(self._plan(name) / "plan.json", content, mode=0o600)

    def plan(self, name: str) -> dict[str, JsonValue]:
        """A plan. Raises FileNotFoundError, or ValueError where it is not what was written."""
        path = self._plan(name) / "plan.json"
        try:
            return signed_json.read(path.read_bytes(), KIND)
        except AlteredError as error:
            raise ValueError(f"{path}: {error}; plan the run again") from error

    def plans(self) -> list[str]:
        """The names of all plans, the earliest first."""
        found = self.root.glob("plans/*/plan.json")
        return [path.parent.name for path in sorted(found, key=lambda path: (path.stat().st_mtime, path))]

    def forget(self, name: str) -> None:
        """Remove a plan of which nothing is left to do; its records stay."""
        folder = self._plan(name)
        for path in (folder / "plan.json", *(folder / "done").glob("*")):
            path.unlink(missing_ok=True)
        for each in (folder / "done", folder):
            with contextlib.suppress(OSError):
                each.rmdir()

    def ended(self, plan: str) -> set[str]:
        """The files of the jobs of a plan that have ended, without a look into them."""
        try:
            return {path.name for path in (self._plan(plan) / "done").iterdir() if not path.name.startswith(".")}
        except FileNotFoundError:
            return set()

    def outcome(self, plan: str, job: str) -> Ended | None:
        """What became of a job; None where it has not ended, or what is there cannot be read."""
        try:
            found = json.loads((self._plan(plan) / "done" / job).read_bytes())
            return Ended(found.pop("state"), found)
        except (FileNotFoundError, ValueError, KeyError, AttributeError):
            return None

    def end(self, plan: str, job: str, state: str, told: Mapping[str, JsonValue]) -> None:
        """Say what became of a job."""
        content = json.dumps({**told, "state": state}).encode()
        write_atomically(self._plan(plan) / "done" / job, content, mode=0o600, sweep=False)

    def reopen(self, plan: str, job: str) -> None:
        """Have a job of a plan done again."""
        (self._plan(plan) / "done" / job).unlink(missing_ok=True)

    def claim(self, job: str, told: Told, *, seconds: float) -> Lease | None:
        """The lease on a job, or None where somebody has it."""
        return lease.claim(self.leases, job, told, seconds=seconds)

    def has_ended(self, plan: str, job: str) -> bool:
        """Whether a job of a plan has ended."""
        return (self._plan(plan) / "done" / job).exists()

    def taken(self) -> set[str]:
        """The files of the jobs that somebody is at, or was and is lost."""
        return {*lease.turns(self.leases)} if (self.root / "leases").is_dir() else set()

    def holders(self, jobs: AbstractSet[str] | None = None) -> dict[str, Holder]:
        """Who is at work, or was and is lost, by the file of the job; `jobs` are those to look at, None for all."""
        if not (self.root / "leases").is_dir():
            return {}
        known = lease.turns(self.leases)
        now = self.time() if known else 0.0
        wanted = known.keys() if jobs is None else known.keys() & jobs
        return {job: lease.holder(self.leases, job, known[job], now) for job in wanted}

    def living(self) -> Iterator[Told]:
        """What workers say of themselves that are alive."""
        if not (self.root / "workers").is_dir():
            return
        known = lease.turns(self.workers)
        now = self.time() if known else 0.0
        for name in known.keys() - {name for name in known if name.startswith(ALONE)}:
            found = lease.holder(self.workers, name, known[name], now)
            if not found.lost and found.told:
                yield found.told

    def forget_workers(self) -> None:
        """Remove what workers left that are gone."""
        for name in lease.turns(self.workers):
            if not name.startswith(ALONE):
                for path in self.workers.glob(f"{name}.*"):
                    if is_left(path, name):
                        path.unlink(missing_ok=True)

    def forget_leases(self, plan: str) -> None:
        """Remove leases on jobs of a plan that have ended, whose holders were lost before they could do it."""
        for job, found in self.holders(self.ended(plan)).items():
            if found.lost:
                Lease(self.leases, job, found.turn).settle()

    def time(self) -> float:
        """What the file system says that the time is; where nothing can be written, the latest sign of life."""
        try:
            return file_time(self.root)
        except OSError:
            signs = [each.stat().st_mtime for name in ("leases", "workers") for each in self.root.glob(f"{name}/*")]
            return max(signs, default=0.0)

    def _plan(self, name: str) -> Path:
        return self.root / "plans" / name


def job_file(job: str) -> str:
    """The name of a job's files, whatever the job is called."""
    return content_key({"job": job})


def _made(folder: Path) -> Path:
    make_folder(folder, mode=0o700)
    return folder
