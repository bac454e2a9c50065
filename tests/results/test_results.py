"""Results know alone where things lie, and a second place is another storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from made.board_records import record
from made.cells import cell

from bench.plugins.spec import UsageError
from bench.results.journal import AlteredWarning
from bench.results.records import Record, picture_record
from bench.results.results import Results
from bench.runs.plan import Planned, read_plan, write_plan
from leaderboard.site import build


class Memory:
    """A storage that keeps everything in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        if name not in self.kept:
            raise FileNotFoundError(name)
        return self.kept[name]

    def write(self, name: str, content: bytes, still: Callable[[], bool] = lambda: True) -> bool:
        if asked := still():
            self.kept[name] = content
        return asked

    def write_once(self, name: str, content: bytes) -> bool:
        return self.kept.setdefault(name, content) is content

    def holds(self, name: str) -> bool:
        return name in self.kept

    def remove(self, name: str) -> None:
        self.kept.pop(name, None)

    def names(self, pattern: str) -> Iterator[str]:
        return iter(sorted(name for name in self.kept if fnmatch(name, pattern)))


def both(folder: Path) -> list[Results]:
    return [Results(folder), Results(folder / "elsewhere", Memory())]


def test_a_record_comes_back_with_its_pictures_from_any_storage(tmp_path: Path) -> None:
    shown = {"release": picture_record(b"png", "What it shows")}
    for results in both(tmp_path):
        made = results.keep(
            record("identity", "sets", kind="sets", cell="digits/one", pictures=shown), {"release": b"png"}
        )
        assert results.record("digits/one", "sets") == made
        assert [found for _, found in results.records()] == [made]
        assert results.picture(made, "release") == b"png"


def test_pictures_of_an_earlier_record_go_and_those_of_another_stay(tmp_path: Path) -> None:
    def drawn(evaluator: str, png: bytes) -> Record:
        told = {"kind": "sets", "cell": "digits/one", "pictures": {"plane": picture_record(png, "")}}
        return record("identity", evaluator, **told)

    one, other = drawn("sets", b"old"), drawn("sets-more", b"other")
    for results in both(tmp_path):
        results.keep(one, {"plane": b"old"})
        results.keep(other, {"plane": b"other"})
        newer = results.keep(drawn("sets", b"new"), {"plane": b"new"})
        assert results.picture(newer, "plane") == b"new"
        assert results.picture(one, "plane") is None
        assert results.picture(other, "plane") == b"other"


def test_a_broken_record_is_named_and_the_rest_read(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.keep(record("identity", "utility", kind="utility", cell="digits/one"), {})
    (tmp_path / "cells" / "digits" / "one" / "a.json").write_bytes(b"\xff{")
    found = dict(results.records())
    assert "a.json" in str(found["cells/digits/one/a.json"])
    assert isinstance(found["cells/digits/one/utility.json"], Record)


def test_plans_come_back_and_add_up(tmp_path: Path) -> None:
    made = cell("dp-simple[scale=3]")
    for results in both(tmp_path):
        write_plan(results, made, [Planned("sets", None, ("max-dispersion",))])
        write_plan(results, made, [Planned("throughput", None, ("throughput",))])
        assert list(results.journal.plans()) == [made.folder]
        found, planned = read_plan(results.journal.plan(made.folder) or "")
        assert found == made
        assert list(planned) == ["sets", "throughput"]


def test_a_plan_that_is_none_is_written_anew(tmp_path: Path) -> None:
    results, made = Results(tmp_path), cell("dp-simple[scale=3]")
    results.journal.keep_plan(made.folder, "a: 1", None)
    with pytest.warns(AlteredWarning, match="a plan must be a mapping"):
        write_plan(results, made, [Planned("sets", None, ("max-dispersion",))])
    assert list(read_plan(results.journal.plan(made.folder) or "")[1]) == ["sets"]


@pytest.mark.parametrize("place", ["method", "dataset", "evaluator", "attack", "metric"])
def test_no_file_that_a_plan_names_is_run_unless_the_reader_says_so(place: str, tmp_path: Path) -> None:
    """A results folder may come from anybody."""
    path = tmp_path / "theirs.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    named = f"{path}:Theirs"
    told = {"name": "sets", "evaluator": "sets", "attack": None, "metrics": ["max-dispersion"]}
    plan = {**cell("dp-simple").values(), "evaluators": [told]}
    if place in plan:
        plan[place] = named
    else:
        told[place if place in told else "metrics"] = [named] if place == "metric" else named
    text = yaml.safe_dump(plan)
    if place in ("method", "dataset"):
        with pytest.raises(UsageError, match="a plug-in from a file"):
            read_plan(text)
    else:
        assert "a plug-in from a file" in str(read_plan(text)[1]["sets"])
    assert not (tmp_path / "ran").exists()
    if place == "dataset":
        with pytest.raises(UsageError):
            read_plan(text, files=True)
        assert (tmp_path / "ran").exists()  # the text does run it where that is allowed


def test_pages_are_built_from_any_storage(tmp_path: Path) -> None:
    results = Results(tmp_path, Memory())
    results.keep(record("identity", cell="digits/one"), {})
    assert "identity" in build(results, tmp_path / "site").read_text()


def test_what_may_hold_private_rows_is_for_the_owner_alone(tmp_path: Path) -> None:
    write_plan(Results(tmp_path), cell(), [])
    assert (tmp_path / "artefacts").stat().st_mode & 0o077 == 0
