from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bench import shadowing
from bench.runs.local_engine import LocalEngine

ROOT = Path(shadowing.__file__).parent.parent


def bench(*command: str, cwd: Path, path: Path | None = None) -> tuple[int, str]:
    """Exit code and error output of a command, with a folder put before this project's on the path."""
    before = [str(path)] if path else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*before, str(ROOT)])}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def script() -> str:
    """The command that the installation made."""
    found = shutil.which("bench", path=sysconfig.get_path("scripts"))
    assert found is not None
    return found


def test_a_folder_on_the_path_that_shadows_a_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine" / "methods").mkdir(parents=True)
    (tmp_path / "mine" / "methods" / "__init__.py").touch()
    code, said = bench(script(), "list", cwd=tmp_path, path=tmp_path / "mine")
    assert code == 2
    assert said.count("\n") == 1
    assert f"'methods' leads to {tmp_path / 'mine' / 'methods'}" in said
    assert f"expected {ROOT / 'methods'}" in said
    assert f"take {tmp_path / 'mine'} off PYTHONPATH" in said


def test_a_file_in_the_folder_that_shadows_a_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    code, said = bench(sys.executable, "-m", "bench", "list", cwd=tmp_path)
    assert code == 2
    assert f"'metrics' leads to {tmp_path / 'metrics.py'}" in said
    assert "start the command from another folder" in said


def test_a_folder_without_code_shadows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "attacks").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    shadowing.guard()


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadowing, "PACKAGES", ("bench", "leaderboards"))
    with pytest.raises(shadowing.ShadowedError, match="'leaderboards' of Veil Bench is missing"):
        shadowing.guard()


def test_workers_do_not_look_for_modules_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    monkeypatch.delenv("PYTHONSAFEPATH")  # the two together: whatever is set in between is taken back
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, "-c", "import bench.shadowing"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode != 0
    LocalEngine(jobs=1, memory=1, notify=lambda *told: None)
    subprocess.run(command, cwd=tmp_path, check=True)
