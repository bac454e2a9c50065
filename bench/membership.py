"""The membership evaluator: Eve says of each candidate how likely it was among the rows that a release was made from.

Source: the membership game of Carlini et al. 2022 (section II), against a release in place of a model: the owner's rows
are the members, rows of other people of the same collection are the others, and Eve, who knows the scheme, ranks both.

Difference: who is a member is drawn once, by the split, and not again for every release; keys are drawn anew.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import torch
from pydantic import JsonValue
from torch import Tensor

from bench.contract import ContractError
from bench.evidence import MembershipEvidence
from bench.measurement import Measurement
from bench.progress import report, stage
from bench.seeds import derive, generator
from bench.types import Attack, Dataset, View
from bench.workbench import Workbench


def run_membership(bench: Workbench, attack: Attack | None) -> Measurement:
    """Fit the attack on Eve's view, then have it score all candidates for every key's release of the private rows.

    Raises:
        NotApplicable: The method publishes no rows, or the attack cannot work on them.
        ContractError: The attack wrote into its view, or gave anything but one finite number a candidate.
    """
    if attack is None:
        raise ValueError("a membership evaluator needs an attack")
    scheme = bench.scheme()
    bench.sealed(scheme, 0)  # a method that releases no rows says so before the attack is fitted
    candidates, members = mixed(bench.private, bench.test, bench.seed("membership candidates"))
    hidden = replace(candidates, subjects=None)
    view = View(bench.public, scheme, hidden, replace(bench.control, subjects=None))
    watched = replace(bench, private=hidden)
    stage("attack")
    start = time.perf_counter()
    attacker = watched.untouched(attack.name, lambda: attack.fit(view, bench.seed("attack", attack.name)))
    fitted = time.perf_counter()
    scores = []
    for number in range(bench.preset.keys):
        release = bench.sealed(scheme, number).release
        stage("score")
        found = watched.untouched(attack.name, partial(attacker.membership, release))
        scores.append(_checked(attack.name, found, len(candidates)))
        report("score", number + 1, bench.preset.keys)
    subjects = None if candidates.subjects is None else candidates.subjects.cpu()
    evidence = MembershipEvidence(scores, members, subjects, bench.seed("membership", attack.name))
    details: dict[str, JsonValue] = {
        "members": len(bench.private),
        "others": len(bench.test),
        "share of members": round(len(bench.private) / len(candidates), 4),
        **attacker.notes(),
    }
    seconds = {"attack": fitted - start, "score": time.perf_counter() - fitted}
    return Measurement({"": evidence}, details, seconds, _knowledge(bench, attack))


def mixed(private: Dataset, others: Dataset, seed: int) -> tuple[Dataset, Tensor]:
    """Members and others as one data set in random order, and which of its rows are members, (n + t,) bool on the CPU.

    Labels are withheld until they are known equally often on both sides (`equally_known`).
    """
    parts = (private, others)
    labels = None
    if private.labels is not None and others.labels is not None:
        shown = private.labels, others.labels
        labels = torch.cat(shown if private.exclusive else equally_known(*shown, seed=derive(seed, "labels")))
    subjects = [part.subjects for part in parts if part.subjects is not None]
    whole = replace(
        private,
        samples=torch.cat([part.samples for part in parts]),
        labels=labels,
        subjects=torch.cat(subjects) if len(subjects) == len(parts) else None,
    )
    order = torch.randperm(len(whole), generator=generator(derive(seed, "order")))
    return whole.take(order.to(whole.samples.device)), order < len(private)


def equally_known(first: Tensor, second: Tensor, *, seed: int) -> tuple[Tensor, Tensor]:
    """Labels (n, k) and (t, k) of which some, chosen at random, are withheld (NaN) so that neither side shows which.

    The owner's labels are balanced by withholding a surplus, those of other rows are not, and balancing both apart
    would still leave more labels on the side that happens to have more cases. In each column, "yes" and "no" therefore
    stay with the same share of the rows of both sides, that of the side where they are rarer, to within a row.

    >>> first, second = equally_known(torch.tensor([[1.0], [0.0]] * 4), torch.tensor([[1.0]] + [[0.0]] * 7), seed=0)
    >>> [[int((labels == value).sum()) for value in (0, 1)] for labels in (first, second)]
    [[4, 1], [4, 1]]
    """
    sides = first.clone(), second.clone()
    for column in range(first.shape[1]):
        for value in (0, 1):
            places = [(side[:, column] == value).nonzero()[:, 0] for side in (first, second)]
            share = min(len(place) / max(1, len(side)) for place, side in zip(places, sides, strict=True))
            for number, (place, side) in enumerate(zip(places, sides, strict=True)):
                order = torch.randperm(len(place), generator=generator(derive(seed, column, value, number)))
                side[place[order[round(share * len(side)) :].to(place.device)], column] = torch.nan
    return sides


def _checked(name: str, scores: object, n: int) -> Tensor:
    """The scores as (n,) float64 on the CPU."""
    if not isinstance(scores, Tensor) or scores.shape != (n,) or not scores.is_floating_point():
        kind = f"{scores.dtype} {tuple(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
        raise ContractError(f"{name} must score {n} candidates, one float32 or float64 number each, got {kind}")
    bad = (~scores.isfinite()).nonzero()
    if len(bad):
        raise ContractError(f"{name} gave {len(bad)} scores that are not finite, the first for candidate {int(bad[0])}")
    return scores.detach().to("cpu", torch.float64)


def _knowledge(bench: Workbench, attack: Attack) -> dict[str, str]:
    """What Eve knows, for the record."""
    n, t = len(bench.private), len(bench.test)
    labelled = bench.private.labels is not None
    return {
        "eve": attack.knowledge,
        "candidates": f"{n} rows of the release's owner among {t} rows of other people, in random order",
        "public": f"{len(bench.public)} rows of {bench.record.public}, with labels",
        "control": f"{len(bench.control)} further rows known not to be the owner's",
        "scheme": "known; she draws her own keys from it, and releases rows of her choice under them",
        "key": f"unknown: scored on {bench.preset.keys} keys that she never saw",
        "labels": "of candidates (withheld equally often on both sides) and of the release" if labelled else "none",
    }
