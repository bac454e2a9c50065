import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bench.owner.same_size_clusters as outermost_row
from bench.memory.memory_budget import Budget, TooLargeError
from bench.memory.rows import Rows
from bench.owner.same_size_clusters import same_size_clusters


def normal(n, d, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def on_grid(rows):
    """All distances of the rows on the grid that the module describes, by integers; as whole numbers."""
    points = rows.flatten(1).double()
    points = points - (points.amin(dim=0) / 2 + points.amax(dim=0) / 2)
    longest = float(points.norm(dim=1).amax())
    if longest:
        points = (points * 2.0 ** (25 - math.ceil(math.log2(longest)))).round()
    whole = points.long()
    squared = (whole[:, None] - whole[None]).square().sum(dim=2)
    return (squared.double().sqrt() * 2.0 ** (27 - math.ceil(math.log2(len(rows))))).round()


def rescanned(distances, k):
    """Clusters by the definition: everything is added up anew in every round."""
    n = len(distances)
    cluster, alive = torch.full((n,), -1), torch.ones(n, dtype=torch.bool)
    number = 0
    while int(alive.sum()) >= 2 * k:
        sums = torch.where(alive, (distances * alive).sum(dim=1), -1.0)
        seed = int(sums.argmax())
        away = torch.where(alive, distances[seed], torch.inf)
        away[seed] = -1
        taken = away.sort(stable=True).indices[:k]
        cluster[taken], alive[taken] = number, False
        number += 1
    cluster[alive] = number
    return cluster


def test_the_outermost_row_takes_its_nearest_and_so_on_inwards():
    # Sums of distances: 0 has 51, 30 has 79: it takes 20; of 0, 1, 3 and 4, both ends have 8: the first takes 1.
    rows = torch.tensor([[0.0], [20.0], [1.0], [30.0], [3.0], [4.0]])
    assert same_size_clusters(rows, 2).tolist() == [1, 0, 1, 0, 2, 2]


def test_the_last_cluster_takes_what_is_left_over():
    sizes = [torch.bincount(same_size_clusters(normal(n, 3), 4)).tolist() for n in (4, 7, 8, 9, 15)]
    assert sizes == [[4], [7], [4, 4], [4, 5], [4, 4, 7]]


@pytest.mark.parametrize(("n", "d"), [(40, 1), (300, 4), (700, 40), (400, 200)])
@pytest.mark.parametrize("k", [2, 7])
def test_clusters_are_those_of_rescanned_float64_distances(n, d, k):
    rows = normal(n, d, seed=n)
    away = torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist")
    assert torch.equal(same_size_clusters(rows, k), rescanned(away, k))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    n=st.integers(2, 60), d=st.integers(1, 4), k=st.integers(1, 5), values=st.integers(1, 5), seed=st.integers(0, 999)
)
def test_ties_and_repeated_rows_and_constant_columns_go_by_row_number(n, d, k, values, seed):
    rows = torch.randint(values, (n, d), generator=torch.Generator().manual_seed(seed)).float()
    k = min(k, n)
    assert torch.equal(same_size_clusters(rows, k), rescanned(on_grid(rows), k))


@pytest.mark.parametrize(
    "rows",
    [
        torch.eye(200),
        torch.zeros(700, 3),
        torch.arange(700.0)[:, None],
        torch.cat((torch.zeros(400, 2), torch.ones(300, 2))),
        torch.randint(3, (900, 2), generator=torch.Generator().manual_seed(0)).float(),
    ],
    ids=["all equally far", "all the same", "a line", "two places", "few places"],
)
def test_rows_that_tie_by_the_hundred_go_by_row_number(rows):
    assert torch.equal(same_size_clusters(rows, 3), rescanned(on_grid(rows), 3))


@pytest.mark.parametrize(("stored", "groups", "chunk"), [(4, 2, 2), (64, 1, 8), (512, 16, 200)])
def test_how_many_rows_are_measured_or_stored_at_a_time_changes_nothing(monkeypatch, stored, groups, chunk):
    rows = torch.cat((normal(300, 5), normal(300, 5, seed=1) / 4 + 3))
    before = same_size_clusters(rows, 3)
    for name, value in (("STORED", stored), ("GROUPS", groups), ("CHUNK", chunk)):
        monkeypatch.setattr(outermost_row, name, value)
    assert torch.equal(same_size_clusters(rows, 3), before)


def test_bounds_are_never_below_the_sums_and_close_to_them_in_many_dimensions():
    search = outermost_row.OutermostRow(normal(600, 80), torch.arange(600))
    gone = torch.randperm(600, generator=torch.Generator().manual_seed(1))[:250]
    search.remove(gone)
    sums = (on_grid(normal(600, 80)) * search.alive).sum(dim=1)
    search._count_out()
    ratio = search._bound(search._products(search._moments)) / sums
    assert ratio.amin() >= 1
    # Root mean square against mean: about 1 + var / (2 mean^2) of the distances, .3 % for normal rows in 80 dimensions.
    assert ratio.amax() < 1.02


def test_few_rows_are_measured_where_distances_are_alike(monkeypatch):
    measured, roots = [], outermost_row.OutermostRow._rounded_roots
    monkeypatch.setattr(
        outermost_row.OutermostRow,
        "_rounded_roots",
        lambda self, squares: measured.append(squares.shape[1]) or roots(self, squares),
    )
    same_size_clusters(normal(2000, 20), 10)
    assert 200 <= sum(measured) < 1200  # every seed, and fewer than the rows there are


def test_permuting_rows_permutes_the_clusters():
    rows = normal(500, 6)
    order = torch.randperm(500, generator=torch.Generator().manual_seed(2))
    assert torch.equal(same_size_clusters(rows[order], 4), same_size_clusters(rows, 4)[order])


def test_moving_stretching_and_constant_columns_change_nothing():
    rows = (normal(300, 6) * 2**10).round()
    clusters = same_size_clusters(rows, 5)
    assert torch.equal(same_size_clusters(rows * 2**20, 5), clusters)
    assert torch.equal(same_size_clusters(rows + 4096, 5), clusters)
    assert torch.equal(same_size_clusters(torch.cat((rows, torch.full((300, 2), 7.0)), dim=1), 5), clusters)


def test_images_are_clustered_as_their_pixels_and_stay_untouched():
    images = torch.rand(60, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    before = images.clone()
    assert torch.equal(same_size_clusters(images, 4), same_size_clusters(images.flatten(1), 4))
    assert torch.equal(images, before)


@pytest.mark.parametrize("images", [normal(700, 90).reshape(700, 1, 9, 10), torch.eye(300)])
def test_rows_that_are_read_where_they_are_used_form_the_clusters_of_those_in_memory(monkeypatch, images):
    monkeypatch.setattr(outermost_row, "CACHED", 64 * 90 * 8)
    on_disk = Rows.of(images.numpy(), Budget(4 * images.numel() * 4))
    assert torch.equal(same_size_clusters(on_disk, 3), same_size_clusters(images, 3))
    with pytest.raises(TooLargeError, match="or allow --memory"):
        same_size_clusters(Rows.of(images.numpy(), Budget(4 * images.numel() * 4 - 1)), 3)


def test_rows_of_a_class_form_the_clusters_that_they_form_alone():
    rows, which = normal(400, 5), torch.arange(0, 400, 3)
    assert torch.equal(same_size_clusters(rows, 3, which), same_size_clusters(rows[which], 3))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_rows_that_are_not_finite_are_named(bad):
    rows = normal(9, 2)
    rows[5, 1] = bad
    for which in (None, torch.arange(4, 9)):
        with pytest.raises(ValueError, match=r"row 5 is not \(1 such rows\)"):
            same_size_clusters(rows, 2, which)


@pytest.mark.parametrize("k", [0, 4])
def test_k_beyond_the_rows_is_refused(k):
    with pytest.raises(ValueError, match=f"k from 1 to the number of rows, 3, got {k}"):
        same_size_clusters(normal(3, 2), k)
