"""What a check gives, and the rows it runs on."""

from __future__ import annotations

from dataclasses import dataclass
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
    """What the author should know and has not done wrong; the text says it."""


def sample_data(kind: Literal["images", "table"] = "images", rows: int = ROWS, seed: int = 0) -> Dataset:
    """Small random rows, two findings, three rows a person: SIDE x SIDE grey images, or tables with 8 columns."""
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
