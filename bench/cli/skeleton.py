"""Plug-ins to begin with: working ones, each beside a test, written from the templates in `skeletons/`."""

from __future__ import annotations

import keyword
import sys
from pathlib import Path
from string import Template
from typing import get_args

from bench.contract.evaluator import NAME
from bench.plugins import registry
from bench.plugins.groups import Group, Kind
from bench.plugins.spec import UsageError

KINDS: tuple[Kind, ...] = get_args(Kind)
TEMPLATES = Path(__file__).parent / "skeletons"
GROUPS: dict[Kind, Group] = {
    "method": "methods", "attack": "attacks", "metric": "metrics", "dataset": "datasets", "package": "methods",
}  # fmt: skip
LONGEST = 60


def files(kind: Kind, name: str) -> dict[str, str]:
    """What is written for a plug-in of that name: text by path.

    Raises:
        UsageError: It is no name for a plug-in, or another one has it.
    """
    words = _words(kind, name)
    if kind != "package":
        module = words["module"]
        return {f"{module}.py": _made(f"{kind}.py", words), f"test_{module}.py": _made("test.py", words)}
    package = words["module"]
    return {
        f"{name}/pyproject.toml": _made("package.pyproject.toml", words),
        f"{name}/README.md": _made("package.readme.md", words),
        f"{name}/{package}/__init__.py": f'"""The method {name} for Veil Bench."""\n',
        f"{name}/{package}/method.py": _made("method.py", words),
        f"{name}/tests/test_plugins.py": _made("package.test.py", words),
    }


def _words(kind: Kind, name: str) -> dict[str, str]:
    module = name.replace("-", "_")
    if NAME.fullmatch(name) is None or len(name) > LONGEST:
        raise UsageError(f"a name must be of a-z, 0-9 and single hyphens, and at most {LONGEST} long, got {name!r}")
    if name in registry.entries(GROUPS[kind]):
        raise UsageError(f"a {registry.noun(GROUPS[kind])} is called {name} already: choose another name")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in ("bench", "torch", "numpy"):
        raise UsageError(f"{module} is a word or a module of Python's: choose another name")
    title = name.replace("-", " ").capitalize()
    return {"name": name, "module": module, "Class": "".join(map(str.capitalize, name.split("-"))), "title": title}


def _made(template: str, words: dict[str, str]) -> str:
    return Template((TEMPLATES / f"{template}.tmpl").read_text(encoding="utf-8")).substitute(words)
