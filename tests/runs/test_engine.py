"""What is said to an engine: written as SLURM takes it, for all workers or for some; resource classes as words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.plugins.spec import UsageError
from bench.runs.engine import EngineOptions, Needs


def test_the_command_line_wins_over_the_configuration_and_a_kind_over_all() -> None:
    options = EngineOptions.read(["partition=gpu", "alone.partition=whole"], {"partition": "old", "time": 30})
    assert options.text("partition", ["cuda"]) == "gpu"
    assert options.text("partition", ["cuda", "alone"]) == "whole"
    assert options.minutes("time", ["cuda"]) == 30
    assert options.text("qos", ["cuda"]) is None


@pytest.mark.parametrize(
    ("written", "minutes"),
    [("90", 90), ("1:30", 2), ("2:00:00", 120), ("1-0", 1440), ("2-03:30", 3090), ("1-00:00:30", 1441)],
)
def test_times_are_read_as_slurm_reads_them(written: str, minutes: int) -> None:
    assert EngineOptions({"time": written}).minutes("time", []) == minutes


@pytest.mark.parametrize(("written", "gib"), [("16", 16), ("16G", 16), ("512M", 0.5), ("1.5 GiB", 1.5), ("2TB", 2048)])
def test_sizes_are_read(written: str, gib: float) -> None:
    assert EngineOptions({"mem": written}).gib("mem", []) == gib


@pytest.mark.parametrize(
    ("name", "read", "written"),
    [("time", "minutes", "soon"), ("time", "minutes", "0"), ("mem", "gib", "much"), ("mem", "gib", "0"),
     ("workers", "count", "0"), ("workers", "count", "-1"), ("workers", "count", "many")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_name(name: str, read: str, written: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: expected .* got '{written}'"):
        getattr(EngineOptions({name: written}), read)(name, [])


def test_an_unknown_option_is_refused_and_the_near_one_named() -> None:
    for name in ("partion", "alone.partion"):
        with pytest.raises(UsageError, match="did you mean 'partition'"):
            EngineOptions({name: "x"}).check(["partition", "time"])
    EngineOptions({"alone.partition": "x", "cuda.sbatch.licenses": "y"}).check(["partition"], "sbatch.")
    for flag in ("partition", "=gpu", "partition="):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            EngineOptions.read([flag], {})
    with pytest.raises(UsageError, match="text or a number"):
        EngineOptions.read([], {"partition": ["a", "b"]})


def test_what_sbatch_takes_beyond_the_options_is_passed_on() -> None:
    options = EngineOptions({"sbatch.licenses": "a", "cuda.sbatch.licenses": "b", "cuda.sbatch.reservation": "r"})
    assert options.own("sbatch.", ["cuda"]) == {"licenses": "b", "reservation": "r"}
    assert options.own("sbatch.", ["cpu"]) == {"licenses": "a"}


def test_what_the_engine_is_asked_for_must_hold_what_jobs_may_hold() -> None:
    needs = Needs("cpu", False, 60, 16 * 2**30)
    assert EngineOptions({"mem": "20G"}).memory(needs, ["cpu"]) == 20.0
    assert EngineOptions({}).memory(needs, ["cpu"]) == 17.0
    with pytest.raises(UsageError, match=r"mem: .* 17\.0 GiB, .* got '16G'"):
        EngineOptions({"mem": "16G"}).memory(needs, ["cpu"])


def test_a_long_folder_for_temporary_files_leaves_room_for_sockets(tmp_path: Path) -> None:
    script = (
        "import tempfile; from multiprocessing.util import get_temp_dir; from bench.runs.local_engine import "
        "shorten_socket_path; shorten_socket_path(); print(len(get_temp_dir()), tempfile.gettempdir())"
    )
    for length, shortened in ((60, False), (120, True)):
        place = tmp_path / ("t" * max(1, length - len(str(tmp_path))))
        place.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(place)}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        used, usual = done.stdout.split()
        assert usual == str(place)
        assert (int(used) < len(str(place))) == shortened
