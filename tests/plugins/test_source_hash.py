"""The hash follows what code does, not how it is worded."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench.plugins import meaning, registry
from bench.plugins import source_hash as module
from bench.plugins.chosen import choose
from bench.plugins.source_hash import modules_hash, plugin_hash, source_hash
from bench.plugins.spec import PluginSpec
from bench.workbench import inputs
from methods.identity import Identity
from methods.noise import Noise

ROOT = Path(__file__).parents[2]
PLUGIN = '''"""A method."""

from methods.probe_maths import double


class Mine:
    """Doubles."""

    def run(self, value: int) -> int:
        """Twice the value."""
        return double(value)  # see probe_maths
'''
MATHS = '''"""Numbers."""


def double(value: int) -> int:
    """Twice `value`."""
    return value + value
'''
Hash = Callable[[str, str], str]


def forget_all() -> None:
    """What was read of modules that a test writes anew."""
    importlib.invalidate_caches()
    for kept in (module._outside_hash, module.modules_hash, module.behind, meaning.read, module._locate):
        kept.cache_clear()


@pytest.fixture
def hash_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hash]:
    """The hash of a plug-in's text, given the text of a project module that it imports."""
    import methods

    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])

    def forget() -> None:
        forget_all()
        sys.modules.pop("methods.probe_maths", None)

    def run(plugin: str, maths: str) -> str:
        (tmp_path / "plugin.py").write_text(plugin)
        (tmp_path / "probe_maths.py").write_text(maths)
        forget()
        return modules_hash(tmp_path / "plugin.py")

    yield run
    forget()


def test_a_reworded_column_of_a_metric_does_not_count_and_its_direction_does(hash_of: Hash) -> None:
    column = '    """Doubles."""\n    better: str = "{}"\n    column: ClassVar[Column] = Column("Mine", "{}", "Cost")\n'
    plain, reworded, turned = (
        hash_of(PLUGIN.replace('    """Doubles."""\n', column.format(better, meaning)), MATHS)
        for better, meaning in (("lower", "A sentence."), ("lower", "A better sentence."), ("higher", "A sentence."))
    )
    assert plain == reworded != turned


def test_a_hash_is_sixteen_hex_digits_and_stable() -> None:
    found = source_hash(Identity)
    assert len(found) == 16
    assert int(found, 16) >= 0
    forget_all()
    assert source_hash(Identity) == found


def test_of_names_that_a_module_shows_twice_the_last_one_holds(tmp_path: Path) -> None:
    """(A set of imports had an order of its own in each process.)"""
    shows = tmp_path / "shows.py"
    shows.write_text("".join(f"from part{number} import {', '.join('abcdef')}\n" for number in (1, 3, 4, 2)))
    assert meaning.read(shows).shown == dict.fromkeys("abcdef", "part2")


def test_different_methods_have_different_hashes() -> None:
    assert source_hash(Identity) != source_hash(Noise)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Twice the value.", "Two times the value."),
        ("# see probe_maths", "# another remark"),
        ("  # see probe_maths", ""),
        ('    """Doubles."""\n', '    """Doubles.\n\n    At length.\n    """\n'),
        ('"""A method."""\n\n', '"""A method."""\n\n\n'),
        ("double(value)", "double( value )"),
    ],
)
def test_words_comments_and_spaces_do_not_change_it(hash_of: Hash, old: str, new: str) -> None:
    assert old in PLUGIN
    assert hash_of(PLUGIN.replace(old, new), MATHS) == hash_of(PLUGIN, MATHS)


def test_a_reworded_docstring_of_an_imported_module_does_not_change_it(hash_of: Hash) -> None:
    assert hash_of(PLUGIN, MATHS.replace("Twice `value`.", "Double.")) == hash_of(PLUGIN, MATHS)


def test_a_change_of_the_code_changes_it(hash_of: Hash) -> None:
    assert hash_of(PLUGIN.replace("double(value)", "double(value) + 1"), MATHS) != hash_of(PLUGIN, MATHS)


def test_what_computes_nothing_does_not_change_it(hash_of: Hash, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENT", (*module.SILENT, "methods.probe_maths"))
    assert hash_of(PLUGIN, MATHS) == hash_of(PLUGIN, MATHS.replace("value + value", "value * 2"))


def test_a_change_in_an_imported_module_changes_it(hash_of: Hash) -> None:
    assert hash_of(PLUGIN, MATHS.replace("value + value", "value * 2")) != hash_of(PLUGIN, MATHS)


@pytest.mark.parametrize(
    "statement",
    [
        "import methods.probe_maths",
        "from methods import probe_maths",
        "from methods.probe_maths import double as twice",
    ],
)
def test_every_way_to_import_is_followed(hash_of: Hash, statement: str) -> None:
    changed = MATHS.replace("value + value", "value * 2")
    assert hash_of(statement, changed) != hash_of(statement, MATHS)


def test_a_text_that_is_no_docstring_counts(hash_of: Hash) -> None:
    plugin = 'WORDS = "one"\n'
    assert hash_of(plugin.replace("one", "two"), MATHS) != hash_of(plugin, MATHS)


def test_removing_the_only_docstring_does_not_change_it(hash_of: Hash) -> None:
    plugin = 'def work(value):\n    """Words."""\n    return value\n'
    assert hash_of(plugin.replace('    """Words."""\n', ""), MATHS) == hash_of(plugin, MATHS)


def package(folder: Path, helper: str, plugin: str) -> Path:
    """A package of somebody else, with a plug-in that imports a module beside it and one outside."""
    (folder / "outside_package").mkdir(exist_ok=True)
    for name, text in (("__init__", ""), ("helper", helper), ("plugin", plugin)):
        (folder / "outside_package" / f"{name}.py").write_text(text)
    for name in [name for name in sys.modules if name.partition(".")[0] == "outside_package"]:
        del sys.modules[name]
    forget_all()
    return folder / "outside_package" / "plugin.py"


@pytest.mark.parametrize(
    "statement", ["from . import helper", "from .helper import double", "from outside_package.helper import double"]
)
def test_a_plugin_of_somebody_else_follows_its_own_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    changed = modules_hash(package(tmp_path, MATHS.replace("value + value", "value * 2"), statement))
    assert changed != modules_hash(package(tmp_path, MATHS, statement))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("outside_package/strength.txt", "1", "2"),
        ("outside_package/plugin.py", 'raise ValueError("1")', 'raise ValueError("2")'),
        ("alone.py", '"""1"""', '"""2"""'),
    ],
)
def test_every_byte_of_a_stranger_counts(tmp_path: Path, name: str, before: str, after: str) -> None:
    """Its code may read a file of its package, the text of its own error, or its docstring."""
    package(tmp_path, MATHS, "from . import helper")
    start = tmp_path / (name if name.endswith(".py") else "outside_package/plugin.py")
    found = []
    for text in (before, after):
        (tmp_path / name).write_text(text)
        forget_all()
        found.append((modules_hash(start), module._outside_hash(start)))
    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]


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
    """Else noise for the privacy and raw rows for the utility had one hash."""
    (tmp_path / "weighed.py").write_text(WEIGHED)
    (tmp_path / "weights").mkdir()
    plugin = choose("methods", f"{tmp_path / 'weighed.py'}:Weighed[weights={tmp_path / named}]", "smoke").plugin
    found = set()
    for text in ("1", "2"):
        (tmp_path / "weights" / "of.npy").write_text(text)
        forget_all()
        found.add(plugin_hash(plugin))
    assert len(found) == 2


def test_what_is_installed_with_a_stranger_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, own = package(tmp_path, MATHS, "from . import helper"), tmp_path / "outside-1.dist-info"
    own.mkdir()
    (own / "METADATA").write_text("Name: outside\n")
    (own / "RECORD").write_text(
        "outside_package/plugin.py,,\noutside_more/__init__.py,,\noutside-1.dist-info/RECORD,,\n"
    )
    (tmp_path / "outside_more").mkdir()
    stands = SimpleNamespace(group="methods", written=PluginSpec("theirs"))
    entry = registry.Entry("methods", "theirs", "outside_package.plugin:Plugin", "outside")
    monkeypatch.setattr(registry, "entries", lambda group: {"theirs": entry})
    monkeypatch.syspath_prepend(str(tmp_path))
    found = set()
    for text in ("1", "2"):
        (tmp_path / "outside_more" / "__init__.py").write_text(text)
        forget_all()
        found.add(module._outside_hash(start, module._beside_it(stands)))
    assert len(found) == 2


@pytest.mark.parametrize("left", [False, True])
def test_a_stranger_is_the_same_from_its_authors_folder_and_installed(
    left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install -e` writes the folder's path beside what it installs: nobody else had that hash."""
    stands = SimpleNamespace(group="methods", written=PluginSpec("theirs"))
    entry = registry.Entry("methods", "theirs", "outside_package.plugin:Plugin", "outside")
    monkeypatch.setattr(registry, "entries", lambda group: {"theirs": entry})
    found = set()
    for place in ("here", "there", "installed"):
        source, site = tmp_path / place / "source", tmp_path / place / "site"
        site.mkdir(parents=True)
        source.mkdir()
        editable = place != "installed"
        start = package(source if editable else site, MATHS, "from . import helper")
        (source / "pyproject.toml").touch()
        written = {"__editable__.outside.pth": "", "__editable___outside_finder.py": f"MAPPING = {str(source)!r}"}
        for name, text in written.items() if editable else ():
            (site / name).write_text(text)
        own = site / "outside-1.dist-info"
        own.mkdir()
        (own / "METADATA").write_text("Name: outside\n")
        (own / "RECORD").write_text(
            "".join(f"{each},,\n" for each in written) if editable else "outside_package/plugin.py,,\n"
        )
        (own / "direct_url.json").write_text(json.dumps({"url": source.as_uri(), "dir_info": {"editable": editable}}))
        if left:
            (source / "outside.egg-info").mkdir()
            (source / "outside.egg-info" / "PKG-INFO").write_text("Name: outside\n")
            (source / "outside.egg-info" / "SOURCES.txt").write_text("pyproject.toml\n")
            (source / "pyproject.toml").write_text(place)
        monkeypatch.setattr(sys, "path", [str(source), str(site), *sys.path])
        forget_all()
        found.add(module._outside_hash(start, module._beside_it(stands)))
        monkeypatch.undo()
        monkeypatch.setattr(registry, "entries", lambda group: {"theirs": entry})
    assert len(found) == 1


def test_modules_of_others_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "outside_module.py").write_text(MATHS)
    before = modules_hash(package(tmp_path, "", "import outside_module, torch"))
    (tmp_path / "outside_module.py").write_text(MATHS.replace("value + value", "value * 2"))
    assert modules_hash(package(tmp_path, "", "import outside_module, torch")) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('raise ValueError(f"k must be at least 1, got {value}")', 'raise ValueError("k is too small")'),
        ('stage("double")', 'stage("twice")'),
        ('report("double", 1, 2)', ""),
        ('    column = Column("Twice", "Doubles.")\n', '    column = Column("Double", "Doubles more.")\n'),
        ("        return draw(bench)", "        return draw_better(bench)"),
        ("        yield 1", "        yield 2"),
    ],
)
def test_what_is_said_and_shown_does_not_change_it(hash_of: Hash, old: str, new: str) -> None:
    plugin = """
from bench.progress import report, stage

def run(value):
    stage("double")
    report("double", 1, 2)
    if value < 1:
        raise ValueError(f"k must be at least 1, got {value}")
    return value


class Mine:
    column = Column("Twice", "Doubles.")
    evidence: type = int

    def pictures(self, bench):
        return draw(bench)

    def samples(self):
        yield 1
"""
    assert old in plugin
    assert hash_of(plugin.replace(old, new), MATHS) == hash_of(plugin, MATHS)
    assert hash_of(plugin.replace("value < 1", "value < 2"), MATHS) != hash_of(plugin, MATHS)


def test_a_face_is_looked_through_to_what_it_shows() -> None:
    """`bench.types` shows the whole contract: a method has to do with what it takes from there, and no more."""
    import methods.blur
    import methods.dp_simple

    names = {path.name for path in module.behind(Path(methods.blur.__file__))}
    assert "types.py" not in names
    assert "mechanism.py" not in names
    assert "mechanism.py" in {path.name for path in module.behind(Path(methods.dp_simple.__file__))}


EVALUATORS = [cast("type", registry.load("evaluators", name)) for name in registry.working("evaluators")]


@pytest.mark.parametrize("cls", EVALUATORS, ids=lambda cls: cls.name)
def test_no_record_hangs_on_drawing_messages_progress_registry_specs_records_or_the_store(cls: type) -> None:
    rooms = {path.relative_to(ROOT).as_posix() for path in module.behind(Path(inspect.getfile(cls)))}
    quiet = (
        "bench/pictures",
        "bench/progress",
        "bench/plugins",
        "bench/results",
        "bench/runs",
        "bench/cli",
        "leaderboard",
    )
    assert [room for room in rooms if room.startswith(quiet)] == []
    others = {path.stem for path in (ROOT / "bench" / "evaluators").glob("*.py")} - {
        "predictions",
        "questioned",
        "__init__",
    }
    assert {Path(room).stem for room in rooms if room.startswith("bench/evaluators/")} & others == {
        Path(inspect.getfile(cls)).stem
    }


def test_a_function_of_ones_own_called_stage_counts(hash_of: Hash) -> None:
    own = "def stage(rows):\n    rows.mul_(2)\n\n\ndef run(rows):\n    stage(rows)\n    return rows\n"
    assert hash_of(own, MATHS) != hash_of(own.replace("    stage(rows)\n", ""), MATHS)


def test_methods_called_samples_count_outside_evaluators(hash_of: Hash) -> None:
    own = "class Key:\n    def samples(self):\n        return 1\n"
    assert hash_of(own, MATHS) != hash_of(own.replace("return 1", "return 2"), MATHS)


def test_a_file_beside_a_plugin_in_a_file_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "plugin.py").write_text("from beside_it import double\n")
    found = []
    for text in (MATHS, MATHS.replace("value + value", "value * 2")):
        (tmp_path / "beside_it.py").write_text(text)
        forget_all()
        found.append(modules_hash(tmp_path / "plugin.py"))
    forget_all()
    assert found[0] != found[1]


CONTRACT = "f3df6779fec89e14"


def test_what_the_contract_computes_changes_with_the_protocol() -> None:
    """Its modules are silent, for they grow. Where a figure can come out otherwise, raise PROTOCOL; then renew this."""
    paths = [ROOT / "bench" / "contract" / f"{name.rpartition('.')[2]}.py" for name in module.SILENT
             if name.startswith("bench.contract.") and not name.endswith((".preset", ".evaluator"))]  # fmt: skip
    bodies = "".join(sorted(meaning.read(path).meaning for path in paths))
    assert (inputs.PROTOCOL, hashlib.sha256(bodies.encode()).hexdigest()[:16]) == (3, CONTRACT)
