"""Host of a plug-in, for Python 3.8 or later and numpy.

The judge starts it with the interpreter of the plug-in's environment: `PYTHON -I -B room_side.py TOLD`, where TOLD is a
JSON object. Calls and answers are messages: a length in four bytes, highest first, and JSON. Tensors are in safetensors
files beside them. If the environment has this project, `bench.isolation.plugin_host` hosts plug-ins of `bench.types`.
Otherwise this file is what a plug-in imports: as `bench_room`, or as `bench.types` and `bench.randomness`.

Tensors are numpy arrays here, or torch tensors for a plug-in with `arrays = "torch"`.
"""

from __future__ import annotations

__figures__ = False

import dataclasses
import hashlib
import hmac
import importlib
import importlib.util
import inspect
import itertools
import json
import logging
import math
import os
import select
import sys
import threading
import traceback
import types
import typing
import weakref
from abc import ABC, abstractmethod
from typing import Any, Callable, ClassVar, Dict, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

import numpy as np

PROTOCOL = 1
"""Rises when calls change: an environment with another number in its own copy of this project is refused."""
HEAD = 4
MESSAGE_BYTES = 1 << 24
TEXT_CHARACTERS = 2_000
GROUPS = ("methods", "attacks")
SAID: Mapping[str, Tuple[str, ...]] = {
    "methods": (
        "name", "source", "requires", "claims", "uses_labels", "needs_labels", "encodes_labels", "uses_subjects",
        "needs_public", "equal_classes", "unlearned", "sides",
    ),
    "attacks": ("name", "source", "requires", "scores", "knowledge", "uses_labels", "learns", "needs_public"),
}  # fmt: skip
"""Class variables of a plug-in that its description holds."""
ASKED: Mapping[str, Tuple[str, ...]] = {
    "Method": ("fit", "load"),
    "Scheme": ("state", "claim", "accounts", "notes", "mechanism", "sample_key", "load_key", "load_generator"),
    "Key": ("release", "query", "decode", "classifier", "state", "own"),
    "Generator": ("sample",),
    "Mechanism": (
        "exact", "rowwise", "scale", "fence", "locate", "observe", "witnesses", "log_density", "noise", "stopped",
    ),
    "Attack": ("fit",),
    "Attacker": ("score", "membership", "notes", "learning"),
    "PairScores": ("shape", "block", "factors"),
}  # fmt: skip
"""Names that may be called, by the type of the contract."""
OWN = ("query", "decode", "classifier")
"""Functions of a key that it need not override."""
Array = Any
"""A numpy array, or a torch tensor for a plug-in with `arrays = "torch"`."""
State = Mapping[str, Array]
LOGGER = logging.getLogger("bench.progress")


class NotApplicable(Exception):  # noqa: N818  (an outcome, not an error)
    """A senseless pairing, with the reason."""


class ContractError(Exception):
    """A plug-in broke the contract; the text says expected and actual values."""


class OutsideError(Exception):
    """Another process failed with an error of its own kind, named first."""


class Plugin(ABC):
    """The base of all plug-ins: frozen dataclasses with parameters as fields."""

    name: ClassVar[str]
    source: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    requires: ClassVar[str] = "nothing beyond its own environment"
    needs_public: ClassVar[bool] = True
    arrays: ClassVar[str] = "numpy"


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with labels and people; see `bench.contract.dataset.Dataset`."""

    name: str
    samples: Array
    labels: Optional[Array]
    subjects: Optional[Array]
    findings: Tuple[str, ...]
    exclusive: bool
    shareable: bool

    def __len__(self) -> int:
        return len(self.samples)

    def take(self, rows: Array) -> Dataset:
        """The given rows (indices) as a new data set."""
        parts: Dict[str, Any] = {name: getattr(self, name) for name in ("samples", "labels", "subjects")}
        parts = {name: None if part is None else part[rows] for name, part in parts.items()}
        return dataclasses.replace(self, **parts)


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    """Released rows with labels and links; see `bench.contract.dataset.Release`."""

    samples: Array
    labels: Optional[Array]
    links: Optional[Array]
    primary: Optional[Array] = None
    generator: Optional[Generator] = None

    def __len__(self) -> int:
        return len(self.samples)


def paired(samples: Array, labels: Optional[Array]) -> Release:
    """A release in which raw row i became released row i."""
    rows = np.arange(len(samples))
    return Release(samples, labels, np.stack((rows, rows), axis=1))


class Generator(ABC):
    """A published generator of rows."""

    @abstractmethod
    def sample(self, count: int, seed: int) -> Release:
        """`count` fresh rows without links; equal seeds give equal rows."""

    @abstractmethod
    def state(self) -> State:
        """All that is published, as arrays."""


@dataclasses.dataclass(frozen=True)
class PrivacyClaim:
    """A differential-privacy claim; see `bench.contract.plugin.PrivacyClaim`."""

    unit: str
    epsilon: float
    delta: float
    assumptions: str
    basis: str
    derived: Optional[float] = None
    neighbours: str = "replaced"
    units: int = 1


class Stream:
    """Secret random numbers in order: SHAKE-256 of a key and a counter.

    Its numbers differ from those of `bench.randomness`.
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._count = key, 0

    def bytes(self, count: int) -> Array:
        """(count,) uint8."""
        self._count += 1
        drawn = hashlib.shake_256(self._key + self._count.to_bytes(8, "big")).digest(count)
        return np.frombuffer(drawn, dtype=np.uint8)

    def uniform(self, *shape: int) -> Array:
        """float64: odd multiples of 2^-54 in (0, 1)."""
        words = self.bytes(8 * _product(shape)).view("<u8")
        return (((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)

    def integers(self, below: int, *shape: int) -> Array:
        """int64, uniform below `below`, which is at most 2^32; bias below 2^-31."""
        if not 1 <= below <= 1 << 32:
            raise ValueError("below must be from 1 to 2^32, got {}".format(below))
        words = self.bytes(8 * _product(shape)).view("<u8")
        return (words % np.uint64(below)).astype(np.int64).reshape(shape)

    def permutation(self, n: int) -> Array:
        """(n,) int64: 0 .. n - 1 in random order."""
        return np.argsort(self.bytes(8 * n).view("<u8"), kind="stable")

    def signs(self, *shape: int) -> Array:
        """int8 of that shape: -1 or 1."""
        return (2 * self.integers(2, *shape) - 1).astype(np.int8)

    def normal(self, *shape: int) -> Array:
        """float64, standard normal; not for noise of a claim."""
        radius = np.sqrt(-2 * np.log(self.uniform(*shape)))
        return radius * np.cos(2 * math.pi * self.uniform(*shape))


@dataclasses.dataclass(frozen=True)
class Secret:
    """32 secret bytes; `derive` gives the same children as `bench.randomness.Secret`."""

    content: bytes = dataclasses.field(repr=False)

    @classmethod
    def of_seed(cls, seed: int, *names: Union[str, int]) -> Secret:
        """A simulated secret; the seed determines it."""
        return cls(hashlib.sha256(b"simulated" + json.dumps((seed, *names)).encode()).digest())

    @classmethod
    def load(cls, state: Array) -> Secret:
        """The secret that `tensor` gave."""
        return cls(bytes(state.tolist()))

    def tensor(self) -> Array:
        """uint8 (32,), for `Key.state`."""
        return np.frombuffer(self.content, dtype=np.uint8).copy()

    def derive(self, *names: Union[str, int]) -> Secret:
        """Another secret, by name (HKDF-Expand, RFC 5869), revealing no other one."""
        about = b"veil-bench secret" + json.dumps(names).encode()
        return Secret(hmac.new(self.content, about + b"\x01", hashlib.sha256).digest())

    def stream(self, *names: Union[str, int]) -> Stream:
        """The stream of that name, from its beginning."""
        return Stream(self.derive("stream", *names).content)

    def bound_to(self, samples: Array) -> Secret:
        """Another secret for every content, shape and dtype of `samples`."""
        rows = np.ascontiguousarray(samples)
        tag = hmac.new(self.derive("content").content, rows.tobytes(), hashlib.sha256).hexdigest()
        return self.derive("bound", str(rows.dtype), *rows.shape, tag)


class Key(ABC):
    """One data owner's secret: turns her raw rows into a release."""

    @abstractmethod
    def release(self, private: Dataset) -> Release:
        """The release of `private`: arrays stay untouched, samples are float32."""

    def query(self, samples: Array) -> Array:
        """New images for Bob's model. Default: unchanged."""
        return samples

    def decode(self, scores: Array) -> Array:
        """Bob's predictions as real classes. Default: unchanged."""
        return scores

    def classifier(self, private: Dataset) -> Optional[Callable[[Array], Array]]:
        """A published classifier; None (the default) if none is."""
        return None

    @abstractmethod
    def state(self) -> State:
        """Everything secret, as arrays: `Scheme.load_key(state)` gives an equal key."""


class Scheme(ABC):
    """A method's public part: Eve holds it, and draws keys from it."""

    @abstractmethod
    def sample_key(self, secret: Secret) -> Key:
        """A fresh key; equal secrets give equal keys."""

    @abstractmethod
    def load_key(self, state: State) -> Key:
        """The key that `Key.state` described."""

    def load_generator(self, state: State) -> Generator:
        """The generator that `Generator.state` described."""
        raise NotApplicable("{} publishes no generator".format(type(self).__name__))

    def state(self) -> State:
        """Learned arrays: `Method.load(state)` gives an equal scheme. Default: none."""
        return {}

    def claim(self) -> Optional[PrivacyClaim]:
        """The formal guarantee; None (the default) if none."""
        return None

    def mechanism(self) -> None:
        """No noise mechanism can be described here."""
        return

    def accounts(self, rows: int) -> Mapping[str, float]:
        """Epsilon of a release of so many rows by accountant. Default: none."""
        return {}

    def notes(self) -> Mapping[str, Any]:
        """Notes for the record on the scheme. Default: none."""
        return {}


class Method(Plugin):
    """An obfuscation method; see `bench.contract.method.Method`."""

    claims: ClassVar[str] = "no formal guarantee"
    uses_labels: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False
    encodes_labels: ClassVar[bool] = False
    uses_subjects: ClassVar[bool] = False
    equal_classes: ClassVar[bool] = False
    unlearned: ClassVar[typing.FrozenSet[str]] = frozenset()
    sides: ClassVar[Mapping[str, int]] = {}

    @abstractmethod
    def fit(self, public: Dataset, seed: int) -> Scheme:
        """Train on public data."""

    @abstractmethod
    def load(self, state: State) -> Scheme:
        """The scheme that `Scheme.state` described."""


class Keyless(Method):
    """A method without training and keys: a plug-in writes `transform` alone."""

    needs_public: ClassVar[bool] = False

    @abstractmethod
    def transform(self, samples: Array) -> Array:
        """Released rows of rows, in order."""

    def fit(self, public: Dataset, seed: int) -> Scheme:
        """A scheme without state."""
        return KeylessScheme(self)

    def load(self, state: State) -> Scheme:
        """The scheme, which has no state."""
        return KeylessScheme(self)


@dataclasses.dataclass(frozen=True)
class KeylessScheme(Scheme):
    """The scheme of a method that learns nothing."""

    method: Keyless

    def sample_key(self, secret: Secret) -> Key:
        """The key, the same for every secret."""
        return KeylessKey(self.method)

    def load_key(self, state: State) -> Key:
        """The key, which has no state."""
        return KeylessKey(self.method)


@dataclasses.dataclass(frozen=True)
class KeylessKey(Key):
    """A key without a secret."""

    method: Keyless

    def release(self, private: Dataset) -> Release:
        """Transformed rows, labels as they are."""
        return paired(self.query(private.samples), private.labels)

    def query(self, samples: Array) -> Array:
        """Transformed rows."""
        return self.method.transform(samples)

    def state(self) -> State:
        """Empty: nothing is secret."""
        return {}


@dataclasses.dataclass(frozen=True, eq=False)
class View:
    """Eve's knowledge before she sees the release; see `bench.contract.attack.View`."""

    public: Dataset
    scheme: Scheme
    candidates: Dataset
    control: Dataset


class PairScores:
    """Scores (n, m) of pairs, read in blocks; higher means likelier equal."""

    def __init__(self, scores: Array) -> None:
        self.scores, self.shape = scores, tuple(scores.shape)

    def block(self, rows: slice, cols: slice) -> Array:
        """Scores of a block, float32 or float64."""
        return self.scores[rows, cols]

    def factors(self) -> None:
        """No inner products."""
        return


@dataclasses.dataclass(frozen=True)
class LearningCurve:
    """One training of an attack; see `bench.contract.learning_curve.LearningCurve`."""

    figure: str
    points: Sequence[Tuple[int, float]]
    converged: bool
    reason: str
    part: str = ""


class Attacker:
    """A trained attack. It only scores; the harness judges."""

    def score(self, sealed: Release) -> PairScores:
        """Scores of all (candidate, released) pairs."""
        raise NotApplicable("{} does not score pairs".format(type(self).__name__))

    def membership(self, sealed: Release) -> Array:
        """Membership scores (n,)."""
        raise NotApplicable("{} does not score membership".format(type(self).__name__))

    def notes(self) -> Mapping[str, Any]:
        """Notes for the record. Default: none."""
        return {}

    def learning(self) -> Sequence[LearningCurve]:
        """The curve of each training. Default: none, nothing was trained."""
        return []


class Attack(Plugin):
    """An attack; see `bench.contract.attack.Attack`."""

    scores: ClassVar[str] = "pairs"
    knowledge: ClassVar[str]
    uses_labels: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    @abstractmethod
    def fit(self, view: View, seed: int) -> Attacker:
        """Train or set up."""


def stage(name: str) -> None:
    """Begin a stage; a later failure is recorded under its name."""
    LOGGER.info("%s", name)


def report(what: str, done: int, total: int) -> None:
    """Report that `done` of `total` steps of the stage are done."""
    LOGGER.info("%s %d/%d", what, done, total)


def _product(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


# The wire: messages, values, tensors.


def send(descriptor: int, message: Mapping[str, Any]) -> None:
    """Write a message."""
    content = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(content) > MESSAGE_BYTES:
        raise ContractError("a message must take at most {} bytes, got {}".format(MESSAGE_BYTES, len(content)))
    left = memoryview(len(content).to_bytes(HEAD, "big") + content)
    while left:
        left = left[os.write(descriptor, left) :]


def receive(descriptor: int) -> Dict[str, Any]:
    """The next message. Raises EOFError when the judge has closed its end."""
    length = int.from_bytes(_read(descriptor, HEAD), "big")
    return dict(json.loads(_read(descriptor, length).decode()))


def _read(descriptor: int, count: int) -> bytes:
    held = b""
    while len(held) < count:
        part = os.read(descriptor, count - len(held))
        if not part:
            raise EOFError
        held += part
    return held


class Handle:
    """A reference to an object of another process, of type `kind`."""

    def __init__(self, number: int, kind: str) -> None:
        self.number, self.kind = number, kind


DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4",
    "F64": "<f8", "BF16": "<i2",
}  # fmt: skip
"""Names of the safetensors format; numpy has no bfloat16, which stands as its bits."""


def write_tensors(path: str, tensors: Mapping[str, Array]) -> None:
    """Write a new safetensors file, whose library old interpreters have not."""
    parts = {name: _bits(tensor) for name, tensor in tensors.items()}
    header, at = {}, 0  # type: Dict[str, Any], int
    order = sorted(parts, key=lambda name: (-parts[name][1].itemsize, name))  # so that each is aligned
    for name in order:
        kind, array = parts[name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "xb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(parts[name][1].tobytes())


def _bits(tensor: Array) -> Tuple[str, Any]:
    """An array's dtype by the format's name, and the array of numpy."""
    kind = None
    if not isinstance(tensor, np.ndarray):  # torch's
        tensor = tensor.detach().cpu().contiguous()
        if str(tensor.dtype) == "torch.bfloat16":
            kind, tensor = "BF16", tensor.view(sys.modules["torch"].int16)
        tensor = tensor.numpy()
    code = tensor.dtype.newbyteorder("<").str.replace("|", "").replace("b1", "?")
    names = [name for name, other in DTYPES.items() if other == code]
    if not names:
        raise ContractError("an array must be of a plain dtype, got {}".format(tensor.dtype))
    return kind or names[0], np.ascontiguousarray(tensor.astype(DTYPES[names[0]], copy=False)).reshape(tensor.shape)


def read_tensor(path: str, name: str) -> Tuple[str, Any]:
    """A tensor's dtype, and its array, which is read-only and on disk."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length).decode())[name]
    begin, end = entry["data_offsets"]
    if begin == end:
        return entry["dtype"], np.zeros(entry["shape"], DTYPES[entry["dtype"]])
    data = np.memmap(path, DTYPES[entry["dtype"]], "r", offset=8 + length + begin, shape=tuple(entry["shape"]) or (1,))
    return entry["dtype"], np.asarray(data).reshape(entry["shape"])


RECORDS: Mapping[str, type] = {"dataset": Dataset, "claim": PrivacyClaim, "curve": LearningCurve}


def pack(value: Any, keep: Callable[[Array], Any]) -> Any:
    """A value as JSON, as `bench.isolation.rpc_codec.pack` writes it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) else {"$number": str(float(value))}
    if isinstance(value, np.ndarray) or _is_torch(value):
        return {"$tensor": keep(value)}
    if isinstance(value, Secret):
        return {"$secret": value.content.hex()}
    if isinstance(value, Handle):
        return {"$handle": [value.number, value.kind]}
    if isinstance(value, Release):
        parts = {name: getattr(value, name) for name in ("samples", "labels", "links", "primary")}
        parts["generator"] = None if value.generator is None else value.generator.state()
        return {"$release": pack(parts, keep)}
    for name, cls in RECORDS.items():
        if isinstance(value, cls):
            inside = {field.name: getattr(value, field.name) for field in dataclasses.fields(cls)}
            return {"$" + name: pack(inside, keep)}
    if isinstance(value, Mapping):
        return {"$map": [[str(name), pack(inner, keep)] for name, inner in value.items()]}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [pack(inner, keep) for inner in value]
    raise ContractError("a plug-in may hand over numbers, text and arrays, got {}".format(type(value).__name__))


def unpack(found: Any, find: Callable[[Any], Array], generator: Callable[[State], Any]) -> Any:
    """The value that the judge put into JSON."""
    if isinstance(found, list):
        return [unpack(part, find, generator) for part in found]
    if not isinstance(found, dict):
        return found
    ((sign, content),) = found.items()
    if sign == "$number":
        return float(content)
    if sign == "$tensor":
        return find(content)
    if sign == "$rows":  # rows that were stored as something narrower
        place, divisor, kind = content
        rows = find(place)
        rows = rows.astype(kind) if isinstance(rows, np.ndarray) else rows.to(getattr(sys.modules["torch"], kind))
        return rows if divisor is None else rows / rows.dtype.type(divisor) if isinstance(rows, np.ndarray) else (
            rows / sys.modules["torch"].tensor(divisor, dtype=rows.dtype))  # fmt: skip
    if sign == "$secret":
        return Secret(bytes.fromhex(content))
    if sign == "$handle":
        return Handle(content[0], content[1])
    if sign == "$map":
        return {name: unpack(part, find, generator) for name, part in content}
    if sign == "$learned":
        return unpack(content[1], find, generator)
    values = unpack(content, find, generator)
    if sign == "$release":
        state = values.pop("generator")
        return Release(generator=None if state is None else generator(state), **values)
    if sign == "$dataset":
        values["findings"] = tuple(values["findings"])
    return RECORDS[sign[1:]](**values)


def _is_torch(value: Any) -> bool:
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


ERRORS: Mapping[str, type] = {
    "not-applicable": NotApplicable, "contract": ContractError, "value": ValueError, "memory": MemoryError,
}  # fmt: skip
"""The errors that mean the same on both sides."""


def told(error: BaseException) -> List[str]:
    """An error as [kind, text]."""
    try:
        text = str(error)[:TEXT_CHARACTERS].encode(errors="replace").decode()
    except Exception:
        text = "(its text cannot be had)"
    for kind, cls in ERRORS.items():
        if isinstance(error, cls):
            return [kind, text]
    return ["outside", "{}: {}".format(type(error).__name__[:100], text)]


# Eve's end of a method that another process hosts.


class Known:
    """An object of a method, called through the judge."""

    _PLAIN = ("exact", "rowwise", "scale", "fence")

    def __init__(self, host: Host, handle: Optional[Handle]) -> None:
        self._host, self._handle = host, handle

    def _ask(self, name: str, *values: Any) -> Any:
        result = self._host.relay(self._handle, name, values)
        return Known(self._host, result) if isinstance(result, Handle) and result.kind == "Mechanism" else result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._ask(name) if name in self._PLAIN else lambda *values: self._ask(name, *values)


class KnownScheme(Known):
    """The scheme that Eve knows."""

    def __init__(self, host: Host, state: State) -> None:
        super().__init__(host, host.relay(None, "load", [state]))
        self._state = state

    def state(self) -> State:
        """The learned state."""
        return self._state

    def load_generator(self, state: State) -> KnownGenerator:
        """A published generator."""
        return KnownGenerator(self, state)

    def sample_key(self, secret: Secret) -> KnownKey:
        """A key of her own."""
        return KnownKey(self._host, self._ask("sample_key", secret))

    def load_key(self, state: State) -> KnownKey:
        """A key of her own."""
        return KnownKey(self._host, self._ask("load_key", state))


class KnownGenerator(Generator):
    """A published generator, which the method's process loads when it draws."""

    def __init__(self, scheme: KnownScheme, state: State) -> None:
        self._scheme, self._state = scheme, state

    def sample(self, count: int, seed: int) -> Release:
        """As the generator draws them."""
        made = Known(self._scheme._host, self._scheme._ask("load_generator", self._state))
        drawn = made._ask("sample", count, seed)
        assert isinstance(drawn, Release)
        return drawn

    def state(self) -> State:
        """All that is published."""
        return self._state


class KnownKey(Known):
    """A key that Eve drew."""

    def release(self, private: Dataset) -> Release:
        """A release under it."""
        held = self._host.relay(None, "hold", [private])
        kept = self._ask("release", held)
        fetched = self._host.relay(kept, "fetch", ())
        assert isinstance(fetched, Release)
        return fetched


class Host:
    """The objects of this process, and the calls to them.

    Args:
        task: What the judge told: the plug-in, and where messages and files go.
    """

    def __init__(self, task: Mapping[str, Any]) -> None:
        self._task = task
        self._cls = load(task["target"])
        self._objects: Dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._known: Optional[KnownScheme] = None
        self._asked, self._forgotten = 0, []  # type: int, List[int]

    def answer(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        """The answer to a request: {"number", "ok"} or {"number", "error"}."""
        self._asked = request["number"]
        try:
            values = [self._unpacked(part) for part in request["with"]]
            values = [self._objects[value.number] if isinstance(value, Handle) else value for value in values]
            result = self._ask(request["whom"], request["what"], values)
            return {"number": self._asked, "ok": self._packed(self._shown(result))}
        except BaseException as error:  # any error of a plug-in becomes an answer; the log has its trace
            if not isinstance(error, (NotApplicable, ContractError, MemoryError)):
                traceback.print_exc()
            return {"number": self._asked, "error": told(error)}

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop objects that the judge no longer uses."""
        for number in numbers:
            self._objects.pop(number, None)

    def relay(self, target: Optional[Handle], name: str, values: Sequence[Any]) -> Any:
        """Call the judge, who awaits this process's answer meanwhile."""
        dropped, self._forgotten[:] = self._forgotten[:], []
        whom = None if target is None else target.number
        send(self._task["answers"], {"asks": name, "whom": whom, "with": self._packed(list(values)), "forgot": dropped})
        answer = receive(self._task["requests"])
        if "error" in answer:
            kind, text = answer["error"]
            raise ERRORS.get(kind, OutsideError)(text)
        result = self._unpacked(answer["ok"])
        if isinstance(result, Handle):
            weakref.finalize(result, self._forgotten.append, result.number).atexit = False
        return result

    def _plugin(self) -> Any:
        task = self._task
        return construct(self._cls, task["argument"], task["parameters"], task["preset"])

    def _ask(self, target: Optional[int], name: str, values: List[Any]) -> Any:
        if name == "hold":
            return self._handle(values[0], "Dataset")
        callee = self._plugin() if target is None else self._objects[target]
        if isinstance(callee, Attack):
            public, learned, candidates, control, seed = values
            self._known = KnownScheme(self, learned)
            return callee.fit(View(public, self._known, candidates, control), seed)  # type: ignore[arg-type]
        if name == "call" and callable(callee):
            return callee(*values)
        if name == "fetch":
            return self._objects.pop(target)  # type: ignore[arg-type]
        kind = _kind(callee)
        if name not in ASKED.get(kind or "", ()):
            raise ContractError("{} of a {} may not be called".format(name, type(callee).__name__))
        if name == "own":  # the functions that a key overrides
            return [own for own in OWN if getattr(type(callee), own) is not getattr(Key, own)]
        if name == "block":
            values = [slice(values[0], values[1]), slice(values[2], values[3])]
        if isinstance(callee, Method) and name == "fit":
            stands = {field.name: field.default for field in dataclasses.fields(self._cls)}
            callee = dataclasses.replace(typing.cast(Any, callee), **{each: stands[each] for each in callee.unlearned})
        attribute = getattr(callee, name)
        result = attribute(*values) if callable(attribute) else attribute
        if isinstance(callee, Key) and name == "release":
            if not isinstance(result, Release):
                raise ContractError("a key must release a Release, got {}".format(type(result).__name__))
            return self._handle(result, "Release")
        return result

    def _shown(self, value: Any) -> Any:
        """The value, or a handle for an object that stays here."""
        if isinstance(value, Handle):
            return value
        kind = _kind(value) or ("Classifier" if callable(value) else None)
        return value if kind is None else self._handle(value, kind)

    def _handle(self, value: Any, kind: str) -> Handle:
        number = next(self._numbers)
        self._objects[number] = value
        return Handle(number, kind)

    def _packed(self, value: Any) -> Any:
        """A value as JSON; its arrays go into the answer's file."""
        tensors: Dict[str, Any] = {}

        def keep(part: Array) -> str:
            tensors["t{}".format(len(tensors))] = part
            return "t{}".format(len(tensors) - 1)

        packed = pack(value, keep)
        if tensors:
            write_tensors(os.path.join(self._task["folder"], "out", "{}.safetensors".format(self._asked)), tensors)
        return packed

    def _unpacked(self, part: Any) -> Any:
        return unpack(
            part, self._find, lambda state: None if self._known is None else self._known.load_generator(state)
        )

    def _find(self, place: Sequence[Any]) -> Array:
        number, name = place
        kind, array = read_tensor(os.path.join(self._task["folder"], "in", "{}.safetensors".format(number)), name)
        if self._cls.arrays == "torch":
            torch = importlib.import_module("torch")
            tensor = torch.from_numpy(np.array(array))
            return (tensor.view(torch.bfloat16) if kind == "BF16" else tensor).to(self._task["device"])
        if kind == "BF16":
            return (array.view("<u2").astype("<u4") << 16).view("<f4")
        return array


def _kind(value: Any) -> Optional[str]:
    own = {"Method": Method, "Scheme": Scheme, "Key": Key, "Generator": Generator, "Attack": Attack,
           "Attacker": Attacker, "PairScores": PairScores}  # fmt: skip
    return next((name for name, cls in own.items() if isinstance(value, cls)), None)


# Descriptions.


def load(target: str) -> Any:
    """The class that MODULE:CLASS or FILE.py:CLASS names."""
    path, _, attribute = target.rpartition(":")
    return getattr(_module(path), attribute)


def _module(path: str) -> types.ModuleType:
    if not path.endswith(".py"):
        return importlib.import_module(path)
    name = "bench_plugin_{}_{}".format(os.path.basename(path)[:-3], hashlib.sha256(path.encode()).hexdigest()[:8])
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def construct(cls: Any, argument: Optional[str], parameters: Sequence[Sequence[Any]], preset: str) -> Any:
    """The plug-in with parameters over the preset's. Raises ValueError for others."""
    if not dataclasses.is_dataclass(cls):
        raise ValueError("{} must be a frozen dataclass, whose fields are its parameters".format(cls.__name__))
    kind: Any = cls
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # `int | None` on an old Python: the default decides
        hints = {field.name: type(field.default) for field in dataclasses.fields(cls)}
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    given = {str(name): value for name, value in parameters}
    if argument is not None:
        if not names:
            raise ValueError("{} takes no argument, got {!r}".format(kind.name, argument))
        given[names[0]] = argument
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError("{} has no parameter {!r}; known: {}".format(kind.name, unknown[0], ", ".join(names)))
    values = dict(kind.presets.get(preset, {}))
    values.update({name: _converted(value, hints.get(name, str), name) for name, value in given.items()})
    return kind(**values)


def _converted(value: Any, hint: Any, name: str) -> Any:
    """A written value as its annotated type."""
    unions = (Union, getattr(types, "UnionType", Union))
    options = typing.get_args(hint) if typing.get_origin(hint) in unions else (hint,)
    text = str(value)
    words = {"true": True, "yes": True, "false": False, "no": False}
    for option in options:
        if typing.get_origin(option) is typing.Literal:
            for choice in typing.get_args(option):
                if text == str(choice):
                    return choice
        elif option in (None, type(None)) and text.lower() in ("none", "null"):
            return None
        elif option is bool and text.lower() in words:
            return words[text.lower()]
        elif option in (int, float):
            try:
                return option(text)
            except ValueError:
                continue
        elif option is str:
            return text
    raise ValueError("{} must be {}, got {!r}".format(name, " or ".join(map(_annotated, options)), value))


def description(group: str, plugin: Any, name: str) -> Dict[str, Any]:
    """A plug-in's description, as `bench.plugins.self_description` writes it."""
    cls = type(plugin)
    missing = [each for each in SAID[group] if not hasattr(plugin, each)]
    if missing:
        raise ValueError("{} must say its {}: class variables of text".format(name, " and its ".join(missing)))
    fields = [field for field in dataclasses.fields(cls) if field.init]
    usual = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
    values = {field.name: getattr(plugin, field.name) for field in fields}
    inside = ",".join("{}={}".format(each, _text(values[each])) for each in sorted(values))
    said = {each: getattr(plugin, each) for each in SAID[group]}
    return {
        "spec": name + ("[" + inside + "]" if inside else ""),
        "class": cls.__name__,
        "said": {each: sorted(value) if isinstance(value, frozenset) else value for each, value in said.items()},
        "confidential": sorted(getattr(cls, "confidential", ())),
        "parameters": [[each, value] for each, value in values.items()],
        "defaults": usual,
    }


def _text(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def plugins(task: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
    """Every plug-in of the environment, or of files, with its descriptions."""
    for group, name, target, origin, version in _places(task):
        shown: Dict[str, Any] = {"group": group, "target": target, "origin": origin, "version": version}
        try:
            cls = load(target)
            name = shown["name"] = name or cls.name
            module = sys.modules[cls.__module__]
            shown.update(
                about=(inspect.getdoc(cls) or "").partition("\n")[0],
                text=inspect.getdoc(module) or "",
                kinds=[[field.name, _annotated(field.type)] for field in dataclasses.fields(cls)],
                presets={preset: described({**task, **shown, "preset": preset}) for preset in task["presets"]},
            )
        except BaseException as error:  # a plug-in may fail in any way, and says so in the list
            traceback.print_exc()
            shown.update(name=name or target, error=told(error)[1])
        yield shown


def _annotated(hint: Any) -> str:
    return hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))


def described(task: Mapping[str, Any]) -> Dict[str, Any]:
    """The description that a task asks for: {"ok"} or {"error"}."""
    group, name = task["group"], task["name"]
    try:
        if hosted_by_bench(load(task["target"])):
            registry = importlib.import_module("bench.plugins.registry")
            registry.inhabit({(group, name): task["target"]})
            own = importlib.import_module("bench.plugins.self_description")
            return {"ok": own.description(group, task.get("spec", name), task["preset"])}
        made = construct(load(task["target"]), task.get("argument"), task.get("parameters", ()), task["preset"])
        return {"ok": description(group, made, name)}
    except BaseException as error:  # whatever the author's class does becomes a sentence
        if not isinstance(error, (ValueError, ContractError)) and type(error).__name__ != "UsageError":
            traceback.print_exc()
        kind = "" if isinstance(error, ValueError) or type(error).__name__ == "UsageError" else type(error).__name__
        return {"error": "{} cannot be used: {}{}{}".format(name, kind, ": " if kind else "", told(error)[1].partition(
            ": ")[2] if told(error)[0] == "outside" else told(error)[1])}  # fmt: skip


def _places(task: Mapping[str, Any]) -> Iterator[Tuple[str, str, str, str, str]]:
    """Group, name, target, distribution and version of each plug-in."""
    for path in task["files"]:
        module = _module(path)
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__ and getattr(value, "name", None):
                bases = [cls.__name__ for cls in inspect.getmro(value)]
                for group, base in zip(GROUPS, ("Method", "Attack")):  # noqa: B905  (strict is of Python 3.10)
                    if base in bases and not inspect.isabstract(value):
                        yield group, "", "{}:{}".format(path, value.__name__), os.path.basename(path), ""
    if task["files"]:
        return
    from importlib.metadata import distributions

    for found in distributions():
        for point in found.entry_points:
            group = point.group.partition("bench.")[2]
            if group in GROUPS and point.value.partition(".")[0] not in task["own"]:
                yield group, point.name, point.value, found.metadata["Name"], found.version


def has_bench() -> bool:
    """If this environment has this project. Raises ContractError for another version."""
    try:
        found = importlib.util.find_spec("bench.room_side")
    except (ImportError, ValueError):
        return False
    if found is None or found.origin is None:
        return False
    if importlib.import_module("bench.room_side").PROTOCOL != PROTOCOL:
        raise ContractError("the environment has another version of veil-bench: add the plug-in again")
    return True


def hosted_by_bench(cls: Any) -> bool:
    """If `bench.isolation.plugin_host` hosts a class: it derives from the project's own types."""
    contract = sys.modules.get("bench.contract.plugin")  # imported by then
    return contract is not None and issubclass(cls, contract.Plugin)


def offer() -> None:
    """Let plug-ins import this module by its names."""
    own = sys.modules[__name__]
    sys.modules["bench_room"] = own
    if not has_bench():
        package = types.ModuleType("bench")
        package.__path__ = []
        sys.modules["bench"] = package
        for name in ("types", "randomness", "progress"):
            sys.modules["bench." + name] = own
            setattr(package, name, own)


class Forwarder(logging.Handler):
    """Sends each progress message to the judge."""

    def __init__(self, writing: int) -> None:
        super().__init__(logging.INFO)
        self._writing = writing

    def emit(self, record: logging.LogRecord) -> None:
        """Send one message; a stage has 0 of 0 steps."""
        args = record.args if isinstance(record.args, tuple) and len(record.args) == 3 else (record.getMessage(), 0, 0)
        send(self._writing, {"progress": list(args)})


def serve(task: Mapping[str, Any]) -> NoReturn:
    """Answer calls until the judge is gone."""
    if hosted_by_bench(load(task["target"])):
        importlib.import_module("bench.plugins.registry").inhabit({(task["group"], task["name"]): task["target"]})
        names = ("group", "spec", "preset", "device", "threads", "requests", "answers", "folder", "memory")
        importlib.import_module("bench.isolation.plugin_host").main([str(task[name]) for name in names])
    reading, writing = task["requests"], task["answers"]
    threading.Thread(target=_end_with_judge, args=(reading,), daemon=True).start()
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    LOGGER.addHandler(Forwarder(writing))
    if load(task["target"]).arrays == "torch":
        importlib.import_module("torch").set_num_threads(task["threads"])
    host = Host(task)
    while True:
        try:
            request = receive(reading)
        except EOFError:
            sys.exit(0)
        if "forget" in request:
            host.forget(request["forget"])
            continue
        try:
            send(writing, host.answer(request))
        except (ContractError, ValueError) as error:
            reason = "what a plug-in hands over must be plain JSON of bounded size: {}".format(error)
            send(writing, {"number": request["number"], "error": ["contract", reason[:TEXT_CHARACTERS]]})


def check(task: Mapping[str, Any]) -> None:
    """Run the contract suite of this environment's copy of the project."""
    if not hosted_by_bench(load(task["target"])):
        advice = "try it by `bench run --method {} --dataset digits --preset smoke`".format(task["name"])
        text = "the contract suite is for plug-ins of bench.types beside veil-bench; {}".format(advice)
        send(task["answer"], {"error": text})
        return
    importlib.import_module("bench.plugins.registry").inhabit({(task["group"], task["name"]): task["target"]})
    pipe = importlib.import_module("multiprocessing.connection").Connection(task["answer"], readable=False)
    importlib.import_module("bench.conformance.isolated_check").work(task["spec"], task["device"], pipe)


def _end_with_judge(reading: int) -> None:
    """End this process when the judge closes its end."""
    watch = select.poll()
    watch.register(reading, 0)  # reports a broken connection, and nothing else
    watch.poll()
    os._exit(1)


def main() -> None:
    """Do what the judge told: list, describe or serve."""
    sys.modules.setdefault("room_side", sys.modules[__name__])
    task = json.loads(sys.argv[1])
    if task["mode"] == "serve":
        offer()
        serve(task)
    if task["mode"] == "check":
        offer()
        check(task)
        return
    send(task["answer"], {"began": True})
    try:
        offer()
        answer: Dict[str, Any] = {"ok": list(plugins(task))} if task["mode"] == "list" else described(task)
    except BaseException as error:
        traceback.print_exc()
        answer = {"error": told(error)[1]}
    try:
        send(task["answer"], answer)
    except (ContractError, ValueError, TypeError) as error:
        send(
            task["answer"], {"error": "parameters and class variables must be plain numbers and text: {}".format(error)}
        )
    os._exit(0)


if __name__ == "__main__":
    main()
