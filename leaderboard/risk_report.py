"""A report on a release: measured, declared and concluded.

The three never mix. Measured figures come from records of attacks on the very release, and of membership and utility on
a twin: the same configuration, released of a part of the people, for the release itself leaves no one out.
Declarations are the owner's. Conclusions follow from both by two rules.

- *Maximum risk*: the probability that Eve's first guess for an image names the person, for the person whom she finds
  most surely. Its upper limit holds for all people at once (`metrics.person_risk`), and chance is added to it.
- *Average risk*: the same over all people.

A risk is *above* the threshold if the lower end of an attack's interval is; *below* if the upper limit of every attack
is, and all attacks that a bound needs ran, converged, and passed their controls (`leaderboard.bounds.bound`); and
else *not shown below*, whatever the figures say. The release passes a threshold if the maximum risk is below it for
each profile, and no profile that links people is missing. Questions are those of WP29 Opinion 05/2014 (singling out,
linkability, inference), sections those of ISO/IEC 27559:2022, claims as NIST SP 800-226 asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from bench.results.reason import UNSAID
from bench.results.record_parts import ClaimRecord, Part
from bench.results.records import DatasetRecord, MetricRecord, Record, ScoreRecord
from leaderboard.board import Row
from leaderboard.bounds import bound, profile, random
from leaderboard.declaration import Declaration
from leaderboard.entries import interval, number, reason, said, short
from leaderboard.panel import Member
from leaderboard.reach import MEMBERSHIP, PAIRS

Question = Literal["singling out", "linkability", "inference", "membership", "reconstruction", "utility"]
Subject = Literal["this release", "twin"]
Word = Literal["below", "not shown below", "above"]
Quantity = Literal["maximum risk", "average risk"]
MAXIMUM, AVERAGE = "person-risk", "people-found"
OTHER = "other-study"
FIGURES: Mapping[str, Question] = {
    "people-found": "singling out", "person-risk": "singling out", "top-1": "singling out", "guesswork": "singling out",
    "reid-auc": "singling out", "patient-reid-auc": "singling out", "attribute-advantage": "inference",
    "membership-auc": "membership", "membership-tpr": "membership", "members-found": "membership",
    "member-risk": "membership", "reconstruction-ssim": "reconstruction", "reconstruction-reid": "reconstruction",
    "utility-auc": "utility", "linear-probe-auc": "utility",
}  # fmt: skip
"""The figures of a report, each with its question, in order; of another image they ask for linkability."""
QUESTIONS: Mapping[Question, str] = {
    "singling out": "Can a released image be traced to a person by someone who holds the very image it was made of?",
    "linkability": "Can it be traced by someone who holds another image of the person, or another release?",
    "inference": "Can sex, age or view of the people be learned from it, beyond what anyone would guess?",
    "membership": "Can it be told who is in the release?",
    "reconstruction": "Can an image be rebuilt from the release?",
    "utility": "Is the release good for what it is made for?",
}  # fmt: skip


class Measured(Part):
    """A figure of the strongest attack, and the worst limit of all.

    Args:
        question: As WP29 05/2014 asks.
        subject: The very release, or its twin.
        eve: The profile that says what Eve holds.
        metric, title, meaning: The metric.
        value, low, high: Of the strongest attack, with a 95 % interval; None where there is none.
        limit: The end that is worst for the owner over all attacks; None if one has none.
        chance: What chance gives.
        attack: The strongest one; empty where none is needed.
        attacks: How many gave this figure.
        keys: How many keys they were scored on.
        groups: The figure by group of people of at least ten.
        note: How its interval was made.
    """

    question: Question
    subject: Subject
    eve: str
    metric: str
    title: str
    meaning: str
    value: float
    low: float | None
    high: float | None
    limit: float | None
    chance: float | None
    attack: str
    attacks: int
    keys: int
    groups: dict[str, float] = Field(default={})
    note: str = ""

    @property
    def text(self) -> str:
        """The figure with its interval."""
        inner = interval(self.low, self.high, 3)
        return f"{number(self.value, 3)} ({inner})" if self.low is not None else number(self.value, 3)


class Tried(Part):
    """An attack, and what it is worth.

    Args:
        eve, subject: As in `Measured`.
        attack: Its name and parameters.
        state: How it ended.
        controls: If it found what it must on raw images, and nothing where there is nothing.
        reach: The encoders of the ladder that it breaks.
        note: Why it supports no bound, or gave no figure; empty if it did.
    """

    subject: Subject
    eve: str
    attack: str
    state: Literal["ok", "not applicable", "failed", "timed out"]
    controls: str
    reach: str
    note: str = ""


class Claim(Part):
    """A formal claim as NIST SP 800-226 asks: unit, composition, implementation."""

    unit: str
    epsilon: float | None
    derived: float | None
    delta: float
    composition: str
    implementation: str
    shown: str


class Conclusion(Part):
    """A risk against the declared threshold.

    Args:
        quantity: Of the worst person, or of the average.
        eve: The profile.
        word: The conclusion.
        value: The largest figure of an attack; None without one.
        limit: The largest upper limit, chance included; None without one.
        threshold: The declared one.
        why: What is missing for "below"; empty if nothing is.
    """

    quantity: Quantity
    eve: str
    word: Word
    value: float | None
    limit: float | None
    threshold: float
    why: list[str] = Field(default=[])

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        who = "the person found most surely" if self.quantity == "maximum risk" else "an average person"
        threshold = number(self.threshold, None)
        if self.word == "above":
            return f"The risk of {who} is above {threshold}: an attack names them more often than that."
        if self.word == "below":
            assert self.limit is not None
            return (
                f"The risk of {who} is below {threshold} for the attacks that were tried: with 95 % confidence each "
                f"names them at most in {number(self.limit, 3)} of releases."
            )
        return f"The risk of {who} is not shown to be below {threshold}."


class RiskReport(Part):
    """The whole report.

    Args:
        schema_version: Of this file.
        made_by, created: The version, and when.
        release: SHA-256 of its release.json; empty in a report on a configuration before its release.
        method: As the command line takes it.
        rows, people: In the release; people are None where it is unknown who is who.
        data: What the data set's record says of it.
        measured, tried, untried, claim: What was measured.
        earlier: Sentences on earlier releases of the same people.
        declared: What the owner declares.
        concluded: What follows.
        missing: Profiles that link people and were not measured, and why.
    """

    schema_version: Literal[1] = 1
    made_by: str
    created: str
    release: str
    method: str
    rows: int
    people: int | None
    data: list[str]
    measured: list[Measured]
    tried: list[Tried]
    untried: list[str]
    earlier: list[str]
    claim: Claim | None
    declared: Declaration
    concluded: list[Conclusion]
    missing: list[str] = Field(default=[])

    def passes(self, most: float) -> bool:
        """True if every maximum risk is shown to be below `most`."""
        risks = [each for each in self.concluded if each.quantity == "maximum risk"]
        return (
            not self.missing
            and bool(risks)
            and all(each.word == "below" and each.limit is not None and each.limit < most for each in risks)
        )


@dataclass(frozen=True)
class Release:
    """The release that a report is on.

    Args:
        digest: SHA-256 of its release.json; empty if there is none yet.
        method: As the command line takes it.
        made_by, created: Of the report.
    """

    digest: str
    method: str
    made_by: str
    created: str


def risk_report(
    release: Release, very: Sequence[Row], twin: Row | None, declared: Declaration, earlier: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> RiskReport:  # fmt: skip
    """The report from rows of a board.

    Args:
        release: What it is on.
        very: The row of the very release under each profile of Eve; of the twin, before there is one.
        twin: The row of the same configuration on a part of the people; None if it was not run.
        declared: The owner's.
        earlier: Sentences on earlier releases of the same people.
        missing: Profiles that link people and were not measured, and why.
    """
    data = next((row.data for row in very if row.data is not None), None)
    subject: Subject = "this release" if release.digest else "twin"
    rows: list[tuple[Subject, bool, Row]] = [(subject, True, row) for row in very]
    if twin is not None:
        rows.append(("twin", False, twin))
    unrated = "no twin was measured, so that nothing checked the method's promises" if twin is None else twin.unrated
    return RiskReport(
        made_by=release.made_by, created=release.created, release=release.digest, method=release.method,
        rows=0 if data is None else data.rows.get("private", 0), people=_people(data),
        data=[] if data is None else list(data.notes),
        measured=[figure for subject, linking, row in rows for figure in _figures(subject, row, linking=linking)],
        tried=[tried for subject, linking, row in rows for tried in _tried(subject, row, linking=linking)],
        untried=list(_untried(very, twin)), earlier=list(earlier),
        claim=next((_claim(row.claim, row, data) for _, _, row in rows[::-1] if row.claim is not None), None),
        declared=declared, missing=list(missing),
        concluded=[conclusion for row in very for conclusion in _conclusions(row, declared.threshold, unrated)],
    )  # fmt: skip


def _people(data: DatasetRecord | None) -> int | None:
    return None if data is None else data.subjects.get("private")


def _figures(subject: Subject, row: Row, *, linking: bool) -> Iterator[Measured]:
    """A row's figures: of links and images, or of members and use."""
    for metric, question in FIGURES.items():
        entry = row.entries.get(metric)
        if entry is None or entry.score is None or linking == (question in ("membership", "utility")):
            continue
        if entry.attacked and entry.kind not in (MEMBERSHIP, "utility", *((PAIRS,) if linking else ())):
            continue
        records = [record for record in row.records if metric in record.scores and not random(record)]
        scores = [record.scores[metric] for record in records]
        worst = min if entry.score.better == "higher" else max
        ends = [score.low if score.better == "higher" else score.high for score in scores]
        known, score = _column(records, metric), entry.score
        eve = str(profile(row.records[0]))
        if question == "singling out" and eve.startswith((OTHER, "two-releases")):
            question = "linkability"
        yield Measured(
            question=question, subject=subject, eve=eve, metric=metric, title=known.title, meaning=known.meaning,
            value=score.value, low=score.low, high=score.high,
            limit=None if None in ends else worst((end for end in ends if end is not None), default=None),
            chance=score.null, attack=short(entry.by) if entry.attacked else "",
            attacks=len(records) if entry.attacked else 0,
            keys=max((record.keys for record in records), default=row.keys), groups=_groups(score),
            note="" if score.note == UNSAID else said(metric, score.note),
        )  # fmt: skip


def _column(records: Sequence[Record], metric: str) -> MetricRecord:
    return next(record.metrics[metric] for record in records)


def _groups(score: ScoreRecord) -> dict[str, float]:
    """The figure by group of people: parts such as "sex: female"."""
    return {name: part.value for name, part in sorted(score.parts.items()) if ": " in name}


def _tried(subject: Subject, row: Row, *, linking: bool) -> Iterator[Tried]:
    kinds = (PAIRS,) if linking else (MEMBERSHIP,)
    members = {member.evaluator: member for member in (*row.panel.members, *row.membership.members)}
    for record in row.records:
        if record.kind not in kinds or random(record):
            continue
        member = members.get(record.evaluator)
        state: Mapping[str, Literal["ok", "not applicable", "failed", "timed out"]] = {
            "ok": "ok", "not-applicable": "not applicable", "failed": "failed", "timed-out": "timed out",
        }  # fmt: skip
        why = reason(record) if record.status != "ok" else ("" if member is None else member.idle)
        yield Tried(
            subject=subject, eve=str(profile(record)), attack=short(record.evaluator), state=state[record.status],
            controls="none" if member is None else member.standing, reach=_reach(member), note=why,
        )  # fmt: skip


def _reach(member: Member | None) -> str:
    """The encoders of the ladder that an attack breaks, counted."""
    if member is None or not member.rungs:
        return ""
    met = [rung for rung in member.rungs if rung.state != "not measured"]
    broken = [rung for rung in met if rung.state == "broken"]
    return f"breaks {len(broken)} of {len(met)} encoders of the ladder" if met else "not measured"


def _untried(very: Sequence[Row], twin: Row | None) -> Iterator[str]:
    """Sentences on attackers that were not tried."""
    profiles = {str(profile(row.records[0])) for row in very if row.records}
    if "same-image" not in profiles:
        yield "An attacker who holds the very images that were released."
    if not any(name.startswith(OTHER) for name in profiles):
        yield "An attacker who holds another image of the person."
    if "public-only" not in profiles:
        yield "An attacker without any image, who reads attributes or rebuilds images."
    if not any(name.startswith("known-pairs") for name in profiles):
        yield "An attacker who knows which released image belongs to some people."
    if twin is None:
        yield "Membership, utility, and the method's promises: no twin was measured."
    yield "Other data that the recipient may hold (reports, dates, other releases of the same people)."
    yield "Attacks that this version does not know."


def _claim(claim: ClaimRecord, row: Row, data: DatasetRecord | None) -> Claim:
    people, rows = _people(data), 0 if data is None else data.rows.get("private", 0)
    if people is None or not rows:
        composition = "it is unknown who is who: the bound is for one unit, and holds for no person with several"
    elif people < rows:
        composition = (
            f"{rows} rows of {people} people: the bound is for one {claim.per}, and up to k times as large for a "
            f"person with k of them"
        )
    else:
        composition = f"every person has one row, so that the bound for one {claim.per} is one for the person"
    return Claim(
        unit=f"{claim.per}, neighbours {claim.neighbours}", epsilon=claim.epsilon, derived=claim.derived,
        delta=claim.delta, composition=composition,
        implementation=f"{claim.basis}. Assumed: {claim.assumptions}",
        shown="not audited" if row.audited is None else row.audited.sentence,
    )  # fmt: skip


def _conclusions(row: Row, threshold: float, unrated: str) -> Iterator[Conclusion]:
    """Maximum and average risk of a profile that links people."""
    eve = profile(row.records[0])
    if not eve.images:
        return
    attacks = [record for record in row.records if record.kind == PAIRS and not random(record)]
    shown = bound([record for record in attacks if record.evaluator in row.panel.certified], attacks)
    gaps = [] if not isinstance(shown, str) else [shown]
    gaps += [unrated] if unrated else []
    broken = [record for record in attacks if record.status in ("failed", "timed-out")]
    gaps += [f"{short(record.evaluator)} {record.status.replace('-', ' ')}" for record in broken]
    luck = max((score.null or 0 for record in attacks if (score := record.scores.get(AVERAGE))), default=0.0)
    kinds: Mapping[Quantity, tuple[str, float]] = {"maximum risk": (MAXIMUM, luck), "average risk": (AVERAGE, 0.0)}
    for quantity, (metric, added) in kinds.items():
        scores = {record.evaluator: record.scores[metric] for record in attacks if metric in record.scores}
        ended = [record for record in attacks if record.status == "ok" and metric not in record.scores]
        why = [f"{short(record.evaluator)}: {record.not_applicable.get(metric, 'no figure')}" for record in ended]
        if not scores:
            why += [f"{short(record.evaluator)}: {record.reason}" for record in attacks if record.reason]
            yield Conclusion(quantity=quantity, eve=str(eve), word="not shown below", value=None, limit=None,
                             threshold=threshold, why=[*dict.fromkeys(why), "no attack gave a figure"])  # fmt: skip
            continue
        ends = [score.high for score in scores.values()]
        limit = None if None in ends else min(1.0, added + max(end for end in ends if end is not None))
        value = max(score.value for score in scores.values())
        if any(score.low is not None and score.low > threshold for score in scores.values()):
            word: Word = "above"
            found: list[str] = []
        else:
            found = [*dict.fromkeys(why), *gaps]
            if limit is None:
                found.append("an attack has no upper limit")
            elif limit >= threshold:
                found.append(f"the upper limit is {number(limit, 3)}: more keys (--keys) narrow it")
            word = "not shown below" if found else "below"
        yield Conclusion(quantity=quantity, eve=str(eve), word=word, value=value, limit=limit, threshold=threshold,
                         why=found)  # fmt: skip
