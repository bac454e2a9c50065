"""Records that ask for one place: the same one once; of different ones, none, or the one that the user prefers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from bench.results.records import NewerRecordError, Record, RecordError, dumps, loads
from bench.results.results import Results, cell_and_evaluator, stem
from bench.transfer.record_file import fit, picked
from bench.transfer.tally import Outcome
from bench.workbench.inputs import COMMITMENT

Prefer = Literal["newest", "first"]
Load = Callable[[], tuple[Record, Mapping[str, bytes]]]


@dataclass(frozen=True)
class Offer:
    """A record that could be brought into a results folder.

    Args:
        name: The file that it would be there.
        where: Where it lies, for messages.
        digest, key, created, status: As the record has them.
        secret: The commitment of its run secret.
        load: Reads the record, and what belongs to it by its hash.
        before: The digest of the record that it replaces; None where there is none.
    """

    name: str
    where: str
    digest: str
    key: str
    created: str
    status: str
    secret: str
    load: Load = field(repr=False, compare=False)
    before: str | None = None

    def __str__(self) -> str:
        return f"{self.digest[:12]} ({self.status}, {self.created}, in {self.where})"


def offer(record: Record, where: str, load: Load) -> Offer:
    """What a record offers."""
    return Offer(
        name=f"{stem(record)}.json", where=where, digest=str(record.digest), key=record.key,
        created=record.created, status=record.status, secret=str(record.inputs.get(COMMITMENT)), load=load,
    )  # fmt: skip


def chosen(into: Results, offers: Iterable[Offer], prefer: Prefer | None) -> tuple[list[Offer], list[Outcome]]:
    """What is to be brought into a folder, and what became of the others.

    Args:
        into: The folder; what is there comes first.
        offers: In order, where `first` is preferred.
        prefer: Which of different records of one name is taken; None refuses them all.
    """
    wanted: list[Offer] = []
    settled: list[Outcome] = []
    by_name: dict[str, list[Offer]] = {}
    for each in offers:
        by_name.setdefault(each.name, []).append(each)
    for name, asking in sorted(by_name.items()):
        try:
            here = _here(into, name)
            best = _best([*here, *asking], prefer)
        except RecordError as error:
            settled += [Outcome("record", name, "refused", str(error))]
            continue
        settled += [
            Outcome("record", name, "there")
            if each.digest == best.digest
            else Outcome("record", name, "stays", f"another record of that name is preferred (--prefer {prefer})")
            for each in asking
            if each is not best
        ]
        if best not in here:
            wanted.append(replace(best, before=here[0].digest if here else None))
    return wanted, settled


def bring(into: Results, asking: Offer) -> Outcome:
    """Write an offered record, and what belongs to it."""
    try:
        record, beside = asking.load()
        fit(record)
        text = dumps(record)
        if loads(text, asking.name, into.trusted).digest != asking.digest:
            raise RecordError("it changed while it was read")
        pictures, evidence = picked(record, beside)
        there = into.adopt(record, pictures, evidence=evidence, before=asking.before)
    except (RecordError, OSError, ValueError) as error:
        return Outcome("record", asking.name, "refused", f"in {asking.where}: {error}")
    if there.digest != asking.digest:
        return Outcome("record", asking.name, "stays", "a run put a record of that name there meanwhile")
    return Outcome("record", asking.name, "moved", size=len(text) + sum(map(len, beside.values())))


def strangers(into: Results, offers: Iterable[Offer]) -> list[str]:
    """What should be known of records that were made under another run secret than the folder's, in words."""
    kept = into.commitment
    others = Counter(each.secret for each in offers if each.secret != kept)
    if not others:
        return []
    count = sum(others.values())
    if kept is None:
        return [
            f"there is no run secret in {into.root}: to go on with these records, start the next run with the one that "
            "they were made under, `bench run --secret FILE`; under a fresh one they are measured again"
        ]
    return [
        f"{count} records were made under another run secret than that of {into.root}: they are read, verified and "
        "shown as they are, `bench run` measures them again where it is asked for them, and `bench submit` refuses a "
        "folder with both"
    ]


def _here(into: Results, name: str) -> list[Offer]:
    cell, evaluator = cell_and_evaluator(name)
    try:
        record = into.record(cell, evaluator)
    except FileNotFoundError:
        return []
    except (RecordError, OSError) as error:
        kind = "of a later version" if isinstance(error, NewerRecordError) else "refused; take it out, or mend it"
        raise RecordError(f"what is here under that name is {kind}: {error}") from error
    return [offer(record, str(Path(into.root)), lambda: (record, {}))]


def _best(asking: Sequence[Offer], prefer: Prefer | None) -> Offer:
    """Which of them is taken. Raises RecordError where that cannot be said."""
    different = list({each.digest: each for each in reversed(asking)}.values())[::-1]
    if len(different) == 1 or prefer == "first":
        return asking[0]
    told = " and ".join(map(str, different))
    if prefer is None:
        same = "the same key" if len({each.key for each in different}) == 1 else "different keys"
        raise RecordError(f"different records of one name, under {same}: {told}; --prefer newest or first takes one")
    dated = sorted(different, key=_date, reverse=True)
    if _date(dated[0]) == _date(dated[1]):
        raise RecordError(
            f"different records of one name, and none is the newest: {told}; --prefer first takes the first"
        )
    return next(each for each in asking if each.digest == dated[0].digest)


def _date(asking: Offer) -> datetime:
    try:
        found = datetime.fromisoformat(asking.created)
        return found if found.tzinfo else datetime.fromisoformat(f"{asking.created}+00:00")
    except ValueError as error:
        raise RecordError(f"{asking} says no date: --prefer first takes the first") from error
