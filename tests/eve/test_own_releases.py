from dataclasses import replace

import pytest
import torch
from made.datasets import spots as images

import attacks.leverage
import attacks.moments
import attacks.relational
from attacks.contrastive import Contrastive
from attacks.leverage import Leverage
from attacks.likelihood import Likelihood
from attacks.moments import Moments
from attacks.relational import Relational
from bench.eve.own_releases import own_rows, shadow_releases, some_released
from bench.types import Dataset, NotApplicable, View
from methods.identity import Identity
from methods.k_same import KSame

CONTROL = Dataset("made", torch.zeros(3, 2), torch.zeros(3, 1), torch.arange(3), ("b",), False, True)
PUBLIC = Dataset("made", torch.ones(5, 2), torch.tensor([[0.0, 1.0]] * 5), None, ("a", "b"), False, True)

RARE = 5


def known(public, control=CONTROL):
    return own_rows(View(public, Identity().fit(public, 0), control, control))


def test_public_rows_of_the_same_collection_count_with_the_control_rows_findings():
    own = known(PUBLIC)
    assert own.samples[:, 0].tolist() == [0] * 3 + [1] * 5
    assert own.labels.tolist() == [[0.0]] * 3 + [[1.0]] * 5
    assert own.findings == ("b",)
    assert own.subjects is None


@pytest.mark.parametrize(
    "public",
    [
        replace(PUBLIC, name="another"),
        replace(PUBLIC, samples=torch.ones(5, 4)),
        replace(PUBLIC, findings=("a", "c")),
        replace(PUBLIC, labels=None),
    ],
)
def test_rows_of_another_kind_stay_out(public):
    assert torch.equal(known(public).samples, CONTROL.samples)


def test_public_rows_count_without_labels_where_none_of_the_control_rows_can_be_scored():
    own = known(PUBLIC, replace(CONTROL, labels=None, findings=()))
    assert own.samples[:, 0].tolist() == [0] * 3 + [1] * 5
    assert own.labels is None


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


def pool(n):
    labels = (torch.arange(n) % 2).float()[:, None]
    return Dataset("made", torch.arange(n).float()[:, None], labels, torch.arange(n), ("second",), False, True)


SCHEME = Identity().fit(pool(4), 0)


def test_halves_are_complements_with_the_proportions_of_the_pool():
    rows = pool(60)
    rows.labels[:12] = torch.nan
    parts = [inside for inside, _ in shadow_releases(SCHEME, rows, 6, 1)]
    assert all(torch.equal(first, ~second) for first, second in zip(parts[::2], parts[1::2], strict=True))
    assert not torch.equal(parts[0], parts[2])
    for inside in parts:
        held = rows.labels[inside]
        assert [int((held == 0).sum()), int((held == 1).sum()), int(held.isnan().sum())] == [12, 12, 6]


def test_an_odd_number_of_halves_is_refused():
    with pytest.raises(ValueError, match="even and at least 2, got 3"):
        next(shadow_releases(SCHEME, pool(60), 3, 1))


def test_releases_are_made_of_the_rows_they_are_said_to_be_of():
    for inside, release in shadow_releases(SCHEME, pool(21), 4, 1):
        assert release.samples[:, 0].tolist() == inside.nonzero()[:, 0].tolist()


def test_a_single_row_cannot_be_halved():
    with pytest.raises(ValueError, match="at least 2 rows to be halved, got 1"):
        next(shadow_releases(SCHEME, pool(1), 2, 1))


def test_a_class_whose_half_is_too_small_is_not_applicable():
    rows = pool(40)
    rows.labels[:] = 0
    rows.labels[:7] = 1  # halves hold 3 or 4 of them
    with pytest.raises(NotApplicable, match="half of Eve's 40 rows cannot be released: "):
        list(shadow_releases(KSame(k=5).fit(rows, 0), rows, 2, 0))
