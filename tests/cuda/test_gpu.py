"""Every plug-in, and figures beside the CPU's, on the GPU of this machine; without one the lane is skipped."""

from __future__ import annotations

import pytest
import torch
from made import device_figures
from made.board_records import score
from made.device_figures import COMPUTING, METHODS, PLANS, Compared, compared, needs_more

from bench.conformance import conform
from bench.plugins import registry
from bench.plugins.groups import Group

CPU = torch.device("cpu")
ALL = [(group, name) for group in COMPUTING for name in sorted(registry.own(group))]
on_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: torch finds none on this machine"),
]


@pytest.mark.parametrize(("group", "name"), [pytest.param(*one, marks=on_gpu) for one in ALL])
def test_a_plugin_holds_its_contract_on_the_gpu(group: Group, name: str) -> None:
    if why := needs_more(group, name):
        pytest.skip(why)
    found = conform(group, name, torch.device("cuda"))
    assert [f"{each.check}: {each.detail}" for each in found if each.status == "failed"] == []
    assert any(each.status == "passed" for each in found)


@pytest.mark.parametrize("method", [pytest.param(name, marks=on_gpu) for name in METHODS])
def test_figures_on_the_gpu_are_those_of_the_cpu(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_figures, "METHODS", (method,))
    found = list(compared(torch.device("cuda")))
    assert {each.plan for each in found} <= set(PLANS)
    assert [f"{each.plan} {each.metric}: {each.error or each.pairs}" for each in found if each.apart] == []


@pytest.mark.parametrize(
    ("here", "there", "apart"),
    [
        ((0.5, 0.4, 0.6), (0.55, 0.45, 0.65), False),
        ((0.5, 0.4, 0.6), (0.7, 0.65, 0.75), True),
        ((0.5, 0.4, 0.6), (0.59, 0.588, 0.592), False),  # the narrow interval misses the wide figure, not the reverse
        ((1.0, None, None), (1.0, None, None), False),
        ((1.0, None, None), (1.1, None, None), True),
    ],
)
def test_figures_are_apart_where_each_lies_outside_the_others_interval(here, there, apart) -> None:
    cpu, other = (score(value, low=low, high=high) for value, low, high in (here, there))
    assert Compared("m", "p", "f", ((cpu, other),), (1.0, 1.0)).apart is apart


@pytest.mark.parametrize(
    ("moves", "apart"), [((0.3, 0.3, 0.3), True), ((0.3, 0.3, -0.3), False), ((0.3, 0, 0.3), False)]
)
def test_trainings_end_apart_by_chance_and_not_on_one_side_under_every_seed(moves, apart) -> None:
    pairs = tuple((score(0.5, low=0.4, high=0.6), score(0.5 + m, low=0.4 + m, high=0.6 + m)) for m in moves)
    assert Compared("m", "p", "f", pairs, (1.0, 1.0)).apart is apart


def test_what_fails_on_the_device_is_a_finding_whatever_the_figures() -> None:
    assert Compared("m", "p", "f", ((score(1.0), None),), (1.0, 0.0), "cuda: RuntimeError: no kernel").apart


def test_the_same_cell_gives_the_same_figure_twice_on_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_figures, "METHODS", ("noise",))
    monkeypatch.setattr(device_figures, "PLANS", {"nearest-neighbour": device_figures.PLANS["nearest-neighbour"]})
    found = list(compared(CPU))
    assert [each.metric for each in found] == ["guesswork", "reid-auc"]
    assert all(here == there is not None and not each.error for each in found for here, there in each.pairs)
