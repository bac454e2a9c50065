"""Codec of calls between processes: values, object references and errors as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NoReturn, Protocol, TypeAlias, cast

import torch
from pydantic import JsonValue

from bench.contract.seal import ContractError, check_labels
from bench.isolation.room_folder import KeptTraining
from bench.memory.rows import Rows
from bench.randomness import Secret
from bench.room_side import TEXT_CHARACTERS
from bench.types import Dataset, Generator, LearningCurve, NotApplicable, PrivacyClaim, Release
from bench.wire.tensor_file import TensorsError

Value = object
"""None, bool, int, float, str, Tensor, Secret, Dataset, Release, PrivacyClaim, LearningCurve, `Handle`, `Learned`, or a
sequence or mapping (with text as keys) of such."""


@dataclass(frozen=True)
class Handle:
    """A reference to an object of the other process, of type `kind`."""

    number: int
    kind: str


@dataclass(frozen=True, eq=False)
class Learned:
    """A scheme as sent to Eve, who loads it.

    Args:
        method: The method's canonical spec; None if she may not load it (`bench.isolation.method_proxy`).
        state: `Scheme.state`.
    """

    method: str | None
    state: Mapping[str, torch.Tensor]


RECORDS: Mapping[str, type] = {"dataset": Dataset, "claim": PrivacyClaim, "curve": LearningCurve}

ASKED: Mapping[str, tuple[str, ...]] = {
    "Method": ("fit", "load"),
    "Scheme": ("state", "claim", "accounts", "notes", "mechanism", "sample_key", "load_key", "load_generator"),
    "Key": ("release", "query", "decode", "classifier", "state", "own"),
    "Generator": ("sample",),
    "Mechanism": (
        "exact", "rowwise", "scale", "fence", "locate", "observe", "witnesses", "log_density", "noise", "stopped",
        "own",
    ),
    "Attack": ("fit",),
    "Attacker": ("score", "score_knowing", "queries", "membership", "notes", "learning"),
    "PairScores": ("shape", "block", "factors"),
    "Classifier": ("call",),
    "Release": ("fetch",),
}  # fmt: skip
"""Names that may be called, by the type of the contract."""

CLAIM: Mapping[str, tuple[type, ...]] = {
    "unit": (str,), "epsilon": (int, float), "delta": (int, float), "assumptions": (str,), "basis": (str,),
    "derived": (int, float, type(None)), "neighbours": (str,), "units": (int,), "family": (str,),
    "sampling_rate": (int, float, type(None)), "steps": (int, type(None)),
}  # fmt: skip
"""What the fields of a claim may be."""


def pack(value: Value, keep: Callable[[torch.Tensor], JsonValue]) -> JsonValue:
    """A value as JSON; `keep` stores a tensor and returns its place.

    Raises:
        ContractError: A value that no process may hand to another.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):  # numpy's own floats are floats, too
        number = int(value) if isinstance(value, int) else float(value)
        return number if math.isfinite(number) else {"$number": str(number)}
    if isinstance(value, Rows) and value.stored is not None:
        return {"$rows": [keep(value), value.stored.divisor, str(value.dtype).removeprefix("torch.")]}
    if isinstance(value, torch.Tensor):
        return {"$tensor": keep(value)}
    if isinstance(value, Secret):
        return {"$secret": value.content.hex()}
    if isinstance(value, Handle):
        return {"$handle": [value.number, value.kind]}
    if isinstance(value, Learned):
        return {"$learned": [value.method, pack(value.state, keep)]}
    if isinstance(value, Release):
        parts = {name: getattr(value, name) for name in ("samples", "labels", "links", "primary")}
        state = None if value.generator is None else value.generator.state()
        return {"$release": pack({**parts, "generator": state}, keep)}
    for name, cls in RECORDS.items():
        if isinstance(value, cls):
            inside = {field.name: getattr(value, field.name) for field in fields(cls)}
            return {f"${name}": pack(inside, keep)}
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise ContractError("what a plug-in hands over must be named by text")
        return {"$map": [[name, pack(inner, keep)] for name, inner in value.items()]}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [pack(inner, keep) for inner in value]
    raise ContractError(f"a plug-in may hand over numbers, text and tensors, got {type(value).__name__}")


def unpack(
    found: JsonValue,
    find: Callable[[JsonValue], torch.Tensor],
    generator: Callable[[Mapping[str, torch.Tensor]], Value],
) -> Value:
    """The value that `pack` put into JSON.

    Args:
        found: What came.
        find: Returns the tensor at a place that `keep` gave.
        generator: Makes a release's generator of its state.

    Raises:
        ContractError: Not what `pack` writes.
    """

    def inner(part: JsonValue) -> Value:
        return unpack(part, find, generator)

    if isinstance(found, list):
        return [inner(part) for part in found]
    if not isinstance(found, dict):
        return found
    try:
        ((sign, content),) = found.items()
        if sign == "$number":
            return float(cast(str, content))
        if sign == "$tensor":
            return find(content)
        if sign == "$rows":
            place, divisor, kind = cast("list[JsonValue]", content)
            return _as_stored(find(place), cast("float | None", divisor), str(kind))
        if sign == "$secret":
            return Secret(bytes.fromhex(cast(str, content)))
        if sign == "$handle":
            number, kind = cast("list[JsonValue]", content)
            return Handle(int(cast(int, number)), str(kind))
        if sign == "$learned":
            method, state = cast("list[JsonValue]", content)
            return Learned(None if method is None else str(method), tensors(inner(state)))
        if sign == "$map":
            return {str(name): inner(part) for name, part in cast("list[tuple[str, JsonValue]]", content)}
        values = cast("dict[str, Value]", inner(content))
        if sign == "$release":
            return _release(values, generator)
        return RECORDS[sign.removeprefix("$")](**_checked(sign, values))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ContractError(f"a plug-in handed over invalid data ({type(error).__name__})") from error


def _as_stored(found: torch.Tensor, divisor: float | None, kind: str) -> torch.Tensor:
    """Rows that were stored as something narrower, as what they are."""
    if divisor is not None and not (isinstance(divisor, float) and math.isfinite(divisor) and divisor > 0):
        raise ValueError("rows must be divided by a positive number")
    dtype = {"float32": torch.float32, "float64": torch.float64}[kind]
    if isinstance(found, Rows):
        assert found.stored is not None
        return Rows.of(found.stored.array, found.budget, divisor=divisor, dtype=dtype, device=found.device)
    floats = found.to(dtype)
    return floats if divisor is None else floats / torch.full((), divisor, dtype=dtype, device=found.device)


def tensors(value: Value) -> dict[str, torch.Tensor]:
    """A mapping of tensors. Raises ContractError for anything else."""
    if not isinstance(value, dict) or not all(isinstance(part, torch.Tensor) for part in value.values()):
        raise ContractError("a state must be tensors by name")
    return value


def tensor(value: Value, what: str) -> torch.Tensor:
    """A tensor. Raises ContractError for anything else."""
    if not isinstance(value, torch.Tensor):
        raise ContractError(f"{what} must be a tensor, got {type(value).__name__}")
    return value


def handle_of(value: Value, kind: str) -> Handle:
    """A handle of that kind. Raises ContractError for anything else."""
    if not isinstance(value, Handle) or value.kind != kind:
        raise ContractError(f"a plug-in must give a {kind}, got {type(value).__name__}")
    return value


def notes(value: Value) -> dict[str, int | float | str]:
    """Notes of a plug-in: numbers and texts by name."""
    if not isinstance(value, dict) or not all(isinstance(part, int | float | str) for part in value.values()):
        raise ContractError("notes must be numbers and texts by name")
    return value


def _release(values: dict[str, Value], generator: Callable[[Mapping[str, torch.Tensor]], Value]) -> Release:
    parts = {name: values[name] for name in ("samples", "labels", "links", "primary")}
    for name, part in parts.items():
        if not isinstance(part, torch.Tensor) and (part is not None or name == "samples"):
            raise ContractError(f"a release's {name} must be a tensor, got {type(part).__name__}")
    parts["labels"] = _labels(cast("torch.Tensor | None", parts["labels"]))
    state = values["generator"]
    made = None if state is None else generator(tensors(state))
    return Release(**parts, generator=made)  # type: ignore[arg-type]


def _labels(found: torch.Tensor | None) -> torch.Tensor | None:
    """The labels, without the 22 spare bits that a NaN may carry."""
    if found is None:
        return None
    check_labels(found)
    return torch.where(found.isnan(), torch.nan, found)


def _checked(sign: str, values: dict[str, Value]) -> dict[str, Value]:
    if sign == "$dataset":
        for name in ("samples", "labels", "subjects"):
            if not isinstance(values[name], torch.Tensor) and (values[name] is not None or name == "samples"):
                raise ContractError(f"a data set's {name} must be a tensor")
        return {**values, "findings": tuple(str(name) for name in cast("list[str]", values["findings"]))}
    if sign == "$curve":
        return values  # it checks itself
    for name, kinds in CLAIM.items():
        if not isinstance(values[name], kinds):
            raise ContractError(f"a claim's {name} must not be {type(values[name]).__name__}")
    return values


Generators: TypeAlias = "Callable[[Mapping[str, torch.Tensor]], Generator]"
"""Makes a release's generator of its state."""


class Line(Protocol):
    """A connection over which objects of another process are called."""

    @property
    def open(self) -> bool:
        """True while it answers."""

    def ask(
        self, whom: Handle | None, what: str, *values: Value, generator: Generators | None = None,
        training: KeptTraining | None = None,
    ) -> Value:  # fmt: skip
        """As `bench.isolation.room.Room.ask`."""


class CallBack(Protocol):
    """The judge's answers to a process that calls back (`bench.isolation.method_proxy`)."""

    refused: bool

    def ask(self, whom: int | None, what: str, values: Sequence[Value]) -> Value:
        """Call an object; None stands for the method itself."""

    def forget(self, numbers: Sequence[int]) -> None:
        """Let objects go."""

    def generator(self, state: Mapping[str, torch.Tensor]) -> Generator:
        """A release's generator, by its state."""


class OutsideError(Exception):
    """A plug-in failed with an error of its own kind, named first."""


class RefusedError(NotApplicable):
    """A method refused rows or, through an attack, a request."""


class UnlikeError(ContractError):
    """A method treats Eve unlike an owner; only the judge learns it."""


ERRORS: Mapping[str, type[Exception]] = {
    "not-applicable": NotApplicable,
    "contract": ContractError,
    "value": ValueError,
    "memory": MemoryError,
}
"""The errors that mean the same on both sides."""


def told(error: BaseException) -> JsonValue:
    """An error as [kind, text]."""
    if isinstance(error, OutsideError):
        return ["outside", _bounded(error)]
    if isinstance(error, TensorsError):
        return ["contract", _bounded(error)]
    for kind, cls in ERRORS.items():
        if isinstance(error, cls):
            return [kind, _bounded(error)]
    return ["outside", f"{type(error).__name__[:100]}: {_bounded(error)}"]


def raise_told(error: JsonValue) -> NoReturn:
    """Raise what `told` wrote."""
    kind, text = error if isinstance(error, list) and len(error) == 2 else ("", "")
    message = str(text)[:TEXT_CHARACTERS]
    for name, cls in ERRORS.items():
        if kind == name:
            raise cls(message)
    raise OutsideError(message)


def _bounded(error: BaseException) -> str:
    """An error's text as UTF-8 of bounded length."""
    try:
        text = str(error)[:TEXT_CHARACTERS]
    except Exception:
        text = "(its text cannot be had)"
    return text.encode(errors="replace").decode()
