"""`bench show`: raw rows beside their released forms, as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bench.api import running
from bench.cli.parameters import RELEASED, SPREAD, USUAL_FILES, WHAT, WHERE, Files, Flags, flags, read, switch
from bench.plugins.option import Count
from bench.runs.display import Display

if TYPE_CHECKING:
    ShowFlags = Flags
else:
    ShowFlags = flags("ShowFlags", ("methods", "device", "isolation"), RELEASED)


def show(
    *,
    chosen: Annotated[ShowFlags | None, SPREAD] = None,
    rows: Annotated[
        int | None,
        read(Count, "private images, spread over labels (default: 4, or one a class)", metavar="N", group=WHAT),
    ] = None,
    out: Annotated[Path, switch("the picture, a new file", metavar="FILE.png", group=WHERE)],
    confidential: Annotated[
        bool, switch("draw data that may not be shared: the file must stay on this machine", group=WHERE)
    ] = False,
    files: Annotated[Files, SPREAD] = USUAL_FILES,
) -> int:
    """Draw the picture and print where it lies."""
    request = files.request(chosen, "show", attacks="none")
    picture = running.show(request, files.place(), out, Display(), rows=rows, confidential=confidential)
    print(f"Picture: {picture}")
    return 0
