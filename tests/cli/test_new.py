"""What `bench new` writes satisfies the contract as it was written, and overwrites nothing."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
import torch

from bench.cli import command_line, main
from bench.conformance import conform, methods
from bench.plugins.groups import GROUPS as ALL
from bench.plugins.groups import Kind
from bench.plugins.skeleton import GROUPS, KINDS, TEMPLATES, files
from bench.randomness import Secret
from bench.types import Method

SLOW = ("Bob keeps up with simple models", "its word holds")


@pytest.fixture(autouse=True)
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """What trains models has tests of its own."""
    quick = {title: work for title, work in methods._CHECKS.items() if title not in SLOW}
    monkeypatch.setattr(methods, "_CHECKS", quick)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "package"])
def test_a_skeleton_satisfies_the_contract_as_it_is_written(
    kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", kind, f"my-{kind}", "--into", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert f"Next: bench check {tmp_path}/my_{kind}.py:My{kind.capitalize()}\n" in out
    command = shlex.split(out.partition("Then: ")[2].splitlines()[0])
    command_line().parse_args(command[1:], exit_on_error=False, print_error=False)
    assert (tmp_path / f"test_my_{kind}.py").is_file()
    results = conform(GROUPS[kind], f"{tmp_path}/my_{kind}.py:My{kind.capitalize()}", torch.device("cpu"))
    assert [result for result in results if result.status in ("failed", "noted", "not-reached")] == []
    assert [result.status for result in results].count("passed") >= 2


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "package"])
def test_the_test_of_a_skeleton_tries_what_the_plug_in_does(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"own_{kind}"
    assert main(["new", kind, name.replace("_", "-"), "--into", str(tmp_path)]) == 0
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        written = vars(importlib.import_module(f"test_{name}"))
        tests = [work for title, work in written.items() if title.startswith("test_") and "contract" not in title]
        assert tests
        for work in tests:
            work()
    finally:
        for module in (name, f"test_{name}"):
            sys.modules.pop(module, None)


def test_every_page_that_a_template_names_exists_with_its_section() -> None:
    guides = Path(__file__).parents[2] / "docs"
    for template in sorted(TEMPLATES.glob("*.tmpl")):
        text = template.read_text(encoding="utf-8")
        pages = re.findall(r"how-to/[a-z-]+", text)
        assert [page for page in pages if not (guides / f"{page}.md").is_file()] == [], template.name
        if template.name.endswith(".py.tmpl") and template.stem.removesuffix(".py") in KINDS:
            sections = re.findall(r'"(.+)" on the page how-to/write-a-plug-in', text)
            headings = (guides / "how-to" / "write-a-plug-in.md").read_text(encoding="utf-8").splitlines()
            assert len(sections) == 1
            assert f"## {sections[0]}" in headings


def test_a_new_method_is_first_tried_with_few_attacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "method", "mine", "--into", str(tmp_path)]) == 0
    first, _, second = capsys.readouterr().out.partition("Then: ")[2].partition("\nFor a row of the board, with every ")
    assert "--attack nearest-neighbour --attack relational" in first
    assert "--attack" not in second
    command_line().parse_args(shlex.split(second.partition(": ")[2])[1:], exit_on_error=False, print_error=False)


def test_the_column_of_the_method_template_lies_anywhere_in_an_image_of_any_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["new", "method", "wide-one", "--into", str(tmp_path)]) == 0
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        scheme = importlib.import_module("wide_one").WideOne(width=2).load({})
        keys = [scheme.sample_key(Secret.of_seed(number)) for number in range(40)]
        painted = [(key.query(torch.ones(1, 1, 4, 64)) == 0).all(dim=2).flatten().nonzero().flatten() for key in keys]
        assert {len(columns) for columns in painted} == {2}
        assert max(int(columns[0]) for columns in painted) >= 32  # by chance below it with odds of 1 to 2**40
        assert bool((keys[0].query(torch.ones(1, 1, 4, 1)) == 0).all())
    finally:
        sys.modules.pop("wide_one", None)


def test_the_next_command_can_be_pasted_where_folders_have_spaces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in ("attack", "package"):
        assert main(["new", kind, "my-own", "--into", str(tmp_path / "a b")]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Next: ")]
    assert shlex.split(said[0])[3:] == [f"{tmp_path}/a b/my_own.py:MyOwn"]
    assert shlex.split(said[1])[4] == f"{tmp_path}/a b/my-own"


def test_a_package_beside_is_named_as_a_folder_and_not_as_a_package_of_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "package", "my-own"]) == 0
    assert "Next: bench plugin add ./my-own && bench check my-own" in capsys.readouterr().out


def test_a_package_registers_its_method_and_tests_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["new", "package", "my-own-way", "--into", str(tmp_path)]) == 0
    root = tmp_path / "my-own-way"
    project = tomllib.loads((root / "pyproject.toml").read_text())
    assert project["project"]["name"] == "my-own-way"
    assert project["project"]["dependencies"] == ["veil-bench"]
    assert project["tool"]["setuptools"]["packages"] == ["my_own_way"]
    module, _, cls = project["project"]["entry-points"]["bench.methods"]["my-own-way"].partition(":")
    monkeypatch.syspath_prepend(str(root))
    try:
        found = getattr(importlib.import_module(module), cls)
        assert issubclass(found, Method)
        assert found.name == "my-own-way"
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "my_own_way"]:
            del sys.modules[name]
    for path in root.rglob("*.py"):
        compile(path.read_text(), path, "exec")
    assert "bench leaderboard verify my-own-way-digits.bundle.zip" in (root / "README.md").read_text()


def test_every_kind_is_written_and_has_a_group() -> None:
    assert set(GROUPS) == set(get_args(Kind)) == set(KINDS)
    assert set(GROUPS.values()) < set(ALL)
    for kind in KINDS:
        assert all("$" not in text for text in files(kind, "some-name").values())


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_mine.py").write_text("kept")
    assert main(["new", "metric", "mine", "--into", str(tmp_path)]) == 2
    assert "test_mine.py exists and is not overwritten" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("Mine", "of a-z, 0-9"), ("a--b", "of a-z, 0-9"), ("../a", "of a-z, 0-9"), ("a" * 61, "at most 60"),
     ("identity", "is called identity already"), ("class", "of Python's"), ("json", "of Python's")],
)  # fmt: skip
def test_names_that_would_not_work_are_refused(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "method", name, "--into", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    ["none", "true", "false", "key-error", "json", "methods", "leaderboard", "pytest", "sklearn", "conftest", "torch"],
)
def test_names_that_something_else_has_are_refused(kind: Kind, name: str, tmp_path: Path) -> None:
    assert main(["new", kind, name, "--into", str(tmp_path)]) == 2
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["scikit-learn", "veil-bench"])
def test_a_package_does_not_take_the_place_of_one_that_is_installed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "package", name, "--into", str(tmp_path)]) == 2
    assert f"a package that is called {name} is installed" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "name"),
    [("method", "method"), ("method", "key"), ("method", "scheme"), ("package", "release"), ("attack", "attack"),
     ("attack", "view"), ("metric", "metric"), ("dataset", "source"), ("dataset", "scan")],
)  # fmt: skip
def test_a_class_that_its_own_file_needs_is_refused(
    kind: Kind, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", kind, name, "--into", str(tmp_path)]) == 2
    assert "which it needs itself" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_a_link_that_leads_nowhere_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").symlink_to(tmp_path / "nowhere")
    assert main(["new", "method", "mine", "--into", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]
