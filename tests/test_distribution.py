"""What is handed out holds what the packages read, and runs away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
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


BESIDE = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "MANIFEST.in",
    "CHANGELOG.md",
    "CITATION.cff",
    "SECURITY.md",
    "CONTRIBUTING.md",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist of the tracked files, and a wheel that was built of it."""
    folder = tmp_path_factory.mktemp("built")
    for name in (*_tracked(), *BESIDE, "tests/test_words.py"):
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "tree" / name)

    def build(kind: str, where: Path) -> None:
        code = f"import sys, setuptools.build_meta as build; print(build.build_{kind}(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", code, str(folder)], cwd=where, check=True, capture_output=True)

    build("sdist", folder / "tree")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    build("wheel", next((folder / "unpacked").iterdir()))
    return folder


def _wheel(built: Path) -> zipfile.ZipFile:
    (wheel,) = built.glob("*.whl")
    return zipfile.ZipFile(wheel)


def test_the_wheel_of_the_sdist_holds_the_packages_files_and_no_others(built: Path) -> None:
    held = {name for name in _wheel(built).namelist() if ".dist-info/" not in name}
    assert held == {name for name in _tracked() if not name.startswith(OF_A_CHECKOUT)}


def test_the_sdist_holds_what_a_reader_looks_for_and_no_stray_tests(built: Path) -> None:
    (tree,) = (built / "unpacked").iterdir()
    assert {name for name in BESIDE if not (tree / name).is_file()} == set()
    assert not (tree / "tests").exists()


def test_the_wheel_runs_outside_the_checkout(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    _wheel(built).extractall(place)
    told = subprocess.run(
        [sys.executable, "-c", "import bench, leaderboard; print(bench.__file__, leaderboard.__file__)"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(place)}, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert all(Path(name).is_relative_to(place) for name in told)
    run = subprocess.run(
        [sys.executable, "-m", "bench", "run", "--dataset", "diabetes", "--method", "identity", "--method", "noise",
         "--attack", "nearest-neighbour", "--preset", "smoke", "--isolation", "none", "--results", "results"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(place)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "results" / "site" / "index.html").is_file()
