"""Functions for scripts and notebooks: `bench.run`, `release`, `attack`, `compare` and more.

They make the same requests as the command line, and call the same functions. What cannot be done raises `BenchError`;
what your own plug-in raises in this process (`attack`) passes as it is.
"""

from __future__ import annotations

__figures__ = False

import functools
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from rich.console import Console

from bench.api import boards, debugging, releasing, running
from bench.api.frames import Comparisons, Results, Scored
from bench.api.notebook_progress import NotebookDisplay, in_notebook
from bench.api.plugin_objects import FOLDER, row_spec, spec_of
from bench.contract.source import DataError
from bench.disk.disk_errors import in_words
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
        except (UsageError, DataError, ShadowedError, BundleError) as error:
            raise BenchError(str(error)) from error
        except OSError as error:
            raise BenchError(in_words(error)) from error

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
    folder = _path("results", results)
    place = running.open_place(folder, _paths("data_root", data_root))
    for name, given in (("attacks", attacks), ("metrics", metrics), ("evaluators", evaluators)):
        if given is not None and not _several(given):
            none = ', or attacks="none" for none' if name == "attacks" else ""
            raise UsageError(f"{name} is empty: leave it out for the usual ones{none}")
    named: dict[str, object] = {
        "methods": _specs("methods", methods, folder), "datasets": _specs("datasets", dataset, folder),
        "attacks": attacks if isinstance(attacks, str) and attacks in ("all", "none")
        else _specs("attacks", attacks, folder),
        "metrics": _specs("metrics", metrics, folder), "evaluators": _specs("evaluators", evaluators, folder),
        "public": None if public is None else spec_of("datasets", public, folder / FOLDER),
        "seeds": None if seeds is None else _several(seeds), "preset": preset, "size": size, "device": device,
        "isolation": isolation, "jobs": jobs,
    }  # fmt: skip
    if suite is not None and not isinstance(suite, str):
        raise UsageError(f"suite must be a name such as 'quickstart', got {suite!r:.80}; a file is named by config")
    request = Request(_given(named, options), suite, _optional("config", config))
    left_out: dict[str, str] = {}
    found = running.run(
        request, place, running.Observer(_display(progress), left_out.__setitem__),
        signer=None if sign is None else SigningKey.read(_path("sign", sign)),
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

    folder = _path("results", results)
    named: dict[str, object] = {
        "methods": _specs("methods", method, folder), "datasets": _specs("datasets", dataset, folder),
        "public": None if public is None else spec_of("datasets", public, folder / FOLDER), "attacks": "none",
    }  # fmt: skip
    if accept is not None and not isinstance(accept, str):
        raise UsageError(f"accept must be your reason in words, got {accept!r:.80}")
    order = Order(
        _path("out", out), _optional("key_out", key_out), _optional("links_out", links_out), _optional("rows", rows),
        _optional("scheme", scheme), accept, dry, form, None, _optional("key", key), _optional("ledger", ledger),
    )  # fmt: skip
    request = Request(_given(named, options), verb="release")
    try:
        return releasing.release(request, running.open_place(folder, _paths("data_root", data_root)), order)
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
        with debugging.laid_out(_given(named, options), _paths("data_root", data_root)) as trial:
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
    folder = results.folder if isinstance(results, Results) else _path("results", results)
    named = [row_spec(each) for each in _several(methods)]
    chosen = [str(each) for each in _several(metrics)]
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
        return open_data(
            choice, running.open_place(folder / RESULTS, _paths("data_root", data_root)), torch.device("cpu")
        )[0]


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
    folder = _path("results", results)
    found = tuple(running.records_of(running.open_place(folder).results))
    if not found:
        raise UsageError(f"no records in {results}: run something first, or name another folder")
    return Results(found, folder)


def _specs(group: Group, given: object, folder: Path) -> list[str] | None:
    """One or several plug-ins as specs; None for none."""
    return [spec_of(group, each, folder / FOLDER) for each in _several(given)] or None


def _several(given: object) -> list[object]:
    """The argument as a list; a set or mapping is one thing.

    >>> _several("blur"), _several(range(2)), _several(None)
    (['blur'], [0, 1], [])
    """
    if given is None:
        return []
    given = _unwrapped(given)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | type | Mapping | set | frozenset):
        return list(given)
    return [given]


def _given(named: Mapping[str, object], options: Mapping[str, object] | None) -> dict[str, object]:
    """The options that were given, by their names in a configuration file."""
    if options is not None and not isinstance(options, Mapping):
        raise UsageError(f'options must be a mapping such as {{"eve": "other-study"}}, got {options!r:.80}')
    more = dict(options or {})
    found = {name: value for name, value in named.items() if value is not None}
    if twice := sorted(found.keys() & more.keys()):
        raise UsageError(f"{twice[0]} is an argument of its own: leave it out of options")
    try:
        return {name: _plain(value) for name, value in (found | more).items()}
    except RecursionError:
        raise UsageError("options hold themselves: give plain numbers, texts, lists and mappings") from None


def _unwrapped(value: object) -> object:
    """An array or a number of another library as those of Python."""
    listed = None if isinstance(value, type) else getattr(value, "tolist", None)
    return listed() if callable(listed) else value


def _plain(value: object) -> object:
    """A value as a configuration file would hold it.

    >>> import numpy as np
    >>> _plain([np.int64(3), np.float32(0.5), (np.True_, Path("a")), np.array(2)])
    [3, 0.5, [True, 'a'], 2]
    """
    value = _unwrapped(value)
    if value is None or isinstance(value, str | bool | bytes | set | frozenset):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, Iterable) else value


def _path(name: str, given: object) -> Path:
    """An argument as a path. Raises UsageError."""
    if isinstance(given, str | os.PathLike):
        text = os.fspath(given)
        if isinstance(text, str) and text and "\0" not in text:
            return Path(text)
    raise UsageError(f"{name} must be the path of a file or folder, got {given!r:.80}")


def _optional(name: str, given: object) -> Path | None:
    return None if given is None else _path(name, given)


def _paths(name: str, given: object) -> list[Path]:
    return [_path(name, each) for each in _several(given)]


def _display(progress: bool) -> Display:
    """Bars in a notebook or on a terminal, lines elsewhere, or nothing."""
    if not progress:
        return Display(Console(quiet=True))
    return NotebookDisplay() if in_notebook() else Display()
