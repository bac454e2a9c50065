"""Profiles of Eve: which images she holds, who is a correct pair, and what verdicts then say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import torch
from made.cells import choice, opened
from torch import Tensor

from attacks.nearest_neighbour import NearestNeighbour
from bench.contract.eve_profile import PROFILES
from bench.contract.source import DataError
from bench.evaluators.reidentification import Reidentification
from bench.plugins.spec import UsageError
from bench.runs.judge import judge
from bench.workbench.workbench import Workbench
from metrics.pair_roc import PatientReidAUC, ReidAUC

OTHERS = [name for name, profile in PROFILES.items() if not profile.everyone]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


def rows_of(samples: Tensor) -> list[bytes]:
    return [row.numpy().tobytes() for row in samples]


def films(folder: Path, eve: str, method: str = "identity") -> Workbench:
    return opened(folder, method, "synth-cxr", eve=eve)


@pytest.mark.parametrize("eve", OTHERS)
def test_a_correct_pair_is_what_the_profile_says(folder: Path, eve: str) -> None:
    whole, bench = films(folder, "same-image"), films(folder, eve)
    held, private = bench.held.rows, bench.private
    assert held.subjects is not None
    assert private.subjects is not None
    first, second = bench.held.pairs.T
    assert torch.equal(held.subjects[first], private.subjects[second])
    names, released = rows_of(held.samples), rows_of(private.samples)
    assert {*names, *released} <= {*rows_of(whole.private.samples)}
    same = [names[a] == released[b] for a, b in bench.held.pairs.tolist()]
    assert all(same) if PROFILES[eve].same_image else not any(same)
    assert len(torch.unique(second)) == len(second)


@pytest.mark.parametrize("eve", OTHERS)
def test_every_released_image_of_a_held_one_or_person_is_in_a_pair(folder: Path, eve: str) -> None:
    bench = films(folder, eve)
    held, private = bench.held.rows, bench.private
    if PROFILES[eve].same_image:
        expected = {*rows_of(held.samples)} & {*rows_of(private.samples)}
    else:
        expected = {*rows_of(private.samples)}
        assert held.subjects is not None
        assert len(torch.unique(held.subjects)) == len(held)
    assert {rows_of(private.samples)[row] for row in bench.held.pairs[:, 1].tolist()} == expected


def test_a_superset_holds_all_released_images_and_a_subset_half_of_the_people(folder: Path) -> None:
    more, fewer = films(folder, "superset"), films(folder, "subset")
    assert {*rows_of(more.private.samples)} < {*rows_of(more.held.rows.samples)}
    assert {*rows_of(fewer.held.rows.samples)} < {*rows_of(fewer.private.samples)}
    people = [len(torch.unique(part.subjects)) for part in (more.private, more.held.rows) if part.subjects is not None]
    assert people[0] == people[1] // 2


def test_labels_attributes_and_counts_follow_the_rows(folder: Path) -> None:
    bench = films(folder, "other-study")
    assert bench.natural is None or len(bench.natural) == len(bench.private)
    assert bench.record.rows["private"] == len(bench.private)
    assert bench.record.rows["candidates"] == len(bench.held.rows)
    assert bench.record.name == "synth-cxr under other-study"
    assert any("have a correct pair" in note for note in bench.record.notes)


def test_people_are_the_same_for_every_method_and_another_seed_draws_others(folder: Path) -> None:
    one, other = films(folder, "other-study"), films(folder, "other-study", "noise")
    assert torch.equal(one.held.rows.samples, other.held.rows.samples)
    again = opened(folder, "identity", "synth-cxr", eve="other-study", seed=1)
    assert {*rows_of(again.held.rows.samples)} != {*rows_of(one.held.rows.samples)}


@pytest.mark.parametrize("eve", OTHERS)
def test_a_method_is_fitted_once_for_all_profiles(folder: Path, eve: str) -> None:
    stored = []
    for bench in (films(folder, "same-image", "k-same"), films(folder, eve, "k-same")):
        bench.fitted()
        stored.append(
            sorted(
                each.name for each in (folder / "results" / "artefacts" / "schemes").iterdir() if "." not in each.name
            )
        )
    assert len(stored[0]) == 1
    assert stored[0] == stored[1]


@pytest.mark.parametrize("eve", OTHERS)
def test_raw_images_are_found_and_noise_is_not(folder: Path, eve: str) -> None:
    for method in ("identity", "noise"):
        found = Reidentification(NearestNeighbour()).measure(films(folder, eve, method))
        metric = ReidAUC() if PROFILES[eve].same_image else PatientReidAUC()
        area = judge(cast(Any, metric), found.evidence)
        assert found.threat_model["profile"].startswith(eve)
        assert area.p is not None
        assert (area.p < 0.005) == (method == "identity")
        if method == "identity" and PROFILES[eve].same_image:
            assert area.value > 0.99


def test_data_without_people_of_several_images_say_so(folder: Path) -> None:
    with pytest.raises(DataError, match="other-study needs at least 10 people with several images, and digits does"):
        opened(folder, eve="other-study")


def test_an_unknown_profile_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown profile 'other-film'; Known: other-study, same-image"):
        choice(eve="other-film")
