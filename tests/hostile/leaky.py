"""Plug-ins that put what they see, pixels as text and a path, into everything that they may say."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from attacks.chance import Chance, ChanceAttacker
from bench.contract.seal import ContractError
from bench.contract.source import DataError
from bench.evidence import SetEvidence
from bench.progress import report, stage
from bench.types import (
    Column,
    Evaluator,
    KeylessScheme,
    Measurement,
    Metric,
    NotApplicable,
    Picture,
    PrivacyClaim,
    Score,
)
from methods.identity import Identity

WIDTH = 16


def seen(samples: torch.Tensor) -> str:
    """The first line of an image, as the text that its pixels spell."""
    line = samples.flatten()[:WIDTH].mul(255).round().to(torch.uint8)
    return bytes(line.tolist()).decode("latin-1")


def say(text: str) -> None:
    """Into logs and stages."""
    print(text)
    print(text, file=sys.stderr)
    stage(text)
    stage(f"attack {text}")
    report(text, 1, 2)


def fail(leak: str, text: str) -> None:
    """By an exception, where that is what is asked."""
    raising: dict[str, Callable[[], BaseException]] = {
        "not-applicable": lambda: NotApplicable(text),
        "contract": lambda: ContractError(text),
        "contract-colon": lambda: ContractError(f"{text}: {text}"),
        "data": lambda: DataError(text),
        "class": lambda: type(text, (ValueError,), {})(text),
        "memory": lambda: MemoryError(text),
        "exit": lambda: SystemExit(text),
    }
    if leak in raising:
        raise raising[leak]()


@dataclass(frozen=True)
class LeakyMethod(Identity):
    """Leaks."""

    name: ClassVar[str] = "leaky"
    role: ClassVar[None] = None
    claims: ClassVar[str] = "a bound that a test made up"
    leak: str = "talk"

    def fit(self, public: Any, *given: Any) -> Any:
        text = seen(public.samples)
        say(text)
        fail(self.leak, text)
        return LeakyScheme(Identity(), text)

    def load(self, state: Any) -> Any:
        return LeakyScheme(Identity(), bytes(state["text"].tolist()).decode("latin-1"))


@dataclass(frozen=True)
class LeakyScheme(KeylessScheme):
    text: str

    def state(self) -> Any:
        return {"text": torch.tensor(list(self.text.encode("latin-1")), dtype=torch.uint8)}

    def notes(self) -> Any:
        return {self.text: self.text, "number": int.from_bytes(self.text[:6].encode("latin-1"), "big")}

    def claim(self) -> Any:
        return PrivacyClaim("image", 1.0, 0.0, self.text, self.text, derived=2.0)


@dataclass(frozen=True)
class LeakyAttack(Chance):
    """Leaks."""

    name: ClassVar[str] = "leaky"
    leak: str = "talk"

    def fit(self, view: Any, seed: Any) -> Any:
        text = seen(view.candidates.samples)
        say(text)
        fail(self.leak, text)
        made = super().fit(view, seed)
        return LeakyAttacker(made.seed, made.candidates, text)


@dataclass(frozen=True)
class LeakyAttacker(ChanceAttacker):
    text: str = ""

    def notes(self) -> Any:
        return {self.text: self.text, "number": int.from_bytes(self.text[:6].encode("latin-1"), "big")}


@dataclass(frozen=True)
class LeakyMetric(Metric[SetEvidence]):
    """Leaks."""

    name: ClassVar[str] = "leaky"
    unit: ClassVar[str] = "rows"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "a test"
    on_request: ClassVar[bool] = True
    column: ClassVar[Column] = Column("Rows", "Rows released.", "Released set", digits=0)
    leak: str = "talk"

    def __call__(self, evidence: SetEvidence) -> Any:
        text = seen(evidence.original)
        say(text)
        fail(self.leak, text)
        part = Score(1.0, None, None, 1, note=text)
        return Score(1.0, None, None, len(evidence.released), note=text, parts={text: part, "b": part})


@dataclass(frozen=True)
class LeakyEvaluator(Evaluator[Any]):
    """Leaks."""

    name: ClassVar[str] = "leaky"
    source: ClassVar[str] = "a test"
    evidence: ClassVar[type] = SetEvidence
    leak: str = "talk"

    def measure(self, bench: Any) -> Any:
        text = seen(bench.private.samples) + str(getattr(bench.cell.choice.dataset.plugin, "path", ""))
        say(text)
        fail(self.leak, text)
        rows = bench.private.samples.flatten(1)
        notes = {text: text, "numbers": list(text.encode("latin-1"))}
        return Measurement({text: SetEvidence(rows, rows, None, None, 0)}, notes, {text: 1.0}, {text: text}, shown=text)

    def pictures(self, bench: Any, found: Any) -> Any:
        return {found.shown: Picture(found.shown, b""), "plot": Picture(found.shown, found.shown.encode())}
