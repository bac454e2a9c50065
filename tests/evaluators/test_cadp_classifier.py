"""Figure 4 of the CADP paper by its own classifier: it learns, and nothing else is tried."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.cells import opened

from bench.evaluators.transfer_learning import CADPClassifier
from bench.types import NotApplicable
from metrics.transfer import CADPClassifierAccuracy


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
