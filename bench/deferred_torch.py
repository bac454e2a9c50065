"""Heavy packages, executed at their first use in the main process.

An import binds the name only. Planning, listing and reading records need no more than the names, and torch alone takes
two seconds to execute. Workers compute: they import these packages as usual.
"""

from __future__ import annotations

__figures__ = False

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType

PACKAGES = frozenset({
    "FrEIA", "matplotlib", "numba", "numpy", "opacus", "pandas", "safetensors.torch", "scipy", "seaborn", "sklearn",
    "timm", "torch", "torchvision",
})  # fmt: skip
ROOMS = frozenset({"bench.bob", "bench.nets"})
"""Our own packages of networks: their modules are deferred as well."""
ASKING = "scipy._lib.array_api_compat.common._helpers"
"""Asks of arrays of each package whether they are torch's, and would execute torch to be told no."""
METADATA = frozenset({"__class__", "__dict__", "__file__", "__loader__", "__name__", "__package__", "__spec__"})
"""Attributes that the import system sets before a module is executed, and reads at every later import."""

_lock = RLock()  # one for all packages: executing torchvision executes torch
_pending: dict[str, Loader] = {}


def defer() -> None:
    """Defer the `PACKAGES` that this process has not imported yet.

    Threads may use a deferred package at the same time. Importing submodules (`import torch.optim`) is for one thread
    at a time until the package was used, for the import system holds a lock of its own meanwhile.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def deferred(package: str) -> bool:
    """True if the package was imported here and never used."""
    return package in _pending


class _Deferred(ModuleType):
    """A package that is executed when an attribute is read.

    Other threads wait until it is complete. `importlib.util.LazyLoader` has that lock from Python 3.11.9 and 3.12.3 on
    only, and executes the package at its second import, which reads `__spec__`.
    """

    def __getattribute__(self, attribute: str) -> object:
        read = super().__getattribute__
        if attribute in METADATA:
            return read(attribute)
        with _lock:
            name = str(read("__name__"))
            if attribute == "Tensor" and name in _pending and sys._getframe(1).f_globals.get("__name__") == ASKING:
                return _NoTensor  # of a package that was not executed there is no tensor
            loader = _pending.pop(name, None)  # none while the package itself reads its attributes
            if loader is not None:
                try:
                    loader.exec_module(self)
                except BaseException:
                    _pending[name] = loader
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment]  # from now on an ordinary module
        return read(attribute)


class _NoTensor:
    """The type of a tensor as long as there can be none."""


class _Finder(MetaPathFinder):
    """The first finder, for `PACKAGES` and their submodules only."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in PACKAGES and name.rpartition(".")[0] not in ROOMS:
            if name.partition(".")[0] not in PACKAGES:
                return None
            # Reading the package's `__path__` for this search executed the package, which may have imported the
            # submodule. The import system does not look into `sys.modules` again, and would execute it twice.
            module = sys.modules.get(name)
            return None if module is None or module.__spec__ is None else ModuleSpec(name, _Imported(module))
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Postponed(spec.loader)
        return spec


class _Postponed(Loader):
    """Makes a module, and leaves its execution to the first use."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        _pending[module.__name__] = self._loader
        module.__class__ = _Deferred


class _Imported(Loader):
    """Gives a module that is imported already, with its own spec."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
