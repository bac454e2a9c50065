"""What a submission says measured by its verifier, under keys that its author never held.

The records that come of it are the verifier's own: they stand on the board in the place of the author's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results.bundle import Bundle
from bench.results.records import Record
from bench.results.verdict import Judged, Tier
from bench.submission.beside import out_of_place
from bench.submission.check import check
from bench.submission.complete import DONE
from bench.submission.finding import REFUSED
from bench.submission.rows import verdict_on
from bench.submission.verify import Again, Verified, repeatable
from bench.workbench.currency import files_of
from bench.workbench.inputs import COMMITMENT


def seal(bundle: Bundle, secret: Secret, again: Again) -> tuple[Verified, list[str]]:
    """Measure everything in a bundle under a secret of the verifier's.

    Args:
        bundle: As it was opened.
        secret: That of the verifier's results folder.
        again: Measures records under a secret, with methods and attacks in a sandbox.

    Returns:
        The verdict on the new records, and where they and the author's have intervals that do not meet.

    Raises:
        UsageError: The author knows that secret, or methods and attacks were not kept apart.
    """
    checked = check(bundle.results)
    if refused := [finding for finding in checked.findings if finding.kind in REFUSED]:
        return Verified(tuple(refused)), []
    if strange := tuple(out_of_place(bundle, checked.records)):
        return Verified(strange), []
    if any(record.inputs.get(COMMITMENT) == secret.commitment() for record in checked.records.values()):
        raise UsageError("the author's records were made under this very secret: seal under one that is yours alone")
    made = again([record for record in checked.records.values() if not files_of(record)], secret)
    if open_ones := [name for name, record in made.items() if record.isolation != "sandbox"]:
        raise UsageError(f"{open_ones[0]} was measured without a sandbox: sealed means that methods and attacks are "
                         "kept apart; install bubblewrap")  # fmt: skip
    lacking = {each.name: str(each) for each in checked.findings if each.kind == "incomplete"}
    judged = {str(record.digest): _judged(record, lacking.get(record.cell)) for record in made.values()}
    return Verified((), checked.findings, verdict_on(bundle.sha256, made.values(), judged)), list(
        _apart(checked.records.values(), made)
    )


def _judged(record: Record, lacking: str | None) -> Judged:
    """A row that its author chose the attacks of is none that others may be compared with, whoever measured it."""
    why = lacking if record.status in DONE else f"{record.status}: {record.reason}"
    tier = Tier.SEALED if why is None else Tier.SELF_REPORTED
    return Judged(digest=str(record.digest), tier=tier, reason=why or "measured under secret keys")


def _apart(said: Iterable[Record], made: Mapping[str, Record]) -> Iterator[str]:
    for record in filter(repeatable, said):
        again = made.get(f"{record.cell}/{record.evaluator}")
        for name, score in record.scores.items():
            other = None if again is None else again.scores.get(name)
            if other is None or score.low is None or score.high is None or other.low is None or other.high is None:
                continue
            if score.low > other.high or other.low > score.high:
                yield (f"{record.cell}/{record.evaluator}: {name} is {score.value:g} ({score.low:g} to {score.high:g}) "
                       f"in the bundle, {other.value:g} ({other.low:g} to {other.high:g}) sealed")  # fmt: skip
