"""Attributes read from released rows: controls, references, and data that name none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import laid_out, opened

from bench.evaluators import attribute_reading
from bench.evaluators.attribute_reading import AttributeReading
from bench.evidence import AttributeEvidence
from bench.randomness import Secret
from bench.types import Attributes, Dataset, KeylessKey, KeylessScheme, Method, NotApplicable, Release, State, curves_of
from bench.workbench.workbench import Workbench
from methods.dauntless import Dauntless
from methods.hidden_control import HiddenControl
from methods.identity import Identity
from methods.noise import Noise
from metrics.attribute_advantage import AttributeAdvantage

SIZES = {"public": 60, "private": 90, "control": 60, "test": 30}


def rows(n: int, seed: int) -> tuple[Dataset, Attributes]:
    """Images of n / 3 people: bright ones in the left half are of women; the labels tell the view."""
    random = torch.Generator().manual_seed(seed)
    person = torch.arange(n) // 3
    female, view = person % 2, torch.randint(2, (n,), generator=random)
    samples = 0.5 * torch.rand(n, 1, 8, 8, generator=random)
    samples[..., :4] += 0.3 * female[:, None, None, None]
    data = Dataset("made", samples, view[:, None].float(), person, ("seen",), False, True)
    groups = (("female", "male"), ("AP", "PA"), ("here",))
    codes = torch.stack((1 - female, view, torch.zeros_like(view)), dim=1)
    return data, Attributes(("sex", "view", "site"), groups, codes)


def bench_of(folder: Path, method: Method) -> Workbench:
    made = {name: rows(n, seed) for seed, (name, n) in enumerate(SIZES.items())}
    bench = laid_out(folder, method, {name: data for name, (data, _) in made.items()})
    return replace(bench, attributes={name: told for name, (_, told) in made.items()})


def measured(bench: Workbench) -> AttributeEvidence:
    found = AttributeReading().measure(bench).evidence[""]
    assert isinstance(found, AttributeEvidence)
    return found


def test_scores_of_raw_rows_are_not_those_of_another_profiles_rows(tmp_path: Path) -> None:
    whole = bench_of(tmp_path, Identity())
    measured(whole)
    some = torch.arange(15, 90)
    cell = replace(whole.cell, choice=replace(whole.cell.choice, eve="superset"))
    attributes = {**whole.attributes, "private": whole.attributes["private"].take(some)}
    part = measured(replace(whole, cell=cell, private=whole.private.take(some), attributes=attributes))
    for name, of in part.original.items():
        assert len(of.scores[0]) == len(of.labels) == 75
        assert torch.equal(of.scores[0], part.released[name].scores[0])


def test_identity_reads_exactly_what_raw_rows_read(tmp_path: Path) -> None:
    evidence = measured(bench_of(tmp_path, Identity()))
    for name, part in evidence.released.items():
        assert all(torch.equal(scores, evidence.original[name].scores[0]) for scores in part.scores)
    score = AttributeAdvantage()(evidence)
    assert score.value > 0.9
    assert score.p is not None
    assert score.p < 0.001
    assert score.parts["sex, raw rows"].value > 0.9


@pytest.mark.parametrize("method", [HiddenControl(), Noise()], ids=lambda method: method.name)
def test_methods_that_keep_nothing_show_nothing(tmp_path: Path, method: Method) -> None:
    score = AttributeAdvantage()(measured(bench_of(tmp_path, method)))
    assert score.p is not None
    assert score.p > 0.001
    assert score.parts["sex, raw rows"].value > 0.9


def test_a_secret_linear_map_shows_what_its_sizes_tell(tmp_path: Path) -> None:
    evidence = measured(bench_of(tmp_path, Dauntless(patch_size=4)))
    assert AttributeAdvantage()(evidence).parts["sex"].value > 0.5


def test_labels_alone_are_a_reference_and_no_part_of_the_figure(tmp_path: Path) -> None:
    score = AttributeAdvantage()(measured(bench_of(tmp_path, Identity())))
    assert score.parts["view, labels alone"].value > 0.99
    assert score.parts["view"].value < 0.5


def test_one_group_is_left_out_with_its_reason(tmp_path: Path) -> None:
    found = AttributeReading().measure(bench_of(tmp_path, Identity()))
    left_out = found.details["left out"]
    assert isinstance(left_out, dict)
    assert list(left_out) == ["site"]
    assert str(left_out["site"]).startswith("1 of 1 groups: fewer than 10 private people")
    assert found.details["groups"] == ["sex: female", "view: AP"]


def test_nothing_but_one_group_is_not_applicable(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, Identity())
    site = {
        name: Attributes(told.names[2:], told.groups[2:], told.codes[:, 2:]) for name, told in bench.attributes.items()
    }
    with pytest.raises(NotApplicable, match="no attribute has two groups with enough people: site, 1 of 1 groups"):
        AttributeReading().measure(replace(bench, attributes=site))


def test_data_without_attributes_are_not_applicable(tmp_path: Path) -> None:
    with pytest.raises(
        NotApplicable, match="does not say sex, age, view or site of its rows, and its findings are rel"
    ):
        AttributeReading().measure(opened(tmp_path, "identity"))


def test_rows_without_an_original_are_not_applicable(tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="constant releases rows without a raw original"):
        AttributeReading().measure(opened(tmp_path, "constant"))


class UnlabelledKey(KeylessKey):
    """Releases no labels."""

    def release(self, private: Dataset) -> Release:
        return replace(super().release(private), labels=None)


class UnlabelledScheme(KeylessScheme):
    """Of such keys."""

    def sample_key(self, secret: Secret) -> KeylessKey:
        return UnlabelledKey(self.method)


class Unlabelled(Identity):
    """Raw rows without labels."""

    def fit(self, public: Dataset, seed: int) -> KeylessScheme:
        return UnlabelledScheme(self)

    def load(self, state: State) -> KeylessScheme:
        return UnlabelledScheme(self)


def test_findings_are_an_attribute_if_no_labels_are_released(tmp_path: Path) -> None:
    bench = replace(bench_of(tmp_path, Unlabelled()), attributes={})
    evidence = measured(bench)
    assert list(evidence.released) == ["finding"]
    assert not evidence.labels


def test_public_people_of_whom_nothing_is_known_teach_nothing(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, Identity())
    known = {name: told for name, told in bench.attributes.items() if name != "public"}
    found = AttributeReading().measure(replace(bench, attributes=known))
    learned = int(found.threat_model["people"].split(": ")[1].split()[0])
    assert learned < SIZES["control"]


def test_each_attribute_has_a_curve_over_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribute_reading, "CHOOSING", 0.75)  # held-out groups of 10 people and more
    curves = AttributeReading().measure(bench_of(tmp_path, Identity())).details["learning"]
    assert isinstance(curves, list)
    assert [curve["part"] for curve in curves if isinstance(curve, dict)] == ["sex", "view"]


def test_no_figure_of_a_small_held_out_group_enters_the_record(tmp_path: Path) -> None:
    # 40 people of Eve's, of whom 10 are held out: 5 women and 5 men at most.
    small = AttributeReading().measure(bench_of(tmp_path, Identity()))
    chosen = small.details["chosen"]
    assert isinstance(chosen, dict)
    assert all("no AUC, for no group has 10 held-out people" in str(words) for words in chosen.values())
    assert curves_of(small.details) == ()


def test_large_held_out_groups_have_their_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribute_reading, "CHOOSING", 0.75)
    chosen = AttributeReading().measure(bench_of(tmp_path, Identity())).details["chosen"]
    assert isinstance(chosen, dict)
    assert all(re.search(r"AUC [01]\.\d{3} on held-out people", str(words)) for words in chosen.values())
