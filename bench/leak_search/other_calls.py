"""Test of calls with other rows: fewer, public ones, or a mixture.

The forms of call in `bench.leak_search.call_faces` hold the same rows, so releases can be exchanged. Here an honest
method may differ too: it normalises by its batch, groups rows with their neighbours, or learned public rows by heart.
So a difference counts only if nearly all is gone: figures of what a release keeps of its raw rows must be high for the
owner's call, and must have lost most of that in the other call, beyond chance. The unit is the release: what either
call keeps is exchanged within keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bench.leak_search.release_figures import LEARNED, LinkedRows, add_attack, flat
from bench.seeds import generator
from bench.types import Dataset, NotApplicable, Release

MUCH, LEFT = 0.2, 0.25
"""What the owner's call must keep (1: all), and the share of it above which another call shows no other face."""
DRAWS = 9999


@dataclass(frozen=True, eq=False)
class OtherCall:
    """A call, and rows looked at in it and in the owner's.

    Args:
        name: The kind of call, in words.
        rows: Rows of the call.
        looked: (q,) int64 of its rows.
        owners: (r,) int64 of the owner's rows; the same rows if the call holds some.
    """

    name: str
    rows: Dataset
    looked: torch.Tensor
    owners: torch.Tensor


@dataclass(frozen=True)
class Lost:
    """The largest loss of a call, if any call lost most.

    Args:
        p: Under chance, corrected for all figures and calls; 1 if none lost most.
        call, figure: Their names; empty if none lost most.
        owner, other: Mean of the figure over keys in the owner's call and in that one, from 0 to 1.
        calls: Names of the calls that could be compared.
    """

    p: float
    call: str
    figure: str
    owner: float
    other: float
    calls: tuple[str, ...]


def lost(
    raw: torch.Tensor,
    owner: Sequence[Release | NotApplicable],
    others: Sequence[tuple[OtherCall, Sequence[Release | NotApplicable]]],
    seed: int,
) -> Lost:
    """Search for a call that loses nearly all the owner's call keeps.

    A call under which any key refuses rows is not compared.

    Args:
        raw: The owner's rows (n, ...).
        owner: Releases of these, by key.
        others: Further calls, and their releases by key.
        seed: Of the exchanges.
    """
    columns, named, means = list[torch.Tensor](), list[tuple[str, str]](), list[tuple[float, float]]()
    calls = []
    for call, releases in others:
        if any(isinstance(found, NotApplicable) for found in (*owner, *releases)):
            continue
        kept = _kept(raw, owner, call, releases)
        if kept:
            calls.append(call.name)
        for figure, table in kept.items():
            columns.append(table[:, 0] - table[:, 1])
            named.append((call.name, figure))
            means.append((float(table[:, 0].mean()), float(table[:, 1].mean())))
    most = [place for place, (of_owner, other) in enumerate(means) if of_owner >= MUCH and other < LEFT * of_owner]
    if not most:
        return Lost(1.0, "", "", 0.0, 0.0, tuple(calls))
    differences = torch.stack(columns, dim=1)
    differences = differences / differences.square().sum(dim=0).sqrt().clamp_min(1e-12)
    own = differences.sum(dim=0)
    best = max(most, key=lambda place: float(own[place]))
    signs = torch.randint(2, (DRAWS, len(differences)), generator=generator(seed)).double() * 2 - 1
    hits = int(((signs @ differences).amax(dim=1) >= float(own[best]) - 1e-9).sum())
    return Lost((1 + hits) / (1 + DRAWS), *named[best], *means[best], tuple(calls))


def _kept(
    raw: torch.Tensor,
    owner: Sequence[Release | NotApplicable],
    call: OtherCall,
    releases: Sequence[Release | NotApplicable],
) -> dict[str, torch.Tensor]:
    """Figures (keys, 2) of both calls from 0 to 1, by name."""
    of_owner, of_call = flat(raw[call.owners.to(raw.device)]), flat(call.rows.samples[call.looked.to(raw.device)])
    sides = [
        [LinkedRows.of(of_owner, call.owners, whole), LinkedRows.of(of_call, call.looked, other)]
        for whole, other in zip(owner, releases, strict=True)
    ]
    figures = [[{} if rows is None else rows.kept() for rows in pair] for pair in sides]
    add_attack(sides, figures)
    names = set(figures[0][0]).intersection(*(found for pair in figures for found in pair))
    table = {name: torch.tensor([[found[name] for found in pair] for pair in figures]).double() for name in names}
    found = {name: 2 * values - 1 if name.startswith(FOUND) else values for name, values in sorted(table.items())}
    return {name: values.clamp(0, 1) for name, values in found.items()}


FOUND = LEARNED.split(" by ", maxsplit=1)[0]
"""Beginning of the names of figures whose chance is a half."""
