from __future__ import annotations

import pytest
import torch
from made import datasets
from made.toy_methods import Keyless
from torch import Tensor

from attacks.contrastive import Contrastive
from attacks.leverage import Leverage
from attacks.likelihood import Likelihood
from attacks.moments import Moments
from attacks.nearest_neighbour import NearestNeighbour
from attacks.relational import Relational
from attacks.surrogate import Surrogate
from bench.eve.outliers import tamed
from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.types import Attack, Dataset, Release, View

N = 40


class Decoy(Keyless):
    """Releases the rows, and of the whole set one row more, without a person, far beyond all others."""

    def release(self, private: Dataset) -> Release:
        rows = torch.arange(len(private))
        return Release(with_decoy(private.samples), None, torch.stack((rows, rows), dim=1))


def with_decoy(samples: Tensor) -> Tensor:
    return torch.cat((samples, 1e30 * (1 + samples[:1])))


@pytest.mark.parametrize(
    "attack",
    [
        NearestNeighbour(),
        Leverage(keys=2),
        Likelihood(keys=4),
        Relational(keys=2, held_out=1),
        Surrogate(Relational(keys=2, held_out=1), rounds=1, held_out=1),
    ],
    ids=lambda attack: attack.name,
)
def test_a_row_far_beyond_all_others_blinds_no_attack(attack: Attack) -> None:
    private = datasets.spots(N)
    scores = attack.fit(View(private, Decoy(), private, private), 0).score(Decoy().release(private))
    found = scores.block(slice(None), slice(None)).argmax(dim=0)[:N]
    assert int((found == torch.arange(N)).sum()) == N


@pytest.mark.parametrize("attack", [Moments(steps=1, width=8), Contrastive(steps=1, width=8, depth=1)])
def test_towers_see_the_other_rows_as_they_would_without_it(attack: Attack) -> None:
    private = datasets.spots(N)
    attacker = attack.fit(View(private, Decoy(), private, private), 0)
    plain, beside = (
        attacker.score(Release(samples, None, None)).block(slice(None), slice(None))[:, :N].flatten()
        for samples in (private.samples, with_decoy(private.samples))
    )
    assert float(torch.corrcoef(torch.stack((plain, beside)))[0, 1]) > 0.9


def test_other_rows_stay_as_they_were_to_the_last_bit_on_disk_too() -> None:
    samples = datasets.spots(200).samples
    far = with_decoy(samples)
    assert torch.equal(tamed(samples), samples)
    made = tamed(far)
    assert torch.equal(made[:-1], samples)
    assert float(made[-1].abs().max()) < 3
    on_disk = tamed(Rows.of(far.numpy(), Budget(1 << 30)))
    assert isinstance(on_disk, Rows)
    assert torch.equal(on_disk[:], made)


def test_rows_that_are_nearly_all_the_same_are_left_alone() -> None:
    same = torch.zeros(20, 4)
    same[3] = 1
    assert torch.equal(tamed(same), same)
