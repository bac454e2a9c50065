"""The parts of `bench gpu-check`, dry-run on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from made.board_records import score

from bench.cli import main
from bench.cli.commands import gpu_check
from bench.cli.gpu import conformance, figures, rates
from bench.cli.gpu.conformance import Conformed
from bench.cli.gpu.figures import Compared
from bench.cli.gpu.rates import Rate

CPU = torch.device("cpu")


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
    monkeypatch.setattr(figures, "METHODS", ("noise",))
    monkeypatch.setattr(figures, "PLANS", {"nearest-neighbour": figures.PLANS["nearest-neighbour"]})
    found = list(figures.compared(CPU))
    assert [each.metric for each in found] == ["guesswork", "reid-auc"]
    assert all(here == there is not None and not each.error for each in found for here, there in each.pairs)


def test_rates_cover_methods_and_name_what_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "ROWS", {"cpu": 16})
    monkeypatch.setattr(rates.registry, "own", lambda group: ["identity", "blur"])
    found = {rate.method.partition("[")[0]: rate for rate in rates.rates(CPU)}
    assert found["identity"].other > found["blur"].other > 0
    monkeypatch.setattr(rates, "_timed", lambda scheme, device: 1 / 0)
    assert [rate.error for rate in rates.rates(CPU)] == ["ZeroDivisionError: division by zero"] * 2


def test_plugins_that_need_more_than_a_name_are_said_not_to_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    names: Mapping[str, list[str]] = {"features": ["pixels", "timm"]}
    monkeypatch.setattr(conformance.registry, "own", lambda group: names.get(group, []))
    pixels, timm = conformance.conformed(CPU)
    assert (pixels.passed > 0, pixels.failed, pixels.why_not) == (True, (), "")
    assert (timm.passed, timm.failed) == (0, ())
    assert "model" in timm.why_not


def test_findings_are_counted_and_the_table_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def once(made: object) -> object:
        def given(device: torch.device) -> Iterator[object]:
            yield made

        return given

    monkeypatch.setattr(gpu_check, "yardstick", lambda device: 100.0)
    monkeypatch.setattr(gpu_check, "rates", once(Rate("blur[a|b]", 0.1, 10.0, 50.0, 2.0, 3)))
    monkeypatch.setattr(
        gpu_check, "compared", once(Compared("m", "p", "f", ((score(1.0), None),), (1.0, 0.0), "cuda: why"))
    )
    monkeypatch.setattr(
        gpu_check, "conformed", once(Conformed("methods", "bad", 3, ("same seed, same bits: no",), 1.0))
    )
    out = tmp_path / "table.md"
    assert main(["gpu-check", "--device", "cpu", "--out", str(out)]) == 1
    text = out.read_text()
    assert text.strip() == capsys.readouterr().out.strip()
    assert "| blur[a\\|b] | 0.10 | 10 | 50 | 0.50 | 2.0 | 3 |" in text
    assert "**bad** (methods): same seed, same bits: no" in text
    assert "2 findings" in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-check"]) == 2
    assert "finds no CUDA device" in capsys.readouterr().err
