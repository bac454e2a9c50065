"""Disclosed secrets of cells, in a bundle or to a verifier alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.disk.atomic_file import write_new
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import cell_secrets
from bench.results.bundle import Bundle
from bench.results.cell_secrets import people_of
from bench.results.records import Record
from bench.results.results import Results
from bench.results.run_secret import RunSecret, given, kept
from bench.results.signed_json import AlteredError, content_key
from bench.workbench.inputs import COMMITMENT, drawn_people, record_identity
from bench.workbench.place import people_secret


@dataclass(frozen=True)
class Disclosed:
    """Disclosed secrets.

    Args:
        cells: By cell; those that draw people by data set (`people_of`).
        root: A run secret, behind all other cells: of a folder or bundle of an earlier version, or of a draw.
    """

    cells: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    root: Secret | None = None

    @classmethod
    def in_bundle(cls, bundle: Bundle) -> Disclosed:
        """Those in a bundle. Raises BundleError."""
        return cls(bundle.secrets, bundle.secret)

    @classmethod
    def read(cls, path: Path) -> Disclosed:
        """Those in a file of `--disclose-to`, or a run secret. Raises UsageError."""
        try:
            return cls(cell_secrets.loads(path.read_bytes()))
        except (AlteredError, OSError):
            return cls({}, given(path))

    def __bool__(self) -> bool:
        return bool(self.cells) or self.root is not None

    def of(self, record: Record) -> Secret | None:
        """The secret of a record's cell; None if it is not disclosed."""
        if record.cell in self.cells or self.root is None:
            return self.cells.get(record.cell)
        if record.inputs.get(COMMITMENT) == self.root.commitment():  # by an earlier version
            return self.root
        identity = record_identity(record)
        return None if identity is None else RunSecret(self.root).of_cell(identity)

    def people(self, record: Record) -> dict[str, Secret] | None:
        """The secret that draws a record's people, by name.

        Empty if its data have none; None if it is not disclosed.
        """
        if (dataset := drawn_people(record.choice)) is None:
            return {}
        name = people_of(dataset)
        found = self.cells.get(name, None if self.root is None else RunSecret(self.root).of_people(dataset))
        return None if found is None else {name: found}


def secret_of_cell(results: Results, record: Record) -> Secret | None:
    """The secret of a record's cell, which may be disclosed, or None.

    None if it is not here, or is the run secret of a folder of an earlier version, behind more than this cell.
    """
    identity = record_identity(record)
    if identity is None:
        return None
    found = results.cell_secrets.read().get(content_key(identity))
    if found is None and (root := kept(results.secret_file)) is not None and root.scope == "cell":
        found = root.of_cell(identity)
    return found if found is not None and record.inputs.get(COMMITMENT) == found.commitment() else None


def disclosable(results: Results, records: Mapping[str, Record]) -> tuple[dict[str, Secret], list[str]]:
    """The secrets of the records' cells, and names of records without."""
    found: dict[str, Secret] = {}
    without: list[str] = []
    for name, record in records.items():
        if record.dataset is None:
            continue
        if (secret := secret_of_cell(results, record)) is None:
            without.append(name)
        else:
            found |= with_people({record.cell: secret}, results, record)
    return found, without


def with_people(secrets: dict[str, Secret], results: Results, record: Record) -> dict[str, Secret]:
    """Secrets, with that of the record's drawn people in a folder."""
    dataset = drawn_people(record.choice)
    return secrets if dataset is None else {**secrets, people_of(dataset): people_secret(results, dataset)}


def write(path: Path, secrets: Mapping[str, Secret]) -> None:
    """Write secrets into a new file, for its owner alone. Raises UsageError."""
    try:
        write_new(path, cell_secrets.dumps(secrets), mode=0o600)
    except FileExistsError as error:
        raise UsageError(f"{path} is there already: name another file") from error


def keep_cell_secrets(results: Results, records: Sequence[Record], secrets: Mapping[str, Secret]) -> None:
    """Keep secrets, under which a folder then measures these records."""
    identities = {record.cell: record_identity(record) for record in records if record.cell in secrets}
    people = {people_of(dataset) for record in records if (dataset := drawn_people(record.choice)) is not None}
    results.cell_secrets.add(
        {content_key(identity): secrets[cell] for cell, identity in identities.items() if identity is not None}
        | {name: secrets[name] for name in people & secrets.keys()}
    )


def is_under(results: Results, record: Record) -> bool:
    """True if a results folder holds the secret of a record's cell."""
    root = kept(results.secret_file)
    return secret_of_cell(results, record) is not None or (root is not None and knows(root, record))


def knows(secret: RunSecret, record: Record) -> bool:
    """True if a record is under this run secret or its child."""
    identity = record_identity(record)
    possible = [secret.root, *([] if identity is None else [secret.of_cell(identity)])]
    return record.inputs.get(COMMITMENT) in {each.commitment() for each in possible}
