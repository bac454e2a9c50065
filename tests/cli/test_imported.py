"""A release by another tool is scored from its folder."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from made.cells import records_of
from made.commands import request
from safetensors.torch import load_file

from attacks.dcr import DCR
from attacks.nearest_neighbour import NearestNeighbour
from bench.cli import main
from bench.evaluators.honesty import Honesty
from bench.evaluators.membership import Membership
from bench.evaluators.reidentification import Reidentification
from bench.evaluators.utility import Utility
from bench.evidence import MembershipEvidence
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.runs.released_picture import _title, _told
from bench.runs.request import run_spec
from bench.types import NotApplicable
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.inputs import cell_identity, record_identity
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench

TENTH = range(0, 1600, 10)


def release(
    folder: Path, method: str = "dp-simple[scale=0.5]", dataset: str = "digits", rows: Iterable[int] = TENTH
) -> str:  # fmt: skip
    """Release rows, and the spec that scores them."""
    (folder / "some.csv").write_text("row\n" + "".join(f"{row}\n" for row in rows))
    arguments = ["--method", method, "--dataset", dataset, "--rows", str(folder / "some.csv"), "--device", "cpu"]
    arguments += ["--accept", "a test", "--ledger", str(folder / "ledger")]
    places = ["--out", str(folder / "out"), "--links-out", str(folder / "links.csv")]
    assert main(["release", *arguments, *places, "--results", str(folder / "first")]) == 0
    return f"imported[path={folder / 'out'},links={folder / 'links.csv'}]"


def opened(folder: Path, method: str, dataset: str = "digits") -> Workbench:
    """The cell as `bench run` lays it out."""
    chosen = configure("methods", method, "smoke")
    choice = Choice.read({"dataset": dataset, "preset": "smoke"}).kept_for(chosen)
    return Workbench.open(Cell(chosen, choice, "cpu"), Place(Results(folder / "results"), folder / "cache", ()))


def figures(bench: Workbench) -> tuple[float, float]:
    """How often the first choice is right, and how many rows are scored, by the same-image attack."""
    found = Reidentification(NearestNeighbour()).measure(bench).evidence[""]
    return float(found.images.full[0].top_1.mean()), len(bench.private)


@pytest.mark.parametrize("scale", ["0.5", "20"])
def test_the_same_image_attack_finds_in_a_folder_what_it_finds_in_the_method(tmp_path: Path, scale: str) -> None:
    method = f"dp-simple[scale={scale}]"
    own = opened(tmp_path, method)
    imported = opened(tmp_path, release(tmp_path, method, rows=own.places.tolist()))
    assert sorted(imported.places.tolist()) == sorted(own.places.tolist())
    there, here = figures(imported), figures(own)
    assert there[1] == here[1] == 160
    chance, margin = 1 / 160, 4 * (0.25 / 160) ** 0.5
    assert abs(there[0] - here[0]) < margin
    assert (min(there[0], here[0]) > 0.9) if scale == "0.5" else (max(there[0], here[0]) < chance + margin)


def test_a_run_scores_a_folder_and_no_record_shows_its_place(tmp_path: Path) -> None:
    spec = release(tmp_path)
    arguments = ["--dataset", "digits", "--preset", "smoke", "--results", str(tmp_path / "results"), "--device", "cpu"]
    attacks = ["--attack", "nearest-neighbour", "--attack", "moments", "--no-controls", "--jobs", "1"]
    assert main(["run", "--method", spec, *arguments, *attacks]) == 0
    records = {record.evaluator: record for record in records_of(tmp_path / "results")}
    near = records["reidentification-nearest-neighbour"]
    assert near.status == "ok"
    assert near.scores["top-1"].value > 0.9
    assert near.method.parameters["releases"] == 1
    assert near.method.parameters["maker"] == "dp-simple"
    assert near.keys == 1
    assert "another tool" in near.threat_model["scheme"]
    assert "could not run" in str(near.scheme["caveat"])
    for name in ("reidentification-moments", "throughput"):
        assert records[name].status == "not-applicable"
        assert "released by another tool" in str(records[name].reason)
    kept = records["honesty"].scores["broken-promises"]
    assert kept.value == 0
    assert {"links", "replay"}.isdisjoint(kept.parts)
    assert kept.note.startswith(f"of {len(kept.parts)} that were looked into")
    assert records["utility"].status == "not-applicable"
    assert "new images cannot be encoded" in str(records["utility"].reason)
    for path in (tmp_path / "results").rglob("*"):
        if path.is_file() and path.suffix in (".json", ".html", ".js", ".csv", ".svg") and "journal" not in path.parts:
            assert str(tmp_path / "out").encode() not in path.read_bytes(), path
            assert b"links.csv" not in path.read_bytes(), path
    assert main(["run", "--method", spec, *arguments, *attacks, "--dry-run"]) == 0
    (one,) = {record.cell for record in records.values()}
    chosen = configure("methods", spec, "smoke")
    cell = Cell(chosen, Choice.read({"dataset": "digits", "preset": "smoke"}).kept_for(chosen), "cpu")
    assert near.dataset is not None
    assert one == cell.folder
    assert record_identity(near) == cell_identity(cell, near.dataset)
    assert str(tmp_path) not in str(record_identity(near))


def test_links_lead_from_released_rows_to_the_rows_that_they_were_made_of(tmp_path: Path) -> None:
    bench = opened(tmp_path, release(tmp_path, "dp-simple[scale=0.001]"))
    sealed = bench.sealed(bench.scheme(), 0)
    assert sealed.links is not None
    raw, released = sealed.links.T
    distances = torch.cdist(bench.private.samples.flatten(1), sealed.release.samples.flatten(1))
    scaled = sealed.release.samples[released].flatten(1), bench.private.samples[raw].flatten(1)
    alike = [torch.corrcoef(torch.stack(pair))[0, 1] for pair in zip(*scaled, strict=True)]
    assert distances.shape == (160, 160)
    assert min(alike) > 0.99


def test_eve_learns_neither_the_folder_nor_links(tmp_path: Path) -> None:
    bench = opened(tmp_path, release(tmp_path))
    rooms = Workbench.open(bench.cell, Place(Results(tmp_path / "r"), tmp_path / "cache", ()), "processes")
    try:
        travelling = rooms.scheme().travelling
        assert str(tmp_path) not in str(travelling.method)
        assert travelling.method is not None
        assert travelling.method.startswith("imported[maker=dp-simple,releases=1,sha256=")
    finally:
        rooms.close()


def test_a_picture_names_the_release_and_not_its_place(tmp_path: Path) -> None:
    spec = release(tmp_path, "dp-simple[scale=0.5]")
    told = _told(configure("methods", spec, "smoke"))
    assert str(tmp_path) not in _title(told)
    assert "maker=dp-simple" in _title(told)
    assert _title(_told(configure("methods", "dp-simple[scale=2]", "smoke"))) == "dp-simple\nscale=2"


def test_a_changed_folder_is_another_method(tmp_path: Path) -> None:
    spec = release(tmp_path)
    first = configure("methods", spec, "smoke")
    table = list(csv.reader((tmp_path / "links.csv").open()))
    (tmp_path / "links.csv").write_text("\n".join(",".join(line) for line in table[:-1]) + "\n")
    second = configure("methods", spec, "smoke")
    assert first.plugin.sha256 != second.plugin.sha256
    with pytest.raises(Exception, match="the folder has changed: sha256 is"):
        opened(tmp_path, str(first))


def test_labels_encoded_by_a_key_teach_nothing(tmp_path: Path) -> None:
    spec = release(tmp_path, "syfer-random[patch_size=4]")
    assert json.loads((tmp_path / "out/release.json").read_text())["labels"] == "encoded"
    bench = opened(tmp_path, spec)
    assert bench.sealed(bench.scheme(), 0).release.labels is None
    assert any("encoded by a key" in note for note in bench.record.notes)
    assert "labels" in load_file(tmp_path / "out/release.safetensors")


def test_a_model_of_encoded_rows_is_not_tested_on_rows_that_nobody_encoded(tmp_path: Path) -> None:
    spec = release(tmp_path, "dauntless[patch_size=4]")
    assert json.loads((tmp_path / "out/release.json").read_text())["rows"] == "encoded"
    bench = opened(tmp_path, spec)
    assert bench.sealed(bench.scheme(), 0).release.samples.shape[1:] == bench.private.samples.shape[1:]
    assert any("cannot read new images" in note for note in bench.record.notes)
    with pytest.raises(NotApplicable, match="new images cannot be encoded like them"):
        Utility().measure(bench)
    (tmp_path / "means").mkdir()
    means = opened(tmp_path / "means", release(tmp_path / "means", "k-same[k=3]"))
    assert Utility().measure(means).evidence


def test_images_in_the_units_of_raw_ones_teach_a_model_that_reads_raw_images(tmp_path: Path) -> None:
    bench = opened(tmp_path, release(tmp_path, "mosaic[cell=2]"))
    assert "rows" not in json.loads((tmp_path / "out/release.json").read_text())
    assert Utility().measure(bench).evidence


def test_further_keys_stand_in_folders_of_their_own(tmp_path: Path) -> None:
    spec = release(tmp_path)
    (tmp_path / "second").mkdir()
    release(tmp_path / "second")
    whole, links = tmp_path / "whole", tmp_path / "kept"
    shutil.copytree(tmp_path / "out", whole)
    shutil.copytree(tmp_path / "second/out", whole / "keys/2")
    (links / "keys/2").mkdir(parents=True)
    shutil.copy(tmp_path / "links.csv", links / "links.csv")
    shutil.copy(tmp_path / "second/links.csv", links / "keys/2/links.csv")
    bench = opened(tmp_path, f"imported[path={whole},links={links}]")
    assert bench.preset.keys == 2
    first, second = (bench.sealed(bench.scheme(), number) for number in range(2))
    assert not torch.equal(first.release.samples.sort(dim=0).values, second.release.samples.sort(dim=0).values)
    assert figures(bench)[0] > 0.9
    with pytest.raises(NotApplicable, match="holds 2 releases, and 3 are needed"):
        bench.sealed(bench.scheme(), 2)
    assert opened(tmp_path, spec).preset.keys == 1


def test_a_method_needs_a_folder_and_the_rows_of_one_folder_are_not_scored_as_another_s(tmp_path: Path) -> None:
    choice = Choice.read({"dataset": "digits", "preset": "smoke"})
    with pytest.raises(UsageError, match=r"needs the folder of a release: write imported\[path=FOLDER\]"):
        choice.kept_for(configure("methods", "imported", "smoke"))
    one = configure("methods", release(tmp_path), "smoke")
    (tmp_path / "second").mkdir()
    other = configure("methods", release(tmp_path / "second"), "smoke")
    with pytest.raises(UsageError, match="has others: leave it out"):
        choice.kept_for(one).kept_for(other)


def test_rows_without_links_are_asked_for_members_copies_and_undeclared_pairs(tmp_path: Path) -> None:
    assert main(["new", "release-folder", "mine", "--into", str(tmp_path)]) == 0
    lines = (tmp_path / "mine/links.csv").read_text().splitlines()
    (tmp_path / "mine/members.csv").write_text("\n".join(line.partition(",")[2] for line in lines) + "\n")
    (tmp_path / "mine/links.csv").unlink()
    spec = f"imported[path={tmp_path / 'mine'}]"
    spec_of_run = run_spec(request(["run", "--method", spec, "--dataset", "digits", "--preset", "smoke"]))
    assert {"dcr", "domias"} <= {attack.name for attack in spec_of_run.attacks}
    assert "copied-share" in spec_of_run.metrics
    bench = opened(tmp_path, spec)
    assert bench.sealed(bench.scheme(), 0).links is None
    found = Membership(DCR()).measure(bench)
    evidence = found.evidence[""]
    assert isinstance(evidence, MembershipEvidence)
    assert [int(inside.sum()) for inside in evidence.members] == [240]
    scores, inside = evidence.scores[0], evidence.members[0]
    wins = (scores[inside][:, None] > scores[~inside]).double().mean()
    assert wins > 0.75  # chance has a standard deviation of .04 about a half
    assert "no draw" in str(found.details["members"])
    with pytest.raises(NotApplicable, match="without a raw original"):
        figures(bench)
    promises = Honesty().measure(bench).evidence[""].promises
    assert set(promises) <= {"pairs", "labels"}
    assert promises["pairs"].broken
