from __future__ import annotations

import pytest
import torch
from made.leaky_mechanisms import Leaky, Mistake

from bench.audit.game_plays import Owner, usual
from bench.audit.trigger_search import Found, search
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset

PUBLIC = Dataset("", torch.rand(40, 1, 8, 8, generator=generator(2)), None, None, (), False, True)


def found(mistake: Mistake, *, seed: int = 0, trials: int = 2000, sizes: bool = True) -> Found:
    owner = Owner(Leaky(mistake, "image").fit(PUBLIC, 0), Secret.of_seed(seed))
    return search(owner, usual(PUBLIC), PUBLIC, trials=trials, rows=True, sizes=sizes)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_stands_out_of_sound_noise(seed: int) -> None:
    result = found("none", seed=seed)
    assert len(result.rows) == len(result.sizes) == 0
    assert result.budget == "up to 1,000 inputs and releases of 1 to 128 rows, each under two keys"


def test_inputs_that_no_list_holds_are_found() -> None:
    band = found("raw in a narrow band", sizes=False)
    assert ((band.rows.flatten(1).mean(dim=1) - 0.613).abs() < 0.004).all()
    assert len(band.rows) == 2
    pixel = found("raw by one pixel", sizes=False).rows
    assert len(pixel)
    assert (pixel[:, 0, -1, 1] > 0.9).all()
    assert (pixel.flatten(1).mean(dim=1) < 0.3).all()


def test_a_number_of_rows_that_no_list_holds_is_found() -> None:
    assert found("raw in releases of 37").sizes == (37,)
    assert found("raw in releases of 37", sizes=False).sizes == ()


def test_few_trials_search_nothing() -> None:
    result = found("raw in a narrow band", trials=40)
    assert result.budget == "nothing"
    assert len(result.rows) == 0


def test_a_search_releases_no_more_numbers_than_it_may() -> None:
    large = Dataset("", torch.rand(4, 1, 256, 256, generator=generator(2)), None, None, (), False, True)
    owner = Owner(Leaky("none", "image").fit(large, 0), Secret.of_seed(0))
    assert search(owner, usual(large), large, trials=10**6, rows=True, sizes=True).budget == "nothing"
