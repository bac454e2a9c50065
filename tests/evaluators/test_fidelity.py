from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made.cells import laid_out, opened

from bench.backbones import packages
from bench.contract.source import DataError
from bench.evaluators.fidelity import Fidelity
from bench.evidence import FidelityEvidence
from bench.types import Dataset, Method, NotApplicable, Release
from bench.workbench.workbench import Workbench
from methods.blur import Blur
from methods.identity import Identity
from methods.instahide import InstaHide
from metrics.fidelity import FID, KID, Coverage, PairLikeness


class Coarse:
    """In place of a package: a network that sees means over 4 x 4 areas and their roughness."""

    sha256 = "0" * 64

    def network(self, *, side: int, batch: int) -> Coarse:
        assert (side, batch) == (96, 32)
        return self

    def read(self, samples: torch.Tensor) -> torch.Tensor:
        assert 0 <= float(samples.min()) <= float(samples.max()) <= 1
        rough = samples.diff(dim=3).abs().mean(dim=(1, 2, 3))
        return torch.cat((torch.nn.functional.adaptive_avg_pool2d(samples, 4).flatten(1), 20 * rough[:, None]), dim=1)


class Absent(Coarse):
    def network(self, *, side: int, batch: int) -> Coarse:
        raise DataError("the package weights-of-a-test is not installed: run `pip install it`")


@pytest.fixture(autouse=True)
def _network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {"made": Coarse()})


def images(n: int, seed: int) -> Dataset:
    """Smooth images with pixel noise, of n / 2 people."""
    random = torch.Generator().manual_seed(seed)
    rough = torch.rand(n, 1, 4, 4, generator=random)
    samples = torch.nn.functional.interpolate(rough, scale_factor=4, mode="bilinear")
    samples = (samples + 0.2 * torch.rand(n, 1, 16, 16, generator=random)) / 1.2
    labels = (torch.arange(n) % 2).float()[:, None]
    return Dataset("made", samples, labels, torch.arange(n) // 2, ("seen",), False, True)


def bench_of(folder: Path, method: Method) -> Workbench:
    sizes = {"public": 60, "private": 60, "control": 30, "test": 30}
    return laid_out(folder, method, {name: images(n, seed) for seed, (name, n) in enumerate(sizes.items())})


def measured(bench: Workbench) -> FidelityEvidence:
    evidence = Fidelity().measure(bench).evidence[""]
    assert isinstance(evidence, FidelityEvidence)
    return evidence


def test_identity_is_as_faithful_as_raw_images(tmp_path: Path) -> None:
    evidence = measured(bench_of(tmp_path, Identity()))
    score = KID()(evidence)
    assert score.value == pytest.approx(score.null)
    assert score.parts["seen"].value == pytest.approx(score.parts["seen"].null)
    assert FID()(evidence).value == pytest.approx(FID()(evidence).null)
    assert "features of made at 96 pixels" in score.note


def test_the_record_holds_the_hash_of_the_weights(tmp_path: Path) -> None:
    assert Fidelity().measure(bench_of(tmp_path, Identity())).details["SHA-256 of its weights"] == "0" * 64


def test_blurred_images_are_told_from_raw_ones(tmp_path: Path) -> None:
    evidence = measured(bench_of(tmp_path, Blur()))
    for metric in (KID(), FID()):
        score = metric(evidence)
        assert score.low is not None
        assert score.null_high is not None
        assert score.low > score.null_high
    reach = Coverage()(evidence)
    assert reach.null is not None
    assert reach.value < reach.null


def test_the_private_images_own_rows_are_no_reference(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, Identity())
    evidence = measured(bench)
    assert evidence.reference.features is not None
    assert len(evidence.reference.features) == len(bench.control) + len(bench.test)
    assert evidence.reference.people is not None
    assert torch.equal(evidence.reference.people, torch.cat((bench.control.subjects, bench.test.subjects)))  # type: ignore[arg-type]


def test_released_rows_have_the_person_they_show_and_averages_none(tmp_path: Path) -> None:
    bench = bench_of(tmp_path / "one", Identity())
    people = measured(bench).released.people
    assert people is not None
    links = bench.sealed(bench.scheme(), 0).links
    assert links is not None
    assert bench.private.subjects is not None
    assert torch.equal(people[links[:, 1]], bench.private.subjects[links[:, 0]])
    assert measured(bench_of(tmp_path / "several", InstaHide(k=2))).released.people is None


def test_values_beyond_white_are_clipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(tmp_path, Identity())
    sealed = bench.sealed(bench.scheme(), 0)
    samples = sealed.release.samples.clone()
    samples[:, :, :8] = 9.0
    bright = replace(sealed, release=Release(samples, None, None), links=None)
    monkeypatch.setattr(Workbench, "sealed", lambda *_: bright)
    found = Fidelity().measure(bench)
    assert found.details["share of released values clipped to [0, 1]"] == 0.5
    assert found.details["reference images read"] == 60


def test_without_a_network_the_figure_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {"made": Absent()})
    evidence = measured(bench_of(tmp_path, Identity()))
    with pytest.raises(NotApplicable, match=r"weights-of-a-test is not installed: run `pip install it`.*--overwrite"):
        KID()(evidence)
    assert PairLikeness()(evidence).value == pytest.approx(PairLikeness()(evidence).null, abs=0.2)


def test_a_second_network_is_read_where_the_first_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {"first": Absent(), "second": Coarse()})
    assert measured(bench_of(tmp_path, Identity())).network.startswith("second at 96 pixels")


def test_rows_that_are_no_images_do_not_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotApplicable, match="a table's"):
        Fidelity().measure(opened(tmp_path / "table", "identity", "diabetes"))
    bench = bench_of(tmp_path, Identity())
    sealed = bench.sealed(bench.scheme(), 0)
    for shape in ((60, 5), (60, 16, 4, 4)):
        tokens = replace(sealed, release=Release(torch.rand(shape), None, None), links=None)
        monkeypatch.setattr(Workbench, "sealed", lambda *_, tokens=tokens: tokens)
        with pytest.raises(NotApplicable, match="images of 1 or 3 channels, and identity releases rows of shape"):
            Fidelity().measure(bench)
