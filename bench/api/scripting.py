"""Functions for scripts and notebooks: `bench.run`, `release`, `attack`, `compare` and more.

They make the same requests as the command line, and call the same functions. What cannot be done raises `BenchError`;
what your own plug-in raises in this process (`attack`) passes as it is.
"""

from __future__ import annotations

__figures__ = False

import functools
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from rich.console import Console

from bench.api import boards, debugging, releasing, running
from bench.api.frames import Comparisons, Results, Scored
from bench.api.notebook_progress import NotebookDisplay, in_notebook
from bench.api.plugin_objects import FOLDER, row_spec, spec_of
from bench.contract.source import DataError
from bench.plugins import code_digest, registry, third_party
from bench.plugins.groups import Group
from bench.plugins.spec import UsageError
from bench.results.bundle import BundleError
from bench.results.signing_key import SigningKey
from bench.runs.display import Display
from bench.runs.request import Request
from bench.shadowing import ShadowedError, guard

if TYPE_CHECKING:  # each function imports what it needs
    from bench.data.splits import Splits
    from bench.runs.release_order import Form, Published
    from bench.types import Attack, Evaluator, Method, Metric, Source

P = ParamSpec("P")
T = TypeVar("T")
MethodLike: TypeAlias = "str | Method | type[Method]"
AttackLike: TypeAlias = "str | Attack | type[Attack]"
DatasetLike: TypeAlias = "str | Source | type[Source]"
MetricLike: TypeAlias = "str | type[Metric[Any]]"
EvaluatorLike: TypeAlias = "str | type[Evaluator[Any]]"
Folder: TypeAlias = "str | os.PathLike[str]"
RESULTS = "results"


class BenchError(Exception):
    """A request that cannot be done, with the reason and the remedy.

    All functions of `bench` raise it for wrong names and values, absent data and unreadable files; `__cause__` is the
    error behind it. Its text writes options as the command line does: `--data-root` is the argument `data_root`.
    """


def _refusals(function: Callable[P, T]) -> Callable[P, T]:
    """The function with refusals as `BenchError`, on plug-ins as they are."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            guard()
            _forget()
            return function(*args, **kwargs)
        except (UsageError, DataError, ShadowedError, BundleError, OSError) as error:
            raise BenchError(str(error)) from error

    return called


def _forget() -> None:
    """Forget files of plug-ins, which may have changed since the last call."""
    for cached in (registry.from_file, registry.module_of, third_party.stand_in):
        cached.cache_clear()
    code_digest.forget()


@_refusals
def run(
    methods: MethodLike | Sequence[MethodLike] = (), dataset: DatasetLike | Sequence[DatasetLike] = (), *,
    preset: str | None = None, attacks: AttackLike | Sequence[AttackLike] | None = None,
    metrics: MetricLike | Sequence[MetricLike] | None = None,
    evaluators: EvaluatorLike | Sequence[EvaluatorLike] | None = None, public: DatasetLike | None = None,
    seeds: int | str | Sequence[int] | None = None, size: int | None = None, device: str | None = None,
    isolation: str | None = None, jobs: int | None = None, options: Mapping[str, object] | None = None,
    suite: str | None = None, config: Folder | None = None, results: Folder = RESULTS,
    data_root: Folder | Sequence[Folder] = (), site: bool = False, sign: Folder | None = None, progress: bool = True,
) -> Results:  # fmt: skip
    """Score methods on data sets, as `bench run` does.

    Jobs that fail are records with a reason (`Results.failures`), and raise nothing. Ctrl-C, or a notebook's stop
    button, ends the jobs and raises KeyboardInterrupt; finished records stay, and the same call goes on.

    Args:
        methods, dataset, attacks, metrics, evaluators, public: One or several plug-ins: specs as the command line
            takes them ("dp-simple[scale=20]", "./mine.py:Mine"), or classes and instances. A class is sized by the
            preset; an instance has the parameters that it has. Classes may be defined in the script or notebook: they
            are written, with the definitions that they use, to files below `results`. `attacks` may be "all" or "none".
        preset: The size of the run; None for "quick".
        seeds: One, several, or a span such as "0-4".
        size, device, isolation, jobs: As the options of `bench run`; None for their defaults.
        options: Further options, by their names in a configuration file, such as {"eve": "other-study"}.
        suite, config: A suite that ships with the project, and a YAML file of options; arguments win over both.
        results: The results folder, which may be one of the command line.
        data_root: Folders above raw data.
        site: Write the pages to `results`/site.
        sign: A private key that signs new records.
        progress: Show bars on a terminal or in a notebook, and lines elsewhere.

    Returns:
        The records that were asked for, whether computed now or before.

    Raises:
        BenchError: A wrong name or value, or none of the data is here.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> found = run("blur", "digits", preset="smoke", attacks="nearest-neighbour", metrics="reid-auc",
        ...             options={"controls": False}, results=folder, progress=False)
        >>> list(found.frame()["metric"])
        ['reid-auc']
    """
    folder = Path(results)
    place = running.open_place(folder, _paths(data_root))
    named: dict[str, object] = {
        "methods": _specs("methods", methods, folder), "datasets": _specs("datasets", dataset, folder),
        "attacks": attacks if attacks in ("all", "none") else _specs("attacks", attacks, folder),
        "metrics": _specs("metrics", metrics, folder), "evaluators": _specs("evaluators", evaluators, folder),
        "public": None if public is None else spec_of("datasets", public, folder / FOLDER),
        "seeds": [seeds] if isinstance(seeds, int | str) else seeds, "preset": preset, "size": size, "device": device,
        "isolation": isolation, "jobs": jobs,
    }  # fmt: skip
    request = Request(_given(named, options), suite, None if config is None else Path(config))
    left_out: dict[str, str] = {}
    found = running.run(
        request, place, running.Observer(_display(progress), left_out.__setitem__),
        signer=None if sign is None else SigningKey.read(Path(sign)),
        site=place.results.root / "site" if site else None,
    )  # fmt: skip
    if found.summary.stopped is not None:
        raise found.summary.stopped
    left_out |= {**found.summary.reasons, **found.summary.refused}
    if left_out and not found.summary.records:
        raise UsageError("\n".join(f"{name}: {reason}" for name, reason in left_out.items()))
    return Results(tuple(found.summary.records), folder, left_out, found.page, found.seconds)


@_refusals
def release(
    method: MethodLike, dataset: DatasetLike, out: Folder, *, public: DatasetLike | None = None,
    rows: Folder | None = None, scheme: Folder | None = None, key: Folder | None = None, accept: str | None = None,
    form: Form = "safetensors", dry: bool = False, key_out: Folder | None = None, links_out: Folder | None = None,
    ledger: Folder | None = None, options: Mapping[str, object] | None = None, results: Folder = RESULTS,
    data_root: Folder | Sequence[Folder] = (),
) -> Published:  # fmt: skip
    """Write a release, and its key and links apart.

    Args:
        method, dataset, public: As in `run`.
        out: A new folder, to be published whole.
        rows, scheme, key, key_out, links_out, ledger, form: As the options of `bench release`; `form` is its --format.
        accept: Your reason to release in spite of what speaks against it.
        dry: Write nothing, and say what would leave.
        options: Further options by their names in a configuration file, such as {"size": 64}.
        results: The folder of records that may speak for or against the release.
        data_root: Folders above raw data.

    Returns:
        Its files, notes and warnings.

    Raises:
        BenchError: It needs your reason (`accept`), or is refused.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> made = release("blur", "digits", folder + "/public", accept="an example", results=folder + "/results",
        ...                ledger=folder + "/ledger")
        >>> sorted(made.publication.files)
        ['release.safetensors']
    """
    from bench.runs.release_order import Order
    from bench.runs.release_terms import ReleaseRefusedError

    folder = Path(results)
    named: dict[str, object] = {
        "methods": _specs("methods", method, folder), "datasets": _specs("datasets", dataset, folder),
        "public": None if public is None else spec_of("datasets", public, folder / FOLDER), "attacks": "none",
    }  # fmt: skip
    order = Order(
        Path(out), _path(key_out), _path(links_out), _path(rows), _path(scheme), accept, dry, form, None, _path(key),
        _path(ledger),
    )  # fmt: skip
    request = Request(_given(named, options), verb="release")
    try:
        return releasing.release(request, running.open_place(folder, _paths(data_root)), order)
    except ReleaseRefusedError as error:
        causes = "".join(f"\n- {cause}" for cause in error.causes)
        raise BenchError(
            f'not released; to release it all the same, give your reason, accept="...":{causes}'
        ) from error


@_refusals
def attack(
    attack: AttackLike, method: MethodLike, dataset: DatasetLike | None = None, *, preset: str = "smoke",
    metrics: MetricLike | Sequence[MetricLike] | None = None, options: Mapping[str, object] | None = None,
    data_root: Folder | Sequence[Folder] = (),
) -> Scored:  # fmt: skip
    """One attack on one method, measured in this process and recorded nowhere.

    Prints, `breakpoint()` and profilers work in both plug-ins, and what they raise passes as it is. The run secret is
    always the same, so that a call repeats to the digit. Nothing is isolated: code of other authors has your rights.
    The attack's controls do not run: the figure says nothing of whether the attack works elsewhere.

    Args:
        attack, method, dataset, metrics: As in `run`; one of each but of metrics.
        preset: The size; "smoke" takes seconds.
        options: Further options by their names in a configuration file, such as {"size": 64}.
        data_root: Folders above raw data.

    Returns:
        The figures of all metrics that read the attack's scores.

    Raises:
        BenchError: A wrong name or value, or data that are not here.

    Example:
        >>> found = attack("nearest-neighbour", "blur", "digits", metrics="reid-auc")
        >>> list(found.scores)
        ['reid-auc']
    """
    with tempfile.TemporaryDirectory(prefix="bench-attack-") as place:
        folder = Path(place)
        named: dict[str, object] = {
            "methods": _specs("methods", method, folder), "attacks": _specs("attacks", attack, folder),
            "datasets": _specs("datasets", dataset, folder), "metrics": _specs("metrics", metrics, folder),
            "preset": preset,
        }  # fmt: skip
        with debugging.laid_out(_given(named, options), _paths(data_root)) as trial:
            return debugging.scored(trial)


@_refusals
def compare(
    results: Results | Folder = RESULTS, methods: MethodLike | Sequence[MethodLike] = (),
    metrics: str | Sequence[str] = (), *, attack: str | None = None,
) -> Comparisons:  # fmt: skip
    """Two methods, or all, compared on the same people and keys.

    Args:
        results: What `run` returned, or a results folder; of both, all records in the folder count.
        methods: Two of them; none for all, with intervals of their ranks.
        metrics: By name; none for all.
        attack: Only figures of this attack; None for all attacks on both methods.

    Raises:
        BenchError: No records, or a name that none of them has.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> found = run(["blur", "mosaic"], "digits", preset="smoke", attacks="nearest-neighbour", metrics="reid-auc",
        ...             options={"controls": False}, results=folder, progress=False)
        >>> compare(found, ["blur", "mosaic"]).frame()["metric"].tolist()
        ['reid-auc']
    """
    folder = results.folder if isinstance(results, Results) else Path(results)
    named = [row_spec(each) for each in (methods if isinstance(methods, list | tuple) else [methods])]
    chosen = [metrics] if isinstance(metrics, str) else list(metrics)
    return Comparisons(boards.compare(running.open_place(folder).results, named, chosen, attack))


@_refusals
def load_dataset(
    dataset: DatasetLike, *, preset: str = "quick", public: DatasetLike | None = None, size: int | None = None,
    seed: int = 0, options: Mapping[str, object] | None = None, data_root: Folder | Sequence[Folder] = (),
) -> Splits:  # fmt: skip
    """A data set's public, private, control and test rows.

    Args:
        dataset, public: As in `run`.
        preset, size, seed: They decide how many rows there are, the side of images in pixels, and the split by people.
        options: Further options by their names in a configuration file, such as {"limit": 100}.
        data_root: Folders above raw data.

    Returns:
        Four parts, each a `bench.types.Dataset`: `samples` (n, c, h, w) or (n, d), float32, images in [0, 1]; `labels`
        (n, k), 1, 0 or NaN; `subjects` (n,), a number a person.

    Raises:
        BenchError: A wrong name or value, or data that are not here.

    Example:
        >>> data = load_dataset("digits", preset="smoke")
        >>> data.private.samples.shape[1:], len(data.private.findings)
        (torch.Size([1, 8, 8]), 10)
    """
    import torch

    from bench.runs.request import choice_of
    from bench.workbench.open_data import open_data

    with tempfile.TemporaryDirectory(prefix="bench-data-") as place:
        folder = Path(place)
        named: dict[str, object] = {
            "datasets": _specs("datasets", dataset, folder), "preset": preset, "size": size, "seeds": [seed],
            "public": None if public is None else spec_of("datasets", public, folder),
        }  # fmt: skip
        choice = choice_of(Request(_given(named, options)))
        return open_data(choice, running.open_place(folder / RESULTS, _paths(data_root)), torch.device("cpu"))[0]


@_refusals
def load_results(results: Folder = RESULTS) -> Results:
    """The records of a results folder.

    Raises:
        BenchError: There are none.

    Example:
        >>> load_results("nowhere")
        Traceback (most recent call last):
        bench.api.scripting.BenchError: no records in nowhere: run something first, or name another folder
    """
    found = tuple(running.records_of(running.open_place(Path(results)).results))
    if not found:
        raise UsageError(f"no records in {results}: run something first, or name another folder")
    return Results(found, Path(results))


def _specs(group: Group, given: object, folder: Path) -> list[str] | None:
    """One or several plug-ins as specs; None for none."""
    some = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    return [spec_of(group, each, folder / FOLDER) for each in some] or None


def _given(named: Mapping[str, object], options: Mapping[str, object] | None) -> dict[str, object]:
    """The options that were given, by their names in a configuration file."""
    more = dict(options or {})
    found = {name: value for name, value in named.items() if value is not None}
    if twice := sorted(found.keys() & more.keys()):
        raise UsageError(f"{twice[0]} is an argument of its own: leave it out of options")
    return found | more


def _path(given: Folder | None) -> Path | None:
    return None if given is None else Path(given)


def _paths(given: Folder | Sequence[Folder]) -> list[Path]:
    return [Path(given)] if isinstance(given, str | os.PathLike) else [Path(each) for each in given]


def _display(progress: bool) -> Display:
    """Bars in a notebook or on a terminal, lines elsewhere, or nothing."""
    if not progress:
        return Display(Console(quiet=True))
    return NotebookDisplay() if in_notebook() else Display()
