"""Probes: the marks, how they are dealt, and what a release shows of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import opened

from bench.evaluators.probes import MARKS, Probes, _send, deal, flip, paint_block
from bench.evidence import ProbeEvidence
from bench.types import Dataset, KeylessKey, NotApplicable, Release
from bench.workbench.workbench import Workbench
from methods.identity import Identity
from metrics.probe_auc import ProbeAUC


def images(n: int, side: int = 16) -> Dataset:
    samples = 0.9 * torch.rand(n, 1, side, side, generator=torch.Generator().manual_seed(0))
    return Dataset("images", samples, torch.ones(n, 1), torch.arange(n) // 3, ("finding",), False, True)


def workbench(method: str, folder: Path, dataset: str = "digits") -> Workbench:
    bench = opened(folder, method, dataset)
    return replace(bench, private=bench.private.take(torch.arange(100)))


def probe(bench: Workbench) -> ProbeEvidence:
    found = Probes().measure(bench).evidence[""]
    assert isinstance(found, ProbeEvidence)
    return found


def test_a_block_is_white_an_eighth_of_the_side_in_its_corner_and_nowhere_twice() -> None:
    raw = images(300, 32).samples
    before = raw.clone()
    block = paint_block(raw, 3) == 1
    assert torch.equal(raw, before)
    assert block.flatten(1).sum(dim=1).unique().tolist() == [16]
    assert not block[..., 11:, :].any()
    assert not block[..., 11:].any()
    assert float(block.float().mean(dim=0).amax()) < 0.5
    assert torch.equal(paint_block(raw, 3) == 1, block)
    assert not torch.equal(paint_block(raw, 4) == 1, block)


def test_a_block_is_seen_in_the_smallest_image() -> None:
    assert int((paint_block(torch.zeros(5, 3, 2, 2), 0) == 1).sum()) == 5 * 3


def test_flipping_twice_gives_the_image_back() -> None:
    raw = images(4).samples
    assert not torch.equal(flip(raw, 0), raw)
    assert torch.equal(flip(flip(raw, 0), 1), raw)


@pytest.mark.parametrize("name", sorted(MARKS))
def test_half_of_the_people_carry_the_mark_in_all_their_images_and_the_others_in_none(name: str) -> None:
    data = images(60)
    dealt = deal(data, MARKS[name], 5)
    assert data.subjects is not None
    changed = (dealt.rows.samples != data.samples).flatten(1).any(dim=1)
    assert torch.equal(changed, dealt.carried[:, 0] == 1)
    assert len(data.subjects[changed].unique()) == 10
    assert not set(data.subjects[changed].tolist()) & set(data.subjects[~changed].tolist())
    assert torch.equal(deal(data, MARKS[name], 5).rows.samples, dealt.rows.samples)


class Reversing(KeylessKey):
    """Releases the rows from the last to the first."""

    def release(self, private: Dataset) -> Release:
        rows = torch.arange(len(private))
        return Release(private.samples.flip(0), None, torch.stack((rows, rows.flip(0)), dim=1))


def test_rows_released_in_another_order_stay_with_their_marks(tmp_path: Path) -> None:
    dealt = deal(images(30), paint_block, 5)
    (sent,) = _send(workbench("identity", tmp_path), [dealt], [Reversing(Identity())])
    assert torch.equal(sent.rows.samples, dealt.rows.samples)
    assert torch.equal(sent.carried, dealt.carried)
    assert torch.equal(sent.origin, torch.arange(30))


def test_identity_shows_what_raw_images_show_and_noise_shows_nothing(tmp_path: Path) -> None:
    shown = probe(workbench("identity", tmp_path))
    for name in MARKS:
        assert torch.equal(shown.released[name].labels, shown.original[name].labels)
        assert torch.equal(shown.released[name].scores[0], shown.original[name].scores[0])
    assert ProbeAUC()(shown).parts["block marker"].value > 0.95
    hidden = probe(workbench("noise", tmp_path))
    score = ProbeAUC()(hidden)
    assert score.p is not None
    assert score.p > 0.001
    assert score.parts["block marker, raw image"].value > 0.95
    # The detector of raw images is trained once for all methods.
    assert len(list((tmp_path / "results" / "artefacts" / "detectors").glob("*/manifest.json"))) == len(MARKS)


def test_a_picture_shows_the_marks_before_and_after(tmp_path: Path) -> None:
    bench = workbench("identity", tmp_path)
    bench = replace(bench, public=bench.public.take(torch.arange(40)), private=bench.private.take(torch.arange(40)))
    (picture,) = Probes().pictures(bench, Probes().measure(bench)).values()
    assert picture.png.startswith(b"\x89PNG")


def test_tables_and_rows_without_an_original_are_not_applicable(tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="a table's"):
        Probes().measure(workbench("identity", tmp_path, "diabetes"))
    with pytest.raises(NotApplicable, match="instahide does not release one row per raw row"):
        Probes().measure(workbench("instahide", tmp_path))
