"""Whatever is altered in a results folder is noticed when it is read, and named."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from made.board_records import dataset, guesswork, record
from made.cells import cell

from bench.cli import main
from bench.evidence import TimingEvidence
from bench.pictures.strips import draw
from bench.results import signed_json
from bench.results.evidence_file import pack
from bench.results.journal import AlteredWarning
from bench.results.records import evidence_record, picture_record
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.results.signing_key import SigningKey, make_pair
from bench.results.store import Artefact, CorruptArtefactWarning
from bench.runs.plan import Planned, read_plan, write_plan

FLIPS = 60
INPUTS = {"method": "identity", "seed": 0}


def fill(folder: Path, signer: SigningKey | None) -> Results:
    """A results folder with every kind of file."""
    results = Results(folder)
    png = draw([torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))])
    shown = {"release": picture_record(png, "What it shows")}
    evidence = pack({"": TimingEvidence(4, [0.5, 0.25])})
    made = record("identity", "sets", {"guesswork": guesswork(2)}, kind="sets", cell="d/c", pictures=shown,
                  evidence=evidence_record(evidence))  # fmt: skip
    results.keep(made, {"release": png}, signer, evidence=evidence)
    write_plan(results, cell(), [Planned("sets", None, ("max-dispersion",))])
    results.journal.keep_data("abc", dataset())
    results.store.ensure("schemes", INPUTS, artefact)
    return results


def artefact() -> Artefact:
    return Artefact({"a": torch.arange(6.0)}, {"seconds": 1.5})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("whole")
    return fill(folder / "results", make_pair(folder / "key")[0])


def files(results: Results) -> list[Path]:
    """All that is read: no locks, and no mark that a folder can be made again."""
    found = (path for path in results.root.rglob("*") if path.is_file() and path.stat().st_size)
    return sorted(path for path in found if path.name != "CACHEDIR.TAG")


def named(results: Results, path: Path) -> bool:
    name = path.relative_to(results.root).as_posix()
    return any(name in (problem, f"{problem}/{path.name}") for problem, _ in results.problems())


def test_an_untouched_folder_has_no_problem(whole: Results) -> None:
    assert {path.suffix for path in files(whole)} == {".json", ".png", ".yaml", ".safetensors"}
    assert len(files(whole)) == 7
    assert list(whole.problems()) == []


@pytest.mark.parametrize("number", range(7))
def test_every_flipped_bit_is_noticed(whole: Results, tmp_path: Path, number: int) -> None:
    """In every kind of file, at its first and last byte and at many others drawn at random."""
    shutil.copytree(whole.root, tmp_path / "r")
    results, chance = Results(tmp_path / "r"), random.Random(number)
    path = files(results)[number]
    content = path.read_bytes()
    missed = []
    for place in (0, len(content) - 1, *(chance.randrange(len(content)) for _ in range(FLIPS))):
        altered = bytearray(content)
        altered[place] ^= 1 << chance.randrange(8)
        path.write_bytes(altered)
        if not named(results, path):
            missed.append((path.name, place))
    path.write_bytes(content)
    assert missed == []
    assert list(results.problems()) == []


ALTERATIONS: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "longer": lambda content: content + b"\n",
    "space": lambda content: b" " + content,
    "zeros": lambda content: bytes(len(content)),
    "twice": lambda content: content + content,
    "byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "line ends": lambda content: content.replace(b"\n", b"\r\n") + b"\r",
    "deep": lambda content: b"[" * 100_000,
}


@pytest.mark.parametrize("how", ALTERATIONS)
def test_every_other_alteration_is_noticed(whole: Results, tmp_path: Path, how: str) -> None:
    shutil.copytree(whole.root, tmp_path / "r")
    results = Results(tmp_path / "r")
    for path in files(results):
        content = path.read_bytes()
        path.write_bytes(ALTERATIONS[how](content))
        assert named(results, path), f"{how} in {path.name}"
        path.write_bytes(content)


@pytest.mark.parametrize("write", [
    lambda content: json.dumps(content, indent=2),
    lambda content: json.dumps(content, sort_keys=True),
    lambda content: json.dumps(dict(reversed(content.items())), indent=2) + "\n",
    lambda content: json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + " \n",
])  # fmt: skip
def test_the_same_values_written_in_another_way_are_noticed(
    whole: Results, tmp_path: Path, write: Callable[[dict[str, object]], str]
) -> None:
    shutil.copytree(whole.root, tmp_path / "r")
    results = Results(tmp_path / "r")
    for path in files(results):
        if path.suffix == ".json":
            content = path.read_bytes()
            path.write_text(write(json.loads(content)))
            assert named(results, path), path.name
            path.write_bytes(content)


@pytest.mark.parametrize("name", ["cells/d/c/sets.json", "data/abc.json"])
def test_a_file_in_the_place_of_another_is_noticed(whole: Results, tmp_path: Path, name: str) -> None:
    shutil.copytree(whole.root, tmp_path / "r")
    results, path = Results(tmp_path / "r"), tmp_path / "r" / name
    moved = path.with_name("other.json")
    path.rename(moved)
    assert named(results, moved)


def test_a_plan_in_the_place_of_another_is_noticed_and_written_anew(whole: Results, tmp_path: Path) -> None:
    shutil.copytree(whole.root, tmp_path / "r")
    results, other = Results(tmp_path / "r"), cell("noise")
    plan = next((tmp_path / "r" / "artefacts" / "plans").rglob("*.yaml"))
    moved = tmp_path / "r" / "artefacts" / "plans" / f"{other.folder}.yaml"
    plan.rename(moved)
    assert named(results, moved)
    with pytest.warns(AlteredWarning, match="written anew"):
        write_plan(results, other, [Planned("sets", None, ("max-dispersion",))])
    assert read_plan(results.journal.plan(other.folder) or "")[0] == other
    assert yaml.safe_load(moved.read_text())["method"] == "noise"


def test_an_altered_choice_of_data_is_done_without_and_said(whole: Results, tmp_path: Path) -> None:
    shutil.copytree(whole.root, tmp_path / "r")
    path = tmp_path / "r" / "data" / "abc.json"
    path.write_text(path.read_text().replace('"private": 300', '"private": 301'))
    with pytest.warns(AlteredWarning, match=r"abc\.json: it was altered"):
        assert Results(tmp_path / "r").journal.data("abc") is None


def manifest(content: dict[str, object]) -> bytes:
    return signed_json.written(signed_json.attest(content, "artefact"))  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [
    {"inputs": {"method": "syfer", "seed": 0}}, {"notes": {"seconds": 0.1}}, {"kind": "releases"}, {"sha256": "0" * 64},
])  # fmt: skip
@pytest.mark.parametrize("digest", ["kept", "made anew"])
def test_an_artefact_whose_manifest_says_something_else_is_made_again(
    tmp_path: Path, change: dict[str, object], digest: str
) -> None:
    """Notes under a digest that somebody computed are the one thing that only a signature could tell."""
    results = Results(tmp_path)
    results.store.ensure("schemes", INPUTS, artefact)
    path = tmp_path / "artefacts" / "schemes" / content_key(INPUTS) / "manifest.json"
    content = {**json.loads(path.read_text()), **change}
    path.write_bytes(signed_json.written(content) if digest == "kept" else manifest(content))
    if digest == "made anew" and "notes" in change:
        assert results.store.ensure("schemes", INPUTS, artefact).notes == {"seconds": 0.1}
        return
    with pytest.warns(CorruptArtefactWarning, match="made again"):
        assert results.store.ensure("schemes", INPUTS, artefact).notes == {"seconds": 1.5}


def test_an_artefact_of_another_key_in_its_place_is_made_again(tmp_path: Path) -> None:
    store, other = Results(tmp_path).store, {**INPUTS, "seed": 1}
    store.ensure("schemes", INPUTS, artefact)
    store.ensure("schemes", other, lambda: Artefact({"a": torch.zeros(6)}, {}))
    folder = tmp_path / "artefacts" / "schemes"
    shutil.rmtree(folder / content_key(INPUTS))
    shutil.copytree(folder / content_key(other), folder / content_key(INPUTS))
    with pytest.warns(CorruptArtefactWarning, match="put in the place of another"):
        again = store.ensure("schemes", INPUTS, artefact)
    assert torch.equal(again.tensors["a"], torch.arange(6.0))


def test_verify_names_what_was_altered_and_goes_on(
    whole: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole.root, tmp_path / "r")
    assert main(["leaderboard", "verify", "--results", str(tmp_path / "r")]) == 0
    assert "all files are what was written" in capsys.readouterr().out
    for path in files(Results(tmp_path / "r")):
        path.write_bytes(path.read_bytes() + b" ")
    assert main(["leaderboard", "verify", "--results", str(tmp_path / "r")]) == 1
    told = capsys.readouterr()
    # The picture is not looked for where its record is refused, and an artefact's two files are one.
    assert "4 files are not what was written" in told.out
    assert "cells/d/c/sets.json: it was altered" in told.err


def test_any_byte_changed_taken_out_or_put_in_is_noticed() -> None:
    text = signed_json.written(signed_json.attest({"a": 1, "b": {"digest": "x", "y": [1.5, {}]}, "z": "é"}, "kind"))
    assert signed_json.read(text, "kind")["z"] == "é"
    missed = []
    for place, byte in enumerate(text):
        changed = (text[:place] + bytes([other]) + text[place + 1 :] for other in range(256) if other != byte)
        longer = (text[:place] + bytes([other]) + text[place:] for other in b" \n\t\r,0")
        for altered in (*changed, *longer, text[:place] + text[place + 1 :]):
            try:
                signed_json.read(altered, "kind")
            except signed_json.AlteredError:
                continue
            missed.append((place, altered))
    assert missed == []


def test_a_forger_with_a_digest_changes_the_layout_and_no_value_under_a_signature(tmp_path: Path) -> None:
    signed = signed_json.attest({"a": 1, "z": [1]}, "kind", make_pair(tmp_path / "key")[0])

    def forged(content: dict[str, object]) -> bytes:
        bare = {name: value for name, value in content.items() if name != signed_json.DIGEST}
        laid_out = signed_json.written(bare).replace(b"\n    1", b"\n         1")
        line = f'  "digest": "{signed_json._bytes_digest(laid_out, "kind")}",\n'.encode()
        return laid_out.replace(b'  "signature"', line + b'  "signature"')

    assert signed_json.read(forged({**signed}), "kind") == {"a": 1, "z": [1]}
    with pytest.raises(signed_json.AlteredError, match="signature does not verify"):
        signed_json.read(forged({**signed, "a": 2}), "kind")


@pytest.mark.parametrize(
    "text", ['{"a": "\\ud800"}', f'{{"a": {"[" * 300}{"]" * 300}}}', '{"a": 1e400, "b": -0, "a": 2}']
)
def test_odd_json_is_read_as_the_standard_library_reads_it(text: str) -> None:
    assert signed_json.parsed(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", '{"a": 01}', '{"a": "\n"}', "[1]", "[" * 100_000])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(signed_json.AlteredError, match=r"it is no JSON: |it must hold a JSON object, got list"):
        signed_json.parsed(text.encode())
