"""`--public none`: no people are set aside, and whatever needs public rows is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
from made.cells import cell, opened
from made.commands import request
from safetensors.torch import save_file

from bench.evaluators.audit import Audit
from bench.nets.training import seeded
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.results.records import data_inputs
from bench.runs.plan import work
from bench.runs.request import run_spec
from bench.types import NotApplicable
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.inputs import fit_inputs

STRANGER = '''
from dataclasses import dataclass
from typing import ClassVar
from bench.types import Method

@dataclass(frozen=True)
class Silent(Method):
    """It says nothing of public rows."""
    name: ClassVar[str] = "silent"
    source: ClassVar[str] = "nowhere"
    def fit(self, public, seed):
        raise AssertionError
    def load(self, state):
        raise AssertionError

@dataclass(frozen=True)
class Frugal(Silent):
    """It does without them where it is told to."""
    name: ClassVar[str] = "frugal"
    own: bool = False
    @property
    def needs_public(self):
        return self.own
'''


def test_people_who_would_be_set_aside_are_private_rows(tmp_path: Path) -> None:
    usual = opened(tmp_path, dataset="diabetes", preset="quick")
    bare = opened(tmp_path, dataset="diabetes", preset="quick", public="none")
    assert usual.record.rows == {"public": 147, "private": 177, "control": 59, "test": 59}
    assert bare.record.rows == {"public": 0, "private": 265, "control": 89, "test": 88}
    assert (bare.record.public, bare.record.public_fingerprint) == ("none", "none")
    assert bare.public.samples.shape[1:] == bare.private.samples.shape[1:]
    assert bare.public_rows == "none"
    assert data_inputs(usual.record) != data_inputs(bare.record)
    bare.scheme()


def test_the_scheme_of_a_set_with_people_is_made_without_any_public_row(tmp_path: Path) -> None:
    bare = opened(tmp_path, dataset="synth-cxr", public="none")
    assert bare.public.subjects is not None
    assert bare.private.subjects is not None
    assert len(bare.public) == 0
    bare.scheme()


def test_the_choice_is_part_of_the_folder_and_of_the_key(tmp_path: Path) -> None:
    bare, usual = cell(public="none"), cell()
    assert bare.folder != usual.folder
    assert Cell.read(bare.values()) == bare
    records = [opened(tmp_path, public=word).record for word in ("none", None)]
    keys = [fit_inputs(each, record, apart=False) for each, record in zip((bare, usual), records, strict=True)]
    assert keys[0] != keys[1]


@pytest.mark.parametrize("method", ["instahide", "dp-sgd", "dp-simple", "syfer", "cadp", "dp-glow", "neuracrypt"])
def test_a_method_that_reads_public_rows_is_refused(method: str) -> None:
    with pytest.raises(UsageError, match=f"the method {method} needs public rows, and --public none"):
        cell(method, public="none")


def test_an_extractor_that_reads_public_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the feature extractor eigenspace needs public rows"):
        Choice.read({"dataset": "digits", "preset": "smoke", "public": "none", "features": "eigenspace"})
    bench = opened(tmp_path, "k-same[k=2]", public="none", features="pixels")
    assert bench.private.samples.shape[1:] == (64,)
    bench.key(bench.scheme(), 0).release(bench.private)


def test_an_extractor_that_was_trained_elsewhere_does_without(tmp_path: Path) -> None:
    with seeded(0):
        save_file(timm.create_model("test_resnet.r160_in1k").state_dict(), tmp_path / "weights.safetensors")
    features = f"timm:test_resnet.r160_in1k[size=32,weights={tmp_path / 'weights.safetensors'}]"
    bench = opened(tmp_path, "k-same[k=2]", public="none", features=features)
    assert bench.private.samples.ndim == 2
    assert bench.public.samples.shape == (0, bench.private.samples.shape[1])
    bench.key(bench.scheme(), 0).release(bench.private)


def test_an_attack_that_reads_public_rows_is_refused_before_anything_runs() -> None:
    base = ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--public", "none"]
    with pytest.raises(UsageError, match=r"the attack nearest-neighbour\[space=features\] needs public rows"):
        work(run_spec(request([*base, "--attack", "nearest-neighbour[space=features]"])))
    assert work(run_spec(request(base)))  # every attack that is run by default does without


@pytest.mark.usefixtures("quick_rooms")
def test_a_plug_in_from_outside_needs_public_rows_unless_it_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(STRANGER)
    with pytest.raises(UsageError, match="needs public rows"):
        cell(f"{path}:Silent", public="none")
    with pytest.raises(UsageError, match="needs public rows"):
        cell(f"{path}:Frugal[own=true]", public="none")
    assert cell(f"{path}:Frugal", public="none").choice.public == "none"


def test_what_is_measured_on_public_rows_is_not_applicable(tmp_path: Path) -> None:
    bench = opened(tmp_path, "mosaic[epsilon=1]", public="none")
    with pytest.raises(NotApplicable, match="an audit makes its inputs of public rows, and there are no public rows"):
        Audit().measure(bench)


def test_reference_methods_that_attacks_are_held_against_do_without() -> None:
    roles = {name: vars(registry.load("methods", name)).get("role") for name in registry.own("methods")}
    names = [name for name, role in roles.items() if role not in (None, "sees public rows only")]
    assert len(names) == 5
    for name in names:
        Cell(configure("methods", name, "smoke"), cell(public="none").choice, "cpu")
