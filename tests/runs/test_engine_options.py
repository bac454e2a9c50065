"""What is said to an engine: written as SLURM takes it, for all workers or for some; resource classes as words."""

from __future__ import annotations

import pytest

from bench.plugins.spec import UsageError
from bench.runs.engine_options import EngineOptions
from bench.runs.needs import Needs


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


@pytest.mark.parametrize("memory", [None, 2**30, 16 * 2**30, 3 * 2**29, 4018510988, 51861730099])
def test_a_resource_class_is_a_word_and_back(memory: int | None) -> None:
    needs = Needs("cuda", True, 60, memory)
    assert Needs.named(needs.name) == needs


@pytest.mark.parametrize("word", ["", "cpu", "gpu-60m", "cpu-0m", "cpu-60", "cpu-60m-", "cuda-60m-alone", "cpu-60m-x"])
def test_other_words_are_no_resource_class(word: str) -> None:
    with pytest.raises(ValueError, match="resource class"):
        Needs.named(word)


def test_a_worker_takes_jobs_that_need_no_more_than_it_has() -> None:
    mine = Needs("cuda", False, 60, 16)
    for job, fits in (
        (Needs("cuda", False, 60, 16), True), (Needs("cuda", False, 10, None), True),
        (Needs("cuda", False, 61, 16), False), (Needs("cuda", False, 60, 17), False),
        (Needs("cpu", False, 60, 16), False), (Needs("cuda", True, 60, 16), False),
    ):  # fmt: skip
        assert mine.covers(job, prepares=False) == fits, job
    alone = Needs("cpu", True, 60, None)
    assert alone.covers(Needs("cpu", True, 60, None), prepares=False)
    assert not alone.covers(Needs("cpu", False, 60, None), prepares=False)  # others do it
    assert alone.covers(Needs("cpu", False, 60, None), prepares=True)  # or it might wait for it in vain


def test_what_the_engine_is_asked_for_must_hold_what_jobs_may_hold() -> None:
    needs = Needs("cpu", False, 60, 16 * 2**30)
    assert EngineOptions({"mem": "20G"}).memory(needs, ["cpu"]) == (20.0, 19.0)
    assert EngineOptions({}).memory(needs, ["cpu"]) == (17.0, None)
    with pytest.raises(UsageError, match=r"mem: .* 17\.0 GiB, .* got '16G'"):
        EngineOptions({"mem": "16G"}).memory(needs, ["cpu"])
