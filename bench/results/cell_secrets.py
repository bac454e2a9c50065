"""Files of cells' secrets.

A bundle discloses the secrets of its cells so, and a results folder keeps those of cells that came from another folder.
The secret of drawn people stands among them, under the name of their data set (`people_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from bench.disk.atomic_file import make_folder, write_atomically
from bench.plugins.spec import UsageError
from bench.randomness import SECRET_BYTES, Secret
from bench.results import signed_json
from bench.results.signed_json import AlteredError

KIND = "cell secrets"


def people_of(dataset: str) -> str:
    """The name of the secret that draws a data set's people."""
    return f"people of {dataset}"


def dumps(secrets: Mapping[str, Secret]) -> bytes:
    """The file's content: secrets as hex digits, by cell."""
    content: dict[str, JsonValue] = {"cells": {cell: secret.content.hex() for cell, secret in secrets.items()}}
    return signed_json.written(signed_json.attest(content, KIND))


def loads(content: bytes) -> dict[str, Secret]:
    """The secrets in a file, by cell. Raises AlteredError."""
    cells = signed_json.read(content, KIND).get("cells")
    if not isinstance(cells, dict):
        raise AlteredError("it must hold the secrets of cells, by cell")
    found: dict[str, Secret] = {}
    for cell, text in cells.items():
        try:
            found[cell] = Secret(bytes.fromhex(str(text)))
        except ValueError as error:
            raise AlteredError(
                f"a secret must be {2 * SECRET_BYTES} hex digits, and that of {cell!a:.80} is not"
            ) from error
    return found


@dataclass(frozen=True)
class CellSecrets:
    """The secrets in a results folder, by key of the cell's identity."""

    path: Path

    def read(self) -> dict[str, Secret]:
        """All of them; empty without a file. Raises UsageError."""
        try:
            return loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except AlteredError as error:
            raise UsageError(f"{self.path}: {error}: put the file back, or start a new results folder") from error

    def add(self, secrets: Mapping[str, Secret]) -> None:
        """Keep more of them; the file is readable by its owner alone."""
        before = self.read()
        if secrets.items() <= before.items():
            return
        make_folder(self.path.parent, mode=0o700)
        write_atomically(self.path, dumps({**before, **secrets}), mode=0o600)
