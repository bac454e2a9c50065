"""The anonymity evaluator: among how many raw rows each one hides, in one release and after a second.

Source: k-anonymity (Sweeney 2002) counts the rows that share a released form, for one release. Owners release again,
though, when people have come and gone; a person who knows that a row is in both releases looks for it among the rows
that share its form in both (the intersection or composition attack: Ganta, Kasiviswanathan and Smith 2008, "Composition
attacks and auxiliary information in data privacy").

Released rows that are equal to the last bit share a form. Labels beside them are not looked at, although they tell a
row that has another one than all that share its form (`attacks.label_linkage`). The second release holds four of five
people of the first at random, and as many rows of control people as have left, all in random order, under the owner's
next key. Rows are counted that stand in both releases; those that the method drops from either are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from pydantic import JsonValue

from bench.contract.seal import check
from bench.evidence import AnonymityEvidence
from bench.progress import stage
from bench.randomness import Secret
from bench.rows.row_sets import distinct, in_order, joined
from bench.types import Dataset, Evaluator, Measurement, NotApplicable
from bench.workbench.workbench import Workbench

STAY = 0.8


@dataclass(frozen=True)
class Anonymity(Evaluator[Workbench]):
    """Among how many raw rows each row hides after one release, and after two."""

    name: ClassVar[str] = "anonymity"
    source: ClassVar[str] = "Sweeney 2002; Ganta, Kasiviswanathan and Smith 2008"
    evidence: ClassVar[type] = AnonymityEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Count who shares a released form with whom, under the first key and again in a later release."""
        scheme, method = bench.scheme(), bench.method.name
        start = time.perf_counter()
        sealed = bench.sealed(scheme, 0)
        first, rows = in_order(sealed.release, sealed.links, bench.private, method)
        form = _forms(first.samples)
        forms = int(form.max()) + 1
        # Rows that were the same before share a form in any deterministic release: nothing hides them.
        if forms == len(rows) or forms == int(_forms(bench.private.samples[rows]).max()) + 1:
            raise NotApplicable(f"no two rows share a released form under {method}, so that there is no set to hide in")
        stage("release again")
        later, number = _later(bench)
        key, watched = bench.key(scheme, 1), replace(bench, private=later)
        release = watched.untouched(method, lambda: key.release(later))
        check(release, later)
        second, found = in_order(release, release.links, later, method)
        place = torch.full((2, len(bench.private)), -1)
        place[0, rows.cpu()] = form
        known = number[found.cpu()]
        place[1, known[known >= 0]] = _forms(second.samples)[known >= 0]
        both = (place >= 0).all(dim=0)
        if not bool(both.any()):
            raise NotApplicable(f"{method} releases too few of the rows: none stands in both releases")
        single = torch.bincount(form)[place[0, both]]
        shared = torch.unique(place[:, both], dim=1, return_inverse=True)[1]
        intersected = torch.bincount(shared)[shared]
        details: dict[str, JsonValue] = {
            "rows in the first release": len(rows),
            "rows in the second release": len(found),
            "rows in both": len(single),
            "rows alone after one release": int((single == 1).sum()),
            "rows alone after two releases": int((intersected == 1).sum()),
        }
        subjects = None if bench.private.subjects is None else bench.private.subjects.cpu()[both]
        evidence = AnonymityEvidence(single, intersected, subjects, bench.seed("anonymity"))
        return Measurement({"": evidence}, details, {"anonymity": time.perf_counter() - start}, {})

    @classmethod
    def samples(cls) -> Iterator[AnonymityEvidence]:
        """Sets of four, with and without people."""
        sizes = torch.full((48,), 4)
        yield AnonymityEvidence(sizes, 1 + torch.arange(48) % 4, torch.arange(48) // 3, 1)
        yield AnonymityEvidence(sizes, sizes, None, 1)


def _forms(samples: torch.Tensor) -> torch.Tensor:
    """(n,) int64 on the CPU: equal numbers for equal rows (n, ...)."""
    return distinct(samples.flatten(1))[1].cpu()


def _later(bench: Workbench) -> tuple[Dataset, torch.Tensor]:
    """The rows of the second release, and each one's number in the first, (n,) int64 on the CPU; -1 for newcomers."""
    stay, left = _by_people(bench.private, STAY, bench.secret("anonymity", "stay"))
    join = _by_people(bench.control, 1.0, bench.secret("anonymity", "join"))[0][: len(left)]
    order = bench.secret("anonymity", "order").stream().permutation(len(stay) + len(join))
    whole = joined(bench.private.take(stay.to(bench.device)), bench.control.take(join.to(bench.device)))
    return whole.take(order.to(bench.device)), torch.cat((stay, torch.full((len(join),), -1)))[order]


def _by_people(data: Dataset, share: float, secret: Secret) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows (int64, CPU) of a share of the people, person by person in random order; and those of the others."""
    n = len(data)
    codes = torch.arange(n) if data.subjects is None else torch.unique(data.subjects.cpu(), return_inverse=True)[1]
    people = int(codes.max()) + 1
    place = secret.stream().permutation(people)[codes]
    rows = place.argsort(stable=True)
    stays = place[rows] < round(share * people)
    return rows[stays], rows[~stays]
