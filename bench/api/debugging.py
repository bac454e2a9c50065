"""Plug-ins in this process, where debuggers, prints and profilers reach them.

Nothing is isolated, stored or recorded: code of other authors runs with your rights.
"""

from __future__ import annotations

__figures__ = False

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.api.frames import Scored
from bench.api.running import open_place
from bench.plugins import registry
from bench.plugins.catalogue import groups_of
from bench.plugins.spec import UsageError, parse
from bench.types import NotApplicable

if TYPE_CHECKING:  # imported where it is used: torch and evaluators are heavy
    import torch

    from bench.types import Key
    from bench.workbench.cell import Cell, Planned
    from bench.workbench.place import Place
    from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Trial:
    """One method and one attack, laid out for work in this process."""

    cell: Cell
    planned: Planned
    place: Place


@contextmanager
def laid_out(options: Mapping[str, object], data_roots: Sequence[Path] = ()) -> Iterator[Trial]:
    """A trial in a temporary results folder, under a fixed secret.

    Args:
        options: One method, one attack and one data set, by their names in a configuration file.
        data_roots: Folders above raw data.

    Raises:
        UsageError: Anything that a run would refuse, or an attack whose scores no metric reads.
    """
    from bench.randomness import Secret
    from bench.runs.plan import cells, evaluators
    from bench.runs.request import Request, run_spec

    fixed = {"isolation": "none", "jobs": 1, "controls": False}
    spec = run_spec(Request({**options, **fixed}, verb="debug"))
    found = [each for each in evaluators(spec.attacks, spec.metrics) if each.attack is not None]
    if spec.attacks and not found:
        raise UsageError(
            f"{', '.join(each.shown for each in spec.attacks)}: none of the metrics {', '.join(spec.metrics)} reads "
            "the scores of this attack; leave them out for those that do"
        )
    if len(spec.methods) != 1 or len(spec.choices) != 1 or len(found) != 1:
        raise UsageError(
            f"one method, one attack and one data set are tried at a time, got {len(spec.methods)}, {len(found)} and "
            f"{len(spec.choices)}"
        )
    with tempfile.TemporaryDirectory(prefix="bench-debug-") as folder:
        place = replace(open_place(Path(folder) / "results", data_roots), memory=spec.memory)
        place.results.keep_secret(Secret.of_seed(0, "debug"))
        yield Trial(cells(spec)[0], found[0], place)


def scored(trial: Trial) -> Scored:
    """The attack's figures. What the plug-ins raise passes as it is."""
    from bench.runs.tasks import EvaluateTask, evaluate_task

    assert trial.planned.attack is not None
    found = evaluate_task(EvaluateTask(trial.cell, trial.place, trial.planned, "none"))
    return Scored(
        trial.planned.attack.shown, trial.cell.method.shown, str(trial.cell.choice.dataset), found.scores,
        {**found.not_applicable, **found.broken}, found.details, found.seconds,
    )  # fmt: skip


def _figures(found: Scored) -> str:
    """The figures in words, for the evaluation has printed why others lack."""
    return repr(replace(found, not_applicable={}))


def side(plugin: str) -> Literal["methods", "attacks"]:
    """The group of a plug-in to try.

    Raises UsageError if it is of neither.
    """
    groups = groups_of(parse(plugin).name)
    if "methods" in groups:
        return "methods"
    if "attacks" in groups:
        return "attacks"
    noun = registry.noun(groups[0])
    raise UsageError(f"methods and attacks are debugged so, and {plugin} is a {noun}: use `bench check {plugin} --pdb`")


def debug(trial: Trial, tell: Callable[[str], None]) -> Scored:
    """Fit, release, query and attack, with a line on each to `tell`.

    What the plug-ins raise passes as it is, and what they print is printed.
    """
    from bench.determinism import exact
    from bench.workbench.open_data import open_data
    from bench.workbench.workbench import Workbench

    choice = trial.cell.choice
    start = time.perf_counter()
    open_data(choice, trial.place, exact(trial.cell.device), workers=0)
    with closing(Workbench.open(trial.cell, trial.place, "none")) as bench:
        tell(f"data: {choice.dataset}: {bench.record.counts} rows of shape {bench.record.shape}, {_since(start)}")
        start = time.perf_counter()
        scheme, _ = bench.fitted()
        tell(f"fit: {scheme!r:.200}, {_since(start)}")
        start = time.perf_counter()
        key = bench.key(scheme, 0)
        sealed = bench.sealed(scheme, 0)
        tell(f"release: {_rows(sealed.release.samples)}, {_links(sealed.links)}, {_since(start)}")
        _query(bench, key, tell)
    start = time.perf_counter()
    found = scored(trial)
    tell(f"attack: {_figures(found)}\n{_since(start)}")
    return found


def _query(bench: Workbench, key: Key, tell: Callable[[str], None]) -> None:
    start = time.perf_counter()
    try:
        encoded = key.query(bench.test.samples)
    except NotApplicable as reason:
        tell(f"query: not applicable: {reason}")
        return
    tell(f"query: {_rows(encoded)}, {_since(start)}")


def _rows(samples: torch.Tensor) -> str:
    low, high = float(samples.min()), float(samples.max())
    return f"{len(samples)} rows of shape {tuple(samples.shape[1:])}, {samples.dtype}, from {low:.3g} to {high:.3g}"


def _links(links: torch.Tensor | None) -> str:
    return "no links" if links is None else f"{len(links)} links"


def _since(start: float) -> str:
    return f"{time.perf_counter() - start:.1f} s"
