"""Everything that a run leaves: records, pictures, evidence, journal, artefacts, logs.

This module alone knows the place of each file. Content that is not as it was written is refused by name. `Storage`
keeps the files: in a folder, or in another place that implements it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from filelock import Timeout

from bench.disk.atomic_file import PRIVATE, Folder, Storage, make_folder, read_plain
from bench.disk.disk_errors import unread
from bench.disk.process_id import machine
from bench.plugins.spec import UsageError
from bench.progress import report
from bench.randomness import Secret
from bench.results import log_file, run_secret, signed_json, store
from bench.results.build_folder import CACHE_TAG, is_cache, own_lock
from bench.results.cell_secrets import CellSecrets
from bench.results.journal import Journal
from bench.results.records import (
    NewerRecordError,
    Record,
    RecordError,
    Status,
    dumps,
    is_no_past_time,
    loads,
    proved,
)
from bench.results.run_secret import RunSecret
from bench.results.signed_json import AlteredError, content_key
from bench.results.signing_key import SigningKey
from bench.results.store import Store
from bench.sandbox import FROM_WEAKEST
from bench.wire.text import plain, slug

SETTLED: frozenset[Status] = frozenset({"ok", "not-applicable"})
"""States of a record that a second try would not change."""
ANY = "any"


@dataclass(frozen=True)
class RecordFiles:
    """The place of records; read as by `bench.results.records.loads`, with its errors."""

    storage: Storage
    read: Callable[[str], Record]

    def keep(self, kept: Record, beside: Mapping[str, bytes], before: str | None) -> Record:
        """`Results.keep` for a record with its digest, and its named files."""
        name, content = f"{stem(kept)}.json", dumps(kept).encode()
        earlier = {*self._beside(kept), *beside}
        while (faster := self._faster(kept, before)) is None:
            for each, part in beside.items():
                self.storage.write(each, part)
            if not self.storage.holds(name):
                if self.storage.write_once(name, content):
                    break
            elif self.storage.write(name, content, still=lambda: self._faster(kept, before) is None):
                break
        there = kept if faster is None else faster
        for each, part in beside.items():  # another run may have taken them for those of an earlier record
            if faster is None and not self.storage.holds(each):
                self.storage.write(each, part)
        for old in sorted(earlier - names_beside(there) - names_beside(self._found(name) or there)):
            self.storage.remove(old)
        return there

    def _faster(self, record: Record, before: str | None) -> Record | None:
        """The same record, kept meanwhile by another run; failed ones are replaced."""
        found = self._found(f"{stem(record)}.json")
        if found is None or before in (ANY, found.digest) or found.key != record.key:
            return None
        as_apart = FROM_WEAKEST.index(found.isolation) >= FROM_WEAKEST.index(record.isolation)
        return found if as_apart and found.status in SETTLED else None

    def _found(self, name: str) -> Record | None:
        """The record of that name, if readable. Raises NewerRecordError."""
        try:
            return self.read(name)
        except NewerRecordError:
            raise
        except (RecordError, OSError):  # what is there is no record that could be lost
            return None

    def _beside(self, record: Record) -> Iterator[str]:
        """The files that lie beside a record, whatever names them."""
        for ending in ("png", "safetensors"):
            yield from self.storage.names(f"{stem(record)}--*.{ending}")


def stem(record: Record) -> str:
    """Prefix of all file names of a record in the results folder."""
    return f"cells/{record.cell}/{record.evaluator}"


def cell_and_evaluator(name: str) -> tuple[str, str]:
    """The cell and evaluator in `cells/DATA SET/CELL/EVALUATOR.json`."""
    cell, _, evaluator = name.removeprefix("cells/").removesuffix(".json").rpartition("/")
    return cell, evaluator


def picture_name(record: Record, name: str) -> str:
    """The file with a picture of a record, in the results folder."""
    return f"{stem(record)}--{name}-{record.pictures[name].sha256[:12]}.png"


def names_beside(record: Record) -> set[str]:
    """File names of a record's pictures and evidence in the results folder."""
    found = {picture_name(record, name) for name in record.pictures}
    return found if record.evidence is None else found | {evidence_name(record)}


def evidence_name(record: Record) -> str:
    """The file name of a record's evidence in the results folder."""
    assert record.evidence is not None
    return f"{stem(record)}--evidence-{record.evidence.sha256[:12]}.safetensors"


RECORDS, PICTURES = "cells/*/*/*.json", "cells/*/*/*.png"
SECRET = f"{PRIVATE}run-secret"
CELL_SECRETS = f"{PRIVATE}cell-secrets.json"
DRAW = f"{PRIVATE}draw.json"


@dataclass(frozen=True)
class Results:
    """A results folder.

    Args:
        root: On this machine: artefacts and logs always lie here.
        storage: Keeps everything else; None stands for the same folder.
        trusted: Public keys: records that none of them signed are refused. None reads unsigned records too.
        began_under: The commitment that jobs of a run began under; None if no run is on.
    """

    root: Path
    storage: Storage | None = None
    trusted: frozenset[str] | None = None
    began_under: str | None = None

    @cached_property
    def _kept(self) -> Storage:
        return self.storage or Folder(self.root)

    @property
    def begun(self) -> bool:
        """True if the folder holds anything of a run."""
        return any((self.root / name).is_dir() for name in ("cells", "artefacts"))

    @property
    def store(self) -> Store:
        """Fitted schemes, releases and detectors, by content."""
        return Store(self.root / PRIVATE)

    @cached_property
    def journal(self) -> Journal:
        """Notes of runs beside records: plans and opened data."""
        return Journal(self.root, self._kept)

    @property
    def tasks(self) -> Path:
        """The folder of jobs on other machines, and of their outcomes."""
        return self.root / PRIVATE / "tasks"

    def cell_lock(self, cell: str) -> Path:
        """The lock of the command that works on a cell."""
        path = self._cell_lock(cell)
        make_folder(path.parent, mode=0o700)
        return path

    def is_taken(self, cell: str) -> bool:
        """True if a command works on a cell now.

        False if the file system has no locks.
        """
        path = self._cell_lock(cell)
        if not path.exists():
            return False
        try:
            with own_lock(path).acquire(timeout=0):
                return False
        except Timeout:
            return True
        except (NotImplementedError, OSError):
            return False

    def _cell_lock(self, cell: str) -> Path:
        return self.root / PRIVATE / "cells" / f"{content_key({'cell': cell})}.lock"

    def keep_secret(self, wanted: Secret | RunSecret | None = None) -> RunSecret:
        """The run secret of this folder: `wanted`, or fresh on first use.

        Raises UsageError if the folder has another than the one that is wanted, or that a run began under: below a
        mount that was cut off lies an empty folder, and what a job did there under a secret of its own would be wrong.
        """
        if self.began_under is not None and self.commitment != self.began_under:
            raise UsageError(f"{self.root} is no longer the folder that the run began in: is a disk cut off?")
        return run_secret.keep(self.secret_file, wanted)

    @property
    def commitment(self) -> str | None:
        """The commitment to the run secret; None before the first run."""
        found = run_secret.kept(self.secret_file)
        return None if found is None else found.root.commitment()

    @property
    def cell_secrets(self) -> CellSecrets:
        """Secrets of cells that were measured under another folder's run secret."""
        return CellSecrets(self.root / CELL_SECRETS)

    @property
    def secret_file(self) -> Path:
        """The file of the run secret, which only its owner may read."""
        return self.root / SECRET

    @property
    def draw_file(self) -> Path:
        """The board's draw behind the run secret, if any."""
        return self.root / DRAW

    @property
    def rooms(self) -> Path:
        """The folder for files of isolated processes on this machine.

        Locks say which of them are in use, and hold within a machine.
        """
        return self.root / PRIVATE / "rooms" / machine()

    def log(self, *names: str) -> Path:
        """Log of a worker, by names: cell folder and record, or another.

        Plug-ins print what they like, private rows too: logs lie among what only its owner can read.
        """
        *folders, name = names
        private = self.root / PRIVATE
        make_folder(private, mode=0o700)
        private.chmod(0o700)  # a folder that was copied, say
        return Path(private, "logs", *folders, f"{slug(name)}.log")

    def forget_log(self, *names: str) -> None:
        """Remove a log without news, and the folders made for it alone."""
        path = self.log(*names)
        path.unlink(missing_ok=True)
        for folder in (path.parent, self.root / PRIVATE, self.root):
            with contextlib.suppress(OSError):  # something else is in it
                folder.rmdir()

    def records(self) -> Iterator[tuple[str, Record | RecordError]]:
        """Records by name, in order; a refused one gives its error."""
        names = list(self._kept.names(RECORDS))
        for number, name in enumerate(names):
            report("read the records", number, len(names))
            try:
                yield name, self._record(name)
            except RecordError as error:
                yield name, error
            except OSError as error:
                yield name, RecordError(f"{name}: {unread(error)}")

    def fingerprint(self) -> str:
        """A hash over names and bytes of all records and pictures."""
        found = hashlib.sha256()
        for pattern in (RECORDS, PICTURES):
            for name in self._kept.names(pattern):
                try:
                    content = self._kept.read(name)
                except OSError as error:  # `records` gives it as refused
                    content = str(error).encode("utf-8", "surrogatepass")
                found.update(f"{name} {len(content)}\n".encode("utf-8", "surrogatepass") + content)
        return found.hexdigest()

    def record(self, cell: str, evaluator: str) -> Record:
        """One record. Raises FileNotFoundError if missing, RecordError if refused."""
        return self._record(f"cells/{cell}/{evaluator}.json")

    def text(self, record: Record) -> bytes:
        """The bytes of a record's file, rewritten if it was replaced since."""
        try:
            text = self._kept.read(f"{stem(record)}.json")
        except OSError:
            text = b""
        return text if f'\n  "digest": "{record.digest}",\n'.encode() in text else dumps(record).encode()

    def holds(self, cell: str, evaluator: str) -> bool:
        """True if there is a record, or something in its place."""
        return self._kept.holds(f"cells/{cell}/{evaluator}.json")

    def _record(self, name: str) -> Record:
        where = str(self.root / name)
        try:
            found = loads(self._kept.read(name).decode(), where, self.trusted)
        except UnicodeDecodeError as error:
            raise RecordError(f"{where}: {error}") from error
        if (said := f"{stem(found)}.json") != name:
            raise RecordError(f"{where}: it says that it is {said}: it is forged, or was moved")
        return found

    def keep(
        self,
        record: Record,
        pictures: Mapping[str, bytes],
        signer: SigningKey | None = None,
        *,
        evidence: bytes | None = None,
        before: str | None = ANY,
    ) -> Record:
        """Write a record with its pictures and evidence, replacing earlier ones.

        Files beside it are named after their content, so that a crash on the way leaves the earlier record whole. Of
        two runs that make the same record at once the first is kept, and a failure of the other changes nothing.

        Args:
            record, pictures, evidence: The record, and files that it names.
            signer: Signs it.
            before: The digest of the record that was there when the work began, which is replaced; None if there
                was none, `ANY` for whatever is there now.

        Returns:
            The record that is there now, with its digest and signature.

        Raises:
            NewerRecordError: A record of a later schema is there, and stays.
        """
        return self.adopt(proved(record, signer), pictures, evidence=evidence, before=before)

    def adopt(
        self, record: Record, pictures: Mapping[str, bytes], *, evidence: bytes | None = None, before: str | None = ANY
    ) -> Record:
        """`keep` for a proven record made elsewhere; digest and signature stay."""
        beside = {picture_name(record, picture): png for picture, png in pictures.items()}
        if evidence is not None:
            beside[evidence_name(record)] = evidence
        return RecordFiles(self._kept, self._record).keep(record, beside, before)

    def evidence(self, record: Record) -> bytes | None:
        """The evidence behind a record's figures; None if it is missing.

        Raises RecordError if it was altered.
        """
        if record.evidence is None:
            return None
        content = self._beside(evidence_name(record))
        if content is None:
            return None
        if hashlib.sha256(content).hexdigest() != record.evidence.sha256:
            raise RecordError(f"{self.root / evidence_name(record)}: it is not the evidence that the record speaks of")
        return content

    def _beside(self, name: str) -> bytes | None:
        """A file beside a record; None if missing. Raises RecordError."""
        try:
            return self._kept.read(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"{self.root / name}: {unread(error)}") from error

    def picture(self, record: Record, name: str) -> bytes | None:
        """A picture of a record, None if missing. Raises RecordError if altered."""
        png = self._beside(picture_name(record, name))
        if png is None:
            return None
        if hashlib.sha256(png).hexdigest() != record.pictures[name].sha256:
            raise RecordError(
                f"{self.root / picture_name(record, name)}: it is not the picture that the record speaks of"
            )
        return png

    def bare(self, name: str, reason: object) -> str:
        """Why a file was refused, without its name and this machine's folder."""
        told = str(reason).replace(str(self.root / name), name).replace(f"{self.root}/", "")
        return plain(told.removeprefix(f"{name}: "))

    def refused(self) -> Iterator[tuple[str, str]]:
        """Altered records, pictures and evidence, each with its problem.

        Evidence that is gone is none of them: records are published without it.
        """
        for name, record in self.records():
            if isinstance(record, RecordError):
                yield name, str(record)
                continue
            for picture in record.pictures:
                try:
                    if self.picture(record, picture) is None:
                        yield picture_name(record, picture), "the picture is gone"
                except (RecordError, OSError) as error:
                    yield picture_name(record, picture), str(error)
            try:
                self.evidence(record)
            except (RecordError, OSError) as error:
                yield evidence_name(record), str(error)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Altered files of every kind, artefacts included, each with its problem."""
        yield from self.refused()
        yield from self.journal.problems()
        yield from self._private_problems()
        for folder in sorted(self.root.glob(f"{PRIVATE}*/{'[0-9a-f]' * 32}")):
            if (reason := store.problem(folder)) is not None:
                yield folder.relative_to(self.root).as_posix(), reason

    def _private_problems(self) -> Iterator[tuple[str, str]]:
        """Altered secrets, draws, tags and logs; records with a time to come."""
        per_cell = False
        try:
            kept = run_secret.kept(self.secret_file)
            per_cell = kept is not None and kept.scope == "cell"
        except (UsageError, OSError) as error:
            yield SECRET, str(error)
        try:
            self.cell_secrets.read()
        except (UsageError, OSError) as error:
            yield CELL_SECRETS, str(error)
        if self.draw_file.exists():
            try:
                signed_json.read(read_plain(self.draw_file), "draw")
            except (AlteredError, OSError) as error:
                yield DRAW, str(error)
        for tag in sorted(self.root.glob(f"{PRIVATE}**/{CACHE_TAG}")):
            if not is_cache(tag.parent):
                yield tag.relative_to(self.root).as_posix(), "it is not the tag that was written"
        for log in sorted(self.root.glob(f"{PRIVATE}logs/**/*.log")):
            if (reason := log_file.problem(log, sealed=per_cell)) is not None:
                yield log.relative_to(self.root).as_posix(), reason
        for name, record in self.records():
            if isinstance(record, Record) and is_no_past_time(record.created):
                yield name, f"it says that it was made at {record.created!r:.40}, which is no time of the past"


@dataclass(frozen=True)
class ReadOnce(Results):
    """A results folder whose records a process reads and checks once."""

    @cached_property
    def _found(self) -> dict[str, Record]:
        return {}

    def _record(self, name: str) -> Record:
        if name not in self._found:
            self._found[name] = super()._record(name)
        return self._found[name]
