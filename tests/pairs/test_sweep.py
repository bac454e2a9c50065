from __future__ import annotations

import weakref
from fractions import Fraction

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made.dense_scores import DenseScores, diagonal
from sklearn.metrics import roc_auc_score
from torch.utils._python_dispatch import TorchDispatchMode

from bench.pairs import numba_counter as pair_kernel
from bench.pairs import score_histogram as pair_histogram
from bench.pairs import score_reader as pair_reader
from bench.pairs import sweep as pairs
from bench.pairs.score_blocks import GATHERED, products
from bench.pairs.score_matrices import CosineScores
from bench.pairs.sweep import Grid, PairCounts, blocks, count, count_grids, engine
from bench.types import PairScores
from metrics.guesswork import chance_guesswork, guesswork
from metrics.pair_roc import reid_auc


@st.composite
def grids(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    """A grid with heavy ties, of any shape, with any links."""
    n, m = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    levels = draw(st.integers(1, 4))
    values = draw(st.lists(st.integers(0, levels), min_size=n * m, max_size=n * m))
    places = draw(st.sets(st.integers(0, n * m - 1), min_size=1, max_size=n * m))
    links = torch.tensor([[place // m, place % m] for place in sorted(places)])
    return torch.tensor(values, dtype=torch.float32).reshape(n, m), links


def bucket_guesswork(matrix: torch.Tensor, links: torch.Tensor) -> Fraction:
    """Syfer, appendix A, by walking the distinct scores downwards."""
    linked = torch.zeros_like(matrix, dtype=torch.bool)
    linked[links[:, 0], links[:, 1]] = True
    passed = 0
    for value in sorted(set(matrix.flatten().tolist()), reverse=True):
        size, correct = int((matrix == value).sum()), int((linked & (matrix == value)).sum())
        if correct:
            return passed + Fraction(size + 1, correct + 1)
        passed += size
    raise AssertionError("no linked pair")


def equal(one: PairCounts, other: PairCounts) -> bool:
    """Bit for bit."""
    fields = ("linked", "others", "top_1", "ranks")
    return one.shape == other.shape and all(torch.equal(getattr(one, f), getattr(other, f)) for f in fields)


@settings(max_examples=120, deadline=None)
@given(grids(), st.integers(1, 5), st.sampled_from(["numba", "torch"]))
def test_counts_agree_with_slow_twins(
    grid: tuple[torch.Tensor, torch.Tensor], block: int, engine: pairs.Engine
) -> None:
    matrix, links = grid
    counts = count(DenseScores(matrix), links, block=block, engine=engine)
    assert guesswork(counts) == pytest.approx(float(bucket_guesswork(matrix, links)), rel=1e-12)
    truth = torch.zeros_like(matrix)
    truth[links[:, 0], links[:, 1]] = 1
    if len(links) < matrix.numel():
        assert reid_auc(counts) == pytest.approx(roc_auc_score(truth.flatten(), matrix.flatten()), rel=1e-12)
    expected = []
    for col in range(matrix.shape[1]):
        if truth[:, col].any():
            top = matrix[:, col] == matrix[:, col].max()
            expected.append(float((top * truth[:, col]).sum() / top.sum()))
    assert counts.top_1.tolist() == pytest.approx(expected)
    ranks = []
    for col in range(matrix.shape[1]):
        inside = links[links[:, 1] == col]
        if len(inside):
            column = torch.stack((inside[:, 0], torch.zeros(len(inside), dtype=torch.int64)), dim=1)
            ranks.append(float(bucket_guesswork(matrix[:, col : col + 1], column)))
    assert counts.ranks.tolist() == pytest.approx(ranks)


def test_appendix_a_first_scheme_has_guesswork_five_thirds_and_variance_eight_ninths() -> None:
    # Eve believes in the likelier transformation (2/3): right costs 1 guess, wrong costs 3.
    belief = DenseScores(torch.tensor([[2 / 3, 1 / 3], [1 / 3, 2 / 3]]))
    likely, unlikely = (guesswork(count(belief, links)) for links in (diagonal(2), torch.tensor([[0, 1], [1, 0]])))
    mean = (2 * likely + unlikely) / 3
    assert mean == pytest.approx(5 / 3)
    # The paper says 8/27, which is an erratum.
    assert (2 * (likely - mean) ** 2 + (unlikely - mean) ** 2) / 3 == pytest.approx(8 / 9)


def test_appendix_a_second_scheme_has_guesswork_five_thirds() -> None:
    assert guesswork(count(DenseScores(torch.full((2, 2), 0.5)), diagonal(2))) == pytest.approx(5 / 3)


def test_appendix_a_third_scheme_has_guesswork_thirteen_ninths() -> None:
    sure = guesswork(count(DenseScores(torch.eye(2)), diagonal(2)))
    unsure = guesswork(count(DenseScores(torch.full((2, 2), 0.5)), diagonal(2)))
    assert (sure + 2 * unsure) / 3 == pytest.approx(13 / 9)


@pytest.mark.parametrize("n", [1, 2, 5, 33])
def test_uniform_scores_give_the_closed_form(n: int) -> None:
    counts = count(DenseScores(torch.zeros(n, n)), diagonal(n), block=7)
    assert guesswork(counts) == pytest.approx((n * n + 1) / (n + 1))
    assert chance_guesswork(counts) == pytest.approx((n * n + 1) / (n + 1))


def test_a_confidently_wrong_attacker_reaches_the_worst_guesswork() -> None:
    n = 6
    assert guesswork(count(DenseScores(1 - torch.eye(n)), diagonal(n))) == n * n - n + 1


def test_a_top_bucket_of_linked_pairs_gives_guesswork_one() -> None:
    assert guesswork(count(DenseScores(torch.eye(5)), diagonal(5))) == 1


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 12))
def test_blocks_cover_the_grid_once_and_are_even(n: int, m: int, block: int) -> None:
    seen = torch.zeros(n, m, dtype=torch.int64)
    for rows, cols in blocks((n, m), block):
        seen[rows, cols] += 1
        assert 0 < rows.stop - rows.start <= block
    assert bool((seen == 1).all())
    heights = {rows.stop - rows.start for rows, _ in blocks((n, m), block)}
    assert max(heights) - min(heights) <= 1


def test_a_score_that_is_not_finite_is_named() -> None:
    matrix = torch.zeros(4, 5)
    matrix[2, 3] = torch.nan
    with pytest.raises(ValueError, match="raw row 2 and released row 3"):
        count(DenseScores(matrix), diagonal(4), block=2)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (torch.zeros(0, 2, dtype=torch.int64), "at least 1"),
        (torch.tensor([[0, 5]]), "must lie in the grid"),
        (torch.tensor([[-1, 0]]), "must lie in the grid"),
        (torch.tensor([0, 1]), "shape"),
    ],
)
def test_bad_links_are_refused(links: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count(DenseScores(torch.zeros(3, 3)), links)


def test_repeated_links_count_once() -> None:
    matrix = torch.rand(4, 4, generator=torch.Generator().manual_seed(0))
    once, twice = count(DenseScores(matrix), diagonal(4)), count(DenseScores(matrix), diagonal(4).repeat(2, 1))
    assert torch.equal(once.linked, twice.linked)
    assert torch.equal(once.others, twice.others)


@st.composite
def sub_grids(draw: st.DrawFn, n: int, m: int) -> Grid:
    """Part of an n x m grid with two notions of a true pair."""
    rows = torch.tensor(sorted(draw(st.sets(st.integers(0, n - 1), min_size=1))))
    cols = torch.tensor(sorted(draw(st.sets(st.integers(0, m - 1), min_size=1))))
    pair = st.tuples(st.sampled_from(rows.tolist()), st.sampled_from(cols.tolist()))
    return Grid(rows, cols, [torch.tensor(draw(st.lists(pair, min_size=1, max_size=9))) for _ in range(2)])


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.sampled_from(["numba", "torch"]))
def test_parts_counted_together_are_parts_counted_alone(
    data: st.DataObject, n: int, m: int, block: int, engine: pairs.Engine
) -> None:
    values = data.draw(st.lists(st.integers(0, 5), min_size=n * m, max_size=n * m))
    matrix = torch.tensor(values, dtype=torch.float64).reshape(n, m)
    parts = data.draw(st.lists(sub_grids(n, m), min_size=1, max_size=4))
    together = count_grids(DenseScores(matrix), parts, block=block, engine=engine)
    for part, counts in zip(parts, together, strict=True):
        inside = DenseScores(matrix[part.rows][:, part.cols])
        for links, found in zip(part.links, counts, strict=True):
            own = torch.stack(
                (
                    torch.searchsorted(part.rows, links[:, 0].contiguous()),
                    torch.searchsorted(part.cols, links[:, 1].contiguous()),
                ),
                dim=1,
            )
            assert equal(found, count(inside, own, engine="torch"))


@pytest.mark.parametrize("engine", ["numba", "torch"])
@pytest.mark.parametrize("rows", [12, 9])  # the whole grid, and a part of it
def test_many_notions_of_a_pair_are_counted_as_each_alone(engine: pairs.Engine, rows: int) -> None:
    source = torch.Generator().manual_seed(0)
    matrix = torch.randint(0, 20, (12, 14), generator=source).to(torch.float64)  # with ties
    notions = [
        torch.stack((torch.randint(0, rows, (5,), generator=source), torch.randperm(14, generator=source)[:5]), dim=1)
        for _ in range(pair_histogram.MANY + 1)
    ]
    part = Grid(torch.arange(rows), torch.arange(14), notions)
    for links, found in zip(notions, count_grids(DenseScores(matrix), [part], block=4, engine=engine)[0], strict=True):
        assert equal(found, count(DenseScores(matrix[:rows]), links, engine="torch"))


@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_more_parts_than_a_census_holds_are_counted(engine: pairs.Engine) -> None:
    matrix = torch.randint(0, 50, (12, 12), generator=torch.Generator().manual_seed(0)).to(torch.float32)
    parts = [Grid(torch.arange(k, 12), torch.arange(12), [diagonal(12)[k:]]) for k in (*range(11), *range(11))]
    for part, counts in zip(parts, count_grids(DenseScores(matrix), parts, engine=engine), strict=True):
        links = part.links[0] - torch.tensor([int(part.rows[0]), 0])
        assert equal(counts[0], count(DenseScores(matrix[part.rows]), links, engine="torch"))


def collapsed(n: int, d: int, spread: float, seed: int) -> torch.Tensor:
    """Rows that are nearly, and every third exactly, one and the same direction."""
    source = torch.Generator().manual_seed(seed)
    rows = torch.randn(1, d, generator=source) + spread * torch.randn(n, d, generator=source)
    rows[::3] = rows[0]
    return rows


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(40, 90),
    m=st.integers(40, 90),
    d=st.sampled_from([1, 3, 64, 300]),
    spread=st.sampled_from([0.0, 1e-6, 1e-4, 1e-2, 1.0]),
    seed=st.integers(0, 1000),
    q=st.integers(1, 20),
    engine=st.sampled_from(["numba", "torch"]),
    exact=st.booleans(),
)
def test_float32_products_give_the_counts_of_exact_scores(
    monkeypatch: pytest.MonkeyPatch,
    n: int,
    m: int,
    d: int,
    spread: float,
    seed: int,
    q: int,
    engine: pairs.Engine,
    exact: bool,
) -> None:
    scores = CosineScores(collapsed(n, d, spread, seed), collapsed(m, d, spread, seed + 1))
    cells = torch.randperm(n * m, generator=torch.Generator().manual_seed(seed))[:q]
    links = torch.stack((cells // m, cells % m), dim=1)
    expected = count(DenseScores(scores.block(slice(0, n), slice(0, m))), links, engine="torch")
    # As if products were always, or never, cheaper than the exact comparisons that they leave.
    monkeypatch.setattr(pair_reader, "WORTHWHILE", (-1.0, -1.0) if exact else (1.0, 1.0))
    monkeypatch.setattr(pair_reader, "DOT", 1)
    assert equal(count(scores, links, block=32, engine=engine), expected)


def test_a_table_of_long_products_has_their_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = CosineScores(collapsed(70, 90, 1e-4, 0), collapsed(60, 90, 1e-4, 1))
    assert pair_reader.tabled(scores) is scores  # so few are kept anyway
    monkeypatch.setattr(pair_reader, "KEPT", 1000)
    table = pair_reader.tabled(scores)
    assert table.factors() is None
    assert torch.equal(table.block(slice(0, 70), slice(0, 60)), scores.block(slice(0, 70), slice(0, 60)))
    monkeypatch.setattr(pair_reader, "TABLE_BYTES", 8 * 70 * 60 - 1)
    assert pair_reader.tabled(scores) is scores


def test_nearly_collapsed_embeddings_keep_their_order() -> None:
    # All cosines lie within 3e-7 of 1: float32 products rank them at random, and privacy would be overstated.
    n = 200
    source = torch.Generator().manual_seed(0)
    noise = torch.randn(n, 16, generator=source, dtype=torch.float64)
    rows = torch.randn(1, 16, generator=source, dtype=torch.float64) + 3e-4 * noise
    coarse = torch.nn.functional.normalize(rows.to(torch.float32))
    assert reid_auc(count(DenseScores(coarse @ coarse.T), diagonal(n))) < 0.7
    assert reid_auc(count(CosineScores(rows, rows), diagonal(n))) > 0.99


@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_one_far_linked_score_does_not_spoil_the_table(engine: pairs.Engine) -> None:
    # All other linked scores share a bucket with all other scores.
    matrix = torch.rand(60, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix[0, 0] = 1e300
    counts = count(DenseScores(matrix), diagonal(60), engine=engine)
    linked = matrix.diagonal().sort().values
    below = torch.searchsorted(linked, matrix.flatten())
    places = torch.bincount(2 * below + (linked[below.clamp(max=59)] == matrix.flatten()), minlength=121)
    places[1::2] -= 1
    assert torch.equal(counts.others, places)


@pytest.mark.parametrize("extreme", [1e300, 1e-310, 1.7e308])
@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_scores_of_any_size_are_placed(extreme: float, engine: pairs.Engine) -> None:
    matrix = torch.tensor([[1.0, -1.0, 0.0], [0.5, 1.0, -0.5], [-1.0, 0.25, -1.0]], dtype=torch.float64)
    assert equal(
        count(DenseScores(matrix * extreme), diagonal(3), engine=engine), count(DenseScores(matrix), diagonal(3))
    )


def test_counts_of_many_blocks_outlast_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = torch.rand(20, 20, generator=torch.Generator().manual_seed(0))
    grid = Grid(torch.arange(15), torch.arange(15), [diagonal(15)])
    expected = count_grids(DenseScores(matrix), [grid], engine="torch")[0][0]
    monkeypatch.setattr(pair_kernel, "MOST_PENDING", 30)
    assert equal(count_grids(DenseScores(matrix), [grid], block=5, engine="numba")[0][0], expected)


def test_threads_change_no_bit_and_are_put_back() -> None:
    source = torch.Generator().manual_seed(0)
    scores = CosineScores(torch.randn(150, 16, generator=source), torch.randn(170, 16, generator=source))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = count(scores, diagonal(150), block=40)
        torch.set_num_threads(3)
        assert equal(count(scores, diagonal(150), block=40), alone)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_coarser_float32_products_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_reader, "KEPT", 0)  # else the grid is read once, in float64
    scores = CosineScores(collapsed(90, 64, 0.1, 0), collapsed(90, 64, 0.1, 1))
    expected = count(DenseScores(scores.block(slice(0, 90), slice(0, 90))), diagonal(90))
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert equal(count(scores, diagonal(90)), expected)
    finally:
        torch.set_float32_matmul_precision(before)
    setting = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    try:
        setting.fp32_precision = "bf16"
        assert equal(count(scores, diagonal(90)), expected)
    finally:
        setting.fp32_precision = "ieee"


class Promised(PairScores):
    """Scores with factors that are not what they should be."""

    def __init__(self, a: torch.Tensor, b: torch.Tensor) -> None:
        self.a, self.b, self.shape = a, b, (3, 3)

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        return self.a[rows] @ self.b[cols].T

    def factors(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.a, self.b


@pytest.mark.parametrize(
    ("a", "message"),
    [
        (torch.eye(3), "raw factors must be float64"),
        (torch.eye(3, dtype=torch.float64) / 3, "row 0 is not"),
        (torch.diag(torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64)), "row 1 is not"),
        (torch.diag(torch.tensor([1.0, 1.0, torch.nan], dtype=torch.float64)), "row 2 is not"),
        (torch.eye(4, dtype=torch.float64), "one d on one device"),
    ],
)
def test_factors_that_break_their_promise_are_refused(a: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count(Promised(a, torch.eye(3, dtype=torch.float64)), diagonal(3))


def test_without_numba_torch_counts_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = torch.rand(9, 9, generator=torch.Generator().manual_seed(0))
    expected = count(DenseScores(matrix), diagonal(9), engine="numba")
    assert engine().startswith("numba ")
    monkeypatch.setattr(pairs, "_kernel", lambda: None)
    assert engine() == "torch"
    assert equal(count(DenseScores(matrix), diagonal(9)), expected)
    with pytest.raises(ValueError, match="needs numba"):
        count(DenseScores(matrix), diagonal(9), engine="numba")


class Held(TorchDispatchMode):
    """Counts the tensors that operations made and that are still held, at the most."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[weakref.ref[torch.Tensor]] = []
        self.most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.made = [each for each in self.made if each() is not None] + [weakref.ref(found)]
            self.most = max(self.most, len(self.made))
        return found


def test_products_keep_nothing_of_a_step() -> None:
    """Small results between the freed large tensors of every step part the heap: 6 GB of it for 30,000 pairs."""
    rows, pairs = torch.ones(20, GATHERED, dtype=torch.float64), torch.randint(20, (300, 2))  # a pair a step
    with Held() as held:
        products(rows, rows, *pairs.T)
    assert held.most < 12
