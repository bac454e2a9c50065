"""The membership evaluator: Eve says of each candidate how likely it was among the rows that a release was made from.

Source: the membership game of Carlini et al. 2022 (section II), against a release in place of a model: the owner's rows
are the members, rows of other people of the same collection are the others, and Eve, who knows the scheme, ranks both.

Difference: who is a member is drawn once, by the split, and not again for every release; keys are drawn anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import torch
from pydantic import JsonValue
from torch import Tensor

from bench.contract.preset import Preset
from bench.contract.seal import ContractError
from bench.evidence import MembershipEvidence
from bench.progress import report, stage
from bench.randomness import Secret
from bench.rows.joined import joined
from bench.seeds import generator
from bench.types import Attack, Dataset, Evaluator, Measurement, Role, View
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Membership(Evaluator[Workbench]):
    """Who was in the private data at all: Eve scores candidates, half of whom were not.

    Args:
        attack: What Eve does.
    """

    name: ClassVar[str] = "membership"
    source: ClassVar[str] = "Carlini et al. 2022, section II"
    evidence: ClassVar[type] = MembershipEvidence
    scores: ClassVar[Literal["pairs", "membership"] | None] = "membership"
    controls: ClassVar[tuple[Role, ...] | None] = "remembers its rows", "forgets its rows"
    attack: Attack

    def keys(self, preset: Preset) -> int:
        """As many as the preset says."""
        return preset.keys

    def measure(self, bench: Workbench) -> Measurement:
        """Fit the attack on Eve's view, then have it score all candidates for every key's release of the private rows.

        Raises:
            NotApplicable: The method publishes no rows, or the attack cannot work on them.
            ContractError: The attack wrote into its view, or gave anything but one finite number a candidate.
        """
        attack = self.attack
        scheme = bench.scheme()
        bench.sealed(scheme, 0)  # a method that releases no rows says so before the attack is fitted
        candidates, members = mixed(
            bench.private, bench.test, bench.secret("membership candidates"), natural=bench.natural
        )
        hidden = candidates.nameless()
        view = View(bench.public, scheme, hidden, bench.control.nameless())
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

    @classmethod
    def samples(cls) -> Iterator[MembershipEvidence]:
        """Random scores, scores that are all alike, and scores that tell every member."""
        subjects = torch.arange(48) // 3
        members = subjects % 4 != 0
        random = generator(0)
        yield MembershipEvidence([torch.rand(48, generator=random).double() for _ in range(2)], members, subjects, 1)
        yield MembershipEvidence([torch.zeros(48, dtype=torch.float64)], members, None, 1)
        yield MembershipEvidence([members.double()], members, subjects, 1)


def mixed(
    private: Dataset, others: Dataset, secret: Secret, *, natural: Tensor | None = None
) -> tuple[Dataset, Tensor]:
    """Members and others as one data set in random order, and which of its rows are members, (n + t,) bool on the CPU.

    `natural` are the members' labels before a surplus was withheld; then the others' are withheld in the same way
    (`withheld_alike`). None where none was withheld.
    """
    if natural is not None and private.labels is not None and others.labels is not None:
        shown = withheld_alike(natural, private.labels, others.labels, secret=secret.derive("labels"))
        others = replace(others, labels=shown)
    whole = joined(private, others)
    order = secret.stream("order").permutation(len(whole))
    return whole.take(order.to(whole.samples.device)), order < len(private)


def withheld_alike(natural: Tensor, shown: Tensor, others: Tensor, *, secret: Secret) -> Tensor:
    """Labels (t, k) of other rows, of which as large a share is withheld (NaN), at random, as of the owner's own.

    For each column and value apart: a row whose label is withheld may show in its image what the label was, so that a
    value that is withheld more often on one side would tell that side.

    Args:
        natural, shown: (n, k) labels of the owner's rows, before and after some were withheld.
        others: (t, k).
        secret: Decides which labels are withheld.

    >>> natural, shown = torch.tensor([[1.0], [0.0], [0.0]]), torch.tensor([[1.0], [0.0], [float("nan")]])
    >>> found = withheld_alike(natural, shown, torch.tensor([[1.0]] * 3 + [[0.0]] * 4), secret=Secret.of_seed(0))
    >>> int((found == 1).sum()), int((found == 0).sum())
    (3, 2)
    """
    found = others.clone()
    for column in range(others.shape[1]):
        for value in (0, 1):
            had, kept = (int((labels[:, column] == value).sum()) for labels in (natural, shown))
            place = (others[:, column] == value).nonzero()[:, 0]
            order = secret.stream(column, value).permutation(len(place))
            most = round(len(place) * kept / had) if had else len(place)
            found[place[order[most:].to(place.device)], column] = torch.nan
    return found


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
        "labels": "of candidates (the others' withheld as often as the owner's) and of the release"
        if labelled
        else "none",
    }
