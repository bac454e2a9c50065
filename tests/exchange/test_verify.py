"""An honest bundle reaches the tier that was checked; a cheat's is refused or stays at its author's word, by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import pytest
from made import submissions
from made.submissions import METHOD, Handed, forged, found_of, judged, packed, tiers

from bench.evidence import PairEvidence
from bench.exchange.bundle_tiers import caught
from bench.exchange.disclosed_secrets import Disclosed
from bench.exchange.evidence_check import evidence_of
from bench.exchange.verify import seal
from bench.plugins import registry
from bench.plugins.code_digest import code_digest
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import cell_secrets
from bench.results.bundle import BundleError
from bench.results.evidence_file import bind, pack
from bench.results.records import Record, evidence_record, score_record
from bench.results.results import evidence_name
from bench.results.run_secret import RunSecret
from bench.results.verdict import Tier
from bench.runs.judge import judge
from bench.workbench.inputs import COMMITMENT

NEAREST, CHANCE = "reidentification-nearest-neighbour.json", "reidentification-chance.json"


def own(handed: Handed, end: str, method: str = METHOD) -> Record:
    (found,) = (
        record
        for name, record in handed.bundle.results.records()
        if name.endswith(end) and f"/{method}--" in name and isinstance(record, Record)
    )
    return found


def target(handed: Handed, end: str = NEAREST) -> str:
    return f"{own(handed, end).cell}/{end}"


def again(handed: Handed) -> Any:
    return partial(submissions.again, handed.folder / "again", handed.cache)


def put(content: dict[str, Any], *path: str, value: object) -> None:
    inner = content
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value


def refusal(found: Any) -> str:
    assert found.verdict is None
    assert found.refused
    return "; ".join(map(str, found.refused))


def test_an_honest_bundle_is_judged_again_and_measured_again(handed: Handed) -> None:
    found = judged(handed.bundle, rerun=1, again=again(handed))
    assert found.refused == found.notes == ()
    assert tiers(found) == {NEAREST: "re-run", CHANCE: "re-run", "throughput.json": "arithmetic-checked"}
    assert found.verdict is not None
    assert {row.tier for row in found.verdict.rows.values()} == {Tier.RE_RUN}
    row = found.verdict.rows[own(handed, NEAREST).cell]
    assert row.deciding == [NEAREST.removesuffix(".json")]
    assert row.caught == [1.0]
    assert "the number of false records, is 1: 1.00." in row.sentences()[0]


def test_without_its_secret_it_stays_the_authors_word(handed: Handed) -> None:
    bare = forged(handed, {}, **{"cell-secrets": None})
    assert set(tiers(judged(bare)).values()) == {"self-reported"}
    for apart in (Disclosed(handed.bundle.secrets), Disclosed(root=handed.results.keep_secret().root)):
        assert set(tiers(judged(bare, secrets=apart)).values()) == {"arithmetic-checked"}


NOT_THE_EVIDENCE = "its figures do not follow from its evidence: reid-auc"


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("value", lambda figure: figure["low"], NOT_THE_EVIDENCE),
        ("value", lambda figure: figure["low"] / 2, "reid-auc: the figure .* lies outside its interval"),
        ("low", lambda figure: figure["low"] / 2, NOT_THE_EVIDENCE),
        ("low", lambda figure: figure["high"] * 2, "reid-auc: the interval is upside down"),
        ("null_high", lambda figure: figure["null_high"] * 1.5, NOT_THE_EVIDENCE),
        ("p", lambda figure: figure["p"] + 0.01, NOT_THE_EVIDENCE),
        ("p", lambda figure: 1.5, "reid-auc: p must be a probability"),
        ("n", lambda figure: figure["n"] + 1, NOT_THE_EVIDENCE),
        ("note", lambda figure: "better", NOT_THE_EVIDENCE),
    ],
)
def test_altered_figures_with_new_digests_are_refused(
    handed: Handed, part: str, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    def altered(record: dict[str, Any]) -> None:
        put(record, "scores", "reid-auc", part, value=change(record["scores"]["reid-auc"]))

    assert re.search(said, refusal(judged(forged(handed, {target(handed): altered}))))


def test_a_figure_that_is_said_not_to_apply_is_refused(handed: Handed) -> None:
    def change(record: dict[str, Any]) -> None:
        del record["scores"]["reid-auc"]
        put(record, "not_applicable", "reid-auc", value="makes no sense here")

    assert "reid-auc is not in the record" in refusal(judged(forged(handed, {target(handed): change})))


def test_a_figure_that_is_left_out_leaves_the_row_incomplete(handed: Handed) -> None:
    def change(record: dict[str, Any]) -> None:
        for part in ("scores", "metrics"):
            del record[part]["reid-auc"]
        del record["inputs"]["metric reid-auc"]

    found = judged(forged(handed, {target(handed): change}))
    assert set(tiers(found).values()) == {"self-reported"}
    assert "it lacks reid-auc of reidentification-nearest-neighbour" in str(found.notes[0])


def test_cherry_picked_measurements_leave_the_row_incomplete(handed: Handed) -> None:
    found = judged(forged(handed, {}, **{f"cells/{target(handed)}": None}))
    assert set(tiers(found).values()) == {"self-reported"}
    assert "incomplete" in str(found.notes[0])
    found = judged(forged(handed, {}, **{"cells/digits/noise--": None}))
    assert "on the control that keeps nothing" in str(found.notes[0])


def test_an_attack_that_is_said_not_to_apply_is_tried_again(handed: Handed) -> None:
    def change(record: dict[str, Any]) -> None:
        record |= {"status": "not-applicable", "code": "not-applicable", "reason": "no", "scores": {}}
        del record["evidence"]

    bundle = forged(handed, {target(handed): change})
    assert tiers(judged(bundle))[NEAREST] == "self-reported"
    assert "it says not-applicable, and here it is ok" in refusal(judged(bundle, again=again(handed)))


KILLED = {"status": "failed", "code": "died", "phase": "attack", "reason": "the worker process died: signal 9"}
LATE = {"status": "timed-out", "code": "timed-out", "phase": "attack", "reason": "no result after 60 s"}


def without(handed: Handed, outcome: dict[str, Any] | None) -> Any:
    """Measures again, and has the nearest-neighbour attack on the method end so (None: in no record)."""

    def measure(records: Any, secrets: Any) -> dict[str, Record]:
        measured = dict(again(handed)(records, secrets))
        name = next(each for each in measured if METHOD in each and each.endswith("nearest-neighbour"))
        found = measured.pop(name)
        if outcome is not None:
            measured[name] = found.model_copy(update={"scores": {}, "evidence": None, **outcome})
        return measured

    return measure


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (KILLED, "not measured: failed here: the worker process died: signal 9"),
        (LATE, "not measured: timed-out here: no result after 60 s"),
        (None, "not measured: no record was made here"),
    ],
)
def test_a_measurement_that_does_not_end_here_is_no_alteration(
    handed: Handed, outcome: dict[str, Any] | None, said: str
) -> None:
    found = judged(handed.bundle, rerun=1, again=without(handed, outcome))
    assert found.refused == ()
    assert tiers(found) == {NEAREST: "arithmetic-checked", CHANCE: "re-run", "throughput.json": "arithmetic-checked"}
    assert any(each.reason.startswith(f"judged again from its evidence; {said}") for each in found_of(found))
    assert found.verdict is not None
    row = found.verdict.rows[own(handed, NEAREST).cell]
    assert row.tier == Tier.ARITHMETIC_CHECKED
    assert row.sentences() == []  # no probability of finding what was not measured


def test_a_measurement_that_does_not_end_here_takes_the_place_of_no_evidence(handed: Handed) -> None:
    bare = evidence_name(own(handed, NEAREST))
    bundle = packed(handed, {name: text for name, text in handed.bundle.files.items() if name != bare})
    found = judged(bundle, rerun=9, again=without(handed, KILLED))
    assert tiers(found)[NEAREST] == "self-reported"
    assert any(each.reason.startswith("not measured: failed here") for each in found_of(found))


def test_a_method_that_fails_by_itself_here_is_refused(handed: Handed) -> None:
    own_fault = {"status": "failed", "code": "error", "phase": "attack", "reason": "ValueError: no"}
    found = judged(handed.bundle, rerun=1, again=without(handed, own_fault))
    assert "it says ok, and here it is failed: ValueError: no" in refusal(found)


def swapped(handed: Handed, evidence: dict[str, object], end: str = NEAREST) -> Any:
    """The record with other evidence, and every figure computed from it as the bench does."""
    record = own(handed, end)
    content = bind(pack(evidence), record.key)
    held = evidence_record(content)

    def change(told: dict[str, Any]) -> None:
        put(told, "evidence", value=held.model_dump())
        for name in told["scores"]:
            metric = cast(Any, registry.load("metrics", name))()
            score = score_record(judge(metric, evidence), better=metric.better, unit=metric.unit)
            put(told, "scores", name, value=score.model_dump(mode="json"))

    beside = {evidence_name(record.model_copy(update={"evidence": held})): content}
    made = forged(handed, {f"{record.cell}/{end}": change})
    rest = {name: text for name, text in made.files.items() if name != evidence_name(record)}
    return packed(handed, {**rest, **beside})


def evidence(handed: Handed, end: str, method: str = METHOD) -> dict[str, object]:
    record = own(handed, end, method)
    content = handed.bundle.results.evidence(record)
    assert content is not None
    return evidence_of(record, content)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cells/readme.txt", b"hello", "no record of the bundle names it"),
        ("cells/digits/a/inner.bundle.zip", b"PK", "no record of the bundle names it"),
        ("environment.json", b"{}", "differs from the machines"),
        ("environment.json", b"[" * 100_000, "differs from the machines"),
        ("environment.json", None, "differs from the machines"),
        ("requirements.lock", b"\x1b[31m\n", "a line NAME==VERSION"),
        ("requirements.lock", b"-r https://example.org/x\n", "a line NAME==VERSION"),
        ("requirements.lock", None, "a line NAME==VERSION"),
    ],
)
def test_what_belongs_to_no_record_is_refused_by_name(
    handed: Handed, name: str, content: bytes | None, said: str
) -> None:
    bundle = forged(handed, {}, **{name: content})
    for found in (judged(bundle), seal(bundle, RunSecret(Secret.of_seed(1)), again(handed))[0]):
        assert said in refusal(found)
        assert [finding.name for finding in found.refused] == [name]


def test_evidence_that_is_swapped_alone_is_refused(handed: Handed) -> None:
    record, other = own(handed, NEAREST), handed.bundle.results.evidence(own(handed, CHANCE))
    assert other is not None
    found = judged(packed(handed, {**handed.bundle.files, evidence_name(record): other}))
    assert "not the evidence that the record speaks of" in refusal(found)


def test_a_record_without_evidence_is_measured_again_or_stays_the_authors_word(handed: Handed) -> None:
    bare = evidence_name(own(handed, NEAREST))
    bundle = packed(handed, {name: text for name, text in handed.bundle.files.items() if name != bare})
    assert tiers(judged(bundle))[NEAREST] == "self-reported"
    assert tiers(judged(bundle, rerun=9, again=again(handed)))[NEAREST] == "re-run"


def test_figures_without_evidence_are_not_excused_by_an_interval_that_is_made_up(handed: Handed) -> None:
    def wide(record: dict[str, Any]) -> None:
        del record["evidence"]
        record["scores"]["reid-auc"] |= {"value": 0.5, "low": 0.0, "high": 1.0, "p": 0.5, "parts": {}}

    found = judged(forged(handed, {target(handed): wide}), rerun=9, again=again(handed))
    assert "it comes out otherwise: reid-auc" in refusal(found)


def test_evidence_of_a_weaker_attack_is_found_out_by_measuring_again(handed: Handed) -> None:
    """A forger of all of it is believed until it is measured again: so its tier is low."""
    bundle = swapped(handed, evidence(handed, CHANCE))
    assert set(tiers(judged(bundle)).values()) == {"arithmetic-checked"}
    assert "it comes out otherwise: reid-auc" in refusal(judged(bundle, rerun=9, again=again(handed)))


def test_evidence_of_another_method_stands_in_another_order(handed: Handed) -> None:
    found = judged(swapped(handed, evidence(handed, NEAREST, "noise")))
    assert tiers(found)[NEAREST] == "self-reported"
    assert any("does not follow from the run secret" in each.reason for each in found_of(found))


@pytest.mark.parametrize("rebound", [False, True])
def test_evidence_of_another_row_proves_nothing_of_this_one(handed: Handed, rebound: bool) -> None:
    """Bytes of an honest row, moved below a record with the figures that follow from them."""
    there, here = own(handed, NEAREST, "noise"), own(handed, NEAREST)
    content = handed.bundle.results.evidence(there)
    assert content is not None
    moved = bind(content, here.key) if rebound else content
    held = evidence_record(moved)

    def change(told: dict[str, Any]) -> None:
        put(told, "evidence", value=held.model_dump())
        put(told, "scores", value=there.model_dump(mode="json")["scores"])

    made = forged(handed, {f"{here.cell}/{NEAREST}": change})
    rest = {name: text for name, text in made.files.items() if name != evidence_name(here)}
    beside = {evidence_name(here.model_copy(update={"evidence": held})): moved}
    found = judged(packed(handed, {**rest, **beside}))
    assert tiers(found)[NEAREST] == "self-reported"
    reason = "the order of its evidence does not follow" if rebound else "its evidence is that of another record"
    assert any(reason in each.reason for each in found_of(found))


def test_evidence_of_an_earlier_version_names_no_record(handed: Handed) -> None:
    record = own(handed, NEAREST)
    content = pack(evidence(handed, NEAREST))
    held = evidence_record(content)
    made = forged(handed, {f"{record.cell}/{NEAREST}": lambda told: put(told, "evidence", value=held.model_dump())})
    beside = {evidence_name(record.model_copy(update={"evidence": held})): content}
    found = judged(packed(handed, {**made.files, **beside}))
    assert any("names no record" in each.reason for each in found_of(found))
    assert tiers(found)[NEAREST] == "self-reported"


def test_one_false_record_of_those_that_decide_is_always_measured_again(handed: Handed) -> None:
    """Of 17 records `--rerun 1` drew one: a false one passed with probability .94, and lifted the whole row."""
    bundle = swapped(handed, evidence(handed, CHANCE))
    assert {tiers(judged(bundle))[end] for end in (NEAREST, CHANCE)} == {"arithmetic-checked"}
    for _ in range(3):
        assert "it comes out otherwise: reid-auc" in refusal(judged(bundle, rerun=1, again=again(handed)))


def test_attacks_that_are_strong_on_the_board_are_always_measured_again(handed: Handed) -> None:
    """What a record says decides nothing here: `chance` decides no row, and a false record of it is found."""
    record = own(handed, CHANCE)

    def change(told: dict[str, Any]) -> None:
        del told["evidence"]
        told["scores"] = own(handed, NEAREST).model_dump(mode="json")["scores"]

    bundle = forged(handed, {f"{record.cell}/{CHANCE}": change})
    asked: list[str] = []

    def strongest(dataset: str) -> list[str]:
        asked.append(dataset)
        return [CHANCE.removesuffix(".json")]

    found = judged(handed.bundle, rerun=1, again=again(handed), strongest=strongest)
    assert found.verdict is not None
    assert found.verdict.rows[record.cell].caught == []  # nothing is left to be drawn
    assert set(asked) == {"digits"}
    assert judged(bundle, rerun=1, again=again(handed), strongest=strongest).verdict is None


def test_the_odds_of_a_random_draw_are_those_of_counting() -> None:
    for records, drawn in ((5, 2), (4, 4), (3, 0), (1, 1)):
        draws = list(combinations(range(records), drawn))
        for false, stated in enumerate(caught(records, drawn), 1):
            hit = sum(any(one < false for one in draw) for draw in draws)
            assert stated == pytest.approx(hit / len(draws))
    assert caught(0, 0) == []


def test_a_made_up_order_does_not_follow_from_the_secret(handed: Handed) -> None:
    (part,) = (cast(PairEvidence, each) for each in evidence(handed, NEAREST).values())
    turned = replace(part, images=replace(part.images, links=part.images.links.flip(0).roll(1, 1)))
    shifted = replace(part, persons=part.persons.roll(1))
    for made in (turned, shifted):
        assert tiers(judged(swapped(handed, {"": made})))[NEAREST] == "self-reported"


def test_another_secret_is_refused_and_written_into_the_records_fits_nothing(handed: Handed) -> None:
    other = Secret.of_seed(7, "another")
    text = {"cell-secrets.json": cell_secrets.dumps(dict.fromkeys(handed.bundle.secrets, other))}
    assert "another secret" in refusal(judged(forged(handed, {}, **text)))
    for apart in (Disclosed(root=other), Disclosed(dict.fromkeys(handed.bundle.secrets, other))):
        assert "another secret" in refusal(judged(handed.bundle, secrets=apart))

    def change(record: dict[str, Any]) -> None:
        put(record, "inputs", COMMITMENT, value=other.commitment())

    assert set(tiers(judged(forged(handed, {".json": change}, **text))).values()) == {"self-reported"}
    with pytest.raises(BundleError, match="hex digits"):
        judged(forged(handed, {}, **{"run-secret": b"none"}))
    with pytest.raises(BundleError, match="it is no JSON"):
        judged(forged(handed, {}, **{"cell-secrets.json": b"none"}))


def test_records_of_another_method_renamed_do_not_pass(handed: Handed) -> None:
    """Records of `noise`, which keeps nothing, under the name and code of the method."""
    there = own(handed, NEAREST)
    files = {name: text for name, text in handed.bundle.files.items() if f"/{METHOD}--" not in name}
    for name, content in handed.bundle.files.items():
        if "/noise--" in name:
            files[name.replace(own(handed, NEAREST, "noise").cell, there.cell)] = content
    told = there.model_dump(mode="json", by_alias=True)

    def change(record: dict[str, Any]) -> None:
        record |= {"method": told["method"], "cell": told["cell"]}
        record["inputs"] |= {each: told["inputs"][each] for each in copied}

    copied = ["method", "method code", "method parameters"]
    renamed = replace(handed, bundle=replace(handed.bundle, files=files))
    ends = {f"{there.cell}/{end}": change for end in (NEAREST, CHANCE)}
    assert "another secret" in refusal(judged(forged(renamed, ends)))
    copied += [COMMITMENT]
    found = judged(forged(renamed, ends))
    assert set(tiers(found).values()) == {"self-reported"}


def test_code_that_is_not_installed_here_keeps_records_at_their_authors_word(handed: Handed) -> None:
    def change(record: dict[str, Any]) -> None:
        put(record, "inputs", "attack code", value="0" * 16)
        put(record, "attack", "code", value="0" * 16)

    found = judged(forged(handed, {target(handed): change}))
    assert tiers(found)[NEAREST] == "self-reported"
    assert "stale" in str(found.notes[0])
    assert "other than what is installed here: attack code" in str(found.notes[0])


def test_sealed_are_the_verifiers_own_records_and_never_an_authors(handed: Handed) -> None:
    """Keys that an author picked (of many secrets the luckiest) reach re-run at most: sealed keys he never held."""
    mine = RunSecret(Secret.of_seed(3, "the verifier's"))
    found, apart = seal(handed.bundle, mine, again(handed))
    assert {each.tier for each in found_of(found)} == {Tier.SEALED}
    authors = {record.digest for _, record in handed.bundle.results.records() if isinstance(record, Record)}
    assert not authors & {each.digest for each in found_of(found)}
    assert apart == []
    with pytest.raises(UsageError, match="the author's records were made under this very secret"):
        seal(handed.bundle, handed.results.keep_secret(), again(handed))


def test_sealed_needs_a_sandbox(handed: Handed) -> None:
    def open_ones(*told: Any) -> dict[str, Record]:
        return {"a/b": own(handed, NEAREST).model_copy(update={"isolation": "processes"})}

    with pytest.raises(UsageError, match="without a sandbox"):
        seal(handed.bundle, RunSecret(Secret.of_seed(3)), open_ones)


def test_a_figure_of_another_metric_is_refused(handed: Handed) -> None:
    """The evidence is honest, and so is the figure: it is that of `top-1`, in the unit of another."""
    cls, named = (cast(Any, registry.load("metrics", name)) for name in ("top-1", "reid-auc"))
    score = score_record(judge(cls(), evidence(handed, NEAREST)), better=named.better, unit=named.unit)

    def change(record: dict[str, Any]) -> None:
        put(record, "metrics", "reid-auc", "written", value="top-1")
        put(record, "scores", "reid-auc", value=score.model_dump(mode="json"))
        del record["inputs"]["metric reid-auc"]
        put(record, "inputs", "metric top-1", value=code_digest(cls))

    said = refusal(judged(forged(handed, {target(handed): change})))
    assert "its description of reid-auc is not that of the metric top-1" in said


@pytest.mark.parametrize(("method", "role"), [("identity", "keeps nothing"), (METHOD, "hides nothing")])
def test_a_role_that_a_method_does_not_play_is_refused(handed: Handed, method: str, role: str) -> None:
    """An attack that finds people in what `keeps nothing` fails its control, and no longer counts."""
    name = f"{own(handed, NEAREST, method).cell}/{NEAREST}"
    found = judged(forged(handed, {name: lambda record: put(record, "method", "role", value=role)}))
    assert f"and the record says {role}" in refusal(found)


def test_a_data_set_from_a_file_is_never_run(handed: Handed, tmp_path: Path) -> None:
    """A file that a stranger's record names may be there: a pull request that brings the bundle brings it too."""
    (tmp_path / "x.py").write_text("raise SystemExit('it ran')")

    def change(record: dict[str, Any]) -> None:
        put(record, "choice", "dataset", value=f"{tmp_path}/x.py:X")

    found = judged(forged(handed, {target(handed): change}))
    assert found.refused
    assert "path" in {each.kind for each in found.refused}


def test_sealed_without_an_attack_is_the_authors_choice(handed: Handed) -> None:
    mine = own(handed, CHANCE)
    without = forged(handed, {}, **{f"cells/{target(handed)}": None})
    made = mine.model_copy(update={"isolation": "sandbox"})
    found, _ = seal(without, RunSecret(Secret.of_seed(3)), lambda *_: {f"{mine.cell}/{mine.evaluator}": made})
    assert set(tiers(found).values()) == {"self-reported"}
