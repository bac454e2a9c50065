"""`bench show`: raw rows beside their released forms, as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bench import api
from bench.cli.parameters import (
    RELEASED,
    RESULTS,
    SPREAD,
    WHAT,
    WHERE,
    Config,
    DataRoots,
    Flags,
    ResultsFolder,
    Suite,
    flags,
    read,
    switch,
)
from bench.plugins.option import Count
from bench.runs.display import Display
from bench.runs.request import Request

if TYPE_CHECKING:
    ShowFlags = Flags
else:
    ShowFlags = flags("ShowFlags", ("methods", "device", "isolation"), RELEASED)


def show(
    *,
    chosen: Annotated[ShowFlags | None, SPREAD] = None,
    suite: Suite = None,
    config: Config = None,
    rows: Annotated[
        int | None,
        read(Count, "private images, spread over labels (default: 4, or one a class)", metavar="N", group=WHAT),
    ] = None,
    out: Annotated[Path, switch("the picture, a new file", metavar="FILE.png", group=WHERE)],
    confidential: Annotated[
        bool, switch("draw data that may not be shared: the file must stay on this machine", group=WHERE)
    ] = False,
    results: ResultsFolder = RESULTS,
    data_root: DataRoots = (),
) -> int:
    """Draw the picture and print where it lies."""
    request = Request((chosen.values() if chosen else {}) | {"attacks": "none"}, suite, config, "show")
    place = api.open_place(results, data_root)
    picture = api.show(request, place, out, Display(), rows=rows, confidential=confidential)
    print(f"Picture: {picture}")
    return 0
