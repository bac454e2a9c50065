"""Which routes between original and released rows are taken, with which labels, and which are left out and why.

Figure 4 of the CADP paper by its own classifier: it learns, and nothing else is tried.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, cast

import pytest
import torch
from made.cells import laid_out, opened
from made.toy_methods import Keyed
from torch import Tensor

from bench.evaluators.transfer_learning import CADPClassifier, Transfer
from bench.evaluators.utility import LearningCurve, Utility
from bench.results.store import Store
from bench.statistics.classification_scores import auc
from bench.types import Classifier, Dataset, Evaluator, Key, NotApplicable, Release, State, paired
from bench.workbench.workbench import Workbench
from metrics.transfer import CADPClassifierAccuracy

N, D = 60, 1  # a single column: any step in the right direction orders the rows as well as can be
SEEN: list[Tensor | None] = []


class MirrorKey(Key):
    """Rows change their sign, labels their meaning, and places are turned round."""

    def release(self, private: Dataset) -> Release:
        SEEN.append(private.labels)
        rows = torch.arange(len(private))
        links = torch.stack((rows.flip(0), rows), dim=1)
        return Release(-private.samples.flip(0), None if private.labels is None else 1 - private.labels.flip(0), links)

    def query(self, samples: Tensor) -> Tensor:
        return -samples

    def decode(self, scores: Tensor) -> Tensor:
        return 1 - scores

    def state(self) -> State:
        return {}


class DoubledKey(MirrorKey):
    """Twice as many columns."""

    def release(self, private: Dataset) -> Release:
        return paired(private.samples.repeat(1, 2), private.labels)

    def query(self, samples: Tensor) -> Tensor:
        return samples.repeat(1, 2)

    def decode(self, scores: Tensor) -> Tensor:
        return scores


class UnlinkedKey(DoubledKey):
    """Rows of unknown people."""

    def release(self, private: Dataset) -> Release:
        return Release(private.samples, private.labels, None)

    def query(self, samples: Tensor) -> Tensor:
        return samples


class OnceKey(UnlinkedKey):
    """Refuses any rows but those with labels."""

    def release(self, private: Dataset) -> Release:
        if private.labels is None:
            raise NotApplicable("labels are needed")
        return paired(private.samples, private.labels)


class PublishingKey(UnlinkedKey):
    """Publishes the first column as a classifier, and no row."""

    def release(self, private: Dataset) -> Release:
        raise NotApplicable("nothing is released")

    def classifier(self, private: Dataset) -> Classifier:
        return lambda rows: rows[:, :1]


class Made(Keyed):
    keys = (MirrorKey, DoubledKey, UnlinkedKey, OnceKey, PublishingKey)


class MadeWithLabels(Made):
    """Declares that its released rows depend on labels."""

    uses_labels: ClassVar[bool] = True


def part(seed: int) -> Dataset:
    """Rows that are 4 deviations higher where the label is 1."""
    labels = (torch.arange(N) % 3 == 0).float()[:, None]
    samples = torch.randn(N, D, generator=torch.Generator().manual_seed(seed))
    samples[:, 0] += 4 * labels[:, 0]
    return Dataset("made", samples, labels, torch.arange(N) // 2, ("finding",), False, True)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    SEEN.clear()
    parts = {name: part(seed) for seed, name in enumerate(("public", "private", "control", "test"), 1)}
    return laid_out(tmp_path, Made("MirrorKey"), parts)


def routes(bench: Workbench, key: str) -> tuple[dict[str, float], dict[str, str]]:
    """The AUC of every route taken, and why others were not."""
    found = Transfer().measure(replace(bench, method=Made(key)))
    taken = found.evidence[""].by_route
    left_out = cast("dict[str, str]", found.details.get("left out", {}))
    return {name: auc(part.scores[0][:, 0], part.labels[:, 0]) for name, part in taken.items()}, left_out


def test_predictions_are_decoded_and_released_rows_keep_the_labels_of_their_raw_rows(bench: Workbench) -> None:
    taken, left_out = routes(bench, "MirrorKey")
    # Two groups 4 deviations apart have an AUC of .998. A model of mirrored rows takes raw ones for their opposites.
    assert min(taken["o/o"], taken["p/p"]) > 0.95
    assert max(taken["o/p"], taken["p/o"]) < 0.05
    assert not left_out


def with_labels(bench: Workbench) -> Workbench:
    """The same cell, its method declaring that it uses labels, with a store of its own."""
    return replace(bench, method=MadeWithLabels("MirrorKey"), store=Store(bench.store.root / "with labels"))


def test_only_methods_that_declare_it_see_the_labels_of_released_test_rows(bench: Workbench) -> None:
    routes(bench, "MirrorKey")
    assert [labels is None for labels in SEEN] == [False, True, True]
    SEEN.clear()
    found = Transfer().measure(
        replace(bench, method=MadeWithLabels("MirrorKey"), store=Store(bench.store.root / "other"))
    )
    assert not any(labels is None for labels in SEEN)
    assert "with their true labels" in str(found.details["note"])


@pytest.mark.parametrize("evaluator", [Utility(), LearningCurve()])
def test_utility_of_rows_made_with_their_labels_says_so(bench: Workbench, evaluator: Evaluator[Workbench]) -> None:
    assert "note" not in evaluator.measure(bench).details
    found = evaluator.measure(
        replace(bench, method=MadeWithLabels("MirrorKey"), store=Store(bench.store.root / "other"))
    )
    assert "depend on their true labels" in str(found.details["note"])


def test_rows_of_another_shape_are_not_tested_on(bench: Workbench) -> None:
    taken, left_out = routes(bench, "DoubledKey")
    assert set(taken) == {"o/o", "p/p"}
    assert left_out["p/o"] == "trained on rows of shape (2,), tested on rows of shape (1,)"
    assert taken["p/p"] > 0.95


@pytest.mark.parametrize(("key", "reason"), [("UnlinkedKey", "one row per raw row"), ("OnceKey", "labels are needed")])
def test_released_test_rows_that_cannot_be_had_are_left_out_with_the_reason(
    bench: Workbench, key: str, reason: str
) -> None:
    taken, left_out = routes(bench, key)
    assert set(taken) == {"o/o", "p/o"}
    assert set(left_out) == {"o/p", "p/p"}
    assert all(reason in text for text in left_out.values())
    assert taken["p/o"] > 0.95


def test_a_published_classifier_is_taken_in_place_of_bobs(bench: Workbench) -> None:
    taken, _ = routes(bench, "PublishingKey")
    assert set(taken) == {"p/o"}
    found = Utility().measure(replace(bench, method=Made("PublishingKey")))
    assert torch.equal(found.evidence[""].scores[0], bench.test.samples[:, :1])
    assert found.details["bob"] == []


def test_one_network_is_trained_as_table_1_has_it(tmp_path: Path) -> None:
    bench = opened(tmp_path, "identity")
    plan = CADPClassifier().plan(bench)
    assert (plan.architectures, plan.batch, plan.dropouts, plan.weight_decays) == (("strided",), 512, (0.5,), (0.0,))
    (recipe,) = plan.recipes(bench.private.samples)
    course = plan.course(recipe, 10_000, "float32")
    assert (course.learning_rate, course.weight_decay, course.batch) == (5e-4, 0.0, 512)
    assert CADPClassifier().plan(opened(tmp_path, "identity", "synth-cxr[images=48]")).batch == 64


def test_it_gives_the_four_routes_and_their_accuracy(tmp_path: Path) -> None:
    bench = opened(tmp_path, "identity")
    found = CADPClassifier().measure(bench)
    score = CADPClassifierAccuracy()(found.evidence[""])
    assert set(score.parts) == {"o/o", "p/o", "o/p", "p/p"}
    assert "trained/tested on p/o" in score.note
    assert {trial["recipe"]["architecture"] for trial in found.details["bob"]["p"]["trials"]} == {"strided"}


def test_tables_have_no_such_classifier(tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="reads images"):
        CADPClassifier().measure(opened(tmp_path, "identity", "diabetes"))
