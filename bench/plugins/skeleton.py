"""Working plug-ins to begin with, from the templates in `skeletons/`."""

from __future__ import annotations

import ast
import builtins
import keyword
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import get_args

from bench.contract.evaluator import NAME
from bench.plugins import registry
from bench.plugins.groups import Group, Kind
from bench.plugins.spec import UsageError
from bench.shadowing import PACKAGES

KINDS: tuple[Kind, ...] = get_args(Kind)
TEMPLATES = Path(__file__).parent / "skeletons"
GROUPS: dict[Kind, Group] = {
    "method": "methods", "attack": "attacks", "metric": "metrics", "dataset": "datasets", "evaluator": "evaluators",
    "package": "methods",
}  # fmt: skip
LONGEST = 60


def files(kind: Kind, name: str) -> dict[str, str]:
    """The files of a new plug-in: text by path.

    Raises:
        UsageError: It is no name for a plug-in, or another one has it.
    """
    words = _words(kind, name)
    if kind != "package":
        module = words["module"]
        imports, _, behaviour = _made(f"test.{kind}", words).partition("---\n")
        tests = _made("test.py", words | {"imports": _sorted(imports), "behaviour": behaviour.strip()})
        return {f"{module}.py": _plugin(kind, words), f"test_{module}.py": tests}
    package = words["module"]
    return {
        f"{name}/pyproject.toml": _made("package.pyproject.toml", words),
        f"{name}/README.md": _made("package.readme.md", words),
        f"{name}/{package}/__init__.py": f'"""The method {name} for Veil Bench."""\n',
        f"{name}/{package}/method.py": _plugin("method", words),
        f"{name}/tests/test_plugins.py": _made("package.test.py", words),
    }


def class_name(name: str) -> str:
    """The class of a plug-in of that name.

    >>> class_name("my-blur")
    'MyBlur'
    """
    return "".join(map(str.capitalize, name.split("-")))


def _words(kind: Kind, name: str) -> dict[str, str]:
    module = name.replace("-", "_")
    if NAME.fullmatch(name) is None or len(name) > LONGEST:
        raise UsageError(f"a name must be of a-z, 0-9 and single hyphens, and at most {LONGEST} long, got {name!r}")
    if name in registry.entries(GROUPS[kind]):
        raise UsageError(f"a {registry.noun(GROUPS[kind])} is called {name} already: choose another name")
    title, written = name.replace("-", " ").capitalize(), class_name(name)
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or written in dir(builtins):
        raise UsageError(f"{module} is a word or a module of Python's: choose another name")
    if module in ("conftest", "tests", *PACKAGES) or _installed(module):
        raise UsageError(f"a module that is called {module} is there already: choose another name")
    if kind == "package" and _distributed(name):
        raise UsageError(
            f"a package that is called {name} is installed, and yours would replace it: choose another name"
        )
    return {"name": name, "module": module, "Class": written, "title": title}


def _distributed(name: str) -> bool:
    """If pip has installed something by that name.

    Its module may have another name.
    """
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _installed(module: str) -> bool:
    """If an installed package answers to the name; this folder aside."""
    location = find_spec(module)
    if location is None or location.origin is None:
        return location is not None
    origin, here = Path(location.origin).resolve(), Path.cwd().resolve()
    environment = Path(sysconfig.get_path("purelib")).resolve()  # often in a folder of this one
    return origin.is_relative_to(environment) or not origin.is_relative_to(here)


def _plugin(template: str, words: dict[str, str]) -> str:
    """A plug-in's text, with class names that shadow nothing it uses."""
    text = _made(f"{template}.py", words)
    tree = ast.parse(text)
    imported = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
                for alias in node.names}  # fmt: skip
    defined = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    if taken := [name for name in defined if name in imported or defined.count(name) > 1]:
        raise UsageError(f"a {template} that is called {words['name']} would be the class {taken[0]}, which it needs "
                         "itself: choose another name")  # fmt: skip
    return text


def _sorted(imports: str) -> str:
    """Import lines in order: `import` first, then `from`, each by module."""
    return "\n".join(sorted(imports.splitlines(), key=lambda line: (line.startswith("from"), line.lower())))


def _made(template: str, words: dict[str, str]) -> str:
    return Template((TEMPLATES / f"{template}.tmpl").read_text(encoding="utf-8")).substitute(words)
