import pytest
import torch

from bench.nets import contrastive_towers as relations
from bench.nets.contrastive_towers import QUANTILES, Relations, signatures
from bench.nets.patches import cut


def images(n=12, seed=0):
    return torch.rand(n, 1, 16, 16, generator=torch.Generator().manual_seed(seed))


def orthogonal(size, seed):
    return torch.linalg.qr(torch.randn(size, size, generator=torch.Generator().manual_seed(seed)))[0]


def test_signatures_equal_those_of_a_loop_over_rows_and_patches():
    rows = images(7)
    found = signatures(rows, 8)
    patches = cut(rows, 8).double()
    patches = patches - patches.mean(dim=0)
    whole = patches.flatten(1)
    for i in range(7):
        for location in range(5):
            every = whole if location == 4 else patches[:, location]
            products = sorted(float(every[i] @ every[j]) for j in range(7) if j != i)
            cosines = sorted(float(torch.cosine_similarity(every[i], every[j], dim=0)) for j in range(7) if j != i)
            places = [int((q + 0.5) / QUANTILES * 6) for q in range(QUANTILES)]
            expected = [products[p] for p in places] + [cosines[p] for p in places]
            expected.append(float((every[i] @ every[i]).log()))
            assert found[i, location].tolist() == pytest.approx(expected, abs=1e-4)


def test_rotations_of_every_patch_change_no_signature():
    rows = images().flatten(1)
    assert torch.allclose(signatures(rows @ orthogonal(256, 1), None), signatures(rows, None), atol=1e-3)


def test_the_order_of_rows_does_not_matter():
    rows, order = images(), torch.randperm(12, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(signatures(rows[order], 8), signatures(rows, 8)[order], atol=1e-4)


def test_blocks_change_nothing(monkeypatch):
    rows = images()
    whole = signatures(rows, 8)
    monkeypatch.setattr(relations, "BLOCK", 5 * 12 * 5)  # five rows at a time
    assert torch.allclose(signatures(rows, 8), whole, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 16, 16), (20,)])
def test_rows_become_embeddings_and_pass_gradients(shape):
    rows = torch.rand(6, *shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
    out = Relations(shape, width=8, patch_size=8 if len(shape) == 3 else None)(rows)
    assert out.shape == (6, 8)
    out.square().sum().backward()
    assert rows.grad is not None
    assert bool(rows.grad.isfinite().all())
    assert float(rows.grad.abs().sum()) > 0


@pytest.mark.parametrize("rows", [torch.rand(1, 20), torch.zeros(4, 20)], ids=["alone", "blank"])
def test_rows_without_relations_stay_finite(rows):
    assert bool(Relations((20,), width=8, patch_size=None)(rows).isfinite().all())
