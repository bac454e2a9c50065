"""Results folders joined into one: records, artefacts, plans and what choices of data came to."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import yaml

from bench.data.yaml_text import YamlError
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import run_secret
from bench.results.journal import AlteredWarning, Journal
from bench.results.records import RecordError
from bench.results.results import RECORDS, Results
from bench.results.signed_json import AlteredError
from bench.results.storage import Folder
from bench.runs.plan import parsed_plan
from bench.transfer.artefact_folder import artefacts
from bench.transfer.offer import Offer, Prefer, bring, chosen, offer, strangers
from bench.transfer.push import Step
from bench.transfer.record_file import RecordFile
from bench.transfer.tally import Fate, Outcome, Tally


def merge(
    sources: Sequence[Results], into: Results, *, prefer: Prefer | None, secret_of: Results | None, step: Step
) -> Tally:
    """Join results folders.

    Where `into` takes signed records alone, nothing else is taken, for nobody signs it: no artefact, plan or note of
    data, and no run secret but that of `secret_of`, since keys, noise and orders are drawn from it.

    Args:
        sources: In order, where `first` is preferred. Nothing in them is changed.
        into: The folder to join them in; what is there comes first.
        prefer: Which of different records of one name is taken; None refuses them all.
        secret_of: Whose run secret the joined folder has, where it has none and those of the sources differ, or it
            takes signed records alone.
        step: Told how far it is.

    Raises:
        UsageError: A source is no results folder, or is the joined one; or run secrets differ and none was chosen.
    """
    _check(sources, into)
    tally, signed = Tally(), into.trusted is not None
    if (found := _secret([] if signed else sources, into, secret_of)) is not None:
        into.keep_secret(found[1])
        tally.notes.append(f"the run secret, of which keys and noise are drawn, is that of {found[0].root}")
    offers = list(_offers(sources, tally))
    wanted, settled = chosen(into, offers, prefer)
    for outcome in settled:
        tally.add(outcome)
    folders = [each for source in sources for each in artefacts(source.store.root) if not signed]
    total = len(wanted) + len(folders)
    for through, asking in enumerate(wanted, start=1):
        tally.add(bring(into, asking))
        step(through, total)
    for through, folder in enumerate(folders, start=len(wanted) + 1):
        try:
            if fault := folder.fault():
                raise AlteredError(fault)
            fate: Fate = "moved" if folder.put_into(into) else "there"
            tally.add(Outcome(folder.kind, folder.name, fate))
        except (AlteredError, OSError) as error:
            tally.add(Outcome(folder.kind, folder.name, "refused", f"in {folder.root.parent}: {error}"))
        step(through, total)
    for source in sources if not signed else ():
        _data(source.journal, into.journal, tally)
        _plans(source.journal, into.journal, tally)
    tally.notes += strangers(into, wanted)
    return tally


def _check(sources: Sequence[Results], into: Results) -> None:
    if into.root.exists() and not into.root.is_dir():
        raise UsageError(f"expected a folder to join results in, got the file {into.root}")
    for source in sources:
        if not source.begun:
            raise UsageError(f"expected a results folder, got {source.root}: it has neither cells nor artefacts")
        if source.root == into.root or source.root in into.root.parents or into.root in source.root.parents:
            raise UsageError(f"{source.root} and {into.root} must be folders apart")


def _secret(sources: Sequence[Results], into: Results, secret_of: Results | None) -> tuple[Results, Secret] | None:
    """Whose run secret the joined folder is to be given; None where it has one, or nobody has."""
    here = into.commitment
    if secret_of is not None:
        if (found := run_secret.kept(secret_of.secret_file)) is None:
            raise UsageError(f"there is no run secret in {secret_of.root}")
        return secret_of, found  # `keep_secret` refuses it where the folder has another
    if here is not None:
        return None
    kept = [(each, secret) for each in sources if (secret := run_secret.kept(each.secret_file)) is not None]
    if len({secret.commitment() for _, secret in kept}) > 1:
        told = ", ".join(f"{each.root} {secret.commitment()[:12]}" for each, secret in kept)
        raise UsageError(
            f"these folders have run secrets of their own ({told}), and the joined one can go on with one of them: "
            "name it with --secret-of DIR. Records under the others are read, verified and shown; `bench run` measures "
            "them again"
        )
    return next(iter(kept), None)


def _offers(sources: Sequence[Results], tally: Tally) -> Iterator[Offer]:
    for source in sources:
        for name in Folder(source.root).names(RECORDS):
            file = RecordFile(source, name)
            try:
                record, _ = file.read()
            except RecordError as error:
                tally.add(Outcome("record", name, "refused", f"in {source.root}: {error}"))
                continue
            yield offer(record, str(source.root), file.read)


def _data(source: Journal, into: Journal, tally: Tally) -> None:
    for key in source.data_keys():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", AlteredWarning)
            data = source.data(key)
        for warning in said:
            tally.notes.append(str(warning.message))
        if data is not None and into.data(key) is None:
            into.keep_data(key, data)


def _plans(source: Journal, into: Journal, tally: Tally) -> None:
    for cell in source.plans():
        try:
            new, old = source.plan(cell), into.plan(cell)
            if new is not None and new != old:
                into.keep_plan(cell, _joined(old, new), old)
        except (RecordError, YamlError, OSError) as error:
            tally.add(Outcome("plan", cell, "refused", f"in {source.root}: {error}"))


def _joined(old: str | None, new: str) -> str:
    """Two plans of one cell as one: what either asks for; the old one's word counts where they differ."""
    after = parsed_plan(new)
    if old is None:
        return new
    before = parsed_plan(old)
    listed = {each["name"]: each for each in (*after["evaluators"], *before["evaluators"])}
    return yaml.safe_dump({**before, "evaluators": [*listed.values()]}, sort_keys=True)
