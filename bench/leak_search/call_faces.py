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
from bench.leak_search.release_figures import ROWS, LinkedRows, add_attack, flat
from bench.randomness import Secret
from bench.rows.row_sets import renumbered, same_but_rounding
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, Scheme

KEYS, FEWEST_KEYS = 20, 8
"""Keys under which a method is asked in both forms; fewer if its releases take long."""
DRAWS = 9999
SAME = 1e-5
"""Relative difference of figures that is rounding."""


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

    Rows come in one secret order, an attacker's without labels and subjects unless the method declares them: an honest
    method may release a row by its place. Links of both releases name the rows as they stand in `rows`.

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
        second = _in_order(released(eve, secret, hidden), order)
        yield Asked(_in_order(released(owner, secret, shuffled), order), second)


def ask_again(owner: Scheme, rows: Dataset, secret: Secret) -> Release | NotApplicable:
    """A key's release of the rows in reverse order.

    Links name the rows as they stand in `rows`.
    """
    order = torch.arange(len(rows) - 1, -1, -1, device=rows.samples.device)
    return _in_order(released(owner, secret, rows.take(order)), order)


def released(scheme: Scheme, secret: Secret, rows: Dataset) -> Release | NotApplicable:
    """The release of a secret's key, checked, or its refusal."""
    try:
        release = scheme.sample_key(secret.derive("key")).release(rows)
    except NotApplicable as refusal:
        return refusal
    check(release, rows)
    return release


def _in_order(release: Release | NotApplicable, order: torch.Tensor) -> Release | NotApplicable:
    """The release, whose links name row `order[i]` in place of row i."""
    if isinstance(release, NotApplicable) or release.links is None:
        return release
    return replace(release, links=renumbered(release.links, raw=order))


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
    raw_rows = flat(raw[chosen.to(raw.device)])
    sides = [[LinkedRows.of(raw_rows, chosen, form) for form in (pair.owner, pair.eve)] for pair in asked]
    figures = [[{} if rows is None else rows.figures() for rows in pair] for pair in sides]
    add_attack(sides, figures)
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
