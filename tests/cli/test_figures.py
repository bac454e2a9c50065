"""`bench table` and `bench plot`: what is drawn, the same bytes each time, and what a folder lacks."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from made.board_records import auc, guesswork, record, score, utility

from bench.cli import main
from bench.pictures import charts
from bench.pictures.charts import Grid, Risk
from bench.results.results import Results

CURVE = {
    "figure": "loss on held-out keys",
    "points": [[0, 5.0], [10, 4.0]],
    "reason": "",
    "converged": True,
    "part": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three rows with utility, two attacks, a learning curve, a ROC curve and risks of people."""
    risk = score(0.6, 0.1, 0.9, null=0.2, null_low=0.2, null_high=0.4, unit="share")
    risk = risk.model_copy(update={"parts": {"median person": score(0.0), "person at 95 %": score(0.2)}})
    roc = score(0.4, 0.3, 0.5, unit="share").model_copy(
        update={"parts": {f"1 false in {one_in}": score(1 / one_in**0.5) for one_in in (2, 10, 1000)}}
    )
    for number, method in enumerate(("identity", "dp-simple", "dauntless")):
        for attack in ("contrastive", "relational"):
            scores = {"reid-auc": auc(0.9 - 0.1 * number), "guesswork": guesswork(3.0 + number), "person-risk": risk,
                      "advantage": roc}  # fmt: skip
            made = record(method, attack, scores, cell=f"synth-cxr/{method}", details={"learning": [CURVE]})
            Results(tmp_path).keep(made, {})
        own = record(method, "utility", {"utility-auc": utility(0.6 + 0.1 * number)}, kind="utility",
                     cell=f"synth-cxr/{method}")  # fmt: skip
        Results(tmp_path).keep(own, {})
        honest = record(method, "honesty", {"broken-promises": score(0.0)}, kind="honesty", cell=f"synth-cxr/{method}")
        Results(tmp_path).keep(honest, {})
    return tmp_path


KINDS = ("trade-off", "curve", "matrix", "person-risk")


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_has_the_same_bytes_each_time_and_no_date(folder: Path, kind: str, ending: str) -> None:
    files = [folder / f"{number}.{ending}" for number in range(2)]
    for file in files:
        assert main(["plot", kind, "--results", str(folder), "--out", str(file)]) == 0
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert not any(word in first for word in (b"CreationDate", b"<dc:date>", b"Matplotlib v"))


def test_the_roc_curve_and_the_ladder_are_drawn(folder: Path) -> None:
    assert main(["plot", "curve", "--of", "roc", "--results", str(folder), "--out", str(folder / "roc.svg")]) == 0
    ladder = ["plot", "ladder", "--dataset", "synth-cxr", "--attack", "relational", "--width", "page"]
    assert main([*ladder, "--results", str(folder), "--out", str(folder / "ladder.svg")]) == 0


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("trade-off --x membership-auc", "no record has a figure called 'membership-auc'"),
        ("trade-off --rows blur", "no record is of 'blur'"),
        ("trade-off --dataset nih", "no record is of the data set 'nih'"),
        ("matrix --attack needle", "no record is of an attack called 'needle'"),
        ("ladder --rows identity", "the ladder has its own rows"),
    ],
)
def test_what_a_folder_lacks_is_said(
    folder: Path, words: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert main(["plot", *words.split(), "--results", str(folder), "--out", str(folder / "no.pdf")]) == 2
    assert remedy in capsys.readouterr().err
    assert not (folder / "no.pdf").exists()


def test_a_folder_without_attacks_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = record("blur", "utility", {"utility-auc": utility(0.7)}, kind="utility", cell="synth-cxr/blur")
    Results(tmp_path).keep(own, {})
    for kind in ("curve", "matrix", "person-risk"):
        assert main(["plot", kind, "--results", str(tmp_path), "--out", str(tmp_path / "no.pdf")]) == 2
        assert "bench run" in capsys.readouterr().err


def test_rows_that_are_not_rated_are_left_out_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for attack, scores, kind in (("contrastive", {"reid-auc": auc(0.9)}, "reidentification"),
                                 ("utility", {"utility-auc": utility(0.7)}, "utility")):  # fmt: skip
        Results(tmp_path).keep(record("blur", attack, scores, kind=kind, cell="synth-cxr/blur"), {})
    assert main(["plot", "trade-off", "--results", str(tmp_path), "--out", str(tmp_path / "no.pdf")]) == 2
    assert "blur: the check of its promises did not run" in capsys.readouterr().err


def test_rows_and_metrics_stand_in_the_order_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--rows", "dauntless", "identity", "--metrics", "guesswork", "utility-auc"]
    assert main(["table", "--results", str(folder), *asked]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert lines[0].startswith("| Method | Guesswork ↑ | Utility AUC ↑ |")
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["dauntless", "identity"]


def test_two_presets_are_two_tables_and_no_chart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = record("identity", "utility", {"utility-auc": utility(0.7)}, kind="utility", cell="synth-cxr/other",
                   preset="standard")  # fmt: skip
    Results(folder).keep(other, {})
    assert main(["table", "--results", str(folder), "--metrics", "utility-auc"]) == 0
    assert capsys.readouterr().out.count("| Method |") == 2
    assert main(["plot", "trade-off", "--results", str(folder), "--out", str(folder / "no.pdf")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert sorted(lines[-2:]) == ["  --preset quick", "  --preset standard"]


def test_data_of_one_name_are_chosen_by_the_options_that_the_refusal_prints(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = {"utility-auc": utility(0.7), "reid-auc": auc(0.7)}
    for splits in ("official", "own"):
        own = record("identity", "utility", scores, kind="utility", splits=splits, seed=1,
                     cell=f"synth-cxr/{splits}")  # fmt: skip
        Results(folder).keep(own, {})
    plot = ["plot", "trade-off", "--results", str(folder), "--out", str(folder / "a.svg")]
    assert main(plot) == 2
    choices = [line for line in capsys.readouterr().err.splitlines() if line.startswith("  --")]
    assert len(set(choices)) == 3
    for choice in choices:
        assert main(["table", "--results", str(folder), *shlex.split(choice)]) == 0
        assert capsys.readouterr().out.count("| Method |") == 1
    assert main(["table", "--results", str(folder), "--dataset", "synth-cxr · none"]) == 2
    assert "no record is of the data set 'synth-cxr · none'" in capsys.readouterr().err


def test_the_choices_of_a_chart_are_at_most_ten_lines_of_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(12):
        own = record("identity", "utility", {"utility-auc": utility(0.7)}, kind="utility", seed=seed,
                     cell=f"synth-cxr/identity-{seed}")  # fmt: skip
        Results(tmp_path).keep(own, {})
    assert main(["plot", "trade-off", "--results", str(tmp_path), "--out", str(tmp_path / "no.pdf")]) == 2
    first, *lines = [line for line in capsys.readouterr().err.splitlines() if "read the records" not in line]
    assert first.endswith("choose one of")
    assert lines == [*(f"  --seed {seed}" for seed in range(10)), "  … and 2 more"]


def test_a_chart_of_chosen_attacks_shows_the_strongest_of_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    seen: list[tuple[Sequence[Risk], str]] = []

    def drawn(rows: Sequence[Risk], title: str, **more: object) -> bytes:
        seen.append((rows, title))
        return b""

    monkeypatch.setattr(charts, "person_risk", drawn)
    for attack, value in (("moments", 0.3), ("needle", 0.8), ("surrogate", 0.95)):
        risk = score(value, value - 0.1, 1.0, null=0.2, null_low=0.2, null_high=0.4, unit="share")
        Results(folder).keep(record("identity", attack, {"person-risk": risk}, cell="synth-cxr/identity"), {})
    words = ["plot", "person-risk", "--results", str(folder), "--out", str(folder / "a.svg"), "--rows", "identity"]
    assert main([*words, "--attack", "moments", "--attack", "needle"]) == 0
    ((row,), title) = seen[0]
    assert (row.worst.value, "strongest attack of those chosen" in title) == (0.8, True)


def test_a_matrix_marks_figures_that_are_not_rated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Grid, str]] = []

    def drawn(table: Grid, title: str, **more: object) -> bytes:
        seen.append((table, title))
        return b""

    monkeypatch.setattr(charts, "grid", drawn)
    Results(tmp_path).keep(record("blur", "contrastive", {"reid-auc": auc(0.9)}, cell="synth-cxr/blur"), {})
    assert main(["plot", "matrix", "--results", str(tmp_path), "--out", str(tmp_path / "a.svg")]) == 0
    table, title = seen[0]
    assert table.texts[0][0].startswith("[0.90]")
    assert "[ ] not rated" in title


def test_a_latex_table_compiles(folder: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: no table was compiled")
    assert main(["table", "--results", str(folder), "--format", "latex", "--out", str(folder / "rows.tex")]) == 0
    packages = r"\usepackage{booktabs}\usepackage[T1]{fontenc}\usepackage{textcomp}"
    paper = rf"\documentclass{{article}}{packages}\begin{{document}}\input{{rows}}\end{{document}}"
    (folder / "paper.tex").write_text(paper, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "paper.pdf").stat().st_size > 0


def test_a_grid_without_room_for_intervals_is_drawn_without_them() -> None:
    names = [f"attack-{number}" for number in range(20)]
    cells = [["1.0"] * 20] * 2
    scale = charts.Scale("guesses", log=True)
    table = Grid(["a", "b"], names, [[1.0] * 20] * 2, cells, [["1.0 – 10,000"] * 20] * 2, scale, (600.0, 1.0))
    assert charts.grid(table, "a ladder", width="column", form="png").startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["574", "1036 ◐", "1.0 ✕", "n/a", "–", "[0.90]†"])
def test_figures_of_a_narrow_grid_do_not_touch_their_neighbours(text: str) -> None:
    size = charts._size_within(text, 0.11)
    assert charts._inches(text, size) < 0.1
    assert charts._size_within(text, 10.0) == charts.SMALL


def test_long_names_are_broken_into_as_few_lines_as_fit() -> None:
    name = "syfer[batch=128,blocks=5,cuda_compile=true,depth=5,learning_rate=0.0003,opponent_width=256,steps=50000]"
    (broken,) = charts._fitted([name], charts.SMALL, 2.0)
    lines = broken.splitlines()
    assert broken.replace("\n", "") == name
    assert 3 <= len(lines) <= 6
    assert all(charts._inches(line, charts.SMALL) <= 2.0 for line in lines)
    assert all(charts._inches(line + after.split(",")[0], charts.SMALL) > 2.0 for line, after in pairwise(lines[1:]))
