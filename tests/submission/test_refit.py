"""What a record says of its fitted method is held against what fitting gives here."""

from __future__ import annotations

from made.board_records import claim, record

from bench.results.records import claim_record
from bench.runs.answers import Fitted
from bench.submission.refit import Refitted, misfitted
from bench.types import PrivacyClaim


def test_a_claim_from_before_units_were_told_is_for_one_of_them() -> None:
    said = record("a", "audit", kind="audit", claim=claim(1.0))
    assert "units" not in said.model_dump()["claim"]
    for units, found in ((1, []), (16, ["its formal claim: units is 1 in the record, and 16 here"])):
        here = claim_record(PrivacyClaim("image", 1.0, 0.0, "pixels in range", "a paper, eq. 1", units=units))
        fitted = Fitted(claim=here, notes=said.scheme, seconds=0.0)
        assert list(misfitted(said, Refitted(said.dataset, fitted))) == found
