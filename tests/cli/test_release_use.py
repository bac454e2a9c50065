"""A release in use: read by a stranger, encoded for, decoded, composed with others."""

from __future__ import annotations

import csv
import errno
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import mlcroissant
import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file

from bench.cli import main
from bench.data.sets.folder import Folder
from bench.disk.process_id import own_name
from bench.randomness import Secret
from bench.runs.release_files import changed, write_sums
from bench.runs.release_ledger import Ledger


def images(folder: Path, count: int = 60, side: int = 8) -> str:
    """Bright squares are sick, dark ones are not; a person each."""
    place = folder / "my scans é"
    place.mkdir()
    draw, lines = np.random.default_rng(0), ["path,subject,sick"]
    for number in range(count):
        pixels = draw.integers(0, 100, (side, side), dtype=np.uint8) + (100 if number % 2 else 0)
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"patient {number:04d}.png")
        lines.append(f"patient {number:04d}.png,Müller-{number:04d},{number % 2}")
    (place / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"folder:{place}"


def release(
    folder: Path, method: str, *words: str, out: str = "out", accept: bool = True,
    public: Sequence[str] = ("--public", "none"),
) -> int:  # fmt: skip
    data = f"folder:{folder / 'my scans é'}"
    fixed = ["--dataset", data, "--size", "8", "--results", str(folder / "results"), "--out", str(folder / out)]
    fixed += ["--ledger", str(folder / "ledger"), *public, *(["--accept", "a test"] if accept else [])]
    return main(["release", "--method", method, *fixed, *words])


def python(folder: Path, *words: str) -> str:
    """A script of the folder, run as a stranger does."""
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(folder: Path) -> tuple:
    """The folder's own load.py."""
    spec = importlib.util.spec_from_file_location("their_load", folder / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load()


@pytest.mark.parametrize("form", ["safetensors", "png", "dicom"])
def test_a_stranger_reads_the_same_rows_and_labels_in_every_format(form: str, tmp_path: Path) -> None:
    images(tmp_path)
    assert release(tmp_path, "k-same[k=5]", "--format", form) == 0
    rows, labels, groups, findings = loaded(tmp_path / "out")
    assert rows.shape == (60, 1, 8, 8)
    assert (labels.shape, findings, int(labels.sum())) == ((60, 1), ["sick"], 30)
    assert len(set(groups.tolist())) == 12
    for number in set(groups.tolist()):
        assert len(np.unique(rows[groups == number], axis=0)) == 1
    said = json.loads((tmp_path / "out" / "release.json").read_text())
    assert said["looked_at"] == {"rows": 60, "distinct": 12, "labels": {"sick": {
        "yes": 30, "no": 30, "unknown": 0, "mixed": 0}}}  # fmt: skip
    assert "**Only 12 rows are different ones**" in (tmp_path / "out" / "README.md").read_text()
    assert "sick: AUC" in python(tmp_path / "out", "example.py")


@pytest.mark.parametrize("table", ["metadata.csv", "datalist.json"])
def test_tables_of_other_libraries_hold_the_same_labels(table: str, tmp_path: Path) -> None:
    images(tmp_path)
    assert release(tmp_path, "mosaic", "--format", "png") == 0
    _, labels, _, _ = loaded(tmp_path / "out")
    for name in {"labels.csv", "metadata.csv", "datalist.json"} - {table}:
        (tmp_path / "out" / name).unlink()
    scan = Folder(str(tmp_path / "out")).scan([], 8)
    assert scan.findings == ("sick",)
    np.testing.assert_array_equal(scan.labels, np.asarray(labels))
    assert [path.name for path in scan.paths or ()] == [f"{number:06d}.png" for number in range(60)]


def test_hashes_cover_every_file(tmp_path: Path) -> None:
    images(tmp_path)
    assert release(tmp_path, "mosaic", "--format", "png") == 0
    lines = (tmp_path / "out" / "SHA256SUMS").read_text().splitlines()
    sums = {line[66:]: line[:64] for line in lines}
    files = {path.relative_to(tmp_path / "out").as_posix(): path for path in (tmp_path / "out").rglob("*.*")}
    assert sums == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def test_a_new_list_of_hashes_does_not_make_other_images_the_released_ones(tmp_path: Path) -> None:
    images(tmp_path)
    assert release(tmp_path, "mosaic", "--format", "png") == 0
    assert changed(tmp_path / "out") == []
    Image.new("L", (8, 8)).save(tmp_path / "out/images/000007.png")
    assert changed(tmp_path / "out") == ["images", "images/000007.png"]
    (tmp_path / "out/SHA256SUMS").unlink()
    write_sums(tmp_path / "out")
    assert changed(tmp_path / "out") == ["images"]


def test_no_name_of_a_file_or_person_is_in_any_text(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    for form in ("safetensors", "dicom"):
        assert release(tmp_path, "mosaic", "--format", form, out=form) == 0
        assert "no name of a file or a person stands in the text of any file" in capsys.readouterr().out
        for path in (tmp_path / form).rglob("*.*"):
            assert not any(word in path.read_bytes() for word in ("Müller".encode(), b"patient 0", b"my scans"))


def test_folders_of_patients_are_not_published_as_findings(tmp_path: Path, capsys) -> None:
    for number in range(24):
        path = tmp_path / "pat" / f"Müller {number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(number).integers(0, 255, (8, 8), dtype=np.uint8)).save(path)
    words = ["release", "--method", "mosaic", "--dataset", f"folder:{tmp_path / 'pat'}", "--accept", "for a test"]
    words += ["--results", str(tmp_path / "results"), "--ledger", str(tmp_path / "ledger")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "2 of 2 findings are called as a file, a folder or a person" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*words, "--out", str(tmp_path / "out"), "--accept-names"]) == 0


def test_a_release_of_a_few_people_needs_the_owner_s_reason(tmp_path: Path, capsys) -> None:
    images(tmp_path, 9)
    assert release(tmp_path, "mosaic", accept=False) == 3
    assert "the release is of fewer than 10 people: 9" in capsys.readouterr().err
    assert release(tmp_path, "mosaic") == 0


def test_a_name_in_the_owner_s_own_words_is_found(tmp_path: Path, capsys) -> None:
    """Names hold blanks, and codes are short."""
    folder = tmp_path / "my scans é"
    images(tmp_path)
    table = (folder / "labels.csv").read_text(encoding="utf-8").replace("Müller-0001", "Müller, Jörg")
    (folder / "labels.csv").write_text(table.replace("Müller-0003", "P-3").replace("Müller, Jörg", '"Müller, Jörg"'))
    reason = ("--accept", "as agreed with Müller, Jörg and with P-3")
    assert release(tmp_path, "mosaic", *reason, accept=False) == 0
    assert "names of files or people stand in the text of release.json (2), README.md (2)" in capsys.readouterr().out


def test_a_method_that_could_claim_privacy_and_does_not_says_so(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    assert release(tmp_path, "mosaic") == 0
    assert "no differential privacy is claimed with these parameters" in capsys.readouterr().out
    assert "- No differential privacy is claimed with these parameters." in (tmp_path / "out/README.md").read_text()
    assert release(tmp_path, "k-same[k=5]", out="b") == 0
    assert "is claimed with these" not in (tmp_path / "b/README.md").read_text()


def test_images_to_encode_must_be_a_folder(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    assert release(tmp_path, "mosaic") == 0
    words = ["encode", str(tmp_path / "none"), "--release", str(tmp_path / "out"), "--out", str(tmp_path / "q")]
    assert main(words) == 2
    assert "none is no folder: name one with the new images" in capsys.readouterr().err


def test_a_data_card_is_valid_croissant(tmp_path: Path) -> None:
    images(tmp_path)
    assert release(tmp_path, "mosaic") == 0
    card = mlcroissant.Dataset(jsonld=str(tmp_path / "out" / "datacard.json"))
    assert not card.metadata.issues.errors


def test_rows_that_an_image_cannot_hold_are_refused_and_leave_nothing(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    before = {path.name for path in tmp_path.iterdir()} | {"results"}
    assert release(tmp_path, "random-layers[patch_size=4]", "--format", "png") == 2
    assert "use --format safetensors" in capsys.readouterr().err
    assert release(tmp_path, "k-same[k=5]", "--features", "pixels", "--format", "dicom") == 2
    assert "is for grey or colour images" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} <= before


def new_images(folder: Path) -> Path:
    """Four images of the next week: two dark, two bright."""
    place = folder / "new"
    place.mkdir()
    for number, shade in enumerate((30, 170, 40, 160)):
        Image.new("L", (8, 8), shade).save(place / f"new {number}.png")
    return place


@pytest.mark.parametrize("encrypted", [False, True])
def test_hospital_to_model_and_back_from_the_release_folder_alone(encrypted, tmp_path, monkeypatch, capsys) -> None:
    """Encoded rows and labels go out; a stranger trains; the hospital encodes new images, and decodes predictions."""
    secret = tmp_path / "pass.txt"
    secret.write_text("correct horse battery\n")
    locked = ["--passphrase", str(secret)] if encrypted else []
    count = iter(range(1000))
    monkeypatch.setattr(Secret, "fresh", lambda: Secret(hashlib.sha256(bytes([next(count)])).digest()))
    images(tmp_path, count=200)
    table = tmp_path / "rows.csv"
    table.write_text("row\n" + "".join(f"{number}\n" for number in range(160)))
    method, codes = "syfer-random[patch_size=4,blocks=1,depth=1]", set()
    for out in "abcd":
        assert release(tmp_path, method, "--rows", str(table), *locked, out=out, public=()) == 0
        key, folder = tmp_path / f"{out}-key.safetensors", tmp_path / out
        assert key.stat().st_mode & 0o777 == 0o600
        use = ["--release", str(folder), "--key", str(key), *locked]
        queries, names = tmp_path / f"{out}-q.safetensors", tmp_path / f"{out}-q-names.csv"
        place = tmp_path / "new" if (tmp_path / "new").exists() else new_images(tmp_path)
        assert main(["encode", str(place), *use, "--out", str(queries)]) == 0
        python(folder, "example.py", str(queries), str(tmp_path / f"{out}-p.csv"))
        decoded = tmp_path / f"{out}-d.csv"
        words = [str(tmp_path / f"{out}-p.csv"), *use, "--names", str(names), "--out", str(decoded)]
        assert main(["decode", *words]) == 0
        found = {line["file"]: float(line["sick"]) for line in csv.DictReader(decoded.open())}
        assert list(found) == [f"new {number}.png" for number in range(4)]
        sent = [float(line["sick"]) for line in csv.DictReader((tmp_path / f"{out}-p.csv").open())]
        codes.add(sent[0] < sent[1])
        assert max(found["new 0.png"], found["new 2.png"]) < min(found["new 1.png"], found["new 3.png"])
    assert codes == {True, False}  # yes and no changed places under some keys, and under others they did not
    if encrypted:
        capsys.readouterr()
        assert main(["encode", str(place), *use[:4], "--out", str(tmp_path / "x")]) == 2
        assert "is encrypted" in capsys.readouterr().err
        secret.write_text("another passphrase\n")
        assert main(["encode", str(place), *use, "--out", str(tmp_path / "x")]) == 2
        assert "is not opened by this passphrase" in capsys.readouterr().err


def test_a_key_of_another_release_or_a_changed_folder_is_told(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    for out in ("a", "b"):
        assert release(tmp_path, "random-layers[patch_size=4]", out=out) == 0
    place, queries = new_images(tmp_path), tmp_path / "q"
    words = ["encode", str(place), "--release", str(tmp_path / "a"), "--out", str(queries)]
    assert main([*words, "--key", str(tmp_path / "b-key.safetensors")]) == 2
    assert "is the key of another release" in capsys.readouterr().err
    assert main(words) == 2
    assert "name its file by --key" in capsys.readouterr().err
    with (tmp_path / "a" / "release.safetensors").open("ab") as file:
        file.write(b"x")
    assert main([*words, "--key", str(tmp_path / "a-key.safetensors")]) == 2
    assert "is not as it was released: release.safetensors" in capsys.readouterr().err
    assert not queries.exists()


def test_a_changed_image_is_told_before_predictions_are_decoded(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    assert release(tmp_path, "mosaic", "--format", "png") == 0
    (tmp_path / "p.csv").write_text("sick\n.5\n")
    words = ["decode", str(tmp_path / "p.csv"), "--release", str(tmp_path / "out"), "--out", str(tmp_path / "d.csv")]
    (tmp_path / "out" / "README.md").write_text("with a licence")  # no row
    assert main(words) == 0
    (tmp_path / "out" / "images" / "000003.png").unlink()
    assert main([*words[:-1], str(tmp_path / "e.csv")]) == 2
    assert "is not as it was released: images" in capsys.readouterr().err


def test_predictions_of_another_form_are_refused(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    assert release(tmp_path, "mosaic") == 0
    table = tmp_path / "p.csv"
    for text, said in (
        ("ill\n.5\n", "expected the columns sick"),
        ("sick\n1.5\n", "from 0 to 1"),
        ("sick\nx\n", "must be"),
    ):
        table.write_text(text)
        assert main(["decode", str(table), "--release", str(tmp_path / "out"), "--out", str(tmp_path / "d.csv")]) == 2
        assert said in capsys.readouterr().err


def test_a_second_release_of_the_same_people_is_remembered(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    assert release(tmp_path, "k-same[k=5]", out="a") == 0
    assert "Ledger" not in capsys.readouterr().out
    assert release(tmp_path, "k-same[k=6]", out="b", accept=False) == 3
    assert "an earlier k-anonymous release has some of these people" in capsys.readouterr().err
    (entry,) = (tmp_path / "ledger").glob("*.json")
    assert entry.stat().st_mode & 0o777 == 0o600
    assert "Müller" not in entry.read_text()
    assert not (tmp_path / "b").exists()


def test_epsilons_of_the_same_people_add_up_and_those_of_others_do_not(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    halves = {}
    for name, numbers in (("first", range(30)), ("second", range(30, 60))):
        halves[name] = tmp_path / f"{name}.csv"
        halves[name].write_text("row\n" + "".join(f"{number}\n" for number in numbers))
    method = "mosaic[epsilon=6]"
    assert release(tmp_path, method, "--rows", str(halves["first"]), out="a") == 0
    capsys.readouterr()
    assert release(tmp_path, method, "--rows", str(halves["second"]), out="b") == 0
    assert "Ledger" not in capsys.readouterr().out
    assert release(tmp_path, method, out="c", accept=False) == 3
    capsys.readouterr()
    assert release(tmp_path, method, out="c") == 0
    said = capsys.readouterr().out
    assert "release 3 of the same people (up to 30 of 60 shared)" in said
    assert "epsilon adds up to 12, delta" in said
    assert "epsilon of 3 releases of the same people adds up to more than 10" in said


def test_the_same_key_serves_new_rows_and_no_other_scale(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    assert release(tmp_path, "random-layers[patch_size=4]", out="a") == 0
    again = ["--key", str(tmp_path / "a-key.safetensors")]
    assert release(tmp_path, "random-layers[patch_size=4]", *again, out="b") == 0
    first, second = (load_file(tmp_path / f"{out}-key.safetensors") for out in "ab")
    assert all(bool((first[name] == second[name]).all()) for name in first)
    assert release(tmp_path, "mosaic[epsilon=1]", "--key-out", str(tmp_path / "n"), out="c") == 0
    capsys.readouterr()
    noise = ["--key", str(tmp_path / "n"), "--key-out", str(tmp_path / "m")]
    assert release(tmp_path, "mosaic[epsilon=2]", *noise, out="d") == 2
    assert "the same key under another scale" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("form", ["safetensors", "png", "dicom"])
def test_the_release_can_be_scored_by_its_links(form: str, tmp_path: Path, capsys) -> None:
    images(tmp_path)
    table = tmp_path / "rows.csv"
    table.write_text("row\n" + "".join(f"{number}\n" for number in range(40)))
    assert release(tmp_path, "mosaic", "--rows", str(table), "--format", form) == 0
    data = f"folder:{tmp_path / 'my scans é'}"
    written = f"imported[path={tmp_path / 'out'},links={tmp_path / 'out-links.csv'}]"
    assert main(["check", written, "--dataset", data, "--size", "8"]) == 0
    assert "40 raw rows, and 20 others" in " ".join(capsys.readouterr().out.split())


def test_a_full_disk_leaves_nothing_and_is_told(tmp_path: Path, monkeypatch, capsys) -> None:
    images(tmp_path)

    def fill(*given: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "out"))

    monkeypatch.setattr("bench.runs.release_writing.write_card", fill)
    assert release(tmp_path, "mosaic") == 2
    assert "cannot write" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"my scans é", "results"}


def test_releases_that_begin_at_the_same_time_take_turns_in_the_ledger(tmp_path: Path) -> None:
    """The second one counts the first, and neither begins a ledger of its own."""
    data = images(tmp_path)
    words = [
        sys.executable,
        "-m",
        "bench",
        "release",
        "--method",
        "mosaic[epsilon=1]",
        "--dataset",
        data,
        "--size",
        "8",
    ]
    words += ["--public", "none", "--results", str(tmp_path / "results"), "--ledger", str(tmp_path / "ledger")]
    outs = [str(tmp_path / name) for name in "ab"]
    both = [
        subprocess.Popen([*words, "--accept", "a test", "--out", out], stdout=subprocess.PIPE, text=True)
        for out in outs
    ]
    said = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sorted("Ledger: release 2 of the same people" in text for text in said) == [False, True]
    assert len(list((tmp_path / "ledger").glob("*.json"))) == 2


def test_a_release_waits_for_the_one_that_has_its_turn(tmp_path: Path) -> None:
    ledger, waits = Ledger(tmp_path / "ledger"), []

    def second() -> None:
        with ledger.turn(lambda: waits.append("waits")):
            waits.append("its turn")

    with ledger.turn(lambda: waits.append("never")):
        thread = threading.Thread(target=second)
        thread.start()
        while not waits:
            time.sleep(0.01)
        assert waits == ["waits"]
    thread.join()
    assert waits == ["waits", "its turn"]
    assert not (tmp_path / "ledger").exists()


def test_a_refused_release_begins_no_ledger(tmp_path: Path) -> None:
    images(tmp_path)
    assert release(tmp_path, "k-same[k=2]", accept=False) == 3
    assert not (tmp_path / "ledger").exists()


def test_a_trial_ends_as_the_release_would_and_writes_nothing(tmp_path: Path, capsys) -> None:
    """Raw rows, people behind a claim, the ledger and keys are looked at, too."""
    images(tmp_path)
    few = tmp_path / "few.csv"
    few.write_text("row\n" + "".join(f"{number}\n" for number in range(9)))
    assert release(tmp_path, "random-layers[patch_size=4]", out="a") == 0
    assert release(tmp_path, "k-same[k=5]", out="b") == 0
    assert release(tmp_path, "mosaic[epsilon=1]", "--key-out", str(tmp_path / "n"), out="c") == 0
    there = {path.name for path in tmp_path.iterdir()}
    noise = ["--key", str(tmp_path / "n"), "--key-out", str(tmp_path / "m")]
    cases = {
        "released rows are raw rows, unchanged: 60 of 60": ("mosaic[cell=1]",),
        "the release is of fewer than 10 people: 9": ("mosaic", "--rows", str(few)),
        "an earlier k-anonymous release has some of these people": ("k-same[k=6]",),
        "the same key under another scale": ("mosaic[epsilon=2]", *noise),
        "use --format safetensors": ("random-layers[patch_size=4]", "--format", "png"),
        "is the key of another scheme": ("mosaic", "--key", str(tmp_path / "a-key.safetensors")),
    }
    for cause, words in cases.items():
        codes = []
        for trial in ((), ("--dry-run",)):
            codes.append(release(tmp_path, *words, *trial, out="d", accept=False))
            assert cause in "".join(capsys.readouterr()), words
            assert {path.name for path in tmp_path.iterdir()} == there
        assert codes[0] == codes[1] != 0
    assert release(tmp_path, "mosaic", "--dry-run", out="d") == 0
    assert "Not known from a trial: what a look at the written folder finds" in capsys.readouterr().out


def test_a_trial_trains_nothing_and_says_what_stays_unknown(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    few = tmp_path / "few.csv"
    few.write_text("row\n" + "".join(f"{number}\n" for number in range(9)))
    assert release(tmp_path, "dp-merf", "--rows", str(few), "--dry-run", accept=False, public=()) == 3
    said = capsys.readouterr().out
    assert "Against it: the release is of fewer than 10 people" in said
    assert "Not known from a trial: released rows that equal raw ones" in said
    assert not (tmp_path / "ledger").exists()


KILLED = """
import os, sys
from pathlib import Path
from bench.cli import main
replace = Path.replace
Path.replace = lambda path, to: os.kill(os.getpid(), 9) if path.name.startswith(".out.") else replace(path, to)
main(sys.argv[1:])
"""


def test_what_a_killed_release_left_is_removed_by_the_next_and_nothing_else(tmp_path: Path, capsys) -> None:
    data = images(tmp_path)
    words = ["release", "--method", "random-layers[patch_size=4]", "--dataset", data, "--size", "8", "--public", "none"]
    words += ["--results", str(tmp_path / "results"), "--out", str(tmp_path / "out"), "--accept", "a test"]
    words += ["--ledger", str(tmp_path / "ledger")]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == -9
    (left,) = tmp_path.glob(".out.*")
    links, key = tmp_path / "out-links.csv", tmp_path / "out-key.safetensors"
    assert links.exists()
    assert key.exists()
    text = links.read_text()
    links.write_text(text.replace(hashlib.sha256((left / "release.json").read_bytes()).hexdigest(), "0" * 64))
    kept = tmp_path / ".out.mine"
    kept.mkdir()
    assert main([*words, "--links-out", str(tmp_path / "mine.csv")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "an earlier release was interrupted, and what it left was removed: " in said
    assert links.exists()  # it was of some other release
    assert kept.exists()
    kept.rmdir()
    assert not left.exists()
    assert len(list((tmp_path / "ledger").glob("*.json"))) == 1


def test_a_release_that_another_process_writes_is_let_be(tmp_path: Path, capsys) -> None:
    images(tmp_path)
    alive = tmp_path / f".out.{own_name()}"
    alive.mkdir()
    assert release(tmp_path, "mosaic") == 0
    assert "is of a release that another process writes" in capsys.readouterr().out
    assert alive.exists()
