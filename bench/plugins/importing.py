"""The class of a plug-in out of its package or its file."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType

from bench.plugins.signals import heard
from bench.plugins.spec import UsageError, did_you_mean


def imported(target: str) -> type:
    """The class that `module:Class` names; whatever the import raises passes."""
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, type):
        raise TypeError(f"{target} must be a class, got {found!r}")
    return found


@cache
def from_file(name: str) -> type:
    """The class that `file.py:Class` names.

    Raises:
        UsageError: No such file or class, or a file that cannot be run (with its line).
    """
    path_text, _, attribute = name.rpartition(":")
    module = _module(path_text)
    found = getattr(module, attribute, None)
    if not isinstance(found, type):
        own = (value for value in vars(module).values() if isinstance(value, type))
        classes = [value.__name__ for value in own if value.__module__ == module.__name__]
        raise UsageError(f"{path_text} has no class {attribute!r}; {did_you_mean(attribute, classes)}")
    return found


@cache
def _module(path_text: str) -> ModuleType:
    """The module in a file, run once: a metric and the evaluator beside it share their evidence."""
    path = Path(path_text).resolve()
    if not path.is_file():
        raise UsageError(f"no such plug-in file: {path_text} (expected FILE.py:CLASS)")
    module_name = f"bench_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path_text} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        with heard() as signalled:
            spec.loader.exec_module(module)
    except BaseException as error:  # the author's file may fail in any way
        if signalled(error):
            raise
        lines = [
            line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)
        ]
        at = f" at line {lines[-1]}" if lines else ""  # of a file that is no Python, the error says it
        raise UsageError(f"{path_text} cannot be imported{at}: {type(error).__name__}: {error}") from error
    return module
