"""What stands in for torch's order statistics on CUDA gives their values, wherever they stand."""

import pytest
import torch
from made.simulated_cuda import SimulatedCuda

from bench import determinism

SHAPES = [(), (1,), (7,), (8,), (3, 5), (4, 6, 2), (2, 1, 9)]


def numbers(shape, seed, kind):
    drawn = torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed))  # ties are frequent
    if kind == "whole":
        return drawn
    return torch.where(drawn == 3, torch.nan, drawn) if kind == "holes" else drawn * 0.5


@pytest.mark.parametrize("kind", ["whole", "halves", "holes"])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_are_those_of_torch_and_stand_where_it_says(shape, keepdim, kind):
    for seed in range(4):
        rows = numbers(shape, seed, kind)
        for dim in range(-max(1, len(shape)), max(1, len(shape))):
            length = rows.shape[dim] if shape else 1
            pairs = [
                (determinism.median(rows, dim, keepdim), torch.median(rows, dim, keepdim)),
                *((determinism.kthvalue(rows, k, dim, keepdim), torch.kthvalue(rows, k, dim, keepdim))
                  for k in range(1, length + 1)),
            ]  # fmt: skip
            if rows.is_floating_point():
                pairs.append((determinism.nanmedian(rows, dim, keepdim), torch.nanmedian(rows, dim, keepdim)))
            for (values, places), (expected, _) in pairs:
                assert values.dtype == expected.dtype
                torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)
                assert places.dtype == torch.int64
                shown = values if keepdim or not shape else values.unsqueeze(dim)
                found = rows.gather(dim, places if keepdim or not shape else places.unsqueeze(dim))
                torch.testing.assert_close(found, shown, rtol=0, atol=0, equal_nan=True)


def test_a_number_that_is_not_there_is_an_error():
    with pytest.raises(IndexError, match="from 1 to 3, got 4"):
        determinism.kthvalue(torch.arange(3.0), 4)


def test_a_device_computes_medians_along_an_axis_and_their_gradients():
    determinism.register()
    with SimulatedCuda():
        rows = torch.arange(12.0, device="cuda").reshape(3, 4).requires_grad_()
        rows.median(dim=0).values.sum().backward()
        assert rows.grad is not None
        assert rows.grad.tolist() == [[0.0] * 4, [1.0] * 4, [0.0] * 4]


def test_every_form_is_torchs_own_operation_on_a_device():
    determinism.register()
    for name in determinism.FORMS:
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CUDA")
