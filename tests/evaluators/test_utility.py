"""On what a linear probe is trained and tested, and in whose units the noise is.

Learning curves: how long Bob trains on a part, and what the record says.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from made.cells import laid_out
from made.toy_methods import Keyed, KeyedScheme
from torch import Tensor

from bench.bob import linear_models as linear_probe
from bench.bob.recipes import BobPlan, Recipe
from bench.cli import main
from bench.evaluators.utility import NOISE, SEEDS, LinearProbes, _longer
from bench.evidence import LinearProbeEvidence
from bench.results.records import Record
from bench.results.results import Results
from bench.statistics.classification_scores import auc
from bench.types import Dataset, Generator, Key, NotApplicable, Release, State, paired
from bench.workbench.workbench import Workbench

N = 200
ASKED: list[tuple[int, int]] = []


def part(seed: int, n: int = N) -> Dataset:
    """Rows whose first column is 4 deviations higher where the label is 1, the second in other units, the last fixed.

    Two groups 4 deviations apart have an AUC of Phi(4 / sqrt(2)) = .998.
    """
    labels = (torch.arange(n) % 2).float()[:, None]
    samples = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    samples[:, 0] += 4 * labels[:, 0]
    samples = samples * torch.tensor([1.0, 100.0, 0.0])
    return Dataset("made", samples, labels, torch.arange(n) // 2, ("finding",), False, True)


class PlainKey(Key):
    def release(self, private: Dataset) -> Release:
        return paired(private.samples, private.labels)

    def state(self) -> State:
        return {}


class NarrowKey(PlainKey):
    """Releases rows drawn together to a tenth; queries stay as they are."""

    def release(self, private: Dataset) -> Release:
        mean = private.samples.mean(dim=0)
        return paired(mean + 0.1 * (private.samples - mean), private.labels)


class CodedKey(PlainKey):
    """Rows twice as wide and of the other sign, labels turned round."""

    def release(self, private: Dataset) -> Release:
        assert private.labels is not None
        return paired(self.query(private.samples), 1 - private.labels)

    def query(self, samples: Tensor) -> Tensor:
        return -samples.repeat(1, 2)

    def decode(self, scores: Tensor) -> Tensor:
        return 1 - scores


class DrawingKey(PlainKey):
    """Publishes a generator; the rows stored beside it say nothing."""

    def release(self, private: Dataset) -> Release:
        return Release(private.samples, torch.full((len(private), 1), 0.5), None, generator=Drawn())


class SilentKey(PlainKey):
    def release(self, private: Dataset) -> Release:
        return paired(private.samples, None)


class Drawn(Generator):
    def sample(self, count: int, seed: int) -> Release:
        ASKED.append((count, seed))
        found = part(seed % 2**31, count)
        return Release(found.samples, found.labels, None)

    def state(self) -> State:
        return {"nothing": torch.zeros(1)}


class DrawingScheme(KeyedScheme):
    def load_generator(self, state: State) -> Generator:
        return Drawn()


class Made(Keyed):
    keys = (PlainKey, NarrowKey, CodedKey, DrawingKey, SilentKey)
    scheme = DrawingScheme


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as these sets need: they are told apart after a few steps."""
    monkeypatch.setattr(linear_probe, "EPOCHS", 40)
    monkeypatch.setattr(linear_probe, "STEPS", 1)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    ASKED.clear()
    parts = {name: part(seed) for seed, name in enumerate(("public", "private", "control", "test"), 1)}
    return laid_out(tmp_path, Made("PlainKey"), parts)


def probed(bench: Workbench, key: str) -> dict[float, list[float]]:
    """The AUC of each seed by noise."""
    found = LinearProbes().measure(replace(bench, method=Made(key)))
    by_noise = cast(LinearProbeEvidence, found.evidence[""]).by_noise
    return {
        sigma: [auc(scores[:, 0], part.labels[:, 0]) or 0.0 for scores in part.scores]
        for sigma, part in by_noise.items()
    }


def test_every_seed_has_a_probe_and_noise_of_its_own_and_noise_costs_auc(bench: Workbench) -> None:
    found = probed(bench, "PlainKey")
    assert list(found) == list(NOISE)
    assert all(len(values) == SEEDS for values in found.values())
    means = [sum(values) / SEEDS for values in found.values()]
    assert means[0] > 0.98
    assert means == sorted(means, reverse=True)
    # The first column's deviation is the root of 1 + 2^2: at sigma 3 what is left is Phi(4 / sqrt(2 (1 + 45))) = .66.
    assert means[3] < 0.8
    assert len(set(found[3.0])) == SEEDS


def test_noise_is_in_units_of_the_original_whatever_the_release_looks_like(bench: Workbench) -> None:
    # Bob's probe is the same up to its scale, and so is what the noise does to its order.
    plain, narrow = probed(bench, "PlainKey"), probed(bench, "NarrowKey")
    for sigma in NOISE:
        assert narrow[sigma] == pytest.approx(plain[sigma], abs=0.02)


def test_released_rows_are_probed_in_their_own_space_and_predictions_decoded(bench: Workbench) -> None:
    found = probed(bench, "CodedKey")
    assert min(found[0.0]) > 0.98
    assert max(found[3.0]) < 0.8


def test_a_generator_is_drawn_from_afresh_for_every_epoch_of_every_seed(bench: Workbench) -> None:
    found = probed(bench, "DrawingKey")
    assert min(found[0.0]) > 0.98
    assert {count for count, _ in ASKED} == {N}
    assert len({seed for _, seed in ASKED}) == len(ASKED) > 10 * SEEDS


def test_without_released_labels_there_is_nothing_to_probe(bench: Workbench) -> None:
    with pytest.raises(NotApplicable, match="releases no labels"):
        probed(bench, "SilentKey")


def test_raw_images_are_not_probed_unless_something_reads_them(bench: Workbench) -> None:
    images = replace(bench.private, samples=torch.zeros(N, 1, 2, 2))
    with pytest.raises(NotApplicable, match="--scored-in"):
        LinearProbes().measure(replace(bench, private=images))


def steps(plan: BobPlan, rows: int) -> int:
    return plan.course(Recipe("resnet18", weight_decay=0.0), rows, "float32").total(rows)


@pytest.mark.parametrize("part", [2, 47, 64, 190, 750, 1500])
def test_a_part_is_trained_on_for_as_many_steps_as_the_whole(part: int) -> None:
    plan = BobPlan(epochs=10, batch=64)
    taken, whole = steps(_longer(plan, whole=1500, part=part), part), steps(plan, 1500)
    assert whole <= taken < whole + max(1, part // plan.batch)


def test_a_learning_curve_is_recorded_with_the_one_key_it_was_measured_under(tmp_path: Path) -> None:
    chosen = ["--method", "identity", "--dataset", "digits", "--preset", "smoke", "--limit", "60", "--jobs", "1"]
    asked = ["--attack", "none", "--metric", "learning-curve", "--no-site", "--results", str(tmp_path)]
    assert main(["run", *chosen, *asked]) == 0
    (record,) = (found for _, found in Results(tmp_path).records() if isinstance(found, Record))
    assert (record.kind, record.keys) == ("learning-curve", 1)
    assert "0.5 of the release" in record.scores["learning-curve"].parts
