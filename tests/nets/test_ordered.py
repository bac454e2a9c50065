import torch

from bench.nets.contrastive_towers import ordered


def test_numpy_and_torch_give_the_same_bits():
    table = torch.randn(3, 5, 400, generator=torch.Generator().manual_seed(0))
    table[0, 0, :3] = float("inf")
    table[1, 2, 7] = -float("inf")
    by_torch = ordered(table.clone().requires_grad_())
    assert by_torch.requires_grad
    assert torch.equal(ordered(table), by_torch.detach())
    assert torch.equal(ordered(table.double()), by_torch.detach().double())
    assert torch.equal(ordered(table.transpose(0, 2)), table.transpose(0, 2).sort(dim=-1).values)
