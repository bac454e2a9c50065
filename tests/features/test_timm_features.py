from __future__ import annotations

import hashlib
import os
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import timm
import torch
from made.feature_images import images, table
from safetensors.torch import save_file

from bench.contract.source import DataError
from bench.features.timm_model import Timm
from bench.nets.training import seeded
from bench.types import NotApplicable

MODEL = "test_resnet.r160_in1k"
TOKENS = "test_vit.r160_in1k"
HEADS = {MODEL: "fc.", TOKENS: "head."}


def state_of(model: str, head: bool = True) -> dict[str, torch.Tensor]:
    with seeded(0):
        network = timm.create_model(model)
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    return state if head else {name: part for name, part in state.items() if not name.startswith(HEADS[model])}


def extractor(folder: Path, state: dict[str, torch.Tensor], model: str = MODEL, size: int = 32) -> Timm:
    save_file(state, folder / "w.bin")
    return Timm(model, weights=str(folder / "w.bin"), size=size)


def test_vectors_are_what_the_model_pools_before_its_head(tmp_path: Path) -> None:
    data = images(4, side=32, channels=3)
    state = state_of(MODEL)
    vectors = extractor(tmp_path, state).fit(data, 0).embed(data.samples)
    network = timm.create_model(MODEL)
    network.load_state_dict(state)
    config = network.pretrained_cfg
    normal = (data.samples - torch.tensor(config["mean"]).view(3, 1, 1)) / torch.tensor(config["std"]).view(3, 1, 1)
    with torch.no_grad():
        pooled = network.eval().forward_head(network.forward_features(normal), pre_logits=True)
    assert torch.allclose(vectors, pooled, atol=1e-5)


def test_weights_are_the_same_in_every_kind_of_file(tmp_path: Path) -> None:
    data, state = images(4, side=32), state_of(MODEL)
    expected = extractor(tmp_path, state).fit(data, 0).embed(data.samples)
    bare = extractor(tmp_path, state_of(MODEL, head=False))
    assert torch.equal(bare.fit(data, 0).embed(data.samples), expected)
    prefixed = OrderedDict((f"module.{name}", part) for name, part in state.items())
    for kept in (state, prefixed, {"state_dict": prefixed, "epoch": 3}):
        torch.save(kept, tmp_path / "w.pth")
        found = Timm(MODEL, weights=str(tmp_path / "w.pth"), size=32).fit(data, 0).embed(data.samples)
        assert torch.equal(found, expected)


def test_a_grey_image_is_three_equal_channels_brought_to_the_models_side(tmp_path: Path) -> None:
    grey = images(3, side=20)
    fitted = extractor(tmp_path, state_of(MODEL)).fit(grey, 0)
    assert torch.equal(fitted.embed(grey.samples), fitted.embed(grey.samples.repeat(1, 3, 1, 1)))
    assert fitted.notes() == {"input side": 32}
    whole = Timm(MODEL, weights=str(tmp_path / "w.bin")).fit(grey, 0)
    assert whole.notes() == {"input side": 160}


def test_position_embeddings_follow_the_side_and_the_notes_say_so(tmp_path: Path) -> None:
    data = images(3, side=32)
    fitted = extractor(tmp_path, state_of(TOKENS), TOKENS).fit(data, 0)
    assert fitted.embed(data.samples).isfinite().all()
    assert "converted" in str(fitted.notes()["weights"])
    assert "weights" not in extractor(tmp_path, state_of(TOKENS), TOKENS, 160).fit(data, 0).notes()


def test_the_stamp_is_the_hash_of_the_file(tmp_path: Path) -> None:
    found = extractor(tmp_path, state_of(MODEL))
    assert found.stamp() == hashlib.sha256((tmp_path / "w.bin").read_bytes()).hexdigest()


def test_weights_of_another_model_are_refused_with_names_and_shapes(tmp_path: Path) -> None:
    data = images(2, side=32)
    wide, short, long, spoilt = (state_of(MODEL) for _ in range(4))
    first = next(name for name, part in wide.items() if part.ndim == 4)
    shape = tuple(wide[first].shape)
    wide[first] = torch.zeros(7, *shape[1:])
    del short[first]
    long["extra.weight"] = torch.zeros(2)
    spoilt[first].view(-1)[3] = torch.nan
    for state, text in (
        (wide, f"{first}: expected of shape {shape}, found of shape {(7, *shape[1:])}"),
        (short, f"{first}: expected of shape {shape}, found nothing"),
        (long, "extra.weight: expected nothing, found of shape (2,)"),
        (spoilt, f"{first} must be finite in torch.float32, and 1 of its"),
        (state_of(TOKENS), "not the weights of this model"),
    ):
        with pytest.raises(DataError) as error:
            extractor(tmp_path, state).fit(data, 0)
        assert text in str(error.value)
        assert str(error.value).startswith("w.bin: ")
        assert str(tmp_path) not in str(error.value)


class Runs:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (os.environ["RUNS_IN"],)


def test_files_that_are_no_weights_are_refused_and_run_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("RUNS_IN", str(tmp_path / "ran"))
    save_file(state_of(MODEL), tmp_path / "whole")
    torch.save(state_of(MODEL), tmp_path / "zip")
    torch.save({"fc.weight": Runs()}, tmp_path / "code")
    torch.save({"epoch": 3}, tmp_path / "number")
    torch.save([1, 2], tmp_path / "list")
    contents = {
        "cut": ((tmp_path / "whole").read_bytes()[:-100], "unreadable or cut short"),
        "cut-zip": ((tmp_path / "zip").read_bytes()[:-100], "unreadable or cut short"),
        "page": (b"<!DOCTYPE html><html>no such file</html>", "found an HTML page"),
        "empty": (b"", "found an empty file"),
        "text": (b"hello, these are weights", "found neither"),
        "code": ((tmp_path / "code").read_bytes(), "could run code and are not loaded"),
        "number": ((tmp_path / "number").read_bytes(), "found 'epoch' of int"),
        "list": ((tmp_path / "list").read_bytes(), "expected tensors by name, found list"),
    }
    for name, (content, text) in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError) as error:
            Timm(MODEL, weights=str(tmp_path / name)).fit(images(2), 0)
        assert text in str(error.value)
        assert str(tmp_path) not in str(error.value)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(DataError, match="nowhere is not there"):
        Timm(MODEL, weights=str(tmp_path / "nowhere")).stamp()


def changed(change) -> dict[str, torch.Tensor]:
    return {name: change(part) if part.ndim > 1 else part for name, part in state_of(MODEL).items()}


def doubled() -> dict[str, torch.Tensor]:
    state = state_of(MODEL)
    return {**state, **{f"module.{name}": part for name, part in state.items()}}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (lambda: {}, "expected tensors by name"),
        (lambda: changed(torch.zeros_like), "all weights are zero"),
        (lambda: changed(lambda part: part[:0].clone()), "found of shape (0,"),
        (lambda: changed(lambda part: (part * 100).to(torch.int8)), "found torch.int8"),
        (lambda: changed(lambda part: part > 0), "found torch.bool"),
        (lambda: changed(lambda part: part.to(torch.complex64)), "found torch.complex64"),
        (lambda: changed(lambda part: part.double() * 1e300), "must be finite in torch.float32"),
        (lambda: changed(lambda part: part / 0), "must be finite in torch.float32"),
        (lambda: changed(lambda part: part[:1, :1, :1, :1].expand_as(part) if part.ndim == 4 else part), "repeats"),
        (lambda: changed(lambda part: torch.zeros(1).expand(10**9, 10**9)), "repeats 4 bytes"),
        (lambda: changed(lambda part: part.to_sparse()), "torch.sparse_coo"),
        (lambda: changed(lambda part: part.to("meta")), "on meta"),
        (doubled, "under two names"),
        (lambda: {1: torch.zeros(2), "1": torch.zeros(2)}, "under two names"),
    ],
)
def test_tensors_that_hold_no_weights_are_refused(tmp_path: Path, state, reason: str) -> None:
    torch.save(state(), tmp_path / "w.pth")
    with pytest.raises(DataError) as error:
        Timm(MODEL, weights=str(tmp_path / "w.pth"), size=32).fit(images(2, side=32), 0)
    assert reason in str(error.value)


def test_safetensors_without_a_tensor_or_of_absurd_shapes_are_refused(tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"F32","shape":[1000000000,1000000000],"data_offsets":[0,4]}}'
    for content in (b"{}", header, b"{" * 50):
        (tmp_path / "w").write_bytes(len(content).to_bytes(8, "little") + content + bytes(4))
        with pytest.raises(DataError, match=r"^w: "):
            Timm(MODEL, weights=str(tmp_path / "w")).fit(images(2), 0)
    (tmp_path / "w").write_bytes((2**60).to_bytes(8, "little") + b"{}")
    with pytest.raises(DataError, match=r"^w: unreadable"):
        Timm(MODEL, weights=str(tmp_path / "w")).fit(images(2), 0)


def test_an_archive_that_unpacks_to_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    torch.save(changed(torch.zeros_like), tmp_path / "plain.pth")
    with (
        zipfile.ZipFile(tmp_path / "plain.pth") as plain,
        zipfile.ZipFile(tmp_path / "w.pth", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    with pytest.raises(DataError, match="unpacks to"):
        Timm(MODEL, weights=str(tmp_path / "w.pth")).fit(images(2), 0)


def test_other_precisions_are_taken_and_a_tensor_of_zeros_is_said(tmp_path: Path) -> None:
    data = images(2, side=32)
    half = extractor(tmp_path, {name: part.half() if part.is_floating_point() else part
                                for name, part in state_of(MODEL).items()}).fit(data, 0)  # fmt: skip
    assert half.embed(data.samples).dtype == torch.float32
    state = state_of(MODEL)
    state[next(name for name, part in state.items() if part.ndim == 4)].zero_()
    assert extractor(tmp_path, state).fit(data, 0).notes() == {"input side": 32, "weights that are zero throughout": 1}


def test_without_weights_the_error_says_where_it_looked_and_what_to_do(monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "/nowhere")
    with pytest.raises(DataError) as error:
        Timm("vit_base_patch14_dinov2.lvd142m").stamp()
    for part in ("hub's cache", "HF_HUB_OFFLINE is set", "Fetch model.safetensors of", "give the file with --weights",
                 "timm/vit_base_patch14_dinov2.lvd142m", "pixels, eigenspace or public-cnn"):  # fmt: skip
        assert part in str(error.value)


def test_a_hub_that_does_not_answer_is_told_within_seconds(monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "/nowhere")
    waited = []

    def refuse(request, timeout):
        waited.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr("bench.backbones.weights.urlopen", refuse)
    with pytest.raises(DataError, match=r"not on the hub \(timed out\)"):
        Timm(MODEL).stamp()
    assert waited
    assert sum(waited) <= 10


def test_wrong_parameters_and_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"timm has no model 'test_resnet\.r160'; did you mean .*test_resnet"):
        Timm("test_resnet.r160")
    for wrong in ({"size": 0}, {"batch": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be at least 1, got 0"):
            Timm(MODEL, **wrong)
    found = extractor(tmp_path, state_of(MODEL))
    with pytest.raises(NotApplicable, match="vectors already"):
        found.fit(table(), 0)
    with pytest.raises(NotApplicable, match=r"1 or 3 channels, and these rows have shape \(2, 8, 8\)"):
        found.fit(images(2), 0).embed(torch.zeros(1, 2, 8, 8))
