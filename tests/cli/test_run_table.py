"""The table that `bench run` prints: every metric that was asked for, in its own words, at any width."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from made.board_records import auc, dataset, guesswork, metric, metrics, record, score
from rich.console import Console

from bench.api.boards import board
from bench.cli import figure_tables, main
from bench.cli.figure_tables import interim
from bench.results.records import Record
from bench.results.results import Results
from bench.workbench.place import Place

WIDTH = 70


def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *records: Record) -> str:
    text = io.StringIO()
    monkeypatch.setattr(
        figure_tables, "to_stdout", lambda: Console(file=text, width=WIDTH, highlight=False, markup=False)
    )
    figure_tables.print_board(board(records, Place(Results(tmp_path), tmp_path, ())))
    return text.getvalue()


def test_every_metric_that_was_asked_for_is_shown_within_the_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {"guesswork": guesswork(2), "reid-auc": auc(0.9), "patient-reid-auc": auc(0.9), "top-1": auc(0.8)}
    mine = {f"mine-{number}": score(1.0) for number in range(9)}
    described = {name: metric(f"Figure {name}", digits=2) for name in mine} | metrics(*scores)
    text = printed(tmp_path, monkeypatch, record(scores={**scores, **mine}, metrics=described))
    assert [title for title in (one.title for one in described.values()) if title not in text] == []
    assert "1.00" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_metrics_that_apply_to_no_row_are_named_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = record(scores={"guesswork": guesswork(2)}, not_applicable={"patient-guesswork": "no subjects"})
    text = " ".join(printed(tmp_path, monkeypatch, made).split())
    assert "Not applicable to any of these (the records say why): Patient guesswork." in text


def test_a_place_that_nobody_asked_for_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = record("a", scores={"guesswork": guesswork(2)}, metrics=metrics("guesswork"))
    other = record("b", scores={"reid-auc": auc(0.9)}, metrics=metrics("reid-auc"))
    text = printed(tmp_path, monkeypatch, asked, other)
    assert [len(re.findall(rf"{place}\s*│", text)) for place in ("2.00", "0.900", "not run")] == [1, 1, 2]


def test_sizes_of_a_data_set_have_tables_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = dataset(fingerprint="large", shape=[1, 128, 128])
    made = [
        record("a", scores={"reid-auc": auc(value)}, metrics=metrics("reid-auc"), cell=f"d/a-{value}", dataset=of)
        for value, of in ((0.9, dataset()), (0.8, large))
    ]
    text = " ".join(printed(tmp_path, monkeypatch, *made).split())
    for words, value in (("synth-cxr at 64 pixels", "0.900"), ("synth-cxr at 128 pixels", "0.800")):
        assert re.findall(r"0\.\d00", text[text.index(words) :])[0] == value


def test_seeds_have_tables_of_their_own_and_a_table_by_parameter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        record("blur", scores={"reid-auc": auc(value)}, metrics=metrics("reid-auc"), parameters={"sigma": sigma},
               seed=seed, cell=f"d/blur-{sigma}-{seed}")
        for sigma, seed, value in ((10, 0, 0.6), (2, 0, 0.9), (10, 1, 0.7), (2, 1, 0.8))
    ]  # fmt: skip
    text = printed(tmp_path, monkeypatch, *made)
    assert [text.count(f"seed {seed}") for seed in (0, 1)] == [1, 1]
    by_parameter = text[text.index("blur by parameter") :]
    assert "2 seeds" in by_parameter
    lines = [line for line in by_parameter.splitlines() if re.match(r"│\s+\d", line)]
    assert [re.findall(r"[\d.]+", line) for line in lines] == [
        ["2", "0.850", "0.800", "0.900"],
        ["10", "0.650", "0.600", "0.700"],
    ]


def test_a_table_over_seeds_says_how_many_have_a_figure_and_what_the_others_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure: dict[str, Any] = {"scores": {"reid-auc": auc(0.9)}}
    failure: dict[str, Any] = {"scores": {}, "status": "failed", "phase": "fit", "reason": "no luck"}
    made = [
        record("blur", metrics=metrics("reid-auc"), seed=seed, parameters={"sigma": sigma}, cell=f"d/{sigma}-{seed}",
               **(figure if ok else failure))
        for sigma, seed, ok in ((1, 0, True), (1, 1, True), (1, 2, False), (2, 0, True), (3, 0, False))
    ]  # fmt: skip
    text = printed(tmp_path, monkeypatch, *made)
    lines = [line for line in text[text.index("blur by parameter") :].splitlines() if re.match(r"│\s+\d", line)]
    assert [re.split(r"\s*│\s*", line)[1:3] for line in lines] == [
        ["1", "0.900 (0.900 – 0.900; 2 of 3 seeds: 1 failed)"],
        ["2", "0.900 (1 of 3 seeds: 2 not run)"],
        ["3", "1 failed, 2 not run"],
    ]


def test_rows_of_two_devices_are_neither_averaged_nor_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        record("blur", metrics=metrics("reid-auc"), seed=seed, parameters={"sigma": 1}, cell=f"d/{device}-{seed}",
               device=device, scores={"reid-auc": auc(value)})
        for device, value in (("cpu", 0.9), ("cuda", 0.5)) for seed in (0, 1)
    ]  # fmt: skip
    text = printed(tmp_path, monkeypatch, *made)
    tables = text[text.index("blur over seeds") :].split("blur over seeds")[1:]
    assert [re.findall(r"0\.\d00 \(.*?\)", table) for table in tables] == [
        ["0.900 (0.900 – 0.900)"], ["0.500 (0.500 – 0.500)"],
    ]  # fmt: skip
    assert [", on cuda" in table for table in tables] == [False, True]


def test_figures_so_far_take_a_line_a_method_and_fit_the_console() -> None:
    scores = {"guesswork": guesswork(2), "reid-auc": auc(0.9), "patient-reid-auc": auc(0.9), "top-1": auc(0.8)}
    asked = metrics(*scores)
    made = [
        record(name, scores=scores, metrics=asked, cell=f"d/{name}", parameters={"k": 5}) for name in ("aa", "bb", "cc")
    ]
    made.append(record("dd", scores={}, metrics=metrics(*scores), cell="d/dd"))
    text = io.StringIO()
    console = Console(file=text, width=60, highlight=False)
    console.print(interim(made, console, 3))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert [sum(name in line for line in lines) for name in ("aa", "bb", "cc", "dd")] == [1, 1, 1, 0]
    assert "2.00" in text.getvalue()
    assert "and 1 more" in text.getvalue()
    assert "aa[k=5]" in text.getvalue()  # brackets are no markup


def test_parameters_that_differ_stand_first_so_far() -> None:
    long = {"alpha": "a" * 30, "beta": "b" * 30}
    made = [record("aa", scores={"top-1": auc(0.8)}, cell=f"d/{k}", parameters={**long, "k": k}) for k in (5, 7)]
    text = io.StringIO()
    console = Console(file=text, width=60, highlight=False)
    console.print(interim(made, console, 3))
    assert "aa[k=5," in text.getvalue()
    assert "aa[k=7," in text.getvalue()


def test_rows_under_different_attackers_are_never_averaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        record("blur", scores={"reid-auc": auc(value)}, metrics=metrics("reid-auc"), parameters={"sigma": 2}, eve=eve,
               cell=f"d/blur-{eve}")
        for eve, value in ((None, 0.9), ("other-study", 0.5))
    ]  # fmt: skip
    text = printed(tmp_path, monkeypatch, *made)
    assert "0.900" in text
    assert "0.700" not in text
    assert "over seeds" not in text


def test_other_rows_of_the_folder_are_shown_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "--dataset", "digits", "--preset", "smoke", "--attack", "none", "--metric", "max-dispersion",
             "--no-site", "--results", str(tmp_path / "results"), "--isolation", "none", "--device", "cpu"]  # fmt: skip
    assert main([*words, "--method", "blur"]) == 0
    capsys.readouterr()
    for more, shown in ([], False), (["--show-all"], True):
        assert main([*words, "--method", "mosaic", *more]) == 0
        rows = [line.split("│")[1].strip() for line in capsys.readouterr().out.splitlines() if line.count("│") > 1]
        assert ("blur" in rows, "mosaic" in rows) == (shown, True)
