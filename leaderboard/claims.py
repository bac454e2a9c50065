"""A formal claim against its audit: does the bound contradict it?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from bench.evidence import AuditEvidence, Calls, CoinUse, Noise
from bench.plugins.configured import configure
from bench.results.records import ClaimRecord, Record, ScoreRecord, score_record
from bench.statistics.confidence_intervals import RARE
from bench.types import PrivacyClaim
from leaderboard.entries import number

METRIC = "empirical-epsilon"
MOST_TRIALS = 2 * 10**6
"""More than anybody plays: to judge again what others say of more would take minutes and gigabytes."""
SAME = 1e-9
"""By how much, relatively, a figure may be off that of the counts beside it, which other processors round otherwise."""
HALF_NOISE = 2
"""Factor of epsilon if the noise is halved."""
SURE = 1 - RARE
"""The confidence at which a claim counts as violated: of twenty audits of a true one, one shows more at 95 %."""


@dataclass(frozen=True)
class Verdict:
    """A claim beside what was shown.

    Args:
        claimed, derived: Bounds on epsilon; infinity where none is finite.
        empirical: The lower bound that the audit has shown; None where there was no audit.
        sure: The bound that it has shown at `SURE`; None without an audit.
        ceiling: The most that its trials could have shown; None without an audit.
        trials: Coins behind the bound; each chose one of two inputs to release. 0 without an audit.
        games: The games played, by name.
        noise: Whether the noise is what the mechanism says; None where that cannot be read off a release.
        most: The ceiling at `SURE`, which decides if the claim can be refuted at all; None without an audit.
        reach: What the best test is expected to show of a mechanism of just the claimed epsilon; None if unknown.
        black_box: Bound and ceiling of a game on the publication alone, beside a white-box game; None without one.
        limit: The most that its test shows with any number of trials, at `SURE`; None if unknown.
        remark: Reason why an audit's figure is not judged, or what of its record was left out; empty if nothing is.
    """

    claimed: float
    derived: float
    empirical: float | None
    sure: float | None
    ceiling: float | None
    trials: int
    games: str = ""
    noise: bool | None = None
    most: float | None = None
    reach: float | None = None
    black_box: tuple[float, float] | None = None
    limit: float | None = None
    remark: str = ""

    @property
    def blunt(self) -> bool:
        """True if the test would not refute half the noise.

        Half the noise doubles epsilon, and about doubles what a test shows.
        """
        return self.limit is not None and HALF_NOISE * self.limit < min(self.claimed, self.derived)

    @property
    def word(self) -> Literal["violated", "noise fails", "cannot refute", "consistent", "not refuted", "not audited"]:
        """A bound above the claimed epsilon was shown, and not by chance.

        An audit whose trials, or whose test, cannot show more than the claim cannot refute it. Consistent takes noise
        that is what the mechanism says, too; if that cannot be seen, a claim is no more than not refuted.
        """
        if self.empirical is None or self.sure is None:
            return "not audited"
        if self.sure > self.claimed:
            return "violated"
        if math.isinf(self.claimed):
            return "not refuted"
        if self.noise is False:
            return "noise fails"
        if (self.most is not None and self.most <= self.claimed) or self.blunt:
            return "cannot refute"
        return "not refuted" if self.noise is None else "consistent"

    @property
    def doubt(self) -> str:
        """Reservation if the audit exceeds the derived bound; empty otherwise."""
        if self.empirical is None or self.sure is None or not self.empirical > self.derived >= self.sure:
            return ""
        return f"{_text(self.sure)} at {100 * SURE:g} %"

    @property
    def sentence(self) -> str:
        """The verdict with its reason, and the limit of its trials."""
        if self.empirical is None or self.sure is None:
            return f"not audited: {self.remark}" if self.remark else "not audited"
        shown, claimed, derived = (_text(bound) for bound in (self.empirical, self.claimed, self.derived))
        if self.word == "violated":
            text = f"violated: ε of at least {shown} was shown, {claimed} is claimed"
        elif math.isinf(self.claimed):
            text = "not refuted: no finite ε is claimed"
        else:
            bound = f"ε of at least {shown} was shown" if self.empirical > 0 else "nothing was shown"
            text = f"{self._stands}: {bound} against a claimed ε of {claimed}"
            if self.empirical > self.claimed:
                text += f", as chance shows it of 1 true claim in 20 (surely, at {100 * SURE:g} %, {_text(self.sure)})"
            text += self._limits
        if self.sure > self.derived:
            text += f"; the derived bound of {derived} does not hold"
        elif self.doubt and self.derived != self.claimed:
            text += f"; above the derived bound of {derived}, as chance shows it of 1 true bound in 20 ({self.doubt})"
        return f"{text}; {self.remark}" if self.remark else text

    @property
    def _limits(self) -> str:
        """The most the game could have shown, as a sentence's end."""
        text = ""
        if self.ceiling is not None:
            text += f"; this game could have shown at most {_text(self.ceiling)} ({self.trials:,} trials)"
        if self.blunt and self.limit is not None:
            text += f", but with half the noise no more than {_text(HALF_NOISE * self.limit)}"
        elif self.word == "cannot refute" and self.most is not None:
            text += f", and {_text(self.most)} at {100 * SURE:g} %"
        if self.reach is not None:
            shown = f"at least {_text(self.reach)}" if self.reach > 0 else "nothing"
            text += f"; of a mechanism of just this ε the best test is expected to show {shown}"
        if self.black_box is not None:
            bound, ceiling = (_text(number) for number in self.black_box)
            text += f"; from the publication alone {bound} was shown, of at most {ceiling}"
        return text

    @property
    def _stands(self) -> str:
        """Standing of a claim that no bound contradicts."""
        played = f"the games played ({self.games})" if self.games else "the game played"
        if self.word == "noise fails":
            return f"the noise checks of `bench check` fail; consistent with {played} all the same"
        if self.word == "cannot refute":
            return f"cannot refute: {played} cannot show more than is claimed"
        if self.word == "not refuted":
            unread = "its noise cannot be measured in a release, so that no other check supports the claim"
            return f"not refuted by {played}; {unread}"
        return f"consistent with {played}, and its noise is as stated"


def verdict(claim: ClaimRecord, score: ScoreRecord | None, sure: ScoreRecord | None, remark: str = "") -> Verdict:
    """The verdict on a claim; `sure` is its figure at level `SURE`.

    Both are None if there is no figure. `remark` is what to say of the record (`left_out`).
    """
    claimed, derived = _bounds(claim)
    if score is None or sure is None:
        return Verdict(claimed, derived, None, None, None, 0, remark=remark)
    parts, most = score.parts, sure.parts["ceiling"].value
    reach, weaker = parts.get("reach"), parts.get("black-box")
    games, noise, limit = parts.get("games"), parts.get("noise checks"), sure.parts.get("limit")
    return Verdict(
        claimed, derived, score.value, sure.value, parts["ceiling"].value, score.n,
        "" if games is None else games.note, None if noise is None else bool(noise.value), most,
        None if reach is None else reach.value,
        None if weaker is None else (weaker.value, parts["black-box ceiling"].value),
        None if limit is None else limit.value, remark,
    )  # fmt: skip


class CountsError(Exception):
    """The details of a record do not match its audit figure."""


def at(record: Record, confidence: float) -> ScoreRecord:
    """The record's figure at another confidence, from the same fixed test.

    A record of data that may not be shared holds no counts: its figure keeps its confidence.
    Raises CountsError if the record's counts do not give its figure and its parts.
    """
    if "trials" not in record.details:
        return record.scores[METRIC]
    try:
        return _recounted(record, confidence)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        without = f"; {text}" if (text := left_out(record)) else ""
        raise CountsError(f"its counts do not give its figure ({error}{without}): measure it again") from error


def left_out(record: Record) -> str:
    """Unreadable details of an audit, which are left out; else empty."""
    try:
        return "" if record.claim is None else _stated(record, record.claim)[1]
    except (TypeError, ValueError):  # `at` says so
        return ""


def _recounted(record: Record, confidence: float) -> ScoreRecord:
    claim, details, score = record.claim, record.details, record.scores[METRIC]
    if claim is None:
        raise ValueError(f"{record.cell} has no claim to audit")
    if (trials := _count(details, "trials")) != score.n:
        raise ValueError(f"its figure is of {score.n:,} trials, got {trials:,}")
    calls = _calls(details)
    privacy_claim, _ = _stated(record, claim)
    games = tuple(str(name) for name in cast("list[object]", details["games"]))
    one_run, noise = bool(details["one_run"]), cast(Noise, details["noise"])
    # Earlier records lack these: their coins replaced rows, in one game, and guesses of one side counted as any.
    coins = cast(CoinUse, details.get("coins", "replace"))
    weaker, reach = cast("Mapping[str, object] | None", details.get("black_box")), details.get("reach")
    black_box = None if weaker is None else _calls(weaker)
    if reach is not None and (isinstance(reach, bool) or not isinstance(reach, int | float)):
        raise TypeError(f"an audit's reach must be a number, got {reach!r:.80}")
    metric = configure("metrics", METRIC, record.preset).plugin

    def figure(confidence: float, *, limited: bool = True) -> ScoreRecord:
        evidence = AuditEvidence(
            privacy_claim, calls, confidence, one_run=one_run, games=games, noise=noise, coins=coins,
            runs=_count(details, "runs") if "runs" in details else 1, black_box=black_box, reach=reach,
            sided="runs" in details, limited=limited,
        )  # fmt: skip
        return score_record(metric(evidence), better=metric.better, unit=metric.unit)

    usual = figure(float(cast(float, details["confidence"])), limited="limit" in score.parts)
    if not _same(usual, score):  # parts are compared too, because the ceiling depends on trials and confidence alone
        raise ValueError(f"they give {usual.value:g}, and it is {score.value:g}")
    return figure(confidence)


def _stated(record: Record, claim: ClaimRecord) -> tuple[PrivacyClaim, str]:
    """The claim as audited, and its unreadable details."""
    claimed, derived = _bounds(claim)
    details = record.details
    plain = PrivacyClaim(
        claim.unit, claimed, claim.delta, claim.assumptions, claim.basis, derived, claim.neighbours, claim.units,
        family=cast("Literal['any', 'Gaussian']", details.get("family", "any")),
    )  # fmt: skip
    rate, steps = cast("float | None", details.get("sampling_rate")), cast("int | None", details.get("steps"))
    try:
        return replace(plain, sampling_rate=rate, steps=steps), ""
    except (TypeError, ValueError) as error:
        return plain, f"its sampling rate and steps are left out ({error})"


def _calls(details: Mapping[str, object]) -> Calls:
    calls = Calls(*(_count(details, name) for name in Calls.__dataclass_fields__))
    if calls.trials > MOST_TRIALS:
        raise ValueError(f"an audit plays at most {MOST_TRIALS:,} trials, got {calls.trials:,}")
    seconds = calls.trials - calls.firsts
    if calls.hits + calls.misses > calls.firsts or calls.false_alarms + calls.rejections > seconds:
        raise ValueError(f"calls of the first and of the second are at most {calls.firsts} and {seconds}, got {calls}")
    return calls


def _same(one: ScoreRecord, other: ScoreRecord) -> bool:
    """True if two figures with their parts are equal up to rounding."""
    ends = zip((one.value, one.low, one.high), (other.value, other.low, other.high), strict=True)
    return (
        all(a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=SAME)) for a, b in ends)
        and one.parts.keys() == other.parts.keys()
        and all(_same(part, other.parts[name]) for name, part in one.parts.items())
    )


def _bounds(claim: ClaimRecord) -> tuple[float, float]:
    """Claimed and derived epsilon; infinity where none is finite."""
    return math.inf if claim.epsilon is None else claim.epsilon, math.inf if claim.derived is None else claim.derived


def _count(details: Mapping[str, object], name: str) -> int:
    count = details[name]
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise TypeError(f"an audit's {name} must be a whole number from 0, got {count!r:.80}")
    return count


def _text(bound: float) -> str:
    return "∞" if math.isinf(bound) else number(bound, None)
