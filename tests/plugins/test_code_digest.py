"""The digest follows what code does, not its words, nor the files that it stands in."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from bench.plugins import code_digest as digests
from bench.plugins import normal_form as sources
from bench.plugins import registry
from bench.plugins.code_digest import code_digest, definitions, forget, plugin_digest, third_party_digest
from bench.plugins.configured import configure
from bench.plugins.normal_form import definition
from bench.workbench import inputs
from methods.identity import Identity
from methods.noise import Noise

ROOT = Path(__file__).parents[2]
PLUGIN = '''"""A method."""

from probe.maths import double


class Mine:
    """Doubles."""

    def run(self, value: int) -> int:
        """Twice the value."""
        return double(value)  # see probe.maths
'''
MATHS = '''"""Numbers."""


def double(value: int) -> int:
    """Twice `value`."""
    return value + value


def half(value: int) -> int:
    return value // 2
'''
FOUR = MATHS.replace("value + value", "value * 4")
Digest = Callable[..., str]


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Digest]:
    """The digest of a class in a package `probe` of the project, by the texts of its modules."""
    for place in (sources, digests):
        monkeypatch.setattr(place, "PROJECT", (*sources.PROJECT, "probe"))
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(files: Mapping[str, str], root: str = "probe.plugin:Mine") -> str:
        shutil.rmtree(tmp_path / "probe", ignore_errors=True)
        for name, text in {"__init__.py": "", **files}.items():
            path = tmp_path / "probe" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if path.parent.name != "probe":
                (path.parent / "__init__.py").touch()
        forget()
        return code_digest(root)

    yield run
    forget()


def project(plugin: str = PLUGIN, maths: str = MATHS, **more: str) -> dict[str, str]:
    return {"plugin.py": plugin, "maths.py": maths, **{f"{name}.py": text for name, text in more.items()}}


def imported(statement: str, call: str) -> str:
    return PLUGIN.replace("from probe.maths import double", statement).replace("double(value)", call)


BY_FUNCTION = PLUGIN.replace("from probe.maths import double\n", "").replace(
    "        return", "        from probe.maths import double\n\n        return"
)
LAZY_MODULE = BY_FUNCTION.replace("from probe.maths import double", "import probe.maths as m").replace(
    "return double(", "return m.double("
)
TYPED = """
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from probe.maths import Number

class Mine:
    def run(self, value: Number) -> int:
        return value.double()
"""
NUMBER = "class Number:\n    def double(self):\n        return {}\n"


@pytest.mark.parametrize(
    "files",
    [
        project(imported("from probe import maths", "maths.double(value)")),
        project(imported("import probe.maths", "probe.maths.double(value)")),
        project(imported("import probe.maths as m", "m.double(value)")),
        project(imported("from .maths import double", "double(value)")),
        project(imported("from . import maths as m", "m.double(value)")),
        project(imported("from probe.maths import double as twice", "twice(value)")),
        project(imported("from probe.face import double", "double(value)"), face="from probe.maths import double\n"),
        project(imported("import probe.face as f", "f.maths.double(value)"), face="from probe import maths\n"),
        project(BY_FUNCTION),
        project(LAZY_MODULE),
        project(imported("", "double(value)") + MATHS, ""),
        project(imported("from probe.numbers import double", "double(value)"), "", numbers=MATHS),
        {"plugin.py": imported("from probe.deep.maths import double", "double(value)"), "deep/maths.py": MATHS},
        project(imported("from probe.maths import twice", "twice(value)"), MATHS.replace("double", "twice")),
        project(PLUGIN + "\n\nOTHER = 3\n", "import os\nimport torch\n\nTABLE = {1: 2}\n" + MATHS),
        project(PLUGIN.replace('"""A method."""\n', '"""Another text."""\nimport json\n')),
        project(PLUGIN.replace("Twice the value.", "Two times the value.")),
        project(PLUGIN.replace("# see probe.maths", "# another remark")),
        project(PLUGIN.replace('    """Doubles."""\n', "")),
        project(PLUGIN.replace("double(value)", "double(\n            value,\n        )")),
        project(PLUGIN, MATHS.replace("value // 2", "value // 3")),
        project(PLUGIN, MATHS.replace("Twice `value`.", "Double.")),
    ],
)  # fmt: skip
def test_where_code_stands_and_how_it_is_imported_does_not_count(digest: Digest, files: Mapping[str, str]) -> None:
    assert digest(files) == digest(project())


@pytest.mark.parametrize(
    "plugin",
    [PLUGIN, BY_FUNCTION, LAZY_MODULE, *(imported(statement, call) for statement, call in (
        ("from probe import maths", "maths.double(value)"), ("import probe.maths as m", "m.double(value)"),
        ("from probe.maths import double as twice", "twice(value)"), ("from .maths import double", "double(value)"),
        ("from probe.face import double", "double(value)"), ("import probe.face as f", "f.maths.double(value)"),
        ("from probe.maths import *", "double(value)"), ("from probe import maths", 'getattr(maths, "double")(value)'),
        ("from probe import maths", "getattr(maths, value)(value)"), ("import importlib", "NAMES[value]"),
        ("import importlib", 'importlib.import_module("probe.maths").double(value)'),
        ("", '__import__("probe.maths").maths.double(value)'), ("from probe.lazy import double", "double(value)"),
        ("try:\n    from probe.maths import double\nexcept ImportError:\n    double = None", "double(value)"),
        ("from probe.maths import double\ntwice = double", "twice(value)"),
        ("from probe import maths\ntwice = maths", "twice.double(value)"),
    ))],
)  # fmt: skip
def test_every_way_to_a_definition_is_followed(digest: Digest, plugin: str) -> None:
    plugin = plugin.replace("NAMES[value]", "importlib.import_module(NAMES[0])") + '\n\nNAMES = ["probe.maths"]\n'
    more = {
        "face": "from probe import maths\nfrom probe.maths import double\n",
        "lazy": "def __getattr__(name):\n    from probe import maths\n    return getattr(maths, name)\n",
    }
    assert digest(project(plugin, MATHS, **more)) != digest(project(plugin, FOUR, **more))


SEVERAL = """
class Mine:
    def run(self, value, f=None):
        if value:
            from probe.maths import double as f
        {}
        return f(value)
"""
INHERITED = (
    "class Mine:\n    from probe.numbers import half\n\n    def run(self, value):\n        return self.half(value)\n"
)
SHADOWED = (
    "from probe.numbers import half\n\n\nclass Mine:\n    def run(self, f=lambda half: 1):\n        return half(2)\n"
)


@pytest.mark.parametrize(
    "plugin",
    [
        SEVERAL.format("else:\n            from probe.numbers import half as f"),
        SEVERAL.format("from probe.numbers import half as f").replace("maths", "numbers"),
        SEVERAL.format("").replace("maths import double", "numbers import half"),
        INHERITED,
        SHADOWED,
    ],
)
def test_every_import_of_a_name_counts(digest: Digest, plugin: str) -> None:
    """An import in one branch, over a parameter, or in a class; a parameter of an inner function hides none."""
    other = MATHS.replace("value // 2", "value // 3")
    assert digest(project(plugin, numbers=MATHS)) != digest(project(plugin, numbers=other))


BASE = """
import torch
from probe.other import Base, REGISTRY, size

TABLE = {"a": 1}
TABLE["b"] = 2
CASES = [1]
CASES.append(2)


def words(value):
    return f"got {value}"


class Mine(Base):
    size: int = 3

    def run(self, value, size=size):
        try:
            value = TABLE[value] + len(CASES)
        except KeyError:
            raise ValueError(f"k must be at least 1, got {value}")
        else:
            value += 1
        for key, function in REGISTRY.items():
            value = function(value)
        words = [size for size in range(3) if size]
        return words, torch.zeros(3), self.size
"""
OTHER = """
import torch
REGISTRY = {}
size = 3

class Base:
    kinds = []

torch.set_num_threads(2)
"""


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("plugin", "else:", "finally:"),
        ("plugin", '"b"] = 2', '"b"] = 3'),
        ("plugin", "append(2)", "append(3)"),
        ("plugin", "size=size", "size=3"),
        ("plugin", "size: int = 3", "size: int = 4"),
        ("plugin", "torch.zeros", "torch.ones"),
        ("plugin", "if size", "if value"),
        ("plugin", "except KeyError", "except IndexError"),
        ("plugin", "raise ValueError(", "raise TypeError("),
        ("other", "kinds = []", "kinds = [int]"),
        ("other", "REGISTRY = {}", "REGISTRY = {1: abs}"),
        ("other", "threads(2)", "threads(3)"),
    ],
)  # fmt: skip
def test_what_code_does_counts_and_what_runs_at_import(digest: Digest, name: str, old: str, new: str) -> None:
    files = {"plugin.py": BASE, "other.py": OTHER}
    before = digest(files)
    assert old in files[f"{name}.py"]
    assert digest({**files, f"{name}.py": files[f"{name}.py"].replace(old, new)}) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    return f"got {value}"', '    return f"it is {value}"'),
        ('f"k must be at least 1, got {value}"', '"k is too small"'),
        ("import torch\n", "import torch as t\n"),
        ("import torch\n", "from torch import zeros as z\n"),
    ],
)
def test_what_is_not_used_or_only_said_does_not_count(digest: Digest, old: str, new: str) -> None:
    used = {"import torch as t\n": "t.zeros", "from torch import zeros as z\n": "z"}.get(new, "torch.zeros")
    assert old in BASE
    changed = BASE.replace(old, new).replace("torch.zeros", used)
    assert digest({"plugin.py": changed, "other.py": OTHER}) == digest({"plugin.py": BASE, "other.py": OTHER})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x: int", "x: int = None"),
        ("def f(a, b): return 1", "def f(a: b): return 1"),
        ("x = {None: y}", "x = {**y}"),
        ("x = f'{y}'", "x = '{y}'"),
        ("x = f'{y!r}'", "x = f'{y}'"),
        ("x = 1", "x = 1.0"),
        ("x = 'a', 'b'", "x = 'ab'"),
        ("x = b'a'", "x = 'a'"),
        ("x = lambda: y", "x = y"),
        ("x = [y for y in z]", "x = [z for y in z]"),
        ("def f():\n        return 1", "async def f():\n        return 1"),
        ("def f():\n        global x\n        x = 1", "def f():\n        x = 1"),
        ("def f():\n        try:\n            import a\n        except ImportError:\n            return 1",
         "def f():\n        try:\n            import b\n        except ImportError:\n            return 1"),
    ],
)  # fmt: skip
def test_different_code_has_different_digests(digest: Digest, one: str, other: str) -> None:
    first, second = (digest({"plugin.py": f"y = z = 0\nclass Mine:\n    {text}\n"}) for text in (one, other))
    assert first != second


def test_names_of_other_scopes_are_told_apart(digest: Digest) -> None:
    """A local name is no reference to a definition of the same name, whichever file that stands in."""
    plugin = (
        "class Mine:\n    def run(self, half):\n        double = half + 1\n        return [double for double in half]\n"
    )
    assert digest(project(plugin + "\n" + MATHS)) == digest(project(plugin))


def test_two_names_of_one_statement_are_told_apart(digest: Digest) -> None:
    plugin = "A, B = 1, 2\n\n\nclass Mine:\n    value = {}\n"
    assert digest(project(plugin.format("A"))) != digest(project(plugin.format("B")))


def test_a_type_that_only_checkers_import_counts(digest: Digest) -> None:
    first, second = (digest(project(TYPED, NUMBER.format(text))) for text in ("1", "2"))
    assert first != second


@pytest.mark.parametrize("search", ["registry.load('methods', name)", "configure('methods', name, 'quick')"])
def test_all_plugins_count_in_code_that_finds_plugins_by_name(digest: Digest, search: str) -> None:
    """The name may come from a parameter."""
    plugin = (
        "from bench.plugins import registry\nfrom bench.plugins.configured import configure\n\n\ndef find(name):\n"
        "    return {}\n\n\nclass Mine:\n    def run(self, name):\n        return find(name)\n"
    )
    digest(project(plugin.format("name")))
    assert "methods.noise:Noise" not in definitions("probe.plugin:Mine")
    digest(project(plugin.format(search)))
    assert {"methods.noise:Noise", "metrics.guesswork:Guesswork"} <= definitions("probe.plugin:Mine")


PLAIN_DECORATORS = {"~dataclasses.dataclass", "~functools.cache", "~functools.lru_cache", "~contextlib.contextmanager"}


def test_rooms_of_figures_register_nothing_when_they_are_imported() -> None:
    """A digest follows names. It would not see a registry, subclasses or global names that another module changes."""
    faults = []
    for path in (path for room in sources.PROJECT for path in (ROOT / room).rglob("*.py")):
        source = sources.module(path)
        if not source.figures:
            continue
        for node in source.statements:
            if not _only_defines(source, node):
                faults.append(f"{source.name}:{node.lineno}")
        faults += [f"{source.name}: {name}" for name in ("__subclasses__", "__init_subclass__", "metaclass=")
                   if name in source.text]  # fmt: skip
        faults += [f"{source.name}: global" for node in source.statements for each in ast.walk(node)
                   if isinstance(each, ast.Global)]  # fmt: skip
    assert faults == []


@pytest.mark.parametrize(
    "text",
    [
        "TABLE = {}\n\ndef register(f):\n    TABLE[f.__name__] = f\n    return f\n\n@register\ndef mine(): pass\n",
        "TABLE = {}\nMINE = TABLE.setdefault('mine', abs)\n",
        "TABLE = {}\nTABLE['mine']: object = abs\n",
        "TABLE = {}\nfor name in 'ab':\n    TABLE[name] = abs\n",
        "import torch\n\n@torch.library.register_fake('mine')\ndef mine(): pass\n",
    ],
)
def test_a_registration_is_no_definition(tmp_path: Path, text: str) -> None:
    (tmp_path / "registry.py").write_text(text)
    source = sources.Module(tmp_path / "registry.py")
    assert not all(_only_defines(source, node) for node in source.statements)


def _only_defines(source: sources.Module, node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return all(_is_plain(source, each) for each in node.decorator_list)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = (each for target in targets for each in getattr(target, "elts", [target]))
        return all(isinstance(each, ast.Name) for each in names) and not _calls_own_variable(source, node)
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom)


def _calls_own_variable(source: sources.Module, node: ast.stmt) -> bool:
    """`NAME = TABLE.setdefault(...)` changes a table of the module."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    roots = (call.value for call in calls if isinstance(call, ast.Attribute))
    return any(isinstance(root, ast.Name) and _is_variable(source, root.id) for root in roots)


def _is_variable(source: sources.Module, name: str) -> bool:
    first, *_ = source.bindings.get(name, [None])
    value = first.value if isinstance(first, ast.Assign | ast.AnnAssign) else None
    return value is not None and not ast.unparse(value).startswith(("TypeVar(", "ParamSpec("))


def _is_plain(source: sources.Module, node: ast.expr) -> bool:
    """If a decorator is a plain one of the standard library, or a function of the module that uses no variable."""
    names = ast.unparse(node.func if isinstance(node, ast.Call) else node).split(".")
    target = source.resolve(names[0], tuple(names[1:]))
    if isinstance(target, str):
        return target in PLAIN_DECORATORS
    own = sources.Reference(source, names[0])
    return target == (own, ()) and not any(_is_variable(*each) for each in definition(own).references)


@pytest.mark.parametrize(
    "plugin",
    [
        "from pathlib import Path\n\n\nclass Mine:\n    table = Path(__file__).with_name('table.csv').read_text()\n",
        "from importlib.resources import files\n\n\nclass Mine:\n    table = files('probe').joinpath('table.csv')\n",
        "import importlib.resources as r\n\n\nclass Mine:\n    run = lambda self, name: r.files('probe') / name\n",
    ],
)
def test_data_files_count(digest: Digest, plugin: str) -> None:
    assert digest({"plugin.py": plugin, "table.csv": "1"}) != digest({"plugin.py": plugin, "table.csv": "2"})
    assert digest({"plugin.py": plugin, "table.csv": "1"}) == digest(
        {"deep/plugin.py": plugin, "table.csv" if "files" in plugin else "deep/table.csv": "1"},
        "probe.deep.plugin:Mine",
    )


SAYS = """
from bench.progress import report, stage

def run(value):
    stage("double")
    report("double", 1, 2)
    return value


class Mine:
    column = Column("Twice", "Doubles.")
    evidence: type = int
    better = "lower"
    run = run

    def pictures(self, bench):
        return draw(bench)

    def samples(self):
        yield 1
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('stage("double")', 'stage("twice")'),
        ('    report("double", 1, 2)\n', ""),
        ('    column = Column("Twice", "Doubles.")\n', '    column = Column("Double", "Doubles more.")\n'),
        ("        return draw(bench)", "        return draw_better(bench)"),
        ("        yield 1", "        yield 2"),
    ],
)
def test_what_is_said_and_shown_does_not_change_it(digest: Digest, old: str, new: str) -> None:
    assert old in SAYS
    assert digest(project(SAYS.replace(old, new))) == digest(project(SAYS))
    assert digest(project(SAYS.replace('"lower"', '"higher"'))) != digest(project(SAYS))


@pytest.mark.parametrize(
    "said",
    [
        "    makes_releases = True\n",
        "    raw_like: ClassVar[bool] = True\n",
        "    @property\n    def makes_releases(self):\n        return self.k\n",
    ],
)
def test_what_an_attack_says_to_the_planner_does_not_change_it(digest: Digest, said: str) -> None:
    attack = "class Mine:\n    k = 1\n{}    def run(self):\n        return self.k\n"
    assert digest(project(attack.format(said))) == digest(project(attack.format("")))
    assert digest(project(attack.format(said))) != digest(project(attack.format("    learns = True\n")))


def test_a_function_of_ones_own_called_stage_counts(digest: Digest) -> None:
    own = "def stage(rows):\n    rows.mul_(2)\n\n\nclass Mine:\n    def run(self, rows):\n        {}\n"
    assert digest(project(own.format("stage(rows)"))) != digest(project(own.format("pass")))


def test_methods_called_samples_count_outside_evaluators(digest: Digest) -> None:
    own = "class Mine:\n    def samples(self):\n        return 1\n"
    assert digest(project(own)) != digest(project(own.replace("return 1", "return 2")))


@pytest.mark.parametrize("place", ["maths", "__init__"])
def test_rooms_that_compute_no_figure_do_not_count(digest: Digest, place: str) -> None:
    mark = {"maths": ("__figures__ = False\n", ""), "__init__": ("", "__figures__ = False\n")}[place]
    plugin = imported("from probe.deep.maths import double", "double(value)")
    first, second = (
        digest({"plugin.py": plugin, "deep/__init__.py": mark[1], "deep/maths.py": mark[0] + text})
        for text in (MATHS, FOUR)
    )
    assert first == second


def test_a_package_of_another_author_cannot_leave_itself_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    found = set()
    for text in (MATHS, FOUR):
        start = package(tmp_path, "__figures__ = False\n" + text, "from .helper import double")
        found.add(digests._digest_of((sources_of(start),)))
    assert len(found) == 2


def sources_of(start: Path) -> sources.Reference:
    return sources.Reference(sources.module(start), sources.WHOLE)


def test_a_digest_is_sixteen_hex_digits_and_stable() -> None:
    found = code_digest(Identity)
    assert len(found) == 16
    assert int(found, 16) >= 0
    forget()
    assert code_digest(Identity) == code_digest("methods.identity:Identity") == found


def test_different_methods_have_different_digests() -> None:
    assert code_digest(Identity) != code_digest(Noise)


def package(folder: Path, helper: str, plugin: str) -> Path:
    """A package of another author, with a plug-in that imports a module beside it."""
    (folder / "outside_package").mkdir(exist_ok=True)
    for name, text in (("__init__", ""), ("helper", helper), ("plugin", plugin)):
        (folder / "outside_package" / f"{name}.py").write_text(text)
    for name in [name for name in sys.modules if name.partition(".")[0] == "outside_package"]:
        del sys.modules[name]
    forget()
    return folder / "outside_package" / "plugin.py"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("outside_package/strength.txt", "1", "2"),
        ("outside_package/plugin.py", 'raise ValueError("1")', 'raise ValueError("2")'),
        ("outside_package/helper.py", "# 1", "# 2"),
        ("alone.py", '"""1"""', '"""2"""'),
    ],
)
def test_every_byte_of_another_author_counts(tmp_path: Path, name: str, before: str, after: str) -> None:
    """Its code may read a file of its package, the text of its own error, or its docstring."""
    package(tmp_path, MATHS, "from . import helper")
    start = tmp_path / (name if name == "alone.py" else "outside_package/plugin.py")
    found = set()
    for text in (before, after):
        (tmp_path / name).write_text(text)
        forget()
        found.add(third_party_digest(start))
    assert len(found) == 2


@pytest.mark.parametrize("statement", ["from beside_it import double", "import beside_it"])
def test_a_file_beside_a_plugin_in_a_file_is_followed(
    statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "plugin.py").write_text(f"{statement}\nRUN = {statement.split()[-1]}\n")
    found = set()
    for text in (MATHS, FOUR):
        (tmp_path / "beside_it.py").write_text(text)
        forget()
        found.add(third_party_digest(tmp_path / "plugin.py"))
    forget()
    assert len(found) == 2


def test_what_another_author_uses_of_the_project_counts(digest: Digest, tmp_path: Path) -> None:
    found = set()
    for text in (MATHS, FOUR):
        digest(project(PLUGIN, text))
        found.add(third_party_digest(package(tmp_path, "", "from probe.maths import double")))
    assert len(found) == 2


def test_modules_of_others_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    found = set()
    for text in (MATHS, FOUR):
        (tmp_path / "outside_module.py").write_text(text)
        found.add(third_party_digest(package(tmp_path, "", "import outside_module, torch")))
    assert len(found) == 1


WEIGHED = """
from dataclasses import dataclass
from methods.noise import Noise

@dataclass(frozen=True)
class Weighed(Noise):
    name = "weighed"
    weights: str = ""
"""


@pytest.mark.usefixtures("quick_rooms")
@pytest.mark.parametrize("named", ["weights", "weights/of.npy"])
def test_a_file_that_a_strangers_parameters_name_counts(named: str, tmp_path: Path) -> None:
    """Else noise for the privacy and raw rows for the utility had one digest."""
    (tmp_path / "weighed.py").write_text(WEIGHED)
    (tmp_path / "weights").mkdir()
    plugin = configure("methods", f"{tmp_path / 'weighed.py'}:Weighed[weights={tmp_path / named}]", "smoke").plugin
    found = set()
    for text in ("1", "2"):
        (tmp_path / "weights" / "of.npy").write_text(text)
        forget()
        found.add(plugin_digest(plugin))
    assert len(found) == 2


def test_a_face_is_looked_through_to_what_it_shows() -> None:
    """`bench.types` shows the whole contract: a method has to do with what it takes from there, and no more."""
    for method, uses in (("methods.blur:Blur", False), ("methods.dp_simple:DPSimple", True)):
        names = definitions(method)
        assert ("bench.contract.mechanism:Mechanism" in names) is uses
        assert not any(name.startswith("bench.types:") for name in names)


EVALUATORS = [cast("type", registry.load("evaluators", name)) for name in registry.working("evaluators")]
QUIET = ("bench.pictures", "bench.progress", "bench.plugins", "bench.results", "bench.cli", "leaderboard")


@pytest.mark.parametrize("cls", EVALUATORS, ids=lambda cls: cls.name)
def test_no_record_hangs_on_drawing_messages_progress_registry_specs_records_or_the_store(cls: type) -> None:
    names = definitions(cls)
    assert [name for name in names if name.startswith(QUIET)] == []
    others = {path.stem for path in (ROOT / "bench" / "evaluators").glob("*.py")} - {
        Path(inspect.getfile(cls)).stem, "granted_pairs", "predictions", "questioned", "__init__",
    }  # fmt: skip
    assert not any(name.startswith(f"bench.evaluators.{other}:") for name in names for other in others)


CONTRACT = "ae5c4d53977cd6f9"


def test_what_the_contract_computes_changes_with_the_protocol() -> None:
    """Its modules are silent, for they grow. If a figure can come out otherwise, raise PROTOCOL; then renew this."""
    silent = [sources.module(path) for path in (ROOT / "bench" / "contract").glob("*.py")]
    code = sorted(
        f"{known.digest} {[to.name for to in known.references]}"
        for source in silent
        if source.path.stem not in ("preset", "evaluator") and not source.figures
        for name, nodes in source.bindings.items()
        if not isinstance(nodes[0], sources.Import) and (known := definition(sources.Reference(source, name)))
    )
    assert (inputs.PROTOCOL, hashlib.sha256("".join(code).encode()).hexdigest()[:16]) == (4, CONTRACT)


def test_every_process_gives_the_same_digest(tmp_path: Path) -> None:
    # Classes that are alike but for their names tie wherever digests are sorted; sets of strings differ by process.
    path = tmp_path / "alike.py"
    lines = "".join(f"@dataclass(frozen=True)\nclass A{number}(Method):\n    pass\n" for number in range(12))
    path.write_text(f"from dataclasses import dataclass\nfrom bench.types import Method\n{lines}", encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from bench.plugins.code_digest import third_party_digest;"
        "print(third_party_digest(Path(sys.argv[1])))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, str(path)], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(digests) == 1
