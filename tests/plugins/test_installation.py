"""Packages with plug-ins that bring what runs in every Python, or what is somebody else's, and those that do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.installation import trespass
from bench.plugins.spec import UsageError, parse
from bench.plugins.third_party import stand_in
from bench.sandbox import why_not

FINDER = "import __editable___mine_1_finder; __editable___mine_1_finder.install()"
OWN = {"mine/__init__.py": "", "mine/weights.npy": "", "mine_more/__init__.py": "", "../../../bin/mine": ""}
EDITABLE = {"__editable__.mine-1.pth": FINDER, "__editable___mine_1_finder.py": "MAPPING: dict = {'mine': '/mine'}"}
FINE = {
    "a package": OWN,
    "a namespace": {"shared/mine.py": ""},
    "installed editable": EDITABLE,
    "editable by a path": {"__editable__.mine-1.pth": "/somewhere/src"},
    "editable by hatchling": {"_mine.pth": "import _editable_impl_mine", "_editable_impl_mine.py": ""},
}
BAD = {
    "a line of a .pth": ({"mine.pth": "import mine"}, "runs code in every Python (mine.pth)"),
    "more on a finder's line": ({**EDITABLE, "__editable__.mine-1.pth": FINDER + "; import os"}, "runs code in every"),
    "a customisation": ({"sitecustomize.py": ""}, "runs code in every Python (sitecustomize)"),
    "one in a folder": ({"mine.pth": "mine"}, "runs code in every Python (usercustomize, of a folder that mine.pth"),
    "one that is mapped": (
        {**EDITABLE, "__editable___mine_1_finder.py": "MAPPING = {'sitecustomize': '/mine'}"},
        "brings the top-level name 'sitecustomize'",
    ),
    "another package": ({"numexpr/__init__.py": ""}, "brings the top-level name 'numexpr'"),
    "another's bytecode": ({"__pycache__/six.cpython-311.pyc": ""}, "brings the top-level name 'six'"),
    "what this project may use": ({"opacus/__init__.py": ""}, "brings the top-level name 'opacus'"),
    "another's description": ({"veil_bench-1.dist-info/RECORD": ""}, "brings the top-level name 'veil_bench'"),
    "another's folder": ({"mine_other/__init__.py": ""}, "where other has its own (mine_other)"),
    "another's command": ({"../../../bin/other": ""}, "where other has its own (../../../bin/other)"),
    "this project's command": ({"../../../bin/bench": ""}, "puts the file ../../../bin/bench"),
    "the standard library": ({"../os.py": ""}, "puts the file ../os.py"),
}


def installed(root: Path, files: dict[str, str], *, editable: bool) -> Distribution:
    """A package `mine` with a method, in a folder of packages that holds another one, too."""
    site = root / "lib" / "python3" / "site-packages"
    own, other = site / "mine-1.dist-info", site / "other-1.dist-info"
    source = root / "source"
    own.mkdir(parents=True)
    other.mkdir()
    source.mkdir()
    (source / "pyproject.toml").touch()
    other.joinpath("RECORD").write_text(
        "other-1.dist-info/RECORD,,\nmine_other/__init__.py,,\nshared/it.py,,\n../../../bin/other,,\n", encoding="utf-8"
    )
    for name, text in {**files, "mine/usercustomize.py": ""}.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    told = {"url": source.as_uri(), "dir_info": {"editable": editable}}
    texts = {
        "METADATA": "Metadata-Version: 2.1\nName: mine\nVersion: 1\n",
        "entry_points.txt": f"[bench.methods]\nmine = {'shared.mine' if 'shared/mine.py' in files else 'mine'}:Mine\n",
        "direct_url.json": json.dumps(told),
        "RECORD": "".join(f"{name},,\n" for name in files),
    }
    for name, text in texts.items():
        own.joinpath(name).write_text(text, encoding="utf-8")
    return Distribution.at(own)


@pytest.mark.parametrize("case", list(FINE))
def test_what_a_package_may_bring(case: str, tmp_path: Path) -> None:
    assert trespass(installed(tmp_path, FINE[case], editable="editable" in case)) == ""


@pytest.mark.parametrize("case", list(BAD))
def test_what_it_may_not(case: str, tmp_path: Path) -> None:
    files, said = BAD[case]
    assert said in trespass(installed(tmp_path, files, editable=files.keys() >= EDITABLE.keys()))


def test_a_finder_counts_where_the_package_was_installed_editable_alone(tmp_path: Path) -> None:
    assert "runs code in every Python" in trespass(installed(tmp_path, EDITABLE, editable=False))


def test_what_a_build_leaves_in_its_authors_folder_is_no_list_of_what_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m pytest` in a package's own folder finds that one first."""
    made = installed(tmp_path, {**EDITABLE, "mine.pth": "import mine"}, editable=True)
    left = tmp_path / "source" / "mine.egg-info"
    left.mkdir()
    (left / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n", encoding="utf-8")
    (left / "SOURCES.txt").write_text("README.md\npyproject.toml\nmine/__init__.py\n", encoding="utf-8")
    assert trespass(Distribution.at(left)) == ""
    monkeypatch.syspath_prepend(str(made.locate_file("")))
    assert "runs code in every Python (mine.pth)" in trespass(Distribution.at(left))


@pytest.fixture
def forget() -> Iterator[Callable[[], None]]:
    """Forgets which packages there are; after the test, once more."""

    def clear() -> None:
        registry.entries.cache_clear()
        stand_in.cache_clear()

    yield clear
    clear()


def test_a_plugin_of_such_a_package_is_listed_with_the_reason_and_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    files, said = BAD["a line of a .pth"]
    made = installed(tmp_path, files, editable=False)
    monkeypatch.setattr(registry, "entry_points", lambda group: made.entry_points.select(group=group))
    monkeypatch.setattr("bench.plugins.third_party.described", pytest.fail)
    forget()
    assert said in str(registry.inspect(registry.entries("methods")["mine"]).error)
    with pytest.raises(UsageError, match="'mine' from mine cannot be used: its package runs code"):
        stand_in("methods", parse("mine"), "smoke")


METHOD = """
from dataclasses import dataclass
from typing import ClassVar
from methods.identity import Identity

@dataclass(frozen=True)
class Mine(Identity):
    name: ClassVar[str] = "mine"
    role: ClassVar[None] = None
"""


@pytest.mark.skipif(why_not() is not None, reason=f"no sandbox here: {why_not()}")
def test_an_editable_package_is_looked_into_by_the_judge_and_not_in_the_sandbox_that_hides_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    made = installed(tmp_path, {**EDITABLE, "mine.py": METHOD, "mine-1.dist-info/RECORD": ""}, editable=True)
    monkeypatch.syspath_prepend(str(made.locate_file("")))
    monkeypatch.setenv("PYTHONPATH", str(made.locate_file("")))
    forget()
    assert configure("methods", "mine", "smoke").origin == "mine"
    (tmp_path / "source" / "pyproject.toml").unlink()
    forget()
    with pytest.raises(UsageError, match="runs code in every Python"):
        configure("methods", "mine", "smoke")
