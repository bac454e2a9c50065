"""Which of the data that a run was asked for are here, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.contract.source import DataError
from bench.plugins.spec import UsageError
from bench.runs.run_spec import RunSpec
from bench.workbench.choice import Choice
from bench.workbench.place import Place


def present(specs: Sequence[RunSpec], place: Place) -> tuple[list[RunSpec], Mapping[str, str]]:
    """The parts of a run that may do without absent data, cut to what is here; and what is not, by name, and why.

    Raises UsageError where nothing is left.
    """
    absent: dict[str, str] = {}
    found = []
    for spec in specs:
        if spec.skip_absent:
            whys = {choice: _absence(choice, place) for choice in spec.choices}
            absent |= {str(choice.dataset): why for choice, why in whys.items() if why is not None}
            spec = replace(spec, choices=tuple(choice for choice, why in whys.items() if why is None))
        if spec.choices:
            found.append(spec)
    if not found:
        raise UsageError("none of the data sets is here: " + "; ".join(absent.values()))
    return found, absent


def _absence(choice: Choice, place: Place) -> str | None:
    """Why a choice of data cannot be opened: files of its own or of its public set are nowhere below the roots."""
    try:
        choice.dataset.plugin.stamp(place.roots)
        if (beside := choice.beside) is not None:
            beside.plugin.stamp(place.roots)
    except DataError as error:
        return str(error)
    return None
