"""An owner's wishes for a release, and what becomes of them."""

from __future__ import annotations

__figures__ = False

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import platformdirs

from bench.plugins.spec import UsageError
from bench.results.run_secret import outside_releases
from bench.runs.release_ledger import Entry, Ledger
from bench.runs.release_terms import Cause
from bench.types import State
from bench.workbench.place import Place

if TYPE_CHECKING:
    from pydantic import JsonValue

    from bench.runs.second_look import Look

Form = Literal["safetensors", "png", "dicom"]


@dataclass(frozen=True)
class Order:
    """An owner's wishes for a release.

    Args:
        out: A new folder, to be published whole.
        key_out: A new file for the secret; None for DIR-key.safetensors beside `out`, and for no file if it is noise.
        links_out: A new file for the links between released and raw rows; None for DIR-links.csv beside `out`.
        rows: A CSV table of the rows to release; None for all.
        scheme: A file of a fitted scheme; None fits one.
        accept: The owner's reason to release in spite of every cause; None for none.
        dry: Write nothing, and say what would leave.
        form: The file format of the rows.
        passphrase: Encrypts the key file; None leaves it open to its owner.
        key: An earlier key file to use again; None draws a fresh key.
        ledger: The folder of the owner's ledger; None for the usual one of this user.
        accept_names: Publish findings that are called as a file, a folder or a person.
    """

    out: Path
    key_out: Path | None = None
    links_out: Path | None = None
    rows: Path | None = None
    scheme: Path | None = None
    accept: str | None = None
    dry: bool = False
    form: Form = "safetensors"
    passphrase: str | None = None
    key: Path | None = None
    ledger: Path | None = None
    accept_names: bool = False

    def resolved(self) -> Order:
        """The same with absolute paths, secrets beside the folder by default."""
        out = self.out.resolve()
        links = self.links_out or out.parent / f"{out.name}-links.csv"
        return replace(
            self, out=out, key_out=None if self.key_out is None else self.key_out.resolve(), links_out=links.resolve()
        )

    @cached_property
    def book(self) -> Ledger:
        """The owner's ledger."""
        usual = Path(platformdirs.user_data_dir("veil-bench")) / "releases"
        return Ledger((self.ledger or usual).resolve())

    @property
    def key_place(self) -> Path:
        """The file of the key, if one is written."""
        return self.key_out or self.out.parent / f"{self.out.name}-key.safetensors"


@dataclass(frozen=True, eq=False)
class Publication:
    """Files to publish, by name, release.json, and two secrets.

    `key` is empty if there is no secret, or it is not kept; `noise` says which. `links` is a table, `words` are the
    names of files and people in it, and `raw` are hashes of raw rows. `entry` is for the ledger, and `composition` says
    how the release adds to earlier ones of the same people. `people` are lines on the people behind the claim.
    """

    files: Mapping[str, State]
    about: Mapping[str, JsonValue]
    key: State
    links: str
    noise: bool
    scheme: str
    entry: Entry
    composition: str
    words: AbstractSet[str]
    raw: AbstractSet[bytes]
    people: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Published:
    """A release, finished or tried: lines for its owner to read.

    `publication` is None if a trial would have had to train for it; `causes` speak against the release. `look` is what
    was found in the folder after it was written. `unknown` is what a trial cannot tell, `left` what was done about an
    interrupted release.
    """

    publication: Publication | None
    order: Order
    title: str
    notes: Sequence[str]
    labels: Sequence[str]
    claims: str
    warnings: Sequence[str]
    causes: Sequence[Cause]
    look: Look | None = None
    unknown: Sequence[str] = ()
    left: Sequence[str] = ()


def check_places(order: Order, where: Place) -> None:
    """Check that all are new, and the secrets apart. Raises UsageError."""
    out = order.out
    if not out.parent.is_dir() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise UsageError(f"--out must be a new or empty folder in a folder that exists, got {out}")
    if where.results.root.is_relative_to(out):
        raise UsageError(f"--results holds secrets and must lie outside {out}, which is published")
    assert order.links_out is not None
    secrets = {"--key-out": (order.key_place, "the key"), "--links-out": (order.links_out, "the table of links")}
    outside_releases(order.book.folder / "secret", "the ledger")
    for flag, (path, what) in secrets.items():
        if path.is_relative_to(out):
            raise UsageError(f"{what} is a secret and must lie outside {out}, which is published")
        outside_releases(path, what)
        if path.exists() or not path.parent.is_dir():
            raise UsageError(f"{flag} must be a new file in a folder that exists, got {path}")
    if order.links_out == order.key_place:
        raise UsageError(f"--links-out must be another file than the key's, got {order.links_out}")
