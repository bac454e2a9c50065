"""The attack panels of one cell: which attacks count, the strongest of them, and what may be said of the method.

An attack counts ("certified") where its controls hold on the same data, preset and seed. One that matches pairs finds
nearly every row of the method that hides nothing, and sits at chance on the one that keeps nothing, and on another
whose keys hide in which way they keep nothing: the former may be recognised, by its name or its looks. One that
tells members does better than chance on the method that remembers its rows, and sits at chance on the one that forgets
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import JsonValue

from bench.evaluators.membership import Membership
from bench.evaluators.reidentification import Reidentification
from bench.results.records import Record
from bench.statistics.confidence_intervals import LEVEL
from leaderboard.controls import Control, control, figure_text
from leaderboard.entries import number, short
from leaderboard.harm import TELLING, breaks, dents, strength, tells
from leaderboard.reach import MEMBERSHIP, PAIRS, SOONER, Ladder, Rung, line

ROLES = {evaluator.name: evaluator.controls for evaluator in (Reidentification, Membership)}
FIRST = "first guess"  # the part of guesswork that says how likely the first guess is right
SMALL = 0.01  # chances of a first guess below it are not spoken of
Word = Literal[
    "broken",
    "dented",
    "not broken",
    "members told",
    "members not told",
    "not certified",
    "does not apply",
    "no attack",
    "not rated",
]
"""What may be said of a method, in two words."""


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
        """Whether all controls hold."""
        return all(control.state == "holds" for control in self.controls)

    @property
    def theirs(self) -> bool:
        """Whether it is certified by controls that are the word of whoever handed in the row."""
        return self.certified and any(control.theirs for control in self.controls)

    @property
    def standing(self) -> Literal["certified", "not certified", "controls not run"]:
        """Whether the attack may support a claim, in words."""
        if self.certified:
            return "certified"
        failed = any(control.state == "fails" for control in self.controls)
        return "not certified" if failed else "controls not run"


@dataclass(frozen=True)
class Panel:
    """All attacks of one kind on one cell, the strongest certified one, and the verdict: in two words, and in full.

    `tries` is how many figures of certified attacks there are: chance has as many tries.
    """

    members: tuple[Member, ...]
    headline: str | None
    word: Word
    verdict: str
    tries: int = 1

    def standing(self, evaluator: str) -> str:
        """Whether that attack counts, in words."""
        return next(member.standing for member in self.members if member.evaluator == evaluator)


def panel(records: Sequence[Record], pool: Sequence[Record], ladder: Ladder, theirs: Set[str] = frozenset()) -> Panel:
    """The panel of the attacks that match pairs, for one cell.

    Args:
        records: The cell's own.
        pool: All records of the results, where the controls are looked for.
        ladder: With the steps among the records (`leaderboard.reach.steps`), and those that came with this version.
        theirs: Digests of controls that are the word of whoever handed in the row.
    """
    attacks = [record for record in records if record.kind == PAIRS]
    members = tuple(_member(record, pool, theirs, ladder) for record in attacks)
    certified = {member.evaluator for member in members if member.certified}
    scored = [record for record in attacks if record.evaluator in certified and "guesswork" in record.scores]
    strongest = min(scored, key=lambda record: strength(record, len(scored)), default=None)
    tries = sum(len(record.scores) for record in scored)
    word, verdict = _verdict(strongest, scored, attacks, [member for member in members if member.certified], tries)
    made = Panel(members, None if strongest is None else strongest.evaluator, word, verdict, tries)
    if word != "not broken":
        return made
    return not_rated(_not_certified(made, attacks, "broke", breaks), _too_few(scored))


def _not_certified(made: Panel, attacks: Sequence[Record], did: str, finds: Callable[[Record], bool]) -> Panel:
    """The panel where an attack without controls `finds` people: that others do not find them says too little."""
    finding = [each for each in attacks if made.standing(each.evaluator) == "controls not run" and finds(each)]
    if not finding:
        return made
    names = ", ".join(map(_name, finding))
    why = f"controls of {names}, which {did} it, did not run on the same data by the same code"
    return replace(made, word="not certified", verdict=f"not certified ({why}): {made.verdict}")


def not_rated(made: Panel, why: str) -> Panel:
    """The panel of a method whose word did not hold (`why`, in words; empty where it did): nothing is said for it."""
    if not why or not made.members:
        return made
    return replace(made, word="not rated", verdict=f"not rated ({why}): {made.verdict}")


def _too_few(scored: Sequence[Record]) -> str:
    """Why these attacks could not have broken anything, in words; empty where they could.

    Where an attack is right with its first guess under each of k keys, the interval of guesswork ends at the guesses
    of which k firsts in a row come once in forty times (`metrics.guesswork.waiting_bounds`).
    """
    if any(
        record.keys > 0 and (1 - LEVEL) ** (-1 / record.keys) < line(record.scores["guesswork"]) for record in scored
    ):
        return ""
    keys = max(record.keys for record in scored)
    return f"of so few images, or under {keys} key{'s' * (keys > 1)} alone, raw images would not be broken either"


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
        why = "no membership attack with a figure whose controls ran and hold"
        return Panel(members, None, "not certified", why)
    tries = len(scored) * len(TELLING)

    def place(record: Record) -> tuple[bool, bool, float]:
        surely, few = tells(record, tries)
        return not surely, not few, -record.scores[metric].value

    strongest = min(scored, key=place)
    surely, few = tells(strongest, tries)
    if not surely and not few:
        made = Panel(members, strongest.evaluator, "members not told", "members not told by these attacks", tries)
        return _not_certified(made, attacks, "told members of", lambda record: any(tells(record, tries)))
    shown = figure_text(strongest, metric)
    if not surely:  # sure of a few members, and no better than chance at most
        shown += f", {number(100 * strongest.scores['membership-tpr'].value, 1)} % of them at 1 % of others"
    return Panel(members, strongest.evaluator, "members told", f"members told by {_name(strongest)}: {shown}", tries)


def dumps(pairs: Panel, membership: Panel) -> str:
    """Both panels as JSON with sorted keys: every attack with its controls and reach, the headlines and verdicts."""
    content = {**_content(pairs), "membership": _content(membership)}
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def _content(made: Panel) -> dict[str, JsonValue]:
    members: dict[str, JsonValue] = {
        member.evaluator: {
            "standing": member.standing,
            "controls": {
                control.role: {"state": control.state, "figures": control.text} for control in member.controls
            },
            "reach": {rung.method: rung.state for rung in member.rungs},
        }
        for member in made.members
    }
    return {"attacks": members, "headline": made.headline, "verdict": made.verdict}


def _member(record: Record, pool: Sequence[Record], theirs: Set[str], ladder: Ladder | None = None) -> Member:
    assert record.attack is not None
    dataset = record.dataset.name if record.dataset else ""
    controls = tuple(control(record, role, pool, theirs) for role in ROLES[record.kind] or ())
    rungs = () if ladder is None else ladder.reach(record.attack, record.preset, dataset)
    return Member(record.evaluator, controls, tuple(rungs))


def _verdict(
    strongest: Record | None, scored: Sequence[Record], attacks: Sequence[Record], members: Sequence[Member], tries: int
) -> tuple[Word, str]:
    """What may be said: `scored` and `members` are the certified attacks, with `tries` figures, `attacks` all."""
    if not attacks:
        return "no attack", "no attack ran"
    breaking = [record for record in attacks if breaks(record)]
    by = f"; broken by {', '.join(map(_name, breaking))} all the same (not certified)" if breaking else ""
    if all(record.status == "not-applicable" for record in attacks):
        return "does not apply", "no attack on pairs applies"
    if strongest is None:
        return "not certified", f"not certified: no attack with a figure whose controls ran and hold{by}"
    if breaks(strongest):
        guesses, shown = strongest.scores["guesswork"], strongest.metrics["guesswork"]
        return "broken", f"broken by {_name(strongest)}: {number(guesses.value, shown.digits)} {shown.unit}"
    denting = [record for record in scored if dents(record, tries)]
    end = _reach_words(members, {rung.method for member in members for rung in member.rungs if _on(rung, strongest)})
    if not denting:
        return "not broken", end + by
    return "dented", f"dented by {', '.join(map(_name, denting))}: better than chance{_one_in(strongest)}; {end}{by}"


def _one_in(strongest: Record) -> str:
    """How likely the strongest attack guesses right at once, in words, where that is worth saying.

    Where rows stand in groups of k that nobody tells apart, a sure attack is right with its first guess 1 time in k.
    Each key has but one first guess: of several attacks the luckiest would say too much.
    """
    first = strongest.scores["guesswork"].parts.get(FIRST)
    if first is None or first.null is None or first.value < max(SMALL, SOONER * first.null):
        return ""
    return f", the first guess of {_name(strongest)} right about 1 in {number(1 / first.value, 0)} times"


def _name(record: Record) -> str:
    return short(record.evaluator)


def _on(rung: Rung, record: Record) -> bool:
    """Whether the rung is the record's own method."""
    method = None if rung.step is None else rung.step.method
    return method is not None and (method.name, method.parameters) == (record.method.name, record.method.parameters)


def _reach_words(members: Sequence[Member], own: Set[str]) -> str:
    """How far the attacks get on the encoders of the ladder, the method itself (`own`) left out.

    Encoders that nobody can break tell nothing of how weak the attacks are.
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
