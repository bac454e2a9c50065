"""The attack panels of one row: certified attacks, the strongest, the verdict.

An attack counts ("certified") if its controls hold on the same data, preset and seed. One that matches pairs finds
nearly every row of the method that hides nothing, and is at chance on the method that keeps nothing and on another
whose keys hide in which way they keep nothing, because the former may be recognised by its name or its looks. One that
tells members beats chance on the method that remembers its rows, and is at chance on the one that forgets them. The
attack on a published classifier measures its own controls, and gives no figure unless they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal, cast

from bench.evaluators.membership import (
    BY_HEART,
    CONTROLS,
    OF_OTHERS,
    ClassifierMembership,
    Membership,
    none_published,
)
from bench.evaluators.reidentification import Reidentification
from bench.results.records import Record, ScoreRecord
from bench.statistics.confidence_intervals import LEVEL, RARE, UNLIKELY
from bench.types import Role
from bench.workbench.choice import same_rows
from leaderboard.bounds import (
    BY_PERSON,
    MEMBER_CORE,
    Combined,
    bound,
    combined,
    idle,
    idles,
    incomplete,
    power,
    primary,
    profile,
    random,
    singly,
    surely,
    undrawn,
    upward,
)
from leaderboard.bounds import FIRST as TOP
from leaderboard.entries import beats_chance, interval, number, of_tries, reason, short
from leaderboard.reach import MEMBERSHIP, PAIRS, SOONER, Ladder, Rung, line, state, step

ROLES = {evaluator.name: evaluator.controls for evaluator in (Reidentification, Membership)}
MEASURED: Mapping[Role, str] = {"remembers its rows": BY_HEART, "forgets its rows": OF_OTHERS}
"""By role, the control that the attack on a classifier measures itself."""
FIRST = "first guess"  # the part of guesswork that says how likely the first guess is right
SMALL = 0.01  # least chance of a first guess that a verdict mentions
FOUND_AUC, FOUND_GUESSES = 0.99, 1.5
CONTROLLED: Mapping[str, tuple[str, ...]] = {PAIRS: ("guesswork", "reid-auc"), MEMBERSHIP: ("membership-auc",)}
"""The metrics that a control of each kind needs."""
BESIDE: Mapping[str, tuple[str, ...]] = {PAIRS: ("top-1",), MEMBERSHIP: ("membership-tpr",)}
TELLING = (*CONTROLLED[MEMBERSHIP], *BESIDE[MEMBERSHIP])  # the worst member's figure has no probability
Word = Literal[
    "broken", "leaks", "no leak above a bound", "no verdict", "membership leaks", "no membership leak above a bound",
    "not certified", "does not apply", "no attack", "not rated",
]  # fmt: skip
"""The kind of verdict on a method."""
SIGNS: Mapping[Word, str] = {
    "no leak above a bound": "≤", "no membership leak above a bound": "≲", "no verdict": "…", "leaks": "◐",
    "membership leaks": "◧", "broken": "✕", "not certified": "?", "not rated": "–", "does not apply": "·",
    "no attack": "∅",
}  # fmt: skip
"""Every verdict with a sign of its own, from the best for a data owner to those without a finding."""
MEANINGS: Mapping[Word, str] = {
    "no leak above a bound": "the attacks of the core list converged, and together did no better than chance; with 95 "
    "% confidence the ReID AUC of each is at most the printed bound. A stronger attack may still find more",
    "no membership leak above a bound": "the membership attacks of the core list, or the one on a classifier's answers "
    "where a classifier is all that is published, did no better than chance, corrected for the number of figures; with "
    "95 % confidence the AUC of each is at most the printed bound, on average over people",
    "no verdict": "the attacks together did no better than chance, and support no bound: some of the core list did not "
    "run or converge, or keys are too few. This says nothing of safety",
    "leaks": "the attacks together do better than chance (p below .05), or one of them surely does, but none surely "
    "finds people in few guesses; the worst person may be found all the same. If Eve holds other images of the people "
    "than those behind the release, no row is called broken, and raw images leak, too",
    "membership leaks": "an attack recognises who was in the private data better than chance",
    "broken": "an attack by which Eve, who holds the raw images behind the release, finds people in fewer than 5 "
    "guesses and in a twentieth of the guesses of chance (both by the upper end of the 95 % interval)",
    "not certified": "no attack passed its controls, or the controls of an attack that found people were not run",
    "not rated": "the method broke a promise or refused a request, or the check of its promises did not run",
    "does not apply": "the release has nothing that these attacks could match to people",
    "no attack": "no attack on pairs or members of the release ran; what other attacks find stands among the figures",
}
GRAVEST: tuple[Word, ...] = (
    "not rated", "broken", "membership leaks", "leaks", "not certified", "no verdict", "no leak above a bound",
    "no membership leak above a bound", "does not apply",
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """One attack of the panel.

    Args:
        evaluator: Its record's name.
        controls: All of them, the method on which it must find something first.
        rungs: Its reach, from the plainest encoder up; none for attacks on membership.
        idle: Why it supports no bound though it is certified; empty if it does.
    """

    evaluator: str
    controls: tuple[Control, ...]
    rungs: tuple[Rung, ...]
    idle: str = ""

    @property
    def certified(self) -> bool:
        """True if all controls hold."""
        return all(control.state == "holds" for control in self.controls)

    @property
    def theirs(self) -> bool:
        """True if only the author of the row measured its controls."""
        return self.certified and any(control.theirs for control in self.controls)

    @property
    def standing(self) -> Literal["certified", "not certified", "controls not run"]:
        """The attack's standing: may it support a claim?"""
        if self.certified:
            return "certified"
        failed = any(control.state == "fails" for control in self.controls)
        return "not certified" if failed else "controls not run"


@dataclass(frozen=True)
class Panel:
    """All attacks of one kind on one row, with the verdict.

    Args:
        headline: The strongest certified attack.
        word, verdict: The kind of verdict, and the verdict in full.
        tries: How many certified attacks have a figure: chance has as many tries.
        label: The verdict as tables print it: its kind, with the bound if it has one.
        bound: The largest upper limit over the attacks that count; None without one.
        p: The probability that chance does as well as all certified attacks together; None if unknown.
        power: The least ReID AUC that one of them would find with probability .8; None if unknown.
    """

    members: tuple[Member, ...]
    headline: str | None
    word: Word
    verdict: str
    tries: int = 1
    label: str = ""
    bound: float | None = None
    p: float | None = None
    power: float | None = None

    @property
    def shown(self) -> str:
        """The verdict as tables print it."""
        return self.label or self.word

    @property
    def certified(self) -> frozenset[str]:
        """The evaluators of attacks whose controls hold."""
        return frozenset(member.evaluator for member in self.members if member.certified)

    def standing(self, evaluator: str) -> str:
        """The standing of that attack, in words."""
        return next(member.standing for member in self.members if member.evaluator == evaluator)


WITHOUT = "without"
"""Begins the text of a control that ran without a figure that decides it."""


@dataclass(frozen=True)
class Control:
    """One attack on one reference method.

    Args:
        role: The reference method's role.
        state: Whether the attack did there what it must.
        text: The figures.
        theirs: Whether only the author of the row measured them.
    """

    role: Role
    state: Literal["holds", "fails", "not run"]
    text: str
    theirs: bool = False


@dataclass(frozen=True)
class Standing:
    """A row's verdict over its panels, with label and bound."""

    word: Word
    label: str
    sentence: str
    bound: float | None = None


def standing(panels: Iterable[Panel]) -> Standing:
    """The gravest word of a row's panels, and the verdict of each."""
    shown = [panel for panel in panels if panel.members]
    verdicts = [panel.verdict for panel in shown] or ["no attack on pairs or members ran"]
    if any(member.theirs for panel in shown for member in panel.members):
        verdicts.append("certified by controls that its author alone measured")
    sentence = "; ".join(verdicts)
    for word in GRAVEST:
        for panel in shown:
            if panel.word == word:
                return Standing(word, panel.shown, sentence, panel.bound)
    return Standing("no attack", "no attack", sentence)


def panel(records: Sequence[Record], pool: Sequence[Record], ladder: Ladder, theirs: Set[str] = frozenset()) -> Panel:
    """The panel of the attacks that match pairs, for one row.

    Args:
        records: The row's own.
        pool: All records of the results, among them the controls.
        ladder: With the steps among the records (`leaderboard.reach.steps`), and those that came with this version.
        theirs: Digests of controls that only the author of the row measured.
    """
    attacks = [record for record in records if record.kind == PAIRS]
    members = tuple(_member(record, pool, theirs, ladder) for record in attacks)
    certified = {member.evaluator for member in members if member.certified}
    scored = [record for record in attacks if record.evaluator in certified and "guesswork" in record.scores]
    strongest = min(scored, key=lambda record: strength(record, len(scored)), default=None)
    result = _verdict(strongest, scored, attacks, members)
    if result.word not in ("no leak above a bound", "no verdict"):
        return result
    return _not_certified(result, attacks, "broke", breaks)


def _not_certified(result: Panel, attacks: Sequence[Record], did: str, finds: Callable[[Record], bool]) -> Panel:
    """The panel if an attack without controls `finds` people: not certified."""
    finding = [each for each in attacks if result.standing(each.evaluator) == "controls not run" and finds(each)]
    if not finding:
        return result
    names = ", ".join(map(_name, finding))
    why = f"the controls of {names}, which {did} it, were not run on the same data by the same code"
    return replace(
        result, word="not certified", label="", bound=None, verdict=f"not certified ({why}): {result.verdict}"
    )


def not_rated(result: Panel, why: str) -> Panel:
    """The panel of a method that is not rated, for `why`."""
    if not why or not result.members:
        return result
    return replace(result, word="not rated", label="", bound=None, verdict=f"not rated ({why}): {result.verdict}")


def _too_few(scored: Sequence[Record]) -> str:
    """The reason why these attacks could break nothing; empty if they could.

    If an attack's first guess is right under each of k keys, the interval of guesswork ends at the guesses at which k
    right first guesses in a row have probability 1/40 (`metrics.guesswork.waiting_bounds`).
    """
    if any(
        record.keys > 0 and (1 - LEVEL) ** (-1 / record.keys) < line(record.scores["guesswork"]) for record in scored
    ):
        return ""
    keys = max(record.keys for record in scored)
    return f"with so few images, or only {keys} key{'s' * (keys > 1)}, even raw images would not count as broken"


def membership_panel(records: Sequence[Record], pool: Sequence[Record], theirs: Set[str] = frozenset()) -> Panel:
    """The panel of the attacks on membership; arguments as in `panel`.

    Of a release and a classifier the graver verdict counts.
    """
    panels = _release_panel(records, pool, theirs), _classifier_panel(records, theirs)
    if not panels[1].members:
        return panels[0]
    words = (*GRAVEST, "no attack")
    gravest = min(panels, key=lambda each: (words.index(each.word), each is panels[1]))
    return replace(gravest, members=(*panels[0].members, *panels[1].members))


def _classifier_panel(records: Sequence[Record], theirs: Set[str]) -> Panel:
    """The panel of the attack on a classifier; empty without one."""
    metric = CONTROLLED[MEMBERSHIP][0]
    record = next((each for each in records if each.kind == ClassifierMembership.name), None)
    why = "" if record is None else reason(record)
    if record is None or (record.status == "not-applicable" and none_published(record.reason)):
        return Panel((), None, "no attack", "no attack on a classifier ran")
    controls = tuple(_own_control(record, role, name, theirs) for role, name in MEASURED.items())
    member = Member(record.evaluator, controls, ())
    if record.status != "ok":
        ended = "does not apply" if record.status == "not-applicable" else record.status
        verdict = f"no verdict on membership: the attack on its classifier {ended}: {why}"
        return Panel((member,), None, "no verdict", verdict)
    if not member.certified or metric not in record.scores:
        return Panel((member,), None, "not certified", f"membership not certified, because {_uncertified([member])}")
    text, tries = figure_text(record, metric), len(TELLING)
    if _answers_tell(record):
        verdict = f"membership leaks from the classifier's answers: {text}"
        return Panel((member,), record.evaluator, "membership leaks", verdict, tries)
    if (limit := record.scores[metric].high) is None:
        return Panel((member,), record.evaluator, "no verdict", "no verdict on membership: no upper limit", tries)
    makers = f"the classifier's answers, one attack, {record.keys} key{'s' * (record.keys != 1)}"
    return _no_members((member,), record.evaluator, limit, makers, tries)


def _answers_tell(record: Record) -> bool:
    """True if membership leaks from a classifier's answers, by either figure."""
    chances = [record.scores[name].chance_does_as_well for name in TELLING if name in record.scores]
    return any(chance is not None and len(TELLING) * chance < UNLIKELY for chance in chances)


def _no_members(members: tuple[Member, ...], headline: str, limit: float, makers: str, tries: int) -> Panel:
    """The panel of a bound on membership."""
    shown = upward(limit)
    sentence = f"no membership leak above AUC {shown} shown: Membership AUC at most {shown} (95 %) by {makers}"
    label = f"no membership leak above {shown} shown"
    return Panel(members, headline, "no membership leak above a bound", sentence, tries, label, limit)


def _own_control(record: Record, role: Role, name: str, theirs: Set[str]) -> Control:
    """A control that the attack on a classifier measured itself."""
    found = record.details.get(CONTROLS)
    figures = found.get(name) if isinstance(found, dict) else None
    area, p = (figures.get(what) if isinstance(figures, dict) else None for what in ("AUC", "p"))
    if not isinstance(area, float) or not isinstance(p, float):
        return Control(role, "not run", f"{WITHOUT} a figure")
    holds = p < RARE if name == BY_HEART else p >= RARE
    text = f"on a classifier that {name}: AUC {number(area, 3)}"
    return Control(role, "holds" if holds else "fails", text, str(record.digest) in theirs)


def _release_panel(records: Sequence[Record], pool: Sequence[Record], theirs: Set[str]) -> Panel:
    """The panel of the attacks on membership in a release."""
    attacks = [record for record in records if record.kind == MEMBERSHIP]
    members = tuple(_member(record, pool, theirs) for record in attacks)
    certified = {member.evaluator for member in members if member.certified}
    metric = "membership-auc"
    scored = [record for record in attacks if record.evaluator in certified and metric in record.scores]
    if not scored:
        if not attacks:
            return Panel(members, None, "no attack", "no membership attack ran")
        if all(record.status == "not-applicable" for record in attacks):
            return Panel(members, None, "does not apply", "no attack on membership applies")
        why = f"membership not certified, because {_uncertified(members)}"
        return Panel(members, None, "not certified", why)
    tries = len(scored) * len(TELLING)

    def place(record: Record) -> tuple[bool, bool, float]:
        surely, few = tells(record, tries)
        return not surely, not few, -record.scores[metric].value

    strongest = min(scored, key=place)
    surely, few = tells(strongest, tries)
    if not surely and not few:
        result = _members_bound(members, strongest.evaluator, scored, attacks, tries)
        return _not_certified(result, attacks, "recognised members of", lambda record: any(tells(record, tries)))
    text = figure_text(strongest, metric)
    if not surely:  # sure of a few members, and no better than chance at most
        text += f", {number(100 * strongest.scores['membership-tpr'].value, 1)} % of them at 1 % of others"
    text += "; a folder says who is a member, and no draw: other rows may look different" * undrawn(strongest)
    return Panel(
        members, strongest.evaluator, "membership leaks", f"membership leaks to {_name(strongest)}: {text}", tries
    )


def _members_bound(
    members: tuple[Member, ...], headline: str, scored: Sequence[Record], attacks: Sequence[Record], tries: int
) -> Panel:
    """The panel of membership attacks that did no better than chance."""
    metric = CONTROLLED[MEMBERSHIP][0]
    counting = [record for record in scored if not idle(record, metric)]
    limits = [record.scores[metric].high for record in counting]
    ends = [limit for limit in limits if limit is not None]
    why = incomplete(counting, scored, attacks, MEMBER_CORE, metric)
    if why or not ends or len(ends) < len(limits):
        why = why or "no upper limit"
        return Panel(members, headline, "no verdict", f"no verdict on membership: {why}", tries)
    makers = f"{len(ends)} attack{'s' * (len(ends) > 1)}, {min(record.keys for record in counting)} keys"
    if apart := [name for name in MEMBER_CORE if idles(attacks, name)]:
        makers += f"; without {', '.join(apart)}, which does not apply"
    return _no_members(members, headline, max(ends), makers, tries)


def _member(record: Record, pool: Sequence[Record], theirs: Set[str], ladder: Ladder | None = None) -> Member:
    assert record.attack is not None
    dataset = record.dataset.name if record.dataset else ""
    name = record.attack.name
    near = [other for other in pool if other.attack is not None and other.attack.name == name]
    controls = tuple(control(record, role, near, theirs) for role in ROLES[record.kind] or ())
    rungs = (
        ()
        if ladder is None or not profile(record).same_image
        else ladder.reach(record.attack, record.preset, dataset, str(profile(record)))
    )
    found = idle(record, *CONTROLLED[MEMBERSHIP][:1] if record.kind == MEMBERSHIP else ()) if record.scores else ""
    return Member(record.evaluator, controls, tuple(rungs), found)


def _verdict(
    strongest: Record | None, scored: Sequence[Record], attacks: Sequence[Record], members: tuple[Member, ...]
) -> Panel:
    """The panel's verdict, from certified attacks (`scored`) and all `attacks`."""
    if not attacks:
        return Panel(members, None, "no attack", "no attack on pairs or members ran")
    breaking = [record for record in attacks if breaks(record)]
    by = f"; broken by {', '.join(map(_name, breaking))}, which is not certified" if breaking else ""
    if all(record.status == "not-applicable" for record in attacks):
        return Panel(members, None, "does not apply", "no attack on pairs applies")
    if strongest is None:
        broken = f"broken by {', '.join(map(_name, breaking))}; " if breaking else ""
        return Panel(members, None, "not certified", f"{broken}not certified, because {_uncertified(members)}")
    judged = [record for record in scored if not random(record)] or scored
    joint, least = combined(judged), power(judged)
    certified = [member for member in members if member.certified]
    own = {rung.method for member in certified for rung in member.rungs if _on(rung, strongest)}
    end = f"; {_reach_words(certified, own)}{_power_words(least)}{by}"
    p = None if joint is None else joint.p

    def made(word: Word, verdict: str, label: str = "", limit: float | None = None) -> Panel:
        verdict += "" if profile(strongest).everyone else f"; Eve holds {profile(strongest).holds}"
        return Panel(members, strongest.evaluator, word, verdict, len(judged), label, limit, p, least)

    if breaks(strongest):
        guesses, shown = strongest.scores["guesswork"], strongest.metrics["guesswork"]
        return made("broken", f"broken by {_name(strongest)}: {number(guesses.value, shown.digits)} {shown.unit}")
    sure = surely(judged)
    if sure or (p is not None and p < UNLIKELY):
        return made("leaks", f"leaks: {_leak_words(judged, sure, joint, members)}{_one_in(strongest)}{end}")
    if profile(strongest).same_image and (few := _too_few(scored)):
        return made("no verdict", f"no verdict: {few}{end}")
    limit = bound(scored, attacks)
    if isinstance(limit, str):
        return made("no verdict", f"no verdict: {limit}{end}")
    label = f"no leak above {limit.text} shown"
    return made("no leak above a bound", f"{label}: {limit.sentence}{end}", label, limit.area)


def _leak_words(
    judged: Sequence[Record], sure: Sequence[Record], joint: Combined | None, members: Sequence[Member]
) -> str:
    """The size of a leak, its attack, and its probability by chance.

    Of other images than the released ones, what the attack finds in raw images stands beside it.
    """
    most = max(judged, key=lambda record: figure[1].value if (figure := primary(record)) else -1.0)
    figure = primary(most)
    texts = []
    if figure is not None:
        name, score = figure
        shown = most.metrics[name]
        ends = "" if score.low is None else f" ({interval(score.low, score.high, shown.digits)})"
        texts.append(f"{shown.title} {number(score.value, shown.digits)}{ends} by {_name(most)}")
        larger = {name: most.scores[name].value for name in ("reid-auc", "patient-reid-auc") if name in most.scores}
        if larger and larger[(top := max(larger, key=lambda one: larger[one]))] > score.value:
            texts.append(figure_text(most, top))
        if not profile(most).same_image:
            if TOP in most.scores:
                texts.append(f"it names {number(100 * most.scores[TOP].value, 1)} % of people first")
            own = (member for member in members if member.evaluator == most.evaluator)
            texts += [f"in raw images it has {one.text}" for member in own for one in member.controls
                      if one.role == "hides nothing" and one.state == "holds"]  # fmt: skip
    if joint is not None:
        many = f"{joint.attacks} attack{'s' * (joint.attacks > 1)}"
        texts.append(f"p {chance_text(joint.p)} that chance does as well, over {many} ({joint.how})")
    if sure:
        texts.append(f"surely better than chance: {', '.join(map(_name, sure))}")
    return "; ".join(texts)


def _power_words(least: float | None) -> str:
    """The least leak that the row would have found."""
    return "" if least is None else f"; with probability .8 one attack would find a leak of ReID AUC {upward(least, 3)}"


def chance_text(p: float) -> str:
    """A probability in print.

    >>> chance_text(0.0312), chance_text(1e-7), chance_text(0.25)
    ('0.031', 'below 0.0001', '0.25')
    """
    return "below 0.0001" if p < 1e-4 else number(p, 2 if p >= 0.1 else 3 if p >= 0.01 else 4)


def _uncertified(members: Sequence[Member]) -> str:
    """Why none of these attacks supports a claim, in words."""
    standings = {member.standing for member in members}
    if "certified" in standings:
        return "no certified attack has a figure"
    if standings == {"controls not run"}:
        controls = [control for member in members for control in member.controls if control.state == "not run"]
        lacking = dict.fromkeys(control.text for control in controls)
        if lacking and all(text.startswith(WITHOUT) for text in lacking):
            return f"the controls ran {', '.join(lacking)}"
        return "the controls were not run"
    return "no attack passed its controls" + ("; some were not run" if "controls not run" in standings else "")


def _one_in(strongest: Record) -> str:
    """The strongest attack's first-guess rate in words, if notable.

    If rows form indistinguishable groups of k, a sure attack's first guess is right 1 time in k. Each key has only one
    first guess: the luckiest of several attacks would overstate it.
    """
    first = strongest.scores["guesswork"].parts.get(FIRST)
    if first is None or first.null is None or first.value < max(SMALL, SOONER * first.null):
        return ""
    return f", the first guess of {_name(strongest)} right about 1 in {number(1 / first.value, 0)} times"


def _name(record: Record) -> str:
    return short(record.evaluator)


def _on(rung: Rung, record: Record) -> bool:
    """True if the rung is the record's own method."""
    method = None if rung.step is None else rung.step.method
    return method is not None and (method.name, method.parameters) == (record.method.name, record.method.parameters)


def _reach_words(members: Sequence[Member], own: Set[str]) -> str:
    """The attacks' reach on the ladder's encoders, without the method itself.

    Unbreakable encoders say nothing of an attack's strength.
    """
    out = own | {rung.method for member in members for rung in member.rungs if not rung.breakable}
    tried = [rung for member in members for rung in member.rungs if rung.tried and rung.method not in out]
    measured = {rung.method for rung in tried}
    broken = {rung.method for rung in tried if rung.state == "broken"}
    if not measured:
        return "the reach of its attacks was never measured"
    order = [rung.method for rung in members[0].rungs]
    data = sorted({rung.step.dataset for rung in tried if rung.step})
    where = f" (measured on {', '.join(data)})"
    if measured == broken:
        names = f"of {', '.join(name for name in order if name in broken)}"
        return f"its attacks break all {names if len(broken) < 5 else f'{len(broken)} test encoders'}{where}"
    whole = [name for name in order if name in measured - broken]
    some = "the test encoder " if len(measured) == 1 else f"{len(whole)} of {len(measured)} test encoders: "
    return f"none of its attacks breaks {some}{', '.join(whole)}{where}"


def control(record: Record, role: Role, pool: Sequence[Record], theirs: Set[str] = frozenset()) -> Control:
    """An attack's record on the reference method of a role.

    Records in `theirs` are only their author's statement: they count if no other has figures.
    """
    near = (other for other in pool if other.method.role == role and other.kind == record.kind)
    fitting = [other for other in near if _comparable(record, other)]

    def place(other: Record) -> tuple[bool, bool, bool]:
        return other.status != "ok", other.digest in theirs, other.device != record.device

    best = min(fitting, key=place, default=None)
    mine = best is not None and best.digest in theirs
    needed = CONTROLLED[record.kind] if record.kind != PAIRS or profile(record).same_image else (BY_PERSON,)
    names = (*needed, *BESIDE[record.kind])
    scores = {} if best is None else {name: best.scores[name] for name in names if name in best.scores}
    if best is None or not {*needed} <= scores.keys():
        metrics = {**record.metrics, **({} if best is None else best.metrics)}
        without = f"{WITHOUT} {' or '.join(metrics[name].title if name in metrics else name for name in needed)}"
        why = "never ran" if best is None else (best.reason or without)
        return Control(role, "not run" if best is None or best.status == "ok" else "fails", why, mine)
    if role == "hides nothing" and needed == (BY_PERSON,):
        holds = beats_chance(scores[BY_PERSON])
    elif role == "hides nothing":
        holds = scores["guesswork"].value <= FOUND_GUESSES and scores["reid-auc"].value >= FOUND_AUC
    elif role == "remembers its rows":
        holds = beats_chance(scores["membership-auc"])
    else:
        holds = all(_at_chance(of_tries(len(scores), score)) for score in scores.values())
    return Control(role, "holds" if holds else "fails", ", ".join(figure_text(best, name) for name in needed), mine)


def figure_text(record: Record, metric: str) -> str:
    """A figure under its title, as the record's metric is shown."""
    shown = record.metrics[metric]
    return f"{shown.title} {number(record.scores[metric].value, shown.digits)}"


def _at_chance(score: ScoreRecord) -> bool:
    """True if chance gives such a figure with p >= 0.001."""
    if (p := score.chance_does_as_well) is not None:
        return p >= RARE
    return score.null_low is None or score.null_high is None or score.null_low <= score.value <= score.null_high


def _comparable(a: Record, b: Record) -> bool:
    """True if two records hold the same attack, data and size."""
    if a.attack is None or b.attack is None or a.dataset is None or b.dataset is None:
        return False
    if a.attack.name != b.attack.name:
        return False
    same_attack = (a.kind, a.attack.name, a.attack.parameters, a.attack.code) == (
        b.kind, b.attack.name, b.attack.parameters, b.attack.code,
    )  # fmt: skip
    return same_attack and same_rows(a.choice, b.choice, a.dataset, b.dataset)


def attack_key(record: Record) -> tuple[str, str] | None:
    """Kind and name of a record's attack; None without one.

    The evaluator of published classifiers is itself the attack.
    """
    if record.attack is not None:
        return record.kind, record.attack.name
    return (record.kind, record.kind) if record.kind == ClassifierMembership.name else None


Outcome = Literal["broken", "leaks", "membership leaks", "nothing shown", "not applicable", "failed", "timed out"]
"""The outcome of one attack; nothing shown says nothing of safety."""


def outcome(record: Record, panel: Panel) -> Outcome:
    """The outcome of one attack of a panel, in words of verdicts.

    The rule is the panel's own: no attack is said to harm a method more than the method's verdict says.
    """
    if record.status != "ok":
        return cast("Outcome", record.status.replace("-", " "))
    if record.kind == ClassifierMembership.name:
        return "membership leaks" if _answers_tell(record) else "nothing shown"
    if record.kind != PAIRS:
        return "membership leaks" if any(tells(record, panel.tries)) else "nothing shown"
    if breaks(record):
        return "broken"
    harmed = panel.word in ("leaks", "broken", "not rated", "not certified")
    return "leaks" if harmed and (singly(record, panel.tries) or surely([record])) else "nothing shown"


def breaks(record: Record) -> bool:
    """True if a matching attack breaks the method (`leaderboard.reach.state`)."""
    one = step(record)
    return one is not None and state(one) == "broken"


def tells(record: Record, tries: int) -> tuple[bool, bool]:
    """Two flags: membership leaks by AUC; by TPR, of a few."""
    auc, tpr = (record.scores.get(name) for name in TELLING)
    beats = [score is not None and beats_chance(score, tries) for score in (auc, tpr)]
    return beats[0], beats[1]


def strength(record: Record, tries: int) -> tuple[bool, bool, float, float]:
    """Sorting key: breaking attacks first, then those that beat chance.

    Attacks that read labels see fewer rows, so that chance needs fewer guesses.
    """
    if not profile(record).same_image:  # the surest of many other images is found at once: guesses say little
        found = primary(record)
        return True, not singly(record, tries), 0.0, 0.0 if found is None else -found[1].value
    guesses, auc = record.scores["guesswork"], record.scores.get("reid-auc")
    beats = beats_chance(guesses, tries)
    return not breaks(record), not beats, guesses.value, -auc.value if auc else 0.0
