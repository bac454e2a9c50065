"""An installed copy holds what the source tree does."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
STAYS = ("leaderboard/published", "leaderboard/submissions", "leaderboard/verifiers", "leaderboard/weights")
"""What belongs to the project's own board: tens of megabytes that no installed copy needs."""


def test_every_file_that_is_no_code_is_installed() -> None:
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    data = setup["package-data"]
    packages = [pattern.removesuffix("*") for pattern in setup["packages"]["find"]["include"]]
    files = [path for name in packages for path in (ROOT / name).rglob("*") if path.is_file()]
    named = {path for name, patterns in data.items() for pattern in patterns for path in (ROOT / name).glob(pattern)}
    here = [path for path in files if not path.relative_to(ROOT).as_posix().startswith(STAYS)]
    assert {path for path in here if path.suffix != ".py" and path.parent.name != "__pycache__"} == named


def test_every_folder_of_code_is_a_package() -> None:
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    packages = [pattern.removesuffix("*") for pattern in setup["packages"]["find"]["include"]]
    folders = {path.parent for name in packages for path in (ROOT / name).rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
