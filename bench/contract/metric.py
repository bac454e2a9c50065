"""Metrics: evidence of one kind in, a figure and its uncertainty out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar, get_args, get_origin

from bench.contract.replicates import Exchanges, Replicates

E = TypeVar("E", contravariant=True)
MOST_DIGITS = 9
SIMILARITY = "Similarity (says nothing of privacy by itself)"
"""The group of figures without a direction: neither more nor less is better for the data owner."""
FIDELITY = "Fidelity (says nothing of privacy by itself)"
"""The group of figures that say how much released images look like raw ones."""
GROUPS = (
    "Utility",
    "Privacy by image: weakest figure over the attacks that count",
    "Privacy by patient: weakest figure",
    "Membership: weakest figure over the attacks that count",
    "Other attack figures: weakest",
    "Released set",
    SIMILARITY,
    FIDELITY,
    "Honesty",
    "Cost",
    "Formal privacy",
)
"""The headers above the columns of the board, from left to right. A metric may name another: it stands after these."""


@dataclass(frozen=True)
class Score:
    """One figure with its uncertainty.

    Args:
        value: The figure.
        low, high: 95 % confidence interval of what `value` estimates, over people and keys; None where none can be
            given.
        n: How many rows (or grid rows, or repeats) stand behind it.
        null: What chance gives, where known; null_low and null_high its 95 % interval.
        p: Probability that chance does as well for the attacker (one `side`), or gives a figure at least so far from
            it (two sides); None where unknown.
        parts: The figure per finding, class or level, where there are several.
        note: How the interval came about, or why there is none.
        prediction_low, prediction_high: Where the figure under one further key would fall, 95 % of the time; None where
            fewer than two keys were looked at.
        replicates: The figure by key and on resamples of the people, to compare it with others; None where there are
            none.
        sides: Of `p`.
        exchanges: The figure among those of exchanged people, of an attack's primary figure; None for others.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    null: float | None = None
    null_low: float | None = None
    null_high: float | None = None
    p: float | None = None
    parts: Mapping[str, Score] = field(default_factory=dict)
    note: str = ""
    prediction_low: float | None = None
    prediction_high: float | None = None
    replicates: Replicates | None = None
    sides: Literal[1, 2] = 2
    exchanges: Exchanges | None = None


@dataclass(frozen=True)
class Column:
    """A metric's column on the board, in the terminal, in records.

    Args:
        title: What stands in the header: two or three words.
        meaning: What the figure measures, in a sentence for a stranger.
        group: The header above it: one of `GROUPS`, or a name of your own.
        digits: Decimals to print; None for figures of any size, which get about three significant digits.
        chance: The end of the sentence "Chance gives ..."; empty where chance gives nothing.
        order: Its place within the group: lower comes first, equals by the metric's name.

    Raises:
        ValueError: A text that would leave a table or a sentence incomplete.

    >>> Column("Hit rate", "", "Utility")
    Traceback (most recent call last):
        ...
    ValueError: the column 'Hit rate' needs a meaning: a sentence that ends with a full stop, got ''
    """

    title: str
    meaning: str
    group: str
    digits: int | None = None
    chance: str = ""
    order: int = 50

    def __post_init__(self) -> None:
        for name in ("title", "group"):
            if not getattr(self, name).strip():
                raise ValueError(f"a column's {name} must not be empty")
        named = f"the column {self.title!r}"
        if not self.meaning.endswith("."):
            raise ValueError(f"{named} needs a meaning: a sentence that ends with a full stop, got {self.meaning!r}")
        if self.chance.endswith("."):
            raise ValueError(f"{named}: chance ends the sentence 'Chance gives ...', so no full stop: {self.chance!r}")
        if self.digits is not None and not 0 <= self.digits <= MOST_DIGITS:
            raise ValueError(f"{named}: digits must be 0 to {MOST_DIGITS}, or None, got {self.digits}")


class Metric(ABC, Generic[E]):
    """A metric of one kind of evidence; `better` is the owner's direction.

    Of the group `SIMILARITY` it is only the direction of less similarity, and of `FIDELITY` that of images more like
    raw ones; tables print none.

    `column` says how tables show it; records carry that on, so that pages need no metric installed.
    `on_request` metrics, which cost much, are computed only where they are named; those that are `for_features` also
    where rows are scored in a feature space.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    better: ClassVar[Literal["higher", "lower"]]
    source: ClassVar[str]
    column: ClassVar[Column]
    on_request: ClassVar[bool] = False
    for_features: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, evidence: E) -> Score:
        """The figure. Raises NotApplicable where the evidence cannot bear it."""


def evidence_type(metric: type) -> type:
    """The kind of evidence that a metric class takes.

    It is the argument of its `Metric[...]` base.

    Raises:
        TypeError: The class does not say.
    """
    for base in getattr(metric, "__orig_bases__", ()):
        if get_origin(base) is Metric:
            found = get_args(base)[0]
            if isinstance(found, type):
                return found
    raise TypeError(f"{metric.__name__} must derive from Metric[...] with the kind of evidence it takes")


def column_of(metric: type) -> Column:
    """The column that a metric class carries.

    Raises:
        TypeError: It carries none; the text shows how.
    """
    found = getattr(metric, "column", None)
    if not isinstance(found, Column):
        raise TypeError(
            f"{metric.__name__} carries no column, so no table could show it: add `column: ClassVar[Column] = "
            'Column(title="...", meaning="A sentence.", group="Utility")`, Column from bench.types'
            + ("" if found is None else f"; got {found!r}")
        )
    return found
