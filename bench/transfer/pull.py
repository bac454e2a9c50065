"""Records and artefacts fetched from a target into a results folder, and checked before they are put in place."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bench.plugins.spec import UsageError
from bench.results import store
from bench.results.atomic_file import make_folder
from bench.results.records import Record, RecordError, loads
from bench.results.results import RECORDS, Results
from bench.results.signed_json import AlteredError
from bench.results.storage import Folder
from bench.results.store import DATA, MANIFEST
from bench.transfer.artefact_folder import ArtefactFolder, tensors_of
from bench.transfer.content_name import (
    KINDS,
    MOST_BESIDE,
    MOST_RECORD,
    MOST_TENSORS,
    blob_name,
    manifest_name,
    record_name,
)
from bench.transfer.content_name import MANIFEST as MANIFESTS
from bench.transfer.content_name import RECORD as RECORD_NAMES
from bench.transfer.crew import Crew
from bench.transfer.offer import Offer, Prefer, bring, chosen, offer, strangers
from bench.transfer.push import Step
from bench.transfer.record_file import fit
from bench.transfer.tally import Outcome, Tally
from bench.transfer.target import Target, TransferError

SPARE = 256 << 20


def pull(results: Results, target: Target, crew: Crew, *, prefer: Prefer | None, step: Step) -> Tally:
    """Fetch what pushes brought to a target.

    Args:
        results: The folder. Where it trusts signers alone, artefacts, which nobody signs, are left where they are.
        target: Where from.
        crew: Who fetches.
        prefer: Which of different records of one name is taken; None refuses them all.
        step: Told how far it is.

    Raises:
        UsageError: There is nothing, or another pull into the folder is at work.
        TransferError: The target is gone.
    """
    found, refused = target.listed()
    if not found and not refused:
        raise UsageError(f"there is nothing in {target.place}; `bench push` brings records there")
    tally = Tally()
    for name, reason in refused:
        tally.add(Outcome("file", name, "refused", reason))
    with _incoming(results) as folder:
        fetcher = _Fetcher(results, target, folder, found)
        records, manifests = fetcher.records(tally), fetcher.manifests(tally)
        total = len(records) + len(manifests)
        _records(fetcher, crew, records, prefer, tally, lambda: step(_through(tally), total))

        def take(name: str, done: Outcome | TransferError) -> None:
            tally.take(name.split("/")[1], name, done)
            step(_through(tally), total)

        crew.each(manifests, fetcher.artefact, take)
    return tally


def _records(
    fetcher: _Fetcher, crew: Crew, names: list[str], prefer: Prefer | None, tally: Tally, step: Callable[[], object]
) -> None:
    """Fetch all records, look at which ask for one place, and put those that are taken into theirs."""
    offers: list[Offer] = []

    def look(name: str, found: Offer | RecordError | TransferError) -> None:
        if isinstance(found, Offer):
            offers.append(found)
        else:
            tally.add(Outcome("record", name, "refused", str(found)))

    crew.each(names, fetcher.look, look)
    wanted, settled = chosen(fetcher.results, sorted(offers, key=lambda each: (each.created, each.digest)), prefer)
    for outcome in settled:
        tally.add(outcome)

    def take(asking: Offer, done: Outcome | TransferError) -> None:
        tally.take("record", asking.name, done)
        step()

    crew.each(wanted, lambda asking: bring(fetcher.results, asking), take)
    tally.notes += strangers(fetcher.results, wanted)


def _through(tally: Tally) -> int:
    return sum(count for (_, kind), count in tally.counts.items() if kind != "file")


@contextmanager
def _incoming(results: Results) -> Iterator[Path]:
    """A folder for what is on its way, emptied of what a killed pull left."""
    make_folder(results.store.root, mode=0o700)
    folder = results.store.root / ".incoming"
    try:
        with FileLock(folder.with_suffix(".lock"), timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except Timeout as error:
        raise UsageError(f"another pull into {results.root} is at work: wait for it") from error


@dataclass(frozen=True)
class _Fetcher:
    results: Results
    target: Target
    folder: Path
    found: Mapping[str, int]

    def records(self, tally: Tally) -> list[str]:
        """The records that are not here byte for byte."""
        storage = Folder(self.results.root)
        here = {hashlib.sha256(storage.read(name)).hexdigest() for name in storage.names(RECORDS)}
        wanted = []
        for name, size in self.found.items():
            if (match := RECORD_NAMES.fullmatch(name)) is None:
                continue
            if match[2] in here:
                tally.add(Outcome("record", name, "there"))
            elif size > MOST_RECORD:
                tally.add(
                    Outcome("record", name, "refused", f"it takes {size} bytes, and at most {MOST_RECORD} may be")
                )
            else:
                wanted.append(name)
        return wanted

    def manifests(self, tally: Tally) -> list[str]:
        """The artefacts that are not here, or not intact."""
        wanted = []
        for name in self.found:
            if (match := MANIFESTS.fullmatch(name)) is None:
                continue
            kind, key = match[1], match[2]
            here = self.results.store.root / kind / key
            if kind not in KINDS:
                tally.add(Outcome("artefact", name, "refused", f"artefacts are {', '.join(KINDS)}"))
            elif self.results.trusted is not None:
                tally.add(Outcome(kind, name, "stays", "nobody signs artefacts, and --trusted takes what is signed"))
            elif here.is_dir() and store.problem(here) is None:
                tally.add(Outcome(kind, name, "there"))
            else:
                wanted.append(name)
        return wanted

    def look(self, name: str) -> Offer | RecordError:
        """What a record at the target offers, once it has proved itself; its text waits in the folder."""
        try:
            return offer(self._record(name), self.target.place, lambda: self._whole(name))
        except RecordError as error:
            return error

    def _record(self, name: str) -> Record:
        waiting = self.folder / name.rpartition("/")[2]
        content = waiting.read_bytes() if waiting.exists() else self.target.read(name, self.found[name])
        sha256 = hashlib.sha256(content).hexdigest()
        try:
            record = loads(content.decode(), name, self.results.trusted)
        except UnicodeDecodeError as error:
            raise RecordError(f"{name}: {error}") from error
        if (said := record_name(record.key, sha256)) != name:
            raise RecordError(f"{name}: it is {said}: it was altered, or put in the place of another")
        fit(record)
        waiting.write_bytes(content)
        return record

    def _whole(self, name: str) -> tuple[Record, Mapping[str, bytes]]:
        record = self._record(name)
        wanted = [picture.sha256 for picture in record.pictures.values()]
        wanted += [] if record.evidence is None else [record.evidence.sha256]
        return record, {sha256: self._blob(sha256) for sha256 in wanted if blob_name(sha256) in self.found}

    def _blob(self, sha256: str) -> bytes:
        name = blob_name(sha256)
        if (size := self.found[name]) > MOST_BESIDE:
            raise RecordError(f"{name} takes {size} bytes, and at most {MOST_BESIDE} may be")
        content = self.target.read(name, size)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise RecordError(f"{name} was altered")
        return content

    def artefact(self, name: str) -> Outcome:
        """Fetch an artefact into the folder, look at it there, and put it into the store."""
        match = MANIFESTS.fullmatch(name)
        assert match
        kind, key = match[1], match[2]
        waiting = ArtefactFolder(self.folder, kind, key)
        shutil.rmtree(waiting.path, ignore_errors=True)
        waiting.path.mkdir(parents=True)
        try:
            if self.found[name] > MOST_RECORD:
                raise AlteredError(f"it takes {self.found[name]} bytes, and at most {MOST_RECORD} may be")
            manifest = self.target.read(name, self.found[name])
            (waiting.path / MANIFEST).write_bytes(manifest)
            blob = blob_name(tensors_of(manifest))
            size = self._room_for(blob)
            if self.target.fetch(blob, size, waiting.path / DATA) != tensors_of(manifest):
                raise AlteredError(f"{blob} was altered")
            if fault := waiting.fault():
                raise AlteredError(fault)
            waiting.put_into(self.results)
            return Outcome(kind, manifest_name(kind, key), "moved", size=size + len(manifest))
        except AlteredError as error:
            return Outcome(kind, name, "refused", str(error))
        finally:
            shutil.rmtree(waiting.path, ignore_errors=True)

    def _room_for(self, blob: str) -> int:
        if (size := self.found.get(blob)) is None:
            raise AlteredError(f"its tensors ({blob}) are not there")
        free = shutil.disk_usage(self.folder).free
        if size > MOST_TENSORS or 2 * size + SPARE > free:
            raise AlteredError(
                f"its tensors take {size} bytes, and {free} are free here, of which twice that is needed"
            )
        return size
