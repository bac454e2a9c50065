"""A CUDA device that is simulated on the host: values are computed by the CPU, the device of each storage is tracked.

What a first run on a GPU would stumble over raises here (`DeviceError`): tensors of two devices in one operation, a
generator of the wrong device, a device tensor given to NumPy. What would make it crawl is counted by the line of this
project that asked for it: times at which the host waits for the device, and copies between the two.

Not simulated: streams, memory, numerical differences, libraries that look into storages without torch.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from unittest.mock import patch

import torch
import torch._dynamo  # (it looks at torch.cuda when it is imported, which must not be while that is patched)
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.determinism import FORMS
from bench.memory.rows import Rows
from bench.memory.torch_functions import ABOUT
from bench.nets import training as replay

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
ROOT = Path(__file__).parents[2]
ROOMS = ("bench", "methods", "attacks", "metrics", "tests")  # an environment may lie beside them

_COPIES = {"_to_copy", "copy_", "copy", "set_", "set_data", "lift_fresh", "lift_fresh_copy"}
_INDEXING = {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_"}
_ALL_ON_ONE = {"cat", "stack", "index_select", "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "mm",
               "bmm", "addmm", "baddbmm", "convolution", "embedding", "where_"}  # fmt: skip
"""Operations that take no CPU tensor beside those of the device, not even a scalar one."""
_WAITS = {"_local_scalar_dense", "nonzero", "nonzero_numpy", "masked_select", "_unique2", "unique_dim",
          "unique_consecutive", "unique_dim_consecutive", "bincount", "equal", "is_nonzero", "_linalg_eigh",
          "_linalg_svd", "linalg_cholesky_ex", "linalg_lu_factor_ex", "_linalg_solve_ex", "linalg_eigh",
          "_linalg_check_errors", "linalg_qr", "histc", "_linalg_det", "linalg_lstsq", "linalg_pinv", "allclose",
          "multinomial"}  # fmt: skip
"""Operations that cannot go on before the device has answered: their result's size or success is asked for."""
_UNREPEATABLE = {"kthvalue", "median.dim", "nanmedian.dim", "histc", "put_", "_adaptive_avg_pool2d_backward",
                 "_adaptive_avg_pool3d_backward", "avg_pool3d_backward", "adaptive_max_pool2d_backward",
                 "fractional_max_pool2d_backward", "max_pool3d_with_indices_backward", "max_unpool2d",
                 "reflection_pad1d_backward", "reflection_pad2d_backward", "replication_pad1d_backward",
                 "replication_pad2d_backward", "upsample_linear1d_backward", "upsample_bilinear2d_backward",
                 "upsample_bicubic2d_backward", "nll_loss2d_forward", "nll_loss2d_backward", "_ctc_loss",
                 "grid_sampler_2d_backward", "grid_sampler_3d_backward",
                 "_embedding_bag_backward"} - FORMS.keys()  # fmt: skip
"""Operations that torch refuses on CUDA where the same work must give the same bits (sums along an axis, below)."""
_HOST_ONLY = {"histogram", "_histogramdd_bin_edges", "_histogramdd_from_bin_cts", "_histogramdd_from_bin_tensors"}
"""Operations that CUDA has no kernel for."""


class DeviceError(RuntimeError):
    """What CUDA would refuse."""


class SimulatedCuda(contextlib.AbstractContextManager["SimulatedCuda"]):
    """While it is entered, "cuda" is a device of this machine.

    Attributes:
        waits: How often the host waits for the device, by operation and line of this project.
        uploads, downloads: Copies from the host and to it, by line.
    """

    def __init__(self) -> None:
        self.waits: Counter[tuple[str, str]] = Counter()
        self.uploads: Counter[str] = Counter()
        self.downloads: Counter[str] = Counter()
        self._there: dict[int, StorageWeakRef] = {}
        self._marked = 0
        self._entered = contextlib.ExitStack()

    def __enter__(self) -> SimulatedCuda:
        """Pretend."""
        for target, name, value in self._patches():
            self._entered.enter_context(patch.object(target, name, value))
        self._entered.callback(torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled())
        self._entered.enter_context(_Calls(self))
        self._entered.enter_context(_Operations(self))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop pretending."""
        self._entered.close()

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor is on the device."""
        with torch._C.DisableTorchFunction():
            found = self._there.get(_place(tensor))
        return found is not None

    def put(self, tensor: Tensor, there: bool) -> Tensor:
        """Have a tensor's storage on the device, or on the host."""
        with torch._C.DisableTorchFunction():
            place = _place(tensor)
            if not there:
                self._there.pop(place, None)
                return tensor
            self._there[place] = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
        self._marked += 1
        if self._marked % 10_000 == 0:  # an address that was freed may come back on the host
            self._there = {key: ref for key, ref in self._there.items() if not ref.expired()}  # type: ignore[no-untyped-call]
        return tensor

    def moved(self, tensor: Tensor, there: bool) -> Tensor:
        """A copy on the other side, counted."""
        (self.uploads if there else self.downloads)[asked_by()] += 1
        with torch._C.DisableTorchFunction():
            copy = tensor.clone()
        return self.put(copy, there)

    def _waited(self, *_: object) -> None:
        self.waits["synchronize", asked_by()] += 1

    @property
    def total(self) -> int:
        """All waits and copies to the host."""
        return self.waits.total() + self.downloads.total()

    def _grouped(self, lists: list[list[Tensor | None]], with_indices: bool = False) -> dict[object, object]:
        groups = torch._C._group_tensors_by_device_and_dtype(lists, with_indices)
        return {
            (CUDA if tensors[0][0] is not None and self.holds(tensors[0][0]) else device, dtype): (tensors, indices)
            for (device, dtype), (tensors, indices) in groups.items()
        }

    def _patches(self) -> Iterator[tuple[object, str, object]]:
        nothing: Callable[..., None] = lambda *_, **__: None  # noqa: E731
        cuda = torch.cuda
        called: Callable[..., Tensor] = lambda step, inputs: step(*inputs)  # noqa: E731
        yield replay, "beside", called
        yield replay, "captured", lambda step, inputs: partial(step, *inputs)
        for name, value in {
            "is_available": lambda: True, "is_bf16_supported": lambda *_: True, "device_count": lambda: 1,
            "current_device": lambda: 0, "get_device_name": lambda *_: "simulated", "synchronize": self._waited,
            "memory_allocated": lambda *_: 0, "max_memory_allocated": lambda *_: 0,
            "reset_peak_memory_stats": nothing, "set_sync_debug_mode": nothing, "manual_seed": nothing,
            "manual_seed_all": nothing, "is_current_stream_capturing": lambda: False,
            "get_rng_state": lambda *_: torch.zeros(16, dtype=torch.uint8), "set_rng_state": nothing,
        }.items():  # fmt: skip
            yield cuda, name, value
        optimiser = sys.modules[torch.optim.Optimizer.__module__]  # (torch.optim does not show it)
        for module in (torch.nn.utils.clip_grad, torch.utils._foreach_utils, optimiser):  # these group tensors in C++
            yield module, "_group_tensors_by_device_and_dtype", self._grouped
        yield torch, "Generator", _Generator
        yield torch, "autocast", _Autocast
        yield torch.amp, "autocast", _Autocast
        yield torch.optim.Optimizer, "_accelerator_graph_capture_health_check", nothing


class _Generator(torch._C.Generator):
    """A generator that says where it is."""

    def __new__(cls, device: torch.device | str = "cpu") -> _Generator:
        made = super().__new__(cls)
        _generators[made._cdata] = torch.device(device).type  # type: ignore[attr-defined]
        return made

    def __init__(self, device: torch.device | str = "cpu") -> None:
        pass

    def clone_state(self) -> torch._C.Generator:
        """Another that goes on as this does, where this is."""
        made = super().clone_state()
        _generators[made._cdata] = _side(self)  # type: ignore[attr-defined]
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA if _side(self) == "cuda" else CPU


class _Autocast(torch.autocast):
    def __init__(self, device_type: str, *args: object, **options: object) -> None:
        super().__init__("cpu" if device_type == "cuda" else device_type, *args, **options)  # type: ignore[arg-type]


class _Calls(TorchFunctionMode):
    """Calls of torch: what asks for a device, or says which it is."""

    def __init__(self, simulated: SimulatedCuda) -> None:
        super().__init__()
        self._cuda = simulated

    def __torch_function__(
        self, func: Callable[..., object], types: Sequence[type], args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:  # fmt: skip
        options, name = dict(kwargs or {}), getattr(func, "__name__", "")
        rows = next((each for each in tree_leaves((args, options)) if isinstance(each, Rows)), None)
        if rows is not None and name in ABOUT:
            with torch._C.DisableTorchFunction():
                return func(*args, **options)  # they say themselves where they are
        if rows is not None:
            with self:  # what is read of them is copied, and what is computed with that is on the device
                return rows.__torch_function__(func, types, args, options)  # type: ignore[no-untyped-call]
        first = args[0] if args and isinstance(args[0], Tensor) else None
        there = first is not None and self._cuda.holds(first)
        if func == Tensor.device.__get__:
            return CUDA if there else CPU
        if func == Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return there
        if func == Tensor.is_cpu.__get__:  # type: ignore[attr-defined]
            return not there
        if func is Tensor.get_device:
            return 0 if there else -1
        if first is None or name not in {"to", "cpu", "cuda"}:
            if there and name in {"numpy", "__array__", "__dlpack__"}:
                raise DeviceError(f"a device tensor given to NumPy, in {asked_by()}")
            self._check_gradient(func, name, args, options)
            if there and name == "__setitem__" and not isinstance(args[2], Tensor) and _has_tensor(args[1]):
                self._cuda.uploads[asked_by()] += 1  # torch makes a tensor of the value on the host
            if there and name in {"tolist", "__repr__"}:
                self._cuda.waits[name, asked_by()] += 1
            if name in {"tensor", "as_tensor"} and first is None and (read := self._held(args)):
                self._cuda.waits[name, asked_by()] += read  # a list is read number by number
            if func is Tensor.__deepcopy__ or (name == "new_tensor" and "device" not in options):
                made = func(*args, **options)
                assert isinstance(made, Tensor)
                self._cuda.uploads[asked_by()] += there and name == "new_tensor"
                return self._cuda.put(made, there)
            return self._made(func, args, options)
        return self._to(func, name, first, args[1:], options)

    def _held(self, given: object) -> int:
        return sum(isinstance(each, Tensor) and self._cuda.holds(each) for each in tree_leaves(given))

    def _check_gradient(
        self, func: Callable[..., object], name: str, args: Sequence[object], options: Mapping[str, object]
    ) -> None:
        """A gradient is where its tensor is; autograd compares them without an operation of torch."""
        if name == "backward":
            given = options.get("gradient", args[1] if len(args) > 1 else None)
        elif func == Tensor.grad.__set__:  # type: ignore[union-attr]
            given = args[1]
        else:
            return
        if isinstance(given, Tensor) and self._cuda.holds(given) != self._cuda.holds(args[0]):  # type: ignore[arg-type]
            raise DeviceError(f"a gradient on the other device than its tensor, in {asked_by()}")

    def _made(self, func: Callable[..., object], args: Sequence[object], options: dict[str, object]) -> object:
        """What a call makes; where it names a device, on that."""
        device = options.pop("device", None)
        if device is None:
            _wanted.append(
                any(isinstance(each, Tensor) and self._cuda.holds(each) for each in tree_leaves((args, options)))
            )
            try:
                return func(*args, **options)
            finally:
                _wanted.pop()
        there = torch.device(str(device)).type == "cuda"
        given = next((each for each in tree_leaves((args, options)) if isinstance(each, torch._C.Generator)), None)
        if given is not None and _side(given) != ("cuda" if there else "cpu"):
            raise DeviceError(f"a generator on {_side(given)} for a tensor on {device}, in {asked_by()}")
        _wanted.append(there)
        try:
            made = func(*args, **options)
        finally:
            _wanted.pop()
        name = getattr(func, "__name__", "")
        if there and name in {"tensor", "as_tensor", "from_numpy", "asarray"}:
            self._cuda.uploads[asked_by()] += 1
        for each in tree_leaves(made):
            if isinstance(each, Tensor):
                self._cuda.put(each, there)
        return made

    def _to(
        self, func: Callable[..., object], name: str, tensor: Tensor, rest: Sequence[object], options: dict[str, object]
    ) -> Tensor:
        left = list(rest)
        there = self._cuda.holds(tensor)
        wanted = options.pop("device", None)
        if left and isinstance(left[0], Tensor):
            other = left.pop(0)
            assert isinstance(other, Tensor)
            wanted, left = (CUDA if self._cuda.holds(other) else CPU), [other.dtype, *left]
        elif left and (left[0] is None or isinstance(left[0], (str, torch.device, int))) and name != "cpu":
            wanted = left.pop(0)
        if name in {"cpu", "cuda"}:
            wanted, left = torch.device(name), []
        options.pop("non_blocking", None)
        left = [each for each in left if not isinstance(each, bool)]
        options = {key: value for key, value in options.items() if value is not None}
        found = tensor
        if left or options:
            found = Tensor.to(tensor, *left, **options)  # type: ignore[call-overload]
        if wanted is None or (torch.device(str(wanted)).type == "cuda") == there:
            return found
        return self._cuda.moved(found, not there)


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operations of torch, as kernels see them."""

    def __init__(self, simulated: SimulatedCuda) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._cuda = simulated

    def __torch_dispatch__(
        self, func: torch._ops.OpOverload, types: Sequence[type], args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:  # fmt: skip
        options, name = kwargs or {}, func._schema.name.removeprefix("aten::")
        given = [each for each in tree_leaves((args, options)) if isinstance(each, Tensor)]
        there = [self._cuda.holds(each) for each in given]
        if any(there) and name not in _COPIES:
            self._check_repeatable(func, name, given)
            self._check(name, args, given, there)
            self._check_written(func, args, options)
        self._check_generator(name, args, options, any(there))
        if any(there):
            self._count(name, args, options)
        if name == "copy_" and len(set(there[:2])) == 2:
            (self._cuda.uploads if there[0] else self._cuda.downloads)[asked_by()] += 1
        result = func(*args, **options)
        if given:
            on_device = there[0] if name in _COPIES or name in _INDEXING else any(there)
        else:  # made from nothing, within a call
            on_device = bool(_wanted) and _wanted[-1]
        with torch._C.DisableTorchFunction():
            known = {_place(each) for each in given}
            for each in tree_leaves(result):
                if isinstance(each, Tensor) and _place(each) not in known:
                    self._cuda.put(each, on_device)
        return result

    def _check(self, name: str, args: Sequence[object], given: Sequence[Tensor], there: Sequence[bool]) -> None:
        if name in _HOST_ONLY:
            raise DeviceError(f"{name} has no kernel for the device, in {asked_by(3)}")
        if name.startswith("_amp"):
            return
        if name.startswith(("_foreach", "_fused")):  # the first of each list together, the second, and so on
            lists = [each for each in args if isinstance(each, list) and each and isinstance(each[0], Tensor)]
            wrong = any(
                len({self._cuda.holds(each) for each in together if each.dim() or name.startswith("_fused")}) > 1
                for together in zip(*lists, strict=False)
            )
        elif name in _INDEXING:  # indices may be on either side of a tensor that is on the device
            values = args[2] if name.startswith(("index_put", "_index_put")) else None
            beside = isinstance(values, Tensor) and values.dim() > 0 and not self._cuda.holds(values)
            wrong = not there[0] or beside
        else:
            strict = name in _ALL_ON_ONE
            wrong = any(not on and (strict or each.dim() > 0) for each, on in zip(given, there, strict=True))
        if wrong:
            sides = ", ".join(
                f"{'cuda' if on else 'cpu'} {list(each.shape)}" for each, on in zip(given, there, strict=True)
            )
            raise DeviceError(f"{name} of tensors on two devices ({sides}), in {asked_by(3)}")

    @staticmethod
    def _check_repeatable(func: torch._ops.OpOverload, name: str, given: Sequence[Tensor]) -> None:
        fractions = given[0].is_floating_point() or given[0].is_complex()
        added = (name in {"cumsum", "cumsum_"} and fractions) or (name == "bincount" and len(given) > 1)
        if added or {name, f"{name}.{func._overloadname}"} & _UNREPEATABLE:
            raise DeviceError(f"{name} has no repeatable kernel on the device, in {asked_by(3)}")

    def _check_written(
        self, func: torch._ops.OpOverload, args: Sequence[object], options: Mapping[str, object]
    ) -> None:
        """What is computed on the device cannot be written into a tensor of the host, not even a number."""
        for at, argument in enumerate(func._schema.arguments):
            given = options.get(argument.name, args[at] if at < len(args) else None)
            written = argument.alias_info is not None and argument.alias_info.is_write
            if written and isinstance(given, Tensor) and not self._cuda.holds(given):
                raise DeviceError(f"{func} writes what the device has into a tensor of the host, in {asked_by(3)}")

    @staticmethod
    def _check_generator(name: str, args: Sequence[object], options: Mapping[str, object], there: bool) -> None:
        found = options.get("generator") or next((each for each in args if isinstance(each, torch._C.Generator)), None)
        if isinstance(found, torch._C.Generator):
            wanted = "cuda" if there or (_wanted and _wanted[-1]) else "cpu"
            if _side(found) != wanted:
                raise DeviceError(f"{name}: a generator on {_side(found)} for {wanted}, in {asked_by(3)}")

    def _count(self, name: str, args: Sequence[object], options: Mapping[str, object]) -> None:
        sized = (
            name == "repeat_interleave" and options.get("output_size") is None
        )  # by how often, which are numbers there
        judged = name == "normal" and isinstance(args[1], Tensor)  # no deviation may be below zero
        if name in _WAITS or sized or judged:
            self._cuda.waits[name, asked_by()] += 1
        if name in _INDEXING:
            indices = [each for each in args[1] if isinstance(each, Tensor)]  # type: ignore[attr-defined]
            if any(each.dtype in (torch.bool, torch.uint8) for each in indices):
                self._cuda.waits[f"{name} by a mask", asked_by()] += 1
            if any(not self._cuda.holds(each) for each in indices):
                self._cuda.uploads[asked_by()] += 1


_wanted: list[bool] = []  # whether the calls that are under way make tensors on the device, the innermost last
_generators: dict[int, str] = {}  # the side of each: kernels see a wrapper of the same generator, not the object


def _has_tensor(index: object) -> bool:
    """Whether a tensor is among what is looked up by."""
    return any(isinstance(each, Tensor) for each in tree_leaves(index))


def _side(generator: torch._C.Generator) -> str:
    return _generators.get(generator._cdata, "cpu")  # type: ignore[attr-defined]


def asked_by(depth: int = 1) -> str:
    """The lines of this project that the present call comes from, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    lines: list[str] = []
    while frame is not None and len(lines) < depth:
        file = Path(frame.f_code.co_filename)
        if file != Path(__file__) and file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in ROOMS:
            lines.append(f"{file.relative_to(ROOT)}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(lines) or "elsewhere"


def _place(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
