"""A choice of data is known in one place: flags, configuration, plan, record and command come from its fields."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
import yaml
from made.cells import choice
from made.commands import request
from PIL import Image
from safetensors.torch import save_file

from bench.plugins.spec import UsageError, flag_of, options, words
from bench.runs.request import run_spec
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice, collection

OTHER = {
    "dataset": "diabetes", "public": "digits", "size": 16, "skip_corrupt": True,
    "max_pixels": 1000, "preset": "first-look", "seed": 3,
    "limit": 90, "keys": 33, "features": "eigenspace[components=8]", "scored_in": "pixels", "weights": "w.safetensors",
    "balance": False, "splits": "official", "eve": "superset", "rows_of": "imported[path=FOLDER]",
    "this_release": True, "scheme": "s.safetensors",
}  # fmt: skip
"""For every option a value that is not its default."""


DRAWN = {"preset", "seed", "limit", "keys", "rows_of", "this_release"}


def asked(*arguments: str) -> Choice:
    base = ["run", "--method", "identity", "--attack", "none", "--device", "cpu"]
    (found,) = run_spec(request([*base, *arguments])).choices
    return found


def written(name: str, folder: Path) -> list[str]:
    """The words that give one option its other value, with what it cannot do without."""
    value = placed(name, folder)
    if name == "scheme":
        return ["--scheme", str(folder / "s.safetensors")]
    if name == "weights":
        return ["--features", f"{folder}/reader.py:Reader", "--weights", str(folder / "w.safetensors")]
    flag = flag_of(name, options(Choice)[name])
    if name == "this_release":
        return [*written("rows_of", folder), flag]
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-")]
    return [flag, str(value)]


def placed(name: str, folder: Path) -> str | int | bool:
    """The other value, with the release that the test has."""
    value = OTHER[name]
    return value.replace("FOLDER", str(folder / "release")) if isinstance(value, str) else value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with weights, an extractor that reads them, and a release."""
    (tmp_path / "release").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / "release/a.png")
    (tmp_path / "w.safetensors").write_bytes(b"weights")
    save_file({"mean": torch.zeros(3)}, tmp_path / "s.safetensors")
    (tmp_path / "reader.py").write_text(READER)
    return tmp_path


READER = '''
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from bench.features.pixels import Pixels

@dataclass(frozen=True)
class Reader(Pixels):
    """Reads weights."""
    name: ClassVar[str] = "reader"
    confidential: ClassVar[frozenset[str]] = frozenset({"weights"})
    weights: str = ""
    def stamp(self):
        return hashlib.sha256(Path(self.weights).read_bytes()).hexdigest()
'''


def test_every_option_is_tried() -> None:
    assert OTHER.keys() == options(Choice).keys() == {field.name for field in fields(Choice)}


@pytest.mark.parametrize("name", OTHER)
def test_a_record_gives_back_the_command_for_every_option(name: str, folder: Path) -> None:
    made = asked(*written(name, folder))
    assert getattr(made, name) != getattr(choice(preset="quick", dataset="digits"), name)
    # Paths are no part of a record: they are filled in to repeat the command.
    told = [word.replace("WEIGHTS", str(folder / "w.safetensors")) for word in words(Choice, made.shown())]
    told = [word.replace("SCHEME", str(folder / "s.safetensors")) for word in told]
    told = [word.replace("reader.py", f"{folder}/reader.py") for word in told]
    told = [word.replace("PATH", str(folder / "release")) for word in told]
    assert asked(*told) == made
    assert shlex.split(shlex.join(told)) == told


@pytest.mark.parametrize("name", OTHER)
def test_a_plan_gives_back_every_option(name: str, folder: Path) -> None:
    made = asked(*written(name, folder))
    assert Choice.read(made.values()) == made
    assert Choice.read(yaml.safe_load(yaml.safe_dump(made.values()))) == made


@pytest.mark.parametrize("name", [name for name in OTHER if name not in ("weights", "scheme", "this_release")])
def test_a_configuration_file_gives_every_option_as_the_command_line_does(name: str, folder: Path) -> None:
    known, value = options(Choice)[name], placed(name, folder)
    (folder / "run.yaml").write_text(yaml.safe_dump({known.many or name: [value] if known.many else value}))
    assert asked("--config", str(folder / "run.yaml")) == asked(*written(name, folder))


@pytest.mark.parametrize("name", OTHER)
def test_every_option_makes_a_folder_of_its_own(name: str, folder: Path) -> None:
    one = Cell.read({"method": "identity", "device": "cpu", **asked().values()})
    other = Cell.read({"method": "identity", "device": "cpu", **asked(*written(name, folder)).values()})
    assert one.folder != other.folder


@pytest.mark.parametrize("option", ["features", "scored-in"])
def test_weights_named_in_the_extractor_are_repeated_by_their_own_option(option: str, folder: Path) -> None:
    made = asked(f"--{option}", f"{folder}/reader.py:Reader[weights={folder}/w.safetensors]")
    told = words(Choice, made.shown())
    assert told[told.index("--weights") + 1] == "WEIGHTS"
    assert not any("weights=" in word for word in told)


def test_no_path_enters_a_record_or_a_folder(folder: Path) -> None:
    made = asked(*written("weights", folder))
    shown = str(made.shown())
    assert str(folder) not in shown
    assert (made.shown()["features"], made.shown()["weights"]) == ("reader.py:Reader", made.weights)
    images = asked("--dataset", f"folder:{folder}")
    assert images.shown()["dataset"] == "folder:PATH"
    cell = Cell.read({"method": "identity", "device": "cpu", **images.values()})
    assert folder.name not in cell.folder


def test_weights_count_by_what_they_are_and_not_by_where_they_lie(folder: Path) -> None:
    made = asked(*written("weights", folder))
    (folder / "w.safetensors").rename(folder / "moved.safetensors")
    moved = asked("--features", f"{folder}/reader.py:Reader", "--weights", str(folder / "moved.safetensors"))
    assert made.identity() == moved.identity()
    (folder / "moved.safetensors").write_bytes(b"other weights")
    other = asked("--features", f"{folder}/reader.py:Reader", "--weights", str(folder / "moved.safetensors"))
    assert other.identity() != made.identity()


def test_the_usual_written_out_is_the_same_choice() -> None:
    assert asked("--balance") == asked()
    assert asked("--features", "pixels", "--no-balance") == asked("--features", "pixels")
    assert asked("--dataset", "synth-cxr", "--seed", "0", "--preset", "quick") == asked()


def test_rows_of_one_collection_may_differ_in_size_and_seed_alone() -> None:
    usual = asked().shown()
    for name in DRAWN:
        assert collection({**usual, name: OTHER[name]}, None) == collection(usual, None)
    for name in OTHER.keys() - DRAWN:
        assert collection({**usual, name: OTHER[name]}, None) != collection(usual, None)


def test_an_option_that_came_after_a_record_stands_in_it_at_its_default() -> None:
    now = choice("digits").values()
    before = {name: value for name, value in now.items() if name not in ("splits", "max_pixels", "skip_corrupt")}
    assert len(before) == len(now) - 3
    assert collection(before, None) == collection(now, None)
    assert collection(before, None) != collection({**now, "splits": "official"}, None)


def test_every_value_of_a_repeated_option_goes_with_every_other() -> None:
    arguments = ["--dataset", "digits", "--dataset", "diabetes", "--seed", "0", "--seed", "7"]
    parsed = request(["run", "--method", "identity", "--attack", "none", *arguments])
    found = [(str(made.dataset), made.seed) for made in run_spec(parsed).choices]
    assert found == [("digits", 0), ("digits", 7), ("diabetes", 0), ("diabetes", 7)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--features", "pixels", "--scored-in", "pixels"], "leave scored_in out"),
        (["--weights", "x"], "name it with --features or --scored-in"),
        (["--preset", "quik"], "did you mean 'quick'"),
        (["--dataset", "digit"], "did you mean 'digits'"),
    ],
)
def test_what_does_not_go_together_is_said(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        asked(*arguments)


def test_more_keys_than_the_preset_says_may_be_asked_for_and_fewer_not() -> None:
    usual, more = choice(preset="first-look").sizes, choice(preset="first-look", keys=33).sizes
    assert (usual.keys, more.keys) == (5, 33)
    assert replace(more, keys=5) == usual
    with pytest.raises(UsageError, match="keys must be at least the 5 of the preset first-look, got 4"):
        choice(preset="first-look", keys=4)


@pytest.mark.parametrize("name", ["medmnist:pneumoniamnist@28", "kermany-cxr", "digits"])
def test_a_set_that_is_its_own_public_set_sets_people_aside_however_it_is_written(name: str) -> None:
    found = asked("--dataset", name, "--public", name)
    assert found.beside is None
    assert asked("--dataset", "medmnist:breastmnist", "--public", "medmnist:pneumoniamnist").beside is not None
