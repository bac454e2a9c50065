"""`bench release` and `bench show`: private rows released, or drawn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from bench.api import releasing
from bench.cli.parameters import (
    HOW,
    RELEASED,
    ROWS,
    SPREAD,
    USUAL_FILES,
    WHAT,
    WHERE,
    Files,
    Flags,
    flags,
    read,
    switch,
)
from bench.cli.terminal import waiting
from bench.plugins.spec import Count
from bench.results.run_secret import ABOUT
from bench.runs.display import Display
from bench.runs.release_files import NO_CLAIM
from bench.runs.release_order import Published
from bench.types import State
from bench.wire.text import line, shown

ALL_ROWS = frozenset({"preset", "limit", "splits", "rows_of", "scored_in", "scheme"})
"""Options that size or draw a measurement: a release is of all rows, or of those that the owner lists."""
if TYPE_CHECKING:
    ReleaseFlags = Flags
    ShowFlags = Flags
else:
    ReleaseFlags = flags("ReleaseFlags", ("methods", "device", "isolation"), RELEASED - ALL_ROWS)
    ShowFlags = flags("ShowFlags", ("methods", "device", "isolation"), RELEASED)
Passphrase = Annotated[
    Path | None,
    switch("a file whose first line is a passphrase: the key file is encrypted by it", metavar="FILE", group=WHERE),
]
REFUSED = 3
"""The exit code of a release that needs its owner's reason."""
FEW_TENSORS = 8
"""Tensors of a file that are named one by one."""


def release(
    *,
    chosen: Annotated[ReleaseFlags | None, SPREAD] = None,
    rows: Annotated[
        Path | None,
        switch(
            "a CSV table with a column row (a number) or path (a file): the rows to release (default: all)",
            metavar="FILE.csv",
            group=ROWS,
        ),
    ] = None,
    scheme: Annotated[
        Path | None,
        switch(
            "a fitted scheme, as in an earlier release (default: fitted on the public rows)",
            metavar="FILE.safetensors",
            group=WHAT,
        ),
    ] = None,
    accept: Annotated[
        str | None,
        switch(
            "your reason to release in spite of what speaks against it; it is written into the release",
            metavar="REASON",
            group=HOW,
        ),
    ] = None,
    form: Annotated[
        Literal["safetensors", "png", "dicom"],
        switch("file format of the rows", name="--format", group=HOW, show_default=True),
    ] = "safetensors",
    accept_names: Annotated[
        bool, switch("publish findings that are called as a file, a folder or a person", group=HOW)
    ] = False,
    dry_run: Annotated[bool, switch("say what would leave and what would stay, and write nothing", group=HOW)] = False,
    out: Annotated[Path, switch("a new folder to publish", metavar="DIR", group=WHERE)],
    key_out: Annotated[
        Path | None,
        switch(
            "a new file for the secret (default: DIR-key.safetensors, and none for noise, which is destroyed)",
            metavar="FILE",
            group=WHERE,
        ),
    ] = None,
    links_out: Annotated[
        Path | None,
        switch(
            "a new file for the raw row, file and person of each released row (default: DIR-links.csv)",
            metavar="FILE",
            group=WHERE,
        ),
    ] = None,
    passphrase: Passphrase = None,
    key: Annotated[
        Path | None,
        switch(
            "an earlier key to use again, with the scheme of its release (default: a fresh one)",
            metavar="FILE",
            group=WHERE,
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        switch("your ledger of releases, which must stay private (default: in your home)", metavar="DIR", group=WHERE),
    ] = None,
    files: Annotated[Files, SPREAD] = USUAL_FILES,
) -> int:
    """Release a data set; 3 if it needs the owner's reason."""
    from bench.runs.owner_key import read_passphrase
    from bench.runs.release_order import Order
    from bench.runs.release_terms import ReleaseRefusedError

    request = files.request(chosen, "release", attacks="none")
    order = Order(
        out,
        key_out,
        links_out,
        rows,
        scheme,
        accept,
        dry_run,
        form,
        read_passphrase(passphrase),
        key,
        ledger,
        accept_names,
    )
    try:
        with waiting("open the data", messages=False) as hear:  # a method's own words may hold what they are about
            published = releasing.release(request, files.place(), order, hear)
    except ReleaseRefusedError as error:
        refusal = [str(cause) for cause in error.causes]
    else:
        _print(published)
        return REFUSED if dry_run and published.causes and accept is None else 0
    print("Not released. What speaks against it:", file=sys.stderr)
    for cause in refusal:
        print(f"  - {line(cause)}", file=sys.stderr)
    print('To release it all the same, give your reason: --accept "..."', file=sys.stderr)
    return REFUSED


def _print(published: Published) -> None:
    order, made = published.order, published.publication
    would = "Would" if order.dry else ""
    for text in published.left:
        print(f"Careful: {text}")
    print(published.title)
    for note in published.notes:
        print(f"  {note}")
    print(f"{f'{would} publish' if would else 'Publish'} {shown(order.out)}")
    if made is not None:
        if order.form != "safetensors":
            rows = list(made.files["release.safetensors"]["samples"].shape)
            print(f"  images/: {rows[0]} {order.form} files of {rows[1:]}, 8 bits a value")
        for name, tensors in made.files.items():
            if order.form != "safetensors" and name == "release.safetensors":
                continue
            print(f"  {name}: {_contents(tensors)}")
    if made is None or "release.safetensors" in made.files:
        labels = line(", ".join(published.labels))
        print(f"  labels: {labels or 'none'}")
    print(f"  {ABOUT}, README.md, datacard.json, SHA256SUMS: the method, its claim, how to read the rest")
    if published.look is not None:
        print("Looked at again:")
        for found in published.look.lines():
            print(f"  {found}")
    print(f"Claim: {published.claims}")
    claim = None if made is None else made.about["claim"]
    if isinstance(claim, dict):
        stated, derived = ("none" if claim[part] is None else f"{claim[part]:g}" for part in ("epsilon", "derived"))
        print(f"  epsilon per {claim['unit']}: {stated} stated, {derived} derived; delta {claim['delta']:g}")
        print(f"  assumed: {claim['assumptions']}")
    elif made is not None and NO_CLAIM not in published.claims:
        print(f"  {NO_CLAIM} is claimed with these parameters")
    for text in () if made is None else made.people:
        print(f"  {text}")
    if made is not None and made.composition:
        print(f"Ledger: {made.composition}")
    for warning in published.warnings:
        print(f"Careful: {warning}")
    for cause in published.causes:
        print(f"Accepted by you: {line(str(cause))}" if order.accept else f"Against it: {line(str(cause))}")
    for text in published.unknown:
        print(f"Not known from a trial: {text}")
    _print_secrets(published)


def _contents(tensors: State) -> str:
    """The tensors of a file by name; of many, how many."""
    if len(tensors) > FEW_TENSORS:
        return f"{len(tensors):,} tensors, {sum(tensor.numel() for tensor in tensors.values()):,} numbers"
    return ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in tensors.items())


def _print_secrets(published: Published) -> None:
    """Print what stays with the owner."""
    order, made = published.order, published.publication
    stay = "Would stay" if order.dry else "Keep secret"
    if order.dry:
        print(f"{stay}: the raw rows, names of files and people, groups of people; and, as files of yours,")
    if made is not None and not made.key:
        print(
            "No key file: "
            + ("the secret was noise alone, and is destroyed" if made.noise else "this method has no secret")
        )
    else:
        print(f"{stay} {shown(order.key_place)}" + (" (if the method has a secret)" if made is None else ""))
        print("  Its holder may undo the release, or make more of it; you may need it to encode queries")
    assert order.links_out is not None
    print(f"{stay} {shown(order.links_out)}")
    print("  It names the raw row, file and person of each released row")
    if not order.dry:
        print("  To attack the release on your data, and to report on it:")
        print(f"    bench report {shown(order.out)} --dataset ... (as above)")


def show(
    *,
    chosen: Annotated[ShowFlags | None, SPREAD] = None,
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
    picture = releasing.show(request, files.place(), out, Display(), rows=rows, confidential=confidential)
    print(f"Picture: {picture}")
    return 0


def encode(
    images: Annotated[Path, switch("a folder of new images, or of release.npy", metavar="IMAGES")],
    /,
    *,
    release: Annotated[Path, switch("the release that the model was trained on", metavar="DIR", group=WHERE)],
    key: Annotated[Path | None, switch("the key of the release, if it has one", metavar="FILE", group=WHERE)] = None,
    passphrase: Passphrase = None,
    out: Annotated[Path, switch("a new file of queries, to send", metavar="FILE.safetensors", group=WHERE)],
    names_out: Annotated[
        Path | None, switch("a new file for the image of each query, to keep", metavar="FILE.csv", group=WHERE)
    ] = None,
) -> int:
    """Encode new images as queries to a model of a release."""
    from bench.runs.owner_key import Release, read_passphrase, write_queries

    names_out = names_out or out.with_name(f"{out.stem}-names.csv")
    with waiting("read the release", messages=False):
        opened = Release.open(release, key, read_passphrase(passphrase))
    with waiting("encode the images", messages=False):
        samples, names = opened.queries(images)
        write_queries(out, samples, names_out, names)
    print(f"Send {shown(out)}: {len(samples)} queries, each {list(samples.shape[1:])}")
    if opened.about.get("rows") != "encoded":
        print("  This release needs no encoding: they are the images as they were read")
    elif opened.fresh:
        print("  They carry fresh noise, for the release has no key")
    if names:
        print(f"Keep {shown(names_out)}: the image of each query")
    return 0


def decode(
    predictions: Annotated[
        Path, switch("a CSV table with one column a finding, numbers from 0 to 1", metavar="PREDICTIONS")
    ],
    /,
    *,
    release: Annotated[Path, switch("the release that the model was trained on", metavar="DIR", group=WHERE)],
    key: Annotated[Path | None, switch("the key of the release, if it has one", metavar="FILE", group=WHERE)] = None,
    passphrase: Passphrase = None,
    names: Annotated[
        Path | None, switch("the table that `bench encode` kept, to name each line", metavar="FILE.csv", group=WHERE)
    ] = None,
    out: Annotated[Path, switch("a new table of decoded predictions", metavar="FILE.csv", group=WHERE)],
) -> int:
    """Decode a model's predictions to the real labels."""
    from bench.runs.owner_key import Release, read_passphrase, write_predictions

    with waiting("read the release", messages=False):
        opened = Release.open(release, key, read_passphrase(passphrase))
    scores = opened.decoded(predictions)
    write_predictions(out, scores, opened.about["findings"], names)
    print(f"{shown(out)}: {len(scores)} predictions of {line(', '.join(opened.about['findings']))}")
    if opened.about.get("labels") != "encoded":
        print("  Labels of this release are in no code: the predictions are as they were")
    return 0
