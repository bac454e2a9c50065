"""The anonymity evaluator: anonymity set sizes in one release and in two.

Source: k-anonymity (Sweeney 2002) counts the rows that share a released form in one release. Owners release again when
people have come and gone; an attacker who knows that a row is in both releases looks for it among the rows that share
its form in both (intersection or composition attack: Ganta, Kasiviswanathan and Smith 2008, "Composition attacks and
auxiliary information in data privacy").

Released rows equal to the last bit share a form. Labels are ignored, although a label that is unique among the rows of
a form identifies its row (`attacks.re_clustering`). The second release holds a random 80 % of the people of the first,
and as many control rows as rows that left, in random order, under the owner's next key. Only rows in both releases are
counted. The details of the first release count the different people, and different images, behind each form: a form of
k rows may be of one person, or of copies of one image.
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
from bench.rows.row_sets import different_behind, distinct, in_order, joined, people_and_contents
from bench.types import Dataset, Evaluator, Measurement, NotApplicable
from bench.workbench.workbench import Workbench

STAY = 0.8


@dataclass(frozen=True)
class Anonymity(Evaluator[Workbench]):
    """Anonymity set of each row after one release, and after two."""

    name: ClassVar[str] = "anonymity"
    source: ClassVar[str] = "Sweeney 2002; Ganta, Kasiviswanathan and Smith 2008"
    evidence: ClassVar[type] = AnonymityEvidence

    def measure(self, bench: Workbench) -> Measurement:
        """Count rows that share a released form in two releases."""
        scheme, method = bench.scheme(), bench.method.name
        start = time.perf_counter()
        sealed = bench.sealed(scheme, 0)
        first, rows = in_order(sealed.release, sealed.links, bench.private, method)
        form = _forms(first.samples)
        forms = int(form.max()) + 1
        # Equal raw rows share a form in any deterministic release.
        if forms == len(rows) or forms == int(_forms(bench.private.samples[rows]).max()) + 1:
            raise NotApplicable(f"no two rows share a released form under {method}, so that there is no set to hide in")
        stage("release again")
        later, number = _later(bench)
        key, watched = bench.key(scheme, 1), replace(bench, private=later)
        release = watched.untouched(method, lambda: key.release(later))
        check(release, later)
        second, second_rows = in_order(release, release.links, later, method)
        forms_of = torch.full((2, len(bench.private)), -1)
        forms_of[0, rows.cpu()] = form
        first_row = number[second_rows.cpu()]
        forms_of[1, first_row[first_row >= 0]] = _forms(second.samples)[first_row >= 0]
        in_both = (forms_of >= 0).all(dim=0)
        if not bool(in_both.any()):
            raise NotApplicable(f"{method} releases too few of the rows: none stands in both releases")
        single = torch.bincount(form)[forms_of[0, in_both]]
        shared = torch.unique(forms_of[:, in_both], dim=1, return_inverse=True)[1]
        intersected = torch.bincount(shared)[shared]
        people, contents = (of[rows.cpu()] for of in people_and_contents(bench.private))
        people_behind, images_behind = different_behind(form, people, contents)
        details: dict[str, JsonValue] = {
            "fewest people behind a form": int(people_behind.min()),
            "fewest different images behind a form": int(images_behind.min()),
            "rows in the first release": len(rows),
            "rows in the second release": len(second_rows),
            "rows in both": len(single),
            "rows alone after one release": int((single == 1).sum()),
            "rows alone after two releases": int((intersected == 1).sum()),
        }
        subjects = None if bench.private.subjects is None else bench.private.subjects.cpu()[in_both]
        evidence = AnonymityEvidence(single, intersected, subjects, bench.seed("anonymity"))
        return Measurement({"": evidence}, details, {"anonymity": time.perf_counter() - start}, {})

    @classmethod
    def samples(cls) -> Iterator[AnonymityEvidence]:
        """Sets of four, with and without people."""
        sizes = torch.full((48,), 4)
        yield AnonymityEvidence(sizes, 1 + torch.arange(48) % 4, torch.arange(48) // 3, 1)
        yield AnonymityEvidence(sizes, sizes, None, 1)


def _forms(samples: torch.Tensor) -> torch.Tensor:
    """Form numbers (n,) int64 on the CPU, equal for equal rows."""
    return distinct(samples.flatten(1))[1].cpu()


def _later(bench: Workbench) -> tuple[Dataset, torch.Tensor]:
    """Rows of the second release; their numbers in the first, or -1."""
    stay, left = _by_people(bench.private, STAY, bench.secret("anonymity", "stay"))
    join = _by_people(bench.control, 1.0, bench.secret("anonymity", "join"))[0][: len(left)]
    order = bench.secret("anonymity", "order").stream().permutation(len(stay) + len(join))
    whole = joined(bench.private.take(stay.to(bench.device)), bench.control.take(join.to(bench.device)))
    return whole.take(order.to(bench.device)), torch.cat((stay, torch.full((len(join),), -1)))[order]


def _by_people(data: Dataset, share: float, secret: Secret) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of a share of the people, shuffled; and the rest."""
    n = len(data)
    codes = torch.arange(n) if data.subjects is None else torch.unique(data.subjects.cpu(), return_inverse=True)[1]
    people = int(codes.max()) + 1
    place = secret.stream().permutation(people)[codes]
    rows = place.argsort(stable=True)
    stays = place[rows] < round(share * people)
    return rows[stays], rows[~stays]
