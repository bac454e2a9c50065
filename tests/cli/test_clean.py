"""`bench clean` removes what was made there and can be made again, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from filelock import FileLock

from bench.cli import main
from bench.features.feature_space import VectorCache
from bench.results.build_folder import tag_cache
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.results.store import Artefact, Store

INPUTS = {"seed": 0}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = Results(tmp_path / "results")
    made.store.ensure("releases", INPUTS, lambda: Artefact({"a": torch.zeros(1000)}, {}))
    made.journal.keep_plan("d/c", "a: 1\n", None)
    (made.root / "cells").mkdir()
    (made.root / "artefacts" / "run-secret").write_bytes(b"not to be made again")
    return made


def clean(results: Results, *more: str) -> int:
    return main(["clean", "--results", str(results.root), *more])


def files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if not path.is_dir())
    return {path.name for path in found if path.suffix != ".lock"}


def test_nothing_is_touched_before_yes(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(results.root)
    assert clean(results) == 0
    told = capsys.readouterr().out
    assert "1 in " in told
    assert "4.3 kB" in told
    assert "nothing was removed" in told
    assert files(results.root) == before
    assert clean(results, "--yes") == 0
    assert files(results.root) == {"CACHEDIR.TAG", "c.yaml", "run-secret"}
    assert not results.store.has("releases", INPUTS)


def test_what_is_not_ours_stays(results: Results, tmp_path: Path) -> None:
    kind = results.root / "artefacts" / "releases"
    key = content_key(INPUTS)
    (kind / key / "notes.txt").write_text("mine")
    foreign = results.root / "artefacts" / "mine" / ("0" * 32)
    foreign.mkdir(parents=True)
    (foreign / "manifest.json").write_text("{}")
    tag_cache(tmp_path / "elsewhere")
    outside = tmp_path / "elsewhere" / ("1" * 32)
    outside.mkdir()
    (outside / "manifest.json").write_text("{}")
    (results.root / "artefacts" / "linked").symlink_to(tmp_path / "elsewhere")
    (kind / ("2" * 32)).symlink_to(outside)
    before = files(tmp_path)
    assert clean(results, "--yes") == 0
    assert files(tmp_path) == before


def test_what_is_in_use_stays_and_is_named(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results.root / "artefacts" / "releases" / content_key(INPUTS)
    with FileLock(folder.with_suffix(".lock")):
        assert clean(results, "--yes") == 1
    assert f"in use, and kept: {folder}" in capsys.readouterr().err
    assert results.store.has("releases", INPUTS)


def test_a_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos").mkdir()
    for folder in ("photos", "nowhere"):
        assert clean(Results(tmp_path / folder), "--yes") == 2
        assert "expected a results folder" in capsys.readouterr().err


def test_prepared_data_and_vectors_go_with_the_cache_alone(results: Results, cache: Path) -> None:
    assert main(["data", "prepare", "digits"]) == 0
    Store(cache / "features").ensure("extractors", INPUTS, lambda: Artefact({"a": torch.zeros(3)}, {}))
    images = torch.zeros(2, 1, 2, 2)
    VectorCache(cache / "features" / "vectors" / "pixels-0", 2).vectors(
        torch.arange(2).numpy(), lambda rows: images[rows], lambda part: iter([part.flatten(1)]), block=2
    )
    (prepared,) = cache.glob("digits-*")
    for name in (prepared.name, f"gone-{'0' * 16}"):  # of a set that was not prepared in the end, too
        (cache / f"{name}-corrupt.txt").write_text("patient.png\tcut short\n")
    (cache / "my-corrupt.txt").write_text("mine")
    (cache / f"linked-{'1' * 16}-corrupt.txt").symlink_to(cache / "my-corrupt.txt")
    (cache / "mine").mkdir()
    (cache / "mine" / "photo.png").write_bytes(b"png")
    assert clean(results, "--only", "artefacts", "--yes") == 0
    assert {"samples.npy", "vectors.npy", "manifest.json"} <= files(cache)
    assert clean(results, "--only", "cache", "--yes") == 0
    assert files(cache) == {"CACHEDIR.TAG", "photo.png", "my-corrupt.txt", f"linked-{'1' * 16}-corrupt.txt"}
