"""The pages as files: writing, removing and checking them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from bench.results.atomic_file import write_atomically
from bench.results.results import Results
from bench.results.signed_json import AlteredError
from bench.results.verdict import Verdict
from leaderboard import decisions
from leaderboard.intake import Intake, Refusal, address, boards, intake
from leaderboard.ledger import NAME as LEDGER
from leaderboard.ledger import Ledger
from leaderboard.page import Page, code, inputs, plain
from leaderboard.pages import render
from leaderboard.tables import can_write_parquet

MOVED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'">
<meta http-equiv="refresh" content="0; url=../index.html">
<title>Veil Bench, protocol {number}</title></head>
<body><h1>Veil Bench, protocol {number}</h1>
<p>The board of protocol {number} is the present one: <a href="../index.html">it stands here</a>.</p></body>
</html>
"""
"""What stands at a board's own address while it is the one at the root."""
_ANEW = "`bench leaderboard build` writes the pages anew"


def build(
    results: Results, site: Path, *more: Results, verdicts: tuple[Verdict, ...] = (),
    refused: Sequence[tuple[str, str]] = (),
) -> Path:  # fmt: skip
    """Write the pages into `site` and return the index page.

    The newest protocol's board stands at the root, earlier ones at the address of their protocol. Files that an earlier
    build wrote and this one does not are removed; anything else in `site` is left alone.
    A page that would be made from the same as before, and is still what was written, is left as it is. Where that holds
    of all that the site was made from, records are not even read.

    Args:
        results: The first source of records, which wins over others that were checked no further.
        site: The folder.
        more: Further sources.
        verdicts: Of verifiers whom the board trusts.
        refused: What was kept from the sources before, by name, and why.

    Raises:
        NotADirectoryError: `results` is not a folder, or `site` is a file.
        FileExistsError: A page would be written over a file that no build wrote, or among records.
    """
    if not results.root.is_dir():
        raise NotADirectoryError(f"expected a results folder, got {results.root}; `bench run` makes one")
    made_from = _made_from((results, *more), verdicts, refused)
    old = _ledger(site)
    if old.made_from == made_from and not altered(site):
        return site / "index.html"
    taken = intake(results, *more, verdicts=verdicts)
    left_out = [Refusal(name, "unfit", reason) for name, reason in refused]
    pages = files(replace(taken, refused=(*taken.refused, *left_out)))
    _claim(site, pages, (results, *more))
    _sweep(site, old.files, keep=pages)
    littered = {folder for folder in {(site / name).parent for name in pages} if _littered(folder)}
    written: dict[str, JsonValue] = {}
    for name, page in pages.items():
        path = site / name
        written[name] = _kept(path, page, old.files.get(name)) or _written(path, page, sweep=path.parent in littered)
    Ledger(written, made_from).write(site)
    return site / "index.html"


def _claim(site: Path, pages: Mapping[str, Page], sources: Sequence[Results]) -> None:
    """Claim a new folder for this board; refuse existing files.

    The empty ledger says from the first page on whose they are, also where the build is killed.
    """
    if site.exists() and not site.is_dir():
        raise NotADirectoryError(f"expected a folder for the pages, got the file {site}")
    place = site.resolve()
    roots = [one.root.resolve() for one in sources]
    if any(place == root or any(map(place.is_relative_to, (root / "cells", root / "rows"))) for root in roots):
        raise FileExistsError(f"{site} holds records: name a folder for the pages alone with --site")
    if (site / LEDGER).exists():
        return
    if there := next((name for name in pages if (site / name).exists()), None):
        raise FileExistsError(
            f"{site / there} is there, and no build of a board wrote it: name another folder with --site"
        )
    Ledger().write(site)


def _made_from(
    sources: Sequence[Results], verdicts: Sequence[Verdict], refused: Sequence[tuple[str, str]]
) -> str:  # fmt: skip
    """A hash of everything that a site is made from."""
    held = [[source.fingerprint(), sorted(source.trusted or ()), source.trusted is None] for source in sources]
    told = [verdict.model_dump(mode="json") for verdict in verdicts]
    return inputs("site", code(), held, told, list(map(list, refused)), can_write_parquet())


def files(taken: Intake) -> dict[str, Page]:
    """Every file of a site by its relative name."""
    found = boards(taken)
    made = render(next(iter(found.values()), taken))
    for number, board in found.items():
        if not number:  # records that say no protocol have no address of their own
            continue
        if number == max(found):
            pages = [plain(f"{address(number)}index.html", MOVED.format(number=number))]
        else:
            pages = [replace(page, name=f"{address(number)}{name}") for name, page in render(board).items()]
        made |= {page.name: page for page in pages}
    manifest = decisions.dumps(decisions.decided(found, taken))
    places = ["", *(address(number) for number in found if number and number != max(found))]
    return made | {f"{place}{decisions.NAME}": plain(f"{place}{decisions.NAME}", manifest) for place in places}


def _kept(path: Path, page: Page, said: JsonValue) -> JsonValue:
    """The manifest's entry of a page that is still current; else None.

    It stays where it would be made from the same as before, and is what was written then.
    """
    if not isinstance(said, dict) or said.get("inputs") != page.inputs:
        return None
    try:
        return said if _hash(path.read_bytes()) == said.get("sha256") else None
    except OSError:
        return None


def _littered(folder: Path) -> bool:
    """True if a killed build may have left files in a folder."""
    return folder.is_dir() and any(path.name.startswith(".") for path in folder.iterdir())


def _written(path: Path, page: Page, *, sweep: bool) -> JsonValue:
    made = page.make()
    content = made if isinstance(made, bytes) else made.encode()
    # Thousands of them are not waited for; the next build finds what is not whole.
    write_atomically(path, content, durable=False, sweep=sweep)
    return {"sha256": _hash(content), "inputs": page.inputs}


def altered(site: Path) -> list[tuple[str, str]]:
    """The altered files of a built site, and why; none without one."""
    try:
        written = Ledger.read(site)
    except FileNotFoundError as error:
        if not (site / LEDGER).exists():
            return []
        return [(Path(str(error.filename)).name, f"it is gone; {_ANEW}")]
    except AlteredError as error:
        name, _, reason = str(error).partition(": ")
        return [(name, f"{reason}; {_ANEW}")]
    except OSError as error:
        return [(LEDGER, f"{error}; {_ANEW}")]
    found = []
    root = site.resolve()
    for name, stated in written.files.items():
        digest = stated.get("sha256") if isinstance(stated, dict) else None
        path = _inside(root, name)
        try:
            if path is None or not isinstance(digest, str) or (path.exists() and not path.is_file()):
                found.append((name, f"{LEDGER} lists it, and it is no file of a site; {_ANEW}"))
            elif _hash(path.read_bytes()) != digest:
                found.append((name, "it was altered since it was written"))
        except OSError as error:
            found.append((name, str(error)))
    return found


def _inside(root: Path, name: str) -> Path | None:
    """The path of a ledger's entry; None if outside the site."""
    try:
        path = (root / name).resolve()
    except (OSError, ValueError, RuntimeError):  # a NUL, half a surrogate pair, links in a ring
        return None
    return path if path.is_relative_to(root) else None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _ledger(site: Path) -> Ledger:
    """The ledger of an earlier build; empty if absent or unreadable."""
    try:
        return Ledger.read(site)
    except (OSError, AlteredError):
        return Ledger()


def _sweep(site: Path, old: Mapping[str, JsonValue], keep: Mapping[str, Page]) -> None:
    """Remove files of an earlier build that this one does not write."""
    root = site.resolve()
    for name in old:
        if name not in keep and (target := _inside(root, name)) is not None and target.is_file():
            target.unlink()
