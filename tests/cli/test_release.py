from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from made.cells import cell, place
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from bench.cli import main
from bench.cli.commands.release import _contents
from bench.plugins import registry
from bench.plugins.spec import UsageError, parse
from bench.randomness import Secret
from bench.results.results import Results
from bench.runs.publication import _Stages
from bench.types import Method, Scheme
from bench.workbench.owned_rows import open_owned
from bench.workbench.workbench import Workbench


def release(
    folder: Path, *arguments: str, out: str = "out", data: str = "digits", results: str | Path = "results"
) -> int:
    some = ["--rows", str(some_rows(folder))] if data == "digits" else []
    return main(
        ["release", "--dataset", data, "--results", str(folder / results), "--out", str(folder / out), *some,
         "--accept", "a test", "--ledger", str(folder / "ledger"), *arguments]
    )  # fmt: skip


TEXTS = {"README.md", "SHA256SUMS", "datacard.json", "example.py", "groups.csv", "labels.csv", "load.py"}


def some_rows(folder: Path) -> Path:
    """A table of 160 rows to release; the others are the public ones."""
    table = folder / "rows.csv"
    table.write_text("row\n" + "".join(f"{row}\n" for row in range(160)))
    return table


def listing(folder: Path) -> set[str]:
    """What a release left, beside the tables that the tests wrote."""
    return {path.name for path in folder.iterdir()} - {"rows.csv", "out-links.csv", "ledger", *TEXTS}


def about(folder: Path) -> dict:
    return json.loads((folder / "release.json").read_text())


def bench(folder: Path, method: str, features: str | None = None) -> Workbench:
    """The same rows as `bench release` lays them out."""
    return open_owned(cell(method, features=features), place(folder, "other"), rows=some_rows(folder)).bench


def rebuilt(folder: Path, method: str) -> Scheme:
    built = registry.build("methods", parse(method), "paper")
    assert isinstance(built, Method)
    path = folder / "scheme.safetensors"
    return built.load(load_file(path) if path.exists() else {})


def sorted_rows(samples: Tensor) -> list[list[float]]:
    return sorted(samples.flatten(1).tolist())


def test_published_files_and_key_make_the_same_rows_again(tmp_path: Path) -> None:
    assert release(tmp_path, "--method", "dp-simple", "--key-out", str(tmp_path / "out-key.safetensors")) == 0
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
        key = str(tmp_path / f"{out}-key.safetensors")
        assert release(tmp_path, "--method", "dp-simple", "--key-out", key, out=out) == 0
    a, b = (load_file(tmp_path / out / "release.safetensors")["samples"] for out in ("a", "b"))
    assert sorted_rows(a) != sorted_rows(b)
    keys = [load_file(tmp_path / f"{out}-key.safetensors")["secret"] for out in ("a", "b")]
    assert not torch.equal(keys[0], keys[1])
    assert keys[0].dtype == torch.uint8
    assert len(keys[0]) == 32


def test_the_same_entropy_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Secret, "fresh", lambda: Secret(bytes(range(32))))
    for out in ("a", "b"):
        key = str(tmp_path / f"{out}-key.safetensors")
        assert release(tmp_path, "--method", "dp-simple", "--key-out", key, out=out) == 0
    for name in ("release.safetensors", "release.json", "scheme.safetensors", "SHA256SUMS"):
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
        "accepted", "claim", "claims", "exclusive", "findings", "format", "looked_at", "made_by", "method",
        "rows", "schema", "secret", "sha256",
    }  # fmt: skip
    text = "".join((tmp_path / "out" / name).read_text() for name in ("release.json", "README.md", "datacard.json"))
    for secret in (str(tmp_path), bench(tmp_path, "dp-simple").record.fingerprint, "digits"):
        assert secret not in text
    for name, digest in said["sha256"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    assert listing(tmp_path / "out") == {"release.json", *said["sha256"]}


def test_only_the_key_is_closed_to_others_and_it_lies_outside(tmp_path: Path) -> None:
    assert release(tmp_path, "--method", "dp-simple", "--key-out", str(tmp_path / "k.safetensors")) == 0
    assert (tmp_path / "k.safetensors").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out-links.csv").stat().st_mode & 0o777 == 0o600
    assert listing(tmp_path) == {"k.safetensors", "out", "results"}


def test_method_without_a_secret_writes_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", "blur") == 0
    assert listing(tmp_path) == {"out", "results"}
    assert listing(tmp_path / "out") == {"release.json", "release.safetensors"}
    out = capsys.readouterr().out
    assert "No key file: this method has no secret" in out
    rows = [int(count) for count in re.findall(r"\d \((\d+) yes", out)]
    assert (len(rows), sum(rows)) == (10, 160)
    assert "Claim: no formal guarantee" in out


def images_with_a_table(folder: Path, cells: Sequence[str], head: str = "sick") -> str:
    """A data set of random images, a person each, with one column of cells."""
    images = folder / "images"
    images.mkdir()
    draw, lines = np.random.default_rng(0), [f"path,subject,{head}"]
    for number, cell_text in enumerate(cells):
        Image.fromarray(draw.integers(0, 256, (8, 8), dtype=np.uint8)).save(images / f"{number}.png")
        lines.append(f"{number}.png,p{number},{cell_text}")
    (images / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"folder:{images}"


def test_all_rows_and_all_labels_are_released_rare_ones_too(tmp_path: Path, capsys) -> None:
    data = images_with_a_table(tmp_path, [str(int(number < 3)) for number in range(40)])
    assert release(tmp_path, "--method", "mosaic", "--size", "8", data=data) == 0
    out = capsys.readouterr().out
    assert "40 rows of 40 people, the whole data set" in out
    assert "labels: sick (3 yes, 37 no)" in out
    assert "Careful: fewer than 10 people have sick" in out
    labels = load_file(tmp_path / "out" / "release.safetensors")["labels"]
    assert (len(labels), int(labels.sum())) == (40, 3)


def test_labels_are_withheld_on_request_and_counted_in_the_release(tmp_path: Path, capsys) -> None:
    data = images_with_a_table(tmp_path, [str(int(number % 3 == 0)) for number in range(300)])
    assert release(tmp_path, "--method", "mosaic", "--size", "8", "--balance", data=data) == 0
    out = capsys.readouterr().out
    released = load_file(tmp_path / "out" / "release.safetensors")["labels"][:, 0]
    yes, no, left = (int(found.sum()) for found in (released == 1, released == 0, released.isnan()))
    assert (yes, no, left) == (100, 100, 100)
    assert "labels: sick (100 yes, 100 no, 100 unknown)" in out
    assert "100 labels are withheld" in out


def test_a_table_chooses_rows_by_file(tmp_path: Path, capsys) -> None:
    data = images_with_a_table(tmp_path, ["1"] * 30)
    table = tmp_path / "mine.csv"
    table.write_text("path,note\n" + "".join(f"{number}.png,x\n" for number in (3, 7, 20, 21, 22)))
    assert release(tmp_path, "--method", "mosaic", "--size", "8", "--rows", str(table), data=data) == 0
    assert "5 rows of 5 people, the chosen ones" in capsys.readouterr().out
    links = list(csv.DictReader((tmp_path / "out-links.csv").open()))
    assert {line["file"] for line in links} == {f"{number}.png" for number in (3, 7, 20, 21, 22)}
    assert {line["person"] for line in links} == {f"p{number}" for number in (3, 7, 20, 21, 22)}
    table.write_text("path\n3.png\n99.png\n")
    assert release(tmp_path, "--method", "mosaic", "--size", "8", "--rows", str(table), out="b", data=data) == 2
    assert "the table of --rows: line 3: raw is no file" in capsys.readouterr().err


def test_what_learns_from_public_rows_says_so_where_there_are_none(tmp_path: Path, capsys) -> None:
    data = images_with_a_table(tmp_path, ["1", "0"] * 20)
    assert release(tmp_path, "--method", "dp-simple", "--size", "8", data=data) == 2
    said = capsys.readouterr().err
    for remedy in ("--public", "--scheme", "--rows"):
        assert remedy in said


def test_a_scheme_that_was_fitted_before_is_taken_as_it_is(tmp_path: Path, capsys) -> None:
    assert release(tmp_path, "--method", "dp-simple") == 0
    fitted = tmp_path / "out" / "scheme.safetensors"
    assert release(tmp_path, "--method", "dp-simple", "--scheme", str(fitted), out="b") == 0
    assert (tmp_path / "b" / "scheme.safetensors").read_bytes() == fitted.read_bytes()
    wrong = tmp_path / "wrong.safetensors"
    save_file({"mean": torch.zeros(1)}, wrong)
    assert release(tmp_path, "--method", "dp-simple", "--scheme", str(wrong), out="c") == 2
    assert "--scheme holds no scheme of dp-simple" in capsys.readouterr().err
    apart = ("--isolation", "processes")
    assert release(tmp_path, "--method", "syfer", "--scheme", str(wrong), *apart, out="d") == 2
    assert "--scheme holds no scheme of syfer" in capsys.readouterr().err


def unaccepted(folder: Path, method: str, *arguments: str, data: str = "digits") -> int:
    """A release without a reason."""
    words = ["--method", method, "--dataset", data, "--results", str(folder / "results"), "--out", str(folder / "out")]
    words += ["--ledger", str(folder / "ledger")]
    return main(["release", *words, "--rows", str(some_rows(folder)), *arguments])


def test_all_that_speaks_against_a_release_is_named_at_once(tmp_path: Path, capsys) -> None:
    assert unaccepted(tmp_path, "k-same[k=2]") == 3
    said = capsys.readouterr().err
    assert "no rated verdict on this method with these parameters on these data" in said
    assert "k is 2, and below 5 too few rows share a form" in said
    assert listing(tmp_path) == {"results"}
    assert unaccepted(tmp_path, "dp-simple[epsilon=1000]") == 3
    assert "epsilon is 1,000, and above 10" in capsys.readouterr().err


def test_training_shorter_than_the_paper_s_and_raw_rows_are_named(tmp_path: Path, capsys) -> None:
    assert unaccepted(tmp_path, "syfer[steps=7,patch_size=4]") == 3
    assert re.search(r"trained for less than in the paper: steps is 7, the paper's [0-9,]{4}", capsys.readouterr().err)
    assert unaccepted(tmp_path, "mosaic[cell=1]") == 3
    assert "released rows are raw rows, unchanged: 160 of 160" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_accepted_reason_stands_in_the_release_with_what_it_overrules(tmp_path: Path) -> None:
    assert unaccepted(tmp_path, "k-same[k=2]", "--accept", "only for our own students") == 0
    accepted = about(tmp_path / "out")["accepted"]
    assert accepted["reason"] == "only for our own students"
    assert accepted["in spite of"][1] == "k is 2, and below 5 too few rows share a form"
    for empty in (" ", "x", "-- 12 --", "\u200b" * 9):
        assert unaccepted(tmp_path, "k-same", "--accept", empty) == 2


def test_what_private_rows_decide_is_not_published_with_a_reason(tmp_path: Path, capsys) -> None:
    """Whether they speak against the release is a bit of them that no claim covers."""
    told = []
    for out, method in (("a", "mosaic[cell=1]"), ("b", "mosaic[cell=2]")):
        (tmp_path / out).mkdir()
        assert unaccepted(tmp_path / out, method, "--accept", "only for our own students") == 0
        told.append(about(tmp_path / out / "out")["accepted"])
        assert "What the private rows themselves may say against it" in (tmp_path / out / "out/README.md").read_text()
    assert "Accepted by you: released rows are raw rows, unchanged: 160 of 160" in capsys.readouterr().out
    assert told[0] == told[1]
    assert [text.partition(" on ")[0] for text in told[0]["in spite of"]] == ["no rated verdict"]


def test_many_tensors_of_a_file_are_counted_and_few_are_named() -> None:
    few = {"mean": torch.zeros(1, 2), "std": torch.zeros(3)}
    assert _contents(few) == "mean [1, 2], std [3]"
    assert (
        _contents({f"layers.{number}": torch.zeros(10, 20) for number in range(157)}) == "157 tensors, 31,400 numbers"
    )


def test_a_trial_writes_nothing_and_says_what_would_leave(tmp_path: Path, capsys) -> None:
    assert unaccepted(tmp_path, "k-same[k=2]", "--dry-run") == 3
    said = capsys.readouterr().out
    assert "Would publish" in said
    assert "Against it: k is 2" in said
    assert listing(tmp_path) <= {"results"}


def verdict_records(folder: Path) -> None:
    """Records of a run of blur on the digits, with its controls."""
    words = ["--method", "mosaic[cell=2]", "--dataset", "digits", "--preset", "smoke", "--controls", "--no-site"]
    assert main(["run", *words, "--attack", "nearest-neighbour", "--results", str(folder / "results")]) == 0


def test_the_board_s_verdict_travels_to_the_release(tmp_path: Path, capsys) -> None:
    verdict_records(tmp_path)
    assert unaccepted(tmp_path, "mosaic[cell=2]") == 3
    said = capsys.readouterr().err
    assert "no rated verdict" not in said
    assert "the verdict on this method on these data is: " in said
    assert unaccepted(tmp_path, "mosaic[cell=4]") == 3
    said = capsys.readouterr().err
    assert "no rated verdict" in said
    assert "records of these data differ in cell 2 (here 4)" in said


def test_what_learned_nothing_is_not_said_to_have_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", "k-same[k=5]", "--features", "pixels") == 0
    out = capsys.readouterr().out
    assert "features.safetensors: shape [3]" in out
    assert "learned from them" not in out


def test_decoder_is_published_in_place_of_rows_with_what_its_features_need(tmp_path: Path) -> None:
    method = "cvae[publish=decoder,epochs=3]"
    assert release(tmp_path, "--method", method, "--features", "eigenspace[components=6]") == 0
    assert listing(tmp_path / "out") == {"release.json", "generator.safetensors", "features.safetensors"}
    drawn = rebuilt(tmp_path / "out", method).load_generator(load_file(tmp_path / "out/generator.safetensors"))
    assert drawn.sample(5, 0).samples.shape == (5, *about(tmp_path / "out")["shape"])


def test_receivers_read_new_images_into_the_owner_s_features(tmp_path: Path) -> None:
    assert release(tmp_path, "--method", "cvae[epochs=2]", "--features", "eigenspace[components=6]") == 0
    said = about(tmp_path / "out")["features"]
    assert (said["name"], said["images"], said["dimensions"]) == ("eigenspace", [1, 8, 8], 6)
    reader = registry.build("features", parse("eigenspace[components=6]"), "paper")
    read = reader.load(load_file(tmp_path / "out/features.safetensors"))  # type: ignore[attr-defined]
    images, vectors = (bench(tmp_path, "cvae", space).test.samples for space in (None, "eigenspace[components=6]"))
    torch.testing.assert_close(read.embed(images), vectors)


@pytest.mark.parametrize("method", ["dp-sgd", "cvae", "dauntless"])
def test_method_that_releases_nothing_says_why_and_leaves_nothing(method, tmp_path, capsys) -> None:
    assert release(tmp_path, "--method", method) == 2
    assert f"bench: {method} releases nothing here: " in capsys.readouterr().err
    assert listing(tmp_path) <= {"results"}


def test_training_that_diverges_says_so_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", "cvae[learning_rate=1e30]", "--features", "pixels") == 2
    said = capsys.readouterr().err
    assert "releases nothing here: FloatingPointError: training diverged in epoch" in said
    assert "lower learning_rate" in said
    assert listing(tmp_path) == {"results"}


@pytest.mark.parametrize("method", ["identity", "over-fitted-cvae"])
def test_reference_rows_are_not_published(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release(tmp_path, "--method", method) == 2
    assert "is a reference method that checks attacks" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    assert release(tmp_path, "--method", "instahide") == 2
    assert "--out must be a new or empty folder" in capsys.readouterr().err
    (tmp_path / "out-key.safetensors").write_text("mine")
    (tmp_path / "out/mine").unlink()
    assert release(tmp_path, "--method", "instahide") == 2
    assert "--key-out must be a new file" in capsys.readouterr().err
    assert (tmp_path / "out-key.safetensors").read_text() == "mine"
    (tmp_path / "out-key.safetensors").unlink()
    assert release(tmp_path, "--method", "instahide") == 0  # an empty folder will do


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
        assert release(tmp_path, "--method", "instahide", *arguments, out=out) == 2
        assert "the key must stay secret, and " in capsys.readouterr().err
    assert main(["keys", "new", str(tmp_path / "old/key")]) == 2
    assert "a private key must stay secret" in capsys.readouterr().err
    with pytest.raises(UsageError, match="the run secret of --results must stay secret"):
        Results(tmp_path / "old/results").keep_secret()
    assert {path.name for path in (tmp_path / "old").iterdir()} == kept


def test_a_release_that_is_in_its_place_keeps_its_key(tmp_path, monkeypatch) -> None:
    def stop(folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bench.runs.release_writing.sync", lambda path: stop(path) if path == tmp_path else None)
    assert release(tmp_path, "--method", "instahide") == 130
    assert listing(tmp_path) == {"out", "out-key.safetensors", "results"}


def test_failure_on_the_last_step_leaves_neither_release_nor_key(tmp_path, monkeypatch, capsys) -> None:
    replace = Path.replace

    def fill(path: Path, target: Path) -> Path:
        if target == tmp_path / "out":
            raise OSError("the disk is full")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fill)
    assert release(tmp_path, "--method", "dp-simple") == 2
    assert "the disk is full" in capsys.readouterr().err
    assert listing(tmp_path) == {"results"}


def test_data_that_may_not_be_shared_are_released_for_the_owner_s_eyes(tmp_path, monkeypatch, capfd) -> None:
    for kind in ("a", "b"):
        (tmp_path / "images" / kind).mkdir(parents=True)
        for number in range(30):
            shade = 4 * number + (100 if kind == "b" else 0)
            Image.new("L", (8, 8), shade).save(tmp_path / "images" / kind / f"{number}.png")
    data = f"folder:{tmp_path / 'images'}"
    assert release(tmp_path, "--method", "mosaic", "--size", "8", data=data) == 0
    out = capfd.readouterr().out
    assert "these data may not be shared" in out
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert str(tmp_path) not in (tmp_path / "out/release.json").read_text()

    def tell(*given: object) -> None:
        os.write(1, b"a pixel of 104\n")
        raise ValueError("row 7 is wrong")

    monkeypatch.setattr(Workbench, "untouched", tell)
    assert release(tmp_path, "--method", "mosaic", "--size", "8", out="again", data=data) == 2
    told = capfd.readouterr()
    log = tmp_path / "results/artefacts/logs/release/mosaic.log"
    assert f"the log says more (these data may not be shared) (log: {log})" in told.err
    assert not any(said in told.out + told.err for said in ("104", "row 7"))
    assert "a pixel of 104" in log.read_text()
    assert "row 7 is wrong" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600

    def give_up(*given: object) -> None:
        raise KeyError("patient 7")

    monkeypatch.setattr(Workbench, "untouched", give_up)
    assert release(tmp_path, "--method", "mosaic", "--size", "8", out="again", data=data) == 2
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
