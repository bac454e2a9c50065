"""`bench leaderboard build | serve | publish | ledger`: pages and records."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from annotated_types import Interval

from bench.api import boards, running
from bench.cli.commands.run import RunFlags
from bench.cli.parameters import RESULTS, SPREAD, USUAL_FILES, Files, ResultsFolder, Trusted, read, switch
from bench.cli.terminal import waiting
from bench.results.signing_key import SigningKey
from bench.wire.text import plain, shown
from leaderboard.downloads import WITHOUT_PARQUET
from leaderboard.reproduction import FILE, VERDICTS
from leaderboard.server import serve as serve_pages
from leaderboard.tables import can_write_parquet

Days = Annotated[int, Interval(ge=1, le=3650)]
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
    with waiting("read the records"):
        index, refused = boards.build_board(results, site, trusted)
    print(shown(index))
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
    with waiting("read the records"):
        done = boards.publish(running.open_place(results, trusted=trusted), to)
    for cell, count in done.rows.items():
        word = "as it was" if cell in done.kept else "replaced" if cell in done.replaced else "published"
        print(f"{word}: {cell}, {count} records")
    for name, reason in done.refused:
        print(plain(f"refused: {name}: {reason}"), file=sys.stderr)
    print(f"{len(done.rows)} rows published, {sum(done.rows.values())} records; {len(done.refused)} refusals")
    return 1 if done.refused else 0


def commit(
    *,
    out: Annotated[Path, switch("the new file", metavar="FILE")],
    chosen: Annotated[RunFlags | None, SPREAD] = None,
    files: Annotated[Files, SPREAD] = USUAL_FILES,
    sign: Annotated[Path | None, switch("sign it with this key (see `bench keys new`)", metavar="FILE")] = None,
) -> int:
    """Commit to a run, and print the rows."""
    signer = SigningKey.read(sign) if sign else None
    with waiting("open the data"):
        made = boards.commit(files.request(chosen, "leaderboard commit"), files.place(), out, signer)
    for row in made.rows:
        print(plain(f"{row.method} on {row.dataset}, preset {row.preset}: {len(row.records)} measurements"))
    print(f"{shown(out)}: the board answers it with a draw, for `bench run --draw FILE`")
    return 0


def draw(
    commitment: Annotated[Path, switch("of an author (see `bench leaderboard commit`)", metavar="COMMITMENT")],
    /,
    *,
    sign: Annotated[Path, switch("the board's key", metavar="FILE")],
    register: Annotated[
        Path | None, switch("folder of all draws (default: leaderboard/submissions/draws)", metavar="DIR")
    ] = None,
    days: Annotated[int, read(Days, "time to answer it", metavar="N", show_default=True)] = 90,
) -> int:
    """Draw, enter it in the register, and print its file."""
    path, made = boards.draw(commitment, SigningKey.read(sign), register, days)
    print(f"draw {made.number}, to be answered by {made.expires}: {shown(path)}")
    return 0


def ledger(
    *, renew: Annotated[bool, switch("replace figures that differ; then check their verdicts by hand")] = False
) -> int:
    """Print the ledger's verdicts; 1 if figures differ from their source."""
    with waiting("read the records"):
        reproduction, wrong = boards.ledger(renew=renew)
    for paper, table, row in reproduction.rows():
        awaits = f" (awaits {', '.join(row.awaits)})" if row.awaits else ""
        print(f"{row.verdict:<10}  {paper.id}  {table.place}: {row.what}{awaits}")
    print(", ".join(f"{sum(paper.count(verdict) for paper in reproduction.papers)} {verdict}" for verdict in VERDICTS))
    for name, count in reproduction.awaiting().items():
        print(f"{count} open {'row awaits' if count == 1 else 'rows await'} {reproduction.missing[name]}")
    print(f"{reproduction.ready()} open rows need only a run of their command")
    for one in wrong:
        print(plain(f"{one.place}: {one.why}"), file=sys.stderr)
    if wrong and renew:
        print(f"{len(wrong)} figures renewed in {FILE}: check whether the verdicts beside them still hold")
    return int(bool(wrong) and not renew)
