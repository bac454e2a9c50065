"""How far others than its author have vouched for a row: tiers, from verdicts of verifiers that the board trusts.

Verdicts lie beside the submissions that they speak of, the public keys of the board's verifiers in `verifiers/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.results.verdict import Tier, Verdict, VerdictError, verdicts, verifiers

__all__ = ["Tier", "board_verdicts"]

HERE = Path(__file__).parent
SUBMISSIONS, VERIFIERS = HERE / "submissions", HERE / "verifiers"


def board_verdicts() -> Iterator[Verdict | VerdictError]:
    """Every verdict on a submission to this board; one that does not count as the reason why."""
    yield from verdicts(SUBMISSIONS, verifiers(VERIFIERS))
