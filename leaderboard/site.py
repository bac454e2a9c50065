"""The pages as files: what a build writes, what it removes of earlier builds, and what was altered since."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from bench.results import attested
from bench.results.atomic_file import write_atomically
from bench.results.attested import AlteredError
from bench.results.results import Results
from bench.results.verdict import Verdict
from leaderboard import decisions
from leaderboard.intake import Intake, intake
from leaderboard.pages import render
from leaderboard.protocols import address, boards

MANIFEST = "files.json"
MOVED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=../index.html">
<title>Veil Bench, protocol {number}</title></head>
<body><p>The board of protocol {number} is the present one: <a href="../index.html">it stands here</a>.</p></body>
</html>
"""
"""What stands at a board's own address while it is the one at the root."""


def build(results: Results, site: Path, *more: Results, verdicts: tuple[Verdict, ...] = ()) -> Path:
    """Write the pages for the records of `results`, and of `more`, into `site` and return the index page.

    The newest protocol's board stands at the root, earlier ones at the address of their protocol. Files that an earlier
    build wrote and this one does not are removed; anything else in `site` is left alone.

    Raises:
        NotADirectoryError: `results` is not a folder.
    """
    if not results.root.is_dir():
        raise NotADirectoryError(f"expected a results folder, got {results.root}; `bench run` makes one")
    pages = files(intake(results, *more, verdicts=verdicts))
    hashes: dict[str, JsonValue] = {name: _hash(_bytes(content)) for name, content in pages.items()}
    pages[MANIFEST] = attested.written(attested.attest({"files": hashes}, MANIFEST))
    _sweep(site, keep=pages)
    for name, content in pages.items():
        write_atomically(site / name, _bytes(content))
    return site / "index.html"


def files(taken: Intake) -> dict[str, str | bytes]:
    """Every file of a site by its relative name."""
    found = boards(taken)
    made = dict(render(next(iter(found.values()), taken)))
    for number, board in found.items():
        if not number:  # records that say no protocol have no address of their own
            continue
        if number == max(found):
            made[f"{address(number)}index.html"] = MOVED.format(number=number)
        else:
            made |= {f"{address(number)}{name}": content for name, content in render(board).items()}
    made[decisions.NAME] = decisions.dumps(decisions.decided(found, taken))
    return made


def altered(site: Path) -> list[tuple[str, str]]:
    """Which files of a built site are not what was written, and why; none where there is no site."""
    try:
        manifest = attested.read((site / MANIFEST).read_bytes(), MANIFEST)
    except FileNotFoundError:
        return []
    except (OSError, AlteredError) as error:
        return [(MANIFEST, f"{error}; `bench leaderboard build` writes the pages anew")]
    found = []
    for name, stated in cast("dict[str, str]", manifest["files"]).items():
        try:
            if _hash((site / name).read_bytes()) != stated:
                found.append((name, "it was altered since it was written"))
        except OSError as error:
            found.append((name, str(error)))
    return found


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def _sweep(site: Path, keep: Mapping[str, str | bytes]) -> None:
    """Remove what an earlier build listed in its manifest and this one does not make."""
    try:
        old = attested.read((site / MANIFEST).read_bytes(), MANIFEST)["files"]
    except (OSError, AlteredError, KeyError):  # no build, or nobody's word on what a build wrote
        return
    root = site.resolve()
    for name in old if isinstance(old, dict) else []:
        target = (root / str(name)).resolve()
        if name not in keep and target.is_relative_to(root) and target.is_file():
            target.unlink()
