"""A metric: evidence of one kind in, a figure with its uncertainty out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar, get_args, get_origin

E = TypeVar("E", contravariant=True)


@dataclass(frozen=True)
class Score:
    """One figure with its uncertainty.

    Args:
        value: The figure.
        low, high: 95 % interval; None where none can be given.
        n: How many rows (or grid rows, or repeats) stand behind it.
        null: What chance gives, where known; null_low and null_high its 95 % interval.
        p: Probability under chance of a figure at least so far from it (two-sided); None where unknown.
        parts: The figure per finding, class or level, where there are several.
        note: How the interval came about, or why there is none.
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


class Metric(ABC, Generic[E]):
    """Turns evidence of one kind into a Score. `better` says which direction the data owner wants.

    `on_request` metrics, which cost much, are computed only where they are named; those that are `for_features` also
    where rows are scored in a feature space.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    better: ClassVar[Literal["higher", "lower"]]
    source: ClassVar[str]
    on_request: ClassVar[bool] = False
    for_features: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, evidence: E) -> Score:
        """The figure. Raises NotApplicable where the evidence cannot bear it."""


def evidence_type(metric: type) -> type:
    """The kind of evidence that a metric class takes: the argument of its `Metric[...]` base.

    Raises:
        TypeError: The class does not say.
    """
    for base in getattr(metric, "__orig_bases__", ()):
        if get_origin(base) is Metric:
            found = get_args(base)[0]
            if isinstance(found, type):
                return found
    raise TypeError(f"{metric.__name__} must derive from Metric[...] with the kind of evidence it takes")
