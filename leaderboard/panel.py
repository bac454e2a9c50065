"""The attack panels of one row: certified attacks, the strongest, the verdict.

An attack counts ("certified") if its controls hold on the same data, preset and seed. One that matches pairs finds
nearly every row of the method that hides nothing, and is at chance on the method that keeps nothing and on another
whose keys hide in which way they keep nothing, because the former may be recognised by its name or its looks. One that
tells members beats chance on the method that remembers its rows, and is at chance on the one that forgets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from bench.evaluators.membership import Membership
from bench.evaluators.reidentification import Reidentification
from bench.results.records import Record, ScoreRecord
from bench.statistics.confidence_intervals import LEVEL, RARE
from bench.types import Role
from bench.workbench.choice import same_rows
from leaderboard.entries import beats_chance, number, of_tries, short
from leaderboard.reach import MEMBERSHIP, PAIRS, SOONER, Ladder, Rung, line, state, step

ROLES = {evaluator.name: evaluator.controls for evaluator in (Reidentification, Membership)}
FIRST = "first guess"  # the part of guesswork that says how likely the first guess is right
SMALL = 0.01  # least chance of a first guess that a verdict mentions
FOUND_AUC, FOUND_GUESSES = 0.99, 1.5
CONTROLLED: Mapping[str, tuple[str, ...]] = {PAIRS: ("guesswork", "reid-auc"), MEMBERSHIP: ("membership-auc",)}
"""The metrics that a control of each kind needs."""
BESIDE: Mapping[str, tuple[str, ...]] = {PAIRS: ("top-1",), MEMBERSHIP: ("membership-tpr",)}
TELLING = (*CONTROLLED[MEMBERSHIP], *BESIDE[MEMBERSHIP])  # the worst member's figure has no probability
Word = Literal[
    "broken", "dented", "not broken", "members told", "members not told", "not certified", "does not apply",
    "no attack", "not rated",
]  # fmt: skip
"""The verdict on a method, in two words."""
SIGNS: Mapping[Word, str] = {
    "not broken": "○", "members not told": "○", "dented": "◐", "members told": "◐", "broken": "✕",
    "not certified": "?", "not rated": "–", "does not apply": "·", "no attack": "·",
}  # fmt: skip
"""Every verdict with its sign, from the best for a data owner to those without a finding."""
MEANINGS: Mapping[Word, str] = {
    "not broken": "no certified attack did better than chance; a stronger attack still may",
    "members not told": "no certified membership attack did better than chance",
    "dented": "an attack did better than chance, but did not surely find people in few guesses",
    "members told": "an attack tells members from others better than chance",
    "broken": "an attack finds people in fewer than 5 guesses and in a twentieth of the guesses of chance (both by the "
    "upper end of the 95 % interval)",
    "not certified": "no attack passed its controls, or the controls of an attack that found people were not run",
    "not rated": "the method broke a promise, the check did not run, it refused a request, or keys are too few",
    "does not apply": "the release has nothing that these attacks could match to people",
    "no attack": "no attack ran",
}
GRAVEST: tuple[Word, ...] = (
    "not rated", "broken", "members told", "dented", "not certified", "not broken", "members not told",
    "does not apply",
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """One attack of the panel.

    Args:
        evaluator: Its record's name.
        controls: All of them, the method on which it must find something first.
        rungs: Its reach, from the plainest encoder up; none for attacks on membership.
    """

    evaluator: str
    controls: tuple[Control, ...]
    rungs: tuple[Rung, ...]

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
        word, verdict: The verdict in two words, and in full.
        tries: How many figures certified attacks have: chance has as many tries.
    """

    members: tuple[Member, ...]
    headline: str | None
    word: Word
    verdict: str
    tries: int = 1

    def standing(self, evaluator: str) -> str:
        """The standing of that attack, in words."""
        return next(member.standing for member in self.members if member.evaluator == evaluator)


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


def standing(panels: Iterable[Panel]) -> tuple[Word, str]:
    """The gravest word of a row's panels, and the verdict of each."""
    shown = [panel for panel in panels if panel.members]
    words = {panel.word for panel in shown}
    verdicts = [panel.verdict for panel in shown] or ["no attack ran"]
    if any(member.theirs for panel in shown for member in panel.members):
        verdicts.append("certified by controls that its author alone measured")
    return next((word for word in GRAVEST if word in words), "no attack"), "; ".join(verdicts)


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
    tries = sum(len(record.scores) for record in scored)
    word, verdict = _verdict(strongest, scored, attacks, members, tries)
    result = Panel(members, None if strongest is None else strongest.evaluator, word, verdict, tries)
    if word != "not broken":
        return result
    return not_rated(_not_certified(result, attacks, "broke", breaks), _too_few(scored))


def _not_certified(result: Panel, attacks: Sequence[Record], did: str, finds: Callable[[Record], bool]) -> Panel:
    """The panel if an attack without controls `finds` people: not certified."""
    finding = [each for each in attacks if result.standing(each.evaluator) == "controls not run" and finds(each)]
    if not finding:
        return result
    names = ", ".join(map(_name, finding))
    why = f"the controls of {names}, which {did} it, were not run on the same data by the same code"
    return replace(result, word="not certified", verdict=f"not certified ({why}): {result.verdict}")


def not_rated(result: Panel, why: str) -> Panel:
    """The panel of a method that is not rated, for `why`."""
    if not why or not result.members:
        return result
    return replace(result, word="not rated", verdict=f"not rated ({why}): {result.verdict}")


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
    return f"with so few images, or only {keys} key{'s' * (keys > 1)}, even raw images would not be broken"


def membership_panel(records: Sequence[Record], pool: Sequence[Record], theirs: Set[str] = frozenset()) -> Panel:
    """The panel of the attacks that tell members; arguments as in `panel`."""
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
        result = Panel(members, strongest.evaluator, "members not told", "members not told by these attacks", tries)
        return _not_certified(result, attacks, "told members of", lambda record: any(tells(record, tries)))
    text = figure_text(strongest, metric)
    if not surely:  # sure of a few members, and no better than chance at most
        text += f", {number(100 * strongest.scores['membership-tpr'].value, 1)} % of them at 1 % of others"
    return Panel(members, strongest.evaluator, "members told", f"members told by {_name(strongest)}: {text}", tries)


def _member(record: Record, pool: Sequence[Record], theirs: Set[str], ladder: Ladder | None = None) -> Member:
    assert record.attack is not None
    dataset = record.dataset.name if record.dataset else ""
    controls = tuple(control(record, role, pool, theirs) for role in ROLES[record.kind] or ())
    rungs = () if ladder is None else ladder.reach(record.attack, record.preset, dataset)
    return Member(record.evaluator, controls, tuple(rungs))


def _verdict(
    strongest: Record | None, scored: Sequence[Record], attacks: Sequence[Record], members: Sequence[Member], tries: int
) -> tuple[Word, str]:
    """The verdict, from certified attacks (`scored`) and all `attacks`."""
    if not attacks:
        return "no attack", "no attack ran"
    breaking = [record for record in attacks if breaks(record)]
    by = f"; broken by {', '.join(map(_name, breaking))}, which is not certified" if breaking else ""
    if all(record.status == "not-applicable" for record in attacks):
        return "does not apply", "no attack on pairs applies"
    if strongest is None:
        broken = f"broken by {', '.join(map(_name, breaking))}; " if breaking else ""
        return "not certified", f"{broken}not certified, because {_uncertified(members)}"
    if breaks(strongest):
        guesses, shown = strongest.scores["guesswork"], strongest.metrics["guesswork"]
        return "broken", f"broken by {_name(strongest)}: {number(guesses.value, shown.digits)} {shown.unit}"
    denting = [record for record in scored if dents(record, tries)]
    certified = [member for member in members if member.certified]
    end = _reach_words(
        certified, {rung.method for member in certified for rung in member.rungs if _on(rung, strongest)}
    )
    if not denting:
        return "not broken", end + by
    return "dented", f"dented by {', '.join(map(_name, denting))}: better than chance{_one_in(strongest)}; {end}{by}"


def _uncertified(members: Sequence[Member]) -> str:
    """Why none of these attacks supports a claim, in words."""
    standings = {member.standing for member in members}
    if "certified" in standings:
        return "no certified attack has a figure"
    if standings == {"controls not run"}:
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
        return "not broken by attacks whose reach was never measured"
    order = [rung.method for rung in members[0].rungs]
    data = sorted({rung.step.dataset for rung in tried if rung.step})
    where = f" (measured on {', '.join(data)})"
    if measured == broken:
        return f"not broken by attacks that break all of {', '.join(m for m in order if m in broken)}{where}"
    return f"not broken by attacks that also fail on {', '.join(m for m in order if m in measured - broken)}{where}"


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
    needed = CONTROLLED[record.kind]
    names = (*needed, *BESIDE[record.kind])
    scores = {} if best is None else {name: best.scores[name] for name in names if name in best.scores}
    if best is None or not {*needed} <= scores.keys():
        metrics = {**record.metrics, **({} if best is None else best.metrics)}
        without = f"without {' or '.join(metrics[name].title if name in metrics else name for name in needed)}"
        why = "never ran" if best is None else (best.reason or without)
        return Control(role, "not run" if best is None or best.status == "ok" else "fails", why, mine)
    if role == "hides nothing":
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
    if score.p is not None:
        return score.p >= RARE
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


def outcome(record: Record, tries: int) -> str:
    """The outcome of one attack of a panel, in words of verdicts.

    The rule is the panel's own: no attack is said to harm a method more than the method's verdict says.
    """
    if record.status != "ok":
        return record.status.replace("-", " ")
    if record.kind != PAIRS:
        return "members told" if any(tells(record, tries)) else "members not told"
    return "broken" if breaks(record) else "dented" if dents(record, tries) else "not broken"


def breaks(record: Record) -> bool:
    """True if a matching attack breaks the method (`leaderboard.reach.state`)."""
    one = step(record)
    return one is not None and state(one) == "broken"


def dents(record: Record, tries: int) -> bool:
    """True if any figure of a matching attack beats chance."""
    return any(beats_chance(of_tries(tries, score)) for score in record.scores.values())


def tells(record: Record, tries: int) -> tuple[bool, bool]:
    """Two flags: members told better than chance, and a few members told."""
    auc, tpr = (record.scores.get(name) for name in TELLING)
    beats = [score is not None and beats_chance(of_tries(tries, score)) for score in (auc, tpr)]
    return beats[0], beats[1]


def strength(record: Record, tries: int) -> tuple[bool, bool, float, float]:
    """Sorting key: breaking attacks first, then those that beat chance.

    Attacks that read labels see fewer rows, so that chance needs fewer guesses.
    """
    guesses, auc = record.scores["guesswork"], record.scores.get("reid-auc")
    beats = beats_chance(of_tries(tries, guesses))
    return not breaks(record), not beats, guesses.value, -auc.value if auc else 0.0
