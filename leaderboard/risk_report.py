"""A report on a release: measured, declared and concluded.

The three never mix. Measured figures come from records of attacks on the very release, and of membership and utility on
a twin: the same configuration, released of a part of the people, for the release itself leaves no one out.
Declarations are the owner's. Conclusions follow from both by two rules.

- *Maximum risk*: the probability that Eve's first guess for an image names the person, for the person whom she finds
  most surely. Its upper limit holds for all people at once (`metrics.person_risk`), and chance is added to it.
- *Average risk*: the same over all people.

A risk is *above* the threshold if the lower end of an attack's interval is; *below* if the upper limit of every attack
is, and all attacks that a bound needs ran, converged, and passed their controls (`leaderboard.bounds.bound`); and
else *not shown below*, whatever the figures say. Questions are those of WP29 Opinion 05/2014 (singling out,
linkability, inference), sections those of ISO/IEC 27559:2022, claims as NIST SP 800-226 asks for them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from bench.data.yaml_text import YamlError, read_yaml
from bench.disk.atomic_file import make_folder, write_atomically
from bench.disk.disk_errors import unread
from bench.plugins.profile_spec import read_profile
from bench.plugins.spec import UsageError, expected
from bench.results.record_parts import ClaimRecord, Part
from bench.results.records import DatasetRecord, MetricRecord, Record, ScoreRecord
from leaderboard.board import Row
from leaderboard.bounds import bound, profile, random
from leaderboard.entries import interval, number, reason, short
from leaderboard.environment import environment
from leaderboard.panel import Member
from leaderboard.reach import MEMBERSHIP, PAIRS

Question = Literal["singling out", "linkability", "inference", "membership", "reconstruction", "utility"]
Subject = Literal["this release", "twin"]
Word = Literal["below", "not shown below", "above"]
Quantity = Literal["maximum risk", "average risk"]
USUAL_THRESHOLD = 0.09
USUAL_BASIS = "0.09: EMA Policy 0070 and Health Canada, Public Release of Clinical Information"
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


class Declaration(Part):
    """The owner's declaration; nothing of it is measured.

    Args:
        recipient, purpose: Who gets the release, and what for.
        other_data: Other data that the recipient may hold or get.
        protections: Contracts and technical limits on the recipient's side.
        threshold: The largest acceptable probability that a person is named, in (0, 1].
        threshold_basis: Where it is from.
        release_date, review_date: ISO dates, such as 2026-11-27.
        signed_by: Roles or names, each with a line to be signed by hand.
    """

    recipient: str = ""
    purpose: str = ""
    other_data: str = ""
    protections: str = ""
    threshold: Annotated[float, Field(gt=0, le=1)] = USUAL_THRESHOLD
    threshold_basis: str = USUAL_BASIS
    release_date: str = ""
    review_date: str = ""
    signed_by: list[str] = Field(default=["prepared by", "approved by"])

    @model_validator(mode="before")
    @classmethod
    def _basis_is_of_the_threshold(cls, told: object) -> object:
        """Another threshold has no basis until the owner names one."""
        if isinstance(told, dict) and told.get("threshold", USUAL_THRESHOLD) != USUAL_THRESHOLD:
            basis = told.get("threshold_basis", USUAL_BASIS)
            return {**told, "threshold_basis": "" if basis == USUAL_BASIS else basis}
        return told

    def under(self, threshold: float) -> Declaration:
        """The same with the threshold of a command.

        Raises UsageError if the owner declared another.
        """
        if "threshold" in self.model_fields_set and self.threshold != threshold:
            raise UsageError(
                f"the threshold is {self.threshold:g} by the declaration and {threshold:g} by --max-risk: state one"
            )
        return type(self).model_validate({**self.model_dump(), "threshold": threshold})

    @field_validator("release_date", "review_date", mode="before")
    @classmethod
    def _is_a_date(cls, value: object) -> str:
        text = value.isoformat() if isinstance(value, date) else value
        if not isinstance(text, str) or (text and not re.fullmatch(r"\d{4}-\d\d-\d\d", text)):
            raise ValueError("expected a date such as 2026-11-27")
        return text

    @classmethod
    def read(cls, path: Path) -> Declaration:
        """The declaration in a YAML file. Raises UsageError."""
        try:
            found = read_yaml(path) or {}
        except (OSError, YamlError) as error:
            raise UsageError(f"cannot read {path}: {unread(error) if isinstance(error, OSError) else error}") from error
        if not isinstance(found, dict):
            raise UsageError(f"{path} must hold a mapping, with any of {', '.join(cls.model_fields)}")
        try:
            return cls.model_validate(found)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                raise UsageError(f"{path}: {name} is not known; there are {', '.join(cls.model_fields)}") from error
            raise UsageError(f"{path}: {name}: {expected(first)}") from error

    def template(self) -> str:
        """A YAML file to fill in."""
        lines = ["# What you declare about the release; nothing of it is measured. Then repeat the command with"]
        lines.append("# --declare and this file. Empty lines are printed as not declared.")
        for name, value in self.model_dump().items():
            if isinstance(value, list):
                lines += [f"{name}:", *(f"  - {each}" for each in value)]
            else:
                lines.append(f"{name}: {value if isinstance(value, float) else _quoted(value)}")
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Measured(Part):
    """A figure of the strongest attack, and the largest limit of all.

    Args:
        question: As WP29 05/2014 asks.
        subject: The very release, or its twin.
        eve: The profile that says what Eve holds.
        metric, title, meaning: The metric.
        value, low, high: Of the strongest attack, with a 95 % interval; None where there is none.
        limit: The largest upper end over all attacks; None if one has none.
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
        release: SHA-256 of its release.json.
        method: As the command line takes it.
        rows, people: In the release; people are None where it is unknown who is who.
        data: What the data set's record says of it.
        measured, tried, untried, claim: What was measured.
        earlier: Sentences on earlier releases of the same people.
        declared: What the owner declares.
        concluded: What follows.
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

    def passes(self, most: float) -> bool:
        """True if each maximum risk is shown to be below `most`."""
        risks = [each for each in self.concluded if each.quantity == "maximum risk"]
        return bool(risks) and all(
            each.word == "below" and each.limit is not None and each.limit < most for each in risks
        )


@dataclass(frozen=True)
class Release:
    """The release that a report is on.

    Args:
        digest: SHA-256 of its release.json.
        method: As the command line takes it.
        made_by, created: Of the report.
    """

    digest: str
    method: str
    made_by: str
    created: str


def risk_report(
    release: Release, very: Sequence[Row], twin: Row | None, declared: Declaration, earlier: Sequence[str] = ()
) -> RiskReport:  # fmt: skip
    """The report from rows of a board.

    Args:
        release: What it is on.
        very: The row of the very release under each profile of Eve.
        twin: The row of the same configuration on a part of the people; None if it was not run.
        declared: The owner's.
        earlier: Sentences on earlier releases of the same people.
    """
    data = next((row.data for row in very if row.data is not None), None)
    rows: list[tuple[Subject, Row]] = [("this release", row) for row in very]
    if twin is not None:
        rows.append(("twin", twin))
    unrated = "no twin was measured, so that nothing checked the method's promises" if twin is None else twin.unrated
    return RiskReport(
        made_by=release.made_by, created=release.created, release=release.digest, method=release.method,
        rows=0 if data is None else data.rows.get("private", 0), people=_people(data),
        data=[] if data is None else list(data.notes),
        measured=[figure for subject, row in rows for figure in _figures(subject, row)],
        tried=[tried for subject, row in rows for tried in _tried(subject, row)],
        untried=list(_untried(very, twin)), earlier=list(earlier),
        claim=next((_claim(row.claim, row, data) for _, row in rows[::-1] if row.claim is not None), None),
        declared=declared,
        concluded=[conclusion for row in very for conclusion in _conclusions(row, declared.threshold, unrated)],
    )  # fmt: skip


def _people(data: DatasetRecord | None) -> int | None:
    return None if data is None else data.subjects.get("private")


def _figures(subject: Subject, row: Row) -> Iterator[Measured]:
    """The figures of a row that a report shows."""
    wanted = [kind for kind in (PAIRS, MEMBERSHIP, "utility") if subject == "this release" or kind != PAIRS]
    for metric, question in FIGURES.items():
        entry = row.entries.get(metric)
        if entry is None or entry.score is None:
            continue
        if entry.attacked and entry.kind not in wanted:
            continue
        if subject == "twin" and question not in ("membership", "utility"):
            continue
        if subject == "this release" and question == "utility":
            continue
        records = [record for record in row.records if metric in record.scores and not random(record)]
        ends = [record.scores[metric].high for record in records]
        score, known = entry.score, _column(records, metric)
        eve = str(profile(row.records[0]))
        if question == "singling out" and eve.startswith((OTHER, "two-releases")):
            question = "linkability"
        yield Measured(
            question=question, subject=subject, eve=eve, metric=metric, title=known.title, meaning=known.meaning,
            value=score.value, low=score.low, high=score.high,
            limit=None if None in ends else max((end for end in ends if end is not None), default=None),
            chance=score.null, attack=short(entry.by) if entry.attacked else "",
            attacks=len(records) if entry.attacked else 0,
            keys=max((record.keys for record in records), default=row.keys), groups=_groups(score), note=score.note,
        )  # fmt: skip


def _column(records: Sequence[Record], metric: str) -> MetricRecord:
    return next(record.metrics[metric] for record in records)


def _groups(score: ScoreRecord) -> dict[str, float]:
    """The figure by group of people: parts such as "sex: female"."""
    return {name: part.value for name, part in sorted(score.parts.items()) if ": " in name}


def _tried(subject: Subject, row: Row) -> Iterator[Tried]:
    kinds = (PAIRS,) if subject == "this release" else (MEMBERSHIP,)
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
    certified = {member.evaluator for member in row.panel.members if member.certified}
    shown = bound([record for record in attacks if record.evaluator in certified], attacks)
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


CLASSES: Mapping[Word, str] = {"below": "below", "not shown below": "unshown", "above": "above"}
"""The style of a conclusion on the page."""
COLOURS: Mapping[Word, str] = {"below": "#1c6b45", "not shown below": "#94420a", "above": "#a1202c"}
DECLARED: Mapping[str, str] = {
    "recipient": "Recipient", "purpose": "Purpose", "other_data": "Other data it may hold",
    "protections": "Protections", "threshold": "Threshold", "threshold_basis": "Basis of the threshold",
    "release_date": "Date of the release", "review_date": "Date of the next review",
}  # fmt: skip
NO_PDF = "no PDF: WeasyPrint is not installed, or lacks Pango (pip install 'veil-bench[report]')"


def page(report: RiskReport) -> str:
    """One page of HTML, for a screen and for print."""
    told = report.declared.model_dump()
    eves = {each.eve: f"Eve, the attacker, holds {read_profile(each.eve).holds}." for each in report.concluded}
    return environment().get_template("risk_report.html").render(
        report=report, questions=QUESTIONS, classes=CLASSES, colours=COLOURS, eves=eves,
        declared={label: _written(told[name]) for name, label in DECLARED.items()},
    )  # fmt: skip


def _written(value: str | float) -> str:
    return number(value, None) if isinstance(value, float) else value


def pdf(html: str) -> bytes | None:
    """The page as PDF; None if WeasyPrint or its libraries are missing."""
    try:
        from weasyprint import HTML
    except (ImportError, OSError):  # without Pango, importing it raises OSError
        return None
    logging.getLogger("weasyprint").setLevel(logging.ERROR)  # it warns of rules that are for screens
    made: bytes = HTML(string=html, url_fetcher=_refuse).write_pdf()
    return made


def _refuse(url: str, *rest: object, **more: object) -> dict[str, object]:
    """Fetches nothing: a report is one file."""
    raise ValueError(f"a report reads nothing from elsewhere, and {url:.40} was asked for")


def write(report: RiskReport, out: Path) -> list[Path]:
    """Write report.html, report.json and, if possible, report.pdf.

    The folder is made with mode 0700, files with 0600.
    """
    make_folder(out, mode=0o700)
    html = page(report)
    contents = {"report.html": html.encode(), "report.json": report.model_dump_json(indent=1).encode() + b"\n"}
    if (printed := pdf(html)) is not None:
        contents["report.pdf"] = printed
    for name, content in contents.items():
        write_atomically(out / name, content, mode=0o600)
    return [out / name for name in contents]
