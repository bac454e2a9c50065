"""The contract catches membership attacks that do not satisfy it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.conformance import conform

BAD = '''
from dataclasses import dataclass
from typing import ClassVar
import torch
from attacks.dcr import DCR
from bench.types import Attack, Attacker

class BadAttacker(Attacker):
    def __init__(self, how, view, seed):
        self.how, self.view, self.inner = how, view, DCR().fit(view, seed)
    def membership(self, sealed):
        scores = self.inner.membership(sealed)
        if self.how == "blind":
            return torch.arange(len(scores)).double()
        if self.how == "random":
            return scores + torch.rand(len(scores))
        if self.how == "writes":
            self.view.control.samples.mul_(2)
        if self.how == "short":
            return scores[1:]
        if self.how == "whole":
            return scores.round().long()
        if self.how == "spread":
            return scores / len(sealed.samples.unique(dim=0)[1:])
        return -scores if self.how == "sign" else scores

@dataclass(frozen=True)
class Bad(Attack):
    """A membership attack that is wrong in a chosen way."""
    name: ClassVar[str] = "bad"
    source: ClassVar[str] = "nowhere"
    knowledge: ClassVar[str] = "nothing"
    scores: ClassVar[str] = "membership"
    how: str = "not at all"
    def fit(self, view, seed):
        return BadAttacker(self.how, view, seed)
'''


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("blind", "members in plain sight are found"),
        ("sign", "members in plain sight are found"),
        ("random", "same seed, same membership scores"),
        ("writes", "membership scores are sound"),
        ("short", "membership scores are sound"),
        ("whole", "membership scores are sound"),
        ("spread", "membership scores are sound"),
    ],
)
def test_the_contract_catches_attacks_on_membership(tmp_path: Path, how: str, check: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(BAD)
    results = {result.check: result for result in conform("attacks", f"{file}:Bad[how={how}]", torch.device("cpu"))}
    assert results[check].status == "failed", results[check]


def test_an_attack_on_membership_that_scores_nothing_fails(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(BAD.replace("def membership(", "def members("))
    first = next(
        result for result in conform("attacks", f"{file}:Bad", torch.device("cpu")) if result.status == "failed"
    )
    assert (first.check, first.where) == ("membership scores are sound", "bad.py:8 in BadAttacker")
    assert "BadAttacker must define membership" in first.detail


def test_attacks_are_checked_for_what_they_score(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(BAD)
    for text, other in ((f"{file}:Bad", "scores are sound"), ("nearest-neighbour", "members in plain sight are found")):
        results = {result.check: result.status for result in conform("attacks", text, torch.device("cpu"))}
        assert results.pop(other) == "skipped"
        assert "failed" not in results.values()
        assert list(results.values()).count("passed") >= 3


PUBLISHES = '''
from dataclasses import dataclass
from typing import ClassVar
import torch
from bench.types import Key, Method, NotApplicable, Scheme

class PublishesKey(Key):
    def __init__(self, how):
        self.how = how
    def release(self, private):
        raise NotApplicable("a classifier is published")
    def classifier(self, private):
        if self.how == "none":
            return None
        def classify(samples):
            scores = samples.flatten(1)[:, :2]
            if self.how == "batch":
                return scores - scores.mean(dim=0)
            if self.how == "one":
                return scores[:, :1]
            return scores * torch.nan if self.how == "nan" else scores
        return classify
    def state(self):
        return {}

class PublishesScheme(Scheme):
    def __init__(self, how):
        self.how = how
    def sample_key(self, secret):
        return PublishesKey(self.how)
    def load_key(self, state):
        return PublishesKey(self.how)

@dataclass(frozen=True)
class Publishes(Method):
    """Publishes a classifier that is wrong in a chosen way."""
    name: ClassVar[str] = "publishes"
    source: ClassVar[str] = "nowhere"
    how: str = "right"
    def fit(self, public, seed):
        return self.load({})
    def load(self, state):
        return PublishesScheme(self.how)
'''


@pytest.mark.parametrize(
    ("how", "outcome", "why"),
    [
        ("right", "passed", ""),
        ("none", "skipped", "it publishes no classifier"),
        ("batch", "failed", "its answers depend on the rows beside them"),
        ("one", "failed", "got shape (96, 1)"),
        ("nan", "failed", "those of 96 rows are not"),
    ],
)
def test_a_published_classifier_answers_every_row_by_itself(tmp_path: Path, how: str, outcome: str, why: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PUBLISHES)
    results = {one.check: one for one in conform("methods", f"{file}:Publishes[how={how}]", torch.device("cpu"))}
    found = results["classifier answers every row by itself"]
    assert found.status == outcome
    assert why in found.detail
