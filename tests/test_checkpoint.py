"""Training that is cut off anywhere, and goes on to the same bits."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bench import checkpoint
from bench.checkpoint import CheckpointWarning, save_checkpoints, steps
from bench.nets.anonymiser import Anonymiser, AnonymiserCourse, Lessons, train_anonymiser
from bench.nets.autoencoder import Autoencoder, ReconstructionCourse, train_autoencoder
from bench.nets.glow import Glow
from bench.nets.normalising_flow import FlowCourse, train_flow
from bench.nets.obfuscator import Obfuscator, Opponents, train_obfuscator
from bench.nets.training import seeded
from bench.progress import forward_progress

STEPS = 12
IMAGES = torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(0))


class Cut(Exception):  # noqa: N818  (not an error of anything)
    """A process that ends here, as far as training can tell."""


def encoder() -> nn.Module:
    with seeded(1):
        network = Autoencoder((1, 8, 8), 8)
    train_autoencoder(network, IMAGES, ReconstructionCourse(STEPS, 4, 1e-3, "float32"), 2)
    return network


def flow() -> nn.Module:
    with seeded(1):
        network = Glow((1, 8, 8), levels=1, depth=1, width=4)
    course = FlowCourse(STEPS, 4, 1e-3, warm_up=2)
    train_flow(network, IMAGES, None, course, held_out=(IMAGES, None), seed=2)
    return network


def obfuscator() -> nn.Module:
    with seeded(1):
        network = Obfuscator((1, 8, 8), patch_size=4, width=16, blocks=1, depth=1)
    network.standardise_by(IMAGES)
    course = Opponents(STEPS, 4, 2.0, 20.0, 0.0, 1e-3, 8, 1, False, "float32", False)
    train_obfuscator(network, IMAGES, course, 2)
    return network


def anonymiser() -> nn.Module:
    with seeded(1):
        network = Anonymiser((1, 8, 8), 0.1, 4)
    lessons = Lessons(IMAGES, None, torch.arange(len(IMAGES)) // 2, False)
    train_anonymiser(network, lessons, AnonymiserCourse(STEPS, STEPS, 4, 1e-3, 1.0, 1.0), 8, 2)
    return network


@pytest.fixture(autouse=True)
def kept_after_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object], int], None]:
    """Ends a training right after the state of a step was kept."""
    keep = checkpoint._keep

    def work(train: Callable[[], object], last: int) -> None:
        def until(file: Path, done: int, parts: tuple[checkpoint.Part, ...], seconds: float) -> None:
            keep(file, done, parts, seconds)
            if done == last:
                raise Cut

        with monkeypatch.context() as changed:
            changed.setattr(checkpoint, "_keep", until)
            with pytest.raises(Cut):
                train()

    return work


@pytest.mark.parametrize("train", [encoder, flow, obfuscator, anonymiser])
@pytest.mark.parametrize("last", [1, 7, STEPS])
def test_a_training_that_is_cut_off_comes_to_the_same_bits(
    train: Callable[[], nn.Module], last: int, tmp_path: Path, cut_off: Callable[[Callable[[], object], int], None]
) -> None:
    whole, random = train().state_dict(), torch.get_rng_state()
    said: list[tuple[str, int, int]] = []
    with save_checkpoints(tmp_path / "kept"):
        cut_off(train, last)
    with save_checkpoints(tmp_path / "kept"), forward_progress(lambda *each: said.append(each)):
        again = train().state_dict()
    assert ("training goes on, step", last, STEPS) in said
    assert whole.keys() == again.keys()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert torch.equal(torch.get_rng_state(), random)  # given back


def test_trainings_follow_each_other_and_one_that_ended_is_not_done_again(
    tmp_path: Path, cut_off: Callable[[Callable[[], object], int], None]
) -> None:
    done: list[str] = []

    def two() -> list[Tensor]:
        total = [torch.zeros(1), torch.zeros(1)]
        for name, each in zip("ab", total, strict=True):
            for step in steps(5, each):
                done.append(f"{name}{step}")
                each.add_(torch.rand(1) + step)
        return total

    with seeded(3):
        whole = two()
    done.clear()
    with save_checkpoints(tmp_path), seeded(3):
        keeps = iter(range(100))
        keep = checkpoint._keep

        def until(file: Path, step: int, parts: tuple[checkpoint.Part, ...], seconds: float) -> None:
            keep(file, step, parts, seconds)
            if next(keeps) == 6:
                raise Cut

        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(checkpoint, "_keep", until)
            with pytest.raises(Cut):
                two()
    assert done == ["a0", "a1", "a2", "a3", "a4", "b0", "b1"]
    done.clear()
    with save_checkpoints(tmp_path), seeded(4):
        assert torch.equal(torch.cat(two()), torch.cat(whole))
    assert done == ["b2", "b3", "b4"]


@pytest.mark.parametrize("wrong", ["other shape", "other parts", "fewer steps", "no tensors", "empty"])
def test_what_does_not_fit_is_said_and_the_training_begins_anew(wrong: str, tmp_path: Path) -> None:
    def train(total: int, *parts: checkpoint.Part) -> list[int]:
        with save_checkpoints(tmp_path):
            return list(steps(total, *parts))

    assert train(9, torch.zeros(2, 2) if wrong == "other shape" else torch.zeros(2)) == list(range(9))
    file = tmp_path / "training-0.safetensors"
    if wrong in ("no tensors", "empty"):
        file.write_bytes(b"pickle" * (wrong == "no tensors"))
    total, more = 4 if wrong == "fewer steps" else 9, (torch.Generator(),) if wrong == "other parts" else ()
    with pytest.warns(CheckpointWarning, match="begins anew"):
        done = train(total, torch.zeros(2), *more)
    assert done == list(range(total))


@pytest.mark.parametrize("place", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_training_begins_anew_where_a_byte_of_what_was_kept_is_another(
    place: float, zeros: bool, tmp_path: Path, cut_off: Callable[[Callable[[], object], int], None]
) -> None:
    whole = encoder().state_dict()
    with save_checkpoints(tmp_path / "kept"):
        cut_off(encoder, 7)
    file = tmp_path / "kept" / "training-0.safetensors"
    content = bytearray(file.read_bytes())
    first = int(len(content) * place)
    content[first:] = bytes(len(content) - first) if zeros else bytes([content[first] ^ 64]) + content[first + 1 :]
    file.write_bytes(content)
    with save_checkpoints(tmp_path / "kept"), pytest.warns(CheckpointWarning, match="begins anew"):
        again = encoder().state_dict()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert checkpoint.training_seconds(tmp_path / "kept") < 60


def test_nothing_is_kept_of_a_short_training_nor_where_nobody_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS", 1e9)
    with save_checkpoints(tmp_path / "kept"):
        assert list(steps(3)) == [0, 1, 2]
    assert not (tmp_path / "kept").exists()
    assert list(steps(3, every=0.0)) == [0, 1, 2]
    assert not any(tmp_path.iterdir())


def _train(folder: Path) -> None:
    total = torch.zeros(1)
    with save_checkpoints(folder):
        for step in steps(10_000, total, every=0.0):
            total += step


def test_a_training_that_is_killed_while_it_writes_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    process = multiprocessing.get_context("fork").Process(target=_train, args=(folder,))
    process.start()
    while not (folder / "training-0.safetensors").exists():
        assert process.is_alive()
    process.kill()
    process.join()
    total = torch.zeros(1)
    with save_checkpoints(folder):
        for step in steps(10_000, total, every=1e9):
            total += step
    expected = torch.zeros(1)
    for step in range(10_000):
        expected += step
    assert torch.equal(total, expected)
