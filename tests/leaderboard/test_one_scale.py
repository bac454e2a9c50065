from __future__ import annotations

from pathlib import Path

import pytest
from made.board_records import auc, dataset, keyed, plugin, record, score

from bench.cli import main
from bench.results.records import Record
from bench.results.results import Results
from leaderboard.board import rows
from leaderboard.one_scale import Bar, scales
from leaderboard.site import build

DCR = plugin("dcr", {})
OTHER = dataset("synth-cxr under other-study", fingerprint="other")


def records(method: str = "a") -> list[Record]:
    """A method under two profiles, with members and attributes."""
    told = score(0.3, 0.2, 0.4, null=0.0)
    return [
        record(method, "nearest-neighbour", {"reid-auc": auc(0.9)}),
        record(
            method, "nearest-neighbour", {"reid-auc": auc(0.9), "patient-reid-auc": auc(0.7)}, dataset=OTHER,
            eve="other-study",
        ),
        record(method, "membership-dcr", {"membership-auc": auc(0.6)}, kind="membership", attack=DCR),
        record(method, "attributes", {"attribute-advantage": told}, kind="attributes"),
    ]  # fmt: skip


def bars(found: list[Record]) -> dict[str, Bar]:
    (scale,) = scales(rows(found))
    assert scale.dataset == "synth-cxr"
    return {bar.threat: bar for bar in scale.bars}


def test_unlike_figures_stand_as_gains_over_a_guess() -> None:
    found = bars(records())
    values = {name: bar.value for name, bar in found.items()}
    assert values == {
        "identity, from the released image": pytest.approx(0.8),
        "identity, from another image": pytest.approx(0.4),
        "membership": pytest.approx(0.2),
        "attributes": pytest.approx(0.3),
        "reconstruction": None,
    }
    assert found["membership"].low == pytest.approx(0.16)
    assert found["membership"].high == pytest.approx(0.24)
    assert found["reconstruction"].reason == "not measured"
    assert "promises did not run" in found["identity, from another image"].reason


def test_sizes_of_images_stand_on_scales_of_their_own() -> None:
    large = dataset(fingerprint="large", shape=[1, 128, 128])
    found = scales(rows([*records(), *(each.model_copy(update={"dataset": large, "cell": "large"})
                                       for each in records() if each.dataset.name == "synth-cxr")]))  # fmt: skip
    height = dataset().shape[1]
    assert [scale.dataset for scale in found] == [f"synth-cxr at {height} pixels", "synth-cxr at 128 pixels"]


def test_a_row_that_never_read_its_data_is_of_no_other_size() -> None:
    broken = record("a", "utility", dataset=None, status="failed", reason="file missing", cell="x")
    assert [scale.dataset for scale in scales(rows([*records(), broken], {"x": "synth-cxr"}))] == ["synth-cxr"]


def test_likeness_is_gained_beyond_the_mean_image() -> None:
    figure = score(0.3, 0.2, 0.4).model_copy(update={"parts": {"SSIM of the mean image": score(0.4)}})
    found = [*records(), record("a", "reconstruction", {"reconstruction-ssim": figure}, kind="reconstruction")]
    assert bars(found)["reconstruction"].value == pytest.approx(0.5)  # of the .6 that is left


def test_worse_than_a_guess_is_below_zero() -> None:
    found = records()
    found[2] = record("a", "membership-dcr", {"membership-auc": auc(0.45)}, kind="membership", attack=DCR)
    assert bars(found)["membership"].value == pytest.approx(-0.1)


def test_one_figure_makes_no_scale() -> None:
    assert scales(rows(records()[:1])) == []


def test_compare_and_pages_show_the_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for method in ("a", "b"):
        for number, made in enumerate(records(method)):
            cell = "synth-cxr/" if number != 1 else "other/"
            Results(tmp_path).keep(keyed(made, cell=f"{cell}{method}"), {})
    assert main(["compare", "a", "b", "--results", str(tmp_path)]) == 1  # made without replicates
    printed = capsys.readouterr().out
    assert "Gains over a guess: synth-cxr" in printed
    assert "████████" in printed
    build(Results(tmp_path), tmp_path / "site")
    page = next((tmp_path / "site").rglob("methods/a*.html")).read_text()
    assert "on one scale" in page
    assert page.count('class="gain') == 4


def test_the_usual_eve_counts_first() -> None:
    under = record(
        "a", "attributes", {"attribute-advantage": score(0.9, 0.8, 0.95, null=0.0)}, kind="attributes", dataset=OTHER,
        eve="other-study",
    )  # fmt: skip
    assert bars([under, *records()])["attributes"].value == pytest.approx(0.3)
