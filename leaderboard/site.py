"""The pages as files: writing, removing and checking them.

`files.json` lists the files of a site for the next build: a hash of all that the site was made from, and of each file
its digest and a hash of its inputs. Large sites have further lists `files-2.json` and so on, which it names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from bench.disk.atomic_file import write_atomically
from bench.results import signed_json
from bench.results.results import Results
from bench.results.signed_json import AlteredError
from bench.results.verdict import Verdict
from leaderboard.api import MANIFEST, manifest
from leaderboard.edition import Edition
from leaderboard.intake import NO_DRAWS, Draws, Intake, Refusal, address, boards, intake
from leaderboard.pages import Page, code, inputs, plain, render
from leaderboard.tables import can_write_parquet

LEDGER = "files.json"
MOST = 2500
"""Files that one list names: about 0.7 MB of them."""
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
"""The page at a board's own address while the board is at the root."""
_ANEW = "`bench leaderboard build` writes the pages anew"
_PART = re.compile(r"files-\d{1,6}\.json")


@dataclass(frozen=True)
class Ledger:
    """The list of the files that a build wrote.

    Args:
        files: By name: its `sha256`, and a hash of its `inputs`.
        made_from: A hash of all inputs of the site; empty if unknown.
    """

    files: Mapping[str, JsonValue] = field(default_factory=dict)
    made_from: str = ""

    @classmethod
    def read(cls, site: Path) -> Ledger:
        """The ledger of a site.

        Raises:
            FileNotFoundError: There is none.
            OSError: It cannot be read.
            AlteredError: It was altered; the text names the file.
        """
        first = _read_list(site, LEDGER, None)
        files = dict(_mapping(first.get("files")))
        for name, digest in _mapping(first.get("more")).items():
            if _PART.fullmatch(name):
                files |= _mapping(_read_list(site, name, str(digest)).get("files"))
        return cls(files, str(first.get("made_from", "")))

    def write(self, site: Path) -> None:
        """Put it into the site, the file that names all others last."""
        names = list(self.files)
        first, *rest = [names[start : start + MOST] for start in range(0, len(names), MOST)] or [[]]
        more: dict[str, JsonValue] = {}
        for number, some in enumerate(rest, 2):
            name = f"files-{number}.json"
            more[name] = _hash(_write_list(site, name, {"files": self._of(some)}))
        _write_list(site, LEDGER, {"files": self._of(first), "more": more, "made_from": self.made_from})
        for path in site.glob("files-*.json"):
            if _PART.fullmatch(path.name) and path.name not in more:
                path.unlink()

    def _of(self, names: list[str]) -> dict[str, JsonValue]:
        return {name: self.files[name] for name in names}


def _write_list(site: Path, name: str, content: dict[str, JsonValue]) -> bytes:
    text = signed_json.written(signed_json.attest(content, name))
    write_atomically(site / name, text)
    return text


def _read_list(site: Path, name: str, digest: str | None) -> Mapping[str, JsonValue]:
    text = (site / name).read_bytes()
    if digest is not None and _hash(text) != digest:
        raise AlteredError(f"{name}: it is not the list that {LEDGER} names")
    try:
        return signed_json.read(text, name)
    except AlteredError as error:
        raise AlteredError(f"{name}: {error}") from error


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return cast("Mapping[str, JsonValue]", value) if isinstance(value, dict) else {}


def build(
    results: Results, site: Path, *more: Results, verdicts: tuple[Verdict, ...] = (),
    refused: Sequence[tuple[str, str]] = (), draws: Draws = NO_DRAWS,
    withdrawn: Sequence[Results] = (), report: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Path:  # fmt: skip
    """Write the pages into `site` and return the index page.

    The newest protocol's board stands at the root, earlier ones at the address of their protocol. Files that an earlier
    build wrote and this one does not are removed; other files in `site` stay. An unaltered page with the same inputs as
    before is not written again, and records are not even read if no input of the site has changed.

    Args:
        results: The first source of records, which wins over others that were checked no further.
        site: The folder.
        more: Further sources.
        verdicts: Of verifiers whom the board trusts.
        refused: Refusals before the sources were read, by name, with the reason.
        draws: As in `leaderboard.intake.Intake`.
        withdrawn: Bundles that their authors have withdrawn, which count as tries.
        report: Hears how many of how many pages are written.

    Raises:
        NotADirectoryError: `results` is not a folder, or `site` is a file.
        FileExistsError: A page would be written over a file that no build wrote, or among records.
    """
    if not results.root.is_dir():
        raise NotADirectoryError(f"expected a results folder, got {results.root}; `bench run` makes one")
    made_from = _made_from((results, *more), verdicts, refused, draws, withdrawn)
    old = _ledger(site)
    if old.made_from == made_from and not altered(site):
        return site / "index.html"
    taken = intake(results, *more, verdicts=verdicts, draws=draws, withdrawn=withdrawn)
    left_out = [Refusal(name, "unfit", reason) for name, reason in refused]
    pages = files(replace(taken, refused=(*taken.refused, *left_out)))
    _claim(site, pages, (results, *more))
    _sweep(site, old.files, keep=pages)
    littered = {folder for folder in {(site / name).parent for name in pages} if _littered(folder)}
    entries: dict[str, JsonValue] = {}
    for number, (name, page) in enumerate(pages.items()):
        report("write the pages", number, len(pages))
        path = site / name
        entries[name] = _current(path, page, old.files.get(name)) or _write(path, page, sweep=path.parent in littered)
    Ledger(entries, made_from).write(site)
    return site / "index.html"


def _claim(site: Path, pages: Mapping[str, Page], sources: Sequence[Results]) -> None:
    """Claim a new folder with an empty ledger; refuse existing files."""
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
    sources: Sequence[Results], verdicts: Sequence[Verdict], refused: Sequence[tuple[str, str]],
    draws: Draws, withdrawn: Sequence[Results],
) -> str:  # fmt: skip
    """A hash of all inputs of a site."""
    contents = [[source.fingerprint(), sorted(source.trusted or ()), source.trusted is None] for source in sources]
    judged = [verdict.model_dump(mode="json") for verdict in verdicts]
    numbers = sorted((name, sorted(each)) for name, each in draws.handed.items())
    handed = [
        repr((numbers, sorted(draws.keys.items()), sorted(draws.answered))),
        [source.fingerprint() for source in withdrawn],
    ]
    return inputs("site", code(), contents, judged, list(map(list, refused)), can_write_parquet(), handed)


def files(taken: Intake) -> dict[str, Page]:
    """Every file of a site by its relative name."""
    editions = {number: Edition.of(board) for number, board in boards(taken).items()}
    earlier = {address(number): len(each.lines) for number, each in editions.items() if 0 < number < max(editions)}
    pages = render(replace(next(iter(editions.values()), None) or Edition.of(taken), earlier=earlier))
    for number, edition in editions.items():
        if not number:  # records without a protocol have no address of their own
            continue
        if number == max(editions):
            some = [plain(f"{address(number)}index.html", MOVED.format(number=number))]
        else:
            some = [replace(page, name=f"{address(number)}{name}") for name, page in render(edition).items()]
        pages |= {page.name: page for page in some}
    decisions = manifest(editions, taken)
    places = ["", *(address(number) for number in editions if number and number != max(editions))]
    return pages | {f"{place}{MANIFEST}": plain(f"{place}{MANIFEST}", decisions) for place in places}


def _current(path: Path, page: Page, entry: JsonValue) -> JsonValue:
    """The ledger's entry of an unchanged page; None for others."""
    if not isinstance(entry, dict) or entry.get("inputs") != page.inputs:
        return None
    try:
        return entry if _hash(path.read_bytes()) == entry.get("sha256") else None
    except OSError:
        return None


def _littered(folder: Path) -> bool:
    """True if a killed build may have left files in a folder."""
    return folder.is_dir() and any(path.name.startswith(".") for path in folder.iterdir())


def _write(path: Path, page: Page, *, sweep: bool) -> JsonValue:
    text = page.make()
    content = text if isinstance(text, bytes) else text.encode()
    # Not durable, because there are thousands; the next build notices a file that is not whole.
    write_atomically(path, content, durable=False, sweep=sweep)
    return {"sha256": _hash(content), "inputs": page.inputs}


def altered(site: Path) -> list[tuple[str, str]]:
    """The altered files of a built site, and why; none without one."""
    try:
        ledger = Ledger.read(site)
    except FileNotFoundError as error:
        if not (site / LEDGER).exists():
            return []
        return [(Path(str(error.filename)).name, f"it is gone; {_ANEW}")]
    except AlteredError as error:
        name, _, reason = str(error).partition(": ")
        return [(name, f"{reason}; {_ANEW}")]
    except OSError as error:
        return [(LEDGER, f"{error}; {_ANEW}")]
    faults = []
    root = site.resolve()
    for name, entry in ledger.files.items():
        digest = entry.get("sha256") if isinstance(entry, dict) else None
        path = _inside(root, name)
        try:
            if path is None or not isinstance(digest, str) or (path.exists() and not path.is_file()):
                faults.append((name, f"{LEDGER} lists it, and it is no file of a site; {_ANEW}"))
            elif _hash(path.read_bytes()) != digest:
                faults.append((name, "it was altered since it was written"))
        except OSError as error:
            faults.append((name, str(error)))
    return faults


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
