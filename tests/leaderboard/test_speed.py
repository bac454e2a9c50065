"""Throughput is compared within a device and with a yardstick, and never across devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made.board_records import dataset, record, score

from bench.results.records import Record
from bench.results.results import Results
from leaderboard.board import relative_speed
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.site import build
from leaderboard.speed import SpeedTable, _table, speed_tables

Write = Callable[..., Results]
H200 = {"device": "cuda", "accelerator": "NVIDIA H200", "driver": "580", "power_limit_w": "700.00"}
EPYC = {"device": "cpu", "processor": "AMD EPYC", "threads": 1}


def timed(method: str, rate: float, *, hardware: dict[str, Any] = EPYC, **details: Any) -> Record:
    usual = {"resnet18_images_per_second": 100.0}
    return record(
        method, "throughput", {"throughput": score(rate, rate * 0.95, rate * 1.05, better="higher")}, kind="throughput",
        hardware=hardware, device=hardware["device"], details=usual | details, cell=f"{method}-{hardware['device']}",
    )  # fmt: skip


def tables(*records: Record) -> list[SpeedTable]:
    return speed_tables(Edition.of(Intake(records, {})))


def test_rates_of_two_devices_are_never_in_one_table() -> None:
    card, processor = tables(
        timed("blur", 50), timed("mosaic", 80),
        timed("blur", 5000, hardware=H200, images_per_second_by_rows={"1": 10.0, "2048": 9000.0}),
    )  # fmt: skip
    assert card.device == "NVIDIA H200"
    assert card.settings == "Driver 580, power limit 700.00 W, torch 2.11"
    assert [(speed.row.plugin, speed.rank) for speed in card.speeds] == [("blur", (1, 1))]
    assert card.sizes == (1, 2048)
    assert processor.device == "AMD EPYC, 1 thread"
    assert [(speed.row.plugin, speed.rank) for speed in processor.speeds] == [("mosaic", (1, 1)), ("blur", (2, 2))]
    assert [speed.ratio for speed in processor.speeds] == [0.8, 0.5]


def test_rates_whose_intervals_overlap_share_their_places() -> None:
    (table,) = tables(timed("blur", 100), timed("mosaic", 104), timed("dp-simple", 10))
    assert {speed.row.plugin: speed.rank for speed in table.speeds} == {
        "mosaic": (1, 2), "blur": (1, 2), "dp-simple": (3, 3)
    }  # fmt: skip


def test_images_of_another_side_have_a_table_of_their_own() -> None:
    large = timed("blur", 5).model_copy(update={"dataset": dataset(shape=[1, 224, 224]), "cell": "blur-large"})
    assert {table.shape for table in tables(timed("blur", 100), large)} == {"1 × 224 × 224", "1 × 64 × 64"}


@pytest.mark.parametrize("yardstick", [None, "fast", True, 0, -1.0, [100.0]])
def test_without_a_rate_of_the_yardstick_there_is_no_ratio(yardstick: object) -> None:
    assert relative_speed(timed("blur", 50, resnet18_images_per_second=yardstick)) is None


def test_the_page_says_why_a_size_has_no_rate_and_escapes_it(write: Write, tmp_path: Path) -> None:
    why = "<b>needs 3 rows</b>"
    results = write(timed(
        "instahide", 50, hardware=H200, images_per_second_by_rows={"32": 40.0, "x": "y"},
        no_rate_by_rows={"1": why}, joules_per_image=0.002, host_to_device_seconds=0.001, device_to_host_seconds=0.002,
    ))  # fmt: skip
    page = (build(results, tmp_path / "site").parent / "throughput.html").read_text()
    assert "&lt;b&gt;needs 3 rows&lt;/b&gt;" in page
    assert why not in page
    assert "2.00 mJ an image" in page
    assert "takes 1.00 ms, and back 2.00 ms" in page


def test_a_board_without_rates_says_how_to_measure_them(write: Write, tmp_path: Path) -> None:
    page = (build(write(record("blur")), tmp_path / "site").parent / "throughput.html").read_text()
    assert "bench run --suite throughput" in page


def test_the_menu_leads_to_rates_as_soon_as_there_are_some(write: Write, tmp_path: Path) -> None:
    def menus(*records: Record) -> set[bool]:
        index = build(write(*records), tmp_path / "site")
        texts = [page.read_text().partition("</header>")[0] for page in index.parent.rglob("*.html")]
        return {'throughput.html">Throughput</a>' in text for text in texts}

    assert menus(record("blur")) == {False}
    assert menus(record("blur"), timed("blur", 50)) == {True}


def test_a_rate_that_only_its_author_measured_has_no_rank_and_takes_none() -> None:
    records = {name: timed(name, rate) for name, rate in (("blur", 100), ("mosaic", 1000))}
    (both,) = tables(*records.values())
    fast, slow = (dataclasses.replace(speed, rank=None) for speed in both.speeds)
    theirs = dataclasses.replace(fast, row=fast.row.model_copy(update={"trusted": False}))
    again = _table("a device", "", "synth-cxr", "1", 1, [(theirs, records["mosaic"]), (slow, records["blur"])])
    assert [(speed.row.plugin, speed.rank) for speed in again.speeds] == [("mosaic", None), ("blur", (1, 1))]
