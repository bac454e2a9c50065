"""Evidence of attacks that know nothing (or, with a signal, something), under every kind of links."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.person_links import exchanged_links, patient_links
from bench.pairs.sweep import Grid, PairCounts, count_grids
from bench.statistics.bootstrap import half_samples
from made.dense_scores import DenseScores, diagonal

Kind = Literal["one to one", "k to one", "mixed"]
SETS = 9


def people(n: int) -> Tensor:
    """Persons of 3, 2 and 1 images by turns, and one of 5 at the end."""
    sizes = torch.tensor([3, 2, 1]).repeat(n)
    codes = torch.repeat_interleave(torch.arange(len(sizes)), sizes)[:n]
    codes[-5:] = codes.max() + 1
    return codes


def links_of(kind: Kind, n: int, random: torch.Generator) -> tuple[Tensor, Tensor | None, int]:
    """Links, which of them are primary, and the number of released rows."""
    if kind == "one to one":
        return diagonal(n), None, n
    if kind == "k to one":
        m = n // 3
        return torch.stack((torch.randperm(n, generator=random), torch.arange(n) % m), dim=1), None, m
    partner = (torch.arange(n) + 1 + torch.randint(n - 1, (n,), generator=random)) % n
    links = torch.cat((diagonal(n), torch.stack((partner, torch.arange(n)), dim=1)))
    return links, torch.arange(2 * n) < n, n


def evidence(
    seed: int,
    *,
    kind: Kind = "one to one",
    n: int = 60,
    keys: int = 3,
    samples: int = 4,
    signal: float = 0.0,
    alike: float = 0.0,
    levels: int | None = None,
    permuted: bool = False,
    subjects: Tensor | None = None,
    hubs: float = 0.0,
    alone: bool = False,
) -> PairEvidence:
    """Random scores.

    Args:
        seed: Of everything.
        kind: Of links.
        n: Raw rows.
        keys: How many, with scores of their own.
        samples: Halves of the people.
        signal: Added to the scores of linked pairs.
        alike: Share of the variance that all pairs of the same two people have in common.
        levels: Scores are rounded to so many values; None leaves them distinct.
        permuted: Also count under links of exchanged people, at both levels.
        subjects: (n',) int64, with n' in place of n; None for `people`.
        hubs: Deviation of what is added to all scores of a raw row.
        alone: People are unknown: every row is a person of its own.
    """
    random = torch.Generator().manual_seed(seed)
    subjects = people(n) if subjects is None else subjects
    subjects = torch.arange(n) if alone else subjects
    n, persons = len(subjects), torch.unique(subjects, return_inverse=True)[1]
    links, is_primary, m = links_of(kind, n, random)
    owners = torch.zeros(m, dtype=torch.int64)
    owners[links.flip(0)[:, 1]] = persons[links.flip(0)[:, 0]]
    halves = half_samples(subjects, n, samples, seed=seed)
    notions: dict[str, list[list[PairCounts]]] = {}
    full: dict[str, list[PairCounts]] = {}
    whole: dict[str, list[list[PairCounts]]] = {"images": [], "patients": []}
    for key in range(keys):
        own = torch.randn(n, m, generator=random, dtype=torch.float64)
        common = torch.randn(int(subjects.max()) + 1, int(subjects.max()) + 1, generator=random, dtype=torch.float64)
        matrix = (1 - alike) ** 0.5 * own + alike**0.5 * common[persons][:, owners]
        matrix += hubs * torch.randn(n, 1, generator=random, dtype=torch.float64)
        matrix[links[:, 0], links[:, 1]] += signal
        if levels is not None:
            matrix = (matrix.flatten().argsort().argsort().reshape(n, m) * levels // (n * m)).double()
        scores = DenseScores(matrix)
        grids = []
        for rows in halves:
            inside = torch.isin(links[:, 0], rows)
            notion = {"images": links[inside], "patients": patient_links(links[inside], subjects)}
            if is_primary is not None:
                notion["primary"] = links[inside & is_primary]
            grids.append(Grid(rows, torch.unique(links[inside, 1]), list(notion.values())))
        every = {"images": links, "patients": patient_links(links, subjects)}
        if is_primary is not None:
            every["primary"] = links[is_primary]
        grids.append(Grid(torch.arange(n), torch.arange(m), list(every.values())))
        *counts, all_of_it = count_grids(scores, grids)
        for place, name in enumerate(notion):
            full.setdefault(name, []).append(all_of_it[place])
            notions.setdefault(name, []).append([of_sample[place] for of_sample in counts])
        if permuted:
            sets = exchanged_links(links, subjects, n, sets=SETS, seed=1000 * seed + key)
            all_rows = (torch.arange(n), torch.arange(m))
            whole["images"].append(count_grids(scores, [Grid(*all_rows, sets)])[0])
            by_person = [patient_links(part, subjects) for part in sets]
            whole["patients"].append(count_grids(scores, [Grid(*all_rows, by_person)])[0])

    def level(name: str, of: Tensor) -> PairLevel:
        found = whole.get(name, [])
        seen = torch.unique(of[:, 1])
        return PairLevel(
            notions[name], of, [first for first, *_ in found], [others for _, *others in found], full[name],
            [owners[seen]] * keys,
        )  # fmt: skip

    return PairEvidence(
        (n, m), level("images", links), level("patients", patient_links(links, subjects)), halves,
        persons=persons, known=not alone, draws=seed, resamples="0" * 16, seed=seed,
        primary=None if is_primary is None else level("primary", links[is_primary]),
    )  # fmt: skip
