"""Detection by a likelihood ratio: which rows are abnormal, units, the two densities, and the evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import opened
from torch import Tensor

from bench.evaluators import detection
from bench.evaluators.detection import Detection, RatioPlan, _in_units, abnormal, load_ratio, train_ratio
from bench.evidence import DetectionEvidence
from bench.statistics.classification_scores import auc
from bench.types import Dataset, NotApplicable
from bench.workbench.workbench import Workbench
from metrics.utility_auc import DetectionAUC

NAN = float("nan")
PLAN = RatioPlan(steps=60, depth=1, width=8)


def images(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Dim 8-bit images (n, 1, 8, 8), and which of them (n,) are normal: the others are bright at the top."""
    source = torch.Generator().manual_seed(seed)
    normal = torch.arange(n) % 2 == 0
    samples = 0.3 + 0.05 * torch.randn(n, 1, 8, 8, generator=source)
    samples[~normal, :, :2] += 0.3
    return (samples.clamp(0, 1) * 255).round() / 255, normal


def labelled(rows: list[list[float]], findings: tuple[str, ...], *, exclusive: bool = False) -> Dataset:
    labels = torch.tensor(rows).repeat(5, 1)
    return Dataset("rows", torch.zeros(len(labels), 1, 8, 8), labels, None, findings, exclusive, True)


def workbench(method: str, folder: Path) -> Workbench:
    """A cell whose rows are the images above."""
    bench = opened(folder, method)
    parts = {}
    for seed, part in enumerate(("public", "private")):
        samples, normal = images(120, seed)
        parts[part] = Dataset(part, samples, (~normal)[:, None].float(), None, ("bright",), False, True)
    return replace(bench, preset=replace(bench.preset, flow_steps=60), **parts)


def detect(bench: Workbench) -> DetectionEvidence:
    found = Detection().measure(bench).evidence[""]
    assert isinstance(found, DetectionEvidence)
    return found


def test_any_finding_is_abnormal_and_none_among_the_known_is_normal() -> None:
    data = labelled([[1, 0], [0, 0], [0, NAN], [NAN, 1], [NAN, NAN]], ("a", "b"))
    assert abnormal(data)[:4].tolist() == [1, 0, 0, 1]
    assert bool(abnormal(data)[4::5].isnan().all())


def test_of_exclusive_classes_the_one_called_normal_is() -> None:
    data = labelled([[1, 0, 0], [0, 0, 1], [0, 1, 0]], ("drusen", "Normal", "oedema"), exclusive=True)
    assert abnormal(data)[:3].tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (labelled([[1, 0], [0, 1]], ("0", "1"), exclusive=True), "no class of rows is called normal"),
        (labelled([[1], [1]], ("a",)), "rows has 0 of one"),
        (replace(labelled([[1]], ("a",)), labels=None), "has none"),
    ],
)
def test_without_normal_and_abnormal_rows_there_is_nothing_to_detect(data: Dataset, message: str) -> None:
    with pytest.raises(NotApplicable, match=message):
        abnormal(data)


def test_released_pixels_in_other_units_come_back() -> None:
    raw = images(50, 0)[0].repeat(1, 2, 1, 1)
    raw[:, 1] *= 0.5
    scale, shift = torch.tensor([3.0, 20.0])[:, None, None], torch.tensor([-7.0, 400.0])[:, None, None]
    torch.testing.assert_close(_in_units(scale * raw + shift, scale * raw + shift, raw), raw, atol=1e-5, rtol=0)


def test_a_ratio_tells_apart_what_the_mixture_holds_beyond_the_normal() -> None:
    samples, normal = images(160, 0)
    held_out = torch.arange(160) >= 120
    ratio, fits = train_ratio(samples, normal, held_out, PLAN, 1)
    assert (fits["normal"].rows, fits["mixture"].rows) == (20, 40)
    fresh, right = images(100, 9)
    assert (auc(ratio.abnormality(fresh, 0), (~right).float()) or 0) > 0.95
    again, _ = train_ratio(samples, normal, held_out, PLAN, 1)
    loaded = load_ratio({name: value.clone() for name, value in ratio.state().items()}, samples, PLAN)
    for other in (again, loaded):
        assert torch.equal(other.abnormality(fresh, 0), ratio.abnormality(fresh, 0))


def test_few_images_are_not_gone_through_forever() -> None:
    assert PLAN.course(images=3).steps == 10
    assert PLAN.course(images=1000).steps == 60


def test_images_of_odd_sides_are_not_applicable() -> None:
    with pytest.raises(NotApplicable, match="7x8"):
        load_ratio({}, torch.zeros(1, 1, 7, 8), PLAN)


def test_identity_is_detected_as_raw_images_are_in_other_units_too_and_noise_is_not(tmp_path: Path) -> None:
    shown: Mapping[str, DetectionEvidence] = {
        method: detect(workbench(method, tmp_path)) for method in ("identity", "dp-simple[scale=0.001]", "noise")
    }
    same, close, none = shown.values()
    assert torch.equal(same.released.scores[0], same.original.scores[0])
    assert DetectionAUC()(same).value > 0.95
    assert abs(DetectionAUC()(close).value - DetectionAUC()(same).value) < 0.02
    # Of the noise's 120 rows the AUC deviates by root(121 / (12 * 3600)) = .053 under chance; four of them.
    assert abs(DetectionAUC()(none).value - 0.5) < 0.22
    # The densities are trained once for all methods.
    assert len(list((tmp_path / "results" / "artefacts" / "detectors").glob("*/manifest.json"))) == 1


def test_densities_are_trained_anew_where_this_module_calls_other_rows_normal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = workbench("identity", tmp_path)
    bench = replace(bench, preset=replace(bench.preset, flow_steps=1))
    detect(bench)
    monkeypatch.setattr(detection, "code_digest", lambda cls: f"another {cls.name}")
    detect(bench)
    assert len(list((tmp_path / "results" / "artefacts" / "detectors").glob("*/manifest.json"))) == 2


def test_tables_and_mixed_rows_are_not_applicable(tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="instahide does not release one row per raw row"):
        detect(workbench("instahide", tmp_path))
    bench = workbench("identity", tmp_path)
    with pytest.raises(NotApplicable, match="a table's"):
        detect(replace(bench, private=replace(bench.private, samples=bench.private.samples.flatten(1))))
