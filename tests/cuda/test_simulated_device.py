"""The simulator refuses what CUDA refuses, and counts what the host waits for."""

import numpy as np
import pytest
import torch
from made.simulated_cuda import CUDA, DeviceError, SimulatedCuda
from torch import nn

from bench.seeds import generator


@pytest.fixture
def cuda():
    with SimulatedCuda() as simulated:
        yield simulated


def rows(device="cuda"):
    return torch.arange(12.0, device=device).reshape(3, 4)


def moved_after_a_step(network):
    optimiser = torch.optim.Adam(network.parameters())
    for device in ("cpu", "cuda"):
        network.to(device)(rows(device)).sum().backward()
        optimiser.step()
        optimiser.zero_grad()


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda: rows() + rows("cpu"), id="sum"),
        pytest.param(lambda: rows() @ rows("cpu").T, id="product"),
        pytest.param(lambda: torch.cat((rows(), rows("cpu"))), id="cat"),
        pytest.param(lambda: torch.stack((rows()[0, 0], torch.tensor(1.0))), id="scalars"),
        pytest.param(lambda: rows("cpu")[torch.tensor([0], device="cuda")], id="index"),
        pytest.param(lambda: rows().gather(1, torch.zeros(3, 1, dtype=torch.int64)), id="gather"),
        pytest.param(lambda: nn.Linear(4, 2)(rows()), id="layer"),
        pytest.param(lambda: rows().numpy(), id="numpy"),
        pytest.param(lambda: rows().cumsum(0), id="running sum"),
        pytest.param(lambda: torch.bincount(rows()[0].long(), weights=rows()[1]), id="counts by weight"),
        pytest.param(
            lambda: nn.functional.interpolate(rows()[None].requires_grad_(), 8, mode="linear").sum().backward(),
            id="gradient of an enlarged row",
        ),
        pytest.param(lambda: rows().normal_(generator=generator(0)), id="generator in place"),
        pytest.param(lambda: torch.rand(3, generator=generator(0), device="cuda"), id="generator"),
        pytest.param(lambda: torch.rand(3, generator=generator(0, "cuda")), id="generator of the device"),
        pytest.param(lambda: torch.rand(3, generator=generator(0, "cuda").clone_state()), id="generator's copy"),
        pytest.param(lambda: np.from_dlpack(rows()), id="numpy by DLPack"),
        pytest.param(lambda: torch.tensor(0.0).add_(rows().sum()), id="number written on the host"),
        pytest.param(lambda: torch.sum(rows(), dim=(0, 1), out=torch.tensor(0.0)), id="out"),
        pytest.param(lambda: torch._foreach_add([rows(), rows()], [rows(), rows("cpu")]), id="lists"),
        pytest.param(lambda: moved_after_a_step(nn.Linear(4, 2)), id="state of an optimiser"),
        pytest.param(lambda: rows().requires_grad_().exp().backward(torch.ones(3, 4)), id="gradient"),
        pytest.param(lambda: setattr(nn.Parameter(rows()), "grad", rows("cpu")), id="gradient of a weight"),
        pytest.param(lambda: torch.histogram(rows(), 3), id="no kernel"),
    ],
)
def test_two_devices_do_not_mix(cuda, work):
    with pytest.raises(DeviceError):
        work()


def test_what_cuda_allows_works(cuda):
    on = rows()
    made = (
        on * 2 + torch.tensor(1.0),
        on.new_tensor([1.0]),
        on[torch.tensor([0, 2])],
        torch.zeros_like(on),
        on.double(),
    )
    assert all(each.device == CUDA and each.is_cuda for each in made)
    assert torch.rand(2, generator=generator(0, "cuda"), device="cuda").is_cuda
    assert not on.cpu().is_cuda
    assert not rows("cpu").is_cuda
    assert torch.cuda.is_available()


def test_a_network_trains_on_the_device_and_gives_what_the_cpu_gives(cuda):
    def trained(device):
        network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        for weight in network.parameters():
            nn.init.constant_(weight, 0.1)
        network.to(device)
        optimiser = torch.optim.Adam(network.parameters())
        for _ in range(3):
            optimiser.zero_grad()
            network(rows(device)).square().mean().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
        assert all(weight.device.type == device for weight in network.parameters())
        return network[0].weight.detach().cpu()

    assert trained("cuda").equal(trained("cpu"))
    assert not cuda.waits


def test_waits_and_copies_are_counted_where_they_are_asked_for(cuda):
    on = rows()
    float(on.sum())
    on[on > 3].sum()
    on.tolist()
    on.cpu()
    assert {what for what, _ in cuda.waits} == {"_local_scalar_dense", "index by a mask", "tolist"}
    assert all(where.startswith("tests/cuda/test_simulated_device.py:") for _, where in cuda.waits)
    assert cuda.downloads.total() == 1


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda on: torch.allclose(on, on), id="compared"),
        pytest.param(repr, id="shown"),
        pytest.param(lambda on: torch.cuda.synchronize(), id="asked for"),
        pytest.param(lambda on: torch.tensor([on[0, 0], on[0, 1]]), id="list of numbers"),
        pytest.param(lambda on: on.repeat_interleave(on[0].long(), dim=1), id="repeated"),
        pytest.param(lambda on: torch.normal(on, on), id="judged"),
        pytest.param(lambda on: torch.multinomial(on[1], 1), id="drawn by weight"),
        pytest.param(torch.linalg.pinv, id="inverse"),
    ],
)
def test_each_way_to_wait_is_counted(cuda, work):
    on = rows()
    assert not cuda.total
    work(on)
    assert cuda.total


def test_nothing_is_left_when_it_ends():
    known = torch.Generator, torch.cuda.is_available(), torch.are_deterministic_algorithms_enabled()
    with SimulatedCuda():
        assert rows().is_cuda
        torch.use_deterministic_algorithms(True)
    assert known == (torch.Generator, torch.cuda.is_available(), torch.are_deterministic_algorithms_enabled())
    assert rows("cpu").device.type == "cpu"
