"""The reach of attacks: which breakable encoders they break.

An attack may pass its controls and still be weak. Its reach is the list of encoders that it breaks. A method that it
does not break can then be compared with the encoders that it does not break either.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from bench.plugins import registry
from bench.plugins.profile_spec import profile_of
from bench.plugins.spec import UsageError, parameters, parse
from bench.results.records import PluginRecord, Record, ScoreRecord, Status
from leaderboard.entries import beats_chance

SAME_IMAGE = str(profile_of(None))
PAIRS, MEMBERSHIP = "reidentification", "membership"  # the evaluators of attacks that a panel judges
BROKEN = 5.0  # guesses until the first correct pair
SOONER = 20  # times sooner than by chance: the line among few images
FIGURES = ("guesswork", "reid-auc", "top-1")
MOST = "upper limit"
"""Part of guesswork: a one-sided limit."""
SHIPPED = "reach.json"
OPTIMAL = "likelihood"
"""The attack that no other can beat where noise is stated (Neyman and Pearson): it knows the density."""
Condition = Literal["broken", "leaks", "nothing shown", "not applicable", "failed", "not measured"]


class Step(BaseModel):
    """One attack on one encoder: what of its record the reach needs.

    `optimal` says that the attack worked with the noise's own density, as the scheme states it; `eve` is her profile.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    attack: PluginRecord
    method: PluginRecord
    status: Status
    preset: str
    seed: int
    dataset: str
    images: int
    keys: int
    scores: dict[str, ScoreRecord]
    seconds: float
    processor: str
    created: str
    optimal: bool = False
    eve: str = SAME_IMAGE


@dataclass(frozen=True)
class Rung:
    """An encoder of the ladder and how an attack fared on it.

    Args:
        method: The encoder as the command line takes it.
        state: "broken": surely fewer guesses than the `line`, and not by chance; "leaks": better than chance, no more.
        step: What was measured; None where nothing was.
        stale: The attack's code has changed since.
        possible: Guesswork of the best attack that there can be: of a release that is made to keep one known thing, in
            closed form; of stated noise, what the attack that knows the noise attained (`OPTIMAL`). None where it is
            not known.
    """

    method: str
    state: Condition
    step: Step | None
    stale: bool
    possible: float | None = None

    @property
    def tried(self) -> bool:
        """True if the attack has a result on it."""
        return self.state in ("broken", "leaks", "nothing shown")

    @property
    def breakable(self) -> bool:
        """True if some attack is known to break it."""
        guesses = None if self.step is None else self.step.scores.get("guesswork")
        return self.possible is None or self.possible < (BROKEN if guesses is None else line(guesses))

    @property
    def attained(self) -> float | None:
        """The attack's guesswork; None without one."""
        guesses = None if self.step is None else self.step.scores.get("guesswork")
        return None if guesses is None else guesses.value


def step(record: Record) -> Step | None:
    """The step of an attack's record; None without data or attack."""
    if record.kind != PAIRS or record.attack is None or record.dataset is None:
        return None
    eve = profile_of(record.choice.get("eve"))
    if not eve.same_image:  # other images are never found in a few guesses
        return None
    return Step(
        attack=record.attack, method=record.method, status=record.status, preset=record.preset, seed=record.seed,
        dataset=record.dataset.name, images=record.dataset.rows.get("private", 0), keys=record.keys,
        scores={name: _bare(record.scores[name]) for name in FIGURES if name in record.scores},
        seconds=record.seconds.get("attack", 0.0), processor=str(record.hardware.get("processor", "")),
        created=record.created, optimal=record.details.get("density") == "stated", eve=str(eve),
    )  # fmt: skip


def _bare(score: ScoreRecord) -> ScoreRecord:
    """The figure without its replicates, which would fill the file."""
    parts = {name: part for name, part in score.parts.items() if name == MOST}
    return score.model_copy(update={"replicates": None, "exchanges": None, "parts": parts})


def steps(records: Iterable[Record]) -> list[Step]:
    """Every step on the ladder among the records, limited runs left out."""
    on_ladder = (record for record in records if any(_is(record.method, rung, record.preset) for rung in rungs()))
    known = (step(record) for record in on_ladder if record.limit is None)
    return [one for one in known if one is not None]


@cache
def rungs() -> tuple[str, ...]:
    """The encoders of the ladder, from the plainest up."""
    text = (resources.files("bench") / "suites" / "ladder.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text)["methods"])


@cache
def shipped() -> tuple[Step, ...]:
    """The steps that came with this version, measured on the embedded data."""
    path = resources.files("leaderboard") / SHIPPED
    return tuple(TypeAdapter(list[Step]).validate_json(path.read_text(encoding="utf-8"))) if path.is_file() else ()


def dumps(known: Sequence[Step]) -> str:
    """Steps as JSON, in one order."""
    order = sorted(
        known, key=lambda step: (step.attack.name, step.method.name, str(step.method.parameters), step.preset)
    )
    content = [step.model_dump(mode="json", exclude={"eve"} if step.eve == SAME_IMAGE else None) for step in order]
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def reach(attack: PluginRecord, preset: str, dataset: str, known: Sequence[Step], eve: str = SAME_IMAGE) -> list[Rung]:
    """An attack's outcome on each rung, on the same data if measured.

    Args:
        attack: The attack with its parameters.
        preset: Of the steps that count.
        dataset: Whose steps come first.
        known: From the same results, then `shipped()`.
        eve: The profile under which steps were measured.
    """
    known = [step for step in known if step.eve == eve]
    steps_of_attack = [step for step in known if _same(step.attack, attack) and step.preset == preset]
    outcomes = []
    for rung in rungs():
        candidates = [step for step in steps_of_attack if _is(step.method, rung, preset)]
        best = min(candidates, key=lambda step: _worth(step, attack, dataset), default=None)
        stale = best is not None and best.attack.code != attack.code
        outcomes.append(
            Rung(rung, "not measured" if best is None else state(best), best, stale, possible(rung, best, known))
        )
    return outcomes


def _worth(one: Step, attack: PluginRecord, dataset: str) -> tuple[bool, bool, bool]:
    """Sorting key: steps that say least of an attack come last."""
    return one.status == "not-applicable", one.dataset != dataset, one.attack.code != attack.code


class Ladder:
    """Known steps; the reach of each attack is computed once.

    Args:
        known: From the same results, then `shipped()`.
    """

    def __init__(self, known: Iterable[Step]) -> None:
        self._known: dict[tuple[str, str], list[Step]] = {}
        for one in distinct(list(known)):
            self._known.setdefault((one.eve, one.attack.name), []).append(one)
        self._rungs: dict[tuple[str, ...], list[Rung]] = {}

    def reach(self, attack: PluginRecord, preset: str, dataset: str, eve: str = SAME_IMAGE) -> list[Rung]:
        """As the function of that name."""
        question = (attack.name, json.dumps(attack.parameters, sort_keys=True), attack.code, preset, dataset, eve)
        if question not in self._rungs:
            names = dict.fromkeys((attack.name, OPTIMAL))  # no step of another attack is looked at
            some = [one for name in names for one in self._known.get((eve, name), ())]
            self._rungs[question] = reach(attack, preset, dataset, some, eve)
        return self._rungs[question]


def distinct(known: Sequence[Step]) -> list[Step]:
    """The steps that `reach` may use; superseded ones are left out."""
    first: dict[tuple[object, ...], Step] = {}
    for place, one in enumerate(known):
        number = place if one.attack.name == OPTIMAL else 0  # all are kept, because `possible` takes their minimum
        identity = (one.attack.written, one.attack.code, one.method.written, one.preset, one.dataset, one.eve, number)
        parameters = (str(one.attack.parameters), str(one.method.parameters))
        first.setdefault((*identity, *parameters), one)
    return list(first.values())


def possible(rung: str, measured: Step | None, known: Sequence[Step]) -> float | None:
    """Guesswork of the best possible attack on a rung; see `Rung`."""
    if measured is None:
        return None
    exact = _in_closed_form(rung, measured.preset, measured.images)
    if exact is not None:
        return exact
    optimal = [
        one.scores["guesswork"].value
        for one in known
        if one.attack.name == OPTIMAL and one.optimal and "guesswork" in one.scores and same_release(one, measured)
    ]
    return min(optimal, default=None)


@cache
def _in_closed_form(rung: str, preset: str, images: int) -> float | None:
    plugin = registry.build("methods", parse(rung), preset)
    of_images = getattr(plugin, "bayes_guesswork", None)
    exact = None if of_images is None else of_images(images)
    return None if exact is None else float(exact)


def same_release(one: Step, other: Step) -> bool:
    """True if two attacks saw releases of one method and rows."""
    a, b = ((step.method.name, step.method.parameters, step.preset, step.dataset, step.seed) for step in (one, other))
    return a == b


def state(one: Step) -> Condition:
    """Standing of an encoder after an attack."""
    if one.status != "ok":
        return "not applicable" if one.status == "not-applicable" else "failed"
    guesses = one.scores.get("guesswork")
    limit = None if guesses is None else most(guesses)
    if guesses is not None and limit is not None and limit < line(guesses) and beats_chance(guesses):
        return "broken"
    return "leaks" if any(beats_chance(score) for score in one.scores.values()) else "nothing shown"


def most(guesses: ScoreRecord) -> float | None:
    """Upper limit of a key's guesses, or an earlier record's interval's end."""
    limit = guesses.parts.get(MOST)
    return guesses.high if limit is None else limit.value


def line(guesses: ScoreRecord) -> float:
    """Guesses on the whole release below which an encoder is broken.

    `BROKEN`, or a twentieth of the guesses of chance if that is less. A release whose rows form indistinguishable
    groups of k takes about k guesses, and at most leaks from k = 5 on.
    """
    return BROKEN if guesses.null is None else min(BROKEN, guesses.null / SOONER)


def _same(a: PluginRecord, b: PluginRecord) -> bool:
    return a.name == b.name and a.parameters == b.parameters


def _is(method: PluginRecord, rung: str, preset: str) -> bool:
    """True if a method stands on the rung.

    A parameter that a method has gained since it was measured counts as its default, which keeps what the method did.
    """
    if method.name != _name(rung):
        return False
    expected = _parameters(rung, preset)
    if expected is None:
        return False
    gained = {name: value for name, value in _defaults(method.name).items() if name not in method.parameters}
    return {**gained, **method.parameters} == expected


@cache
def _name(rung: str) -> str:
    return parse(rung).name


@cache
def _defaults(name: str) -> Mapping[str, object]:
    """The parameters of an installed method that have a default."""
    fields = dataclasses.fields(cast("Any", registry.load("methods", name)))
    return {field.name: field.default for field in fields if field.init and field.default is not dataclasses.MISSING}


@cache
def _parameters(rung: str, preset: str) -> dict[str, JsonValue] | None:
    """Every parameter of a rung; None if the method is not installed."""
    try:
        return dict(cast("Mapping[str, JsonValue]", parameters(registry.build("methods", parse(rung), preset))))
    except UsageError:
        return None
