from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import opened

from bench.evaluators.copies import Copies
from bench.evidence import CopyEvidence
from bench.types import NotApplicable, Release
from bench.workbench.workbench import Workbench
from metrics.membership import CopiedShare


def score(bench: Workbench) -> tuple[float, float]:
    """The copied share and its p."""
    evidence = Copies().measure(bench).evidence[""]
    assert isinstance(evidence, CopyEvidence)
    found = CopiedShare()(evidence)
    assert found.p is not None
    return found.value, found.p


def released(bench: Workbench, monkeypatch: pytest.MonkeyPatch, samples: torch.Tensor) -> Workbench:
    """The cell with that release, without labels."""
    sealed = replace(bench.sealed(bench.scheme(), 0), release=Release(samples, None, None), links=None)
    monkeypatch.setattr(Workbench, "sealed", lambda *_: sealed)
    return bench


def test_identity_copies_everything(tmp_path: Path) -> None:
    value, p = score(opened(tmp_path, "identity"))
    assert value == 1.0
    assert p < 1e-6


def test_copies_are_found_under_withheld_and_wrong_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = opened(tmp_path, "identity", "synth-cxr")
    sealed = bench.sealed(bench.scheme(), 0)
    labels = sealed.release.labels
    assert labels is not None
    assert labels.isnan().any()
    assert score(bench)[0] == 1.0
    wrong = replace(sealed, release=replace(sealed.release, labels=labels.roll(1, dims=0)))
    monkeypatch.setattr(Workbench, "sealed", lambda *_: wrong)
    assert score(bench)[0] == 1.0


def test_a_release_of_nothing_copies_nothing(tmp_path: Path) -> None:
    assert score(opened(tmp_path, "hidden-control"))[1] > 0.01
    assert score(opened(tmp_path, "constant"))[1] > 0.01


def test_some_copies_among_other_peoples_images_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = opened(tmp_path, "identity")
    some = torch.cat((bench.private.samples[::3], bench.public.samples))
    value, p = score(released(bench, monkeypatch, some))
    assert 0.3 <= value < 0.5
    assert p < 1e-4


def test_what_looks_like_the_distribution_is_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = opened(tmp_path, "identity")
    assert score(released(bench, monkeypatch, bench.public.samples))[1] > 0.01


def test_pictures_show_what_stands_out(tmp_path: Path) -> None:
    bench = opened(tmp_path, "identity")
    pictures = Copies().pictures(bench, Copies().measure(bench))
    assert pictures["copies"].png.startswith(b"\x89PNG")


def test_rows_of_another_shape_are_not_applicable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = opened(tmp_path, "identity")
    with pytest.raises(NotApplicable, match="releases rows of shape"):
        Copies().measure(released(bench, monkeypatch, torch.rand(9, 5)))
