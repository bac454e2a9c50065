"""Needle: a few raw numbers left in a release name its rows.

Source: design of this project. A mask may be incomplete: a border, a header or a channel stays unencrypted, a few
pixels stay as they are at places that only the key knows, or raw numbers survive in low bits under noise. Such a leak
is too small for distances, and learned attacks do not find it, because every key puts it elsewhere.

Eve, the attacker, looks for it in three ways; the first two in the released numbers and in their bit planes
(`bench.rows.bit_planes`), each compared with the raw numbers and with the same plane of them:
- Columns: a released coordinate is a raw one if its numbers are the same, as often, in whatever order the rows are; or
  their order by size with its ties; or their counts, under other names; or the numbers after a change of scale
  (`bench.rows.shared_columns`). Pixels may stand anywhere. A row's score is the information in the levels that it
  shares with a candidate, over all such columns jointly.
- In place: numbers of a released row that equal the candidate's at the same place, each weighed by how much oftener
  that happens for a row's own candidate than for others, under keys of Eve's own. The hole may be in other places in
  every row.
- Near: a released coordinate is nearly a raw one, with small noise or rounded, if its distribution is
  (`bench.rows.near_columns`). How near it must be, and how far its numbers are off, is learned under keys of Eve's own,
  where she knows the links.

Which looks count, and how much, is settled by the likelihood of the links of further keys of her own; a look without a
sure gain there is left out. If none is left, all pairs tie, which is chance. A candidate's score is the log odds of its
posterior (`bench.pairs.score_matrices`). Of rows with more than `NUMBERS` numbers in all, random coordinates are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias

import torch

from bench.eve.own_releases import own_release
from bench.pairs.score_matrices import PosteriorScores
from bench.progress import report
from bench.rows.bit_planes import PLANES
from bench.rows.near_columns import near_columns
from bench.rows.shared_columns import shared_columns
from bench.seeds import derive, drawn, generator
from bench.types import Attack, Attacker, Parameter, Release, View
from bench.validation import at_least

NUMBERS = 1 << 28
COMPARED = 1 << 33  # equalities in place, of a release
ROWS = 256
SHIFTS = (1, 2, 3)  # other candidates that a row is compared with in place
SHARPNESSES = tuple(2.0**power for power in range(-6, 3))
SURE = 4.0  # standard errors over rows
LEAST = 1e-3  # nats a row
ENOUGH = -0.02

CLEAR = 6.0  # standard errors of a correlation along the links
MISTAKEN = 0.1  # a near column's share of numbers that say nothing of the row
QUIETEST = 1e-3  # of a raw column's deviation
LEAST_DENSITY = 1e-30

Kind = Literal["columns", "in place", "near"]
Scores: TypeAlias = "Callable[[slice, slice], torch.Tensor]"


@dataclass(frozen=True)
class Needle(Attack):
    """Finds raw coordinates in a release, and matches rows by their numbers.

    Args:
        keys: Keys of Eve's own; half of them weigh places, the others choose the looks.
        rows: Candidates released under each, at most.
        columns: Shared coordinates that rows are matched by, at most: those with most information.
    """

    name: ClassVar[str] = "needle"
    source: ClassVar[str] = "this project: raw coordinates found by their sorted numbers, then matched jointly"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release to the last bit, and the scheme; no key, no labels"
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"keys": 2}}

    keys: int = 4
    rows: int = 256
    columns: int = 128

    def __post_init__(self) -> None:
        at_least(2, keys=self.keys, rows=self.rows)
        at_least(1, columns=self.columns)

    def fit(self, view: View, seed: int) -> NeedleAttacker:
        """Choose the looks on Eve's own keys.

        Raises NotApplicable for releases without links.
        """
        candidates, own = view.candidates.samples, []
        for number in range(self.keys):
            rows, release = own_release(view, self.rows, derive(seed, number), self.name)
            own.append((flat(rows.samples, seed), flat(release.samples, seed)))
            report("needle, keys of her own", number + 1, self.keys)
        half = self.keys // 2
        looks = [
            look
            for plane in PLANES
            for both in ((True,) if plane == "values" else (False, True))
            for kind in ("columns", "in place")
            if (look := _learned(Look(kind, plane, both, self.columns), own[:half])) is not None
        ]
        near = _near(Look("near", "values", True, self.columns), own[:half])
        looks += [] if near is None else [near]
        return NeedleAttacker(flat(candidates, seed), _chosen(looks, own[half:]), seed)


def flat(samples: torch.Tensor, seed: int) -> torch.Tensor:
    """Rows (n, p) float32 on the CPU, at random coordinates beyond `NUMBERS`."""
    n, d = len(samples), samples.shape[1:].numel()
    most = max(1, NUMBERS // max(1, n))
    chosen = slice(None) if d <= most else drawn(d, generator(derive(seed, "coordinates", d)), most).sort().values
    parts = [part[:].flatten(1).cpu()[:, chosen] for part in torch.split(samples, ROWS)]
    return torch.cat(parts).float().contiguous()


@dataclass(frozen=True, eq=False)
class Look:
    """One way to find raw numbers.

    Args:
        kind: "columns" wherever they are, or "in place".
        plane: Of the released numbers.
        both: Compare with the same plane of the raw numbers, else with the raw numbers.
        columns: As of `Needle`.
        weights: (p,) log odds of an equality in place; empty for other kinds.
        sharpness: Weight of the scores.
        apart: Largest distance of near columns; `noise` is what their numbers are off. Both in deviations of a column.
    """

    kind: Kind
    plane: str
    both: bool
    columns: int
    weights: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    sharpness: float = 1.0
    apart: float = 0.0
    noise: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}, {self.plane}" + (" of both" if self.both and self.plane != "values" else "")

    def sides(self, raw: torch.Tensor, released: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The numbers that are compared."""
        plane = PLANES[self.plane]
        if self.both:
            return plane(raw), plane(released)
        # Bytes and their parts are compared in their own unit.
        return (raw * 255).round() if self.kind == "in place" else raw, plane(released)

    def scores(self, raw: torch.Tensor, released: torch.Tensor) -> Scores | None:
        """Scores of a block; None if nothing is shared."""
        a, b = self.sides(raw, released)
        if self.kind == "near":
            return _nearness(self, a, b)
        if self.kind == "columns":
            shared = shared_columns(a, b, self.columns)
            terms = [(each.raw_level, each.released_level, _information(each.raw_level)) for each in shared]
            return _agreements(terms) if terms else None
        best = self.weights.argsort(descending=True, stable=True)[: max(1, COMPARED // (len(a) * len(b)))]
        places = best[self.weights[best] > 0].sort().values.tolist()
        return _agreements([(a[:, k], b[:, k], self.weights[k].expand(len(a))) for k in places])


def _information(levels: torch.Tensor) -> torch.Tensor:
    """(n,) float32, nats: how surprising each number's level is."""
    counts = torch.bincount(levels)
    return (len(levels) / counts[levels]).log().float()


def _agreements(terms: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> Scores:
    """Sum of a candidate's weights at numbers equal to its own."""

    def block(rows: slice, cols: slice) -> torch.Tensor:
        first, second, _ = terms[0]
        total = torch.zeros(len(first[rows]), len(second[cols]), dtype=torch.float64)
        for ours, theirs, weight in terms:
            total += torch.where(ours[rows, None] == theirs[None, cols], weight[rows, None], 0.0)
        return total

    return block


def _near(look: Look, own: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Look | None:
    """The look with its distance and noise; None without a near column.

    Columns count from the nearest on, as long as half of them follow the links.
    """
    apart, off = [], []
    for raw, released in own:
        near = near_columns(raw, released)
        matched = raw[:, near.raw]
        alike = torch.nn.functional.cosine_similarity(
            matched - matched.mean(dim=0), released - released.mean(dim=0), dim=0
        )
        follows = (alike * len(raw) ** 0.5 > CLEAR) & near.apart.isfinite()
        distance = (released - matched).square().mean(dim=0).sqrt() / near.deviation[near.raw].clamp_min(1e-30)
        apart.append(near.apart)
        off.append(torch.where(follows, distance, torch.inf))
    distances, order = torch.cat(apart).sort()
    errors = torch.cat(off)[order]
    good = errors.isfinite()
    enough = (2 * good.cumsum(0) >= torch.arange(1, len(good) + 1)).nonzero()
    if not len(enough) or not bool(good.any()):
        return None
    last = int(enough[-1])
    noise = float(errors[: last + 1][good[: last + 1]].median())
    return replace(look, apart=float(distances[last]), noise=max(noise, QUIETEST))


def _nearness(look: Look, raw: torch.Tensor, released: torch.Tensor) -> Scores | None:
    """Log likelihood ratios of numbers near a candidate's, over near columns."""
    near = near_columns(raw, released)
    best = near.apart.argsort()[: look.columns]
    chosen = best[near.apart[best] <= look.apart]
    if not len(chosen):
        return None
    scale = look.noise * near.deviation[near.raw[chosen]]
    pairs = list(zip((raw[:, near.raw[chosen]] / scale).T, (released[:, chosen] / scale).T, strict=True))
    usual = [
        torch.stack([_density(some, b).sum(dim=0) for some in torch.split(a, ROWS)]).sum(dim=0) / len(a)
        for a, b in pairs
    ]

    def block(rows: slice, cols: slice) -> torch.Tensor:
        total = torch.zeros(len(pairs[0][0][rows]), len(pairs[0][1][cols]), dtype=torch.float64)
        for (a, b), mean in zip(pairs, usual, strict=True):
            ratio = _density(a[rows], b[cols]) / mean[cols].clamp_min(LEAST_DENSITY)
            total += (MISTAKEN + (1 - MISTAKEN) * ratio).log()
        return total

    return block


def _density(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(n, m) normal densities of differences, but for a factor."""
    return (-0.5 * (a[:, None] - b).square()).exp()


def _learned(look: Look, own: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Look | None:
    """The look with its weights of places; None without any equality."""
    if look.kind == "columns":
        return look
    if any(raw.shape[1] != released.shape[1] for raw, released in own):
        return None
    right = wrong = torch.zeros(own[0][0].shape[1], dtype=torch.float64)
    of_right = of_wrong = 0
    for raw, released in own:
        a, b = look.sides(raw, released)
        right = right + (a == b).sum(dim=0)
        of_right += len(a)
        for shift in SHIFTS:
            wrong = wrong + (a.roll(shift, 0) == b).sum(dim=0)
            of_wrong += len(a)
    pooled = [(count.sum() + 0.5) / (of * len(count)) for count, of in ((right, of_right), (wrong, of_wrong))]
    often, seldom = (
        ((count + share) / (of + 1)).clamp(1e-9, 1 - 1e-9)
        for count, of, share in ((right, of_right, pooled[0]), (wrong, of_wrong, pooled[1]))
    )
    weights = (often / seldom).log() - ((1 - often) / (1 - seldom)).log()
    return replace(look, weights=weights.float()) if bool((weights > 0).any()) and right.sum() else None


def _chosen(looks: Sequence[Look], own: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> list[Look]:
    """Looks that surely add to the likelihood of the links of `own`."""
    chosen: list[Look] = []
    totals = [torch.zeros(len(raw), len(released), dtype=torch.float64) for raw, released in own]
    known = torch.cat([_log_shares(total) for total in totals])
    for number, look in enumerate(looks):
        if float(known.mean()) > ENOUGH:
            break
        if look.kind == "in place" and not _tells(look, own):
            continue
        tables = [scores and scores(slice(None), slice(None)) for scores in (look.scores(*each) for each in own)]
        report("needle, look", number + 1, len(looks))
        if all(table is None for table in tables):
            continue
        best = None
        for sharpness in SHARPNESSES:
            tried = [
                total if table is None else total + sharpness * table
                for total, table in zip(totals, tables, strict=True)
            ]
            shares = torch.cat([_log_shares(total) for total in tried])
            if best is None or shares.mean() > best[1].mean():
                best = replace(look, sharpness=sharpness), shares, tried
        assert best is not None
        gain = best[1] - known
        if gain.mean() > max(SURE * float(gain.std()) / len(gain) ** 0.5, LEAST):
            chosen.append(best[0])
            known, totals = best[1], best[2]
    return chosen


def _tells(look: Look, own: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    """True if rows surely score higher with their own candidates."""
    gains = []
    for raw, released in own:
        a, b = look.sides(raw, released)
        weights = look.weights.clamp_min(0)
        right = (a == b).float() @ weights
        wrong = torch.stack([(a.roll(shift, 0) == b).float() @ weights for shift in SHIFTS]).mean(dim=0)
        gains.append(right - wrong)
    gain = torch.cat(gains).double()
    return bool(gain.mean() > SURE * gain.std() / len(gain) ** 0.5)


def _log_shares(scores: torch.Tensor) -> torch.Tensor:
    """(m,) log posterior of the candidate of each released row's number."""
    return scores.diagonal() - scores.logsumexp(dim=0)


@dataclass(eq=False)
class NeedleAttacker(Attacker):
    """Candidates (n, p), the looks, and how many found something last."""

    candidates: torch.Tensor
    looks: Sequence[Look]
    seed: int
    found: int = 0

    def score(self, sealed: Release) -> PosteriorScores:
        """Log odds by all looks together; all 0 without any."""
        released = flat(sealed.samples, self.seed)
        shape = len(self.candidates), len(released)
        parts = [(look.sharpness, look.scores(self.candidates, released)) for look in self.looks]
        told = [(sharpness, scores) for sharpness, scores in parts if scores is not None]
        self.found = len(told)

        def block(rows: slice, cols: slice) -> torch.Tensor:
            size = (len(range(*rows.indices(shape[0]))), len(range(*cols.indices(shape[1]))))
            total = torch.zeros(size, dtype=torch.float64)
            for sharpness, scores in told:
                total += sharpness * scores(rows, cols)
            return total

        return PosteriorScores(block, shape)

    def notes(self) -> Mapping[str, int | float | str]:
        """The looks, and how many found something in the latest release."""
        shown = "; ".join(f"{look} ({look.sharpness:g})" for look in self.looks)
        return {"looks": shown or "none: nothing of the raw rows is left under keys of her own", "found": self.found}
