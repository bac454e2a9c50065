from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bench.cli import main
from bench.pictures.sheets import Rows, Strip, image_sheet, table_sheet
from bench.runs.released_picture import spread
from bench.types import Dataset

GENERATIVE = '''
from dataclasses import dataclass
from typing import ClassVar
from bench.types import Key, Method, Release, Scheme

class OneKey(Key):
    def __init__(self, kind):
        self.kind = kind
    def release(self, private):
        rows = private.samples[:9].flip(2).clone()
        return Release(rows.flatten(1) if self.kind == "vectors" else rows, None, None)
    def state(self):
        return {}

class OneScheme(Scheme):
    def __init__(self, kind):
        self.kind = kind
    def sample_key(self, secret):
        return OneKey(self.kind)
    def load_key(self, state):
        return OneKey(self.kind)

@dataclass(frozen=True)
class Some(Method):
    """Releases rows that show no one."""
    name: ClassVar[str] = "some"
    source: ClassVar[str] = "a test"
    kind: str = "images"
    def fit(self, public, seed):
        return OneScheme(self.kind)
    def load(self, state):
        return OneScheme(self.kind)
'''


def show(folder: Path, *arguments: str, out: str = "a.png") -> int:
    return main(["show", "--preset", "smoke", "--results", str(folder / "r"), "--out", str(folder / out), *arguments])


def data(labels: torch.Tensor | None, *, exclusive: bool = False, n: int = 12) -> Dataset:
    names = () if labels is None else tuple("abcdefg"[: labels.shape[1]])
    return Dataset("made", torch.zeros(n, 1, 2, 2), labels, None, names, exclusive, True)


def schemes(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in (folder / "r").glob("artefacts/schemes/*/data.safetensors")}


def test_a_row_a_class_and_a_column_a_method_beside_the_raw_one(tmp_path: Path) -> None:
    assert show(tmp_path, "--dataset", "digits", "--method", "identity", "--method", "dp-simple[scale=0.5]") == 0
    with Image.open(tmp_path / "a.png") as picture:
        grey = np.asarray(picture.convert("L")).astype(int)
    # 1.3 inches an image at 150 dots an inch.
    assert 10 * 195 < grey.shape[0] < 11 * 195
    assert 3 * 195 < grey.shape[1] < 4 * 195


def test_titles_say_which_method_and_which_row_stands_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strips: list[Strip] = []
    names: list[str] = []

    def caught(found: list[Strip], rows: list[str], heading: str) -> bytes:
        strips.extend(found)
        names.extend(rows)
        assert heading == ""
        return b""

    monkeypatch.setattr("bench.runs.released_picture.image_sheet", caught)
    (tmp_path / "mine.py").write_text(GENERATIVE)
    methods = ["identity", "dp-simple[scale=10]", f"{tmp_path}/mine.py:Some"]
    assert show(tmp_path, "--dataset", "digits", *(part for name in methods for part in ("--method", name))) == 0
    assert [strip.title for strip in strips] == [
        "raw\n(digits)", "identity", "dp-simple\nscale=10", "mine.py:Some\n(unlinked rows)",
    ]  # fmt: skip
    assert names == list("0123456789")
    raw, same = strips[0].images, strips[1].images
    assert torch.equal(raw, same)  # links were followed through the shuffle
    assert [bool(strip.present.all()) for strip in strips] == [True, True, True, False]
    assert int(strips[3].present.sum()) == 9


def test_what_was_fitted_is_left_for_a_run_and_what_was_released_is_not(tmp_path: Path) -> None:
    assert show(tmp_path, "--dataset", "digits", "--method", "dp-simple") == 0
    fitted = schemes(tmp_path)
    assert len(fitted) == 1
    assert not list((tmp_path / "r").glob("artefacts/releases/*/data.safetensors"))
    arguments = ["--dataset", "digits", "--method", "dp-simple", "--attack", "none", "--metric", "max-dispersion"]
    assert main(["run", *arguments, "--preset", "smoke", "--results", str(tmp_path / "r"), "--keep-releases"]) == 0
    kept = {path.stat().st_ino for path in (tmp_path / "r").glob("artefacts/releases/*/data.safetensors")}
    assert kept
    assert show(tmp_path, "--dataset", "digits", "--method", "dp-simple", out="b.png") == 0
    assert schemes(tmp_path) == fitted
    assert {path.stat().st_ino for path in (tmp_path / "r").glob("artefacts/releases/*/data.safetensors")} == kept
    # The record of sets has a picture of the same release beside it.
    assert len(list((tmp_path / "r").glob("cells/*/*/sets--release-*.png"))) == 1


def test_a_table_is_drawn_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def caught(original: Rows, releases: list[Rows], columns: tuple[str, ...], heading: str) -> bytes:
        seen.update(original=original, releases=releases, columns=columns, heading=heading)
        return table_sheet(original, releases, columns, heading)

    monkeypatch.setattr("bench.runs.released_picture.table_sheet", caught)
    assert show(tmp_path, "--dataset", "diabetes:column", "--method", "identity", "--method", "dp-simple[scale=1]") == 0
    assert seen["columns"][-1] == "progression"
    identity, standardised = seen["releases"]
    assert identity.title == "identity"
    assert standardised.title == "dp-simple\nscale=1 *"  # in other units
    assert "other units" in seen["heading"]
    assert torch.allclose(standardised.samples.mean(dim=0), seen["original"].samples.double().mean(dim=0))
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width >= 1500  # as wide as its labels need


def test_data_under_an_agreement_are_drawn_on_request_only_for_their_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = tmp_path / "images"
    for number in range(80):
        place = images / "ab"[number % 2] / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        grey = np.random.default_rng(number).integers(0, 255, (16, 16), dtype=np.uint8)
        Image.fromarray(grey).save(place)
    arguments = ["--dataset", f"folder:{images}", "--size", "16", "--method", "identity"]
    assert show(tmp_path, *arguments) == 2
    assert "--confidential" in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()
    assert show(tmp_path, *arguments, "--confidential") == 0
    assert (tmp_path / "a.png").stat().st_mode & 0o777 == 0o600


def test_what_a_method_prints_and_raises_over_confidential_rows_stands_in_the_log_alone(tmp_path, capfd) -> None:
    for kind in ("a", "b"):
        (tmp_path / "images" / kind).mkdir(parents=True)
        for number in range(40):
            Image.new("L", (8, 8), 3 * number).save(tmp_path / "images" / kind / f"{number}.png")
    text = GENERATIVE.replace(
        "        rows = ", "        __import__('os').write(1, b'a pixel of 104')\n        rows = "
    )
    text = text.replace('self.kind == "vectors"', '{"vectors": True, "images": False}[self.kind]')
    (tmp_path / "mine.py").write_text(text)
    arguments = ["--dataset", f"folder:{tmp_path / 'images'}", "--size", "8", "--confidential"]
    assert show(tmp_path, *arguments, "--method", f"{tmp_path}/mine.py:Some") == 0
    assert show(tmp_path, *arguments, "--method", f"{tmp_path}/mine.py:Some[kind=patient7]", out="b.png") == 2
    told = capfd.readouterr()
    assert "the log says more" in told.err
    assert not any(said in told.out + told.err for said in ("a pixel of", "KeyError"))
    logs = "".join(path.read_text() for path in (tmp_path / "r/artefacts/logs/show").iterdir())
    assert "a pixel of" in logs
    assert "KeyError" in logs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dataset", "digits", "--dataset", "diabetes", "--method", "identity"], "one data set and one seed"),
        (["--dataset", "digits", "--seed", "0", "--seed", "1", "--method", "identity"], "one data set and one seed"),
        (["--dataset", "digits", "--method", "identitty"], "did you mean 'identity'"),
        (["--dataset", "digits"], "no method given"),
        (["--dataset", "diabetes", "--rows", "3", "--method", "identity"], "rows of numbers are shown whole"),
        (["--dataset", "digits", "--method", "syfer-random"], "cannot be shown"),
    ],
)
def test_what_cannot_be_drawn_is_wrong_usage(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(tmp_path, *arguments) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()


def test_vectors_in_place_of_images_cannot_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(GENERATIVE)
    assert show(tmp_path, "--dataset", "digits", "--method", f"{tmp_path}/mine.py:Some[kind=vectors]") == 2
    assert "vectors, not images" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["a.jpg", "nowhere/a.png", "original.png"])
def test_a_picture_is_a_new_png_in_a_folder_that_is_there(
    tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "original.png").write_text("mine")
    assert show(tmp_path, "--method", "identity", out=out) == 2
    assert "--out" in capsys.readouterr().err
    assert (tmp_path / "original.png").read_text() == "mine"


def test_a_release_without_any_of_the_rows_shown_says_so() -> None:
    raw = Strip("raw", torch.rand(2, 1, 8, 8), torch.tensor([True, True]))
    assert image_sheet([raw, Strip("none", raw.images, torch.tensor([False, False]))], ["one", "two"], "")


def test_rows_are_spread_over_findings_and_over_none() -> None:
    labels = torch.zeros(12, 2)
    labels[[3, 4, 5, 6, 7], 0] = 1
    labels[[4, 9], 1] = 1
    assert spread(data(labels), None).tolist() == [3, 5, 4, 0]
    assert spread(data(labels), 6).tolist() == [3, 5, 4, 9, 0, 1]
    assert sorted(spread(data(labels), 100).tolist()) == list(range(12))


def test_each_exclusive_class_has_a_row() -> None:
    labels = torch.nn.functional.one_hot(torch.arange(12) // 2, 7).float()
    assert spread(data(labels, exclusive=True), None).tolist() == [0, 1, 2, 4, 6, 8, 10]  # no class is "g"
    assert spread(data(None), None).tolist() == [0, 1, 2, 3]


def test_the_same_picture_has_the_same_bytes() -> None:
    strip = Strip(
        "raw", torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.tensor([True, False])
    )
    assert image_sheet([strip], ["one", ""], "") == image_sheet([strip], ["one", ""], "")
