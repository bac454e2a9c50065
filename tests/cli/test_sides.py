"""Methods whose preset is made for images of a side get them at it, unless a user says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.commands import request

from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.runs.plan import work
from bench.runs.request import run_spec, run_specs
from bench.runs.run_spec import RunSpec

OWN = '''
from dataclasses import dataclass
from typing import ClassVar
from methods.blur import Blur

@dataclass(frozen=True)
class Sharp(Blur):
    """Made for 96 pixels."""
    name: ClassVar[str] = "sharp"
    sides: ClassVar = {"smoke": SIDE}
'''


def planned(*arguments: str) -> tuple[RunSpec, ...]:
    return run_specs(request(["run", "--attack", "none", "--device", "cpu", *arguments]))


def sizes(*arguments: str) -> list[tuple[list[str], list[int | None]]]:
    return [
        ([each.name for each in spec.methods], [choice.size for choice in spec.choices]) for spec in planned(*arguments)
    ]


def test_the_preset_paper_prepares_images_at_the_papers_side() -> None:
    told = (
        "--dataset",
        "synth-cxr",
        "--method",
        "dp-glow",
        "--method",
        "blur",
        "--method",
        "cadp",
        "--method",
        "noise",
    )
    assert sizes(*told, "--preset", "paper") == [(["dp-glow"], [512]), (["blur", "noise"], [None]), (["cadp"], [128])]
    assert sizes(*told, "--preset", "quick") == [(["dp-glow", "blur", "cadp", "noise"], [None])]


def test_what_a_user_says_wins_and_data_of_one_side_keep_it() -> None:
    paper = ("--method", "dp-glow", "--method", "blur", "--preset", "paper")
    assert sizes(*paper, "--dataset", "synth-cxr", "--size", "256") == [(["dp-glow", "blur"], [256])]
    assert sizes(*paper, "--dataset", "digits") == [(["dp-glow", "blur"], [None])]
    assert sizes(*paper, "--dataset", "synth-cxr", "--features", "pixels") == [(["dp-glow", "blur"], [None])]


def test_controls_and_records_are_of_the_same_side() -> None:
    (spec,) = run_specs(
        request(
            ["run", "--attack", "chance", "--controls", "--device", "cpu", "--method", "dp-glow", "--preset", "paper"]
        )
    )
    found = list(work(spec))
    assert len(found) > 1
    assert {cell.choice.size for cell in found} == {512}
    assert {cell.choice.shown()["size"] for cell in found} == {512}


def test_a_command_that_does_one_thing_asks_for_the_side() -> None:
    told = ["--method", "dp-glow", "--method", "blur", "--preset", "paper", "--out", "sheet.png"]
    with pytest.raises(UsageError, match=r"images of different sides \(512, their own\): choose one by --size"):
        run_spec(request(["show", *told]))


@pytest.mark.usefixtures("quick_rooms")
def test_a_method_from_outside_says_its_side_and_nothing_else_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN.replace("SIDE", "96"))
    assert configure("methods", f"{path}:Sharp", "smoke").plugin.sides == {"smoke": 96}
    for number, (said, told) in enumerate((("'wide'", "wide"), ("True", "True"), ("10**6", "1000000"), ("0", "0"))):
        path = tmp_path / f"wrong{number}.py"
        path.write_text(OWN.replace("SIDE", said))
        with pytest.raises(UsageError, match=f"sides must be pixels, 4096 at most, got {told}"):
            configure("methods", f"{path}:Sharp", "smoke")
