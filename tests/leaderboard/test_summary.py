"""What the page of an attack says of whom it harms: what the verdicts of the rows say, and no more."""

from __future__ import annotations

from pathlib import Path

from made.board_records import plugin, record, score, word
from made.whole_rows import HOLDING, VOID, attacked, controls, kept, keyed

from bench.evaluators.membership import BY_HEART, CONTROLS, OF_OTHERS, ClassifierMembership
from bench.results.records import Record
from bench.types import Role
from leaderboard.edition import Edition
from leaderboard.intake import intake
from leaderboard.site import build
from leaderboard.summary import AttackRecord, attack_record

GENERATORS: dict[str, Role] = {"over-fitted-cvae": "remembers its rows", "constant": "forgets its rows"}


def judged(folder: Path, *records: Record) -> tuple[AttackRecord, dict[str, str]]:
    """The first record's attack, and the verdict on each method."""
    edition = Edition.of(intake(kept(folder, *records)))
    first = records[0]
    assert first.attack is not None
    _, attempts = edition.attacks[first.kind, first.attack.name]
    found = attack_record(first.kind, first.attack.name, attempts)
    return found, {row.plugin: row.verdict for row in edition.rows}


def telling(method: str, value: float, p: float, worst: float = 0.5) -> Record:
    made = record(
        method,
        "membership-dcr",
        {
            "membership-auc": score(value, value - 0.05, value + 0.05, null=0.5, null_low=0.45, null_high=0.55, p=p),
            "member-risk": score(worst, 0.0, 1.0, null=0.5, null_low=0.3, null_high=0.99),
        },
        kind="membership",
        attack=plugin("dcr", {}),
    )
    return keyed(made, method=made.method.model_copy(update={"role": GENERATORS.get(method)}))


def answering(method: str, value: float, p: float) -> Record:
    """The attack on a published classifier, whose own controls hold."""
    figure = score(value, value - 0.05, value + 0.05, null=0.5, null_low=0.45, null_high=0.55, p=p)
    held = {BY_HEART: {"AUC": 0.8, "p": 0.0005}, OF_OTHERS: {"AUC": 0.5, "p": 0.4}}
    made = record(method, "classifier-membership", {"membership-auc": figure}, kind="classifier-membership")
    return keyed(made, details={CONTROLS: held})


def test_the_attack_on_published_classifiers_has_a_page_that_its_rows_lead_to(tmp_path: Path) -> None:
    records = [answering("dp-sgd", 0.7, 0.0001), answering("laplace", 0.5, 0.6)]
    results = kept(tmp_path, *records, *(keyed(word(name)) for name in ("dp-sgd", "laplace")))
    edition = Edition.of(intake(results))
    _, attempts = edition.attacks["classifier-membership", "classifier-membership"]
    found = attack_record("classifier-membership", "classifier-membership", attempts)
    assert (found.broken, found.share) == (("dp-sgd",), (1, 2))
    assert {row.plugin: row.verdict for row in edition.rows} == {
        "dp-sgd": "membership leaks", "laplace": "no membership leak above a bound"
    }  # fmt: skip
    site = build(results, tmp_path / "site").parent
    page = (site / "attacks" / "classifier-membership.html").read_text()
    assert ClassifierMembership.source in page
    assert "<strong>1 of 2 rows" in page
    assert 'href="classifier-membership.html"' in (site / "attacks" / "index.html").read_text()
    for cell in (site / "cells").glob("*.html"):
        assert cell.read_text().count('href="../attacks/classifier-membership.html"') == 2, "dot and record"


def test_the_luckiest_member_of_many_tells_nobody(tmp_path: Path) -> None:
    """Without a probability, its figure lies above the interval of chance as often as 1 time in 40."""
    held = telling("over-fitted-cvae", 0.9, 0.0), telling("constant", 0.5, 0.6)
    found, words = judged(tmp_path, telling("cvae", 0.51, 0.4, worst=0.995), *held, keyed(word("cvae")))
    assert words["cvae"] == "no verdict"
    assert found.broken == ()


def test_a_primary_figure_that_chance_rarely_makes_is_a_leak_and_no_break(tmp_path: Path) -> None:
    auc = {"null": 0.5, "null_low": 0.45, "null_high": 0.55}
    lucky = score(0.56, 0.5, 0.6, p=0.0008, unit="AUC", **auc)
    scores = {**attacked("blur").scores, "reid-auc": lucky}
    found, words = judged(tmp_path, attacked("blur", scores=scores), *controls(HOLDING), keyed(word("blur")))
    assert words["blur"] == "leaks"
    assert found.broken == ()
    assert found.leaking == ("blur",)


def test_an_attack_whose_controls_fail_is_said_to_break_nobody(tmp_path: Path) -> None:
    found, words = judged(tmp_path, attacked("blur", 1.0, 1.0), *controls(VOID), keyed(word("blur")))
    assert words["blur"] == "not certified"
    assert found.broken == ()
    sure, words = judged(tmp_path / "sure", attacked("blur", 1.0, 1.0), *controls(HOLDING), keyed(word("blur")))
    assert words["blur"] == "broken"
    assert sure.broken == ("blur",)


def test_attacks_on_membership_show_their_figures_too(tmp_path: Path) -> None:
    found, _ = judged(tmp_path, telling("cvae", 0.51, 0.4), keyed(word("cvae")))
    (outcome,) = found.outcomes
    assert [entry.text for entry in outcome.entries if entry.score] == ["0.510"]


def test_the_share_of_rows_that_an_attack_breaks_counts_rows_with_figures_and_controls(tmp_path: Path) -> None:
    some = [attacked("blur", 1.0, 1.0), attacked("mosaic"), attacked("dp-simple")]
    found, _ = judged(tmp_path / "sure", *some, *controls(HOLDING), *(keyed(word(each.method.name)) for each in some))
    assert found.share == (1, 3)
    bare, _ = judged(tmp_path / "bare", *some, *controls(VOID), *(keyed(word(each.method.name)) for each in some))
    assert bare.share == (0, 0)
