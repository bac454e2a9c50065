"""Plug-ins that hold another plug-in: written, sized, recorded and hashed with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.plugins import registry
from bench.plugins.code_digest import plugin_digest
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError, parameters, parse
from bench.types import Attack
from bench.workbench.cell import Planned

BOOST = """
from dataclasses import dataclass
from typing import ClassVar
from bench.types import Attack, Attacker, View

@dataclass(frozen=True)
class Boost(Attack):
    name: ClassVar[str] = "boost"
    source: ClassVar[str] = "nowhere"
    knowledge: ClassVar[str] = "as its base"
    presets = {"smoke": {"base": "nearest-neighbour"}, "quick": {"base": "nearest-neighbour"}}
    base: Attack
    rounds: int = 2

    def fit(self, view: View, seed: int) -> Attacker:
        return self.base.fit(view, seed)
"""


@pytest.fixture
def boost(tmp_path: Path) -> str:
    (tmp_path / "boost.py").write_text(BOOST)
    return f"{tmp_path / 'boost.py'}:Boost"


def _build(text: str, preset: str = "smoke") -> Attack:
    made = registry.build("attacks", parse(text), preset)
    assert isinstance(made, Attack)
    return made


def test_a_nested_attack_is_sized_by_the_preset(boost: str) -> None:
    smoke, quick = (parameters(_build(boost, preset))["base"] for preset in ("smoke", "quick"))
    assert "steps=20," in str(smoke)
    assert "steps=150," in str(quick)


def test_a_nested_attack_takes_parameters_of_its_own(boost: str) -> None:
    found = parameters(_build(f"{boost}[base=nearest-neighbour[space=features,width=8],rounds=5]"))
    assert "space=features" in str(found["base"])
    assert "width=8" in str(found["base"])
    assert found["rounds"] == 5


def test_a_nested_attack_is_written_in_one_way(boost: str) -> None:
    plain = registry.canonical("attacks", parse(f"{boost}[base=nearest-neighbour]"), "smoke")
    sized = registry.canonical("attacks", parse(f"{boost}[base=nearest-neighbour[width=16,steps=9]]"), "smoke")
    assert plain.parameters == ()
    assert sized.parameters == (("base", "nearest-neighbour[steps=9]"),)
    assert parse(str(sized)) == sized


@pytest.mark.usefixtures("quick_rooms")
def test_the_folder_of_a_nested_file_stays_out_of_records(boost: str) -> None:
    spec = registry.canonical("attacks", parse(f"surrogate[base={boost}[rounds=3]]"), "smoke")
    assert spec.shown == "surrogate[base=boost.py:Boost[rounds=3]]"
    folder = Path(boost.rpartition(":")[0]).parent
    assert folder.name not in Planned("reidentification", configure("attacks", spec, "smoke"), ("guesswork",)).name


def test_nesting_goes_as_deep_as_one_likes(boost: str) -> None:
    inner = f"{boost}[rounds=3,base=nearest-neighbour[steps=9,width=8]]"
    found = parameters(_build(f"{boost}[base={inner},rounds=5]"))
    assert found["rounds"] == 5
    assert "rounds=3" in str(found["base"])
    assert "steps=9" in str(found["base"])


def test_the_hash_of_a_nested_plugin_holds_its_base(boost: str) -> None:
    first, second = (_build(f"{boost}[base={base}]") for base in ("chance", "nearest-neighbour"))
    assert plugin_digest(first) != plugin_digest(second)
    assert plugin_digest(first) == plugin_digest(_build(f"{boost}[base=chance]"))


def test_an_unknown_nested_attack_is_named(boost: str) -> None:
    with pytest.raises(UsageError, match="unknown attack 'chanse'; did you mean 'chance'"):
        _build(f"{boost}[base=chanse]")
