"""A picture of raw rows beside their released forms, column by column.

Images stand beside one another, the columns of a table are drawn one by one, feature vectors (--features) by t-SNE.
Schemes come from the store that `bench run` fills, or are fitted and left there for it; releases are those of key 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from bench.contract.seal import Sealed
from bench.disk.atomic_file import write_new
from bench.evaluators.set_comparison import check_columns, column_names
from bench.pictures.sheets import Cloud, Rows, Strip, findings_of, image_sheet, scatter_sheet, table_sheet
from bench.pictures.strips import stands
from bench.plugins.configured import Configured
from bench.plugins.spec import PluginSpec, UsageError, parse
from bench.progress import forward_progress
from bench.runs.display import Display
from bench.runs.engine import Outcome
from bench.runs.plan import cells
from bench.runs.quiet_output import quiet, reason_text
from bench.runs.run_spec import RunSpec
from bench.sandbox import Isolation
from bench.statistics.bootstrap import MATCHED, matched
from bench.types import Dataset, Method, NotApplicable
from bench.workbench.cell import Cell
from bench.workbench.inputs import release_inputs
from bench.workbench.open_data import refuse_shared_people
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench

FEWEST = 4
SECRET = "These data may not be shared: this file must stay on this machine."


def draw(
    spec: RunSpec, place: Place, out: Path, display: Display, *, rows: int | None = None, confidential: bool = False
) -> Path:
    """Draw a data set's private rows and releases; return the picture's path.

    Args:
        spec: Methods on one data set under one seed.
        place: The results folder holds fitted schemes.
        out: A new .png file.
        display: Shows progress.
        rows: Images to draw; None for 4, or one a class.
        confidential: Draw data that may not be shared, too.

    Raises:
        UsageError: The file exists, the data may not be shared, or a release cannot be drawn.
    """
    if out.suffix.lower() != ".png" or not out.parent.is_dir() or out.exists():
        raise UsageError(f"--out must be a new .png file in a folder that exists, got {out}")
    if len(spec.choices) != 1:
        raise UsageError(f"one picture shows one data set and one seed: got {len(spec.choices)} choices of both")
    chosen = [(_title(_told(method)), cells(replace(spec, methods=(method,)))[0]) for method in spec.methods]
    with display:
        display.expect(len(chosen))
        shown = []
        for title, cell in chosen:
            with _progress(display, title.replace("\n", " ")):
                shown.append((title, *_shown(cell, place, spec.isolation, rows, confidential=confidential)))
    bench = shown[0][1]
    heading = "" if bench.record.shareable else SECRET
    if bench.private.samples.ndim == 4:
        picture = _images(shown, rows, heading)
    elif bench.cell.choice.features is not None:
        picture = _scatter(shown, heading)
    else:
        picture = _tables(shown, column_names(bench), heading)
    write_new(out, picture, mode=0o644 if bench.record.shareable else 0o600)
    return out.resolve()


def _told(method: Configured[Method]) -> PluginSpec:
    """The method as it was written, without paths."""
    return method.written if method.placeless == str(method) else parse(method.placeless)


def _title(method: PluginSpec) -> str:
    """The method as it was written, a line a parameter.

    >>> _title(PluginSpec("dp-simple", None, (("scale", "20"), ("clip", "no"))))
    'dp-simple\\nscale=20\\nclip=no'
    """
    shown = parse(method.shown)
    return "\n".join([str(replace(shown, parameters=())), *(f"{key}={value}" for key, value in shown.parameters)])


def _shown(
    cell: Cell, where: Place, isolation: Isolation, rows: int | None, *, confidential: bool
) -> tuple[Workbench, Sealed]:
    """The cell laid out, and its release."""
    refuse_shared_people(cell.choice, where)
    bench = Workbench.open(cell, where, isolation)
    if not bench.record.shareable and not confidential:
        raise UsageError(
            f"{bench.record.name} may not be shared, and a picture shows it: --confidential draws one all the same, "
            "which must then stay on this machine"
        )
    if rows is not None and bench.private.samples.ndim != 4:
        raise UsageError("--rows chooses images, and rows of numbers are shown whole: leave it out")
    with quiet(bench, where.results, "show") as log:
        return bench, _release(cell, bench, log)


def _release(cell: Cell, bench: Workbench, log: Path | None) -> Sealed:
    """The release, left in the store only if it was there before."""
    inputs = release_inputs(cell, bench.record, 0, bench.run_secret.commitment(), apart=bench.apart)
    kept = bench.store.has("releases", inputs)
    try:
        sealed = bench.sealed(bench.scheme(), 0)
        if bench.private.samples.ndim == 2:
            check_columns(bench, sealed.release.samples)
        elif sealed.release.samples.ndim != 4:
            raise NotApplicable("its release holds vectors, not images")
    except Exception as reason:  # a method may raise anything, and its words may hold what they were raised over
        raise UsageError(f"{cell.method.shown} cannot be shown: {reason_text(reason, log)}") from reason
    finally:
        bench.close()
        if not kept:
            bench.store.drop("releases", inputs)
    return sealed


def _images(shown: list[tuple[str, Workbench, Sealed]], count: int | None, heading: str) -> bytes:
    private = shown[0][1].private
    rows = spread(private, count)
    strips = [Strip(f"raw\n({private.name})", private.samples[rows], torch.ones(len(rows), dtype=torch.bool))]
    for title, _, sealed in shown:
        released = sealed.release.samples
        if sealed.links is None:
            at, title = torch.arange(len(rows)), f"{title}\n(unlinked rows)"  # in random order, as all sealed rows are
        else:
            at = stands(sealed.links, sealed.primary, n=len(private), m=len(released)).cpu()[rows]
        strips.append(Strip(title, released[at.clamp_max(len(released) - 1).to(released.device)], at < len(released)))
    labels = torch.zeros(len(rows), 0) if private.labels is None else private.labels[rows]
    findings = () if private.labels is None else private.findings
    return image_sheet(strips, ["\n".join(findings_of(row, findings)) for row in labels.tolist()], heading)


def _tables(shown: list[tuple[str, Workbench, Sealed]], columns: tuple[str, ...], heading: str) -> bytes:
    private = shown[0][1].private
    releases = []
    for title, _, sealed in shown:
        released = sealed.release.samples
        means = released.mean(dim=0)
        outside = (means < private.samples.amin(dim=0)) | (means > private.samples.amax(dim=0))
        # If most means lie outside the original columns, the release has other units.
        other = 2 * int(outside.sum()) > len(outside)
        releases.append(Rows(f"{title} *", matched(released, private.samples)) if other else Rows(title, released))
    if any(rows.title.endswith("*") for rows in releases):
        heading = f"{heading} * released in other units; drawn {MATCHED}".strip()
    return table_sheet(Rows(f"original ({private.name})", private.samples), releases, columns, heading)


def _scatter(shown: list[tuple[str, Workbench, Sealed]], heading: str) -> bytes:
    bench = shown[0][1]
    original = Cloud(f"original\n({bench.private.name})", bench.private.samples, bench.private.labels)
    releases = [Cloud(title, sealed.release.samples, _labels(each, sealed)) for title, each, sealed in shown]
    return scatter_sheet(original, releases, bench.private.findings, heading, seed=bench.seed("scatter"))


def _labels(bench: Workbench, sealed: Sealed) -> torch.Tensor | None:
    """Released labels in the real classes."""
    labels = sealed.release.labels
    return None if labels is None else bench.key(bench.scheme(), 0).decode(labels)


def spread(data: Dataset, count: int | None) -> torch.Tensor:
    """Row numbers (int64) spread over the findings, and over rows with none.

    Args:
        data: The data to choose from.
        count: Number of rows; None for 4, or one row an exclusive class if there are more classes.
    """
    count = min(len(data), max(FEWEST, len(data.findings) * data.exclusive) if count is None else count)
    has = torch.zeros(len(data), 0, dtype=torch.bool) if data.labels is None else data.labels.cpu() == 1
    groups = [member.nonzero()[:, 0].tolist() for member in (*has.T, ~has.any(dim=1))]
    taken: dict[int, int] = {}
    turn = 0
    while len(taken) < count:
        group = groups[turn % len(groups)]
        fresh = next((row for row in group if row not in taken), None)
        if fresh is not None:
            taken[fresh] = turn % len(groups)
        turn += 1
    return torch.tensor(sorted(taken, key=lambda row: (taken[row], row)), dtype=torch.int64)


@contextmanager
def _progress(display: Display, name: str) -> Iterator[None]:
    """Reports within the block become the display's job of that name."""
    start = time.perf_counter()
    with forward_progress(lambda stage, done, total: display.progress(name, stage, done, total)):
        yield
    display.finished(name, Outcome("ok", None, None, None, None, time.perf_counter() - start))
