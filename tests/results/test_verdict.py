"""A tier is what a trusted verifier signed of the very record, and nothing that an author writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.board_records import guesswork, record

from bench.results import verdict
from bench.results.records import Record, proved
from bench.results.signing_key import SigningKey, make_pair
from bench.results.tier import Tier
from bench.results.verdict import Judged, Verdict, VerdictError, tier_of


def made(value: float = 2) -> Record:
    return proved(record("dp-simple", "contrastive", {"guesswork": guesswork(value)}, cell="d/c"))


def of(found: Record, tier: Tier) -> Verdict:
    judged = Judged(name="cells/d/c/contrastive.json", tier=tier, reason="tried")
    return Verdict(
        bundle="0" * 64, records={str(found.digest): judged}, protocol=3, verified_by="veil-bench 0", created="2025"
    )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[SigningKey, SigningKey]:
    folder = tmp_path_factory.mktemp("keys")
    return make_pair(folder / "board")[0], make_pair(folder / "author")[0]


def test_a_record_that_no_verdict_names_is_self_reported() -> None:
    assert tier_of(made()) is Tier.SELF_REPORTED
    assert tier_of(made(3), [of(made(2), Tier.SEALED)]) is Tier.SELF_REPORTED


def test_the_highest_tier_of_a_trusted_verifier_counts(keys: tuple[SigningKey, SigningKey], tmp_path: Path) -> None:
    board, _ = keys
    for tier in Tier:
        verdict.write(of(made(), tier), tmp_path / f"{tier.word}.verdict.json", board)
    found = [each for each in verdict.verdicts(tmp_path, {board.public}) if isinstance(each, Verdict)]
    assert len(found) == len(Tier)
    assert tier_of(made(), found) is Tier.SEALED


def test_an_authors_own_verdict_counts_for_nothing(keys: tuple[SigningKey, SigningKey], tmp_path: Path) -> None:
    board, author = keys
    path = tmp_path / "mine.verdict.json"
    for signer in (author, None):
        verdict.write(of(made(), Tier.SEALED), path, signer)
        with pytest.raises(VerdictError, match="only verdicts of trusted verifiers count"):
            verdict.read(path, {board.public})


def test_an_altered_verdict_counts_for_nothing(keys: tuple[SigningKey, SigningKey], tmp_path: Path) -> None:
    board, _ = keys
    path = tmp_path / "a.verdict.json"
    verdict.write(of(made(), Tier.REPLAYED), path, board)
    path.write_text(path.read_text().replace('"replayed"', '"sealed"'))
    (found,) = verdict.verdicts(tmp_path, {board.public})
    assert isinstance(found, VerdictError)
    assert "altered" in str(found)
