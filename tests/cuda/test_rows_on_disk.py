"""Rows that lie on disk come to the device as they are read, and attacks find with them what they find on the host."""

import pytest
import torch
from made.on_disk import N, found, images
from made.simulated_cuda import CUDA, DeviceError, SimulatedCuda

from attacks.surrogate import VARIANTS

SURROGATE = "surrogate[base=nearest-neighbour,held_out=1,most_pairs=100,rounds=1]"
SLOW = ("absolute-correlation[restarts=1]", "dcr", "float-holes", "gan-leaks", "invariants", "label-linkage",
        "leverage", "likelihood", "lira", "prng", "re-clustering", "relational",
        SURROGATE)  # fmt: skip
FEW = {SURROGATE: 1300}
"""Rows of an attack that compares all of them with all again and again: the simulated device takes 20 ms a block."""


def test_rows_say_where_they_are_and_are_copied_as_they_are_read():
    rows = images(600, on_disk=True).samples
    with SimulatedCuda() as cuda:
        there = rows.to("cuda")
        before = cuda.uploads.total()
        block = there[torch.arange(3)]
        assert (there.device, block.device, (there + 1).device) == (CUDA, CUDA, CUDA)
        assert cuda.uploads.total() > before
        with pytest.raises(DeviceError):
            there[torch.arange(3)] + rows[torch.arange(3)]
    assert torch.equal(block, rows[torch.arange(3)])


@pytest.mark.parametrize(
    "attack",
    [
        "nearest-neighbour",
        *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW),
    ],
)
def test_an_attack_finds_on_the_device_what_it_finds_on_the_host(attack, monkeypatch):
    monkeypatch.setattr("attacks.surrogate.VARIANTS", VARIANTS[-1:])  # its base, which may do better, reads no parts
    count = FEW.get(attack, N)
    with SimulatedCuda():
        there = found(attack, "dp-simple", on_disk=True, count=count, device="cuda").cpu()
    torch.testing.assert_close(there, found(attack, "dp-simple", on_disk=True, count=count), rtol=1e-4, atol=1e-6)
