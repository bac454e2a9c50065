"""Attacks are trained once more on releases that the judge makes as the owner's, and the worse outcome counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made import cheats, public_simulator
from made.cells import choice, place

from bench.evidence import EVES_FORM, OWNERS_FORM
from bench.isolation.call_shape import CallShape
from bench.isolation.simulations import SimulatedKey, Simulations
from bench.plugins.configured import configure
from bench.randomness import Secret
from bench.runs.tasks import EvaluateTask, Evaluation, evaluate_task
from bench.types import Dataset, NotApplicable, Release, paired
from bench.workbench.cell import Cell, Planned

N, COUNT = 12, 8
PRIVATE = Dataset(
    "private", torch.rand(N, 3, generator=torch.Generator().manual_seed(0)), torch.eye(2).repeat(N // 2, 1), None,
    ("first", "second"), True, True,
)  # fmt: skip


def simulations(*, linked: bool = True) -> Simulations:
    """Rows times the number of their release, plus one; raw labels by links, as the judge adds them."""

    def release(number: int) -> Release:
        made = paired(PRIVATE.samples * (number + 1), PRIVATE.labels)
        return made if linked else replace(made, links=None)

    return Simulations(PRIVATE, CallShape(Secret.of_seed(0), "none", False), COUNT, release)


def some(*rows: int) -> Dataset:
    return replace(PRIVATE.take(torch.tensor(rows)), labels=None)


def test_a_call_gets_the_part_of_a_release_that_shows_its_rows() -> None:
    found = SimulatedKey(simulations(), 2).release(some(7, 0, 3))
    assert torch.equal(found.samples, 3 * PRIVATE.samples[[7, 0, 3]])
    assert found.links is not None
    assert found.links.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert found.labels is None


@pytest.mark.parametrize("given", [some(1, 1), replace(some(1), samples=torch.zeros(1, 3))])
def test_other_rows_are_refused(given: Dataset) -> None:
    with pytest.raises(NotApplicable, match="no others"):
        simulations().shown(0, given)


def test_a_release_without_links_is_whole_or_none() -> None:
    assert len(simulations(linked=False).shown(0, some(*range(N)))) == N
    with pytest.raises(NotApplicable, match="without links"):
        simulations(linked=False).shown(0, some(0))


def test_keys_beyond_the_releases_share_none_of_the_first() -> None:
    """Attacks judge by keys that they draw first."""
    made = simulations()
    numbers = [made.number(str(key).encode()) for key in range(3 * COUNT)]
    assert numbers[:COUNT] == list(range(COUNT))
    assert set(numbers[COUNT:]) == set(range(2, COUNT))
    assert made.number(b"3") == numbers[3]


def evaluated(
    folder: Path, method: str, attack: str, *, of: str = "reidentification", by: str = "reid-auc"
) -> Evaluation:
    where = Cell(configure("methods", f"{cheats.__file__}:{method}", "smoke"), choice("digits"), "cpu")
    planned = Planned(of, configure("attacks", attack, "smoke"), (by,))
    return evaluate_task(EvaluateTask(where, place(folder), planned, "processes"))


@pytest.mark.isolated
@pytest.mark.usefixtures("quick_rooms")
@pytest.mark.parametrize("by", ["any", "mean"])
def test_a_method_that_remembers_public_rows_is_broken_in_the_owners_form(by: str, tmp_path: Path) -> None:
    found = evaluated(tmp_path, f"Remembering[by={by}]", f"{public_simulator.__file__}:PublicSimulator")
    score = found.scores["reid-auc"]
    assert score.parts[EVES_FORM].value == 0.5
    assert score.value == score.parts[OWNERS_FORM].value > 0.95
    assert score.note.startswith(f"worst of 2 trainings: {OWNERS_FORM}")
    assert score.p is not None
    assert score.p < 0.001
    assert found.details[OWNERS_FORM]["calls of the method"] == "1 x 160 rows of the owner's call"  # type: ignore[index, call-overload]


@pytest.mark.isolated
@pytest.mark.usefixtures("quick_rooms")
def test_an_attack_that_makes_no_releases_is_trained_once(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "Honest", "nearest-neighbour")
    assert not found.scores["reid-auc"].parts
    assert OWNERS_FORM not in found.details


@pytest.mark.isolated
@pytest.mark.usefixtures("quick_rooms")
def test_an_attack_on_members_works_once_more_without_public_rows(tmp_path: Path) -> None:
    attack = f"{public_simulator.__file__}:PublicMembers"
    found = evaluated(tmp_path, "Remembering[raw=true]", attack, of="membership", by="membership-auc")
    score = found.scores["membership-auc"]
    assert score.parts[EVES_FORM].value == 0.5
    assert score.value == score.parts[OWNERS_FORM].value > 0.99
    assert score.p is not None
    assert score.p < 0.001
    assert found.details["shown"] == "False"
    assert found.details[OWNERS_FORM]["shown"] == "True"  # type: ignore[index, call-overload]


@pytest.mark.isolated
@pytest.mark.usefixtures("quick_rooms")
def test_an_attack_on_members_that_makes_no_releases_works_once(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "Honest", "dcr", of="membership", by="membership-auc")
    assert not found.scores["membership-auc"].parts
    assert OWNERS_FORM not in found.details
