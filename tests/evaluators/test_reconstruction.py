"""Reconstruction: controls, keyed and vector releases, and data without images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import laid_out, opened
from made.many_mixtures import ManyMixtures

from bench.contract.preset import PRESETS
from bench.evaluators.reconstruction import MEAN, Reconstruction, _evidence, _Linear
from bench.eve import demixing
from bench.evidence import ReconstructionEvidence
from bench.types import Dataset, Method, NotApplicable
from bench.workbench.workbench import Workbench
from methods.blur import Blur
from methods.dauntless import Dauntless
from methods.hidden_control import HiddenControl
from methods.identity import Identity
from metrics.reconstruction import ReconstructionReID, ReconstructionSSIM


def images(n: int, seed: int, coarse: int = 4, slope: float = 0.0) -> Dataset:
    """Smooth images of n / 2 people, brighter at the top by `slope`."""
    rough = torch.rand(n, 1, coarse, coarse, generator=torch.Generator().manual_seed(seed))
    rough = (rough + slope * torch.linspace(1, 0, coarse)[:, None]) / (1 + slope)
    samples = torch.nn.functional.interpolate(rough, scale_factor=16 // coarse, mode="bilinear")
    return Dataset("made", samples, torch.zeros(n, 1), torch.arange(n) // 2, ("seen",), False, True)


def bench_of(folder: Path, method: Method, coarse: int = 4, slope: float = 0.0) -> Workbench:
    sizes = {"public": 60, "private": 40, "control": 20, "test": 20}
    bench = laid_out(
        folder, method, {name: images(n, seed, coarse, slope) for seed, (name, n) in enumerate(sizes.items())}
    )
    return replace(bench, preset=replace(PRESETS["smoke"], decoder_steps=4))


def measured(bench: Workbench) -> tuple[str, ReconstructionEvidence]:
    found = Reconstruction().measure(bench)
    evidence = found.evidence[""]
    assert isinstance(evidence, ReconstructionEvidence)
    return str(found.details["chosen"]), evidence


def test_identity_is_rebuilt_and_identified(tmp_path: Path) -> None:
    chosen, evidence = measured(bench_of(tmp_path, Identity()))
    assert chosen == "the released row itself"
    score, named = ReconstructionSSIM()(evidence), ReconstructionReID()(evidence)
    assert score.parts["SSIM"].value == pytest.approx(1)
    assert score.parts["SSIM beyond the nearest public image"].value > 0.3
    assert score.p == 0.01
    assert named.value == 1
    assert named.parts["top-1"].value == 1
    assert named.p is not None
    assert named.p < 0.001


def test_the_hidden_control_gives_no_more_than_the_mean_image(tmp_path: Path) -> None:
    _, evidence = measured(bench_of(tmp_path, HiddenControl()))
    score, named = ReconstructionSSIM()(evidence), ReconstructionReID()(evidence)
    assert score.value < 0.02
    assert named.p is not None
    assert named.p > 0.001


def test_people_who_cannot_be_exchanged_do_not_move_the_null() -> None:
    raw = images(60, 7).samples
    person = torch.cat((torch.arange(40), *(torch.full((k,), 40 + k) for k in (2, 3, 4, 5, 6))))
    found = ReconstructionReID()(_evidence(raw, [raw], raw.mean(dim=0), raw.flip(0), person, 1))
    assert found.null_low is not None
    assert found.null_high is not None
    assert found.null_low < 0.5 < found.null_high
    few = ReconstructionReID()(_evidence(raw[:2], [raw[:2]], raw.mean(dim=0), raw[:2], None, 1))
    assert few.p is None
    assert "no p: too few people" in few.note


def test_the_mean_image_gains_nothing_whoever_can_be_exchanged() -> None:
    person = torch.cat((torch.arange(20), *(torch.full((k,), 20 + k) for k in (2, 3, 4, 5, 6))))
    for seed in range(4):
        raw = images(40, seed).samples
        mean = raw.mean(dim=0)
        score = ReconstructionSSIM()(_evidence(raw, [mean.expand_as(raw)], mean, raw.flip(0), person, seed))
        assert score.value == 0
        assert score.p == 1
        assert score.null == pytest.approx(0)


def test_unrelated_images_are_chance_though_keys_differ() -> None:
    p = []
    for seed in range(6):
        raw = images(40, seed).samples
        mean = raw.mean(dim=0)
        near, far = (
            0.9 * mean + 0.1 * images(40, 50 + seed).samples,
            torch.rand(raw.shape, generator=torch.Generator().manual_seed(seed)),
        )
        score = ReconstructionSSIM()(_evidence(raw, [far, near], mean, raw.flip(0), None, seed))
        assert score.p is not None
        p.append(score.p)
    assert min(p) > 0.01


def test_the_mean_image_names_nobody(tmp_path: Path) -> None:
    _, evidence = measured(bench_of(tmp_path, Dauntless(patch_size=8)))
    named = ReconstructionReID()(evidence)
    assert abs(named.value - 0.5) < 0.2


def test_a_blur_is_undone_in_part(tmp_path: Path) -> None:
    _, evidence = measured(bench_of(tmp_path, Blur()))
    assert ReconstructionSSIM()(evidence).value > 0.2


def test_many_mixtures_are_undone_without_candidates(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, ManyMixtures(epochs=16), coarse=8, slope=1.0)
    found = Reconstruction().measure(bench)
    evidence = found.evidence[""]
    assert isinstance(evidence, ReconstructionEvidence)
    assert str(found.details["chosen"]).startswith("mixtures undone")
    assert found.details["mixtures"] == "3 images in a released row, 16 rows of each"
    assert ReconstructionReID()(evidence).value > 0.95
    share = found.details[f"constituents found in the owner's release, {found.details['chosen']}"]
    assert isinstance(share, float)
    assert share > 0.8


def test_releases_too_large_to_undo_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demixing, "LARGEST", 1000)
    found = Reconstruction().measure(bench_of(tmp_path, ManyMixtures(epochs=2)))
    assert found.details["mixtures undone"] == "not tried: 80 released rows are too many"
    assert not str(found.details["chosen"]).startswith("mixtures undone")


def test_all_ways_and_the_mean_image_stand_in_the_record(tmp_path: Path) -> None:
    details = Reconstruction().measure(bench_of(tmp_path, Identity())).details
    errors = details["mean squared error on held-out people of Eve's"]
    assert isinstance(errors, dict)
    assert {MEAN, "ridge 0.1, whole rows", "ridge 0.1, patches of 8", "decoder, 4 steps"} <= set(errors)
    assert isinstance(details["learning"], list)
    assert len(details["learning"]) == 1


@pytest.mark.parametrize("d", [6, 90])
def test_ridge_is_the_textbook_one_and_holds_no_square_of_a_wide_row(d: int) -> None:
    random = torch.Generator().manual_seed(3)
    seen, raw = (torch.rand(30, 2, columns, generator=random) for columns in (d, d + 1))
    for ridge, found in zip((0.1, 10.0), _Linear.of(seen, raw, (0.1, 10.0)), strict=True):
        for place in range(2):
            x, y = (each[:, place].double() - each[:, place].double().mean(dim=0) for each in (seen, raw))
            held = x.T @ x + ridge * x.square().sum() / 30 * torch.eye(d)
            wanted = x @ torch.linalg.solve(held, x.T @ y) + raw[:, place].double().mean(dim=0)
            torch.testing.assert_close(found(seen)[:, place].double(), wanted, atol=1e-5, rtol=0)
        assert found.weights.shape[1] == min(30, d)


def test_a_picture_shows_raw_released_rebuilt_and_nearest(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, Identity())
    found = Reconstruction().measure(bench)
    (picture,) = Reconstruction().pictures(bench, found).values()
    assert picture.png.startswith(b"\x89PNG")
    assert "released" in picture.caption


def test_tables_and_rows_without_an_original_are_not_applicable(tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="a table's"):
        Reconstruction().measure(opened(tmp_path, "identity", "diabetes"))
    with pytest.raises(NotApplicable, match="constant releases rows without a raw original"):
        Reconstruction().measure(opened(tmp_path, "constant"))
