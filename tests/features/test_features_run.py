"""The feature stage through the command line and the workbench, on the digits of scikit-learn."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from made.cells import opened, place
from made.commands import request
from PIL import Image
from safetensors.torch import save_file

from bench.cli import main
from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.splits import split
from bench.features.eigenspace import Eigenspace
from bench.nets.training import seeded
from bench.plugins.spec import PluginSpec, UsageError
from bench.results.records import Record
from bench.results.results import Results
from bench.runs.plan import cells, read_plan, write_plan
from bench.runs.request import run_spec
from bench.seeds import derive
from bench.types import NotApplicable
from bench.workbench.cell import Cell, Planned
from bench.workbench.inputs import fit_inputs, record_inputs

MODEL = "timm:test_resnet.r160_in1k"
NAN = '''
from dataclasses import dataclass
from typing import ClassVar
import torch
from bench.features.pixels import Pixels, FlatPixels

class Broken(FlatPixels):
    def embed(self, samples):
        return super().embed(samples) / 0

@dataclass(frozen=True)
class Nan(Pixels):
    """Divides by nothing."""
    name: ClassVar[str] = "nan"
    def load(self, state):
        return Broken((1, 8, 8))
'''


def made_weights(folder: Path) -> Path:
    with seeded(0):
        network = timm.create_model("test_resnet.r160_in1k")
    save_file(dict(network.state_dict()), folder / "zebra.safetensors")
    return folder / "zebra.safetensors"


def test_a_run_on_vectors_names_their_space_and_never_the_file_of_weights(tmp_path: Path, capsys) -> None:
    hidden = tmp_path / "zebra-home"
    hidden.mkdir()
    arguments = [
        "run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--metric", "throughput",
        "--features", f"{MODEL}[size=32]", "--weights", str(made_weights(hidden)), "--device", "cpu", "--jobs", "1",
        "--attack", "none", "--results", str(tmp_path / "results"),
    ]  # fmt: skip
    assert main(arguments) == 0
    (record,) = (found for _, found in Results(tmp_path / "results").records() if isinstance(found, Record))
    assert record.dataset is not None
    assert record.dataset.name == f"digits as {MODEL}[size=32]"
    features = record.dataset.features
    assert features is not None
    assert record.dataset.shape == [features.dimensions]
    assert features.parameters == {"model": "test_resnet.r160_in1k", "size": 32, "batch": 16}
    assert len(features.stamp) == 64
    published = [path for path in (tmp_path / "results").rglob("*") if "artefacts" not in path.parts]
    assert not any("zebra" in str(path.relative_to(tmp_path)) for path in published)
    texts = [path.read_bytes() for path in published if path.is_file() and path.suffix != ".log"]
    assert texts
    assert not any(b"zebra" in text for text in texts)
    assert main([*arguments, "--dry-run"]) == 0
    assert "0 to run, 1 to keep" in capsys.readouterr().out


def test_methods_see_vectors_and_nothing_else_changes(tmp_path: Path) -> None:
    raw, seen = opened(tmp_path, balance=False), opened(tmp_path, features="pixels")
    for part in ("public", "private", "control", "test"):
        before, after = getattr(raw, part), getattr(seen, part)
        assert torch.equal(after.samples, before.samples.flatten(1))
        assert torch.equal(after.labels.nan_to_num(-1), before.labels.nan_to_num(-1))
        assert (after.findings, after.shareable) == (before.findings, before.shareable)
    assert seen.record.rows == raw.record.rows
    assert seen.record.features.notes["dimensions constant among private rows"] == int(
        (seen.private.samples.amax(dim=0) == seen.private.samples.amin(dim=0)).sum()
    )
    assert torch.equal(seen.vectors(seen.private.samples), seen.private.samples)


def test_stored_vectors_serve_the_next_opening_and_learned_spaces_follow_the_seed(tmp_path: Path, monkeypatch) -> None:
    first = opened(tmp_path, features="eigenspace")
    monkeypatch.setattr("bench.features.eigenspace.Coefficients.embed", None)
    monkeypatch.setattr("bench.features.eigenspace.Eigenspace.fit", None)
    again = opened(tmp_path, features="eigenspace")
    assert torch.equal(again.private.samples, first.private.samples)
    assert again.record == first.record
    monkeypatch.undo()
    other = opened(tmp_path, features="eigenspace", seed=1)
    assert other.record.features.fingerprint != first.record.features.fingerprint
    vectors = tmp_path / "cache" / "features"
    assert len(list(vectors.glob("vectors/eigenspace-*/vectors.npy"))) == 2
    assert vectors.stat().st_mode & 0o077 == 0


def test_weights_are_read_once_whatever_is_read_through_them(tmp_path: Path, monkeypatch) -> None:
    bench, loaded = opened(tmp_path, scored_in="eigenspace"), []
    load = Eigenspace.load
    monkeypatch.setattr(Eigenspace, "load", lambda self, state: loaded.append(1) or load(self, state))
    first, second = (bench.vectors(part.samples) for part in (bench.private, bench.test))
    assert (len(first), len(second)) == (len(bench.private), len(bench.test))
    assert len(loaded) == 1


def test_another_version_of_the_package_that_reads_makes_vectors_again(tmp_path: Path, monkeypatch) -> None:
    features = f"{MODEL}[size=32,weights={made_weights(tmp_path)}]"
    opened(tmp_path, features=features)
    monkeypatch.setattr(
        "bench.features.feature_space.version", lambda package: "another" if package == "timm" else version(package)
    )
    opened(tmp_path, features=features)
    assert len(list((tmp_path / "cache/features/vectors").glob("timm-*/vectors.npy"))) == 2


def test_results_stay_where_they_are_when_the_weights_move(tmp_path: Path) -> None:
    first = made_weights(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    second = made_weights(tmp_path / "elsewhere")
    other = tmp_path / "other.safetensors"
    save_file({"fc.weight": torch.zeros(1)}, other)

    def cell(*more: str) -> Cell:
        arguments = ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--device", "cpu"]
        return cells(run_spec(request([*arguments, *more])))[0]

    folders = [cell("--features", MODEL, "--weights", str(file)).folder for file in (first, second, other)] + [
        cell("--scored-in", f"{MODEL}[weights={first}]").folder,
        cell("--features", MODEL).folder,
    ]
    assert folders[0] == folders[1]
    assert len(set(folders)) == 4
    planned = cell("--features", MODEL, "--weights", str(first))
    results = place(tmp_path).results
    write_plan(results, planned, [])
    first.unlink()
    assert read_plan(results.journal.plan(planned.folder) or "")[0] == planned
    with pytest.raises(DataError, match=r"zebra\.safetensors is not there"):
        cell("--features", MODEL, "--weights", str(first))
    with pytest.raises(UsageError, match="weights are named twice"):
        cell("--features", f"{MODEL}[weights={second}]", "--weights", str(second))


def test_scored_in_leaves_images_to_methods_and_reads_releases_through_the_space(tmp_path: Path) -> None:
    bench, plain = opened(tmp_path, scored_in="eigenspace"), opened(tmp_path)
    assert torch.equal(bench.private.samples, plain.private.samples)
    assert bench.vectors(bench.private.samples).shape == (len(bench.private), 16)
    as_features = opened(tmp_path, features="eigenspace")
    assert torch.equal(bench.vectors(bench.private.samples), as_features.private.samples)
    assert bench.record.name == "digits, seen through eigenspace"
    assert bench.record.scored_in.dimensions == 16
    with pytest.raises(NotApplicable, match=r"reads rows of shape \(1, 8, 8\), and these have \(1, 4, 4\)"):
        bench.vectors(torch.zeros(2, 1, 4, 4))
    sets = Planned("sets", None, ("nearest-neighbour-distance",))
    assert fit_inputs(bench.cell, bench.record, apart=False) == fit_inputs(plain.cell, plain.record, apart=False)
    assert record_inputs(bench.cell, bench.record, sets, "c") != record_inputs(plain.cell, plain.record, sets, "c")


@pytest.mark.parametrize("option", ["features", "scored_in"])
def test_tables_are_vectors_already(tmp_path: Path, option: str) -> None:
    with pytest.raises(DataError, match="diabetes is a table: its rows are vectors already"):
        opened(tmp_path, dataset="diabetes", **{option: "pixels"})


def test_an_extractor_that_cannot_serve_says_why(tmp_path: Path) -> None:
    (tmp_path / "nan.py").write_text(NAN)
    with pytest.raises(DataError, match=r"nan\.py:Nan must give finite vectors: 160 of the 160 rows"):
        opened(tmp_path, features=PluginSpec(f"{tmp_path / 'nan.py'}:Nan"))
    with pytest.raises(DataError, match=r"choose at most eigenspace\[components="):
        opened(tmp_path, features="eigenspace[components=64]")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--features", "eigenspace", "--weights", "w.pth"], "eigenspace has no parameter 'weights'"),
        (["--features", "eigenspaces"], "did you mean 'eigenspace'"),
        (["--features", "timm"], "timm needs model; write timm:MODEL"),
        (["--features", MODEL, "--weights", "a,b"], "no '[', ']' or ','"),
        (["--weights", "w.pth"], "name it with --features or --scored-in"),
    ],
)
def test_wrong_options_stop_before_any_work(tmp_path: Path, capsys, given: list[str], text: str) -> None:
    arguments = ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--results", str(tmp_path)]
    assert main([*arguments, "--attack", "none", *given]) == 2
    assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_files_are_prepared_at_the_side_that_the_extractor_reads(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for number in range(60):
        path = tmp_path / "own" / ("cat" if number % 2 else "dog") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (48, 48), dtype=np.uint8)).save(path)
    more = {"dataset": f"folder:{tmp_path / 'own'}", "features": f"{MODEL}[size=48,weights={made_weights(tmp_path)}]"}
    bench = opened(tmp_path, **more)
    assert "images were prepared at 48 pixels a side, which timm reads" in bench.record.notes
    reader = bench.cell.choice.features.plugin
    folder = prepare(bench.cell.choice.dataset.plugin, roots=[], cache=place(tmp_path).cache, size=48)
    rows = split(folder, None, seed=derive(0, "data"), limit=160, public_limit=160).rows["private"]
    vectors = reader.load({}).embed(folder.dataset(rows).samples)
    assert torch.allclose(bench.private.samples, vectors, atol=1e-5)
    small = opened(tmp_path, size=24, **more)
    assert "images have 24 pixels a side and are enlarged to the 48 that timm reads" in small.record.notes
    assert not torch.allclose(small.private.samples, vectors, atol=1e-3)


def test_images_of_a_fixed_size_are_enlarged_and_that_is_said(tmp_path: Path) -> None:
    bench = opened(tmp_path, features=f"{MODEL}[size=32,weights={made_weights(tmp_path)}]")
    assert "images have 8 pixels a side and are enlarged to the 32 that timm reads" in bench.record.notes
