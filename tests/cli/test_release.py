from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from made.cells import cell, place
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor

from bench.cli import main
from bench.plugins import registry
from bench.plugins.spec import UsageError, parse
from bench.randomness import Secret
from bench.results.results import Results
from bench.runs.publication import _Stages
from bench.types import Method, Scheme
from bench.workbench.workbench import Workbench


def release(
    folder: Path, *arguments: str, out: str = "out", data: str = "digits", results: str | Path = "results"
) -> int:
    return main(
        [
            "release",
            "--dataset",
            data,
            "--preset",
            "smoke",
            "--results",
            str(folder / results),
            "--out",
            str(folder / out),
            *arguments,
        ]
    )


def about(folder: Path) -> dict:
    return json.loads((folder / "release.json").read_text())


def bench(folder: Path, method: str, features: str | None = None) -> Workbench:
    """The same cell as `bench run` lays it out."""
    return Workbench.open(cell(method, features=features), place(folder, "other"))


def rebuilt(folder: Path, method: str) -> Scheme:
    built = registry.build("methods", parse(method), "smoke")
    assert isinstance(built, Method)
    path = folder / "scheme.safetensors"
    return built.load(load_file(path) if path.exists() else {})


def sorted_rows(samples: Tensor) -> list[list[float]]:
    return sorted(samples.flatten(1).tolist())


def test_published_files_and_key_make_the_same_rows_again(tmp_path: Path) -> None:
    assert release(tmp_path, "--method", "dp-simple") == 0
    published = load_file(tmp_path / "out/release.safetensors")
    private = bench(tmp_path, "dp-simple").private
    key = rebuilt(tmp_path / "out", "dp-simple").load_key(load_file(tmp_path / "out-key.safetensors"))
    again = key.release(private)
    assert sorted_rows(again.samples) == sorted_rows(published["samples"])
    assert not torch.equal(again.samples, published["samples"])  # they were put in another order
    assert private.labels is not None
    assert sorted_rows(published["labels"]) == sorted_rows(private.labels)


@pytest.mark.parametrize("method", ["syfer-random[patch_size=4]", "instahide"])
def test_an_owner_uses_the_key_as_the_documentation_shows(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert release(tmp_path, "--method", method, out="release") == 0
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "release-data.md").read_text(encoding="utf-8")
    shown = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    made: dict = {}
    exec(shown, made)
    key = rebuilt(tmp_path / "release", method).load_key(load_file(tmp_path / "release-key.safetensors"))
    assert torch.equal(made["queries"], key.query(made["images"]))
    assert torch.equal(made["scores"], key.decode(made["predictions"]))


def test_two_releases_of_the_same_cell_have_other_keys_and_other_rows(tmp_path: Path) -> None:
    for out in ("a", "b"):
        assert release(tmp_path, "--method", "dp-simple", out=out) == 0
    a, b = (load_file(tmp_path / out / "release.safetensors")["samples"] for out in ("a", "b"))
    assert sorted_rows(a) != sorted_rows(b)
    keys = [load_file(tmp_path / f"{out}-key.safetensors")["secret"] for out in ("a", "b")]
    assert not torch.equal(keys[0], keys[1])
    assert keys[0].dtype == torch.uint8
    assert len(keys[0]) == 32


def test_the_same_entropy_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Secret, "fresh", lambda: Secret(bytes(range(32))))
    for out in ("a", "b"):
        assert release(tmp_path, "--method", "dp-simple", out=out) == 0
    for name in ("release.safetensors", "release.json", "scheme.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert (tmp_path / "a-key.safetensors").read_bytes() == (tmp_path / "b-key.safetensors").read_bytes()


def test_description_tells_receivers_all_and_of_the_private_side_nothing(tmp_path: Path) -> None:
    assert release(tmp_path, "--method", "dp-simple[epsilon=3]") == 0
    said = about(tmp_path / "out")
    assert said["method"]["name"] == "dp-simple"
    assert said["method"]["parameters"]["epsilon"] == 3
    assert said["claim"]["epsilon"] == pytest.approx(3)
    assert said["claims"].startswith("epsilon-differential privacy")
    assert (said["findings"], said["exclusive"], said["shape"]) == (list("0123456789"), True, [1, 8, 8])
    shapes = {"raw_shape", "shape"}
    assert set(said) == shapes | {
        "claim", "claims", "exclusive", "findings", "made_by", "method", "rows", "schema", "sha256",
    }  # fmt: skip
    text = (tmp_path / "out/release.json").read_text()
    for secret in (str(tmp_path), bench(tmp_path, "dp-simple").record.fingerprint, "digits"):
        assert secret not in text
    for name, digest in said["sha256"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"release.json", *said["sha256"]}


def test_only_the_key_is_closed_to_others_and_it_lies_outside(tmp_path: Path) -> None:
    assert release(tmp_path, "--method", "dp-simple", "--key-out", str(tmp_path / "k.safetensors")) == 0
    assert (tmp_path / "k.safetensors").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
    assert {path.name for path in tmp_path.iterdir()} == {"k.safetensors", "out", "results"}


def test_method_without_a_secret_writes_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", "blur") == 0
    assert {path.name for path in tmp_path.iterdir()} == {"out", "results"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"release.json", "release.safetensors"}
    out = capsys.readouterr().out
    assert "No key file: this method has no secret" in out
    rows = [int(count) for count in re.findall(r"\d \((\d+) rows\)", out)]
    assert (len(rows), sum(rows)) == (10, 160)
    assert "Careful: the preset smoke is a size to measure with: at most 160 private rows" in out
    assert "Claim: no formal guarantee" in out


def test_findings_that_too_few_people_have_are_not_released_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    draw, lines = np.random.default_rng(0), ["path,subject,rare"]
    for number in range(40):
        Image.fromarray(draw.integers(0, 256, (8, 8), dtype=np.uint8)).save(images / f"{number}.png")
        lines.append(f"{number}.png,p{number},{int(number < 3)}")
    (images / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert release(tmp_path, "--method", "blur", data=f"folder:{images}") == 0
    out = capsys.readouterr().out
    assert "findings with fewer than 5 cases on either side of a split are not scored: rare" in out
    assert "  labels: none\n" in out
    assert set(load_file(tmp_path / "out" / "release.safetensors")) == {"samples"}


@pytest.mark.parametrize("few", [False, True])
def test_classes_that_few_people_have_and_labels_that_are_withheld_are_told(few, tmp_path, capsys) -> None:
    images = tmp_path / "images"
    images.mkdir()
    draw, lines = np.random.default_rng(0), ["path,subject,sick" if not few else "path,subject,class"]
    for number in range(300):
        Image.fromarray(draw.integers(0, 256, (8, 8), dtype=np.uint8)).save(images / f"{number}.png")
        sick = number % 3 == 0
        word = ("leprosy" if number < 8 else "normal") if few else str(int(sick))
        lines.append(f"{number}.png,p{number},{word}")
    (images / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert release(tmp_path, "--method", "blur", "--public", "none", data=f"folder:{images}") == 0
    out = capsys.readouterr().out
    if few:
        released = load_file(tmp_path / "out" / "release.safetensors")["labels"][:, 0]
        assert f"leprosy ({int(released.sum())} rows)" in out
        assert "Careful: fewer than 10 people have leprosy" in out
        return
    assert "Careful: fewer" not in out
    released = load_file(tmp_path / "out" / "release.safetensors")["labels"][:, 0]
    yes, no, left = (int(found.sum()) for found in (released == 1, released == 0, released.isnan()))
    assert left > 10
    assert (
        f"labels, counted in the private rows: sick ({yes} yes, {no} no, {left} withheld: --no-balance keeps them)"
        in out
    )


def test_what_learned_nothing_is_not_said_to_have_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", "k-same[k=5]", "--features", "pixels") == 0
    out = capsys.readouterr().out
    assert "features.safetensors: shape [3]" in out
    assert "learned from them" not in out


def test_decoder_is_published_in_place_of_rows_with_what_its_features_need(tmp_path: Path) -> None:
    method = "cvae[publish=decoder,epochs=3]"
    assert release(tmp_path, "--method", method, "--features", "eigenspace") == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"release.json", "generator.safetensors", "features.safetensors"}
    drawn = rebuilt(tmp_path / "out", method).load_generator(load_file(tmp_path / "out/generator.safetensors"))
    assert drawn.sample(5, 0).samples.shape == (5, *about(tmp_path / "out")["shape"])


def test_receivers_read_new_images_into_the_owner_s_features(tmp_path: Path) -> None:
    assert release(tmp_path, "--method", "cvae[epochs=2]", "--features", "eigenspace[components=6]") == 0
    said = about(tmp_path / "out")["features"]
    assert (said["name"], said["images"], said["dimensions"]) == ("eigenspace", [1, 8, 8], 6)
    reader = registry.build("features", parse("eigenspace[components=6]"), "smoke")
    read = reader.load(load_file(tmp_path / "out/features.safetensors"))  # type: ignore[attr-defined]
    images, vectors = (bench(tmp_path, "cvae", space).test.samples for space in (None, "eigenspace[components=6]"))
    torch.testing.assert_close(read.embed(images), vectors)


@pytest.mark.parametrize("method", ["dp-sgd", "cvae", "dauntless"])
def test_method_that_releases_nothing_says_why_and_leaves_nothing(method, tmp_path, capsys) -> None:
    assert release(tmp_path, "--method", method) == 2
    assert f"bench: {method} releases nothing here: " in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} <= {"results"}


def test_training_that_diverges_says_so_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", "cvae[learning_rate=1e30]", "--features", "pixels") == 2
    said = capsys.readouterr().err
    assert "releases nothing here: FloatingPointError: training diverged in epoch" in said
    assert "lower learning_rate" in said
    assert {path.name for path in tmp_path.iterdir()} == {"results"}


@pytest.mark.parametrize("method", ["identity", "over-fitted-cvae"])
def test_reference_rows_are_not_published(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", method) == 2
    assert "is a reference method that checks attacks" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    assert release(tmp_path, "--method", "blur") == 2
    assert "--out must be a new or empty folder" in capsys.readouterr().err
    (tmp_path / "out-key.safetensors").write_text("mine")
    (tmp_path / "out/mine").unlink()
    assert release(tmp_path, "--method", "dp-simple") == 2
    assert "--key-out must be a new file" in capsys.readouterr().err
    assert (tmp_path / "out-key.safetensors").read_text() == "mine"
    (tmp_path / "out-key.safetensors").unlink()
    assert release(tmp_path, "--method", "dp-simple") == 0  # an empty folder will do


@pytest.mark.parametrize(("results", "key"), [("results", "{out}/key"), ("out/r", None), ("results", "{out}/../out/k")])
def test_secrets_may_not_lie_in_what_is_published(results, key, tmp_path, capsys) -> None:
    (tmp_path / "out").mkdir()
    key_out = [] if key is None else ["--key-out", key.format(out=tmp_path / "out")]
    assert release(tmp_path, "--method", "dp-simple", *key_out, results=results) == 2
    assert "must lie outside" in capsys.readouterr().err
    assert not any((tmp_path / "out").iterdir())


def test_no_secret_goes_into_an_earlier_release(tmp_path, capsys) -> None:
    assert release(tmp_path, "--method", "blur", out="old") == 0
    kept = {path.name for path in (tmp_path / "old").iterdir()}
    for out, arguments in (("out", ["--key-out", str(tmp_path / "old/key")]), ("old/new", [])):
        assert release(tmp_path, "--method", "dp-simple", *arguments, out=out) == 2
        assert "the key must stay secret, and " in capsys.readouterr().err
    assert main(["keys", "new", str(tmp_path / "old/key")]) == 2
    assert "a private key must stay secret" in capsys.readouterr().err
    with pytest.raises(UsageError, match="the run secret of --results must stay secret"):
        Results(tmp_path / "old/results").keep_secret()
    assert {path.name for path in (tmp_path / "old").iterdir()} == kept


def test_a_release_that_is_in_its_place_keeps_its_key(tmp_path, monkeypatch) -> None:
    def stop(folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bench.runs.publication.sync", lambda path: stop(path) if path == tmp_path else None)
    assert release(tmp_path, "--method", "dp-simple") == 130
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out-key.safetensors", "results"}


def test_failure_on_the_last_step_leaves_neither_release_nor_key(tmp_path, monkeypatch, capsys) -> None:
    replace = Path.replace

    def fill(path: Path, target: Path) -> Path:
        if target == tmp_path / "out":
            raise OSError("the disk is full")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fill)
    assert release(tmp_path, "--method", "dp-simple") == 2
    assert "the disk is full" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"results"}


def test_data_that_may_not_be_shared_are_released_for_the_owner_s_eyes(tmp_path, monkeypatch, capfd) -> None:
    for kind in ("a", "b"):
        (tmp_path / "images" / kind).mkdir(parents=True)
        for number in range(30):
            shade = 4 * number + (100 if kind == "b" else 0)
            Image.new("L", (8, 8), shade).save(tmp_path / "images" / kind / f"{number}.png")
    data = f"folder:{tmp_path / 'images'}"
    assert release(tmp_path, "--method", "dp-simple", "--size", "8", data=data) == 0
    out = capfd.readouterr().out
    assert "these data may not be shared" in out
    assert "set-aside people of the same data" in out
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert str(tmp_path) not in (tmp_path / "out/release.json").read_text()

    def tell(*given: object) -> None:
        os.write(1, b"a pixel of 104\n")
        raise ValueError("row 7 is wrong")

    monkeypatch.setattr(Workbench, "untouched", tell)
    assert release(tmp_path, "--method", "dp-simple", "--size", "8", out="again", data=data) == 2
    told = capfd.readouterr()
    log = tmp_path / "results/artefacts/logs/release/dp-simple.log"
    assert f"the log says more (these data may not be shared) (log: {log})" in told.err
    assert not any(said in told.out + told.err for said in ("104", "row 7"))
    assert "a pixel of 104" in log.read_text()
    assert "row 7 is wrong" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600

    def give_up(*given: object) -> None:
        raise KeyError("patient 7")

    monkeypatch.setattr(Workbench, "untouched", give_up)
    assert release(tmp_path, "--method", "dp-simple", "--size", "8", out="again", data=data) == 2
    told = capfd.readouterr()
    assert "error: an exception was raised" in told.err
    assert "patient 7" not in told.out + told.err
    monkeypatch.undo()
    assert release(tmp_path, "--method", "dauntless", "--size", "8", out="again", data=data) == 2
    assert "not-applicable: makes no sense here" in capfd.readouterr().err


def test_one_release_is_of_one_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", "blur", "--method", "mosaic") == 2
    assert "got 2 methods, 1 choices of data set and seed" in capsys.readouterr().err


def test_progress_over_data_that_may_not_be_shared_shows_the_phase_alone() -> None:
    lines: list[str] = []
    stages = _Stages(lambda stage, done, total: lines.append(stage))
    for stages.restricted, shown in ((False, "row 7 of Jane Doe"), (True, "release")):
        stages.hear("release", 0, 0)
        stages.hear("row 7 of Jane Doe", 1, 2)
        assert lines[-1] == shown
    stages.hear("row 8 of Jane Doe", 0, 0)
    assert lines[-1] == "release"
