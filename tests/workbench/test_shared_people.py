"""No person stands in the public and in the private set: two folders of one hospital may name the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.official_trees import picture

from bench.cli import main


def hospital(top: Path, names: list[str], first: int) -> str:
    for number in range(first, first + len(names)):
        picture(top / f"{number}.png", number, 8, 8)
    rows = [f"{number}.png,{name},{number % 2}" for number, name in enumerate(names, start=first)]
    (top / "labels.csv").write_text("\n".join(("path,subject,finding", *rows)) + "\n")
    return f"folder:{top}"


@pytest.mark.parametrize(("public", "told"), [(["p07 ", "P30", "nan"], "1 of its 2 people"), (["P30", "P31"], "")])
def test_a_public_set_that_names_people_of_the_private_set_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], public: list[str], told: str
) -> None:
    private = hospital(tmp_path / "own", [*(f"P{number:02}" for number in range(1, 30)), "nan"], 1)
    beside = hospital(tmp_path / "beside", public * 4, 101)
    code = main([
        "run", "--method", "identity", "--dataset", private, "--public", beside, "--preset", "smoke", "--size", "8",
        "--attack", "chance", "--no-controls", "--results", str(tmp_path / "results"), "--jobs", "1", "--no-site",
    ])  # fmt: skip
    assert bool(code) == bool(told)
    assert told in capsys.readouterr().err
