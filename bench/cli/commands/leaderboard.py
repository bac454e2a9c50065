"""`bench leaderboard build | serve | publish | ledger`: pages and records."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from annotated_types import Interval

from bench.api import boards, running
from bench.cli.parameters import RESULTS, ResultsFolder, Trusted, read, switch
from bench.wire.text import plain
from leaderboard.downloads import WITHOUT_PARQUET
from leaderboard.reproduction import FILE, VERDICTS
from leaderboard.server import serve as serve_pages
from leaderboard.tables import can_write_parquet

Port = Annotated[int, Interval(ge=0, le=65535)]
Records = Annotated[Path | None, switch("folder of the records (default: the published ones)", name="--results")]
Pages = Annotated[Path | None, switch("folder of the pages (default: RESULTS/site, or board)", name="--site")]


def build(*, results: Records = None, site: Pages = None, trusted: Trusted = ()) -> int:
    """Write the pages and print their place; 1 after a refusal."""
    return _build(results, site, trusted)[1]


def serve(
    *,
    results: Records = None,
    site: Pages = None,
    trusted: Trusted = (),
    port: Annotated[
        int, read(Port, "port on this machine; 0 for any free port", metavar="N", show_default=True)
    ] = 8000,
) -> int:
    """Write the pages and serve them until Ctrl-C, to this machine only."""
    index, code = _build(results, site, trusted)
    serve_pages(index.parent, port, lambda address: print(f"{address} (stop with Ctrl-C)", flush=True))
    return code


def _build(results: Path | None, site: Path | None, trusted: tuple[Path, ...]) -> tuple[Path, int]:
    print("making pages: a minute for thousands of records, the first time", file=sys.stderr, flush=True)
    index, refused = boards.build_board(results, site, trusted)
    print(index)
    if not can_write_parquet():
        print(WITHOUT_PARQUET, file=sys.stderr)
    for name, reason in refused:
        print(plain(f"refused: {name}: {reason}" if name not in reason else f"refused: {reason}"), file=sys.stderr)
    return index, 1 if refused else 0


def publish(
    *,
    results: ResultsFolder = RESULTS,
    trusted: Trusted = (),
    to: Annotated[
        Path | None, switch("folder of the published records (default: the project's)", metavar="DIR")
    ] = None,
) -> int:
    """Copy results to the published records; 1 after a refusal."""
    done = boards.publish(running.open_place(results, trusted=trusted), to)
    for cell, count in done.rows.items():
        print(f"{'replaced' if cell in done.replaced else 'published'}: {cell}, {count} records")
    for name, reason in done.refused:
        print(plain(f"refused: {name}: {reason}"), file=sys.stderr)
    print(f"{len(done.rows)} rows published, {sum(done.rows.values())} records; {len(done.refused)} refusals")
    return 1 if done.refused else 0


def ledger(
    *, renew: Annotated[bool, switch("replace figures that differ; then check their verdicts by hand")] = False
) -> int:
    """Print the ledger's verdicts; 1 if figures differ from their source."""
    reproduction, wrong = boards.ledger(renew=renew)
    for paper, table, row in reproduction.rows():
        print(f"{row.verdict:<10}  {paper.id}  {table.place}: {row.what}")
    print(", ".join(f"{sum(paper.count(verdict) for paper in reproduction.papers)} {verdict}" for verdict in VERDICTS))
    for one in wrong:
        print(plain(f"{one.place}: {one.why}"), file=sys.stderr)
    if wrong and renew:
        print(f"{len(wrong)} figures renewed in {FILE}: check whether the verdicts beside them still hold")
    return int(bool(wrong) and not renew)
