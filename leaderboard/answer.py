"""Methods that keep the findings and hide the patient, in a sentence.

A row keeps the findings if its utility is surely above chance, and keeps `KEPT` of what raw images gain over chance by
the same metric; without a figure of raw images none does. It hides the patient if no attack of a complete panel did
better than chance, and the verdict's bound is at most `HIDDEN`.
Every sentence is made from rows; no data set and no method is named here, but for what an image shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from leaderboard.board import THROUGHPUT, USEFUL, UTILITY, epsilon_text
from leaderboard.bounds import upward
from leaderboard.entries import Column, interval, number
from leaderboard.names import shortened
from leaderboard.plots import MEMBERS, Plane, standing_by
from leaderboard.row_schema import GOOD, BoardRow, Figure

KEPT = 0.8
"""The share of raw images' gain over chance in utility that counts as keeping the findings."""
HIDDEN = 0.6
"""The largest bound on the attacks' AUC that counts as hiding the patient; chance is .5."""
ACROSS = ("reid-auc", MEMBERS)
LONGEST = 60
"""Letters of the parameters that a sentence names."""
NAMED = 3
"""Rows that a sentence names."""
MOST_DIGITS = 9
"""Digits of two figures that are not the same."""
NO_IMAGES = "a trained model, no images"
VERBS = {
    "broken": "is broken", "leaks": "leaks", "membership leaks": "leaks who was in the private data",
}  # fmt: skip
"""Verdicts as verbs, as far as they say what attacks found."""
OTHERWISE = ("attribute-advantage", "reconstruction-ssim")
"""Figures of attacks that match no pairs and find no members."""
MOST_LINES = 15
"""Rows of a data set on the front page."""
Subject = Literal["chest X-rays of patients", "simulated chest X-rays", "other data"]
RADIOGRAPHS: Mapping[str, Subject] = {
    **dict.fromkeys(
        ("chexpert", "kermany-cxr", "mimic", "nih", "padchest", "rsna", "vindr-cxr", "medmnist:chestmnist",
         "medmnist:pneumoniamnist", "medimeta:cxr", "medimeta:pneumonia"),
        "chest X-rays of patients",
    ),
    **dict.fromkeys(("synth-cxr", "synth-mimic", "synth-nih"), "simulated chest X-rays"),
}  # fmt: skip
"""Loaders, or their collections, by what their images show. It stands here because prepared data sets are known by the
code of their loader: a word more there would have everyone prepare them again."""
_SOURCE = re.compile(r"(?P<loader>[\w-]+)(:[\w-]+)?")
FEATURES = " as "
"""Stands between the name of a data set and of the extractor that made rows of numbers of it."""


def subject(dataset: str) -> Subject:
    """The images of a data set, by its name in records.

    >>> subject("nih under other-study"), subject("medmnist:pneumoniamnist@28"), subject("digits")
    ('chest X-rays of patients', 'chest X-rays of patients', 'other data')
    """
    found = _SOURCE.match(dataset)
    if found is None:
        return "other data"
    return RADIOGRAPHS.get(found.group(), RADIOGRAPHS.get(found["loader"], "other data"))


@dataclass(frozen=True)
class Part:
    """A piece of a sentence, with the row that it leads to."""

    text: str
    row: BoardRow | None = None


@dataclass(frozen=True)
class Answer:
    """The answer for one data set, preset and seed.

    Args:
        parts: Of the sentences, in order.
        qualifying: The rows that keep the findings and hide the patient, most useful first.
        nearest: The rows that come nearest where none does.
        metric: The metric of utility that most rows have.
        least: The least of it that counts as keeping the findings; None if raw images have none.
        raw: That of raw images; None if unknown.
        has_utility: False if utility cannot be told from chance here, or was not measured.
        attacked: False if no method was attacked here.
    """

    parts: tuple[Part, ...]
    qualifying: tuple[BoardRow, ...] = ()
    nearest: tuple[BoardRow, ...] = ()
    metric: str = USEFUL[0]
    least: float | None = None
    raw: float | None = None
    has_utility: bool = True
    attacked: bool = True

    @property
    def text(self) -> str:
        """The sentences without links."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True)
class View:
    """A data set on the front page, at one preset and seed.

    Those with most rows.

    Args:
        rows: All of that preset and seed, in the order of the board, reference methods among them.
        lines: The rows of the table, qualifying ones first.
    """

    subject: Subject
    section: str
    name: str
    preset: str
    seed: int
    rows: tuple[BoardRow, ...]
    lines: tuple[BoardRow, ...]
    answer: Answer

    @property
    def gpu(self) -> dict[str, tuple[Figure, str]]:
        """Images a second on an accelerator, by the method of a line."""
        methods = {line.method for line in self.lines}
        return on_gpu(row for row in self.rows if row.method in methods)

    @property
    def leak(self) -> str:
        """The metric of Eve that most of its rows have."""
        return max(ACROSS, key=lambda name: sum(name in row.figures and row.figures[name].value is not None
                                                for row in tried(self.rows)))  # fmt: skip

    @property
    def plane(self) -> Plane:
        """Utility against the upper end of the leak."""
        goal = None if self.answer.least is None else (HIDDEN, self.answer.least)
        return Plane(self.leak, self.answer.metric, upper=True, instead=self.instead, goal=goal)

    @property
    def instead(self) -> str:
        """Metric of Eve for rows that the other does not fit."""
        (name,) = set(ACROSS) - {self.leak}
        return name

    def by(self, row: BoardRow) -> str:
        """The metric of Eve by which a row of the table stands."""
        return standing_by(row, self.leak, self.instead)

    @property
    def more(self) -> int:
        """Number of rows that the table leaves out."""
        return len(list(tried(self.rows))) - len(self.lines)


def views(rows: Iterable[BoardRow], named: Mapping[str, Column]) -> list[View]:
    """Every data set, the leading one first.

    X-rays of patients come before simulated ones, and these before other data; among them sets with a utility before
    those without, and images before features of them. Of these, sets that fill the table come first, led by the one
    whose findings are hardest to learn from raw images, for what is easy to learn says least; then sets with more rows.
    Where no method was attacked, a set comes last.
    """
    sections: dict[str, dict[tuple[str, int], list[BoardRow]]] = {}
    for row in rows:
        sections.setdefault(row.section, {}).setdefault((row.preset, row.seed), []).append(row)
    found = []
    for runs in sections.values():
        # The most rows; of as many, the first preset and seed by name.
        key = min(runs, key=lambda run: (-len(list(tried(runs[run]))), run))
        found.append(_view(runs[key], named))
    order = get_args(Subject)

    def place(view: View) -> tuple[bool, int, bool, bool, bool, float, int, str]:
        rows, raw = len(list(tried(view.rows))), view.answer.raw
        full = rows >= MOST_LINES
        return (
            not view.answer.attacked, order.index(view.subject), not view.answer.has_utility, FEATURES in view.name,
            not full, (1.0 if raw is None else raw) if full else 0.0, -rows, view.section,
        )  # fmt: skip

    return sorted(found, key=place)


def _view(rows: Sequence[BoardRow], named: Mapping[str, Column]) -> View:
    first, found = rows[0], answer(rows, named)
    chosen = [*found.qualifying, *found.nearest]
    rest = sorted((row for row in tried(rows) if row not in chosen), key=_order)
    lines = tuple([*chosen, *rest][:MOST_LINES])
    return View(
        subject(first.dataset), first.section, first.data_name, first.preset, first.seed, tuple(rows), lines, found
    )


def _order(row: BoardRow) -> tuple[int, float, float, str]:
    """Sorting key: the better verdict, then the more useful."""
    return row.place, -(useful(row) or 0.0), row.leak or 1.0, row.id


def on_gpu(rows: Iterable[BoardRow]) -> dict[str, tuple[Figure, str]]:
    """Released images a second on an accelerator with its name, by method.

    Rates that only their author measured do not count. A method's runs on other devices are rows of their own; the
    fastest of several accelerators counts.
    """
    found: dict[str, tuple[Figure, str]] = {}
    for row in rows:
        figure = row.figures.get(THROUGHPUT)
        if row.device == "cpu" or not row.trusted or figure is None or figure.value is None:
            continue
        if row.method not in found or (found[row.method][0].value or 0.0) < figure.value:
            found[row.method] = figure, row.throughput_machine
    return found


def tried(rows: Iterable[BoardRow]) -> Iterator[BoardRow]:
    """The rows of methods that attacks apply to, without references."""
    return (
        row for row in rows if not row.reference and row.applies and row.verdict not in ("does not apply", "no attack")
    )


def useful(row: BoardRow) -> float | None:
    """The utility of a row if it has one."""
    figure = _utility(row)
    return None if figure is None else figure.value


def _utility(row: BoardRow) -> Figure | None:
    figure = row.figures.get(row.utility)
    return None if figure is None or figure.value is None else figure


def hides(row: BoardRow) -> bool:
    """True if a complete panel has a bound of at most `HIDDEN`."""
    return row.trusted and row.complete and row.verdict in GOOD and row.bound is not None and row.bound <= HIDDEN


Raw = Mapping[str, Figure]
"""The utility of raw images, by metric."""


def _raw(rows: Iterable[BoardRow]) -> Raw:
    found: dict[str, Figure] = {}
    for row in rows:
        for name in USEFUL if row.reference == "hides nothing" else ():
            if (figure := row.figures.get(name)) is not None and figure.value is not None:
                found.setdefault(name, figure)
    return found


def _least(metric: str, raw: Raw) -> float | None:
    """The least utility that counts as keeping the findings."""
    figure = raw.get(metric)
    if figure is None or figure.value is None or figure.null is None:
        return None
    return figure.null + KEPT * (figure.value - figure.null)


def keeps(row: BoardRow, raw: Raw) -> bool:
    """True if utility is surely above chance, and enough of raw images'."""
    figure, least = _utility(row), _least(row.utility, raw)
    if figure is None or figure.value is None or figure.null is None or figure.low is None or row.looked_up:
        return False
    return figure.low > figure.null and least is not None and figure.value >= least


def answer(rows: Sequence[BoardRow], named: Mapping[str, Column]) -> Answer:
    """The answer that rows of one data set, preset and seed give.

    Args:
        rows: With the reference methods, whose raw images say what could be kept.
        named: The metrics by name.
    """
    on = rows[0].data_name
    mine = [row for row in tried(rows) if row.trusted]
    judged = [row for row in mine if row.leak is not None and not row.unrated]
    raw = _raw(rows)
    has_utility = any(useful(row) is not None for row in rows)
    if not mine:
        asked = any(name in row.figures and row.figures[name].value is not None for row in rows for name in OTHERWISE)
        told = (
            f"On {on} no attack looks for pairs or members. What Eve reads and rebuilds stands on the pages of rows."
            if asked
            else f"No method has been attacked on {on} yet."
        )
        return Answer((Part(told),), has_utility=has_utility, attacked=False)
    words = _Words(named, raw)
    if not has_utility:
        return Answer(
            tuple(_without_utility(on, mine, judged, rows, words)), nearest=_least_leaking(judged), has_utility=False
        )
    metric = max(USEFUL, key=lambda name: sum(row.utility == name and useful(row) is not None for row in mine))
    least, known = _least(metric, raw), raw[metric].value if metric in raw else None
    winners = sorted((row for row in judged if hides(row) and keeps(row, raw)), key=lambda row: -(useful(row) or 0))
    if winners:
        parts = tuple(_won(on, mine, winners, words))
        return Answer(parts, qualifying=tuple(winners), metric=metric, least=least, raw=known)
    near = _nearest(judged, raw)
    parts = tuple(_lost(on, mine, near, words))
    return Answer(parts, nearest=tuple(row for row, _ in near), metric=metric, least=least, raw=known)


def _nearest(judged: Sequence[BoardRow], raw: Raw) -> list[tuple[BoardRow, bool]]:
    """The least leaking row that keeps, and the best that hides.

    With each, whether it keeps the findings.
    """
    keeping = [row for row in judged if keeps(row, raw)]
    hiding = [row for row in judged if hides(row)]
    found = [(row, True) for row in _least_leaking(keeping)]
    if hiding:
        found.append((max(hiding, key=lambda row: (useful(row) or 0.0, row.id)), False))
    else:
        found += [(row, False) for row in _least_leaking(judged) if all(row is not other for other, _ in found)]
    return found


def _least_leaking(judged: Sequence[BoardRow]) -> tuple[BoardRow, ...]:
    """The row whose leak ends lowest, if there is any."""
    return tuple(sorted(judged, key=lambda row: (row.leak or 1.0, -(useful(row) or 0.0), row.id))[:1])


@dataclass(frozen=True)
class _Words:
    """Phrases on rows.

    Args:
        named: The metrics by name.
        raw: The utility of raw images.
    """

    named: Mapping[str, Column]
    raw: Raw

    def name(self, row: BoardRow) -> Iterator[Part]:
        yield Part(row.plugin, row)
        details = [shortened(row.variant, LONGEST)] * bool(row.variant) + [NO_IMAGES] * (row.kind == "a trained model")
        if details:
            yield Part(f" ({'; '.join(details)})")

    def utility(self, row: BoardRow) -> str:
        figure = _utility(row)
        if figure is None or figure.value is None:
            return "utility was not measured"
        least, digits = _least(row.utility, self.raw), self.named[row.utility].digits
        text = f"utility {number(figure.value, digits)}"
        if figure.null is None:
            return f"{text} has no figure of chance beside it"
        if figure.low is None or figure.low <= figure.null:
            return f"{text} is not surely above chance"
        if least is None:
            return f"{text} has no figure of raw images beside it"
        if figure.value < least:
            more = next((more for more in range(digits or 0, MOST_DIGITS)
                         if number(figure.value, more) != number(least, more)), MOST_DIGITS)  # fmt: skip
            return f"utility {number(figure.value, more)} is below the {number(least, more)} that counts as kept"
        if row.looked_up:
            return f"{text} may come from test images that the method carries"
        return f"{text}, 95\u00a0% {interval(figure.low, figure.high, digits)}"

    def kept(self, row: BoardRow) -> str:
        """The utility beside what it is compared with."""
        beside = self.beside(row, raw=True)
        return self.utility(row) + (f"; {beside}" if beside else "")

    def ceiling(self, row: BoardRow) -> str:
        """The bound that hides the patient."""
        return f"AUC of the attacks{' on members' * row.of_members} at most {upward(row.bound or 1.0)}"

    def claim(self, row: BoardRow) -> str:
        """The derived ε for an image, unless its audit refutes it."""
        if row.claim_kind == "violated":
            return ", its claim refuted by its audit"
        return (
            f", derived ε {epsilon_text(row.derived)} per image"
            if row.claim_kind == "finite ε" and row.per == "image"
            else ""
        )

    def beside(self, row: BoardRow, raw: bool) -> str:
        """The utility of public data alone, and perhaps of raw images."""
        figure = self.raw.get(row.utility)
        public = row.public_model if row.utility == UTILITY else None
        figures = {"raw images": None if figure is None or not raw else figure.value, "public data alone": public}
        digits = self.named[row.utility].digits
        return ", ".join(f"{what} {number(value, digits)}" for what, value in figures.items() if value is not None)

    def leak(self, row: BoardRow) -> str:
        """The reason why a row does not hide the patient."""
        if row.verdict not in GOOD:
            verb = VERBS.get(row.verdict)
            return f"{verb or f'has no bound ({row.verdict})'}: {self.reach(row)}"
        return f"has a bound of {upward(row.bound or 1.0)} only" + " by an incomplete panel" * (not row.complete)

    def reach(self, row: BoardRow) -> str:
        """The upper end of its attacks' figures."""
        on = " on members" * (row.verdict == "membership leaks")
        return f"AUC of the attacks{on} up to {number(row.leak or 1.0, 3)}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _methods(rows: Iterable[BoardRow]) -> int:
    return len({row.plugin for row in rows})


def _firsts(rows: Sequence[BoardRow]) -> list[BoardRow]:
    """The first row of each method."""
    return [row for place, row in enumerate(rows) if row.plugin not in {one.plugin for one in rows[:place]}]


def _won(on: str, mine: Sequence[BoardRow], winners: Sequence[BoardRow], words: _Words) -> Iterator[Part]:
    named = _firsts(winners)
    utilities = []
    for place, row in enumerate(named[:NAMED]):
        beside = words.beside(row, raw=place == 0)
        utilities.append(f"{words.utility(row)}{f' ({beside})' if beside else ''}, ")
    verb = "keeps the findings and hides" if len(named) == 1 else "keep the findings and hide"
    yield from _hiding(f" on {on}", mine, named, verb, utilities, words)


def _hiding(
    where: str, mine: Sequence[BoardRow], named: Sequence[BoardRow], verb: str, utilities: Sequence[str], words: _Words
) -> Iterator[Part]:
    """Methods that hide, with `utilities` before their bounds."""
    count, of = len(named), _methods(mine)
    who = f"The only method tried{where}" if of == 1 else f"{count} of {of} methods tried{where}"
    what = {True: "who is in the data, on average,", False: "the patient"}
    whom = " or ".join(what[members] for members in sorted({row.of_members for row in named}))
    yield Part(f"{who} {verb} {whom} from the attacks that ran: ")
    for place, (row, text) in enumerate(zip(named, utilities, strict=False)):
        yield Part("; " * bool(place))
        yield from words.name(row)
        yield Part(f", {text}{words.ceiling(row)}{words.claim(row)}")
    yield Part(f"; and {count - len(utilities)} more" * (count > len(utilities)))
    yield Part(". A stronger attack may still find more.")


def _lost(on: str, mine: Sequence[BoardRow], near: Sequence[tuple[BoardRow, bool]], words: _Words) -> Iterator[Part]:
    of, many = _methods(mine), len(mine)
    if of > 1:
        tries = f"{_counted(of, 'method')}, {_counted(many, 'row')}"
        yield Part(f"No method tried on {on} keeps the findings and hides the patient ({tries}).")
    else:
        yield Part(f"The only method tried on {on} does not both keep the findings and hide the patient.")
    if not near:
        yield Part(" No attack gave a figure that is rated.")
        return
    yield Part(" Nearest: " if many > 1 else " ")
    for place, (row, kept) in enumerate(near):
        yield Part("; " * bool(place))
        yield from words.name(row)
        if kept:
            yield Part(f" keeps the findings ({words.kept(row)}), but {words.leak(row)}")
        elif hides(row):
            what = "hides on average who is in the data" if row.of_members else "hides the patient"
            yield Part(f" {what} ({words.ceiling(row)}), but its {words.utility(row)}")
        else:
            leak = words.leak(row)
            if many > 1 and row.verdict in ("broken", "leaks"):
                leak = f"leaks least ({words.reach(row)})" + " but is broken" * (row.verdict == "broken")
            yield Part(f" {leak}, and its {words.utility(row)}")
    yield Part(".")


def _without_utility(
    on: str, mine: Sequence[BoardRow], judged: Sequence[BoardRow], rows: Sequence[BoardRow], words: _Words
) -> Iterator[Part]:
    """The sentences for data on which no row has a utility."""
    powerless = any(figure.status == "no-power" for row in rows for figure in row.figures.values())
    yield Part(
        f"On {on} raw images cannot be told from chance at this size, so that no method has a utility. "
        if powerless else f"Utility was not measured on {on}. "
    )  # fmt: skip
    hiding = _firsts(sorted((row for row in judged if hides(row)), key=lambda row: (row.bound or 1.0, row.id)))
    if hiding:
        what = "hides" if len(hiding) == 1 else "hide"
        yield from _hiding("", mine, hiding, what, [""] * len(hiding[:NAMED]), words)
        return
    yield Part(
        f"No method tried hides the patient ({_counted(_methods(mine), 'method')}, {_counted(len(mine), 'row')})"
    )
    for row in _least_leaking(judged):
        yield Part("; nearest: ")
        yield from words.name(row)
        yield Part(f" {words.leak(row)}")
    yield Part(".")
