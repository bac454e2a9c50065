"""One scale for unlike threats: gains over a guess without the release.

A figure f, the best guess g without the release, and the perfect figure p give (f - g) / (p - g): 0 for what anyone
could have guessed, 1 for certainty. Areas under a ROC curve have g = .5 and p = 1; that is twice the area less 1, the
advantage by ranks (Yeom et al. 2018, "Privacy risk in machine learning"). Likeness of images has the mean image as g.
Kulynych et al. 2026 (arXiv 2606.08372) put reconstruction and membership on one scale in this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.plugins.profile_spec import profile_of
from bench.results.records import ScoreRecord
from leaderboard.board import Row
from leaderboard.entries import Entry
from leaderboard.sections import at_pixels, base_name, told_apart

USUAL = profile_of(None).name
SSIM_OF_GUESS = "SSIM of the mean image"


@dataclass(frozen=True)
class Threat:
    """A threat, by the figures that measure it.

    Args:
        name: In words.
        metrics: The first that a row has counts.
        eve: Name of the profile of Eve under which they count; empty for any.
    """

    name: str
    metrics: tuple[str, ...]
    eve: str = ""


THREATS = (
    Threat("identity, from the released image", ("reid-auc",), USUAL),
    Threat("identity, from another image", ("patient-reid-auc", "reid-auc"), "other-study"),
    Threat("membership", ("membership-auc",)),
    Threat("attributes", ("attribute-advantage",)),
    Threat("reconstruction", ("reconstruction-ssim",)),
)


@dataclass(frozen=True)
class Bar:
    """The gain by one threat.

    Args:
        threat: In words.
        value: From 0 (a guess) to 1 (certainty), below 0 if the attack did worse than a guess. None without a figure.
        low, high: 95 % interval; None without one.
        by: The evaluator that gave the figure; empty without one.
        reason: Why there is no figure, or why it does not count; empty if it counts.
    """

    threat: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    by: str = ""
    reason: str = "not measured"


@dataclass(frozen=True)
class Scale:
    """The bars of one method on one data set.

    Args:
        method: As the command line takes it.
        dataset: Without the profile of Eve; with the size of its images if there are several.
        preset: Of all bars.
        seed: Of all bars.
        bars: One a threat, in order.
    """

    method: str
    dataset: str
    preset: str
    seed: int
    bars: tuple[Bar, ...]

    @property
    def measured(self) -> int:
        """Number of bars with a figure."""
        return sum(bar.value is not None for bar in self.bars)


def scales(rows: Sequence[Row]) -> list[Scale]:
    """A scale for each row with two figures, over profiles of Eve."""
    sizes = [None if row.data is None else at_pixels(row.data) for row in rows]
    names = told_apart([base_name(row) for row in rows], sizes)
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row, name in zip(rows, names, strict=True):
        groups.setdefault((row.label, name, row.preset, row.seed), []).append(row)
    found = [Scale(*key, tuple(_bar(threat, group) for threat in THREATS)) for key, group in groups.items()]
    return [scale for scale in found if scale.measured > 1]


def _bar(threat: Threat, rows: Sequence[Row]) -> Bar:
    reasons = []
    for row in sorted(rows, key=lambda row: _eve(row) != USUAL):  # the usual Eve first, where any counts
        if threat.eve and _eve(row) != threat.eve:
            continue
        for entry in _entries(threat, row):
            if entry.score is not None:
                return _drawn(threat, entry, entry.score)
            reasons += [gap.reason for gap in entry.gaps if gap.reason]
    return Bar(threat.name, reason=reasons[0] if reasons else "not measured")


def _eve(row: Row) -> str:
    """The name of the row's profile of Eve."""
    return profile_of(row.choice.get("eve")).name


def _entries(threat: Threat, row: Row) -> Iterator[Entry]:
    for metric in threat.metrics:
        if metric in row.entries:
            yield row.entries[metric]


def _drawn(threat: Threat, entry: Entry, score: ScoreRecord) -> Bar:
    guess, perfect = _ends(entry.column.name, score)
    value, low, high = (
        None if end is None else (end - guess) / (perfect - guess) for end in (score.value, score.low, score.high)
    )
    reason = entry.unrated or ("" if entry.certified else "the controls of this attack do not hold, or were not run")
    return Bar(threat.name, value, low, high, entry.by, reason)


def _ends(metric: str, score: ScoreRecord) -> tuple[float, float]:
    """The best guess without the release, and certainty, in the figure's unit."""
    if metric == "reconstruction-ssim":  # what is gained beyond the mean image, of what can be
        mean = score.parts.get(SSIM_OF_GUESS)
        return 0.0, 1.0 - (0.0 if mean is None else mean.value)
    return (0.0, 1.0) if metric == "attribute-advantage" else (0.5, 1.0)
