"""The wheel holds what the packages read, and nothing that is for a checkout alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("attacks", "bench", "leaderboard", "methods", "metrics")
OF_A_CHECKOUT = ("leaderboard/published/", "leaderboard/submissions/", "leaderboard/verifiers/", "leaderboard/weights/")


def _tracked() -> list[str]:
    found = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("not a checkout: there is no list of files")
    return found.stdout.splitlines()


@pytest.mark.skipif(find_spec("setuptools") is None, reason="the wheel is built by the installed setuptools")
def test_the_wheel_holds_the_packages_files_and_no_others(tmp_path: Path) -> None:
    tracked = _tracked()
    for name in (*tracked, "pyproject.toml", "README.md", "LICENSE"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "tree" / name)
    build = "import sys, setuptools.build_meta as build; print(build.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=tmp_path / "tree", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {name for name in tracked if not name.startswith(OF_A_CHECKOUT)}
    assert held == expected
