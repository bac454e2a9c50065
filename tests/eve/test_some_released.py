from dataclasses import replace

import pytest
import torch
from made.spots import images

import attacks.leverage
import attacks.moments
import attacks.relational
from attacks.contrastive import Contrastive
from attacks.leverage import Leverage
from attacks.likelihood import Likelihood
from attacks.moments import Moments
from attacks.relational import Relational
from bench.eve.some_released import some_released
from bench.types import NotApplicable, View
from methods.k_same import KSame

RARE = 5


def unequal():
    """Images of two classes, one of them rare."""
    private = images()
    rare = torch.arange(len(private)) < RARE
    return replace(private, labels=rare[:, None].float(), findings=("rare",))


def scheme(k):
    return KSame(k=k).fit(unequal(), 0)


def test_as_many_rows_are_released_as_were_chosen_where_the_method_does():
    chosen = torch.arange(10, 30)
    rows, release = some_released(scheme(2), unequal(), chosen, 0, "key")
    assert torch.equal(rows.samples, unequal().samples[chosen])
    assert len(release) == 20


@pytest.mark.parametrize("first", [2, 20])
def test_more_rows_are_released_where_the_method_refuses_so_few(first):
    chosen = torch.arange(first, first + 4)
    (rows, release), (same, _) = (some_released(scheme(4), unequal(), chosen, 0, "key") for _ in range(2))
    assert torch.equal(rows.samples[:4], unequal().samples[chosen])
    assert len(rows) == len(release) == len(rows.samples.unique(dim=0))
    assert torch.equal(rows.samples, same.samples)


def test_what_is_not_released_as_a_whole_stays_refused():
    with pytest.raises(NotApplicable, match="rare = 1 has 5"):
        some_released(scheme(6), unequal(), torch.arange(20), 0, "key")


@pytest.mark.parametrize(
    "attack",
    [
        Moments(steps=2, batch=8, width=8),
        Contrastive(steps=2, batch=8, width=16, depth=1),
        Leverage(keys=2),
        Likelihood(rows=8),
        Relational(keys=2),
    ],
    ids=lambda attack: attack.name,
)
def test_attacks_apply_to_a_whole_whose_parts_cannot_be_released(attack, monkeypatch):
    for module, name in (
        (attacks.leverage, "PROBE_ROWS"),
        (attacks.moments, "PROBE_ROWS"),
        (attacks.relational, "TRIED_ON"),
    ):
        monkeypatch.setattr(module, name, 8)
    private, of = unequal(), scheme(4)
    attack.fit(View(private, of, private, private), 0)
