import pytest
import torch

from bench.eve.shadow_releases import shadow_releases
from bench.types import Dataset, NotApplicable
from methods.identity import Identity
from methods.k_same import KSame


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
