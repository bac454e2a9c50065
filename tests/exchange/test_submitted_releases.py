"""Releases that another tool made are handed in with what can be asked of them, and verified from their folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made import submissions

from bench.data import example_release
from bench.exchange import check
from bench.exchange.bundle_tiers import assign_tiers
from bench.exchange.check import required
from bench.exchange.submit import submit
from bench.exchange.verify import Here
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.results.bundle import Bundle
from bench.results.records import Record
from bench.results.results import Results
from bench.results.verdict import Tier
from bench.runs import tasks
from bench.runs.plan import work
from bench.runs.tasks import EvaluateTask, evaluate_task
from bench.types import NotApplicable
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice

ASKED = {f"reidentification-{name}" for name in submissions.ATTACKS} | {"membership-dcr"}


def wanted(written: str) -> Any:
    choice = Choice.read(submissions.CHOICE).kept_for(configure("methods", written, "smoke"))
    return submissions.spec(
        [written], controls=True, attacks=submissions.RECORDED_ATTACKS, metrics=submissions.RECORDED_METRICS,
        choice=choice,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("imported") / "mine"
    for name, content in example_release.files().items():
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_bytes(content)
    return found


@pytest.fixture(scope="module")
def packed(folder: Path) -> Bundle:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "required", submissions.few)
        where = submissions.place_of(folder.parent / "results", folder.parent / "cache")
        submissions.run(wanted(f"imported[path={folder}]"), where)
        assert submit(where.results, folder.parent / "a.bundle.zip", disclose=True)[1] == ()
    return Bundle.open(folder.parent / "a.bundle.zip")


def test_an_attack_that_needs_releases_of_its_own_has_no_controls_and_starts_no_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = work(wanted(f"imported[path={folder}]"))
    own, *controls = planned
    assert {each.name for each in planned[own]} >= {*ASKED, "reidentification-moments"}
    assert {each.name for cell in controls for each in planned[cell]} == ASKED
    monkeypatch.setattr(tasks, "_evaluator", lambda task: pytest.fail("a room was started"))
    moments = next(each for each in planned[own] if each.name == "reidentification-moments")
    with pytest.raises(NotApplicable, match="released by another tool"):
        evaluate_task(EvaluateTask(own, submissions.place_of(folder.parent, folder.parent), moments, "processes"))
    assert own.refusal(moments)
    assert not Cell(configure("methods", "mosaic", "smoke"), own.choice, "cpu").refusal(moments)


@pytest.mark.parametrize(("attack", "makes"), [("gan-leaks", True), ("gan-leaks[calibrate=false]", False),
                                               ("dcr", False), ("contrastive-labels", True)])  # fmt: skip
def test_attacks_say_whether_they_need_releases_of_their_own(attack: str, makes: bool) -> None:
    assert configure("attacks", attack, "smoke").plugin.makes_releases is makes


def test_membership_is_required_of_a_release_by_another_tool() -> None:
    def names(planned: list[Planned]) -> set[str]:
        return {each.kind for each in planned}

    choice = Choice.read(submissions.CHOICE)
    assert "membership" in names(required(choice, recorded=True))
    assert "membership" not in names(required(choice))


def test_a_row_without_its_membership_attacks_is_incomplete(packed: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "required", submissions.few)
    kept = {name: content for name, content in packed.files.items() if "/membership-dcr" not in name}
    assert len(kept) < len(packed.files)
    found = check.check(Results(unpacked(packed, kept)))
    assert "membership-dcr" in next(each.reason for each in found.findings if each.kind == "incomplete")


def unpacked(bundle: Bundle, files: dict[str, bytes]) -> Path:
    top = bundle.path.parent / "without"
    for name, content in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
    return top


def test_a_verifier_measures_it_again_from_a_folder_of_her_own(
    packed: Bundle, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "required", submissions.few)
    hers = folder.rename(folder.with_name("hers"))
    here = Here.of([f"imported[path={hers}]"])

    def again(records: list[Record], secrets: Any) -> Any:
        return submissions.again(folder.parent / "again", folder.parent / "cache", here.placed(records), secrets)

    found = assign_tiers(packed, rerun=9, again=again)
    assert found.refused == ()
    assert found.verdict is not None
    assert {row.tier for row in found.verdict.rows.values()} == {Tier.RE_RUN}
    with pytest.raises(UsageError, match=r"name its folder, as in --release 'imported\[path=FOLDER\]'"):
        Here.of([]).placed([record for _, record in packed.results.records() if isinstance(record, Record)])
    (hers / "links.csv").unlink()
    with pytest.raises(UsageError, match="expected imported"):
        Here.of([f"imported[path={hers}]"]).placed(
            [record for _, record in packed.results.records() if isinstance(record, Record)]
        )


def test_only_a_folder_of_released_rows_can_be_named() -> None:
    with pytest.raises(UsageError, match="--release names a folder of released rows"):
        Here.of(["mosaic"])
