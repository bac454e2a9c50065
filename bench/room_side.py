"""Host of a plug-in, for Python 3.8 or later and numpy.

The judge starts it with the interpreter of the plug-in's environment: `PYTHON -I -B room_side.py TASK`, where TASK is a
JSON object. Calls and answers are messages: a length in four bytes, highest first, and JSON. Tensors are in safetensors
files beside them. It checks little: the judge checks what comes out of it.

A plug-in imports `room_types.py`, which lies beside this file. If its environment has this project and it derives from
`bench.types`, the project's own modules host it (`HOSTS`).
"""

from __future__ import annotations

__figures__ = False

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import json
import math
import os
import select
import sys
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple

import numpy as np


def module_of(path: str, name: str) -> Any:
    """The module of a file, which is executed once."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


if TYPE_CHECKING or __name__ != "__main__":
    from bench import room_types as contract
else:
    contract = module_of(os.path.join(os.path.dirname(os.path.abspath(__file__)), "room_types.py"), "bench_room")

PROTOCOL = 4
"""Rises when calls change: an environment with another number in its own copy of this project is refused."""
HEAD = 4
MESSAGE_BYTES = 1 << 24
TEXT_CHARACTERS = 2_000
GROUPS = {"Method": "methods", "Attack": "attacks"}
HOSTS = {
    "describe": "bench.plugins.self_description", "serve": "bench.isolation.plugin_host",
    "check": "bench.conformance.isolated_check",
}  # fmt: skip
"""Modules of this project that do the same for plug-ins of `bench.types`, by their function `host`."""
KINDS = {
    "hold": "Dataset", "load": "Scheme", "sample_key": "Key", "load_key": "Key", "load_generator": "Generator",
    "mechanism": "Mechanism", "classifier": "Classifier", "release": "Release", "score": "PairScores",
    "score_knowing": "PairScores",
}  # fmt: skip
"""Calls whose results stay here, and what they are."""
OWN = ("query", "decode", "classifier", "log_density", "noise", "stopped")
"""Functions of a key or a mechanism that it need not override."""
PLAIN = ("exact", "rowwise", "scale", "fence")
"""Properties of a mechanism."""
ROOM: Dict[str, Any] = {}
"""The task of this process; empty outside of rooms."""
KEPT = "training-0.safetensors"
DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4",
    "F64": "<f8",
}  # fmt: skip
"""Names of the safetensors format."""
RECORDS: Mapping[str, type] = {
    "dataset": contract.Dataset, "claim": contract.PrivacyClaim, "release": contract.Release,
    "curve": contract.LearningCurve,
}  # fmt: skip
ERRORS: Mapping[str, type] = {
    "not-applicable": contract.NotApplicable, "contract": contract.ContractError, "value": ValueError,
    "memory": MemoryError,
}  # fmt: skip
"""The errors that mean the same on both sides."""


def send(descriptor: int, message: Mapping[str, Any]) -> None:
    """Write a message."""
    content = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=sorted).encode()
    if len(content) > MESSAGE_BYTES:
        raise contract.ContractError("a message must take at most {} bytes, got {}".format(MESSAGE_BYTES, len(content)))
    left = memoryview(len(content).to_bytes(HEAD, "big") + content)
    while left:
        left = left[os.write(descriptor, left) :]


def receive(descriptor: int) -> Dict[str, Any]:
    """The next message. Raises EOFError when the judge has closed its end."""
    parts, length = [b"", b""], HEAD
    for number in (0, 1):
        while len(parts[number]) < length:
            more = os.read(descriptor, length - len(parts[number]))
            if not more:
                raise EOFError
            parts[number] += more
        length = int.from_bytes(parts[0], "big")
    return dict(json.loads(parts[1].decode()))


def write_tensors(path: str, tensors: contract.State) -> None:
    """Write a new safetensors file, whose library old interpreters have not."""
    names = {code: name for name, code in DTYPES.items()}
    arrays = {name: np.asarray(t.detach().cpu() if _is_torch(t) else t) for name, t in tensors.items()}
    header, at = {}, 0  # type: Dict[str, Any], int
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))  # so that each is aligned
    for name in order:
        array = arrays[name] = arrays[name].astype(arrays[name].dtype.newbyteorder("<"))
        if array.dtype.str not in names:
            raise contract.ContractError("an array must be of a plain dtype, got {}".format(array.dtype))
        end = at + array.nbytes
        header[name] = {"dtype": names[array.dtype.str], "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "xb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(arrays[name].tobytes())


def read_tensors(path: str) -> Dict[str, Any]:
    """The arrays of a safetensors file, which are read-only and on disk."""
    with open(path, "rb") as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(begin - 8).decode())
    header.pop("__metadata__", None)
    data = np.memmap(path, "u1", "r") if os.path.getsize(path) > begin else np.zeros(begin, "u1")
    return {
        name: np.asarray(data[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]])
        .view(DTYPES[entry["dtype"]]).reshape(entry["shape"]) for name, entry in header.items()
    }  # fmt: skip


def pack(value: Any, keep: Callable[[contract.Array], Any]) -> Any:
    """A value as JSON, as `bench.isolation.rpc_codec.pack` writes it."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) else {"$number": str(float(value))}
    if isinstance(value, np.ndarray) or _is_torch(value):
        return {"$tensor": keep(value)}
    if isinstance(value, contract.Secret):
        return {"$secret": value.content.hex()}
    if isinstance(value, Handle):
        return {"$handle": [value.number, value.kind]}
    for name, cls in RECORDS.items():
        if isinstance(value, cls):
            parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(cls)}
            if parts.get("generator") is not None:
                parts["generator"] = parts["generator"].state()
            return {"$" + name: pack(parts, keep)}
    if isinstance(value, Mapping):
        return {"$map": [[str(name), pack(inner, keep)] for name, inner in value.items()]}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [pack(inner, keep) for inner in value]
    raise contract.ContractError(
        "a plug-in may hand over numbers, text and arrays, got {}".format(type(value).__name__)
    )


def unpack(found: Any, find: Callable[[Any], contract.Array], generator: Callable[[contract.State], Any]) -> Any:
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
        rows, divisor = find(content[0]), content[1]
        if _is_torch(rows):
            rows = rows.to(getattr(sys.modules["torch"], content[2]))
            return rows if divisor is None else rows / sys.modules["torch"].tensor(divisor, dtype=rows.dtype)
        rows = rows.astype(content[2])
        return rows if divisor is None else rows / rows.dtype.type(divisor)
    if sign == "$secret":
        return contract.Secret(bytes.fromhex(content))
    if sign == "$handle":
        return Handle(*content)
    if sign == "$map":
        return {name: unpack(part, find, generator) for name, part in content}
    if sign == "$learned":
        return unpack(content[1], find, generator)
    values = unpack(content, find, generator)
    if values.get("generator") is not None:
        values["generator"] = generator(values["generator"])
    if "findings" in values:
        values["findings"] = tuple(values["findings"])
    return RECORDS[sign[1:]](**values)


def _is_torch(value: Any) -> bool:
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


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


# Calls.


class Handle:
    """A reference to an object of another process, of type `kind`."""

    def __init__(self, number: int, kind: str) -> None:
        self.number, self.kind = number, kind


class Known:
    """An object of another process, which Eve calls through the judge."""

    def __init__(self, host: Host, handle: Handle) -> None:
        self._host, self._handle = host, handle

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._handle.kind == "Mechanism" and name in PLAIN:
            return self._host.relay(self._handle, name)
        return lambda *values: self._host.relay(self._handle, name, *values)


class KnownGenerator(contract.Generator):
    """A published generator, which the method's process loads when it draws."""

    def __init__(self, host: Host, state: contract.State) -> None:
        self._host, self._state = host, state

    def sample(self, count: int, seed: int) -> contract.Release:
        """As the generator draws them."""
        drawn: contract.Release = self._host.known.load_generator(self._state).sample(count, seed)
        return drawn

    def state(self) -> contract.State:
        """All that is published."""
        return self._state


class Host:
    """The objects of this process, and the calls to them.

    Args:
        cls: The plug-in's class.
    """

    def __init__(self, cls: Any) -> None:
        self._cls, self._numbers = cls, itertools.count(1)
        self._objects: Dict[int, Any] = {}
        self._asked, self._forgotten = 0, []  # type: int, List[int]
        self.known: Any = None

    def answer(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        """The answer to a request: {"number", "ok"} or {"number", "error"}."""
        self._asked = request["number"]
        try:
            values = [self._objects[part.number] if isinstance(part, Handle) else part
                      for part in self._unpacked(request["with"])]  # fmt: skip
            return {"number": self._asked, "ok": self._packed(self._ask(request["whom"], request["what"], values))}
        except BaseException as error:  # any error of a plug-in becomes an answer; the log has its trace
            if not isinstance(error, (contract.NotApplicable, contract.ContractError, MemoryError)):
                traceback.print_exc()
            return {"number": self._asked, "error": told(error)}

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop objects that the judge no longer uses."""
        for number in numbers:
            self._objects.pop(number, None)

    def relay(self, target: Optional[Handle], name: str, *values: Any) -> Any:
        """Call the judge, who awaits this process's answer meanwhile."""
        dropped, self._forgotten[:] = self._forgotten[:], []
        whom = None if target is None else target.number
        send(ROOM["answers"], {"asks": name, "whom": whom, "with": self._packed(list(values)), "forgot": dropped})
        answer = receive(ROOM["requests"])
        if "error" in answer:
            kind, text = answer["error"]
            raise ERRORS.get(kind, contract.OutsideError)(text)
        result = self._unpacked(answer["ok"])
        if not isinstance(result, Handle):
            return result
        weakref.finalize(result, self._forgotten.append, result.number).atexit = False
        return self.relay(result, "fetch") if result.kind == "Release" else Known(self, result)

    def _ask(self, target: Optional[int], name: str, values: List[Any]) -> Any:
        if target is not None:
            callee = self._objects[target]
        elif name != "hold":
            callee = construct(self._cls, ROOM)
        if name == "hold":
            result = values[0]
        elif name == "fetch":
            return self._objects.pop(target)  # type: ignore[arg-type]
        elif name == "own":
            usual = contract.Key if isinstance(callee, contract.Key) else object
            return [own for own in OWN if getattr(type(callee), own, None) is not getattr(usual, own, None)]
        elif name == "call":
            return callee(*values)
        elif name == "block":
            return callee.block(slice(*values[:2]), slice(*values[2:]))
        elif name == "fit" and GROUPS["Attack"] == ROOM["group"]:
            self.known = self.relay(None, "load", values[1])
            result = callee.fit(contract.View(values[0], self.known, values[2], values[3], *values[5:]), values[4])
        elif name == "fit":
            stands: Dict[str, Any] = {field.name: field.default for field in dataclasses.fields(self._cls)}
            result = dataclasses.replace(callee, **{each: stands[each] for each in callee.unlearned}).fit(*values)
        else:
            result = getattr(callee, name)
            result = result(*values) if callable(result) else result
        kind = KINDS.get(name) or ({"methods": "Scheme", "attacks": "Attacker"}[ROOM["group"]] if name == "fit" else "")
        if not kind or result is None:
            return result
        number = next(self._numbers)
        self._objects[number] = result
        return Handle(number, kind)

    def _packed(self, value: Any) -> Any:
        """A value as JSON; its arrays go into the answer's file."""
        tensors: Dict[str, Any] = {}
        packed = pack(value, lambda part: [tensors.update({"t{}".format(len(tensors)): part}), list(tensors)[-1]][1])
        if tensors:
            write_tensors(os.path.join(ROOM["folder"], "out", "{}.safetensors".format(self._asked)), tensors)
        return packed

    def _unpacked(self, part: Any) -> Any:
        return unpack(part, self._find, lambda state: KnownGenerator(self, state))

    def _find(self, place: Sequence[Any]) -> contract.Array:
        array = read_tensors(os.path.join(ROOM["folder"], "in", "{}.safetensors".format(place[0])))[place[1]]
        if self._cls.arrays != "torch":
            return array
        return importlib.import_module("torch").from_numpy(np.array(array)).to(ROOM["device"])


# Descriptions.


def load(target: str) -> Any:
    """The class that MODULE:CLASS or FILE.py:CLASS names."""
    path, _, attribute = target.rpartition(":")
    return getattr(_module(path), attribute)


def _module(path: str) -> Any:
    if not path.endswith(".py"):
        return importlib.import_module(path)
    return module_of(path, "bench_plugin_{}".format(hashlib.sha256(path.encode()).hexdigest()[:8]))


def construct(cls: Any, task: Mapping[str, Any]) -> Any:
    """The plug-in with the task's values over its preset's."""
    if "__dataclass_fields__" not in vars(cls):
        raise ValueError("{} must be a frozen dataclass, whose fields are its parameters".format(cls.__name__))
    return cls(**{**cls.presets.get(task["preset"], {}), **task.get("values", {})})


def described(cls: Any, task: Mapping[str, Any]) -> Dict[str, Any]:
    """A plug-in's description of itself: {"ok"} or {"error"}."""
    try:
        if own_types(cls):
            return dict(importlib.import_module(HOSTS["describe"]).described(task))
        made, fields = construct(cls, task), [field for field in dataclasses.fields(cls) if field.init]
        words = {name: getattr(made, name) for name in task["words"][task["group"]] if hasattr(made, name)}
        usual = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
        return {"ok": {
            "class": cls.__name__, "said": words, "confidential": sorted(getattr(cls, "confidential", ())),
            "parameters": [[field.name, getattr(made, field.name)] for field in fields], "defaults": usual,
        }}  # fmt: skip
    except BaseException as error:  # whatever the author's class does becomes a sentence
        return _refused(task["name"], error)


def _refused(name: str, error: BaseException) -> Dict[str, Any]:
    if not isinstance(error, (ValueError, contract.ContractError)):
        traceback.print_exc()
    return {"error": "{} cannot be used: {}".format(name, told(error)[1])}


def plugins(task: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
    """Every plug-in of the environment, or of files, with its descriptions."""
    for group, name, target, origin, version in _places(task):
        shown: Dict[str, Any] = {"group": group, "target": target, "origin": origin, "version": version}
        try:
            cls = load(target)
            name = shown["name"] = name or cls.name
            shown.update(
                about=(inspect.getdoc(cls) or "").partition("\n")[0],
                text=inspect.getdoc(sys.modules[cls.__module__]) or "",
                kinds=[[field.name, _annotated(field.type)] for field in dataclasses.fields(cls)],
                presets={preset: described(cls, {**task, **shown, "preset": preset}) for preset in task["presets"]},
            )
        except BaseException as error:  # a plug-in may fail in any way, and says so in the list
            shown.update(name=name or target, **_refused(name or target, error))
        yield shown


def _annotated(hint: Any) -> str:
    return hint if isinstance(hint, str) else hint.__name__ if isinstance(hint, type) else str(hint)


def _places(task: Mapping[str, Any]) -> Iterator[Tuple[str, str, str, str, str]]:
    """Group, name, target, distribution and version of each plug-in."""
    for path in task["files"]:
        module = _module(path)
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__ and getattr(value, "name", None):
                bases = [GROUPS[cls.__name__] for cls in inspect.getmro(value) if cls.__name__ in GROUPS]
                if bases and not inspect.isabstract(value):
                    yield bases[0], "", "{}:{}".format(path, value.__name__), os.path.basename(path), ""
    if not task["files"]:
        from importlib.metadata import distributions

        for found in distributions():
            for point in found.entry_points:
                group = point.group.partition("bench.")[2]
                if group in GROUPS.values() and point.value.partition(".")[0] not in task["own"]:
                    yield group, point.name, point.value, found.metadata["Name"], found.version


def offer() -> None:
    """Let plug-ins import the types by their names.

    Raises:
        ContractError: The environment has another version of this project.
    """
    try:
        found = importlib.util.find_spec("bench.room_side")
    except (ImportError, ValueError):
        found = None
    contract.report, contract.keep, contract.kept = report, keep, kept
    contract.stage = lambda name: report(name, 0, 0)
    if found is None:
        for name in ("bench", "bench.types", "bench.randomness", "bench.progress"):
            sys.modules[name] = contract
            setattr(contract, name.partition(".")[2] or name, contract)
    elif importlib.import_module("bench.room_side").PROTOCOL != PROTOCOL:
        raise contract.ContractError("the environment has another version of veil-bench: add the plug-in again")


def own_types(cls: Any) -> bool:
    """If a class derives from this project's types."""
    found = sys.modules.get("bench.contract.plugin")  # imported by then
    return found is not None and issubclass(cls, found.Plugin)


# The process.


def report(what: str, done: int, total: int) -> None:
    """As `room_types.report`, to the judge."""
    if "answers" in ROOM:
        send(ROOM["answers"], {"progress": [what, done, total]})


def keep(arrays: contract.State) -> None:
    """As `room_types.keep`, in the folder that the judge looks at."""
    if "folder" in ROOM:
        new = os.path.join(ROOM["folder"], "kept", "new")
        if os.path.exists(new):
            os.unlink(new)
        write_tensors(new, arrays)
        os.replace(new, os.path.join(ROOM["folder"], "kept", KEPT))


def kept() -> Optional[Dict[str, contract.Array]]:
    """As `room_types.kept`."""
    path = os.path.join(ROOM.get("folder", ""), "in", KEPT)
    return read_tensors(path) if "folder" in ROOM and os.path.exists(path) else None


def serve(cls: Any) -> NoReturn:
    """Answer calls until the judge is gone."""
    threading.Thread(target=_end_with_judge, args=(ROOM["requests"],), daemon=True).start()
    if cls.arrays == "torch":
        torch = importlib.import_module("torch")
        torch.set_num_threads(ROOM["threads"])
        if ROOM["device"] != "cpu":  # the same bits each time, and float32 without rounding
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True)
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    host = Host(cls)
    while True:
        try:
            request = receive(ROOM["requests"])
        except EOFError:
            sys.exit(0)
        if "forget" in request:
            host.forget(request["forget"])
            continue
        try:
            send(ROOM["answers"], host.answer(request))
        except (contract.ContractError, ValueError, TypeError) as error:
            reason = "what a plug-in hands over must be plain JSON of bounded size: {}".format(error)
            send(ROOM["answers"], {"number": request["number"], "error": ["contract", reason[:TEXT_CHARACTERS]]})


def _end_with_judge(reading: int) -> None:
    """End this process when the judge closes its end."""
    watch = select.poll()
    watch.register(reading, 0)  # reports a broken connection, and nothing else
    watch.poll()
    os._exit(1)


def refuse_debugger(*arguments: object, **options: object) -> None:
    """A hook for `breakpoint()` in processes that no terminal belongs to."""
    raise RuntimeError(
        "breakpoint() needs a terminal, and this process has none: `bench debug` runs a plug-in with one"
    )


def main() -> None:
    """Do what the task says: list, describe, serve or check."""
    sys.breakpointhook = refuse_debugger
    task = json.loads(sys.argv[1])
    mode = task["mode"]
    if mode in ("serve", "check"):
        ROOM.update(task)
        offer()
        cls = load(task["target"])
        if own_types(cls):
            importlib.import_module(HOSTS[mode]).host(task)
        elif mode == "serve":
            serve(cls)
        else:
            advice = "try it by `bench run --method {} --dataset digits --preset smoke`".format(task["name"])
            text = "the contract suite is for plug-ins of bench.types beside veil-bench; {}".format(advice)
            send(task["answer"], {"error": text})
        return
    send(task["answer"], {"began": True})
    try:
        offer()
        answer = {"ok": list(plugins(task))} if mode == "list" else described(load(task["target"]), task)
    except BaseException as error:
        answer = _refused(task["name"], error)
    try:
        send(task["answer"], answer)
    except (contract.ContractError, ValueError, TypeError) as error:
        text = "parameters and class variables must be plain numbers and text: {}".format(error)
        send(task["answer"], {"error": text})
    os._exit(0)


if __name__ == "__main__":
    main()
