"""`bench release` and `bench show`: private rows released, or drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.progress import Progress

from bench.api import running
from bench.cli.parameters import RELEASED, SPREAD, USUAL_FILES, WHAT, WHERE, Files, Flags, flags, read, switch
from bench.plugins.spec import Count
from bench.results.run_secret import ABOUT
from bench.runs.display import Display
from bench.runs.publication import Published
from bench.wire.text import line, shown

if TYPE_CHECKING:
    ReleaseFlags = Flags
else:
    ReleaseFlags = flags("ReleaseFlags", ("methods", "device", "isolation"), RELEASED)


def release(
    *,
    chosen: Annotated[ReleaseFlags | None, SPREAD] = None,
    out: Annotated[Path, switch("a new folder to publish", metavar="DIR", group=WHERE)],
    key_out: Annotated[
        Path | None, switch("a new file for the secret (default: DIR-key.safetensors)", metavar="FILE", group=WHERE)
    ] = None,
    links_out: Annotated[
        Path | None,
        switch(
            "a new file for the links to raw rows, to score the release later (default: none)",
            metavar="FILE",
            group=WHERE,
        ),
    ] = None,
    files: Annotated[Files, SPREAD] = USUAL_FILES,
) -> int:
    """Release a data set, and list files to publish and to keep."""
    request = files.request(chosen, "release", attacks="none")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("open", total=None)
        published = running.release(
            request, files.place(), out, key_out,
            lambda stage, done, total: progress.update(task, description=stage, completed=done, total=total or None),
            links_out,
        )  # fmt: skip
    _print(published)
    return 0


def _print(published: Published) -> None:
    print(published.title)
    for note in published.notes:
        print(f"  {note}")
    print(f"Publish {shown(published.out)}")
    for name, tensors in published.publication.files.items():
        print(f"  {name}: " + ", ".join(f"{part} {list(tensor.shape)}" for part, tensor in tensors.items()))
    if "release.safetensors" in published.publication.files:
        labels = line(", ".join(published.labels))
        print(f"  labels, counted in the private rows: {labels}" if labels else "  labels: none")
    print(f"  {ABOUT}: the method, its claim, and how to read the rest")
    print(f"Claim: {published.claims}")
    claim = published.publication.about["claim"]
    if isinstance(claim, dict):
        stated, derived = ("none" if claim[part] is None else f"{claim[part]:g}" for part in ("epsilon", "derived"))
        print(f"  epsilon per {claim['unit']}: {stated} stated, {derived} derived; delta {claim['delta']:g}")
        print(f"  assumed: {claim['assumptions']}")
    for warning in published.warnings:
        print(f"Careful: {warning}")
    if published.publication.key:
        print(f"Keep secret {shown(published.key_out)}")
        print("  Its holder may undo the release, or make more of it; you may need it to encode queries")
    else:
        print("No key file: this method has no secret")
    if published.links_out is not None:
        print(f"Keep secret {shown(published.links_out)}")
        print("  It names the raw row of each released one; to score the release by it:")
        print(f"  --method 'imported[path={published.out},links={published.links_out}]'")


def show(
    *,
    chosen: Annotated[ReleaseFlags | None, SPREAD] = None,
    rows: Annotated[
        int | None,
        read(
            Count, "number of private images, spread over labels (default: 4, or one a class)", metavar="N", group=WHAT
        ),
    ] = None,
    out: Annotated[Path, switch("file of the picture, a new one", metavar="FILE.png", group=WHERE)],
    confidential: Annotated[
        bool, switch("draw data that may not be shared; the file must stay on this machine", group=WHERE)
    ] = False,
    files: Annotated[Files, SPREAD] = USUAL_FILES,
) -> int:
    """Draw the picture and print where it lies."""
    request = files.request(chosen, "show", attacks="none")
    picture = running.show(request, files.place(), out, Display(), rows=rows, confidential=confidential)
    print(f"Picture: {picture}")
    return 0
