"""Equal rows are found by their digests as by themselves."""

from __future__ import annotations

import pytest
import torch

from bench.leak_search import search
from bench.leak_search.search import groups


@pytest.mark.parametrize("named", [False, True])
def test_large_rows_fall_into_the_same_groups_by_their_digests(monkeypatch: pytest.MonkeyPatch, *, named: bool) -> None:
    rows = torch.randn(700, 2, 3, generator=torch.Generator().manual_seed(0))
    rows[500:] = rows[:200]
    rows[0, 0, 0], rows[500, 0, 0] = 0.0, -0.0  # equal, but not to the last bit
    subjects = torch.arange(700) // 2 if named else None
    whole = groups(rows, subjects)
    monkeypatch.setattr(search, "COMPARED", 0)
    told = groups(rows, subjects)
    assert (
        len(torch.unique(told)) == len(torch.unique(whole)) == len(torch.unique(torch.stack((told, whole)), dim=1)[0])
    )
    assert len(torch.unique(torch.stack((told, whole), dim=1), dim=0)) == len(torch.unique(whole))
