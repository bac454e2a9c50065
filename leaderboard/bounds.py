"""Leaks and bounds that the attacks of a panel show together.

Each attack has one primary figure: ReID AUC by person if people have several images, else by image. Attacks of a cell
score the same sealed releases, so they are judged together by exchanges of people that are the same for all of them:
the null keeps their dependence. A statement of absence is an upper limit of the primary figure; it needs the whole core
list of attacks, and each of them trained until it converged; so does one about members, by a list of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np

from bench.plugins import registry
from bench.plugins.profile_spec import profile_of
from bench.plugins.spec import UsageError
from bench.results.records import Record, ScoreRecord
from bench.results.verdict import FLOOR
from bench.statistics.confidence_intervals import RARE, UNLIKELY
from bench.statistics.upper_limits import upper_limit
from bench.types import LearningCurve, Profile, curves_of
from leaderboard.entries import number, short

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ranks: TypeAlias = "NDArray[np.int64]"
CORE = (
    "nearest-neighbour", "likelihood", "relational", "contrastive", "moments", "leverage", "absolute-correlation",
    "invariants", "surrogate", "needle",
)  # fmt: skip
"""The attacks that a bound needs; one that does not apply to the release is no gap, but for `APPLYING`."""
MEMBER_CORE = ("dcr", "gan-leaks", "domias", "monte-carlo", "lira", "rmia", "quantile-regression")
"""The membership attacks that a bound on membership needs; gaps as with `CORE`."""
APPLYING = {"relational", "contrastive", "moments", "surrogate", *MEMBER_CORE} - {"quantile-regression"}
"""Core attacks that apply to every release with links or of members, unless the method refuses Eve's rows."""
KNOWING = ("anchors",)
"""The attacks that a bound needs besides under profiles in which Eve knows pairs: others do not read these."""
POWER = 0.8
TRAINING = re.compile(r"\btraining [1-9][0-9]*")
"""Names a training in the part of its learning curve."""
UNDRAWN = "members"
"""Names the detail by which `bench.evaluators.membership` says that no draw decided who is a member."""
BY_IMAGE, BY_PERSON, FIRST = "reid-auc", "patient-reid-auc", "top-1"


def primary(record: Record) -> tuple[str, ScoreRecord] | None:
    """An attack's primary figure with its metric; None without one."""
    names = [name for name in (BY_PERSON, BY_IMAGE) if name in record.scores]
    if not names:
        return None
    data = record.dataset
    several = data is not None and 0 < data.of_candidates(data.subjects) < data.of_candidates(data.rows)
    several = several or not profile(record).same_image
    judged = [name for name in names if record.scores[name].exchanges is not None]
    name = (judged or (names if several else names[::-1]))[0]
    return name, record.scores[name]


def profile(record: Record) -> Profile:
    """The Eve of a record."""
    return profile_of(record.choice.get("eve"))


@dataclass(frozen=True)
class Combined:
    """The probability that chance does as well as several attacks together.

    Args:
        p: One-sided.
        attacks: How many were judged.
        how: The test, in words.
    """

    p: float
    attacks: int
    how: str


def combined(records: Sequence[Record]) -> Combined | None:
    """The joint test of attacks' primary figures; None without probabilities.

    Attacks with the same exchanges are one group: Fisher's sum of log p and the least p, each ranked among the
    exchanges, then the better of both ranked again, so that its level is exact for any dependence. Groups, and attacks
    without exchanges (older records, the worst of several findings), are corrected by Bonferroni, which holds for any
    dependence too.
    """
    figures = [found[1] for record in records if (found := primary(record)) is not None]
    groups: dict[str, list[Sequence[int]]] = {}
    alone = []
    for figure in figures:
        if figure.exchanges is not None:
            ranked = figure.exchanges.read()
            groups.setdefault(f"{ranked.people} {len(ranked.tails)}", []).append(ranked.tails)
        elif figure.chance_does_as_well is not None:
            alone.append(figure.chance_does_as_well)
    tables = [np.array(tails, dtype=np.int64) for tails in groups.values()]
    tests = [*(int(joint_tails(table)[0]) / table.shape[1] for table in tables), *alone]
    if not tests:
        return None
    how = "people exchanged alike for all attacks" if groups else "Bonferroni, for these records hold no exchanges"
    if groups and len(tests) > 1:
        how += f"; Bonferroni over {len(tests)} groups of attacks"
    return Combined(min(1.0, len(tests) * min(tests)), sum(map(len, groups.values())) + len(alone), how)


def joint_tails(tails: Ranks) -> Ranks:
    """Number of exchanges doing at least as well as each, over attacks.

    Args:
        tails: (attacks, 1 + sets), the same for each attack alone, the true links first.

    Returns:
        (1 + sets,): under chance, every order is as likely.
    """
    shares = tails / tails.shape[1]
    fisher, least = _rank(-np.log(shares).sum(axis=0)), _rank(-shares.min(axis=0))
    return _rank(-np.minimum(fisher, least).astype(np.float64))


def _rank(values: NDArray[np.float64]) -> Ranks:
    """Number of values at least as large as each, itself included."""
    ordered = np.sort(values)
    ranks: Ranks = len(values) - np.searchsorted(ordered, values - 1e-9 * np.abs(values))
    return ranks


def surely(records: Sequence[Record]) -> list[Record]:
    """The attacks with a primary figure or guesswork beyond chance at .001.

    Two figures an attack, corrected for all of them (Bonferroni).
    """

    def least(record: Record) -> float:
        found = primary(record)
        figures = [record.scores.get("guesswork"), None if found is None else found[1]]
        known = [figure.chance_does_as_well for figure in figures if figure is not None]
        return min((p for p in known if p is not None), default=1.0)

    return [record for record in records if least(record) * 2 * len(records) < RARE]


def singly(record: Record, attacks: int) -> bool:
    """True if one attack of so many shows a leak alone."""
    found = primary(record)
    p = None if found is None else found[1].chance_does_as_well
    return p is not None and p * attacks < UNLIKELY


def idle(record: Record, metric: str = "") -> str:
    """The reason why an attack supports no bound; empty if it does.

    Args:
        record: The attack's.
        metric: Of its primary figure; empty stands for ReID AUC.
    """
    name = short(record.evaluator)
    if undrawn(record):
        return f"{name} takes a folder's word for who is a member, and no draw"
    if (metric not in record.scores) if metric else (primary(record) is None):
        return f"{name} has no {metric or BY_IMAGE}"
    try:
        curves = curves_of(record.details)
    except ValueError:
        return f"{name} has a malformed learning curve"
    if curves is None:
        # Records of earlier versions hold no curve; those of trained attacks hold a held-out figure.
        learned = any("held-out" in detail for detail in record.details)
        learned = learned or (record.attack is not None and _learns(record.attack.name))
        return f"{name} does not say if it converged" if learned else ""
    if not all(curve.converged for curve in curves):
        return f"{name} did not converge"
    figure = record.scores[metric] if metric else cast("tuple[str, ScoreRecord]", primary(record))[1]
    several = len({match.group() for curve in curves if (match := TRAINING.search(curve.part))}) > 1
    unsaid = several and figure.replicates is not None and not figure.replicates.trainings
    return f"{name} does not say which training attacked each key" if unsaid else ""


def undrawn(record: Record) -> bool:
    """True if a folder, and no draw, says who is a member."""
    return UNDRAWN in record.details


def shown_curves(record: Record) -> tuple[LearningCurve, ...]:
    """The learning curves of a record; none if it holds none readable."""
    try:
        return curves_of(record.details) or ()
    except ValueError:
        return ()


@cache
def _learns(attack: str) -> bool:
    """True unless the installed attack of that name trains nothing."""
    try:
        return bool(registry.load("attacks", attack).learns)  # type: ignore[attr-defined]
    except UsageError:
        return True


@dataclass(frozen=True)
class Bound:
    """95 % upper limits that the attacks of a panel support.

    Args:
        metric: The primary figure's name; `by` its level in words.
        area: The largest upper limit of it over the attacks.
        first: The largest upper limit of the share of released rows whose person Eve names first; None without one.
        attacks: How many support it.
        keys: Fewest keys of one of them.
        profile: Eve's, by name.
        apart: Attacks of the core list that do not apply to the release.
    """

    metric: str
    by: Literal["image", "person"]
    area: float
    first: float | None
    attacks: int
    keys: int
    profile: str
    apart: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The bound in two or three words, such as ".58"."""
        return upward(self.area)

    @property
    def sentence(self) -> str:
        """The bound with its makers."""
        first = "" if self.first is None else f"; they name at most {_percent(self.first)} % of people first (95 %)"
        makers = f"{self.attacks} attacks that converged" if self.attacks > 1 else "one attack that converged"
        keys = f"{self.keys} key{'s' * (self.keys > 1)}"
        apart = f"; without {', '.join(self.apart)}, which cannot read this release" if self.apart else ""
        by = f"{makers}, profile {self.profile}, {keys}"
        return f"ReID AUC by {self.by} at most {self.text} (95 %) by {by}{first}{apart}"


def bound(certified: Sequence[Record], attacks: Sequence[Record]) -> Bound | str:
    """The bound of a panel, or why there is none.

    Args:
        certified: Records of attacks whose controls hold.
        attacks: Records of all attacks on pairs.
    """
    counting = [record for record in certified if not idle(record) and not random(record)]
    if why := incomplete(counting, certified, attacks, _needed(attacks)):
        return why
    limits = [_limits(record) for record in counting]
    known = [(record, *found) for record, found in zip(counting, limits, strict=True) if found is not None]
    if len(known) < len(counting):
        names = ", ".join(short(one.evaluator) for one, found in zip(counting, limits, strict=True) if found is None)
        return f"no upper limit could be given for {names}"
    if not known:
        return "no attack of the core list applies"
    name = next(found[0] for record in counting if (found := primary(record)) is not None)
    firsts = [first for _, _, first in known if first is not None]
    return Bound(
        name, "person" if name == BY_PERSON else "image", max(area for _, area, _ in known),
        max(firsts) if len(firsts) == len(known) else None, len(known), min(record.keys for record, _, _ in known),
        str(profile(counting[0])), tuple(name for name in _needed(attacks) if idles(attacks, name)),
    )  # fmt: skip


def random(record: Record) -> bool:
    """True if the attack gives random scores, for comparison."""
    return record.attack is not None and record.attack.name == FLOOR


def _needed(attacks: Sequence[Record]) -> tuple[str, ...]:
    """The core list under the profile of these attacks."""
    return (*CORE, *KNOWING) if any(profile(record).knows for record in attacks) else CORE


def incomplete(
    counting: Collection[Record], certified: Collection[Record], attacks: Sequence[Record], needed: Sequence[str],
    metric: str = "",
) -> str:  # fmt: skip
    """Core attacks that support no bound, and why; empty if none.

    Args:
        counting: Records that support one.
        certified: Records of attacks whose controls hold.
        attacks: All of the panel.
        needed: The core list.
        metric: As for `idle`.
    """
    gaps = []
    for name in needed:
        mine = _of(name, attacks)
        if _of(name, counting) or (idles(attacks, name) and name not in APPLYING):
            continue
        sound = [record for record in mine if record in certified]
        if not mine:
            gaps.append(f"{name} did not run")
        elif sound:
            gaps.append(idle(sound[0], metric))
        else:
            ended = mine[0].status
            gaps.append(f"{name} is not certified" if ended == "ok" else f"{name} {ended.replace('-', ' ')}")
    return f"a bound needs the {len(needed)} attacks of the core list: {'; '.join(gaps)}" if gaps else ""


def idles(attacks: Sequence[Record], name: str) -> bool:
    """True if the core attack ran and does not apply."""
    mine = _of(name, attacks)
    return bool(mine) and all(record.status == "not-applicable" for record in mine)


def _of(name: str, records: Collection[Record]) -> list[Record]:
    """The records of a core attack with the preset's own sizes.

    A variant could stop early and claim a plateau, and `short` takes an attack `membership-NAME` for NAME.
    """
    return [
        record
        for record in records
        if short(record.evaluator) == name and record.attack is not None and record.attack.name == name
    ]


def _limits(record: Record) -> tuple[float, float | None] | None:
    """Upper limits of the primary figure and of first guesses."""
    found, first = primary(record), record.scores.get(FIRST)
    area = None if found is None else _limit(record, found[1], answers=None)
    if area is None:
        return None
    return area, None if first is None else _limit(record, first, answers=first.n * max(1, record.keys))


def _limit(record: Record, score: ScoreRecord, answers: int | None) -> float | None:
    """One-sided 95 % limit, or the interval's if without resamples."""
    if score.replicates is None or record.dataset is None:
        return score.high
    data = record.dataset
    people = data.of_candidates(data.subjects) or data.of_candidates(data.rows) or score.n
    return upper_limit(score.replicates.read(), people=people, answers=answers)


def power(records: Sequence[Record]) -> float | None:
    """The ReID AUC that one attack would have shown with probability `POWER`.

    From the widest null spread among them, at 5 % corrected for all of them: .5 + (z(1 - .05 / attacks) + z(.8)) x
    spread. None if no record holds a spread.
    """
    spreads = [spread for record in records if (spread := _spread(record)) is not None]
    if not spreads:
        return None
    z = NormalDist().inv_cdf
    return min(1.0, 0.5 + (z(1 - UNLIKELY / len(spreads)) + z(POWER)) * max(spreads))


def _spread(record: Record) -> float | None:
    """Standard deviation of the primary figure by chance.

    Older records hold the interval of chance of independent scores in its place.
    """
    found = primary(record)
    if found is None:
        return None
    score = found[1]
    if score.exchanges is not None:
        return score.exchanges.spread
    if score.null_low is None or score.null_high is None:
        return None
    return (score.null_high - score.null_low) / (2 * NormalDist().inv_cdf(0.975))


def upward(value: float, digits: int = 2) -> str:
    """A limit rounded up, without the zero before the point.

    >>> upward(0.5712), upward(0.58), upward(0.9999)
    ('.58', '.58', '1.00')
    """
    rounded = math.ceil(value * 10**digits - 1e-9) / 10**digits
    return number(rounded, digits).removeprefix("0") if rounded < 1 else number(1.0, digits)


def _percent(share: float) -> str:
    """A share in percent, rounded up.

    >>> _percent(0.00412), _percent(0.2)
    ('0.5', '20')
    """
    percent = 100 * share
    return number(math.ceil(percent * 10 - 1e-9) / 10, 1) if percent < 10 else number(math.ceil(percent - 1e-9), 0)
