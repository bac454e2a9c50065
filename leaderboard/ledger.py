"""The list of a site's files, for the next build.

files.json      what the site was made from, and of each file its digest and what it was made from
files-2.json    further files of large sites, and so on; `files.json` names them with their digests
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from bench.results import signed_json
from bench.results.atomic_file import write_atomically
from bench.results.signed_json import AlteredError

NAME = "files.json"
MOST = 2500
"""Files that one list names: about 0.7 MB of them."""
_PART = re.compile(r"files-\d{1,6}\.json")


@dataclass(frozen=True)
class Ledger:
    """The files that a build wrote, and its inputs.

    Args:
        files: By name: its `sha256`, and `inputs`, a hash of what it was made from.
        made_from: A hash of all that the site was made from; empty if unknown.
    """

    files: Mapping[str, JsonValue] = field(default_factory=dict)
    made_from: str = ""

    @classmethod
    def read(cls, site: Path) -> Ledger:
        """The ledger of a site.

        Raises:
            FileNotFoundError: There is none.
            OSError: It cannot be read.
            AlteredError: It is not what was written; the text names the file.
        """
        first = _read(site, NAME, None)
        files = dict(_mapping(first.get("files")))
        for name, digest in _mapping(first.get("more")).items():
            if _PART.fullmatch(name):
                files |= _mapping(_read(site, name, str(digest)).get("files"))
        return cls(files, str(first.get("made_from", "")))

    def write(self, site: Path) -> None:
        """Put it into the site, the file that names all others last."""
        names = list(self.files)
        parts = [names[start : start + MOST] for start in range(0, len(names), MOST)] or [[]]
        more: dict[str, JsonValue] = {}
        for number, some in enumerate(parts[1:], 2):
            name = f"files-{number}.json"
            more[name] = hashlib.sha256(_put(site, name, {"files": self._of(some)})).hexdigest()
        _put(site, NAME, {"files": self._of(parts[0]), "more": more, "made_from": self.made_from})
        for path in site.glob("files-*.json"):
            if _PART.fullmatch(path.name) and path.name not in more:
                path.unlink()

    def _of(self, names: list[str]) -> dict[str, JsonValue]:
        return {name: self.files[name] for name in names}


def _put(site: Path, name: str, content: dict[str, JsonValue]) -> bytes:
    text = signed_json.written(signed_json.attest(content, name))
    write_atomically(site / name, text)
    return text


def _read(site: Path, name: str, digest: str | None) -> Mapping[str, JsonValue]:
    text = (site / name).read_bytes()
    if digest is not None and hashlib.sha256(text).hexdigest() != digest:
        raise AlteredError(f"{name}: it is not the list that {NAME} names")
    try:
        return signed_json.read(text, name)
    except AlteredError as error:
        raise AlteredError(f"{name}: {error}") from error


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return cast("Mapping[str, JsonValue]", value) if isinstance(value, dict) else {}
