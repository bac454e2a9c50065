"""Records and artefacts brought to a target. What is there and is what its name says is not sent again."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.plugins.spec import UsageError
from bench.results.records import RecordError, dumps
from bench.results.results import RECORDS, Results
from bench.results.signed_json import AlteredError
from bench.results.storage import Folder
from bench.results.store import DATA
from bench.transfer.artefact_folder import ArtefactFolder, artefacts, inputs_of, tensors_of
from bench.transfer.content_name import BLOB, MOST_RECORD, RECORD, UNFINISHED, blob_name, manifest_name, record_name
from bench.transfer.crew import Crew
from bench.transfer.leaving import Border, spoken
from bench.transfer.record_file import RecordFile, header
from bench.transfer.tally import Outcome, Tally
from bench.transfer.target import LINK, Target, TransferError

Step = Callable[[int, int], None]
"""Told how many are through, and of how many."""


def push(results: Results, target: Target, crew: Crew, *, named: bool, check: bool, step: Step) -> Tally:
    """Bring what may leave to a target.

    Args:
        results: The folder.
        target: Where to.
        crew: Who sends.
        named: Whether the owner named the target for data that may not be shared.
        check: Read all that is there, and send again what has rotted; otherwise records and manifests alone are read,
            and of what they name the sizes compared.
        step: Told how far it is.

    Raises:
        UsageError: The target holds something else.
        TransferError: The target is gone.
    """
    found, refused = target.listed()
    if links := [name for name, reason in refused if reason == LINK]:
        raise UsageError(f"{target.place} holds links ({links[0]}), which lead elsewhere: name another folder")
    if refused and not found:
        raise UsageError(f"{target.place} holds other things ({refused[0][0]}): name a folder of its own")
    sender = _Sender(results, target, Border(named), found, check)
    for key in results.journal.data_keys():
        if (data := results.journal.data(key)) is not None:
            sender.border.learn(data)
    records = [RecordFile(results, name) for name in Folder(results.root).names(RECORDS)]
    folders = list(artefacts(results.store.root))
    tally, total = Tally(), len(records) + len(folders)

    def take(item: RecordFile | ArtefactFolder, done: Outcome | TransferError) -> None:
        tally.take("record" if isinstance(item, RecordFile) else item.kind, item.name, done)
        step(sum(tally.counts.values()), total)

    crew.each(records, sender.record, take)
    crew.each(folders, sender.artefact, take)  # after the records, which say which data may be shared
    settled = sender.settled | {match[2] for name in found if (match := RECORD.fullmatch(name) or BLOB.fullmatch(name))}
    for name in found:  # what killed pushes left of content that has arrived since
        if (match := UNFINISHED.fullmatch(name)) and match[1] in settled:
            target.remove(name)
    return tally


@dataclass(frozen=True)
class _Sender:
    results: Results
    target: Target
    border: Border
    found: dict[str, int]
    check: bool
    settled: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, file: RecordFile) -> Outcome:
        """Send a record, after what it names."""
        try:
            record, beside = file.read()
        except RecordError as error:
            return Outcome("record", file.name, "refused", str(error))
        with self.lock:
            held = self.border.holds(record)
        held = held or next(filter(None, map(spoken, map(header, beside.values()))), "")
        if held:
            return Outcome("record", file.name, "stays", held)
        text = dumps(record).encode()
        sha256 = hashlib.sha256(text).hexdigest()
        name = record_name(record.key, sha256)
        size = 0
        if (there := self._holds(name, text)) and not self.check:
            beside = {each: content for each, content in beside.items() if not self._listed(each, len(content))}
        for each, content in beside.items():
            size += self._send_blob(each, content)
        size += 0 if there else self._send(name, text, sha256)
        return Outcome("record", file.name, "moved" if size else "there", size=size)

    def artefact(self, folder: ArtefactFolder) -> Outcome:
        """Send an artefact: its tensors, then the manifest that names them."""
        try:
            if fault := folder.fault():
                return Outcome(folder.kind, folder.name, "refused", fault)
            manifest, data = folder.manifest(), folder.path / DATA
            told = manifest.decode() + header(data)
            if held := self.border.holds_artefact(folder.kind, dict(inputs_of(manifest)), told):
                return Outcome(folder.kind, folder.name, "stays", held)
            name = manifest_name(folder.kind, folder.key)
            if self._complete(name, folder):
                with self.lock:
                    self.settled.add(hashlib.sha256(manifest).hexdigest())
                return Outcome(folder.kind, folder.name, "there")
            size = self._send_blob(tensors_of(manifest), data)
            size += self._send(name, manifest, hashlib.sha256(manifest).hexdigest())
            return Outcome(folder.kind, folder.name, "moved", size=size)
        except (AlteredError, OSError) as error:
            return Outcome(folder.kind, folder.name, "refused", f"it changed while it was sent: {error}")

    def _complete(self, name: str, folder: ArtefactFolder) -> bool:
        """Whether the artefact is there, made here or by somebody else: either is right."""
        if not 0 < (size := self.found.get(name, 0)) <= MOST_RECORD:
            return False
        content = self.target.read(name, size)
        try:
            same, sha256 = inputs_of(content) == inputs_of(folder.manifest()), tensors_of(content)
        except AlteredError:
            return False
        stated = self.found.get(blob_name(sha256))
        own = (folder.path / DATA).stat().st_size if sha256 == tensors_of(folder.manifest()) else stated
        if not same or stated is None or stated != own:
            return False
        return not self.check or self.target.digest(blob_name(sha256), stated) == sha256

    def _holds(self, name: str, content: bytes) -> bool:
        return self.found.get(name) == len(content) and self.target.read(name, len(content)) == content

    def _listed(self, sha256: str, size: int) -> bool:
        return self.found.get(blob_name(sha256)) == size

    def _send_blob(self, sha256: str, content: bytes | Path) -> int:
        """Send what a record or a manifest will name; what is there without one that is known to is read first."""
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        name = blob_name(sha256)
        assert BLOB.fullmatch(name)
        if self._listed(sha256, size) and self.target.digest(name, size) == sha256:
            return 0
        return self._send(name, content, sha256)

    def _send(self, name: str, content: bytes | Path, sha256: str) -> int:
        size = self.target.write(name, content, sha256)
        with self.lock:
            self.settled.add(sha256)
        return size
