"""Every registered plug-in satisfies the contract, and the contract catches those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

from bench.conformance import bob_strength, conform, methods, outcome
from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group

ALL = [(group, name) for group in GROUPS for name in registry.entries(group)]
CPU = torch.device("cpu")
BOB = "Bob keeps up with simple models"
GIVEN = {
    "folder": "folder:nowhere",
    "timm": "timm:test_vit.r160_in1k[size=32,weights=made.safetensors]",
    # The contract says nothing about how many rows there are or how well something was learned.
    **{name: f"{name}[images=24]" for name in ("synth-cxr", "synth-nih", "synth-mimic")},
    **{name: f"{name}[epochs=2]" for name in ("cvae", "over-fitted-cvae")},
    "dp-merf": "dp-merf[steps=10]",
    "distilled": "distilled[steps=5]",
}

BAD = '''
from dataclasses import dataclass
from typing import ClassVar
import torch
from bench.types import Key, Method, Release, Scheme, paired
from bench.seeds import generator

class BadKey(Key):
    def __init__(self, how, seed):
        self.how, self.seed = how, seed
    def release(self, private):
        samples = private.samples.clone()
        if self.how == "labels":
            samples[:, 0, 0, 0] = private.labels[:, 0]
        if self.how == "place":
            noise = torch.rand(samples.shape, generator=generator(self.seed))
            samples = noise + torch.arange(len(samples))[:, None, None, None] / len(samples)
        if self.how == "subjects" and private.subjects is not None:
            samples[:, 0, 0, 0] = private.subjects / 1000
        if self.how == "reads" and private.labels is not None:
            samples[:, 0, 0, 0] = 0
        if self.how == "shuffles":
            return paired(samples, None if private.labels is None else private.labels.flip(0))
        if self.how == "unlabelled" and private.labels is None:
            return Release(samples, torch.zeros(len(samples), 2), None)
        if self.how == "random":
            samples += torch.rand(samples.shape)
        if self.how == "writes":
            private.samples.mul_(2)
        if self.how == "flips":
            samples = samples.flip(0)
        if self.how == "nan":
            samples[3] = torch.nan
        release = paired(samples, private.labels)
        if self.how == "links":
            return Release(samples, private.labels, torch.cat((release.links, release.links)))
        return release
    def query(self, samples):
        return samples[:, :, :8] if self.how == "query" else samples
    def state(self):
        return {"seed": torch.tensor(self.seed)}

class BadScheme(Scheme):
    def __init__(self, how):
        self.how = how
    def sample_key(self, secret):
        return BadKey(self.how, secret.number() >> 32)
    def load_key(self, state):
        return BadKey("identity" if self.how == "forgets" else self.how, int(state["seed"]) + (self.how == "forgets"))

@dataclass(frozen=True)
class Bad(Method):
    """A method that is wrong in a chosen way."""
    name: ClassVar[str] = "bad"
    source: ClassVar[str] = "nowhere"
    how: str = "identity"
    def fit(self, public, seed):
        return BadScheme(self.how)
    def load(self, state):
        return BadScheme(self.how)
'''


TAUGHT = {
    "identity": "raw rows", "dp-simple": "rows under noise", "syfer-random": "rows of another shape",
    "k-same": "rows that labels went into", "instahide": "rows with soft labels",
}  # fmt: skip
"""Methods that Bob learns from in the usual run, one a kind of release; he learns from all in `-m slow`.

Their word is asked for here too; that of all in `tests/evaluators/test_honesty.py`.
"""
SLOWLY = [pytest.param(*one, marks=pytest.mark.slow) for one in ALL if one[0] == "methods" and one[1] not in TAUGHT]


@pytest.fixture(autouse=True)
def small_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixteenth of the pixels that `bench check` tries plug-ins on, which tests/cli does.

    What Bob is to see is twice as strong as there: means over its pixels show it as well as on images of 32 x 32.
    """
    monkeypatch.setattr(outcome, "SIDE", 16)
    monkeypatch.setattr(bob_strength, "STRENGTH", 2 * bob_strength.STRENGTH)


@pytest.mark.parametrize(("group", "name"), ALL)
def test_every_plugin_satisfies_the_contract(
    group: Group, name: str, tmp_path: Path, monkeypatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "timm":  # its weights come from outside
        save_file(timm.create_model("test_vit.r160_in1k").state_dict(), tmp_path / "made.safetensors")
    if group == "methods" and name not in TAUGHT:
        monkeypatch.setattr(
            methods, "_CHECKS", {title: each for title, each in methods._CHECKS.items() if title != BOB}
        )
    results = conform(group, GIVEN.get(name, name), CPU)
    unusual = [result for result in results if result.status in ("failed", "noted")]
    assert [result.check for result in unusual] in ([], ["is tried at work"])  # files that are not here


@pytest.mark.parametrize(("group", "name"), SLOWLY)
def test_bob_keeps_up_on_releases_of_every_method(group: Group, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "_CHECKS", {BOB: methods._CHECKS[BOB]})
    found = {result.check: result.status for result in conform(group, GIVEN.get(name, name), CPU)}
    assert found[BOB] in ("passed", "skipped"), found


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("labels", "labels stay out of samples"),
        ("place", "rows do not see their place"),
        ("reads", "declares what it reads"),
        ("subjects", "declares what it reads"),
        ("shuffles", "declares what it reads"),
        ("unlabelled", "declares what it reads"),
        ("random", "one key, one release"),
        ("writes", "inputs stay untouched"),
        ("nan", "release is well-formed"),
        ("links", "links follow the rows"),
        ("flips", "links follow the rows"),
        ("query", "queries look like releases"),
        ("identity", "different keys differ"),
    ],
)
@pytest.mark.usefixtures("no_training")
def test_the_contract_catches(tmp_path: Path, how: str, check: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(BAD)
    results = {result.check: result for result in conform("methods", f"{file}:Bad[how={how}]", CPU)}
    assert results[check].status == "failed", results[check]


LEARNS = '''
class LearntScheme(BadScheme):
    def state(self):
        return {"place": torch.tensor(self.how == "place")}

@dataclass(frozen=True)
class Learns(Bad):
    """Learns from a parameter that it calls unlearned, or calls so what is none."""
    unlearned: ClassVar[frozenset[str]] = frozenset({"how"})
    def fit(self, public, seed):
        return LearntScheme(self.how)
    def load(self, state):
        return LearntScheme("place" if state["place"] else "identity")

@dataclass(frozen=True)
class Names(Bad):
    """Calls unlearned what is no parameter."""
    unlearned: ClassVar[frozenset[str]] = frozenset({"where"})
'''


@pytest.mark.parametrize(("method", "check"), [("Learns[how=place]", "saves and loads"), ("Names", "describes itself")])
@pytest.mark.usefixtures("no_training")
def test_the_contract_catches_parameters_that_are_wrongly_called_unlearned(
    tmp_path: Path, method: str, check: str
) -> None:
    file = tmp_path / "bad.py"
    file.write_text(BAD + LEARNS)
    results = {result.check: result for result in conform("methods", f"{file}:{method}", CPU)}
    assert results[check].status == "failed", results[check]
