import torch
from scipy.special import logsumexp

from bench.eve import kernel_density
from bench.eve.kernel_density import log_density
from bench.rows.grouping import class_groups

NAN = float("nan")


def test_densities_are_those_of_the_definition(monkeypatch):
    source = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, 4, generator=source, dtype=torch.float64) for n in (9, 7))
    squares = (x[:, None] - y[None]).square().sum(dim=2)
    expected = [torch.from_numpy(logsumexp(-squares / (2 * h * h), axis=1, b=1 / 7)) for h in (0.01, 0.5, 20.0)]
    for pairs in (2**22, 5):  # in one block, and row by row
        monkeypatch.setattr(kernel_density, "PAIRS", pairs)
        found = log_density(x, y, [0.01, 0.5, 20.0])
        assert torch.allclose(found.T, torch.stack(expected), atol=1e-9)


def test_copies_lie_at_the_top():
    x = torch.full((2, 3), 5.0, dtype=torch.float64)
    assert torch.allclose(log_density(x, x, [1e-3]), torch.zeros(2, 1, dtype=torch.float64))


def test_rows_are_compared_within_their_class_and_all_where_it_is_not_released():
    own, released = torch.tensor([[1.0], [NAN], [0.0], [1.0]]), torch.tensor([[NAN], [1.0], [1.0]])
    groups = {tuple(rows.tolist()): theirs.tolist() for rows, theirs in class_groups(own, released, 4, 3)}
    assert groups == {(0, 3): [1, 2], (1,): [0], (2,): [0, 1, 2]}


def test_rows_that_share_no_labels_are_compared_with_all():
    for released in (None, torch.zeros(3, 2)):
        ((rows, theirs),) = class_groups(torch.zeros(2, 1), released, 2, 3)
        assert (rows.tolist(), theirs.tolist()) == ([0, 1], [0, 1, 2])
