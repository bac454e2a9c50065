"""A cell's secret is disclosed without telling anything of other cells; rows under other secrets are built on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made import submissions
from made.submissions import METHOD, Handed, place_of, run, spec
from pydantic import JsonValue

from bench.exchange import check
from bench.exchange.disclosed_secrets import Disclosed
from bench.exchange.merge import merge
from bench.exchange.submit import submit
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import cell_secrets, signed_json
from bench.results.bundle import Bundle
from bench.results.records import Record
from bench.results.results import Results
from bench.results.run_secret import RunSecret
from bench.results.signed_json import AlteredError
from bench.runs.plan import plan_run
from bench.workbench.inputs import COMMITMENT, cell_identity, planned_of

HEX = re.compile(rb"[0-9a-fA-F]{64}")


def records(results: Results) -> list[Record]:
    return [record for _, record in results.records() if isinstance(record, Record)]


def known(bundle: Bundle) -> set[bytes]:
    """Every 32 bytes that could be a secret, in all that a bundle holds."""
    texts = [each for content in bundle.files.values() for each in HEX.findall(content)]
    return {bytes.fromhex(text.decode()) for text in texts}


def derived(secrets: set[bytes], identity: dict[str, JsonValue]) -> Iterator[bytes]:
    """What one who knows these derives for a cell, however keys were ever derived."""
    for content in secrets:
        yield content
        yield RunSecret(Secret(content)).of_cell(identity).content


def test_a_public_folder_tells_nothing_of_a_restricted_one_under_the_same_secret(handed: Handed) -> None:
    """Both stand under one `--secret FILE`: with the root in the bundle, the other's keys were one derivation away."""
    root = handed.results.keep_secret()
    cell = planned_of(records(handed.results)[0])[0]
    mine = records(handed.results)[0].dataset
    assert mine is not None
    theirs = {
        "other data": cell_identity(cell, mine.model_copy(update={"fingerprint": "0" * 16, "shareable": False})),
        "another public set": cell_identity(cell, mine.model_copy(update={"public_fingerprint": "0" * 16})),
        "another seed": cell_identity(replace(cell, choice=replace(cell.choice, seed=1)), mine),
        "another size": cell_identity(replace(cell, choice=replace(cell.choice, limit=9)), mine),
    }
    told = known(handed.bundle)
    assert {secret.content for secret in handed.bundle.secrets.values()} <= told
    for identity in theirs.values():
        assert root.of_cell(identity).content not in set(derived(told, identity))
        assert root.of_cell(identity).content in set(derived(told | {root.root.content}, identity))


def test_a_bundle_holds_one_secret_for_each_cell_and_its_records_commit_to_it(handed: Handed) -> None:
    secrets = handed.bundle.secrets
    assert len({secret.content for secret in secrets.values()}) == len(secrets) > 2
    assert "run-secret" not in handed.bundle.files
    for record in records(handed.bundle.results):
        assert record.inputs[COMMITMENT] == secrets[record.cell].commitment()


def test_the_same_cell_in_two_folders_is_one_and_the_same(handed: Handed, tmp_path: Path) -> None:
    """The same data under the same key give the same release: what is told of it in one folder is all of the other."""
    root = handed.results.keep_secret().root
    again = place_of(tmp_path / "again", handed.cache)
    again.results.keep_secret(root)
    run(spec([METHOD], controls=False, attacks=["nearest-neighbour"]), again)
    first = {each.cell: each for each in records(handed.results)}
    for record in records(again.results):
        assert record.inputs[COMMITMENT] == first[record.cell].inputs[COMMITMENT]


def test_secrets_for_a_verifier_alone_go_into_a_file_of_its_owner(handed: Handed, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "required", submissions.few)
        made = submit(handed.results, tmp_path / "a.zip", disclose_to=tmp_path / "secrets.json")
    assert made == (tmp_path / "a.zip", ())
    assert (tmp_path / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert Bundle.open(tmp_path / "a.zip").secrets == {}
    apart = Disclosed.read(tmp_path / "secrets.json")
    assert apart.cells == handed.bundle.secrets
    found = submissions.judged(Bundle.open(tmp_path / "a.zip"), secrets=apart)
    assert set(submissions.tiers(found).values()) == {"arithmetic-checked"}


def older(folder: Path, cache: Path) -> Results:
    """A folder that an earlier version began: all cells under the run secret itself."""
    where = place_of(folder, cache)
    where.results.secret_file.parent.mkdir(parents=True)
    where.results.secret_file.write_bytes(RunSecret(Secret.of_seed(5), "folder").written())
    run(spec([METHOD], controls=True, attacks=["chance"]), where)
    return where.results


def test_a_folder_of_an_earlier_version_is_built_on_and_never_disclosed(handed: Handed, tmp_path: Path) -> None:
    results = older(tmp_path / "old", handed.cache)
    more = spec([METHOD], controls=True)
    plan = plan_run(more, results)
    states = {each.planned.name: each.state for found in plan.cells.values() for each in found}
    assert states["reidentification-chance"] == "done"
    run(more, place_of(results.root, handed.cache))
    assert {each.inputs[COMMITMENT] for each in records(results)} == {Secret.of_seed(5).commitment()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "required", submissions.few)
        path, faults = submit(results, tmp_path / "b.zip", disclose=True)
    assert {each.kind for each in faults} == {"secret"}
    assert not path.exists()


def plan_of(results: Results, attacks: list[str]) -> dict[str, tuple[str, str]]:
    """State and reason of each measurement of the method's own cell."""
    found = plan_run(spec([METHOD], controls=False, attacks=attacks), results)
    (cell,) = found.cells.values()
    return {each.planned.name: (each.state, each.reason) for each in cell}


@pytest.mark.parametrize("begun", [True, False])
def test_a_colleagues_folder_is_built_on_under_its_own_secrets(handed: Handed, tmp_path: Path, begun: bool) -> None:
    """Every record of it was to be measured again: "39 of 56 changed"."""
    into = place_of(tmp_path / "mine", handed.cache)
    sources = [handed.results]
    if begun:
        into.results.keep_secret(Secret.of_seed(8))
    else:  # two colleagues with secrets of their own: the joined folder has none
        sources.append(place_of(tmp_path / "other", handed.cache).results)
        sources[1].keep_secret(Secret.of_seed(9))
    merge(sources, into.results)
    assert begun or into.results.commitment is None
    assert {state for state, _ in plan_of(into.results, list(submissions.ATTACKS)).values()} == {"done"}
    assert into.results.cell_secrets.path.stat().st_mode & 0o777 == 0o600
    run(spec([METHOD], controls=False, attacks=["moments"]), into)
    cell = {each.evaluator: each for each in records(into.results) if each.method.name == METHOD}
    assert "reidentification-moments" in cell
    assert len({each.inputs[COMMITMENT] for each in cell.values()}) == 1


def test_foreign_records_without_their_secret_are_done_until_their_row_is_to_grow(
    handed: Handed, tmp_path: Path
) -> None:
    bare = Results(tmp_path / "exported")
    for record in records(handed.results):
        shown = {name: handed.results.picture(record, name) or b"" for name in record.pictures}
        bare.adopt(record, shown, evidence=handed.results.evidence(record))
    into = place_of(tmp_path / "mine", handed.cache)
    into.results.keep_secret(Secret.of_seed(8))
    merge([bare], into.results)
    before = plan_of(into.results, ["chance"])
    assert before["reidentification-chance"][0] == "done"
    assert "not in this folder" in before["reidentification-chance"][1]
    after = plan_of(into.results, ["chance", "moments"])
    assert after["reidentification-moments"][0] == "missing"
    assert after["reidentification-chance"][0] == "changed"


def test_an_altered_file_of_secrets_is_named(tmp_path: Path) -> None:
    held = Results(tmp_path).cell_secrets
    held.add({"a": Secret.of_seed(1)})
    held.add({"b": Secret.of_seed(2)})
    assert held.read() == {"a": Secret.of_seed(1), "b": Secret.of_seed(2)}
    text, (one, other) = held.path.read_text(), (Secret.of_seed(number).content.hex() for number in (1, 3))
    held.path.write_text(text.replace(one, other))
    with pytest.raises(UsageError, match="put the file back"):
        held.read()
    short = signed_json.written(signed_json.attest({"cells": {"a": "00"}}, cell_secrets.KIND))
    with pytest.raises(AlteredError, match="hex digits"):
        cell_secrets.loads(short)
