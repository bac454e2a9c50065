"""`bench leaderboard build | serve | publish | ledger`: pages, published records, and what these settle."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.cli.commands import exchange
from bench.cli.options import place
from bench.plugins.spec import UsageError
from bench.results.atomic_file import write_atomically
from bench.results.verdict import Verdict
from bench.wire.text import plain
from leaderboard.downloads import WITHOUT_PARQUET
from leaderboard.intake import board_verdicts
from leaderboard.packed_rows import published_results
from leaderboard.published import PUBLISHED, problems, publish, submitted
from leaderboard.quotation import misquoted, renewed
from leaderboard.reach import shipped
from leaderboard.reproduction import FILE, VERDICTS, read
from leaderboard.server import serve
from leaderboard.site import build
from leaderboard.tables import can_write_parquet

SITE = "board"  # of the published records; that of a results folder lies in the folder


def main(options: argparse.Namespace) -> int:
    """Write the pages, say where they are and what was refused (then 1); `serve` shows them on this machine only."""
    if options.leaderboard_verb in ("submit", "verify", "merge", "export"):
        return exchange.main(options)
    if options.leaderboard_verb == "publish":
        return _publish(options)
    if options.leaderboard_verb == "ledger":
        return _ledger(renew=options.renew)
    refused: Sequence[tuple[str, str]]
    if options.results is None:
        index, refused = _build_published(options)
    else:
        results = place(options).results
        _say_begun()
        index = build(results, _site(options, results.root / "site"))
        refused = list(results.refused())
    print(index)
    if not can_write_parquet():
        print(WITHOUT_PARQUET, file=sys.stderr)
    for name, reason in refused:
        print(plain(f"refused: {name}: {reason}" if name not in reason else f"refused: {reason}"), file=sys.stderr)
    if options.leaderboard_verb == "serve":
        serve(index.parent, options.port, lambda address: print(f"{address} (stop with Ctrl-C)", flush=True))
    return 1 if refused else 0


def _build_published(options: argparse.Namespace) -> tuple[Path, list[tuple[str, str]]]:
    """The pages of the published records, and what does not verify of these."""
    if not PUBLISHED.is_dir():
        raise UsageError(
            "the published records are not part of an installed package: name a results folder with --results, or "
            "build in a checkout of the project"
        )
    _say_begun()
    found = list(board_verdicts())
    told = tuple(verdict for verdict in found if isinstance(verdict, Verdict))
    trusted = place(options).results.trusted
    others, refused = submitted()
    others = [replace(other, trusted=trusted) for other in others]
    own = published_results(PUBLISHED, trusted)
    index = build(own, _site(options, Path(SITE).resolve()), *others, verdicts=told, refused=refused)
    untold = [("verdict", str(verdict)) for verdict in found if not isinstance(verdict, Verdict)]
    return index, [*problems(), *refused, *untold]


def _say_begun() -> None:
    print("making pages: a minute for thousands of records, the first time", file=sys.stderr, flush=True)


def _site(options: argparse.Namespace, usual: Path) -> Path:
    return Path(options.site).resolve() if options.site else usual


def _publish(options: argparse.Namespace) -> int:
    """Bring a results folder among the published records; 1 if anything is refused."""
    results = place(options).results
    if not (results.root / "cells").is_dir():
        raise UsageError(f"expected a results folder, got {results.root}; `bench run --suite reference` makes one")
    done = publish(results, options.to or PUBLISHED)
    for cell, count in done.rows.items():
        print(f"{'replaced' if cell in done.replaced else 'published'}: {cell}, {count} records")
    for name, reason in done.refused:
        print(plain(f"refused: {name}: {reason}"), file=sys.stderr)
    print(f"{len(done.rows)} rows published, {sum(done.rows.values())} records; {len(done.refused)} reasons to refuse")
    return 1 if done.refused else 0


def _ledger(*, renew: bool) -> int:
    """Print the ledger's verdicts; 1 if a figure is not what its source says and was not renewed."""
    if not PUBLISHED.is_dir():
        raise UsageError("the published records are not part of an installed package: say this in a checkout")
    path, root = PUBLISHED.parent / FILE, PUBLISHED.parent.parent
    ledger = read(path)
    for paper, table, row in ledger.rows():
        print(f"{row.verdict:<10}  {paper.id}  {table.place}: {row.what}")
    print(", ".join(f"{sum(paper.count(verdict) for paper in ledger.papers)} {verdict}" for verdict in VERDICTS))
    published = published_results(PUBLISHED)
    wrong = list(misquoted(ledger, published, shipped(), root))
    for one in wrong:
        print(plain(f"{one.place}: {one.why}"), file=sys.stderr)
    if not wrong or not renew:
        return 1 if wrong else 0
    try:
        text = renewed(path.read_text(encoding="utf-8"), published, shipped(), root)
    except LookupError as error:
        raise UsageError(f"{path.name}: a figure has no source, and is for you to take out: {error.args[0]}") from error
    write_atomically(path, text.encode())
    print(f"{len(wrong)} figures renewed in {path.name}: look whether the verdicts beside them still hold")
    return 0
