"""What is kept of plug-ins between calls: used while nothing changed, found out anew when anything did."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main, readings, remembered
from bench.cli.remembered import FOLDER, MOST
from bench.plugins import meaning, source_hash
from bench.shadowing import HOME


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the cache."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path))
    return tmp_path / FOLDER


def counted() -> tuple[list[None], Callable[[], str]]:
    calls: list[None] = []

    def answer() -> str:
        calls.append(None)
        return f"answer {len(calls)}"

    return calls, answer


def test_an_answer_is_found_once_for_each_question(folder: Path) -> None:
    calls, answer = counted()
    said = [remembered.remembered(question, answer) for question in ("a", "a", "b", "a")]
    assert said == ["answer 1", "answer 1", "answer 2", "answer 1"]
    assert len(calls) == 2


def test_a_change_of_state_asks_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, answer = counted()
    for state in ("one", "two", "one"):
        monkeypatch.setattr(remembered, "_state", lambda state=state: state)
        remembered.remembered("a", answer)
    assert len(calls) == 2


def test_the_state_follows_source_files(tmp_path: Path) -> None:
    package = tmp_path / "author"
    package.mkdir()
    module = package / "__init__.py"
    module.write_text("x = 1\n")
    sys.path.insert(0, str(tmp_path))
    try:
        before = set(remembered._stamps({"author:X"}))
        assert any(stamp[0] == str(module) for stamp in before)
        module.write_text("x = 12\n")
        assert set(remembered._stamps({"author:X"})) != before
        before = set(remembered._stamps({"author:X"}))
        (package / "table.json").write_text("{}")
        assert set(remembered._stamps({"author:X"})) != before
        before = set(remembered._stamps({"author:X"}))
        (package / "__pycache__").mkdir()
        (package / "__pycache__" / "module.pyc").write_bytes(b"1")
        assert set(remembered._stamps({"author:X"})) == before
    finally:
        sys.path.remove(str(tmp_path))


def test_the_state_follows_what_pages_are_made_of() -> None:
    inside = [Path(stamp[0]) for stamp in remembered._stamps(set()) if HOME in Path(stamp[0]).parents]
    stamped = {path.relative_to(HOME).as_posix() for path in inside}
    assert stamped >= {
        "leaderboard/templates/base.html", "leaderboard/static/board.css", "leaderboard/reach.json",
        "leaderboard/reproduction.yaml", "bench/suites/quickstart.yaml", "bench/__init__.py",
    }  # fmt: skip
    assert not any(name.startswith("leaderboard/published/") for name in stamped)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"question": "other", "answer": "lie"}', b'{"question": "a", "answer": 3}']
)
def test_what_is_no_answer_is_not_taken_for_it(folder: Path, content: bytes) -> None:
    calls, answer = counted()
    remembered.remembered("a", answer)
    (kept,) = folder.glob("*.json")
    kept.write_bytes(content)
    assert remembered.remembered("a", answer) == "answer 2"
    assert len(calls) == 2


def test_without_a_folder_it_answers_all_the_same(folder: Path) -> None:
    folder.write_text("a file where the folder would be")
    answer = counted()[1]
    assert [remembered.remembered("a", answer) for _ in range(2)] == ["answer 1", "answer 2"]


def test_the_oldest_answers_go(folder: Path) -> None:
    for number in range(MOST + 3):
        remembered.remembered(str(number), lambda: "")
    assert len(list(folder.glob("*.json"))) == MOST


LIST = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from bench.cli import main
main(["list", "features"])
print("torch" in sys.modules)
"""


def test_a_list_that_is_remembered_imports_no_torch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found out here, and told by another process that has the same packages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remembered._state.cache_clear()
    assert main(["list", "features"]) == 0
    first = capsys.readouterr().out
    line = [sys.executable, "-c", LIST, json.dumps(sys.path)]
    second = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert second == first + "False\n"
    assert "eigenspace" in first


def test_an_error_is_not_remembered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [main(["info", "no-such-plug-in"]) for _ in range(2)] == [2, 2]
    assert capsys.readouterr().err.count("unknown plug-in") == 2
    assert not list(folder.glob("*.json"))


def test_source_files_are_read_once_for_all_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path))
    monkeypatch.setattr(readings, "READ", read := {})
    monkeypatch.setattr(meaning, "READ", read)
    module = tmp_path / "module.py"

    def hashed(text: str) -> str:
        module.write_text(text, encoding="utf-8")
        for kept in (source_hash.modules_hash, source_hash.behind, meaning.read):
            kept.cache_clear()
        read.clear()
        with readings.kept_readings():
            return source_hash.modules_hash(module)

    first = hashed("number = 1")
    with monkeypatch.context() as unread:
        unread.setattr(meaning.ast, "parse", pytest.fail)
        assert hashed("number = 1") == first
    assert hashed("number = 2") != first
    (tmp_path / readings.FILE).write_text('{"a": "no reading"}')
    assert hashed("number = 1") == first
    monkeypatch.setattr(readings, "MOST", 1)
    assert hashed("number = 3") != first
    assert len(json.loads((tmp_path / readings.FILE).read_text())) == 1
