"""`bench data`: data sets and their files on this machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.table import Table

from bench.api import boards, running
from bench.cli.parameters import SPREAD, WHERE, DataRoots, completer, read, switch
from bench.cli.terminal import to_stdout, waiting
from bench.contract.source import DataError, Source
from bench.data.prepare import Prepared, check_scan
from bench.data.subjects import people, read_groups
from bench.plugins.spec import Count, parameters
from bench.runs.request import check_side
from bench.wire.text import shown
from bench.workbench.place import Place

Name = Annotated[str, switch("a data set", completer=completer("datasets"))]
Size = Annotated[int | None, read(Count, "resize images to this side", metavar="PIXELS")]


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Options of verbs that prepare a data set."""

    size: Size = None
    skip_corrupt: Annotated[bool, switch("leave out unreadable images, and count them")] = False
    max_pixels: Annotated[
        int | None,
        read(Count, "largest number of pixels of an image file (default: 100 million)", metavar="N"),
    ] = None
    data_root: DataRoots = ()

    def prepared(self, source: Source, place: Place, jobs: int | None = None) -> Prepared:
        """The prepared data set."""
        with waiting(f"look for the files of {source.name}") as hear:
            return boards.data_prepare(
                source, place, size=self.size, skip_corrupt=self.skip_corrupt, max_pixels=self.max_pixels, jobs=jobs,
                report=lambda done, total: hear(f"prepare {source.name}", done, total),
            )  # fmt: skip


USUAL = Decoding()


def list_datasets(*, data_root: DataRoots = ()) -> int:
    """Print every data set, and whether its files are on this machine."""
    table = Table("name", "what it is", "files", title="data sets", title_justify="left")
    for row in boards.data_list(running.open_place(data_roots=data_root)):
        table.add_row(*row)
    to_stdout().print(table)
    print(
        "Name the folder above them with --data-root; `bench data info NAME` says what belongs there and how to get it."
    )
    return 0


def info(name: Name, /, *, size: Size = None, data_root: DataRoots = ()) -> int:
    """Describe a data set; 1 if its files are not here."""
    check_side(size)
    source = boards.dataset(name)
    print(f"{source.name}: {source.title}")
    print(f"  source: {source.source}\n  licence: {source.licence}\n  public set: {source.public}")
    print(f"  shareable: {'yes' if source.shareable else 'no: its pixels stay on this machine'}")
    for key, value in parameters(source).items():
        print(f"  {key} = {value}")
    print(f"  how to get it: {source.obtain}")
    try:
        size = size or source.default_size
        with waiting(f"look for the files of {source.name}"):
            scan = source.scan(running.open_place(data_roots=data_root).roots, size)
            check_scan(source, scan, size)
    except DataError as error:
        print(f"  here: no\n{str(error).replace(source.obtain, '').rstrip()}")  # how to get it stands above
        return 1
    who = people(scan.subjects)
    count = "unknown" if who.numbers is None else who.count
    print(f"  here: yes, {len(scan.labels)} rows, {count} people, findings {', '.join(scan.findings)}")
    if (groups := read_groups(scan.attributes)) is not None:
        print("  groups: " + "; ".join(f"{key} ({', '.join(values)})" for key, values in groups.named().items()))
    for note in (*scan.told, *who.notes):
        print(f"  note: {note}")
    return 0


def prepare(
    name: Name,
    /,
    *,
    decoding: Annotated[Decoding, SPREAD] = USUAL,
    jobs: Annotated[int | None, read(Count, "number of decoding processes (default: one a core)", metavar="N")] = None,
    download: Annotated[bool, switch("download the files first, if the terms allow it", group=WHERE)] = False,
) -> int:
    """Prepare a data set, and print its fingerprint and folder."""
    check_side(decoding.size)
    source, place = boards.dataset(name), running.open_place(data_roots=decoding.data_root)
    if download:
        root = place.roots[0] if place.roots else Path.cwd()
        with waiting(f"download {source.name}"):
            source.download(root)
        place = running.open_place(data_roots=[*decoding.data_root, root])
    start = time.perf_counter()
    prepared = decoding.prepared(source, place, jobs)
    shape = prepared.samples.shape[1:]
    print(f"{prepared.name}: {len(prepared)} rows of shape {shape}, {prepared.skipped} corrupt left out")
    print(f"fingerprint {prepared.fingerprint}\nin {shown(prepared.folder)} ({time.perf_counter() - start:.1f} s)")
    for note in prepared.notes:
        print(f"note: {note}")
    return 0


def verify(name: Name, /, *, decoding: Annotated[Decoding, SPREAD] = USUAL) -> int:
    """Print a line a check; 1 if a checksum differs."""
    from bench.data.prepare import verify as check_prepared
    from bench.data.verification import check_current, checks

    check_side(decoding.size)
    source, place = boards.dataset(name), running.open_place(data_roots=decoding.data_root)
    with waiting(f"look for the files of {source.name}"):
        scan = source.scan(place.roots, decoding.size or source.default_size)
    prepared = decoding.prepared(source, place)
    with waiting(f"compare {prepared.name} with its files"):
        check_current(scan, prepared)
        check_prepared(prepared)
        checked = list(checks(scan, prepared))
    print(prepared.name)
    for check in checked:
        print(f"  {check.state:8}{check.text}")
    published = {str(official) for official in scan.official}
    for note in prepared.notes:
        if note not in published:  # else it stands above, as a check that differs
            print(f"  note    {note}")
    return int(any(not official.agrees and official.is_checksum for official in scan.official))
