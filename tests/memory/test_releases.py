"""A release of rows on disk is that of the same rows in memory, to the bit, though they never fit at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.plugins import registry
from bench.plugins.spec import parse
from bench.randomness import Secret
from bench.types import Dataset, Method

N, SIDE = 600, 32
FITTING = 280  # rows in float64 that a job may bring together: fewer than all of them in float32
BYTES = np.random.default_rng(0).integers(0, 256, (N, 1, SIDE, SIDE), dtype=np.uint8)
METHODS = (
    "cadp",
    "cadp[variant=official-code,batch=64]",
    "known-leak[keeps=scalar]",
    "known-leak[keeps=noisy-scalar]",
    "known-leak[keeps=length]",
    "known-leak[keeps=group]",
    "known-leak[keeps=nothing]",
    "mosaic",
    "mosaic[epsilon=3]",
    "instahide",
)


def images(*, on_disk: bool) -> Dataset:
    budget = Budget(4 * FITTING * SIDE * SIDE * 8)
    plain = torch.from_numpy(BYTES.astype(np.float32) / 255)
    labels = torch.arange(N).remainder(2).float()[:, None]
    samples = Rows.of(BYTES, budget, divisor=255.0) if on_disk else plain
    return Dataset("made", samples, labels, None, ("a",), False, True)


def released(method: str, number: int) -> tuple[Dataset, Dataset]:
    """The release under a key of that number, of rows in memory and of rows on disk; as data sets."""
    built = registry.build("methods", parse(method), "smoke")
    assert isinstance(built, Method)
    whole, large = images(on_disk=False), images(on_disk=True)
    key = built.fit(whole.take(torch.arange(64)), 0).sample_key(Secret.of_seed(number))
    made = [key.release(data) for data in (whole, large)]
    a, b = (Dataset("made", each.samples, each.labels, None, ("a",), False, True) for each in made)
    return a, b


def same(a: Dataset, b: Dataset) -> None:
    assert isinstance(b.samples, Rows)
    assert torch.equal(a.samples, b.samples)
    assert (a.labels is None) == (b.labels is None)
    assert a.labels is None or (b.labels is not None and torch.equal(a.labels, b.labels))


@pytest.mark.parametrize("method", METHODS)
def test_rows_on_disk_are_released_by_blocks_to_the_same_bits(method: str) -> None:
    same(*released(method, 0))


def test_every_way_of_a_hidden_control_works_by_blocks() -> None:
    from methods.hidden_control import WAYS, HiddenControlKey

    scheme = registry.build("methods", parse("hidden-control"), "smoke")
    assert isinstance(scheme, Method)
    seen: dict[str, int] = {}
    fitted = scheme.fit(images(on_disk=False), 0)
    for number in range(20):
        key = fitted.sample_key(Secret.of_seed(number))
        assert isinstance(key, HiddenControlKey)
        seen.setdefault(key.way, number)
    assert set(seen) == set(WAYS)
    for number in seen.values():
        a, b = released("hidden-control", number)
        assert torch.equal(a.samples, b.samples)


def test_a_shuffled_column_holds_what_it_held() -> None:
    from methods.hidden_control import _shuffled

    rows = images(on_disk=False).samples
    found = _shuffled(rows, lambda: Secret.of_seed(1).stream())
    assert torch.equal(found.sort(dim=0).values, rows.sort(dim=0).values)
    order = Secret.of_seed(1).stream().uniform(N, SIDE * SIDE).argsort(dim=0)  # as if all at once
    assert torch.equal(found.flatten(1), rows.flatten(1).gather(0, order))
