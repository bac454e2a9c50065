"""Results folders joined into one: records, artefacts, plans, and the journal's data."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import yaml

from bench.data.yaml_text import YamlError
from bench.exchange.disclosed_secrets import is_under, keep_cell_secrets, secret_of_cell, with_people
from bench.exchange.foreign_folder import ArtefactFolder, RecordFile, artefact_folders, record_files
from bench.plugins.spec import UsageError
from bench.results import run_secret
from bench.results.journal import AlteredWarning, Journal
from bench.results.records import NewerRecordError, Record, RecordError, is_no_past_time
from bench.results.results import Results, cell_and_evaluator
from bench.results.run_secret import RunSecret
from bench.results.signed_json import AlteredError
from bench.runs.plan import parsed_plan
from bench.workbench.inputs import COMMITMENT, population

Prefer = Literal["newest", "first"]


@dataclass(frozen=True)
class Offer:
    """A record that could be copied into a folder.

    Args:
        file: The record's file.
        digest, key, created, status: As in the record.
        secret: The commitment of its run secret.
        before: The digest of the record that it replaces; None if there is none.
    """

    file: RecordFile = field(compare=False)
    digest: str
    key: str
    created: str
    status: str
    secret: str
    before: str | None = None

    @classmethod
    def of(cls, record: Record, file: RecordFile) -> Offer:
        """The offer of a record that was read from a file."""
        secret = str(record.inputs.get(COMMITMENT))
        return cls(file, str(record.digest), record.key, record.created, record.status, secret)

    @property
    def date(self) -> datetime:
        """When the record was made. Raises RecordError."""
        try:
            date = datetime.fromisoformat(self.created)
            return date if date.tzinfo else datetime.fromisoformat(f"{self.created}+00:00")
        except ValueError as error:
            raise RecordError(f"{self} says no date: --prefer first takes the first") from error

    def __str__(self) -> str:
        return f"{self.digest[:12]} ({self.status}, {self.created}, in {self.file.results.root})"


def merge(
    sources: Sequence[Results], into: Results, *, prefer: Prefer | None = None, secret_of: Results | None = None
) -> Outcomes:
    """Join results folders. Nothing in the sources is changed.

    If `into` trusts only some signers, artefacts, plans, notes of data and run secrets, which carry no signature,
    are left out: keys, noise and row orders are drawn from the run secret. `secret_of` is the exception. Otherwise
    records come with the secret of their cell, and `bench run` goes on in these cells under it.

    Args:
        sources: In order for `prefer="first"`.
        into: The folder that receives them; its own records come first.
        prefer: The choice between different records of one name; None refuses all of them.
        secret_of: The folder whose run secret is taken, if `into` has none. By default that of the sources if they all
            have the same, and `into` does not trust some signers only.

    Raises:
        UsageError: A source is no results folder, or overlaps with `into`; or `into` has another run secret than
            `secret_of`.
    """
    sources = [replace(source, trusted=source.trusted if into.trusted is None else into.trusted) for source in sources]
    _check(sources, into)
    outcomes, signed = Outcomes(), into.trusted is not None
    if (choice := _secret([] if signed else sources, into, secret_of)) is not None:
        into.keep_secret(choice[1])
        outcomes.notes.append(f"keys and noise of later runs are drawn from the run secret of {choice[0].root}")
    offers = copy_records(into, _offers(sources, into, outcomes), prefer, outcomes)
    if not signed:
        _bring_secrets(into, offers)
    for source in sources if not signed else ():
        for artefact in artefact_folders(source):
            copy_artefact(artefact, into, outcomes)
        _merge_data(source.journal, into.journal, outcomes)
        _merge_plans(source, into.journal, outcomes)
    outcomes.notes += _secret_notes(into, offers)
    return outcomes


def copy_records(into: Results, offers: Iterable[Offer], prefer: Prefer | None, outcomes: Outcomes) -> list[Offer]:
    """Copy records into a folder, one of each name.

    Args:
        into: The folder; its own records come first.
        offers: In order for `prefer="first"`.
        prefer: The choice between different records of one name; None refuses all of them.
        outcomes: Receives the outcomes.

    Returns:
        The records that were chosen.
    """
    selection: list[Offer] = []
    by_name: dict[str, list[Offer]] = {}
    for offer in offers:
        by_name.setdefault(offer.file.name, []).append(offer)
    for name, candidates in sorted(by_name.items()):
        try:
            present = _present(into, name)
            best = _best([*present, *candidates], prefer)
        except RecordError as error:
            outcomes.add("record", name, "refused", str(error))
            continue
        for offer in candidates:
            if offer.digest != best.digest:
                reason = f"another record of that name is preferred (--prefer {prefer})"
                outcomes.add("record", name, "stays", reason)
            elif offer is not best:
                outcomes.add("record", name, "present")
        if best not in present:
            selection.append(replace(best, before=present[0].digest if present else None))
    for offer in selection:
        _copy_record(into, offer, outcomes)
    return selection


def copy_artefact(artefact: ArtefactFolder, into: Results, outcomes: Outcomes) -> None:
    """Copy an intact artefact into a folder."""
    try:
        artefact.check()
        outcomes.add(artefact.kind, artefact.name, "copied" if artefact.copy_into(into) else "present")
    except (AlteredError, OSError) as error:
        outcomes.add(artefact.kind, artefact.name, "refused", f"in {artefact.root.parent}: {error}")


def _check(sources: Sequence[Results], into: Results) -> None:
    if into.root.exists() and not into.root.is_dir():
        raise UsageError(f"expected a folder to join results in, got the file {into.root}")
    for source in sources:
        if not source.begun:
            raise UsageError(f"expected a results folder, got {source.root}: it has neither cells nor artefacts")
        if source.root == into.root or source.root in into.root.parents or into.root in source.root.parents:
            raise UsageError(f"{source.root} and {into.root} must be folders apart")


def _secret(
    sources: Sequence[Results], into: Results, secret_of: Results | None
) -> tuple[Results, RunSecret] | None:  # fmt: skip
    """The joined folder's run secret and its origin; None for its own."""
    if secret_of is not None:
        if (secret := run_secret.kept(secret_of.secret_file)) is None:
            raise UsageError(f"there is no run secret in {secret_of.root}")
        return secret_of, secret  # `keep_secret` refuses it if the folder has another
    if into.commitment is not None:
        return None
    secrets = [(source, secret) for source in sources if (secret := run_secret.kept(source.secret_file)) is not None]
    return secrets[0] if len({secret for _, secret in secrets}) == 1 else None


def _bring_secrets(into: Results, offers: Iterable[Offer]) -> None:
    """Keep the secrets of cells from other run secrets."""
    for cell, offer in {cell_and_evaluator(offer.file.name)[0]: offer for offer in offers}.items():
        with suppress(RecordError, OSError):  # a run has replaced it meanwhile
            record = into.record(cell, cell_and_evaluator(offer.file.name)[1])
            secret = secret_of_cell(offer.file.results, record)
            if secret is not None and secret_of_cell(into, record) != secret:
                keep_cell_secrets(into, [record], with_people({cell: secret}, offer.file.results, record))


def _offers(sources: Sequence[Results], into: Results, outcomes: Outcomes) -> Iterator[Offer]:
    people = _People()
    for _, found in into.records():
        if isinstance(found, Record):
            people.agree(found)
    for source in sources:
        for file in record_files(source):
            try:
                record = file.read().record
                if is_no_past_time(record.created):
                    raise RecordError(
                        f"it says that it was made at {record.created!a:.40}, which is no time of the past"
                    )
                people.check(record)
                yield Offer.of(record, file)
            except RecordError as error:
                outcomes.add("record", file.name, "refused", f"in {source.root}: {error}")


class _People:
    """Drawn people of a folder's records, by data set."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def agree(self, record: Record) -> bool:
        """False if the record speaks of other people than one before."""
        found = population(record)
        return found is None or self._known.setdefault(*found) == found[1]

    def check(self, record: Record) -> None:
        """Raise RecordError if it does."""
        if not self.agree(record):
            raise RecordError(
                f"another run secret drew the people of {record.choice['dataset']} than those of other records: keep "
                f"these results in folders apart, or measure under one secret (--secret)"
            )


def _present(into: Results, name: str) -> list[Offer]:
    """The record of that name in the folder, if there is one."""
    try:
        return [Offer.of(into.record(*cell_and_evaluator(name)), RecordFile(into, name))]
    except FileNotFoundError:
        return []
    except (RecordError, OSError) as error:
        kind = "of a later version" if isinstance(error, NewerRecordError) else "refused; take it out, or mend it"
        raise RecordError(f"the record of that name in {into.root} is {kind}: {error}") from error


def _best(candidates: Sequence[Offer], prefer: Prefer | None) -> Offer:
    """The record to take. Raises RecordError if none can be chosen."""
    different = list({offer.digest: offer for offer in reversed(candidates)}.values())[::-1]
    if len(different) == 1 or prefer == "first":
        return candidates[0]
    listed = " and ".join(map(str, different))
    if prefer is None:
        same = "the same key" if len({offer.key for offer in different}) == 1 else "different keys"
        raise RecordError(f"different records of one name, under {same}: {listed}; --prefer newest or first takes one")
    newest, second = sorted(different, key=lambda offer: offer.date, reverse=True)[:2]
    if newest.date == second.date:
        raise RecordError(f"different records of one name, and none is the newest: {listed}; --prefer first takes one")
    return next(offer for offer in candidates if offer.digest == newest.digest)


def _copy_record(into: Results, offer: Offer, outcomes: Outcomes) -> None:
    name = offer.file.name
    try:
        content = offer.file.read()
        if content.record.digest != offer.digest:
            raise RecordError("it changed while it was read")
        stored = into.adopt(content.record, content.pictures, evidence=content.evidence, before=offer.before)
    except (RecordError, OSError, ValueError) as error:
        outcomes.add("record", name, "refused", f"in {offer.file.results.root}: {error}")
        return
    if stored.digest == offer.digest:
        outcomes.add("record", name, "copied")
    else:
        outcomes.add("record", name, "stays", "a run wrote a record of that name meanwhile")


def _secret_notes(into: Results, offers: Iterable[Offer]) -> Iterator[str]:
    """A remark about records whose secret is not in the folder."""
    foreign = 0
    for offer in offers:
        with suppress(RecordError, OSError):
            record = into.record(*cell_and_evaluator(offer.file.name))
            foreign += record.dataset is not None and not is_under(into, record)
    if foreign:
        yield (f"{foreign} records were made under secrets that are not in {into.root}: `bench run` takes them as "
               "done, and measures a row of them again, all of it, if asked for more of it")  # fmt: skip


def _merge_data(source: Journal, into: Journal, outcomes: Outcomes) -> None:
    for key in source.data_keys():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AlteredWarning)
            data = source.data(key)
        outcomes.notes += [str(warning.message) for warning in caught]
        if data is not None and into.data(key) is None:
            into.keep_data(key, data)


def _merge_plans(source: Results, into: Journal, outcomes: Outcomes) -> None:
    for cell in source.journal.plans():
        try:
            new, old = source.journal.plan(cell), into.plan(cell)
            if new is not None and new != old:
                into.keep_plan(cell, _joined_plan(old, new), old)
        except (RecordError, YamlError, OSError) as error:
            outcomes.add("plan", cell, "refused", f"in {source.root}: {error}")


def _joined_plan(old: str | None, new: str) -> str:
    """Two plans of one cell as one; the old plan wins conflicts."""
    after = parsed_plan(new)
    if old is None:
        return new
    before = parsed_plan(old)
    evaluators = {entry["name"]: entry for entry in (*after["evaluators"], *before["evaluators"])}
    return yaml.safe_dump({**before, "evaluators": [*evaluators.values()]}, sort_keys=True)


Fate = Literal["copied", "present", "stays", "refused"]


@dataclass(frozen=True)
class Outcome:
    """The outcome for one record, artefact or plan.

    Args:
        kind: `record`, `plan`, or the artefact's kind.
        name: Its file or folder.
        fate: Copied; present before; stays where it is; or refused.
        reason: Why it stays or is refused; empty otherwise.
    """

    kind: str
    name: str
    fate: Fate
    reason: str = ""


@dataclass
class Outcomes:
    """All outcomes of a command.

    Args:
        all: In order.
        notes: Other remarks for the user.
    """

    all: list[Outcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, kind: str, name: str, fate: Fate, reason: str = "") -> None:
        """Add one."""
        self.all.append(Outcome(kind, name, fate, reason))

    def count(self, fate: Fate) -> int:
        """The number of outcomes with that fate."""
        return sum(outcome.fate == fate for outcome in self.all)

    def summary(self, fate: Fate) -> str:
        """The number of each kind, as `3 records, 2 schemes`."""
        counts = Counter(outcome.kind.removesuffix("s") for outcome in self.all if outcome.fate == fate)
        return ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in sorted(counts.items())) or "nothing"

    def reasons(self, fate: Fate) -> list[str]:
        """One line per reason: the first name and the number of others."""
        names: dict[str, list[str]] = {}
        for outcome in self.all:
            if outcome.fate == fate:
                names.setdefault(outcome.reason, []).append(outcome.name)
        return [
            f"{first}{f' and {len(others)} more' if others else ''}: {reason}"
            for reason, (first, *others) in names.items()
        ]
