"""Checkpoints of training: the whole state, saved every few minutes.

A loop over `steps(...)` in place of `range(...)` resumes an earlier process that was cut off, and gives the same
bits as an uninterrupted one. Only training on public rows is saved: the harness sets no folder for a release.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, cast

import torch

from bench.progress import report
from bench.wire.tensor_file import TensorsError, checksum_of, pack_tensors, unpack_tensors

SECONDS = 300.0
"""Between two saves: the most that a restart costs."""
MOST_BYTES = 1 << 34
FILE = re.compile(r"training-[0-9]{1,4}\.safetensors")
"""Names of checkpoints; other names are of files being written."""
STEP, SPENT, MOVED, DIGEST = "step", "seconds", "moved.", "digest"


class Stateful(Protocol):
    """An object with a state of tensors by name."""

    def state_dict(self) -> Mapping[str, torch.Tensor]:
        """Its state."""

    def load_state_dict(self, state: Mapping[str, torch.Tensor], /) -> object:
        """Restore that state."""


Part: TypeAlias = "torch.nn.Module | torch.optim.Optimizer | torch.Generator | torch.Tensor | Stateful"
"""An object that training changes. Tensors must be changed in place."""


class CheckpointWarning(UserWarning):
    """A checkpoint does not fit; the training starts again."""


@dataclass
class _Place:
    folder: Path
    earlier: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)


_PLACE: ContextVar[_Place | None] = ContextVar("_PLACE", default=None)


@contextmanager
def save_checkpoints(folder: Path, earlier: Path | None = None) -> Iterator[None]:
    """Save the block's trainings to `folder`; resume those in `earlier`.

    Trainings are numbered: they must run in the same order whenever the block is entered with that folder.
    """
    token = _PLACE.set(_Place(folder, earlier or folder))
    try:
        yield
    finally:
        _PLACE.reset(token)


def checkpoint_folder() -> Path | None:
    """The folder for checkpoints; None outside of `save_checkpoints`."""
    place = _PLACE.get()
    return None if place is None else place.folder


def training_seconds(folder: Path) -> float:
    """Seconds of training behind the checkpoints of a folder; 0 for none."""
    return sum(_seconds(file) for file in folder.glob("*") if FILE.fullmatch(file.name))


def _seconds(file: Path) -> float:
    try:
        return float(_read(file)[SPENT].sum())
    except (TensorsError, KeyError, FileNotFoundError):  # the training that resumes warns of it
        return 0.0


def steps(total: int, *parts: Part, every: float | None = None) -> Iterator[int]:
    """The remaining steps of a training, from 0 to `total` - 1.

    Args:
        total: Steps of the whole training.
        parts: All that a step changes, in the same order each time: networks, optimisers (their rates apart, which each
            step has to set), generators, tensors that are changed in place. torch's own random numbers are saved, too.
        every: Seconds between two saves; None for `SECONDS`.

    Outside of `save_checkpoints` it is `range(total)`.
    """
    place = _PLACE.get()
    if place is None:
        yield from range(total)
        return
    name = f"training-{next(place.numbers)}.safetensors"
    begin, before = _resumed(place.earlier / name, total, parts)
    file, pause, saved = place.folder / name, SECONDS if every is None else every, begin > 0
    began = last = time.monotonic()
    for step in range(begin, total):
        yield step
        end = step + 1 == total
        if time.monotonic() - last >= pause or (end and saved):
            last, saved = time.monotonic(), True
            _keep(file, step + 1, parts, before + last - began)


def _resumed(file: Path, total: int, parts: tuple[Part, ...]) -> tuple[int, float]:
    """Restore a checkpoint, if any; the next step, and seconds of training."""
    try:
        state = _read(file)
    except FileNotFoundError:
        return 0, 0.0
    except TensorsError as error:
        return _anew(file, str(error))
    expected = _state(parts)
    more = state.keys() - expected.keys() - {STEP, SPENT}
    if not {*expected, STEP, SPENT} <= state.keys() or not all(f".{MOVED}" in name for name in more):
        return _anew(file, "it has other parts")  # more than expected only of an optimiser that has moved
    wrong = [name for name, tensor in expected.items() if state[name].shape != tensor.shape]
    done = int(state[STEP].sum())
    if wrong or not 0 < done <= total:
        return _anew(file, f"{wrong[0]} has another shape" if wrong else f"it stands at step {done} of {total}")
    for number, part in enumerate(parts):
        prefix = f"{number}."
        _load(part, {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)})
    torch.set_rng_state(state["cpu"])
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"])
    report("training goes on, step", done, total)
    return done, float(state[SPENT].sum())


def _anew(file: Path, why: str) -> tuple[int, float]:
    warnings.warn(f"{file.name} does not fit the training ({why}), which begins anew", CheckpointWarning, stacklevel=4)
    return 0, 0.0


def _keep(file: Path, done: int, parts: tuple[Part, ...], seconds: float) -> None:
    """Write the state atomically, also if the machine stops."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    new = file.with_name(f"{file.name}.new-{os.getpid()}-{secrets.token_hex(4)}")
    state = {**_state(parts), STEP: torch.tensor(done), SPENT: torch.tensor(seconds)}
    pack_tensors({**state, DIGEST: _digest(state)}, new)
    with new.open("rb") as written:
        os.fsync(written.fileno())
    new.replace(file)


def _read(file: Path) -> dict[str, torch.Tensor]:
    """A file of `_keep`; TensorsError if any byte changed, FileNotFoundError if missing."""
    state = unpack_tensors(file, MOST_BYTES)
    digest = state.pop(DIGEST, None)
    if digest is None or not torch.equal(digest, _digest(state)):
        raise TensorsError("it is not as it was written")
    return state


def _digest(state: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """(32,) uint8 over names, kinds, shapes and values."""
    return torch.frombuffer(bytearray.fromhex(checksum_of(state)), dtype=torch.uint8)


def _state(parts: tuple[Part, ...]) -> dict[str, torch.Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["cuda"] = torch.cuda.get_rng_state()
    for number, part in enumerate(parts):
        state |= {f"{number}.{name}": tensor for name, tensor in _said(part).items()}
    return state


def _said(part: Part) -> Mapping[str, torch.Tensor]:
    if isinstance(part, torch.Tensor):
        return {"tensor": part}
    if isinstance(part, torch.Generator):
        return {"generator": part.get_state()}
    if isinstance(part, torch.optim.Optimizer):
        moved = part.state_dict()["state"]
        return {
            f"{MOVED}{row}.{name}": torch.as_tensor(value) for row, of in moved.items() for name, value in of.items()
        }
    return part.state_dict()


def _load(part: Part, state: Mapping[str, torch.Tensor]) -> None:
    if isinstance(part, torch.Tensor):
        with torch.no_grad():
            part.copy_(state["tensor"])
    elif isinstance(part, torch.Generator):
        part.set_state(state["generator"])
    elif isinstance(part, torch.optim.Optimizer):
        moved: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in state.items():
            _, row, what = name.split(".", 2)
            moved.setdefault(int(row), {})[what] = tensor
        part.load_state_dict({"state": moved, "param_groups": part.state_dict()["param_groups"]})
    else:
        cast(Stateful, part).load_state_dict(state)
