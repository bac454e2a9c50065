"""Test of releases for traces of the form of the call.

The unit is the release: under every key a method releases the same rows twice, called as by an owner and as by an
attacker. Figures of each release are compared: of its numbers, of what it keeps of raw rows, and of an attack that
learns from the other keys. If the form leaves no trace, the two releases of a key can be exchanged: the largest of all
figures' mean differences, in units of their spread, is compared with those after exchanges at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from bench.contract.seal import check
from bench.randomness import Secret
from bench.rows.row_sets import renumbered, same_but_rounding
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, Scheme

KEYS, FEWEST_KEYS = 20, 8
"""Keys under which a method is asked in both forms; fewer if its releases take long."""
DRAWS = 9999
ROWS = 128
"""Most rows of a release that figures are computed on."""
COORDINATES, QUANTILES = 8, 16
RIDGE = 0.1
SAME = 1e-5
"""Relative difference of figures that is rounding."""
FEWEST = 8
LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class Asked:
    """One key's releases or refusals in both forms of the call."""

    owner: Release | NotApplicable
    eve: Release | NotApplicable


@dataclass(frozen=True)
class Form:
    """Labels and subjects in an attacker's calls, by a method's declarations."""

    labels: bool
    subjects: bool


@dataclass(frozen=True)
class Trace:
    """The strongest trace of the form of a call.

    Args:
        p: Of the strongest figure under chance, corrected for all figures.
        figure: Its name; empty if no figure differs.
        figures: Number of figures.
        differing: Keys under which released rows differ between the forms, beyond rounding.
    """

    p: float
    figure: str
    figures: int
    differing: int


def ask(owner: Scheme, eve: Scheme, rows: Dataset, secrets: Sequence[Secret], form: Form) -> Iterator[Asked]:
    """Releases of rows under each key in both forms of call.

    An attacker's rows come in another order, and without labels and subjects unless the method declares them. Links of
    both releases name the rows as they stand in `rows`.

    Args:
        owner, eve: The method's scheme, as either reaches it.
        rows: As the owner has them.
        secrets: One a key.
        form: The method's declarations.
    """
    for secret in secrets:
        order = secret.stream("order").permutation(len(rows)).to(rows.samples.device)
        shuffled = rows.take(order)
        hidden = replace(
            shuffled,
            labels=shuffled.labels if form.labels else None,
            subjects=shuffled.subjects if form.subjects else None,
        )
        key = secret.derive("key")
        second = released(eve, key, hidden)
        if isinstance(second, Release) and second.links is not None:
            second = replace(second, links=renumbered(second.links, raw=order))
        yield Asked(released(owner, key, rows), second)


def ask_again(owner: Scheme, rows: Dataset, secret: Secret) -> Release | NotApplicable:
    """A key's release of the rows in reverse order.

    Links name the rows as they stand in `rows`.
    """
    order = torch.arange(len(rows) - 1, -1, -1, device=rows.samples.device)
    found = released(owner, secret.derive("key"), rows.take(order))
    if isinstance(found, NotApplicable) or found.links is None:
        return found
    return replace(found, links=renumbered(found.links, raw=order))


def released(scheme: Scheme, secret: Secret, rows: Dataset) -> Release | NotApplicable:
    """A key's release, checked, or its refusal."""
    try:
        release = scheme.sample_key(secret).release(rows)
    except NotApplicable as refusal:
        return refusal
    check(release, rows)
    return release


def trace(raw: Sequence[torch.Tensor], asked: Sequence[Sequence[Asked]], seed: int) -> Trace:
    """Search releases for traces of the form of the call.

    Args:
        raw: For each number of rows asked with, the raw rows (n, ...) that links of both forms name.
        asked: For each number of rows, by key.
        seed: Of the rows that figures are computed on, and of the exchanges.
    """
    differences, names = list[torch.Tensor](), list[str]()
    for number, (rows, by_key) in enumerate(zip(raw, asked, strict=True)):
        found, named = _differences(rows, by_key, derive(seed, "rows", number))
        differences.append(found)
        names += [f"{name}, {len(rows)} rows" for name in named]
    table = torch.cat(differences, dim=1)
    differing = sum(any(not same_rows(by_key[key]) for by_key in asked) for key in range(len(table)))
    kept = (table != 0).any(dim=0)
    table, names = table[:, kept], [name for name, keep in zip(names, kept.tolist(), strict=True) if keep]
    if not names:
        return Trace(1.0, "", len(kept), differing)
    table = table / table.square().sum(dim=0).sqrt()
    own = table.sum(dim=0).abs()
    signs = torch.randint(2, (DRAWS, len(table)), generator=generator(derive(seed, "exchanges"))).double() * 2 - 1
    highest = (signs @ table).abs().amax(dim=1)
    hits = int((highest >= float(own.max()) - 1e-9).sum())
    return Trace((1 + hits) / (1 + DRAWS), names[int(own.argmax())], len(kept), differing)


def same_rows(asked: Asked) -> bool:
    """True if both forms gave the same rows but for rounding."""
    a, b = asked.owner, asked.eve
    if isinstance(a, NotApplicable) or isinstance(b, NotApplicable):
        return isinstance(a, NotApplicable) and isinstance(b, NotApplicable)
    first, second = (part.samples if part.links is None else part.samples[_by_link(part)] for part in (a, b))
    return same_but_rounding(first, second)


def _by_link(release: Release) -> torch.Tensor:
    """Released rows in the order of their first raw rows."""
    assert release.links is not None
    links = release.links if release.primary is None else release.links[release.primary]
    first = torch.full((len(release),), int(links[:, 0].max()) + 1, device=links.device)
    order: torch.Tensor = first.scatter_reduce(0, links[:, 1], links[:, 0], "amin").argsort(stable=True)
    return order.to(release.samples.device)


def _differences(raw: torch.Tensor, asked: Sequence[Asked], seed: int) -> tuple[torch.Tensor, list[str]]:
    """Owner's less Eve's figures (keys, figures) float64, and their names."""
    chosen = torch.randperm(len(raw), generator=generator(seed))[:ROWS]
    raw_rows = _flat(raw[chosen.to(raw.device)])
    sides = [[_Rows.of(raw_rows, chosen, form) for form in (pair.owner, pair.eve)] for pair in asked]
    figures = [[{} if rows is None else rows.figures() for rows in pair] for pair in sides]
    _attack(sides, figures)
    names = sorted({name for pair in figures for found in pair for name in found})
    table = torch.zeros(len(asked), len(names) + 1, dtype=torch.float64)
    for key, (owner, eve) in enumerate(figures):
        table[key, -1] = float(bool(eve)) - float(bool(owner))
        for place, name in enumerate(names):
            if name in owner and name in eve:
                difference = owner[name] - eve[name]
                size = max(abs(owner[name]), abs(eve[name]), 1e-9)
                table[key, place] = 0.0 if abs(difference) <= SAME * size else difference
    return table, [*names, "refusals"]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Released rows (m, e); linked raw (p, d) and released (p, e)."""

    released: torch.Tensor
    rows: float
    linked: tuple[torch.Tensor, torch.Tensor] | None

    @classmethod
    def of(cls, raw: torch.Tensor, chosen: torch.Tensor, form: Release | NotApplicable) -> _Rows | None:
        if isinstance(form, NotApplicable):
            return None
        if form.links is None:
            return cls(_flat(form.samples[:ROWS]), len(form), None)
        links = (form.links if form.primary is None else form.links[form.primary]).cpu().flip(0)
        at = torch.full((int(max(int(chosen.max()), int(links[:, 0].max()))) + 1,), -1)
        at[links[:, 0]] = links[:, 1]
        there = at[chosen] >= 0
        rows = _flat(form.samples[at[chosen][there].to(form.samples.device)])
        return cls(rows, len(form), (raw[there], rows) if len(rows) >= FEWEST else None)

    def figures(self) -> dict[str, float]:
        """Figures of the numbers, and of what they keep of raw rows."""
        rows = self.released
        found = {"rows released": float(self.rows)}
        if not len(rows):
            return found
        numbers = rows.flatten()
        mean, deviation = float(numbers.mean()), float(numbers.std(correction=0))
        found |= {"mean": mean, "deviation": deviation, "least": float(numbers.min()), "greatest": float(numbers.max())}
        if deviation > 0:
            scaled = (numbers - mean) / deviation
            found |= {"skew": float(scaled.pow(3).mean()), "kurtosis": float(scaled.pow(4).mean())}
        ranked = numbers.sort().values
        found |= {f"quantile {at:g}": float(ranked[round(at * (len(ranked) - 1))]) for at in LEVELS}
        lengths = rows.norm(dim=1)
        found |= {"mean length": float(lengths.mean()), "spread of lengths": float(lengths.std(correction=0))}
        found["spread of row means"] = float(rows.mean(dim=1).std(correction=0))
        found["different numbers"] = float((ranked[1:] != ranked[:-1]).double().mean())
        energy = torch.linalg.eigvalsh(_gram(rows, unit=False)).clamp_min(0).flip(0)
        if float(energy.sum()) > 0:
            shares = energy / energy.sum()
            found |= {f"share of the first {count} axes": float(shares[:count].sum()) for count in (1, 2, 4, 8, 16)}
            found["entropy of axes"] = float(-(shares * shares.clamp_min(1e-12).log()).sum())
        return found | self._kept()

    def _kept(self) -> dict[str, float]:
        """Figures of what released rows keep of their raw rows."""
        if self.linked is None:
            return {}
        raw, rows = self.linked
        of_raw, of_rows = _gram(raw), _gram(rows)
        apart = ~torch.eye(len(raw), dtype=torch.bool)
        found = {"agreement of angles": _correlation(of_raw[apart], of_rows[apart])}
        found["agreement of distances"] = _correlation(torch.cdist(raw, raw)[apart], torch.cdist(rows, rows)[apart])
        near = [(gram - 3 * torch.eye(len(gram))).argmax(dim=1) for gram in (of_raw, of_rows)]
        found["same neighbours"] = float((near[0] == near[1]).double().mean())
        found["rows found by angles"] = _top(_signature(of_raw), _signature(of_rows))
        if raw.shape == rows.shape:
            found["rows found by pixels"] = _top(raw - raw.mean(dim=0), rows - rows.mean(dim=0))
        half = len(raw) // 2
        axes = _coordinates(raw)
        guess = _ridge(axes[:half], rows[:half] - rows[:half].mean(dim=0), axes[half:])
        left = rows[half:] - rows[half:].mean(dim=0)
        found["predicted by raw rows"] = 1 - float((left - guess).square().sum() / left.square().sum().clamp_min(1e-12))
        return found


def _attack(sides: Sequence[Sequence[_Rows | None]], figures: Sequence[Sequence[dict[str, float]]]) -> None:
    """Add the figure of an attack that learns from all other keys."""
    described = [
        [None if rows is None or rows.linked is None else _Described.of(*rows.linked) for rows in pair]
        for pair in sides
    ]
    everything = [one for pair in described for one in pair if one is not None]
    for pair, found in zip(described, figures, strict=True):
        own = [one for one in pair if one is not None]
        if len(own) == len(everything):
            continue
        inner = torch.stack([one.inner for one in everything if one not in own]).sum(dim=0)
        crossed = torch.stack([one.crossed for one in everything if one not in own]).sum(dim=0)
        for one, of in zip(pair, found, strict=True):
            if one is not None:
                of["rows found by a learned attack"] = _top(one.raw, one.released @ _solved(inner, crossed))


@dataclass(frozen=True, eq=False)
class _Described:
    """Descriptions of raw (p, q), released (p, r), and their products."""

    raw: torch.Tensor
    released: torch.Tensor
    inner: torch.Tensor
    crossed: torch.Tensor

    @classmethod
    def of(cls, raw: torch.Tensor, rows: torch.Tensor) -> _Described:
        a, b = _coordinates(raw), _described(rows)
        return cls(a, b, b.T @ b, b.T @ a)


def _flat(rows: torch.Tensor) -> torch.Tensor:
    return rows[:].flatten(1).double().cpu()


def _gram(rows: torch.Tensor, *, unit: bool = True) -> torch.Tensor:
    """Inner products (n, n) of centred rows, of unit length if wanted."""
    rows = rows - rows.mean(dim=0)
    if unit:
        rows = torch.nn.functional.normalize(rows, dim=1)
    return rows @ rows.T


def _signature(gram: torch.Tensor) -> torch.Tensor:
    """Quantiles (n, 16) of each Gram row, standardised over rows."""
    found = gram.sort(dim=1).values[:, torch.linspace(0, len(gram) - 1, QUANTILES).round().long()]
    return (found - found.mean(dim=0)) / found.std(dim=0, correction=0).clamp_min(1e-9)


def _described(rows: torch.Tensor) -> torch.Tensor:
    """Descriptions without a key: angles to other rows, length, moments."""
    centred = rows - rows.mean(dim=0)
    size = centred.square().mean().sqrt().clamp_min(1e-12)
    moments = torch.stack([(centred / size).pow(power).mean(dim=1) for power in (1, 2, 3, 4)], dim=1)
    moments = (moments - moments.mean(dim=0)) / moments.std(dim=0, correction=0).clamp_min(1e-9)
    return torch.cat((_signature(_gram(rows)), moments), dim=1)


def _coordinates(raw: torch.Tensor) -> torch.Tensor:
    """Coordinates (n, 8) along the first axes, of unit spread."""
    centred = raw - raw.mean(dim=0)
    left: torch.Tensor = torch.linalg.svd(centred, full_matrices=False)[0][:, :COORDINATES]
    sign = left.gather(0, left.abs().argmax(dim=0, keepdim=True)).sign()
    scaled: torch.Tensor = left * (sign * len(raw) ** 0.5)
    return scaled


def _ridge(known: torch.Tensor, target: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    return new @ _solved(known.T @ known, known.T @ target)


def _solved(inner: torch.Tensor, crossed: torch.Tensor) -> torch.Tensor:
    """Weights of a ridge regression."""
    ridge = RIDGE * inner.diagonal().mean().clamp_min(1e-12)
    weights: torch.Tensor = torch.linalg.solve(inner + ridge * torch.eye(len(inner), dtype=inner.dtype), crossed)
    return weights


def _top(a: torch.Tensor, b: torch.Tensor) -> float:
    """Mean share (0 to 1) of rows farther than the true one."""
    distance = torch.cdist(a, b)
    own = distance.diagonal()
    beaten = (distance > own).double() + 0.5 * (distance == own).double()
    return float((beaten.sum(dim=0) - 0.5).mean()) / max(1, len(a) - 1)


def _correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / (a.norm() * b.norm()).clamp_min(1e-12))
