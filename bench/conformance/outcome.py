"""Results of checks, places of faults, and sample rows."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Literal

import torch

from bench.contract.seal import ContractError
from bench.seeds import derive, generator
from bench.types import Dataset

PRESET = "smoke"
SIDE = 64
"""Pixels of the side of the images that plug-ins are tried on, a multiple of 8."""
ROWS = 48


@dataclass(frozen=True)
class Result:
    """The outcome of one check.

    Args:
        check: Its title.
        status: How it ended; a check is not reached where one that it takes for granted failed.
        detail: The reason for a failure or a skip, what is to be noted, or what it was not reached for.
        where: Of a failure, the place in the author's code: "mine.py:31 in release"; empty where none is known.
        trace: The calls that led there, as Python prints them; empty where nothing was raised.
        seconds: That it took.
    """

    check: str
    status: Literal["passed", "failed", "skipped", "noted", "not-reached"]
    detail: str = ""
    where: str = ""
    trace: str = ""
    seconds: float = 0.0


class Skip(Exception):  # noqa: N818  (an outcome, not an error)
    """A check that does not apply here; the text is the reason."""


class Noted(Exception):  # noqa: N818  (an outcome, not an error)
    """A note to the author about something that is not wrong."""


def sample_data(kind: Literal["images", "table"] = "images", rows: int = ROWS, seed: int = 0) -> Dataset:
    """Small random rows, two findings, three rows a person.

    Grey images of SIDE x SIDE pixels, or tables with 8 columns.
    """
    random = generator(derive(seed, "conformance", kind))
    shape = (rows, 1, SIDE, SIDE) if kind == "images" else (rows, 8)
    labels = torch.stack((torch.arange(rows) % 2, torch.arange(rows) // 2 % 2), dim=1).to(torch.float32)
    return Dataset(
        name=f"random {kind}",
        samples=torch.rand(shape, generator=random),
        labels=labels,
        subjects=torch.arange(rows) // 3,
        findings=("first", "second"),
        exclusive=False,
        shareable=True,
    )


def require(condition: bool, message: str) -> None:
    """Raise ContractError with `message` unless `condition`."""
    if not condition:
        raise ContractError(message)


BLAMED = "bench_blamed"
"""The attribute of an exception that names the author's function which gave what was refused."""


@dataclass(frozen=True)
class Cause:
    """A place in the author's code.

    Args:
        where: "mine.py:31 in release"; empty where nothing of the author's had a part in it.
        trace: The calls from there on, as Python prints them; empty where nothing was raised there.
    """

    where: str = ""
    trace: str = ""


@contextmanager
def blaming(work: object) -> Iterator[None]:
    """Attribute errors within the block to this function or class."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, BLAMED):
            setattr(error, BLAMED, work)
        raise


def cause_of(error: BaseException, cls: type | None) -> Cause:
    """The place in the author's code.

    Args:
        error: What a check raised.
        cls: The plug-in's class; None where it could not be loaded.
    """
    if error.__cause__ is not None and (deeper := cause_of(error.__cause__, cls)).trace:
        return deeper
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [number for number, (frame, _) in enumerate(frames) if cls is not None and _is_own(frame.f_code, cls)]
    if own:
        frame, line = frames[own[-1]]
        name = frame.f_code.co_name
        trace_lines = traceback.format_list(traceback.StackSummary.extract(iter(frames[own[0] :])))
        last = traceback.format_exception_only(type(error), error)
        return Cause(f"{Path(frame.f_code.co_filename).name}:{line} in {name}", "".join([*trace_lines, *last]).rstrip())
    blamed = getattr(error, BLAMED, cls)
    return Cause(place(blamed) if blamed is not None else "")


def place(blamed: object) -> str:
    """The place of a function or class: "mine.py:31 in release"; else empty."""
    try:
        code = inspect.unwrap(blamed) if callable(blamed) else blamed
        lines = inspect.getsourcelines(code)[1]  # type: ignore[arg-type]
        file = inspect.getsourcefile(code)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return ""
    return f"{Path(str(file)).name}:{lines} in {getattr(code, '__name__', '')}"


def _is_own(code: CodeType, cls: type) -> bool:
    """If code lies in the file or package of the plug-in's class."""
    module, file = cls.__module__, Path(inspect.getfile(cls)).resolve()
    path = Path(code.co_filename).resolve()
    if path == file:
        return True
    package = file.parent
    return "." in module and not module.startswith("bench.") and path.is_relative_to(package)
