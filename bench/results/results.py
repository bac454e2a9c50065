"""Everything that a run leaves behind, in one place: records, pictures, plans, opened data, verdicts, artefacts, logs.

Where a thing lies is known here alone, and what is read is what was written, or is refused by name. `Shelf` is what
keeps it: a folder, and in a file of its own any other place.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from pydantic import JsonValue, ValidationError

from bench.plugins.slug import slug
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import attested, run_secret, store
from bench.results.atomic_file import make_folder
from bench.results.attested import AlteredError
from bench.results.maker import machine
from bench.results.queue import Queue
from bench.results.record_files import ANY, RecordFiles, evidence_name, picture_name, stem
from bench.results.records import DatasetRecord, Record, RecordError, loads, proved
from bench.results.shelf import PRIVATE, Folder, Shelf
from bench.results.signing_key import SigningKey
from bench.results.store import Store
from bench.wire.text import plain

PLANS = f"{PRIVATE}plans/"
RECORDS, PICTURES, DATA, PANELS = "cells/*/*/*.json", "cells/*/*/*.png", "data/", "panels/"
SECRET = f"{PRIVATE}run-secret"


class AlteredWarning(UserWarning):
    """Something beside the records is not what was written; it is done without, or made again."""


@dataclass(frozen=True)
class Results:
    """A results folder.

    Args:
        root: On this machine: artefacts and logs always lie here.
        shelf: Keeps everything else; None stands for the same folder.
        trusted: Public keys: records that none of them signed are refused. None reads unsigned records too.
        began_under: The commitment of the run secret that jobs of a run began under; None where no run is on.
    """

    root: Path
    shelf: Shelf | None = None
    trusted: frozenset[str] | None = None
    began_under: str | None = None

    @cached_property
    def _kept(self) -> Shelf:
        return self.shelf or Folder(self.root)

    @property
    def begun(self) -> bool:
        """Whether there is anything of a run in it."""
        return any((self.root / name).is_dir() for name in ("cells", "artefacts"))

    @property
    def store(self) -> Store:
        """Fitted schemes, releases and detectors, by content."""
        return Store(self.root / PRIVATE)

    @property
    def queue(self) -> Queue:
        """What workers on several machines share of planned runs."""
        make_folder(self.root / PRIVATE, mode=0o700)
        return Queue(self.root / PRIVATE / "queue")

    def keep_secret(self, wanted: Secret | None = None) -> Secret:
        """The secret of all runs in this folder, made on first use: `wanted`, or a fresh one.

        Raises UsageError where the folder has another than the one that is wanted, or that a run began under: below a
        mount that was cut off lies an empty folder, and what a job did there under a secret of its own would be wrong.
        """
        if self.began_under is not None and self.commitment != self.began_under:
            raise UsageError(f"{self.root} is no longer the folder that the run began in: is a disk cut off?")
        return run_secret.keep(self.secret_file, wanted)

    @property
    def commitment(self) -> str | None:
        """What records say of the run secret; None where no run was started yet."""
        found = run_secret.kept(self.secret_file)
        return None if found is None else found.commitment()

    @property
    def secret_file(self) -> Path:
        """Where the run secret lies, if there is one: for its owner's eyes alone."""
        return self.root / SECRET

    @property
    def rooms(self) -> Path:
        """Where files lie that are handed to isolated processes of this machine, while those work.

        Locks say which of them are in use, and hold within a machine.
        """
        return self.root / PRIVATE / "rooms" / machine()

    def log(self, *names: str) -> Path:
        """The file that takes what a worker prints: of a cell (its folder and a record's name), or of anything else.

        Plug-ins print what they like, private rows too: logs lie among what only its owner can read.
        """
        *folders, name = names
        private = self.root / PRIVATE
        make_folder(private, mode=0o700)
        private.chmod(0o700)  # a folder that was copied, say
        return Path(private, "logs", *folders, f"{slug(name)}.log")

    def forget_log(self, *names: str) -> None:
        """Remove a log that says nothing new, and the folders that were made for it alone."""
        path = self.log(*names)
        path.unlink(missing_ok=True)
        for folder in (path.parent, self.root / PRIVATE, self.root):
            with contextlib.suppress(OSError):  # something else is in it
                folder.rmdir()

    def records(self) -> Iterator[tuple[str, Record | RecordError]]:
        """Every record with its name, in order; one that is refused gives its error instead of stopping the rest."""
        for name in self._kept.names(RECORDS):
            try:
                yield name, self._record(name)
            except RecordError as error:
                yield name, error
            except OSError as error:
                yield name, RecordError(f"{name}: {error}")

    def fingerprint(self) -> str:
        """A hash over names and bytes of all records and their pictures: where it is the same, so are they."""
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
        """One record. Raises FileNotFoundError where there is none, RecordError where it is refused."""
        return self._record(f"cells/{cell}/{evaluator}.json")

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
        """Write a record, and the pictures and the evidence that it names beside it; earlier ones go.

        Files beside it are named after their content, so that a crash on the way leaves the earlier record whole. Of
        two runs that make the same record at once, the one that comes first is kept, and a failure of the other
        changes nothing.

        Args:
            record: What to keep.
            pictures, evidence: What it names.
            signer: Signs it.
            before: The digest of the record that was there when the work began, which is replaced; None where there
                was none, `ANY` for whatever is there now.

        Returns:
            The record that is there now, with its digest and, by `signer`, its signature.

        Raises:
            NewerRecordError: A record of a later schema is there, and stays.
        """
        return self.adopt(proved(record, signer), pictures, evidence=evidence, before=before)

    def adopt(
        self, record: Record, pictures: Mapping[str, bytes], *, evidence: bytes | None = None, before: str | None = ANY
    ) -> Record:
        """As `keep`, for a record that was made elsewhere and has proved itself: its digest and signature stay."""
        beside = {picture_name(record, picture): png for picture, png in pictures.items()}
        if evidence is not None:
            beside[evidence_name(record)] = evidence
        return RecordFiles(self._kept, self._record).keep(record, beside, before)

    def evidence(self, record: Record) -> bytes | None:
        """What the record's figures were computed from; None where it is not there.

        Raises RecordError where it was altered.
        """
        if record.evidence is None:
            return None
        try:
            content = self._kept.read(evidence_name(record))
        except FileNotFoundError:
            return None
        if hashlib.sha256(content).hexdigest() != record.evidence.sha256:
            raise RecordError(f"{self.root / evidence_name(record)}: it is not the evidence that the record speaks of")
        return content

    def picture(self, record: Record, name: str) -> bytes | None:
        """A picture of a record; None where it is gone. Raises RecordError where it was altered."""
        try:
            png = self._kept.read(picture_name(record, name))
        except FileNotFoundError:
            return None
        if hashlib.sha256(png).hexdigest() != record.pictures[name].sha256:
            raise RecordError(
                f"{self.root / picture_name(record, name)}: it is not the picture that the record speaks of"
            )
        return png

    def keep_plan(self, cell: str, text: str, before: str | None) -> bool:
        """Note what a cell consists of; paths may be in it.

        Args:
            cell: Its folder.
            text: The note.
            before: What was noted when the note was made, which it replaces.

        Returns:
            Whether it was noted; False where another run has noted something else since then.
        """
        if text == before:
            return True
        name, content = f"{PLANS}{cell}.yaml", attested.stamped(text, f"plan {cell}")
        if before is None and not self._kept.holds(name):
            return self._kept.write_once(name, content)
        return self._kept.write(name, content, still=lambda: self._noted(cell) == before)

    def _noted(self, cell: str) -> str | None:
        """What was noted of a cell, if it can be read."""
        with contextlib.suppress(RecordError):
            return self.plan(cell)
        return None

    def plan(self, cell: str) -> str | None:
        """What was noted of a cell; None where nothing was. Raises RecordError where it was altered."""
        try:
            return attested.unstamped(self._kept.read(f"{PLANS}{cell}.yaml"), f"plan {cell}")
        except FileNotFoundError:
            return None
        except (AlteredError, UnicodeDecodeError) as error:
            raise RecordError(f"{self.root / PLANS / cell}.yaml: {error}") from error

    def plans(self) -> Iterator[str]:
        """The folders of the cells that were planned."""
        return self._below(PLANS, "*/*", "yaml")

    def keep_data(self, key: str, data: DatasetRecord) -> None:
        """Keep what a choice of data came to, so that a dry run knows it without opening the data."""
        self._keep_json(f"{DATA}{key}.json", data.model_dump(mode="json"))

    def data(self, key: str) -> DatasetRecord | None:
        """What a choice of data came to when it was last opened, or None; of a file that was altered with a warning."""
        try:
            return DatasetRecord.model_validate(self._read_json(f"{DATA}{key}.json"))
        except (FileNotFoundError, ValidationError):  # never opened, or by an earlier version
            return None
        except (OSError, RecordError) as error:
            warnings.warn(f"{error}; the data are opened again", AlteredWarning, stacklevel=2)
            return None

    def data_keys(self) -> Iterator[str]:
        """The choices of data that were opened, as `data` takes them."""
        return self._below(DATA, "*", "json")

    def keep_panel(self, cell: str, text: str) -> None:
        """Keep the verdict on the attacks of a cell: a JSON object."""
        self._keep_json(f"{PANELS}{cell}.json", attested.parsed(text.encode()))

    def panel(self, cell: str) -> dict[str, JsonValue]:
        """The verdict on the attacks of a cell. Raises FileNotFoundError, or RecordError where it was altered."""
        return self._read_json(f"{PANELS}{cell}.json")

    def bare(self, name: str, reason: object) -> str:
        """Why a file was refused, made plain, without its name and without the folder of this machine."""
        told = str(reason).replace(str(self.root / name), name).replace(f"{self.root}/", "")
        return plain(told.removeprefix(f"{name}: "))

    def refused(self) -> Iterator[tuple[str, str]]:
        """Every record, picture and piece of evidence that is not what was written, and why.

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
        """Every record, picture, plan, choice of data, verdict and artefact that is not what was written, and why."""
        yield from self.refused()
        for cell in self.plans():
            try:
                self.plan(cell)
            except (RecordError, OSError) as error:
                yield f"{PLANS}{cell}.yaml", str(error)
        for key in self.data_keys():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", AlteredWarning)
                self.data(key)
            yield from ((f"{DATA}{key}.json", str(warning.message)) for warning in said)
        for cell in self._below(PANELS, "*/*", "json"):
            try:
                self.panel(cell)
            except (RecordError, OSError) as error:
                yield f"{PANELS}{cell}.json", str(error)
        for folder in sorted(self.root.glob(f"{PRIVATE}*/{'[0-9a-f]' * 32}")):
            if (reason := store.problem(folder)) is not None:
                yield folder.relative_to(self.root).as_posix(), reason

    def _below(self, folder: str, pattern: str, ending: str) -> Iterator[str]:
        for name in self._kept.names(f"{folder}{pattern}.{ending}"):
            yield PurePosixPath(name).relative_to(folder).with_suffix("").as_posix()

    def _keep_json(self, name: str, content: dict[str, JsonValue]) -> None:
        self._kept.write(name, attested.written(attested.attest(content, name)))

    def _read_json(self, name: str) -> dict[str, JsonValue]:
        try:
            return attested.read(self._kept.read(name), name)
        except AlteredError as error:
            raise RecordError(f"{self.root / name}: {error}") from error
