"""Pairs that a profile of Eve grants: known people, an oracle's answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from bench.contract.seal import ContractError, Sealed
from bench.evaluators.predictions import queried
from bench.rows.row_sets import renumbered
from bench.types import Attacker, Dataset, Key, NotApplicable, PairScores, Release, View, rows_at
from bench.workbench.workbench import Workbench


@dataclass(frozen=True, eq=False)
class Told:
    """A release as Eve gets it, and pairs that she knows.

    Args:
        sealed: The release without the rows that she knows.
        raw, released: (k, ...) the pairs; None if her profile grants none.
    """

    sealed: Sealed
    raw: Dataset | None = None
    released: Release | None = None

    def score(self, attacker: Attacker, rows: Release) -> PairScores:
        """The attacker's scores of `rows`, the release as she may read it."""
        if self.raw is None or self.released is None:
            return attacker.score(rows)
        return attacker.score_knowing(rows, self.raw, self.released)


def tell(
    bench: Workbench, view: View, sealed: Sealed, known: torch.Tensor | None, pairs: torch.Tensor,
    key: Callable[[], Key], attacker: Attacker,
) -> Told:  # fmt: skip
    """A release with the pairs that Eve's profile grants.

    Args:
        bench: The cell.
        view: Eve's.
        sealed: The release, with links to the rows that were released.
        known: (k,) of these rows, those that she knows.
        pairs: (p, 2) candidates and released rows, as in `bench.data.splits.Candidates`.
        key: Makes that of the release.
        attacker: She chooses her queries.
    """
    if known is not None:
        assert view.known is not None
        kept, rows, released = known_apart(sealed, known, pairs[:, 1])
        if not len(rows):
            raise NotApplicable(f"{bench.method.name} shows none of the {len(known)} people whom Eve knows")
        return Told(kept, view.known.take(rows.to(bench.device)), released)
    if not view.queries:
        return Told(sealed)
    chosen = attacker.queries(view.queries)
    chosen = view.control.samples[: view.queries] if chosen is None else chosen
    _check_queries(chosen, view)
    asked = Dataset("queries", chosen, None, None, (), False, view.control.shareable)
    asked_of = key()
    bench.require_queries(asked_of)
    answers = _answers(bench, bench.completing(asked_of), chosen)
    return Told(sealed, asked, Release(answers, None, None))


def _answers(bench: Workbench, key: Key, chosen: torch.Tensor) -> torch.Tensor:
    """Encodings of images, asked for among Bob's.

    They are as many at a time, so that a key cannot tell them from Bob's by their number.
    """
    test, answers = bench.test, []
    for part in torch.split(chosen, len(test)):
        among = replace(test, samples=torch.cat((part, test.samples[len(part) :])))
        answers.append(queried(bench, key, among)[: len(part)])
    return torch.cat(answers)


def _check_queries(chosen: torch.Tensor, view: View) -> None:
    """Raise ContractError unless they are images within the budget."""
    shape, wanted = tuple(chosen.shape), tuple(view.candidates.samples.shape[1:])
    if shape[1:] != wanted or not 0 < len(chosen) <= view.queries or chosen.dtype != torch.float32:
        raise ContractError(
            f"an attacker may ask for 1 to {view.queries} float32 images of shape {wanted}, got {shape} {chosen.dtype}"
        )
    if not bool(chosen.isfinite().all()):
        raise ContractError("images that an attacker has encoded must be finite")


def known_apart(
    sealed: Sealed, known: torch.Tensor | None, scored: torch.Tensor
) -> tuple[Sealed, torch.Tensor, Release]:
    """The release without known people's rows; places and rows of known pairs.

    Places are in `known`. A row that mixes known people with others stays.

    Args:
        sealed: With links to the rows that were released.
        known: (k,) of these, those that Eve knows; None leaves the release as it is.
        scored: Those in figures.
    """
    links = sealed.links
    if known is None or links is None:
        return sealed, torch.arange(0), Release(sealed.release.samples[:0], None, None)
    links = links.cpu()
    primary = torch.ones(len(links)).bool() if sealed.primary is None else sealed.primary.cpu()
    of_known = torch.isin(links[:, 0], known) & primary
    order = known.argsort()
    rows = order[torch.searchsorted(known[order], links[of_known, 0].contiguous())]
    rows, nth = rows.sort(stable=True)  # in Eve's order
    samples = sealed.release.samples
    told = Release(rows_at(samples, links[of_known, 1][nth].to(samples.device)), None, None)
    kept = torch.ones(len(sealed.release), dtype=torch.bool)
    kept[links[:, 1]] = False
    kept[links[torch.isin(links[:, 0], scored), 1]] = True
    columns, inside = kept.nonzero()[:, 0], kept[links[:, 1]]
    place = kept.cumsum(0) - 1
    labels = sealed.release.labels
    release = replace(
        sealed.release,
        samples=rows_at(samples, columns.to(samples.device)),
        labels=None if labels is None else labels[columns.to(labels.device)],
    )
    primary = primary[inside]
    return (
        Sealed(release, renumbered(links[inside], released=place), None if sealed.primary is None else primary),
        rows,
        told,
    )
