from __future__ import annotations

import dataclasses
import json
import stat
from pathlib import Path

import numpy as np
import pytest
from made.board_records import auc, claim, dataset, guesswork, record, score, word

from bench.plugins.spec import UsageError
from bench.results.reason import UNSAID
from bench.results.records import Record, ScoreRecord
from leaderboard import bounds
from leaderboard.board import Row, rows
from leaderboard.declaration import Declaration
from leaderboard.risk_page import Person, Worst, annex_page, page, pdf, write
from leaderboard.risk_report import Conclusion, Release, RiskReport, risk_report

RELEASE = Release("ab" * 32, "dp-simple", "veil-bench 0", "2026-01-02T03:04:05+00:00")


def people(value: float, low: float, high: float) -> ScoreRecord:
    return score(value, low, high, null=0.01, null_low=0.0, null_high=0.03)


def attack(worst: ScoreRecord, mean: ScoreRecord, name: str = "nearest-neighbour", **more: object) -> Record:
    figures = {"person-risk": worst, "people-found": mean, "reid-auc": auc(0.52)}
    return record("dp-simple", name, figures, this_release=True, **more)


def reported(*records: Record, declared: Declaration | None = None, twin: tuple[Record, ...] = (word(),)) -> RiskReport:
    very = rows(records)
    made: Row | None = rows(twin)[0] if twin else None
    return risk_report(RELEASE, very, made, declared or Declaration())


def maximum(report: RiskReport) -> Conclusion:
    return next(each for each in report.concluded if each.quantity == "maximum risk")


def complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every attack that a bound needs had run, converged and held its controls."""
    made = bounds.Bound("reid-auc", "image", 0.55, 0.01, 10, 33, "same-image")
    monkeypatch.setattr("leaderboard.risk_report.bound", lambda certified, attacks: made)


SMALL = people(0.0, 0.0, 0.05), people(0.01, 0.0, 0.02)


def test_the_limit_of_a_figure_is_its_worst_end_over_all_attacks() -> None:
    ends = {"weak": (300.0, auc(0.52)), "strong": (40.0, auc(0.7))}
    made = [
        record("dp-simple", name, {"guesswork": guesswork(guesses), "reid-auc": like}, this_release=True)
        for name, (guesses, like) in ends.items()
    ]
    found = {each.metric: each.limit for each in reported(*made).measured}
    scores = [each.scores for each in made]
    assert found["guesswork"] == min(each["guesswork"].low for each in scores if each["guesswork"].low is not None)
    assert found["reid-auc"] == max(each["reid-auc"].high for each in scores if each["reid-auc"].high is not None)


def test_a_risk_is_below_only_if_its_upper_limit_with_chance_is(monkeypatch: pytest.MonkeyPatch) -> None:
    complete(monkeypatch)
    found = reported(attack(*SMALL))
    assert (maximum(found).word, maximum(found).limit) == ("below", pytest.approx(0.06))  # .05 and chance of .01
    assert found.passes(0.09)
    assert not found.passes(0.06)
    higher = reported(attack(people(0.0, 0.0, 0.085), SMALL[1]))
    assert maximum(higher).word == "not shown below"
    assert "--keys" in " ".join(maximum(higher).why)
    assert not higher.passes(0.09)


def test_a_note_that_says_nothing_is_left_out() -> None:
    hidden = people(0.01, 0.0, 0.02).model_copy(update={"note": UNSAID})
    found = reported(attack(SMALL[0], hidden))
    assert next(each.note for each in found.measured if each.metric == "people-found") == ""
    assert "not said" not in page(found)


def test_a_profile_that_links_people_and_is_missing_lets_no_release_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    complete(monkeypatch)
    why = ["profile other-study was not asked for (--eve other-study)"]
    found = risk_report(RELEASE, rows([attack(*SMALL)]), rows([word()])[0], Declaration(), missing=why)
    assert maximum(found).word == "below"
    assert not found.passes(0.09)
    assert why[0] in page(found)


def test_before_a_release_all_figures_are_of_the_twin() -> None:
    very = rows([attack(*SMALL)])
    before = dataclasses.replace(RELEASE, digest="")
    found = risk_report(before, very, very[0], Declaration())
    assert {each.subject for each in found.measured} == {"twin"}
    assert "Risk report before a release by" in page(found)
    assert "none yet" in page(found)


def test_the_annex_alone_holds_images_and_withheld_reasons(tmp_path: Path) -> None:
    report = reported(attack(*SMALL))
    image, code = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 8, 8), np.zeros(5, dtype=np.float32)
    person = Person("<i>Doe</i>, a.png", "Named under 50% of 8 keys.", [image, code, image])
    worst = [Worst("same-image", "the very images", "needle", [person]), Worst("x", "y", "z", [], "It failed")]
    annex = annex_page(report, worst, {"top-1, needle": "2 people of <ward 7>"})
    assert annex.count("data:image/png;base64,") == 2
    assert "no image: 5 numbers" in annex
    assert "&lt;i&gt;Doe" in annex
    assert "2 people of &lt;ward 7&gt;" in annex
    files = write(report, tmp_path / "report", annex, "recipient: ''\n")
    assert {path.name for path in files} >= {"report.html", "report.json", "annex.html", "declaration.yaml"}
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (b"Doe" in path.read_bytes()) == (path.name == "annex.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_attacks_that_did_not_run_leave_a_small_figure_unshown() -> None:
    found = maximum(reported(attack(*SMALL)))
    assert found.word == "not shown below"
    assert "did not run" in " ".join(found.why)


def test_one_attack_that_surely_names_people_is_above(monkeypatch: pytest.MonkeyPatch) -> None:
    complete(monkeypatch)
    found = reported(attack(*SMALL), attack(people(0.9, 0.4, 1.0), people(0.3, 0.2, 0.4), "needle"))
    assert [each.word for each in found.concluded] == ["above", "above"]
    assert not found.passes(0.99)


def test_a_figure_without_an_upper_end_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    complete(monkeypatch)
    found = maximum(reported(attack(score(0.0), SMALL[1])))
    assert (found.word, found.limit) == ("not shown below", None)


def test_an_attack_that_failed_leaves_a_risk_unshown(monkeypatch: pytest.MonkeyPatch) -> None:
    complete(monkeypatch)
    failing = record("dp-simple", "their-own", {}, status="failed", this_release=True)
    found = maximum(reported(attack(*SMALL), failing))
    assert (found.word, found.why) == ("not shown below", ["their-own failed"])


def test_another_threshold_has_no_basis_until_one_is_declared() -> None:
    assert "EMA" in Declaration().threshold_basis
    assert Declaration(threshold=0.2).threshold_basis == ""
    assert Declaration().under(0.2).threshold_basis == ""
    assert Declaration(threshold=0.2, threshold_basis="our board").under(0.2).threshold_basis == "our board"
    with pytest.raises(UsageError, match=r"0\.05 by the declaration and 0\.09 by --max-risk: state one"):
        Declaration(threshold=0.05).under(0.09)


def test_a_method_that_broke_a_promise_or_was_not_checked_is_not_below(monkeypatch: pytest.MonkeyPatch) -> None:
    complete(monkeypatch)
    assert maximum(reported(attack(*SMALL), twin=(word("dp-simple", "labels"),))).word == "not shown below"
    assert "no twin" in " ".join(maximum(reported(attack(*SMALL), twin=())).why)


def test_nothing_measured_passes_no_threshold() -> None:
    found = reported(record("dp-simple", "none", {}, eve="public-only", this_release=True))
    assert found.concluded == []
    assert not found.passes(1.0)
    assert "no risk\nis shown to be small" in page(found)


def test_another_image_of_the_person_asks_for_linkability(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataset("synth-cxr under other-study", fingerprint="other")
    found = reported(attack(*SMALL), attack(*SMALL, dataset=data, eve="other-study"))
    assert {(each.question, each.eve) for each in found.measured if each.metric == "person-risk"} == {
        ("singling out", "same-image"),
        ("linkability", "other-study"),
    }
    assert len(found.concluded) == 4


def test_a_claim_for_an_image_says_what_it_is_for_a_person() -> None:
    found = reported(attack(*SMALL, claim=claim(3.0)))
    assert found.claim is not None
    assert "300 rows of 100 people" in found.claim.composition
    assert found.claim.shown.startswith("not audited")


def test_blocks_never_mix_and_nothing_is_called_anonymous(monkeypatch: pytest.MonkeyPatch) -> None:
    complete(monkeypatch)
    declared = Declaration(recipient="<b>Lab</b>", signed_by=["data protection officer"])
    found = page(reported(attack(*SMALL), declared=declared))
    assert "anonym" not in found.lower()
    assert "<b>Lab</b>" not in found
    parts = [found.index(f'id="{name}"') for name in ("summary", "measured", "declared", "concluded")]
    assert parts == sorted(parts)
    assert found.index("data protection officer") > parts[2]


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    files = write(reported(attack(*SMALL)), tmp_path / "report")
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert json.loads((tmp_path / "report/report.json").read_text())["concluded"][0]["threshold"] == 0.09


def test_a_report_is_printed_as_pdf() -> None:
    found = pdf(page(reported(attack(*SMALL))))
    if found is None:
        pytest.skip("WeasyPrint or Pango is missing: no PDF was made")
    assert found.startswith(b"%PDF-")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("threshold: 0", "threshold: .*greater than 0, got 0"),
        ("treshold: 0.1", "treshold is not known; there are recipient"),
        ("release_date: tomorrow", "expected a date such as"),
        ("- a", "must hold a mapping"),
        ("a: 1\na: 2", "occurs twice"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "d.yaml").write_text(text)
    with pytest.raises(UsageError, match=reason):
        Declaration.read(tmp_path / "d.yaml")


def test_the_form_to_fill_in_is_read_again(tmp_path: Path) -> None:
    declared = Declaration(purpose="it's: 'ours' # not yours", threshold=0.2)
    (tmp_path / "d.yaml").write_text(declared.template())
    assert Declaration.read(tmp_path / "d.yaml") == declared
    (tmp_path / "dated.yaml").write_text("release_date: 2026-11-27\n")
    assert Declaration.read(tmp_path / "dated.yaml").release_date == "2026-11-27"
