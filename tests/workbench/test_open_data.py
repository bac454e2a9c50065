"""No person stands in the public and in the private set: two folders of one hospital may name the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.cells import choice, place
from made.data_files import picture

from bench.cli import main
from bench.workbench.open_data import refuse_shared_people


def hospital(top: Path, names: list[str], first: int) -> str:
    for number in range(first, first + len(names)):
        picture(top / f"{number}.png", number, 8, 8)
    rows = [f"{number}.png,{name},{number % 2}" for number, name in enumerate(names, start=first)]
    (top / "labels.csv").write_text("\n".join(("path,subject,finding", *rows)) + "\n")
    return f"folder:{top}"


PRIVATE = [*(f"P{number:02}" for number in range(1, 30)), "nan"]


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("run", ["--attack", "chance", "--no-controls", "--jobs", "1", "--no-site"]),
        ("release", ["--out", "out", "--accept", "a test", "--ledger", "ledger"]),
        ("show", ["--out", "a.png", "--confidential"]),
    ],
)
@pytest.mark.parametrize(("public", "told"), [(["p07 ", "P30", "nan"], "1 of its 2 people"), (["P30", "P31"], "")])
def test_a_public_set_that_names_people_of_the_private_set_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], public: list[str], told: str,
    verb: str, options: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    private, beside = hospital(tmp_path / "own", PRIVATE, 1), hospital(tmp_path / "beside", public * 4, 101)
    sized = [] if verb == "release" else ["--preset", "smoke"]
    code = main([
        verb, "--method", "dp-simple", "--dataset", private, "--public", beside, "--size", "8", *sized,
        "--results", str(tmp_path / "results"), *options,
    ])  # fmt: skip
    assert bool(code) == bool(told)
    assert told in capsys.readouterr().err


def test_published_collections_number_their_people_each_by_itself(tmp_path: Path) -> None:
    public = hospital(tmp_path / "beside", ["P30"], 1)
    refuse_shared_people(choice("digits", public=public), place(tmp_path))
    assert not (tmp_path / "cache").exists()  # neither is prepared to be compared
