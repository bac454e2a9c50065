"""A method that reads labels off the places of rows gains nothing by it: data sets list their rows by class."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import laid_out
from made.toy_methods import Keyed
from torch import Tensor

from bench.evaluators.transfer_learning import Transfer
from bench.evaluators.utility import LearningCurve, Utility
from bench.statistics.classification_scores import auc
from bench.types import Classifier, Dataset, Key, Release, State, paired
from bench.workbench.workbench import Workbench

N = 400


class PlaceKey(Key):
    """Publishes labels in place of rows, and takes the later half of new rows for those with the finding."""

    def release(self, private: Dataset) -> Release:
        told = places(len(private)) if private.labels is None else private.labels
        return paired(told.repeat(1, 2), private.labels)

    def query(self, samples: Tensor) -> Tensor:
        assert type(samples) is Tensor  # nothing travels with it
        assert not vars(samples)
        return places(len(samples)).repeat(1, 2)

    def state(self) -> State:
        return {}


class PublishingKey(PlaceKey):
    """Publishes a classifier that does the same."""

    def classifier(self, private: Dataset) -> Classifier:
        return lambda rows: places(len(rows))


class Made(Keyed):
    keys = (PlaceKey, PublishingKey)


def places(n: int) -> Tensor:
    return (torch.arange(n) >= n // 2).float()[:, None]


def part(seed: int) -> Dataset:
    """Noise, listed by class."""
    samples = torch.randn(N, 2, generator=torch.Generator().manual_seed(seed))
    return Dataset("made", samples, places(N), torch.arange(N), ("finding",), False, True)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    parts = {name: part(seed) for seed, name in enumerate(("public", "private", "control", "test"), 1)}
    return laid_out(tmp_path, Made("PlaceKey"), parts)


def test_a_published_classifier_does_not_see_places_either(bench: Workbench) -> None:
    (scores,) = Utility().measure(replace(bench, method=Made("PublishingKey"))).evidence[""].scores
    value = auc(scores[:, 0], places(N)[:, 0])
    assert value is not None
    assert abs(value - 0.5) < 0.15


def test_labels_read_off_places_would_be_all_the_utility_there_is(bench: Workbench) -> None:
    key = bench.key(bench.scheme(), 0)
    assert auc(key.query(bench.test.samples)[:, 0], places(N)[:, 0]) == 1


@pytest.mark.parametrize("evaluator", [Utility(), LearningCurve(), Transfer()])
def test_places_tell_nothing_when_utility_is_measured(
    bench: Workbench, evaluator: Utility | LearningCurve | Transfer
) -> None:
    found = evaluator.measure(bench).evidence[""]
    if isinstance(evaluator, Utility):
        parts = [found]
    elif isinstance(evaluator, LearningCurve):
        parts = list(found.curve.values())
    else:
        parts = [made for route, made in found.by_route.items() if route.endswith("p")]
    assert parts
    for made in parts:
        # 200 against 200 unrelated rows have an AUC of deviation root(401 / (12 * 40000)) = .029; five of them.
        value = auc(made.scores[0][:, 0], made.labels[:, 0])
        assert value is not None
        assert abs(value - 0.5) < 0.15
