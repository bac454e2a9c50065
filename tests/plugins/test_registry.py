from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bench.plugins import registry
from bench.plugins.groups import GROUPS
from bench.plugins.spec import UsageError, parse
from bench.plugins.third_party import is_outside


class _Distribution:
    files = None

    def __init__(self, name: str) -> None:
        self.name = name

    def read_text(self, filename: str) -> str | None:
        """No installer wrote anything down."""
        return None


def _point(name: str, target: str, distribution: str) -> EntryPoint:
    point = EntryPoint(name, target, "bench.methods")
    vars(point)["dist"] = _Distribution(distribution)
    return point


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch):
    """Replace the registered entry points by a given list."""

    def use(*found: EntryPoint) -> None:
        monkeypatch.setattr(registry, "entry_points", lambda group: list(found))
        registry.entries.cache_clear()

    yield use
    registry.entries.cache_clear()


def test_every_plug_in_of_this_project_works() -> None:
    for group in GROUPS:
        for entry in registry.entries(group).values():
            assert registry.inspect(entry).error is None, entry


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown method 'dauntles'; did you mean 'dauntless'"):
        registry.load("methods", "dauntles")


def test_a_broken_plug_in_is_listed_as_broken_and_breaks_nothing_else(points) -> None:
    points(
        _point("identity", "methods.identity:Identity", "veil-bench"),
        _point("needy", "a_package_that_is_not_there:X", "other"),
        _point("wrong", "methods.identity:Nothing", "other"),
    )
    states = {name: registry.inspect(entry).error for name, entry in registry.entries("features").items()}
    assert states["identity"] is None
    assert "needs the package 'a_package_that_is_not_there'" in str(states["needy"])
    assert "broken: AttributeError" in str(states["wrong"])
    with pytest.raises(UsageError, match="cannot be used: needs the package"):
        registry.load("features", "needy")


def test_an_installed_metric_without_a_column_is_left_out_and_told_why(points) -> None:
    points(
        _point("guesswork", "metrics.guesswork:Guesswork", "veil-bench"),
        _point("bare", "bench.contract.metric:Metric", "other"),
    )
    assert registry.working("metrics") == ["guesswork"]
    assert "Metric carries no column" in str(registry.inspect(registry.entries("metrics")["bare"]).error)


def test_this_project_keeps_its_names(points) -> None:
    points(
        _point("identity", "methods.noise:Noise", "another"),
        _point("identity", "methods.identity:Identity", "veil-bench"),
    )
    assert registry.load("methods", "identity").__name__ == "Identity"
    assert "also claimed by veil-bench" in str(registry.entries("methods")["identity (another)"].error)


def test_whoever_calls_himself_as_this_project_is_somebody_else(points) -> None:
    points(_point("mine", "a_package_of_mine:X", "veil-bench"))
    assert registry.origin("methods", "mine") == "another veil-bench"
    assert is_outside("methods", parse("mine"))


def test_a_name_claimed_by_two_others_goes_to_neither(points) -> None:
    points(_point("mine", "methods.noise:Noise", "one"), _point("mine", "methods.identity:Identity", "two"))
    with pytest.raises(UsageError, match="also claimed by two"):
        registry.load("methods", "mine")


def test_a_class_in_a_file_works_without_packaging(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom methods.identity import Identity\n\n"
        "@dataclass(frozen=True)\nclass Mine(Identity):\n    '''Mine.'''\n    k: int = 1\n"
    )
    made = registry.build("methods", parse(f"{file}:Mine[k=4]"), "quick")
    assert made.k == 4  # type: ignore[attr-defined]
    assert registry.origin("methods", f"{file}:Mine") == "mine.py"
    with pytest.raises(UsageError, match="did you mean 'Mine'"):
        registry.load("methods", f"{file}:Mien")


def test_a_file_that_is_not_there_or_does_not_import_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such plug-in file"):
        registry.load("methods", f"{tmp_path}/none.py:X")
    (tmp_path / "bad.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        registry.load("methods", f"{tmp_path}/bad.py:X")
