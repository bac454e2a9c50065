import math

import pytest
import torch
from made.dense_scores import diagonal

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.nets import contrastive_towers as relations
from bench.nets.contrastive_towers import QUANTILES, Relations, Tower, Towers, matching_loss, ordered, signatures
from bench.nets.patches import cut
from bench.nets.training import seeded
from bench.types import NotApplicable


def test_the_loss_counts_every_link_of_a_row_and_skips_rows_without():
    logits = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [5.0, 1.0, 1.0]])
    linked = torch.tensor([[True, True, False], [True, False, False], [False, False, False]])
    first = -math.log((math.e + math.e**2) / (math.e + math.e**2 + math.e**3))
    assert float(matching_loss(logits, linked)) == pytest.approx((first + math.log(3)) / 2, rel=1e-6)


def pair(width=16, encoder="sau"):
    with seeded(0):
        return Towers(*(Tower(encoder, (1, 16, 16), width=width, depth=1) for _ in range(2)))


def rows(n=8, seed=0):
    return torch.rand(n, 1, 16, 16, generator=torch.Generator().manual_seed(seed))


def test_embeddings_have_length_one_and_ignore_scale_and_offset():
    tower = pair().raw
    with torch.no_grad():
        embeddings = tower(rows())
        assert torch.allclose(tower(5 * rows() + 3), embeddings, atol=1e-4)
    assert embeddings.shape == (8, 16)
    assert torch.allclose(embeddings.norm(dim=1), torch.ones(8), atol=1e-6)


def test_a_set_on_disk_is_encoded_in_blocks_and_ends_at_the_same_embeddings():
    tower, plain = pair().raw.eval(), rows(600)
    on_disk = Rows.of(plain.numpy(), Budget(8 * plain.numel() * 4))
    blocks = []
    tower.instance.register_forward_pre_hook(lambda module, given: blocks.append(len(given[0])))
    with torch.no_grad():
        found, whole = tower(on_disk), tower(plain)
    assert blocks == [256, 256, 88, 600]
    assert torch.allclose(found, whole, atol=1e-5)


def test_towers_without_a_clue_lose_the_logarithm_of_the_set():
    towers = Towers(torch.nn.Identity(), torch.nn.Identity())
    same = torch.ones(8, 4) / 2
    assert towers.loss(same, same, diagonal(8)).item() == pytest.approx(math.log(8), rel=1e-6)


def test_frozen_towers_still_pass_gradients_to_the_release():
    towers = pair().requires_grad_(False)
    released = rows(seed=1).requires_grad_()
    towers.loss(rows(), released, diagonal(8)).backward()
    assert released.grad is not None
    assert float(released.grad.abs().sum()) > 0
    assert all(weight.grad is None for weight in towers.parameters())


def test_every_weight_of_both_towers_learns():
    towers = pair()
    towers.loss(rows(), rows(seed=1), diagonal(8)).backward()
    still = [name for name, weight in towers.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert still == []


def test_a_resnet_for_vectors_is_not_applicable():
    with pytest.raises(NotApplicable, match="use encoder=sau"):
        Tower("resnet18", (12,), width=16, depth=1)


def test_labels_move_embeddings_and_are_missed_where_a_tower_reads_them():
    with seeded(0):
        tower = Tower("sau", (1, 16, 16), width=16, depth=1, labels=1)
    no, yes = torch.zeros(8, 1), torch.eye(8)[:, :1]
    with torch.no_grad():
        assert not torch.allclose(tower(rows(), yes)[0], tower(rows(), no)[0], atol=1e-3)
    with pytest.raises(ValueError, match="expected labels"):
        tower(rows())


def test_relations_carry_over_to_rotated_patches():
    with seeded(0):
        tower = Tower("sau", (256,), width=16, depth=1, relations=True)
        turn = torch.linalg.qr(torch.randn(256, 256))[0]
    flat = rows().flatten(1)
    with torch.no_grad():
        told, turned = (tower.relations(part - part.mean(dim=0)) for part in (flat, flat @ turn))
    assert torch.allclose(told, turned, atol=1e-3)


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


def test_numpy_and_torch_give_the_same_bits():
    table = torch.randn(3, 5, 400, generator=torch.Generator().manual_seed(0))
    table[0, 0, :3] = float("inf")
    table[1, 2, 7] = -float("inf")
    by_torch = ordered(table.clone().requires_grad_())
    assert by_torch.requires_grad
    assert torch.equal(ordered(table), by_torch.detach())
    assert torch.equal(ordered(table.double()), by_torch.detach().double())
    assert torch.equal(ordered(table.transpose(0, 2)), table.transpose(0, 2).sort(dim=-1).values)
