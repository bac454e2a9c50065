"""The run secret of a results folder, and the cells' secrets.

The run secret is 32 bytes and stays in the folder. Every cell works under a child of it (HKDF-Expand, RFC 5869) that is
named by the cell's whole identity: method, parameters, data with their fingerprints, sizes and device. With a cell's
secret one can repeat its measurements to the last bit, and undo its releases; it says nothing of other cells. Its
commitment (`Secret.commitment`) stands in the inputs of the cell's records and releases, without a salt, because 256
bits are too many to try. The same cell in two folders with the same run secret has the same keys and the same releases,
on purpose: several machines of one laboratory measure one row, and each cell differs from all others by its data.

Folders of earlier versions hold a file of another form. All of their cells work under the run secret itself.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from bench.disk.atomic_file import make_folder, remove_unfinished, write_once
from bench.plugins.spec import UsageError
from bench.randomness import SECRET_BYTES, Secret

ABOUT = "release.json"
MAKER = "veil-bench"
_MOST_BYTES = 1 << 20
_SAID = f'"made_by": "{MAKER} '.encode()


def outside_releases(secret: Path, what: str) -> None:
    """Raise UsageError if `what` would lie in a folder of `bench release`."""
    for folder in secret.absolute().resolve().parents:
        with suppress(OSError), (folder / ABOUT).open("rb") as about:
            if _SAID in about.read(_MOST_BYTES):
                raise UsageError(
                    f"{what} must stay secret, and {folder} is a release, to be published whole: name another place"
                )


FEWEST_BYTES = 16  # different ones among 32: of random bytes, about 30 are; fewer than 16 in one case in 10^17


@dataclass(frozen=True)
class RunSecret:
    """The run secret of a results folder.

    Args:
        root: The 32 bytes, which never leave the folder.
        scope: "cell" if each cell works under a child; "folder" in folders of earlier versions, whose cells all work
            under the root.
    """

    root: Secret
    scope: Literal["cell", "folder"] = "cell"

    def of_cell(self, identity: Mapping[str, JsonValue]) -> Secret:
        """The secret of a cell.

        Args:
            identity: Everything that distinguishes the cell (`bench.workbench.inputs.cell_identity`).
        """
        if self.scope == "folder":
            return self.root
        return self.root.derive("cell", json.dumps(identity, sort_keys=True))

    def of_people(self, dataset: str) -> Secret:
        """The secret that draws a data set's people."""
        return self.root.derive("people", dataset)

    def written(self) -> bytes:
        """The file's content: the root, and a checksum that tells the scope."""
        checksum = self.root.derive("cells").content if self.scope == "cell" else bytes.fromhex(self.root.commitment())
        return self.root.content + checksum


def kept(path: Path) -> RunSecret | None:
    """The file's secret, or None without a file. Raises UsageError for others."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(content) == 2 * SECRET_BYTES:
        root = Secret(content[:SECRET_BYTES])
        for found in (RunSecret(root), RunSecret(root, "folder")):
            if found.written() == content:
                return found
    raise UsageError(
        f"{path} is not the run secret as it was written: put the file back, or start a new results folder"
    )


def keep(path: Path, wanted: Secret | RunSecret | None) -> RunSecret:
    """The file's secret, made if missing: `wanted`, or a fresh one.

    Two runs that start at once end up with the same: the file appears whole, and only once.

    Raises:
        UsageError: The file holds another secret than the one that is wanted, or would lie in a release.
    """
    if (found := kept(path)) is None:
        outside_releases(path, "the run secret of --results")
        make_folder(path.parent, mode=0o700)
        made = wanted if isinstance(wanted, RunSecret) else RunSecret(fresh() if wanted is None else wanted)
        write_once(path, made.written(), mode=0o600)  # another run may be first
        found = kept(path)
        assert found is not None
    remove_unfinished(path)
    if wanted not in (None, found, found.root):
        raise UsageError(f"{path.parent.parent} stands under another run secret: name that one, or another --results")
    return found


def fresh() -> Secret:
    """A new secret from the operating system."""
    return Secret.fresh()


def of_hex(text: bytes) -> bytes:
    """The bytes of hex digits; none if they are no such digits."""
    try:
        return bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        return b""


def given(path: Path) -> Secret:
    """The secret in a user's file: 32 bytes, or 64 hex digits.

    Raises:
        UsageError: Anything else in it; others than its owner may read it; bytes that were hardly drawn at random.
    """
    if not path.is_file():
        raise UsageError(f"{path} is no file: it must hold the secret, which `bench run` draws itself without --secret")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise UsageError(f"others than you may read the secret in {path}: chmod 600 {path}")
    content = path.read_bytes()
    if len(content) != SECRET_BYTES:
        content = of_hex(content)
    if len(content) != SECRET_BYTES:
        raise UsageError(f"{path} must hold {SECRET_BYTES} bytes, or {2 * SECRET_BYTES} hex digits, and nothing else")
    if len(set(content)) < FEWEST_BYTES:
        raise UsageError(
            f"the bytes in {path} were hardly drawn at random: only {len(set(content))} of {SECRET_BYTES} differ; "
            f"head -c {SECRET_BYTES} /dev/urandom > FILE makes a secret"
        )
    return Secret(content)
