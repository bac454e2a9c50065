"""What a stranger puts at a target is refused by name, and nothing is ever written outside the results folder."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from made.moody_folder import crew, moody
from made.results_folders import PNG, folder, inputs, keep, one, under, whole

from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import signed_json
from bench.results.content_key import content_key
from bench.results.records import Record, dumps, evidence_record, picture_record
from bench.results.results import Results
from bench.results.signing_key import make_pair
from bench.transfer import pull as pulls
from bench.transfer.content_name import blob_name, manifest_name, record_name
from bench.transfer.offer import Prefer
from bench.transfer.pull import pull
from bench.transfer.push import push
from bench.transfer.tally import Tally
from bench.transfer.target import Target


def put(target: Path, name: str, content: bytes) -> None:
    path = target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def put_record(target: Path, text: str, key: str) -> None:
    put(target, record_name(key, hashlib.sha256(text.encode()).hexdigest()), text.encode())


def put_blob(target: Path, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    put(target, blob_name(sha256), content)
    return sha256


def put_artefact(target: Path, kind: str, tensors: bytes) -> None:
    made = inputs(one())
    told = {"kind": kind, "inputs": made, "notes": {}, "sha256": put_blob(target, tensors)}
    put(target, manifest_name(kind, content_key(made)), signed_json.written(signed_json.attest(told, "artefact")))


def fetched(into: Path, target: Path, *, trusted: frozenset[str] | None = None, prefer: Prefer | None = None) -> Tally:
    place = Target.open(str(target))
    return pull(Results(into, trusted=trusted), place, crew(place), prefer=prefer, step=lambda *_: None)


def refused(tmp_path: Path) -> str:
    """Why the only thing that is there is refused; nothing is written anywhere but in the results folder."""
    before = {*tmp_path.rglob("*")}
    tally = fetched(tmp_path / "a/b/back", tmp_path / "target")
    after = {path for path in tmp_path.rglob("*") if "back" not in path.parts and path not in before}
    assert after <= {tmp_path / "a", tmp_path / "a/b"}
    assert tally.of("moved") == 0
    assert tally.of("refused") >= 1
    assert not [path for path in (tmp_path / "a/b/back").rglob("*") if path.is_file() and path.suffix != ".lock"]
    return " ".join(tally.why("refused"))


@pytest.mark.parametrize(
    "cell", ["../../x", "/etc/x", "a/../../x/y", "a/b/c", "a", "..", "a/\n", "a/.b", "C:\\a/b", "a/" + "x" * 300]
)
def test_records_that_lead_elsewhere_are_refused(cell: str, tmp_path: Path) -> None:
    made = one(cell=cell)
    put_record(tmp_path / "target", dumps(made), made.key)
    assert "names a file that no record has" in refused(tmp_path)


@pytest.mark.parametrize("evaluator", ["../x", "a/b", "", ".hidden", "x" * 300])
def test_evaluators_that_lead_elsewhere_are_refused(evaluator: str, tmp_path: Path) -> None:
    made = one(evaluator=evaluator)
    put_record(tmp_path / "target", dumps(made), made.key)
    assert "names a file that no record has" in refused(tmp_path)


@pytest.mark.parametrize("name", ["../../look", "a/look", ".look"])
def test_pictures_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    look = whole().pictures["look"]
    made = one(pictures={name: look})
    put_record(tmp_path / "target", dumps(made), made.key)
    put_blob(tmp_path / "target", PNG)
    assert "names a picture that no record has" in refused(tmp_path)


Harm = Callable[[Path, Record], None]
HARMS: dict[str, tuple[Harm, str]] = {
    "another key": (lambda t, r: put_record(t, dumps(r), "0" * 32), "put in the place of another"),
    "another digest": (lambda t, r: put(t, record_name(r.key, "0" * 64), dumps(r).encode()), "place of another"),
    "altered": (lambda t, r: put_record(t, dumps(r).replace("0.75", "0.95"), r.key), "altered"),
    "no json": (lambda t, r: put_record(t, "{", r.key), "no JSON"),
    "deep": (lambda t, r: put_record(t, "[" * 100_000, r.key), "no JSON"),
    "no utf-8": (lambda t, r: put(t, record_name(r.key, hashlib.sha256(b"\xff").hexdigest()), b"\xff"), "utf-8"),
    "empty": (lambda t, r: put(t, record_name(r.key, "0" * 64), b""), "size is 0"),
    "a later schema": (lambda t, r: put_record(t, dumps(r).replace('"schema": 4', '"schema": 9'), r.key), "later"),
    "foreign name": (lambda t, r: put(t, "cells/a/b/c.json", b"{}"), "such a name"),
    "secret": (lambda t, r: put(t, "artefacts/run-secret", b"x" * 64), "such a name"),
    "capitals": (lambda t, r: put(t, f"records/{'A' * 32}/{'0' * 64}.json", b"{}"), "such a name"),
    "another folder of blobs": (lambda t, r: put(t, f"blobs/00/{'f' * 64}", b"x"), "such a name"),
    "a kind of its own": (lambda t, r: put(t, manifest_name("rooms", "0" * 32), b"{}"), "artefacts are"),
    "no manifest": (lambda t, r: put(t, manifest_name("schemes", "0" * 32), b"{}"), "no digest"),
    "a pickle": (lambda t, r: put_artefact(t, "schemes", pickle.dumps({"weight": 1})), "safetensors"),
    "no tensors": (lambda t, r: put_artefact(t, "schemes", b"x"), "safetensors"),
    "a header without end": (lambda t, r: put_artefact(t, "schemes", b"\xff" * 64), "safetensors"),
}  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_not_what_its_name_says_is_refused(harm: str, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    does, reason = HARMS[harm]
    does(tmp_path / "target", one())
    assert reason in refused(tmp_path)


def test_pictures_and_evidence_of_another_kind_are_refused(tmp_path: Path) -> None:
    script, boom = b"<svg onload=alert(1)>", pickle.dumps([1])
    for made in (one("p", pictures={"look": picture_record(script, "")}), one("e", evidence=evidence_record(boom))):
        put_record(tmp_path / "target", dumps(made), made.key)
    for content in (script, boom):
        put_blob(tmp_path / "target", content)
    told = refused(tmp_path)
    assert "no PNG" in told
    assert "no safetensors" in told


def test_a_picture_that_is_not_there_is_named(tmp_path: Path) -> None:
    made = whole()
    put_record(tmp_path / "target", dumps(made), made.key)
    assert "its picture look is gone" in refused(tmp_path)


def test_absurd_sizes_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = one()
    put_record(tmp_path / "target", dumps(made), made.key)
    put_artefact(tmp_path / "target", "schemes", b"x")
    for path in (tmp_path / "target").rglob("*"):
        if path.is_file() and "artefacts" not in path.parts:
            os.truncate(path, 1 << 42)  # without taking it
    told = refused(tmp_path)
    assert "at most" in told
    assert "free here" in told


def test_a_place_that_sends_more_than_it_says_is_cut_off(tmp_path: Path) -> None:
    made = one()
    put_record(tmp_path / "target", dumps(made), made.key)
    place = moody(tmp_path / "target", lambda kind, content: content + bytes(1 << 20))
    tally = pull(Results(tmp_path / "back"), place, crew(place), prefer=None, step=lambda *_: None)
    assert "another size" in tally.why("refused")[0]


def test_links_at_a_target_are_refused(tmp_path: Path) -> None:
    made = one()
    text = dumps(made)
    (tmp_path / "elsewhere.json").write_text(text)
    link = tmp_path / "target" / record_name(made.key, hashlib.sha256(text.encode()).hexdigest())
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere.json")
    (tmp_path / "target/blobs").symlink_to(tmp_path)
    assert "a link" in refused(tmp_path)


def test_a_push_does_not_write_through_a_link(tmp_path: Path) -> None:
    results = folder(tmp_path / "r", count=1)
    (tmp_path / "target").mkdir()
    (tmp_path / "elsewhere").mkdir()
    put_blob(tmp_path / "target", b"what a push wrote")
    (tmp_path / "target/blobs/00").symlink_to(tmp_path / "elsewhere")
    place = Target.open(str(tmp_path / "target"))
    with pytest.raises(UsageError, match="links"):
        push(results, place, crew(place), named=False, check=False, step=lambda *_: None)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_with_trusted_keys_nothing_unsigned_comes_in(tmp_path: Path) -> None:
    key, _ = make_pair(tmp_path / "key")
    results = folder(tmp_path / "r", count=1)
    results.keep(one("signed"), {}, key)
    place = Target.open(str(tmp_path / "target"))
    push(results, place, crew(place), named=False, check=False, step=lambda *_: None)
    tally = fetched(tmp_path / "back", tmp_path / "target", trusted=frozenset({key.public}))
    assert tally.told("moved") == "1 record"
    assert tally.told("stays") == "1 detector, 1 scheme"
    back = Results(tmp_path / "back", trusted=frozenset({key.public}))
    assert [record.signed_by(key.public) for _, record in back.records() if isinstance(record, Record)] == [True]


def test_different_records_of_one_name_are_both_refused_or_one_is_preferred(tmp_path: Path) -> None:
    old, new = one(created="2025-01-01T00:00:00Z"), one(created="2025-06-01T00:00:00Z", device="cuda")
    for made in (new, old):
        keep(Results(tmp_path / "r"), made)
        place = Target.open(str(tmp_path / "target"))
        push(Results(tmp_path / "r"), place, crew(place), named=False, check=False, step=lambda *_: None)
    told = refused(tmp_path)
    assert "2025-01-01" in told
    assert "2025-06-01" in told
    assert "--prefer" in told
    assert fetched(tmp_path / "back", tmp_path / "target", prefer="newest").of("moved") == 1
    (kept,) = (record for _, record in Results(tmp_path / "back").records())
    assert isinstance(kept, Record)
    assert kept.created == new.created
    assert fetched(tmp_path / "first", tmp_path / "target", prefer="first").of("moved") == 1
    assert fetched(tmp_path / "back", tmp_path / "target", prefer="first").of("moved") == 0  # what is there comes first
    assert fetched(tmp_path / "back", tmp_path / "target").of("refused") == 1


def test_records_of_another_run_secret_are_spoken_of(tmp_path: Path) -> None:
    mine, other = Secret(bytes(32)), Secret(bytes([1] * 32))
    keep(Results(tmp_path / "r"), under(one("a"), mine), under(one("b"), other))
    place = Target.open(str(tmp_path / "target"))
    push(Results(tmp_path / "r"), place, crew(place), named=False, check=False, step=lambda *_: None)
    (note,) = fetched(tmp_path / "bare", tmp_path / "target").notes
    assert "no run secret" in note
    Results(tmp_path / "back").keep_secret(mine)
    (note,) = fetched(tmp_path / "back", tmp_path / "target").notes
    assert note.startswith("1 records were made under another run secret")


def test_what_is_damaged_here_is_made_whole_and_what_is_being_pulled_is_not_pulled_twice(tmp_path: Path) -> None:
    results = folder(tmp_path / "r", count=1)
    place = Target.open(str(tmp_path / "target"))
    push(results, place, crew(place), named=False, check=False, step=lambda *_: None)
    data = next((tmp_path / "r/artefacts/schemes").rglob("data.safetensors"))
    data.write_bytes(data.read_bytes()[:-1] + b"!")
    with pytest.warns(UserWarning, match="corrupt"):
        assert fetched(tmp_path / "r", tmp_path / "target").told("moved") == "1 scheme"
    assert not list(results.problems())
    with pulls._incoming(results), pytest.raises(UsageError, match="another pull"):
        fetched(tmp_path / "r", tmp_path / "target")
