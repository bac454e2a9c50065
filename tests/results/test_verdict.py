"""A tier is what a trusted verifier signed of the very row, whole, and nothing that an author writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from made.board_records import guesswork, record

from bench.results import verdict
from bench.results.records import Record, proved
from bench.results.signing_key import SigningKey, make_pair
from bench.results.verdict import Judged, JudgedRow, Tier, Verdict, VerdictError, fingerprint, judged_row


def made(value: float = 2, attack: str = "contrastive", cell: str = "d/c", protocol: int = 3) -> Record:
    found = record("dp-simple", attack, {"guesswork": guesswork(value)}, cell=cell)
    return proved(found.model_copy(update={"inputs": {"protocol": protocol}}))


def of(tier: Tier, *records: Record, controls: Mapping[str, Sequence[Record]] | None = None) -> Verdict:
    row = JudgedRow(
        records={each.evaluator: Judged(digest=str(each.digest), tier=tier, reason="tried") for each in records},
        controls={cell: fingerprint(told) for cell, told in (controls or {}).items()}, protocol=3, said=[],
    )  # fmt: skip
    return Verdict(bundle="0" * 64, rows={"d/c": row}, protocol=3, verified_by="veil-bench 0", created="2025")


def tier_of(
    records: Sequence[Record], verdicts: Sequence[Verdict], beside: Mapping[str, Sequence[Record]] | None = None
) -> Tier:
    found = judged_row(records, beside or {}, verdicts)
    return Tier.SELF_REPORTED if found is None else found.tier


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[SigningKey, SigningKey]:
    folder = tmp_path_factory.mktemp("keys")
    return make_pair(folder / "board")[0], make_pair(folder / "author")[0]


def test_a_row_that_no_verdict_names_is_self_reported() -> None:
    assert tier_of([made()], []) is Tier.SELF_REPORTED
    assert tier_of([made(3)], [of(Tier.SEALED, made(2))]) is Tier.SELF_REPORTED


def test_a_row_that_lost_or_gained_or_swapped_a_record_is_not_the_one_that_was_judged() -> None:
    one, two, other = made(), made(attack="relational"), made(9, attack="relational")
    told = [of(Tier.RE_RUN, one, two)]
    assert tier_of([one, two], told) is Tier.RE_RUN
    for records in ([one], [two], [one, other], [one, two, made(attack="moments")]):
        assert tier_of(records, told) is Tier.SELF_REPORTED


def test_a_row_is_judged_with_its_controls_and_its_protocol() -> None:
    one, control = made(), [made(1, cell="d/identity"), made(1, "relational", cell="d/identity")]
    told = [of(Tier.ARITHMETIC_CHECKED, one, controls={"d/identity": control})]
    assert tier_of([one], told, {"d/identity": control}) is Tier.ARITHMETIC_CHECKED
    assert tier_of([one], told, {"d/identity": control[:1]}) is Tier.SELF_REPORTED
    assert tier_of([one], told, {"d/identity": [*control[:1], made(7, "relational")]}) is Tier.SELF_REPORTED
    assert tier_of([one], told) is Tier.SELF_REPORTED
    later = made(protocol=4)
    assert tier_of([later], [of(Tier.SEALED, later)]) is Tier.SELF_REPORTED


def test_a_row_has_the_tier_of_its_least_checked_record() -> None:
    one, two = made(), made(attack="relational")
    row = of(Tier.SEALED, one, two).rows["d/c"]
    low = Judged(digest=str(two.digest), tier=Tier.ARITHMETIC_CHECKED, reason="")
    assert row.model_copy(update={"records": {**row.records, two.evaluator: low}}).tier is Tier.ARITHMETIC_CHECKED
    assert row.model_copy(update={"records": {}}).tier is Tier.SELF_REPORTED


def test_the_highest_tier_of_a_trusted_verifier_counts(keys: tuple[SigningKey, SigningKey], tmp_path: Path) -> None:
    board, _ = keys
    for tier in Tier:
        verdict.write(of(tier, made()), tmp_path / f"{tier.word}.verdict.json", board)
    found = [each for each in verdict.verdicts(tmp_path, {board.public}) if isinstance(each, Verdict)]
    assert len(found) == len(Tier)
    assert tier_of([made()], found) is Tier.SEALED


def test_an_authors_own_verdict_counts_for_nothing(keys: tuple[SigningKey, SigningKey], tmp_path: Path) -> None:
    board, author = keys
    path = tmp_path / "mine.verdict.json"
    for signer in (author, None):
        verdict.write(of(Tier.SEALED, made()), path, signer)
        with pytest.raises(VerdictError, match="only verdicts of trusted verifiers count"):
            verdict.read(path, {board.public})


def test_an_altered_verdict_counts_for_nothing(keys: tuple[SigningKey, SigningKey], tmp_path: Path) -> None:
    board, _ = keys
    path = tmp_path / "a.verdict.json"
    verdict.write(of(Tier.ARITHMETIC_CHECKED, made()), path, board)
    path.write_text(path.read_text().replace('"arithmetic-checked"', '"sealed"'))
    (found,) = verdict.verdicts(tmp_path, {board.public})
    assert isinstance(found, VerdictError)
    assert "altered" in str(found)


def test_a_verdict_that_stands_tells_its_tier_and_its_signer(
    keys: tuple[SigningKey, SigningKey], tmp_path: Path
) -> None:
    path = tmp_path / "a.verdict.json"
    assert verdict.standing(path) is None
    for signer, by in ((None, None), (keys[0], keys[0].public)):
        verdict.write(of(Tier.RE_RUN, made()), path, signer)
        assert verdict.standing(path) == (Tier.RE_RUN, by)
    path.write_text("{}")
    with pytest.raises(VerdictError):
        verdict.standing(path)
