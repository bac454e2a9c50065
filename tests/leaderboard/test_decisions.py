"""Every row and file has its decision, every protocol its board, and no row is made of two runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made.board_records import auc, record, word
from made.current_records import current

from bench.results import signed_json
from bench.results.records import Record, proved
from bench.results.results import Results
from bench.results.verdict import Judged, JudgedRow, Tier, Verdict, fingerprint
from bench.workbench.inputs import PROTOCOL
from leaderboard.api import MANIFEST
from leaderboard.intake import Intake, boards, intake
from leaderboard.site import altered, build

NEW, OLD = {"inputs": {"protocol": PROTOCOL}}, {"inputs": {"protocol": 2}}


def keep(folder: Path, *records: Any) -> Results:
    for each in records:
        Results(folder).keep(each, {})
    return Results(folder)


def manifest(site: Path) -> dict[str, Any]:
    return signed_json.read((site / MANIFEST).read_bytes(), MANIFEST)


def test_every_row_and_every_refused_file_has_its_decision_and_reason(tmp_path: Path) -> None:
    results = keep(tmp_path / "r", current(), current("dp-simple"), current("noise", limit=3))
    path = tmp_path / f"r/cells/{current('dp-simple').cell}"
    keep(tmp_path / "r", current("blur"))
    broken = next((tmp_path / "r/cells/digits").glob("blur*/utility.json"))
    broken.write_text(broken.read_text().replace("0.75", "0.95"))
    site = build(results, tmp_path / "site").parent
    found = manifest(site)
    rows = {row["method"].partition("[")[0]: row for row in found["rows"]}
    assert {name: row["decision"] for name, row in rows.items()} == {"identity": "shown", "dp-simple": "unrated"}
    assert rows["dp-simple"]["reason"] == "the check of its promises did not run"
    assert {row["tier"] for row in rows.values()} == {"self-reported"}
    assert {row["protocol"] for row in rows.values()} == {PROTOCOL}
    assert path.name.startswith("dp-simple")
    assert [(each["name"].rpartition("/")[2], each["decision"]) for each in found["left_out"]] == [
        ("utility.json", "refused"), ("utility.json", "refused"),
    ]  # fmt: skip
    assert sorted(each["reason"].partition(":")[0] for each in found["left_out"]) == ["altered", "limited"]
    assert str(tmp_path) not in (site / MANIFEST).read_text()


def test_a_new_protocol_starts_a_board_and_the_old_one_keeps_its_address(tmp_path: Path) -> None:
    old, new = current("noise", **OLD), current("identity")
    number = current().inputs["protocol"]
    first = build(keep(tmp_path / "r", old), tmp_path / "site").parent
    assert 'url=../index.html"' in (first / "protocol-2/index.html").read_text()
    assert manifest(first)["rows"][0]["decision"] == "shown"
    build(keep(tmp_path / "r", new), tmp_path / "site")
    rows = {row["method"]: row for row in manifest(first)["rows"]}
    assert (rows["noise"]["decision"], rows["noise"]["board"]) == ("superseded", "protocol-2/")
    assert rows["noise"]["reason"] == f"measured by protocol 2; protocol {number} counts now"
    assert (rows["identity"]["decision"], rows["identity"]["board"]) == ("shown", "")
    assert '<a href="protocol-2/index.html">protocol 2: 1 row</a>' in (first / "index.html").read_text()
    assert "noise" in (first / "protocol-2/board.html").read_text()
    assert rows["noise"]["id"] in (first / "protocol-2/methods/noise.html").read_text()
    assert rows["noise"]["id"] not in (first / "board.html").read_text()
    assert f"measures by protocol {number}" in (first / "protocol-2/index.html").read_text()
    assert "measures by protocol" not in (first / "index.html").read_text()
    assert (first / f"protocol-{number}/index.html").exists()
    assert altered(first) == []


def test_what_says_no_protocol_stands_with_the_newest() -> None:
    made = boards(Intake((current(), current("noise", dataset=None, inputs={}, scores={}), current("blur", **OLD)), {}))
    assert [len(board.records) for board in made.values()] == [2, 1]
    assert boards(Intake((), {})) == {}


def test_a_row_is_taken_whole_from_one_source(tmp_path: Path) -> None:
    attack = current(kind="reidentification", attack="nearest-neighbour", created="2025-01-01T00:00:00+00:00")
    own = keep(tmp_path / "own", current("noise"))
    older = keep(tmp_path / "a", current(created="2025-01-01T00:00:00+00:00"), attack)
    newer = keep(tmp_path / "b", current(created="2026-01-01T00:00:00+00:00"))
    for sources, years in (((own, older, newer), ["2025"] * 2), ((own, newer, older), ["2026"])):
        taken = intake(*sources)
        mine = [found for found in taken.records if found.method.name == "identity"]
        assert [found.created[:4] for found in mine] == years
        (left,) = taken.refused
        assert (left.why, left.name) == ("superseded", f"cells/{current().cell}")


def test_a_stranger_does_not_displace_a_row_of_the_board_by_being_newer(tmp_path: Path) -> None:
    own = keep(tmp_path / "a", current(created="2025-01-01T00:00:00+00:00"))
    strange = keep(tmp_path / "b", current(created="2099-01-01T00:00:00+00:00"))
    assert [found.created[:4] for found in intake(own, strange).records] == ["2025"]


def test_controls_of_a_stranger_certify_nobody_elses_attack(tmp_path: Path) -> None:
    def attacked(method: str, value: float, **more: Any) -> Record:
        kind = {"kind": "reidentification", "attack": "nearest-neighbour"}
        return current(method, **kind, scores={"reid-auc": auc(value)}, **more)

    own = keep(tmp_path / "a", attacked("dp-simple", 0.5))
    strange = keep(tmp_path / "b", attacked("identity", 1.0), attacked("noise", 0.5), attacked("hidden-control", 0.5))
    (row,) = (row for row in intake(own, strange).rows if row.method == "dp-simple")
    (member,) = row.panel.members
    assert {control.state for control in member.controls} == {"not run"}


def judging(tier: Tier, *records: Record, controls: Sequence[Record] = ()) -> Verdict:
    """A verdict on one row, its records as `keep` writes them."""
    told = {each.evaluator: Judged(digest=str(proved(each).digest), tier=tier, reason="") for each in records}
    beside = {one.cell: fingerprint([proved(each) for each in controls if each.cell == one.cell]) for one in controls}
    row = JudgedRow(records=told, controls=beside, protocol=PROTOCOL, said=["pictures"])
    rows = {records[0].cell: row}
    return Verdict(bundle="0" * 64, rows=rows, protocol=PROTOCOL, verified_by="a test", created="2026-01-01T00:00:00Z")


def test_of_two_strangers_what_was_checked_further_wins_over_what_is_newer(tmp_path: Path) -> None:
    older = current(created="2025-01-01T00:00:00+00:00")
    own = keep(tmp_path / "own", current("noise"))
    sources = keep(tmp_path / "a", older), keep(tmp_path / "b", current(created="2026-01-01T00:00:00+00:00"))
    taken = intake(own, *sources, verdicts=(judging(Tier.ARITHMETIC_CHECKED, older),))
    (row,) = (row for row in taken.rows if row.method == "identity")
    assert [found.created for found in row.records] == [older.created]
    assert taken.tier(row) is Tier.ARITHMETIC_CHECKED
    assert (row.unverified, row.trusted) == (("pictures",), False)


@pytest.mark.parametrize(
    ("tier", "year"), [(Tier.ARITHMETIC_CHECKED, "2025"), (Tier.RE_RUN, "2025"), (Tier.SEALED, "2026")]
)
def test_the_boards_own_row_gives_way_to_a_sealed_one_alone(tmp_path: Path, tier: Tier, year: str) -> None:
    own = keep(tmp_path / "a", current(created="2025-01-01T00:00:00+00:00"))
    theirs = current(created="2026-01-01T00:00:00+00:00")
    taken = intake(own, keep(tmp_path / "b", theirs), verdicts=(judging(tier, theirs),))
    assert [found.created[:4] for found in taken.records] == [year]


def test_the_tier_of_a_row_is_that_of_its_least_checked_record(tmp_path: Path) -> None:
    utility, attack = current(), current(kind="reidentification", attack="nearest-neighbour")
    source = keep(tmp_path / "a", utility, attack)
    taken = intake(
        source, verdicts=(judging(Tier.SEALED, utility),)
    )  # which speaks of another row: one without the attack
    assert taken.tier(taken.rows[0]) is Tier.SELF_REPORTED


def test_a_record_cannot_raise_its_own_tier() -> None:
    boasting = proved(current(details={"tier": "sealed"}, threat_model={"tier": "sealed"}, scheme={"tier": "sealed"}))
    taken = Intake((boasting,), {})
    assert taken.tier(taken.rows[0]) is Tier.SELF_REPORTED


def test_rows_of_earlier_code_and_of_several_versions_are_marked(tmp_path: Path) -> None:
    older = {"inputs": {"judge code": "0", "protocol": PROTOCOL}, "created": "2024-01-01T00:00:00+00:00"}
    mixed = current(kind="reidentification", attack="nearest-neighbour", versions={"torch": "2.11"})
    site = build(keep(tmp_path / "r", current(), mixed, current("noise", **older)), tmp_path / "site").parent
    marks = {row["method"]: row["marks"] for row in manifest(site)["rows"]}
    assert marks["noise"] == ["earlier code: utility"]
    assert [mark.partition(":")[0] for mark in marks["identity"]] == ["mixed versions"]


def test_the_snapshot_changes_with_any_record_and_with_nothing_else(tmp_path: Path) -> None:
    def snapshot(name: str, *records: Any) -> str:
        found: str = manifest(build(keep(tmp_path / name, *records), tmp_path / f"{name}-site").parent)["snapshot"]
        return found

    one, other = word("dp-simple"), record(scores={"reid-auc": auc(0.9)})
    same = [snapshot(str(k), *[each.model_copy(update={"cell": "d/c"}) for each in pair])
            for k, pair in enumerate(((one, other), (other, one)))]  # fmt: skip
    assert same[0] == same[1]
    assert same[0] != snapshot("x", one.model_copy(update={"cell": "d/c"}))


def test_the_manifest_is_stamped_and_its_alteration_shows(tmp_path: Path) -> None:
    site = build(keep(tmp_path / "r", current()), tmp_path / "site").parent
    assert json.loads((site / MANIFEST).read_text())["digest"]
    (site / MANIFEST).write_text((site / MANIFEST).read_text().replace("self-reported", "sealed"))
    assert [name for name, _ in altered(site)] == [MANIFEST]
