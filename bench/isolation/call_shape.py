"""One form of rows for a third-party method, for every caller.

A method that can tell an owner's call from an attacker's could show each another face: encoded rows to the owner, noise
to Eve. So the judge decides what a call looks like. Rows come in a secret order, which their content alone decides, so
that the same rows are the same call for every caller. Labels and subjects come only if the method declares that it
reads them; then with every call, by content if the caller has none. Eve's calls are completed to the owner's number of
rows by rows of the cell, private ones first: a call with some of the private rows is the owner's call. Secrets are
derived from the run secret. What comes back is put into the caller's order, without the added rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import torch

from bench.contract.seal import ContractError
from bench.memory.rows import in_blocks, rows_at
from bench.randomness import Secret
from bench.rows.row_sets import renumbered
from bench.types import Dataset, Method, NotApplicable, Release

FORM = 2
"""The version of the form of calls, for content keys: figures of other authors' methods follow from it."""
NAME = "rows"
"""The name of every data set that another author's method releases."""
DIGEST_BYTES = 16
UNDECLARED = (
    "it released labels and declares none: a method that reads or encodes labels must say so (uses_labels, "
    "needs_labels, encodes_labels); any other releases none, and the raw ones are added by its links"
)
Labels = Literal["none", "read", "encoded"]
"""A method's use of labels: none; released samples depend on them; or released labels alone."""


class UnlinkedError(Exception):
    """A completed call came back without links, so added rows stay."""


def use_of_labels(method: Method) -> Labels:
    """A method's use of labels, as it declares it."""
    if method.uses_labels or method.needs_labels:
        return "read"
    return "encoded" if method.encodes_labels else "none"


@dataclass(frozen=True, eq=False)
class CellRows:
    """The rows of a cell, which complete an attacker's calls.

    Args:
        private: The owner's rows, as she releases them.
        others: Further rows of the cell, labelled as owners' are.
        secret: Of `CallShape`.
        rows: Number of rows of the owner's calls.
        releases: Most releases that one owner's process makes.
    """

    private: Dataset
    others: Sequence[Dataset]
    secret: Secret
    rows: int
    releases: int

    @cached_property
    def parts(self) -> list[tuple[Dataset, list[bytes]]]:
        """Each part with its rows' digests, private rows first."""
        whole = (self.private, *self.others)
        return [(part, digests(part.samples, self.secret)) for part in whole if len(part)]

    @cached_property
    def places(self) -> dict[bytes, tuple[int, int]]:
        """Part and row by digest; of equal rows the first."""
        found: dict[bytes, tuple[int, int]] = {}
        for number, (_, names) in enumerate(self.parts):
            for row, name in enumerate(names):
                found.setdefault(name, (number, row))
        return found

    def completing(self, given: Sequence[bytes]) -> list[int]:
        """Private rows that complete rows of those digests to the owner's number."""
        missing = self.rows - len(given)
        if missing <= 0:
            return []
        there, free = Counter(given), list[int]()
        for row, name in enumerate(self.parts[0][1]):
            if there[name]:
                there[name] -= 1
            else:
                free.append(row)
        if len(free) == missing:
            return free
        tag = hashlib.blake2b(b"".join(sorted(given)), digest_size=DIGEST_BYTES).hexdigest()
        order = self.secret.stream("completing", tag).permutation(len(free))[:missing]
        return [free[place] for place in order.tolist()]

    def as_owned(self, names: Sequence[bytes]) -> torch.Tensor | None:
        """Private rows in the order of a call.

        None if the call holds others.
        """
        own = self.parts[0][1]
        if len(own) != len(names) or sorted(names) != sorted(own):
            return None
        return torch.tensor(sorted(range(len(own)), key=own.__getitem__), device=self.private.samples.device)

    def known(self, samples: torch.Tensor, names: Sequence[bytes]) -> list[tuple[int, int]]:
        """Part and row of each row; for unknown ones, of the nearest."""
        found = [self.places.get(name) for name in names]
        if unknown := [row for row, at in enumerate(found) if at is None]:
            rows = rows_at(samples, torch.tensor(unknown, device=samples.device))[:].flatten(1)
            best, near = torch.full((len(unknown),), torch.inf), torch.zeros(len(unknown), 2, dtype=torch.int64)
            for number, (part, _) in enumerate(self.parts):
                if part.samples.shape[1:] != samples.shape[1:]:
                    continue
                for span, block in in_blocks(part.samples):
                    distance, row = torch.cdist(rows, block.flatten(1).to(rows)).min(dim=1)
                    closer = distance.cpu() < best
                    best[closer] = distance.cpu()[closer]
                    near[closer] = torch.stack((torch.full_like(row, number), row + span.start), dim=1).cpu()[closer]
            for place, (number, row_there) in zip(unknown, near.tolist(), strict=True):
                found[place] = number, row_there
        return [at for at in found if at is not None]


@dataclass(frozen=True, eq=False)
class Call:
    """Rows as given by a caller and as shown to the method.

    Args:
        given: Rows (n) of the caller.
        shown: Rows (N) that the method gets.
        place: (N,) int64 of each shown row: its number among those given, then among those added.
        labels: The method's use of labels.
    """

    given: Dataset
    shown: Dataset
    place: torch.Tensor
    labels: Labels

    @property
    def added(self) -> int:
        """Rows that complete the call."""
        return len(self.shown) - len(self.given)

    def returned(self, release: Release) -> Release:
        """The release of the rows given, in their order.

        Raises:
            UnlinkedError: Rows were added, and the release has no links.
            NotApplicable: None of the rows given is in the release.
            ContractError: Labels that the method does not declare.
        """
        if self.labels == "none" and release.labels is not None:
            raise ContractError(UNDECLARED)
        if release.links is None:
            if self.added:
                raise UnlinkedError
            return replace(release, labels=self._labels(release.labels))
        links = renumbered(release.links, raw=self.place)
        main = links if release.primary is None else links[release.primary]
        first = torch.full((len(release),), len(self.shown), device=links.device)
        first = first.scatter_reduce(0, main[:, 1], main[:, 0], "amin")
        mine, linked = first < len(self.given), first < len(self.shown)
        order = first.argsort(stable=True)
        if self.added:
            order = order[(mine | ~linked)[order]]
        if not bool(mine.any()):
            raise NotApplicable("none of these rows is in the release")
        row = torch.full((len(release),), -1, device=links.device)
        row[order] = torch.arange(len(order), device=links.device)
        links = renumbered(links, released=row)
        kept = (links[:, 0] < len(self.given)) & (links[:, 1] >= 0)
        sorting = (links[kept][:, 1] * len(self.given) + links[kept][:, 0]).argsort(stable=True)
        links = links[kept][sorting]
        primary = None if release.primary is None else release.primary[kept][sorting]
        here = order.to(release.samples.device)
        labels = None if release.labels is None else release.labels[here]
        made = Release(rows_at(release.samples, here), labels, links, primary, release.generator)
        return replace(made, labels=self._attached(made) if self.labels == "none" else self._labels(labels))

    def _labels(self, released: torch.Tensor | None) -> torch.Tensor | None:
        """Released labels as the caller may see them, in its columns."""
        if released is None or self.given.labels is None:
            return None
        if self.given.findings == self.shown.findings:
            return released
        return None if self.labels == "encoded" else columns(released, self.shown.findings, self.given.findings)

    def _attached(self, release: Release) -> torch.Tensor | None:
        """Raw labels (m, k) by links: means of known ones, else NaN."""
        raw = self.given.labels
        if raw is None or release.links is None:
            return None
        links = release.links if release.primary is None else release.links[release.primary]
        rows, columns_ = links.to(raw.device).T
        known = ~raw[rows].isnan()
        shape = len(release), raw.shape[1]
        total = raw.new_zeros(shape).index_add_(0, columns_, raw[rows].nan_to_num())
        count = raw.new_zeros(shape).index_add_(0, columns_, known.to(raw.dtype))
        return total / count


@dataclass(frozen=True, eq=False)
class CallShape:
    """A method's declarations, and the judge's secret of orders and keys.

    Args:
        secret: Derived from the run secret.
        labels: The method's use of labels.
        subjects: The method reads subjects.
    """

    secret: Secret
    labels: Labels
    subjects: bool
    _last: list[tuple[bytes, Dataset]] = field(default_factory=list)

    @classmethod
    def of(cls, method: Method, run_secret: Secret) -> CallShape:
        """The shape of a method's calls, by its declarations."""
        return cls(run_secret.derive("calls of methods"), use_of_labels(method), method.uses_subjects)

    def key_secret(self, secret: Secret) -> Secret:
        """The secret that the method gets in place of the caller's."""
        return self.secret.derive("key", secret.content.hex())

    def call(self, given: Dataset, cell: CellRows | None = None) -> Call:
        """The call for rows, completed by rows of a cell if given."""
        if cell is not None and given.samples.dtype != (kind := cell.private.samples.dtype):
            given = replace(given, samples=given.samples[:].to(kind))
        names = digests(given.samples, self.secret)
        if cell is not None and cell.private.samples.shape[1:] != given.samples.shape[1:]:
            cell = None
        added = [] if cell is None else cell.completing(names)
        rows, owner = given, given if cell is None else cell.private
        labels = self._labels(given, names, owner, cell)
        subjects = self._subjects(given, names, cell)
        samples = given.samples
        if cell is not None and added:
            rows = cell.private.take(torch.tensor(added, device=cell.private.samples.device))
            names = [*names, *(cell.parts[0][1][row] for row in added)]
            samples = torch.cat((samples, rows.samples))
            labels = None if labels is None or rows.labels is None else torch.cat((labels, rows.labels))
            if subjects is not None and rows.subjects is not None:
                subjects = torch.cat((subjects, rows.subjects))
        order = sorted(range(len(names)), key=lambda row: (names[row], _bytes(labels, row)))
        place = torch.tensor(order, dtype=torch.int64)
        here = place.to(samples.device)
        if cell is not None and (same := cell.as_owned(names)) is not None:
            samples, here = cell.private.samples, same  # the tensor itself, in whatever form it is kept
        shown = Dataset(
            NAME, samples, None if labels is None else labels[place.to(labels.device)],
            None if subjects is None else _by_appearance(subjects[place.to(subjects.device)]),
            () if labels is None else owner.findings, labels is not None and owner.exclusive, False,
        )  # fmt: skip
        return Call(given, self._once(shown, sorted(names), here), place, self.labels)

    def _once(self, shown: Dataset, names: Sequence[bytes], order: torch.Tensor) -> Dataset:
        """The rows in order; the last call's data set if equal."""
        tag = hashlib.blake2b(b"".join(names))
        for part in (shown.labels, shown.subjects):
            tag.update(b"-" if part is None else part.cpu().contiguous().view(torch.uint8).numpy().tobytes())
        tag.update(repr((shown.findings, str(shown.samples.dtype), tuple(shown.samples.shape))).encode())
        if not self._last or self._last[0][0] != tag.digest():
            self._last[:] = [(tag.digest(), replace(shown, samples=rows_at(shown.samples, order)))]
        return self._last[0][1]

    def _labels(
        self, given: Dataset, names: Sequence[bytes], owner: Dataset, cell: CellRows | None
    ) -> torch.Tensor | None:
        """Labels (n, k) in the owner's columns: the caller's, else true ones."""
        if self.labels == "none" or owner.labels is None:
            return None
        if given.labels is not None:
            return columns(given.labels, given.findings, owner.findings)
        assert cell is not None  # the owner of a call without a cell is its caller
        by_part = [
            None if part.labels is None else columns(part.labels, part.findings, owner.findings)
            for part, _ in cell.parts
        ]
        unknown = owner.labels.new_full((len(owner.findings),), torch.nan)
        rows = [unknown if (known := by_part[part]) is None else known[row]
                for part, row in cell.known(given.samples, names)]  # fmt: skip
        return torch.stack(rows).to(given.samples.device)

    def _subjects(self, given: Dataset, names: Sequence[bytes], cell: CellRows | None) -> torch.Tensor | None:
        """Subjects (n,) of rows: the caller's, else those of the cell."""
        if not self.subjects or cell is None:
            return given.subjects if self.subjects else None
        if cell.private.subjects is None:
            return None
        if given.subjects is not None:
            return given.subjects
        numbers = []
        for row, (part, place) in enumerate(cell.known(given.samples, names)):
            subjects = cell.parts[part][0].subjects
            numbers.append(-1 - row if subjects is None else int(subjects[place]))
        return torch.tensor(numbers, device=given.samples.device)


def digests(samples: torch.Tensor, secret: Secret) -> list[bytes]:
    """Keyed digest of each row (n, ...): equal for equal rows."""
    found = list[bytes]()
    for _, block in in_blocks(samples):
        rows = (block.detach().cpu() + 0.0).contiguous()  # -0 becomes 0
        found += [
            hashlib.blake2b(row.numpy().data, digest_size=DIGEST_BYTES, key=secret.content).digest() for row in rows
        ]
    return found


def columns(labels: torch.Tensor, named: Sequence[str], wanted: Sequence[str]) -> torch.Tensor:
    """Labels (n, k) in other columns, by finding; NaN if unknown."""
    if tuple(named) == tuple(wanted):
        return labels
    found = labels.new_full((len(labels), len(wanted)), torch.nan)
    for place, name in enumerate(wanted):
        if name in named:
            found[:, place] = labels[:, list(named).index(name)]
    return found


def _by_appearance(subjects: torch.Tensor) -> torch.Tensor:
    """Subjects renumbered in the order in which they appear."""
    numbers: dict[int, int] = {}
    return torch.tensor([numbers.setdefault(subject, len(numbers)) for subject in subjects.tolist()]).to(subjects)


def _bytes(labels: torch.Tensor | None, row: int) -> bytes:
    return b"" if labels is None else labels[row].cpu().numpy().tobytes()
