"""Rows that are read where they are used give what a tensor gives, and no more of them exists than is used."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bench.memory import rows as lazy
from bench.memory.memory_budget import Budget, TooLargeError
from bench.memory.rows import Rows, by_blocks, by_even_blocks, in_blocks, kept, rows_at

BYTES = np.random.default_rng(0).integers(0, 256, (90, 1, 8, 8), dtype=np.uint8)
PLAIN = torch.from_numpy(BYTES.astype(np.float32) / 255)
WHOLE = 90 * 64 * 8  # bytes of all rows in float64


def rows(whole: int = WHOLE // 3) -> Rows:
    """The same as `PLAIN`; so many bytes may be brought together."""
    return Rows.of(BYTES, Budget(4 * whole), divisor=255.0)


ROW_BY_ROW: dict[str, Callable[[Tensor], Tensor]] = {
    "flattened": lambda t: t.flatten(1),
    "reshaped": lambda t: t.reshape(len(t), -1),
    "viewed in parts": lambda t: t.view(90, 4, 16),
    "axes in another order": lambda t: t.permute(0, 3, 1, 2).reshape(90, -1),
    "axes in another order, listed": lambda t: t.permute((-4, 2, 3, 1)),
    "columns for rows": lambda t: t.transpose(-1, 2),
    "one more axis": lambda t: t.unsqueeze(1),
    "in float64": lambda t: t.double(),
    "half of them": lambda t: t[::2],
    "by number": lambda t: t[torch.tensor([3, 3, -1])],
    "by mask": lambda t: t[torch.arange(90) % 7 == 1],
    "by list": lambda t: t[[1, 0]],
    "one": lambda t: t[-2],
    "a column": lambda t: t[:, 0, 2:4],
    "a corner of one": lambda t: t[4, 0, :2],
    "some, cut": lambda t: t[10:20, 0],
    "picked": lambda t: t.index_select(0, torch.tensor([5, 1])),
    "less the mean row": lambda t: t.flatten(1) - torch.ones(64),
    "from one": lambda t: 1 - t,
    "over its own largest": lambda t: t.flatten(1) / t.flatten(1).amax(dim=1, keepdim=True),
    "clipped": lambda t: torch.minimum(torch.maximum(t, torch.full((1, 8, 8), 0.2)), torch.full((1, 8, 8), 0.4)),
    "chosen": lambda t: torch.where(t > 0.5, t, torch.zeros(1)),
    "projected": lambda t: t.flatten(1) @ torch.ones(64, 2),
    "cut and joined": lambda t: torch.cat([part * 2 for part in torch.split(t, 40)]),
    "twice": lambda t: torch.cat((t, t)),
    "twice, by keyword": lambda t: torch.cat(tensors=[t, t], axis=0),
    "by numbers that stand apart": lambda t: t[:, torch.tensor([0, 0]), :, torch.tensor([1, 2])],
    "some, by numbers that stand apart": lambda t: t[10:20, torch.tensor([0, 0]), :, torch.tensor([1, 2])],
    "by an array": lambda t: t[np.array([3, 1])],
    "by nothing": lambda t: t[()],
    "none": lambda t: t[[]],
    "under a new axis": lambda t: t[torch.tensor(True)],
    "its type, on the host": lambda t: t.cpu(memory_format=torch.preserve_format),
}
GATHERED: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda t: t.mean(),
    "mean row": lambda t: t.mean(dim=0, keepdim=True),
    "mean by channel": lambda t: torch.std_mean(t, dim=(0, 2, 3), correction=0, keepdim=True)[1],
    "deviation by channel": lambda t: torch.std_mean(t, dim=(0, 2, 3), correction=0, keepdim=True)[0],
    "deviation": lambda t: t.std(),
    "variance": lambda t: t.var(dim=0, unbiased=False),
    "sum": lambda t: t.sum(dim=(0, 1)),
    "sum of a row": lambda t: t.flatten(1).square().sum(dim=1),
    "length of a row": lambda t: torch.linalg.vector_norm(t.flatten(1), dim=1),
    "log of a row's sum": lambda t: t.flatten(1).double().logsumexp(dim=1),
    "largest": lambda t: t.max(),
    "smallest row": lambda t: t.amin(dim=0),
    "counted": lambda t: (t > 0.5).sum(),
    "any": lambda t: (t > 2).any(),
    "all of a row": lambda t: (~t.isnan()).flatten(1).all(dim=1),
    "any of a column": lambda t: (t.flatten(1) > 0.9).any(dim=0),
    "largest row by NumPy's words": lambda t: t.amax(axis=0, keepdims=True),
    "mean row by NumPy's words": lambda t: t.mean(axis=0, keepdims=True),
    "sum of a row by NumPy's words": lambda t: t.flatten(1).sum(axis=1, keepdims=True),
    "sum along no axis": lambda t: t.sum(dim=[]),
    "counted in 32 bits": lambda t: (t > 0.5).sum(dtype=torch.int32),
    "counted as a number": lambda t: (t > 0.5).sum(dtype=torch.float32),
    "any byte": lambda t: (t * 255).to(torch.uint8).any(),
    "length of a row by order": lambda t: torch.linalg.vector_norm(t.flatten(1), 3, dim=1),
}


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_what_works_row_by_row_gives_the_same_bits(name: str) -> None:
    found, expected = ROW_BY_ROW[name](rows(WHOLE)), ROW_BY_ROW[name](PLAIN)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", GATHERED)
def test_what_is_gathered_needs_no_more_than_a_block(name: str) -> None:
    found, expected = GATHERED[name](rows(WHOLE // 90)), GATHERED[name](PLAIN)
    assert type(found) is Tensor
    assert found.dtype == expected.dtype
    assert torch.allclose(found, expected)


@pytest.mark.parametrize(
    "work",
    [
        nn.Conv2d(1, 2, 3),
        nn.Flatten(),
        lambda t: torch.stack([t, t]),
        Tensor.clone,
        lambda t: torch.linalg.vector_norm(t, 1),
        lambda t: torch.where(t > 0.5)[3],
        lambda t: t.any(dim=[]),
    ],
)
def test_anything_else_gets_all_rows_where_they_fit(work: Callable[[Tensor], Tensor]) -> None:
    assert torch.equal(work(rows(WHOLE)), work(PLAIN))


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda t: t[1.0], id="number that is not whole"),
        pytest.param(lambda t: t[torch.tensor([1.5])], id="numbers that are not whole"),
        pytest.param(lambda t: t[torch.ones(89, dtype=torch.bool)], id="short mask"),
        pytest.param(lambda t: rows_at(t, torch.ones(89, dtype=torch.bool)), id="short mask of rows"),
        pytest.param(lambda t: t.mean(4), id="axis"),
        pytest.param(lambda t: t.reshape(90, 65), id="shape"),
        pytest.param(lambda t: t.split([40, 40]), id="parts"),
        pytest.param(lambda t: t.split(0), id="parts of nothing"),
    ],
)
def test_what_a_tensor_refuses_they_refuse_by_the_same_error(work: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises((IndexError, RuntimeError)) as expected:
        work(PLAIN)
    with pytest.raises(expected.type):
        work(rows(1000))


@pytest.mark.parametrize("other", [None, "rows"])
def test_they_equal_nothing_but_numbers(other: object) -> None:
    assert (rows(1000) == other, rows(1000) != other) == (False, True)
    assert not torch.equal(input=rows(WHOLE), other=PLAIN + 1)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda t, other: t.flatten(1) - other[0], id="less a row"),
        pytest.param(lambda t, other: t.flatten(1) * other[:1], id="times a row"),
        pytest.param(lambda t, other: t.flatten(1) + other, id="with a row each"),
        pytest.param(lambda t, other: t.flatten(1) @ other[:64], id="product"),
        pytest.param(lambda t, other: torch.cat((t.flatten(1), other)), id="joined"),
    ],
)
def test_a_tensor_that_is_written_to_before_they_are_read_is_an_error(use: Callable[[Tensor, Tensor], Tensor]) -> None:
    other = torch.ones(90, 64)
    made = use(rows(WHOLE), other)
    assert torch.equal(made, use(PLAIN, other))
    other.zero_()
    with pytest.raises(RuntimeError, match="was written to before they were read"):
        made.sum()


def test_all_rows_at_once_are_refused_with_what_would_be_needed() -> None:
    with pytest.raises(TooLargeError, match=r"shape \(90, 1, 8, 8\) .* allow --memory 8\.59e-05") as refused:
        torch.fft.fft(rows(1000))
    assert isinstance(refused.value, MemoryError)  # a record calls it so


@pytest.mark.parametrize("bytes_", [1, 1001, 92160, 33_123_456_789, 10**13 + 1])
def test_the_memory_that_is_named_suffices(bytes_: int) -> None:
    with pytest.raises(TooLargeError) as refused:
        Budget(0).check((1,), bytes_)
    named = float(str(refused.value).rpartition(" ")[2])
    Budget(int(named * 2**30)).check((1,), bytes_)
    assert named < 1.02 * (4 * bytes_ + 4) / 2**30


@pytest.mark.parametrize(
    "write", [lambda t: t.mul_(2), lambda t: t.__setitem__(0, 1.0), lambda t: torch.add(t, 1, out=t), Tensor.zero_]
)
def test_nobody_can_write_into_them(write: Callable[[Tensor], object]) -> None:
    with pytest.raises(TypeError, match="cannot be written to"):
        write(rows())
    assert torch.equal(rows(WHOLE), PLAIN)


def test_they_are_a_tensor_that_says_what_it_is_without_being_read() -> None:
    def read(index: Tensor) -> Tensor:
        raise AssertionError("no numbers were wanted")

    lazy = Rows(read, (5, 2), dtype=torch.float32, device=torch.device("cpu"), budget=Budget(1))
    assert isinstance(lazy, Tensor)
    assert (tuple(lazy.shape), lazy.ndim, len(lazy), lazy.numel()) == ((5, 2), 2, 5, 10)
    assert (lazy.dtype, lazy.device.type, lazy.to("cpu"), lazy.detach()) == (torch.float32, "cpu", lazy, lazy)
    assert repr(lazy) == "Rows(shape=(5, 2), dtype=torch.float32, device=cpu)"
    assert f"{lazy}" == repr(lazy)
    assert lazy.new_zeros(3).tolist() == [0.0, 0.0, 0.0]
    assert copy.deepcopy(lazy) is lazy


def test_a_number_beyond_the_rows_is_an_error() -> None:
    with pytest.raises(IndexError, match=r"within 90 rows, got 90\.\.90"):
        rows()[torch.tensor([90])]


def test_taken_rows_are_read_from_where_they_lie() -> None:
    order = torch.arange(89, -1, -1)
    turned = rows_at(rows_at(rows(), order), torch.arange(0, 90, 3))
    assert isinstance(turned, Rows)
    assert turned.stored is not None
    assert torch.equal(turned, PLAIN.flip(0)[::3])
    assert torch.equal(rows_at(PLAIN, order), PLAIN.flip(0))


def test_what_is_made_block_by_block_is_what_is_made_at_once() -> None:
    calls: list[int] = []

    def make(part: Tensor) -> Tensor:
        calls.append(len(part))
        return part.repeat(1, 2, 1, 1)

    large, small = by_blocks(rows(), make, 40), by_blocks(PLAIN, make, 40)
    assert calls == [40, 40, 10] * 2
    assert isinstance(large, Rows)
    assert type(small) is Tensor
    assert torch.equal(large[:30], PLAIN.repeat(1, 2, 1, 1)[:30])
    assert torch.equal(small, PLAIN.repeat(1, 2, 1, 1))


def test_blocks_that_do_not_fit_together_are_an_error() -> None:
    for parts, text in (
        ([torch.ones(2, 3), torch.ones(1, 2)], "of shape (3, 3) together"),
        ([torch.ones(2, 3), torch.ones(2, 3)], "of shape (3, 3) together"),
        ([torch.ones(2, 3)], "must be 3 rows together, got 2"),
    ):
        with pytest.raises(ValueError, match=text.replace("(", r"\(").replace(")", r"\)")):
            kept(iter(parts), 3, None)


def test_kinds_that_numpy_lacks_are_kept_to_the_bit() -> None:
    def make(part: Tensor) -> Tensor:
        return part.bfloat16()

    found = by_blocks(rows(WHOLE), make, 40)
    assert isinstance(found, Rows)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found[:], PLAIN.bfloat16())


@pytest.mark.parametrize("size", [0, -1])
def test_a_block_has_a_row_at_least(size: int) -> None:
    with pytest.raises(ValueError, match=f"size must be at least 1, got {size}"):
        by_blocks(PLAIN, Tensor.clone, size)
    with pytest.raises(ValueError, match=f"count must be at least 1, got {size}"):
        by_even_blocks(PLAIN, Tensor.clone, size)


def test_blocks_are_as_large_as_fits() -> None:
    assert [len(part) for _, part in in_blocks(rows(), 40)] == [len(part) for _, part in in_blocks(rows())]
    assert [place for place, _ in in_blocks(PLAIN, 40)] == [slice(0, 40), slice(40, 80), slice(80, 90)]
    assert [len(part) for _, part in in_blocks(PLAIN)] == [90]


def test_rows_are_computed_a_few_at_a_time_but_multiplied_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "CACHED", 10 * 64 * 8)  # ten rows in float64
    sizes: list[int] = []

    def noted(part: Tensor) -> Tensor:
        sizes.append(len(part))
        return part * 2

    doubled = rows(40 * WHOLE).flatten(1).double().map(noted)
    assert torch.equal(doubled.whole(), PLAIN.flatten(1).double() * 2)
    assert max(sizes) == 10
    sizes.clear()
    narrow = doubled[:, :3]  # as wide on the way
    assert torch.equal(narrow.whole(), PLAIN.flatten(1)[:, :3].double() * 2)
    assert max(sizes) == 10
    products: list[int] = []
    made = (doubled @ torch.ones(64, 2, dtype=torch.float64)).map(lambda part: products.append(len(part)) or part)
    products.clear()
    assert torch.equal(made.whole(), PLAIN.flatten(1).double() * 2 @ torch.ones(64, 2, dtype=torch.float64))
    assert products == [90]


def test_a_block_holds_as_many_rows_as_fit_at_their_widest() -> None:
    narrow = rows(WHOLE).flatten(1).double()[:, :1]
    fitting = narrow.budget.block // (64 * 8)
    assert max(len(part) for _, part in in_blocks(narrow)) == min(90, max(1, fitting))


def test_an_ordinary_tensor_takes_the_kind_of_rows() -> None:
    assert torch.ones(2, dtype=torch.float64).to(rows()).dtype == torch.float32
