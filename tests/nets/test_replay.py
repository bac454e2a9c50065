"""Steps that are captured, by a stand-in for the capture: what is copied where, and what happens where it fails."""

import warnings

import pytest
import torch
from made.simulated_cuda import SimulatedCuda

from bench.nets import training as replay
from bench.nets.classifier import Course, train
from bench.nets.decoder import train_decoder
from bench.nets.training import WARM_UP, Replay, ReplayWarning, adam, set_rate

CUDA = torch.device("cuda")


def doubled(given):
    return given * 2


@pytest.fixture
def captures(monkeypatch):
    """How often a step was captured."""
    seen = []

    def captured(step, inputs):
        seen.append(inputs)
        return lambda: step(*inputs)

    with SimulatedCuda():
        monkeypatch.setattr(replay, "captured", captured)
        yield seen


def test_on_a_cpu_every_call_is_the_step_itself():
    step = Replay(doubled)
    assert [float(step(torch.tensor(float(n)))) for n in range(8)] == [2.0 * n for n in range(8)]


def test_after_the_first_calls_the_capture_reads_the_inputs_of_each_call(captures):
    step = Replay(doubled)
    found = [float(step(torch.tensor(float(n), device=CUDA))) for n in range(WARM_UP + 5)]
    assert found == [2.0 * n for n in range(WARM_UP + 5)]
    assert len(captures) == 1


def test_what_the_capture_holds_is_nobody_elses(captures):
    step, given = Replay(doubled), torch.ones(2, device=CUDA)
    for _ in range(WARM_UP + 1):
        step(given)
    step(torch.zeros(2, device=CUDA))
    assert given.tolist() == [1, 1]


def test_each_shape_is_captured_until_there_are_as_many_as_may_be(captures):
    step = Replay(doubled)
    for length in (2, 3, 4):
        for number in range(WARM_UP + 2):
            assert step(torch.full((length,), number, device=CUDA)).tolist() == [2.0 * number] * length
    assert [len(inputs[0]) for inputs in captures] == [2, 3]
    assert step(torch.full((2,), 5.0, device=CUDA)).tolist() == [10, 10]


def test_what_cannot_be_captured_runs_as_it_is_and_says_so_once(captures, monkeypatch):
    def refuses(step, inputs):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(replay, "captured", refuses)
    step = Replay(doubled)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = [float(step(torch.tensor(float(n), device=CUDA))) for n in range(WARM_UP + 4)]
    assert found == [2.0 * n for n in range(WARM_UP + 4)]
    assert [(each.category, str(each.message)) for each in said] == [
        (
            ReplayWarning,
            "a training step is launched kernel by kernel: operation not permitted when stream is capturing",
        )
    ]


def test_a_rate_is_set_where_the_optimiser_reads_it(captures):
    for device in (torch.device("cpu"), CUDA):
        weight = torch.nn.Parameter(torch.zeros(1, device=device))
        optimiser = adam([weight], 1.0, device)
        held = optimiser.param_groups[0]["lr"]
        set_rate(optimiser, 0.25)
        weight.grad = torch.ones(1, device=device)
        optimiser.step()
        assert float(weight.detach()) == pytest.approx(-0.25)
        assert (optimiser.param_groups[0]["lr"] is held) is (device.type == "cuda")


def trained_classifier():
    """Five rows a batch, or four: 22 do not divide evenly."""
    rows = torch.rand(22, 6, generator=torch.Generator().manual_seed(0)).to(CUDA)
    network = torch.nn.Linear(6, 1).to(CUDA)
    torch.nn.init.zeros_(network.weight)
    torch.nn.init.zeros_(network.bias)
    course = Course(4, None, 4, 0.1, 0.05, "float32")
    for _ in train(network, rows, (rows[:, :1] > 0.5).float(), course, exclusive=False, seed=0):
        pass
    return network.state_dict()


def trained_decoder():
    images = torch.rand(8, 1, 8, 8, generator=torch.Generator().manual_seed(0)).to(CUDA)
    return train_decoder(images.flip(3), images, steps=8, seed=0, batch=4, width=8).state_dict()


@pytest.mark.parametrize(("training", "shapes"), [(trained_classifier, 2), (trained_decoder, 1)])
def test_a_training_by_captures_is_the_training_itself(captures, monkeypatch, training, shapes):
    by_captures = training()
    assert len(captures) == shapes
    monkeypatch.setattr(Replay, "__call__", lambda self, *inputs: self._step(*inputs))
    itself = training()
    assert len(captures) == shapes
    assert all(torch.equal(by_captures[name], itself[name]) for name in itself)
