"""The owner's ledger: every release of the same people, by keyed hashes.

A release is judged with those before it: epsilons of one person's releases add up, the clusters of two k-Same releases
intersect, and one key under two noise scales cancels its noise. The folder is the owner's alone (mode 0700). It holds a
secret, and a file a release with hashes of people, rows and key under it (HMAC-SHA256), so that without the secret the
files name no one. Releases take turns: one that began beside another would not count it.
"""

from __future__ import annotations

__figures__ = False

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from bench.disk.atomic_file import make_folder, write_once
from bench.disk.disk_errors import writing
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results.records import ClaimRecord
from bench.results.run_secret import outside_releases
from bench.runs.release_terms import LARGEST_EPSILON, Cause
from bench.types import State
from bench.wire.tensor_file import checksum_of

SECRET, LOCK = "secret", "lock"
DIGITS = 24
SLACK = 1e-6
"""Failure probability that the tighter of the two sums may add."""
MOST_FOR_LOSS = 50.0
"""Largest epsilon whose distribution of losses is worth computing: it takes memory in proportion."""


class Entry(BaseModel):
    """A release in the ledger.

    Args:
        created: In UTC.
        method, claims: As the release says.
        claim: None if the method has none for these data.
        configuration: Hash of method, parameters and scheme.
        people, rows: Keyed hashes, sorted; a row of an unknown person is a person of its own.
        key: Keyed hash of the key; None without a secret.
        release: SHA-256 of its release.json, which tells it from others of one configuration; None in entries of
            earlier versions, and before it is written.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    created: str
    method: str
    claims: str
    claim: ClaimRecord | None
    configuration: str
    people: list[str]
    rows: list[str]
    key: str | None
    release: str | None = None

    @property
    def epsilon(self) -> tuple[float, float] | None:
        """Derived epsilon and delta for one image; None if unbounded."""
        if self.claim is None:
            return None
        epsilon = self.claim.epsilon if self.claim.derived is None else self.claim.derived
        return None if epsilon is None or not self.claim.whole else (epsilon, self.claim.delta)


@dataclass(frozen=True)
class Ledger:
    """A ledger in a folder.

    Args:
        folder: Need not exist.
    """

    folder: Path

    @contextmanager
    def turn(self, wait: Callable[[], None]) -> Iterator[None]:
        """Keep other releases out of the ledger within the block.

        A folder that holds no release afterwards goes.

        Args:
            wait: Called once if another release has its turn.
        """
        outside_releases(self.folder / LOCK, "the ledger")
        with self._locked(wait):
            try:
                yield
            finally:
                if not any(self.folder.glob("*.json")):
                    for name in (SECRET, LOCK):
                        (self.folder / name).unlink(missing_ok=True)
                    with suppress(OSError):  # there is something else in it
                        self.folder.rmdir()

    def _locked(self, wait: Callable[[], None]) -> ExitStack:
        """The open lock file, which this process alone has locked."""
        path = self.folder / LOCK
        while True:
            make_folder(self.folder, mode=0o700)
            with writing(path), suppress(FileNotFoundError), ExitStack() as stack:  # gone with the release before
                file = stack.enter_context(open(path, "ab", opener=partial(os.open, mode=0o600)))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    wait()
                    fcntl.flock(file, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return stack.pop_all()

    def entries(self) -> list[Entry]:
        """All releases so far, the oldest first.

        Raises:
            UsageError: A file of it is damaged.
        """
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                found.append(Entry.model_validate_json(path.read_text(encoding="utf-8")))
            except (OSError, ValidationError, UnicodeDecodeError):
                raise UsageError(f"the ledger's file {path} is damaged: put it back from a copy") from None
        return sorted(found, key=lambda entry: entry.created)

    def entry(
        self, about: Mapping[str, JsonValue], claim: ClaimRecord | None, digests: np.ndarray, marks: np.ndarray | None,
        *, key: State, scheme: str,
    ) -> Entry:  # fmt: skip
        """The entry of a release.

        Args:
            about: Its release.json.
            claim: Its claim.
            digests: (n, 16) uint8, of the private rows.
            marks: (n, 16) uint8, of their people, zeros for unknown; None if no people are known.
            key: Its tensors; empty without a secret.
            scheme: SHA-256 of the scheme, or "none".
        """
        secret = self.secret

        def hashed(what: str, content: bytes) -> str:
            return hmac.new(secret, what.encode() + b"\0" + content, hashlib.sha256).hexdigest()[:DIGITS]

        rows = [hashed("row", digest.tobytes()) for digest in digests]
        people = rows if marks is None else [
            hashed("person", mark.tobytes()) if mark.any() else row for mark, row in zip(marks, rows, strict=True)
        ]  # fmt: skip
        method = about["method"]
        assert isinstance(method, dict)
        return Entry(
            created=datetime.now(UTC).isoformat(timespec="microseconds"), method=str(method["written"]),
            claims=str(about["claims"]), claim=claim, configuration=configuration(about, scheme),
            people=sorted(set(people)), rows=sorted(set(rows)),
            key=hashed("key", bytes.fromhex(checksum_of(key))) if key else None,
        )  # fmt: skip

    def write(self, entry: Entry) -> Path:
        """Add a release in its turn; the file that holds it."""
        outside_releases(self.folder / SECRET, "the ledger")
        make_folder(self.folder, mode=0o700)
        write_once(self.folder / SECRET, self.secret, mode=0o600)
        text = json.dumps(entry.model_dump(), indent=1)
        path = self.folder / f"{entry.created.replace(':', '')}.json"
        write_once(path, f"{text}\n".encode(), mode=0o600)
        return path

    def take_back(self, release: str) -> bool:
        """Remove the entry of a failed release; True if there was one."""
        mine = [entry for entry in self.entries() if entry.release == release]
        for entry in mine:
            (self.folder / f"{entry.created.replace(':', '')}.json").unlink(missing_ok=True)
        return bool(mine)

    @cached_property
    def secret(self) -> bytes:
        """The folder's secret, or a fresh one that is unwritten."""
        try:
            return (self.folder / SECRET).read_bytes()
        except FileNotFoundError:
            return Secret.fresh().content


def configuration(about: Mapping[str, JsonValue], scheme: str) -> str:
    """SHA-256 over method, parameters and scheme."""
    method = about["method"]
    assert isinstance(method, dict)
    told = [method["name"], method["parameters"], scheme]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def earlier_of_same_people(entry: Entry, entries: Sequence[Entry]) -> list[Entry]:
    """The entries that share a person or a row with this one."""
    people, rows = set(entry.people), set(entry.rows)
    return [old for old in entries if not people.isdisjoint(old.people) or not rows.isdisjoint(old.rows)]


def refuse_key_under_another_scale(entry: Entry, entries: Sequence[Entry]) -> None:
    """Raise UsageError if an earlier release used this key with other parameters."""
    other = [old for old in entries if entry.key is not None and old.key == entry.key]
    if any(old.configuration != entry.configuration for old in other):
        raise UsageError(
            f"the key was used before by {other[0].method}, and now by {entry.method}: the same key under another "
            f"scale or scheme draws the same numbers, and the difference of both releases holds no noise. Use a fresh "
            "key"
        )


def of_composition(entry: Entry, earlier: Sequence[Entry]) -> Iterator[Cause]:
    """Causes in the releases of the same people before this one."""
    if not earlier:
        return
    count = len(earlier) + 1
    if "k-anonymity" in entry.claims and any("k-anonymity" in old.claims for old in earlier):
        yield Cause(
            "an earlier k-anonymous release has some of these people",
            "who is in both clusters stands in the smaller set that these share",
            private=True,
        )
    total = worst(entry, earlier)
    if total is not None and total[0] > LARGEST_EPSILON and (alone := entry.epsilon) and alone[0] <= LARGEST_EPSILON:
        yield Cause(f"epsilon of {count} releases of the same people adds up to more than {LARGEST_EPSILON:g}",
                    f"{total[0]:.4g}, delta {total[1]:.2g}", private=True)  # fmt: skip


def composition_text(entry: Entry, earlier: Sequence[Entry]) -> str:
    """The sum over earlier releases, in words; empty without any."""
    if not earlier:
        return ""
    shared = max(len(set(entry.people) & set(old.people)) for old in earlier)
    text = f"release {len(earlier) + 1} of the same people (up to {shared:,} of {len(entry.people):,} shared)"
    total = worst(entry, earlier)
    if total is None:
        return f"{text}: one of them has no finite epsilon for an image, and so has the sum"
    return f"{text}: for an image of the person in most of them epsilon adds up to {total[0]:.4g}, delta {total[1]:.2g}"


def worst(entry: Entry, earlier: Sequence[Entry]) -> tuple[float, float] | None:
    """`composed` for the person for whom it is largest; None if unbounded."""
    members = [(set(old.people), old) for old in earlier]
    subsets = {tuple(number for number, (people, _) in enumerate(members) if one in people) for one in entry.people}
    sums = [composed([entry, *(earlier[number] for number in subset)]) for subset in sorted(subsets)]
    found = [each for each in sums if each is not None]
    return max(found) if len(found) == len(sums) else None


def composed(entries: Sequence[Entry]) -> tuple[float, float] | None:
    """Epsilon and delta of an image in all releases; None if unbounded.

    The smaller one of the plain sum and, with dp-accounting, of the sum of privacy losses at a failure probability
    larger by `SLACK` (Dwork, Roth 2014, theorem 3.16; Doroshenko et al. 2022).
    """
    pairs = [entry.epsilon for entry in entries]
    bounds = [pair for pair in pairs if pair is not None]
    if len(bounds) < len(pairs):
        return None
    plain = sum(epsilon for epsilon, _ in bounds), sum(delta for _, delta in bounds)
    tighter = None if plain[0] > MOST_FOR_LOSS else _by_losses(bounds, plain[1] + SLACK)
    return plain if tighter is None or tighter >= plain[0] else (tighter, plain[1] + SLACK)


def _by_losses(bounds: Sequence[tuple[float, float]], delta: float) -> float | None:
    """Epsilon at `delta` by the distribution of losses; None without dp-accounting."""
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        return None
    losses = [
        privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, own))
        for epsilon, own in bounds
    ]
    whole = losses[0]
    for each in losses[1:]:
        whole = whole.compose(each)
    return float(whole.get_epsilon_for_delta(delta))
