import errno
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from made.data_files import picture
from PIL import Image

from bench.__main__ import main
from bench.api import boards
from bench.data import raw_files
from bench.data.prepare import prepare
from bench.data.sets.folder import Folder
from bench.data.sets.nih import NIH
from bench.data.verification import checks


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(raw_files.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_only_sets_whose_files_are_here_are_ready(tmp_path: Path) -> None:
    for part in ("train", "test"):
        for kind in ("CNV", "DME", "DRUSEN", "NORMAL"):
            picture(tmp_path / "OCT2017" / part / kind / f"{kind}-1-1.jpeg", 1)
    (tmp_path / "retinamnist_64.npz").write_bytes(b"x")
    found = {
        name: boards._location(name, [tmp_path]) for name in ("kermany-oct", "nih", "digits", "medmnist", "folder")
    }
    assert found == {
        "kermany-oct": "ready", "nih": "not here", "digits": "ready", "medmnist": "ready: retinamnist@64",
        "folder": "folder:..., where you say",
    }  # fmt: skip


def test_a_set_that_may_not_be_read_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def closed(_: NIH, __: Sequence[Path]) -> str:
        raise PermissionError(errno.EACCES, "denied", "closed/NIH")

    monkeypatch.setattr(NIH, "stamp", closed)
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert "may not be" in out
    assert "digits" in out


def test_list_says_where_nothing_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert "not here" in out
    assert "bench data info NAME" in out


@pytest.fixture
def torn(tmp_path: Path) -> Folder:
    """Four images, two of them the same with different labels and people, in two parts."""
    for number, name in enumerate("abcd"):
        picture(tmp_path / "own" / f"{name}.png", number % 3, 40, 40)
    close = np.asarray(Image.open(tmp_path / "own/b.png")).astype(int) + 2
    Image.fromarray(close.clip(0, 255).astype(np.uint8)).save(tmp_path / "own/e.png")
    rows = ("a.png,ann,x,train", "b.png,bob,x,train", "c.png,bob,y,test", "d.png,eve,y,test", "e.png,bob,x,train")
    (tmp_path / "own/labels.csv").write_text("\n".join(("path,subject,class,split", *rows)) + "\n")
    return Folder(str(tmp_path / "own"))


def test_verify_tells_of_duplicates_and_of_people_in_several_parts(torn: Folder, tmp_path: Path) -> None:
    prepared = prepare(torn, roots=[], cache=tmp_path / "cache")
    found = {f"{check.state}: {check.text}" for check in checks(torn.scan([], 64), prepared)}
    assert {
        "ok: layout: 5 rows, 2 findings or classes",
        "note: duplicates: 2 rows are identical to others, in 1 groups; 1 groups have different labels, 1 groups show "
        "different people",
        "note: official parts: 1 people stand in several",
        "note: official parts: 1 identical images stand in several",
        "unknown: published: no counts or checksums are known",
    } <= found
    assert any(
        said.startswith("note: duplicates: 4 rows are nearly identical to others, in 2 groups") for said in found
    )


def test_verify_prints_what_it_looked_at_and_counts_that_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, kind in enumerate(("CNV", "DME", "DRUSEN", "NORMAL")):
        for part in ("train", "test"):
            picture(tmp_path / "OCT2017" / part / kind / f"{kind}-{number}-1.jpeg", number + 9 * (part == "test"))
    assert main(["data", "verify", "kermany-oct", "--data-root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "differs published: 8 rows, the official set has 109309" in out
    assert "note    official parts: 4 people stand in several" in out
    assert out.count("the official set has") == 1
    assert "note    8 of 8 images: enlarged to 64 pixels a side from fewer" in out
    assert "match the fingerprint" in out


def test_verify_fails_on_corrupt_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in ("train", "test"):
        for kind in ("CNV", "DME", "DRUSEN", "NORMAL"):
            picture(tmp_path / "OCT2017" / part / kind / f"{kind}-1-1.jpeg", 1)
    (tmp_path / "OCT2017/test/DME/DME-1-1.jpeg").write_bytes(b"\xff\xd8 cut")
    assert main(["data", "verify", "kermany-oct", "--data-root", str(tmp_path)]) != 0
    assert "1 of 8 images cannot be decoded" in capsys.readouterr().err


def test_info_refuses_what_preparing_would_and_says_once_how_to_get_it(
    torn: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "own/labels.csv"
    table.write_text(table.read_text().replace("split", "attribute:Split"))
    assert main(["data", "info", f"folder:{tmp_path / 'own'}"]) == 1
    out = capsys.readouterr().out
    assert "here: no\nfolder: an attribute must be called by at most 40 of a-z" in out
    assert main(["data", "info", "kermany-oct", "--data-root", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count("https://data.mendeley.com") == 1


def test_verify_counts_identical_images_once(torn: Folder, tmp_path: Path) -> None:
    (tmp_path / "own/e.png").unlink()
    table = tmp_path / "own/labels.csv"
    table.write_text(table.read_text().partition("e.png")[0])
    found = [check.text for check in checks(torn.scan([], 64), prepare(torn, roots=[], cache=tmp_path / "cache"))]
    assert "duplicates: no others are nearly identical" in found
